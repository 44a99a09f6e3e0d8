// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Outcome} from "../../contracts/interfaces/ICouncil.sol";
import {FastPayTest} from "../FastPayTest.sol";
import {UnlocksHandler} from "./UnlocksHandler.sol";

/// @title What holds of numbers after any sequence of requests, decisions, redemptions and installations
contract UnlocksInvariantsTest is FastPayTest {
    UnlocksHandler private _handler;

    function setUp() public override {
        super.setUp();
        fundEther(1 ether);
        _handler = new UnlocksHandler(fastPay, [memberKey(0), memberKey(1), memberKey(2), memberKey(3)]);
        targetContract(address(_handler));
        bytes4[] memory actions = new bytes4[](8);
        actions[0] = UnlocksHandler.request.selector;
        actions[1] = UnlocksHandler.uphold.selector;
        actions[2] = UnlocksHandler.upholdTwo.selector;
        actions[3] = UnlocksHandler.void.selector;
        actions[4] = UnlocksHandler.returnBond.selector;
        actions[5] = UnlocksHandler.redeem.selector;
        actions[6] = UnlocksHandler.rotate.selector;
        actions[7] = UnlocksHandler.wait.selector;
        targetSelector(FuzzSelector({addr: address(_handler), selectors: actions}));
    }

    /// @dev A number is upheld or voided and never both; one that is void is never paid.
    function invariant_EachNumberHasOneOutcome() public view {
        for (uint64 i = 0; i < _handler.NUMBERS(); ++i) {
            (Outcome outcome,,) = fastPay.council().unlockOf(_handler.ACCOUNT(), i);
            assertTrue(outcome == _handler.outcome(i));
            bool isVoid = outcome == Outcome.Voided;
            assertFalse(isVoid && _handler.paid(i));
            assertEq(fastPay.isRedeemed(_handler.ACCOUNT(), i), isVoid || _handler.paid(i));
        }
    }

    /// @dev The council holds a bond for each number that names a payer, and nothing else.
    function invariant_EveryBondIsThere() public view {
        uint256 bonds = 0;
        for (uint64 i = 0; i < _handler.NUMBERS(); ++i) {
            (,, address payer) = fastPay.council().unlockOf(_handler.ACCOUNT(), i);
            assertEq(payer != address(0), _handler.bonded(i));
            if (payer != address(0)) bonds += fastPay.council().unlockBond();
        }
        assertEq(address(fastPay.council()).balance, bonds);
    }

    function invariant_TheIndexCountsEvents() public view {
        assertEq(fastPay.lastTransactionIndex(), _handler.events());
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "../FastPayTest.sol";
import {Handler} from "./Handler.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title What holds after any sequence of calls
contract InvariantsTest is FastPayTest {
    Handler internal handler;

    function setUp() public override {
        super.setUp();
        handler = new Handler(fastPay, [memberKey(0), memberKey(1), memberKey(2)]);
        targetContract(address(handler));
        bytes4[] memory actions = new bytes4[](8);
        actions[0] = Handler.depositEther.selector;
        actions[1] = Handler.depositToken.selector;
        actions[2] = Handler.redeem.selector;
        actions[3] = Handler.redeemMany.selector;
        actions[4] = Handler.redeemWithoutAQuorum.selector;
        actions[5] = Handler.claim.selector;
        actions[6] = Handler.changeMood.selector;
        actions[7] = Handler.donate.selector;
        targetSelector(FuzzSelector({addr: address(handler), selectors: actions}));
    }

    /// @dev Safety: what is owed is there, and is what came in less what was redeemed.
    function invariant_EveryAssetIsCovered() public view {
        for (uint256 i = 0; i < handler.numberOfAssets(); ++i) {
            address asset = handler.assets(i);
            uint256 held =
                asset == ETHER ? address(fastPay).balance : IERC20(asset).balanceOf(address(fastPay));
            assertGe(held, fastPay.totalBalance(asset) + fastPay.totalClaims(asset));
            uint256 left = handler.redeemed(asset) - fastPay.totalQueued(asset);
            assertEq(fastPay.totalBalance(asset), handler.deposited(asset) - left);
        }
    }

    /// @dev What was redeemed was paid, or waits, or is a claim, and all claims are somebody's.
    function invariant_ClaimsAreConserved() public view {
        for (uint256 i = 0; i < handler.numberOfAssets(); ++i) {
            address asset = handler.assets(i);
            uint256 claims = 0;
            for (uint256 j = 0; j < handler.numberOfPayees(); ++j) {
                claims += fastPay.claimOf(handler.payees(j), asset);
            }
            assertEq(fastPay.totalClaims(asset), claims);
            assertEq(handler.redeemed(asset), handler.paid(asset) + claims + fastPay.totalQueued(asset));
        }
    }

    /// @dev Redeemability, once: a number is paid at most once, and the contract knows which were.
    function invariant_EachNumberIsPaidAtMostOnce() public view {
        handler.eachPayment(this.checkPayment);
    }

    function checkPayment(bytes32 sender, uint64 sequence, uint256 times) external view {
        assertLe(times, 1);
        assertEq(fastPay.isRedeemed(sender, sequence), times == 1);
    }

    /// @dev Deposits and redemptions, paid or queued, are numbered without a gap.
    function invariant_TheIndexCountsEvents() public view {
        assertEq(fastPay.lastTransactionIndex(), handler.events());
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil, Outcome} from "../../contracts/interfaces/ICouncil.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";
import {UnlockTest} from "./UnlockTest.sol";

contract ReturnBondTreeTest is UnlockTest {
    function test_RevertGiven_NobodyHasRequestedTheUnlock() external {
        _fails();
    }

    function test_RevertGiven_TheNumberIsOpen() external {
        request(7);
        _fails();
    }

    function test_RevertGiven_TheNumberIsUpheld() external {
        request(7);
        uphold(7);
        _fails();
    }

    function test_RevertGiven_TheBondWasReturnedBefore() external {
        request(7);
        voidNumber(7);
        _fails();
    }

    function test_RevertGiven_ThePayerRefusesAgain() external {
        address payer = _refused();
        vm.expectRevert(abi.encodeWithSelector(ICouncil.BondRefused.selector, payer));
        council.returnBond(ACCOUNT, 7);
        assertUnlock(7, Outcome.Voided, payer);
    }

    function test_GivenThePayerTakesIt() external {
        address payer = _refused();
        MoodyRecipient(payable(payer)).setMood(MoodyRecipient.Mood.Accepts);
        council.returnBond(ACCOUNT, 7);
        assertEq(payer.balance, BOND);
        assertEq(address(council).balance, 0);
        _fails();
    }

    /// @dev A voided number whose payer refused the bond.
    function _refused() private returns (address payer) {
        payer = refuser();
        requestFrom(payer, 7);
        voidNumber(7);
    }

    function _fails() private {
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NoBond.selector, ACCOUNT, 7));
        council.returnBond(ACCOUNT, 7);
    }
}

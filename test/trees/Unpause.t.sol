// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract UnpauseTreeTest is TreeTest {
    function test_RevertWhen_TheCallerIsNotTheGuardian() external {
        pause();
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, alice));
        vm.prank(alice);
        fastPay.unpause();
    }

    function test_RevertGiven_TheContractIsNotPaused() external {
        _failsAsNotPaused();
    }

    function test_RevertGiven_ThePauseIsOver() external {
        pause();
        wait(1 days);
        _failsAsNotPaused();
    }

    function test_GivenTheContractIsPaused() external {
        pause();
        wait(1 hours);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Unpaused();
        vm.prank(guardian);
        fastPay.unpause();
        assertEq(fastPay.nextPauseAt(), vm.getBlockTimestamp() + 7 days);
        redeem(order(1 ether, 0));
        assertEq(bob.balance, 0.9 ether);
    }

    function _failsAsNotPaused() private {
        vm.expectRevert(IFastPay.NotPaused.selector);
        vm.prank(guardian);
        fastPay.unpause();
    }
}

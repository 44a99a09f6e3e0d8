// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract PauseTreeTest is TreeTest {
    function test_RevertWhen_TheCallerIsNotTheGuardian() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, alice));
        vm.prank(alice);
        fastPay.pause();
    }

    function test_RevertGiven_NobodyIsGuardian() external {
        rotate(committeeOf(1), address(0));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, guardian));
        vm.prank(guardian);
        fastPay.pause();
    }

    function test_RevertGiven_TheContractIsPaused() external {
        pause();
        _failsUntil(vm.getBlockTimestamp() + 8 days);
    }

    function test_RevertGiven_TheLastPauseHasNotBeenOverForTheCoolDown() external {
        pause();
        uint256 nextAt = vm.getBlockTimestamp() + 8 days;
        vm.warp(nextAt - 1);
        _failsUntil(nextAt);
        vm.warp(nextAt);
        pause();
    }

    function test_WhenTheGuardianMayPause() external {
        uint256 time = vm.getBlockTimestamp();
        vm.expectEmit(address(fastPay));
        emit IFastPay.Paused(time + 1 days);
        bytes memory revertData = pause();
        assertEq(fastPay.pausedUntil(), time + 1 days);
        assertEq(fastPay.nextPauseAt(), time + 8 days);
        wait(1 days - 1);
        redeemFails(order(1 ether, 0), revertData);
        wait(1);
        redeem(order(1 ether, 0));
    }

    function _failsUntil(uint256 nextAt) private {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PauseTooEarly.selector, nextAt));
        vm.prank(guardian);
        fastPay.pause();
    }
}

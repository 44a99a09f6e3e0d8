// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract PostponeTreeTest is CouncilTest {
    function test_RevertWhen_TheCallerIsNotTheGuardian() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, alice));
        vm.prank(alice);
        fastPay.postpone(0, 1);
    }

    function test_RevertWhen_TheEpochHasNoCommittee() external {
        vm.prank(guardian);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
        fastPay.postpone(1, 1);
    }

    function test_RevertWhen_ItIsMoreThanThirtyDaysInAll() external {
        vm.startPrank(guardian);
        fastPay.postpone(0, 20 days);
        bytes memory tooLong = abi.encodeWithSelector(IFastPay.PostponedTooLong.selector, 0, 20 days, 30 days);
        vm.expectRevert(tooLong);
        fastPay.postpone(0, 10 days + 1);
        vm.expectRevert(tooLong);
        fastPay.postpone(0, type(uint256).max);
        fastPay.postpone(0, 10 days);
        vm.stopPrank();
    }

    function test_WhenTheGuardianPostpones() external {
        Redemption memory first = enqueue(0);
        uint256 executableAt = vm.getBlockTimestamp() + 3 days;
        vm.expectEmit(address(fastPay));
        emit IFastPay.Postponed(0, 5 days);
        vm.prank(guardian);
        fastPay.postpone(0, 5 days);
        enqueue(1);
        for (uint64 sequence = 0; sequence < 2; ++sequence) {
            (uint256 time,,,) = fastPay.queued(ACCOUNT, sequence);
            assertEq(time, executableAt + 5 days);
        }
        vm.warp(executableAt + 5 days - 1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.TooEarly.selector, executableAt + 5 days));
        fastPay.executeQueued(first, "");
        vm.warp(executableAt + 5 days);
        fastPay.executeQueued(first, "");

        rotate();
        Redemption memory later = order(2 * LIMIT, 2);
        bytes memory votes = certifyIn(1, later);
        fastPay.redeem(later, 1, votes);
        (uint256 unchanged,,,) = fastPay.queued(ACCOUNT, 2);
        assertEq(unchanged, vm.getBlockTimestamp() + 3 days);
    }
}

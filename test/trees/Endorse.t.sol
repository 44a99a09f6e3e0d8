// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract EndorseTreeTest is CouncilTest {
    function test_RevertWhen_TheCallerIsNotTheGuardian() external {
        bytes32 id = announce(announcementOfNext());
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, alice));
        vm.prank(alice);
        council.endorse(id);
    }

    function test_RevertGiven_NobodyIsGuardian() external {
        rotate(committeeOf(1), address(0));
        bytes32 id = announce(announcementOfNext());
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, guardian));
        vm.prank(guardian);
        council.endorse(id);
    }

    function test_RevertGiven_NothingWasAnnouncedUnderTheId() external {
        _fails(keccak256("an id"), abi.encodeWithSelector(ICouncil.NotAnnounced.selector, keccak256("an id")));
    }

    function test_RevertGiven_AnotherCommitteeWasInstalledSince() external {
        bytes32 id = announce(announcementOfNext());
        rotate(committeeOf(1), guardian);
        _fails(id, abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
    }

    function test_RevertGiven_ItHasLapsed() external {
        bytes32 id = announce(announcementOfNext());
        uint256 lapsesAt = vm.getBlockTimestamp() + LONG + LAPSE;
        vm.warp(lapsesAt + 1);
        _fails(id, abi.encodeWithSelector(ICouncil.AnnouncementLapsed.selector, id, lapsesAt));
        vm.warp(lapsesAt);
        endorse(id);
    }

    function test_RevertGiven_ItIsARecovery() external {
        bytes32 id = announceRecovery(recoveryOfNext());
        _fails(id, abi.encodeWithSelector(ICouncil.RecoveryNotEndorsable.selector, id));
    }

    function test_RevertGiven_ItWasEndorsedBefore() external {
        bytes32 id = announce(announcementOfNext());
        endorse(id);
        _fails(id, abi.encodeWithSelector(ICouncil.AlreadyEndorsed.selector, id));
    }

    function test_WhenADayLaterIsBeforeTheLongDelayEnds() external {
        bytes32 id = announce(announcementOfNext());
        wait(5 days);
        vm.expectEmit(address(council));
        emit ICouncil.Endorsed(id);
        endorse(id);
        _assertInstallable(id, vm.getBlockTimestamp() + SHORT, vm.getBlockTimestamp() - 5 days);
    }

    function test_WhenADayLaterIsAfterTheLongDelayEnds() external {
        bytes32 id = announce(announcementOfNext());
        uint256 announcedAt = vm.getBlockTimestamp();
        wait(LONG - SHORT + 1);
        endorse(id);
        _assertInstallable(id, announcedAt + LONG, announcedAt);
    }

    function test_GivenItIsTheRaiseOfACap() external {
        bytes32 id = announceCap(raiseTo(2000 ether));
        endorse(id);
        _assertInstallable(id, vm.getBlockTimestamp() + SHORT, vm.getBlockTimestamp());
    }

    function _assertInstallable(bytes32 id, uint256 expected, uint256 announcedAt) private view {
        (,, uint256 endorsedAt, uint256 installableAt, uint256 lapsesAt,,) = council.clockOf(id);
        assertEq(endorsedAt, vm.getBlockTimestamp());
        assertEq(installableAt, expected);
        assertEq(lapsesAt, announcedAt + LONG + LAPSE);
    }

    function _fails(bytes32 id, bytes memory revertData) private {
        vm.expectRevert(revertData);
        vm.prank(guardian);
        council.endorse(id);
    }
}

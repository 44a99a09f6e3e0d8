// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract AnnounceRecoveryTreeTest is CouncilTest {
    function test_RevertWhen_TheCallerIsNotTheRecoveryAddress() external {
        Announcement memory next = recoveryOfNext();
        bytes memory proofs = proofsOf(1);
        address[3] memory callers = [alice, guardian, vm.addr(memberKey(0))];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ICouncil.NotRecovery.selector, callers[i]));
            vm.prank(callers[i]);
            council.announceRecovery(next, proofs);
        }
    }

    function test_RevertGiven_TheCommitteeWasInstalledLessThanAHundredAndTwentyDaysAgo() external {
        uint256 silentAt = vm.getBlockTimestamp() + SILENCE;
        Announcement memory next = recoveryOfNext();
        vm.warp(silentAt - 1);
        _fails(next, abi.encodeWithSelector(ICouncil.CommitteeAlive.selector, silentAt));
        vm.warp(silentAt);
        installEndorsed(announcementOfNext());
        silentAt = vm.getBlockTimestamp() + SILENCE;
        _fails(next, abi.encodeWithSelector(ICouncil.CommitteeAlive.selector, silentAt));
    }

    function test_RevertGiven_AQuorumShowedItselfLessThanAHundredAndTwentyDaysAgo() external {
        wait(100 days);
        heartbeat();
        uint256 silentAt = vm.getBlockTimestamp() + SILENCE;
        Announcement memory next = recoveryOfNext();
        vm.warp(silentAt - 1);
        _fails(next, abi.encodeWithSelector(ICouncil.CommitteeAlive.selector, silentAt));
    }

    function test_RevertWhen_KeysAreSaidToBeOutSinceALaterEpochThanTheFirst() external {
        Announcement memory next = recoveryOfNext();
        next.compromisedSince = 1;
        _fails(next, abi.encodeWithSelector(ICouncil.InvalidCompromisedSince.selector, 1));
    }

    function test_RevertWhen_ARedemptionKeyDidNotSignItsProof() external {
        Announcement memory next = recoveryOfNext();
        next.authorities[3].redemptionKey = bob;
        _fails(next, abi.encodeWithSelector(ICouncil.NoPossession.selector, 3));
    }

    function test_GivenTheCommitteeHasBeenSilent() external {
        Announcement memory next = recoveryOfNext();
        bytes32 id = council.announcementDigest(next);
        bytes memory proofs = proofsOf(1);
        vm.expectEmit(address(council));
        emit ICouncil.CommitteeAnnounced(id, next, proofs);
        vm.prank(recovery);
        council.announceRecovery(next, proofs);
        (uint64 epoch, uint256 announcedAt,, uint256 installableAt, uint256 lapsesAt,, bool isRecovery) =
            council.clockOf(id);
        assertEq(epoch, 1);
        assertEq(announcedAt, vm.getBlockTimestamp());
        assertEq(installableAt, announcedAt + NOTICE);
        assertEq(lapsesAt, installableAt + LAPSE);
        assertTrue(isRecovery);
    }

    function _fails(Announcement memory announcement, bytes memory revertData) private {
        bytes memory proofs = proofsOf(1);
        vm.expectRevert(revertData);
        vm.prank(recovery);
        council.announceRecovery(announcement, proofs);
    }
}

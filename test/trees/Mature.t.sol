// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract MatureTreeTest is CouncilTest {
    function test_RevertGiven_NothingWasAnnouncedUnderTheId() external {
        _fails(keccak256("an id"), abi.encodeWithSelector(ICouncil.NotAnnounced.selector, keccak256("an id")));
    }

    function test_RevertWhen_ItsTimeHasNotCome() external {
        bytes32 id = announce(announcementOfNext());
        uint256 installableAt = vm.getBlockTimestamp() + LONG;
        vm.warp(installableAt - 1);
        _fails(id, abi.encodeWithSelector(ICouncil.NotInstallable.selector, id, installableAt));
    }

    function test_RevertGiven_ItHasLapsed() external {
        bytes32 id = announce(announcementOfNext());
        uint256 lapsesAt = vm.getBlockTimestamp() + LONG + LAPSE;
        vm.warp(lapsesAt + 1);
        _fails(id, abi.encodeWithSelector(ICouncil.AnnouncementLapsed.selector, id, lapsesAt));
    }

    function test_RevertGiven_AnotherCommitteeWasInstalledSince() external {
        bytes32 id = announce(announcementOfNext());
        wait(LONG);
        rotate(committeeOf(1), guardian);
        _fails(id, abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
    }

    function test_RevertGiven_AQuorumShowedItselfSinceTheRecoveryWasAnnounced() external {
        bytes32 id = announceRecovery(recoveryOfNext());
        heartbeat(); // even in the same block
        wait(NOTICE);
        _fails(id, abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
    }

    function test_RevertGiven_ItMaturedBefore() external {
        bytes32 id = announce(announcementOfNext());
        mature(id);
        _fails(id, abi.encodeWithSelector(ICouncil.AlreadyMatured.selector, id));
    }

    function test_GivenItIsARecoveryWhoseNoticeHasPassed() external {
        bytes32 id = announceRecovery(recoveryOfNext());
        uint256 installableAt = vm.getBlockTimestamp() + NOTICE;
        vm.warp(installableAt - 1);
        _fails(id, abi.encodeWithSelector(ICouncil.NotInstallable.selector, id, installableAt));
        vm.warp(installableAt);
        _assertMatures(id);
    }

    function test_WhenItsTimeHasCome() external {
        bytes32 id = announce(announcementOfNext());
        wait(LONG);
        _assertMatures(id);
    }

    function _assertMatures(bytes32 id) private {
        vm.roll(4321);
        vm.expectEmit(address(council));
        emit ICouncil.Matured(id, 4321);
        vm.prank(relayer); // anyone
        council.mature(id);
        (,,,,, uint256 maturedBlock,) = council.clockOf(id);
        assertEq(maturedBlock, 4321);
    }

    function _fails(bytes32 id, bytes memory revertData) private {
        vm.expectRevert(revertData);
        council.mature(id);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {History} from "../mocks/History.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract InstallCommitteeTreeTest is CouncilTest {
    function test_RevertGiven_NothingWasAnnouncedUnderTheId() external {
        Announcement memory next = announcementOfNext();
        _fails(
            next,
            999,
            abi.encodeWithSelector(ICouncil.NotAnnounced.selector, council.announcementDigest(next))
        );
    }

    function test_RevertGiven_ItHasNotMatured() external {
        Announcement memory next = announcementOfNext();
        bytes32 id = announce(next);
        uint256 installableAt = vm.getBlockTimestamp() + LONG;
        _fails(next, 999, abi.encodeWithSelector(ICouncil.NotInstallable.selector, id, installableAt));
        vm.warp(installableAt);
        _fails(next, 999, abi.encodeWithSelector(ICouncil.NotMatured.selector, id));
    }

    function test_RevertGiven_ItHasLapsed() external {
        Announcement memory next = announcementOfNext();
        bytes32 id = announce(next);
        uint256 lapsesAt = vm.getBlockTimestamp() + LONG + LAPSE;
        uint256 blockNumber = mature(id);
        vm.warp(lapsesAt + 1);
        _fails(next, blockNumber, abi.encodeWithSelector(ICouncil.AnnouncementLapsed.selector, id, lapsesAt));
        vm.warp(lapsesAt);
        install(next, blockNumber);
    }

    function test_RevertGiven_AnotherCommitteeWasInstalledSince() external {
        Announcement memory next = announcementOfNext();
        bytes32 id = announce(next);
        uint256 blockNumber = mature(id);
        rotate(committeeOf(1), guardian);
        _fails(next, blockNumber, abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
    }

    function test_RevertGiven_AQuorumShowedItselfSinceTheRecoveryWasAnnounced() external {
        Announcement memory next = recoveryOfNext();
        bytes32 id = announceRecovery(next);
        uint256 blockNumber = mature(id);
        heartbeat();
        _fails(next, blockNumber, abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
    }

    function test_RevertWhen_TheAcceptanceNamesAnEarlierBlock() external {
        Announcement memory next = announcementOfNext();
        uint256 blockNumber = mature(announce(next));
        bytes memory early =
            abi.encodeWithSelector(ICouncil.AcceptedTooEarly.selector, blockNumber - 1, blockNumber);
        _fails(next, blockNumber - 1, early);
    }

    function test_RevertWhen_TheHashOfTheBlockIsNotKnown() external {
        Announcement memory next = announcementOfNext();
        uint256 blockNumber = mature(announce(next));
        bytes memory votes = acceptances(next, blockNumber);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.UnknownBlock.selector, blockNumber + 1)); // this one
        council.install(next, blockNumber + 1, votes);
        vm.roll(blockNumber + 257);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.UnknownBlock.selector, blockNumber));
        council.install(next, blockNumber, votes);
    }

    function test_RevertWhen_TheVotesAreNoQuorumOfTheNewCommittee() external {
        Announcement memory next = announcementOfNext();
        bytes32 id = announce(next);
        uint256 blockNumber = mature(id);
        bytes32 digest = council.acceptanceDigest(1, id, blockhash(blockNumber));
        bytes memory old = votesIn(0, digest);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.install(next, blockNumber, old);
        // Signed before the announcement had matured.
        bytes memory early = votesIn(1, council.acceptanceDigest(1, id, blockhash(blockNumber - 1)));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.install(next, blockNumber, early);
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        council.install(next, blockNumber, "");
        assertEq(fastPay.epoch(), 0);
    }

    function test_WhenTheBlockIsKnownToTheHistoryContractAlone() external {
        Announcement memory next = announcementOfNext();
        uint256 blockNumber = mature(announce(next));
        bytes32 hash = blockhash(blockNumber);
        bytes32 id = council.announcementDigest(next);
        bytes memory votes = votesIn(1, council.acceptanceDigest(1, id, hash));
        vm.roll(blockNumber + 8000);
        History.keep(blockNumber, hash);
        council.install(next, blockNumber, votes);
        assertEq(fastPay.epoch(), 1);
    }

    function test_GivenTheContractIsPaused() external {
        Announcement memory next = announcementOfNext();
        bytes32 id = announce(next);
        endorse(id);
        wait(SHORT);
        pause();
        install(next, mature(id));
        assertEq(fastPay.epoch(), 1);
    }

    function test_WhenNoKeysWereOut() external {
        Announcement memory next = announcementOfNext();
        (next.guardian, next.recovery, next.checkpoint) = (alice, bob, keccak256("checkpoint"));
        bytes32 id = announce(next);
        endorse(id);
        uint256 blockNumber = mature(id);
        uint256 ends = vm.getBlockTimestamp() + 14 days;
        bytes memory votes = acceptances(next, blockNumber);
        vm.expectEmit(address(fastPay));
        emit IFastPay.CommitteeInstalled(2, 1, next.authorities, alice, ends, 1, keccak256("checkpoint"));
        vm.prank(relayer); // anyone
        council.install(next, blockNumber, votes);
        assertEq(fastPay.epoch(), 1);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(next.authorities));
        assertEq(fastPay.guardian(), alice);
        assertEq(council.recovery(), bob);
        assertEq(council.installedAt(), vm.getBlockTimestamp());
        assertEq(fastPay.epochValidUntil(0), ends);
        _fails(next, blockNumber, abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
    }

    function test_WhenKeysWereOut() external {
        rotate(committeeOf(1), guardian);
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 1;
        installEndorsed(next);
        assertTrue(fastPay.compromised(1));
        assertFalse(fastPay.compromised(0));
        assertEq(fastPay.epochValidUntil(1), 0);
    }

    function test_GivenItIsARecovery() external {
        rotate(committeeOf(1), guardian);
        Announcement memory next = recoveryOfNext();
        install(next, mature(announceRecovery(next)));
        assertEq(fastPay.epoch(), 2);
        assertTrue(fastPay.compromised(0) && fastPay.compromised(1));
        assertEq(fastPay.epochValidUntil(1), 0);
    }

    function _fails(Announcement memory announcement, uint256 blockNumber, bytes memory revertData) private {
        bytes memory votes = acceptances(announcement, blockNumber);
        vm.expectRevert(revertData);
        council.install(announcement, blockNumber, votes);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract AnnounceTreeTest is CouncilTest {
    Announcement private _next;

    function setUp() public override {
        super.setUp();
        _set(announcementOfNext());
    }

    function test_RevertWhen_TheEpochIsNotTheNextOne() external {
        for (uint64 epoch = 0; epoch <= 2; epoch += 2) {
            Announcement memory other = _next;
            (other.epoch, other.compromisedSince) = (epoch, epoch);
            _fails(other, abi.encodeWithSelector(ICouncil.WrongEpoch.selector, epoch, 1));
        }
    }

    function test_RevertWhen_KeysAreSaidToBeOutSinceALaterEpoch() external {
        Announcement memory other = _next;
        other.compromisedSince = 2;
        _fails(other, abi.encodeWithSelector(ICouncil.InvalidCompromisedSince.selector, 2));
    }

    function test_RevertWhen_TheDeadlineHasPassed() external {
        _next.deadline = uint64(vm.getBlockTimestamp() - 1);
        _failsByDeadline();
    }

    function test_RevertWhen_TheDeadlineIsMoreThanThirtyDaysAhead() external {
        _next.deadline = uint64(vm.getBlockTimestamp() + 30 days + 1);
        _failsByDeadline();
    }

    function test_RevertWhen_TheCommitteeIsUnsound() external {
        Announcement memory other = _next;
        other.authorities = authorities(3);
        _fails(other, abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
    }

    function test_RevertWhen_ThereIsNotOneProofForEachMember() external {
        bytes memory votes = _votes(_next);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.WrongProofsLength.selector, 515, 516));
        council.announce(_next, new bytes(515), votes);
    }

    function test_RevertWhen_ARedemptionKeyDidNotSignItsProof() external {
        // Two mistyped characters of a key, found before they brick a committee.
        Announcement memory other = _next;
        other.authorities[2].redemptionKey = address(uint160(other.authorities[2].redemptionKey) ^ 1);
        _fails(other, abi.encodeWithSelector(ICouncil.NoPossession.selector, 2));
    }

    function test_RevertWhen_AProofIsMalleable() external {
        bytes memory proofs = proofsOf(1);
        uint256 s = uint256(_word(proofs, 32));
        uint256 twin = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141 - s;
        assembly ("memory-safe") {
            mstore(add(proofs, 0x40), twin)
        }
        proofs[64] = bytes1(55 - uint8(proofs[64]));
        bytes memory votes = _votes(_next);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NoPossession.selector, 0));
        council.announce(_next, proofs, votes);
    }

    function test_RevertGiven_TheSameWasAnnouncedBefore() external {
        bytes32 id = announce(_next);
        _fails(_next, abi.encodeWithSelector(ICouncil.AlreadyAnnounced.selector, id));
    }

    function test_RevertWhen_TheVotesAreNoQuorumOfTheCurrentEpoch() external {
        bytes memory proofs = proofsOf(1);
        bytes32 id = council.announcementDigest(_next);
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        council.announce(_next, proofs, "");
        bytes memory others = votesIn(1, id);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.announce(_next, proofs, others);
    }

    function test_GivenTheContractIsPaused() external {
        pause();
        _assertStarted(announce(_next));
    }

    function test_GivenAnotherCommitteeWasAnnounced() external {
        uint256 first = vm.getBlockTimestamp();
        bytes32 id = announce(_next);
        wait(10 minutes);
        Announcement memory other = _next;
        other.guardian = bob;
        _assertStarted(announce(other));
        (, uint256 announcedAt,,,,,) = council.clockOf(id);
        assertEq(announcedAt, first);
    }

    function test_WhenAQuorumAnnounces() external {
        bytes32 id = council.announcementDigest(_next);
        bytes memory proofs = proofsOf(1);
        bytes memory votes = _votes(_next);
        vm.expectEmit(address(council));
        emit ICouncil.CommitteeAnnounced(id, _next, proofs);
        vm.prank(relayer); // anyone
        council.announce(_next, proofs, votes);
        _assertStarted(id);
    }

    function _assertStarted(bytes32 id) private view {
        (
            uint64 epoch,
            uint256 at_,
            uint256 endorsedAt,
            uint256 from,
            uint256 until,
            uint256 matured,
            bool recovers
        ) = council.clockOf(id);
        assertEq(epoch, 1);
        assertEq(at_, vm.getBlockTimestamp());
        assertEq(from, at_ + LONG);
        assertEq(until, from + LAPSE);
        assertEq(endorsedAt + matured, 0);
        assertFalse(recovers);
    }

    function _failsByDeadline() private {
        uint256 latest = vm.getBlockTimestamp() + 30 days;
        _fails(_next, abi.encodeWithSelector(ICouncil.InvalidDeadline.selector, _next.deadline, latest));
    }

    function _fails(Announcement memory announcement, bytes memory revertData) private {
        bytes memory proofs = proofsOf(1);
        bytes memory votes = _votes(announcement);
        vm.expectRevert(revertData);
        council.announce(announcement, proofs, votes);
    }

    function _votes(Announcement memory announcement) private view returns (bytes memory) {
        return votesIn(0, council.announcementDigest(announcement));
    }

    /// @dev Member by member, because the compiler copies no array of structs from memory at once.
    function _set(Announcement memory announcement) private {
        (_next.epoch, _next.guardian, _next.recovery) =
        (announcement.epoch, announcement.guardian, announcement.recovery);
        (_next.compromisedSince, _next.checkpoint, _next.deadline) =
        (announcement.compromisedSince, announcement.checkpoint, announcement.deadline);
        for (uint256 i = 0; i < announcement.authorities.length; ++i) {
            _next.authorities.push(announcement.authorities[i]);
        }
    }

    function _word(bytes memory data, uint256 offset) private pure returns (bytes32 word) {
        assembly ("memory-safe") {
            word := mload(add(add(data, 0x20), offset))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise, ICouncil, Outcome} from "../../contracts/interfaces/ICouncil.sol";
import {Authority} from "../../contracts/interfaces/IFastPay.sol";
import {Proof} from "./Proof.sol";

/// @title Nothing is announced or decided without a quorum, and only the guardian endorses
contract CouncilProof is Proof {
    function check_AnAnnouncementNeedsAQuorum(
        address guardian,
        address recovery,
        uint64 since,
        bytes32 checkpoint,
        uint64 deadline
    ) public {
        Authority[] memory next = new Authority[](MEMBERS);
        for (uint256 i = 0; i < MEMBERS; ++i) {
            next[i] = Authority({votingKey: bytes32(i + 1), redemptionKey: address(uint160(0xb0 + i))});
        }
        Announcement memory announcement =
            Announcement(1, next, guardian, recovery, since, checkpoint, deadline);
        bytes memory proofs = svm.createBytes(MEMBERS * 129, "proofs");
        bytes memory votes = _someVotes();
        bytes32 digest = council.announcementDigest(announcement);
        (uint64 before,,,,,,) = council.clockOf(digest);
        vm.prank(RELAYER);
        (bool success,) =
            address(council).call(abi.encodeCall(ICouncil.announce, (announcement, proofs, votes)));
        (uint64 afterwards,,,,,,) = council.clockOf(digest);
        if (success) {
            _assertQuorum(votes, digest);
            assert(before == 0 && afterwards == 1);
        } else {
            assert(afterwards == before);
        }
    }

    function check_ARaiseOfACapNeedsAQuorum(uint64 epoch, address asset, uint128 cap, uint64 deadline)
        public
    {
        CapRaise memory raise = CapRaise(epoch, asset, cap, deadline);
        bytes memory votes = _someVotes();
        bytes32 digest = council.capRaiseDigest(raise);
        vm.prank(RELAYER);
        (bool success,) = address(council).call(abi.encodeCall(ICouncil.announceCap, (raise, votes)));
        if (success) _assertQuorum(votes, digest);
    }

    /// @dev And it never lengthens a delay.
    function check_OnlyTheGuardianEndorses(address caller, bytes32 id) public {
        (,,, uint256 before,,,) = council.clockOf(id);
        vm.prank(caller);
        (bool success,) = address(council).call(abi.encodeCall(ICouncil.endorse, (id)));
        (,,, uint256 afterwards,,,) = council.clockOf(id);
        if (success) assert(caller == fastPay.guardian() && afterwards <= before);
        else assert(afterwards == before);
    }

    /// @dev And a number that has an outcome keeps it.
    function check_UpholdingNeedsAQuorum(bytes32 account, uint64 sequence, bytes32 digest) public {
        vm.assume(!fastPay.compromised(0)); // the current epoch, which is never said to be
        bytes memory votes = _someVotes();
        (Outcome before, uint256 voidableFrom,) = council.unlockOf(account, sequence);
        bool spent = fastPay.isRedeemed(account, sequence);
        vm.prank(RELAYER);
        (bool success,) =
            address(council).call(abi.encodeCall(ICouncil.upholdSequence, (account, sequence, digest, votes)));
        (Outcome afterwards,,) = council.unlockOf(account, sequence);
        assert(fastPay.isRedeemed(account, sequence) == spent);
        if (success) {
            _assertQuorum(votes, council.certificateVoteDigest(0, account, sequence, digest));
            assert(before == Outcome.None && afterwards == Outcome.Upheld && voidableFrom != 0);
        } else {
            assert(afterwards == before);
        }
    }

    /// @dev And the window, and a number that is not spent.
    function check_VoidingNeedsAQuorum(bytes32 account, uint64 sequence) public {
        vm.assume(!fastPay.compromised(0));
        bytes memory votes = _someVotes();
        (Outcome before, uint256 voidableFrom,) = council.unlockOf(account, sequence);
        bool spent = fastPay.isRedeemed(account, sequence);
        vm.prank(RELAYER);
        (bool success,) =
            address(council).call(abi.encodeCall(ICouncil.voidSequence, (account, sequence, false, votes)));
        (Outcome afterwards,,) = council.unlockOf(account, sequence);
        if (success) {
            _assertQuorum(votes, council.voidVoteDigest(0, account, sequence, false));
            assert(before == Outcome.None && afterwards == Outcome.Voided && voidableFrom != 0);
            assert(block.timestamp >= voidableFrom && !spent && fastPay.isRedeemed(account, sequence));
        } else {
            assert(afterwards == before && fastPay.isRedeemed(account, sequence) == spent);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {AssetCap, Authority} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

/// @title What the tests of the council share: committees that are announced, endorsed, matured and installed
/// @notice ETH has a deposit cap of 1,000 ether.
abstract contract CouncilTest is TreeTest {
    uint256 internal constant SHORT = 1 days;
    uint256 internal constant LONG = 14 days;
    uint256 internal constant LAPSE = 14 days;
    uint256 internal constant SILENCE = 120 days;
    uint256 internal constant NOTICE = 30 days;

    /// @dev 1,000 ether as a small float.
    uint128 internal constant ETHER_CAP_SET = 998_430_022_989_529_481_216;

    ICouncil internal council;

    function setUp() public virtual override {
        super.setUp();
        AssetCap[] memory caps = new AssetCap[](1);
        caps[0] = AssetCap({asset: ETHER, cap: 1000 ether});
        fastPay = deploy(4, tight(), caps);
        council = fastPay.council();
        fundEther(HELD);
        vm.roll(1000);
    }

    /// @dev The next committee, as all tests announce it.
    function announcementOfNext() internal view returns (Announcement memory) {
        uint64 next = fastPay.epoch() + 1;
        return Announcement({
            epoch: next,
            authorities: committeeOf(next),
            guardian: guardian,
            recovery: recovery,
            compromisedSince: next,
            checkpoint: 0,
            deadline: uint64(vm.getBlockTimestamp() + 1 hours)
        });
    }

    /// @dev Of each member of the committee of an epoch; the Ed25519 half is noise, which the contract does not check.
    function proofsOf(uint64 epoch) internal view returns (bytes memory proofs) {
        Authority[] memory members = committeeOf(epoch);
        for (uint256 i = 0; i < members.length; ++i) {
            (uint8 v, bytes32 r, bytes32 s) =
                vm.sign(memberKey(100 * epoch + i), council.possessionDigest(members[i]));
            proofs = bytes.concat(proofs, abi.encodePacked(r, s, v, keccak256("Ed"), keccak256("25519")));
        }
    }

    /// @dev Announces by a quorum of the current epoch.
    function announce(Announcement memory announcement) internal returns (bytes32 id) {
        id = council.announcementDigest(announcement);
        council.announce(announcement, proofsOf(announcement.epoch), votesIn(fastPay.epoch(), id));
    }

    function announceRecovery(Announcement memory announcement) internal returns (bytes32 id) {
        bytes memory proofs = proofsOf(announcement.epoch);
        vm.prank(recovery);
        council.announceRecovery(announcement, proofs);
        return council.announcementDigest(announcement);
    }

    /// @dev What a recovery announces, after the silence.
    function recoveryOfNext() internal returns (Announcement memory announcement) {
        wait(SILENCE);
        announcement = announcementOfNext();
        announcement.compromisedSince = 0;
    }

    function endorse(bytes32 id) internal {
        vm.prank(fastPay.guardian());
        council.endorse(id);
    }

    /// @dev Waits until it can be installed, and records that.
    function mature(bytes32 id) internal returns (uint256 blockNumber) {
        (,,, uint256 installableAt,,,) = council.clockOf(id);
        if (vm.getBlockTimestamp() < installableAt) vm.warp(installableAt);
        council.mature(id);
        blockNumber = vm.getBlockNumber();
        vm.roll(blockNumber + 1);
    }

    function acceptances(Announcement memory announcement, uint256 blockNumber)
        internal
        view
        returns (bytes memory)
    {
        bytes32 id = council.announcementDigest(announcement);
        bytes32 digest = council.acceptanceDigest(announcement.epoch, id, blockhash(blockNumber));
        return votesIn(announcement.epoch, digest);
    }

    function install(Announcement memory announcement, uint256 blockNumber) internal {
        council.install(announcement, blockNumber, acceptances(announcement, blockNumber));
    }

    /// @dev All of it, with the guardian's endorsement.
    function installEndorsed(Announcement memory announcement) internal {
        bytes32 id = announce(announcement);
        endorse(id);
        install(announcement, mature(id));
    }

    function heartbeat() internal {
        uint256 blockNumber = vm.getBlockNumber() - 1;
        bytes32 digest = council.heartbeatDigest(fastPay.epoch(), blockhash(blockNumber));
        council.heartbeat(blockNumber, votesIn(fastPay.epoch(), digest));
    }

    function raiseTo(uint128 cap) internal view returns (CapRaise memory) {
        return CapRaise({
            epoch: fastPay.epoch(), asset: ETHER, cap: cap, deadline: uint64(vm.getBlockTimestamp() + 1 hours)
        });
    }

    function announceCap(CapRaise memory raise) internal returns (bytes32 id) {
        id = council.capRaiseDigest(raise);
        council.announceCap(raise, votesIn(fastPay.epoch(), id));
    }
}

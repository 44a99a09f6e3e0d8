// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise, ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {Authority, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Blocks} from "../contracts/libraries/Blocks.sol";
import {ChainFile} from "./ChainFile.sol";
import {VoteFiles} from "./VoteFiles.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title What operators bring to the council
/// @notice
/// ```
/// CONTRACT=0x… ANNOUNCEMENT=next.json PROOFS=a.json,… VOTES=a.json,… forge script script/Council.s.sol --sig "announce()" …
/// CONTRACT=0x… ANNOUNCEMENT=next.json PROOFS=a.json,…                forge script … --sig "announceRecovery()" …
/// CONTRACT=0x… ANNOUNCEMENT=next.json (or RAISE=raise.json)          forge script … --sig "endorse()" …
/// CONTRACT=0x… ANNOUNCEMENT=next.json                                forge script … --sig "mature()" …
/// CONTRACT=0x… ANNOUNCEMENT=next.json BLOCK=… VOTES=a.json,…         forge script … --sig "install()" …
/// CONTRACT=0x… RAISE=raise.json VOTES=a.json,…                       forge script … --sig "announceCap()" …
/// CONTRACT=0x… RAISE=raise.json                                      forge script … --sig "raiseCap()" …
/// CONTRACT=0x… BLOCK=… VOTES=a.json,…                                forge script … --sig "heartbeat()" …
/// CONTRACT=0x… CHECKPOINT=0x… VOTES=a.json,…                         forge script … --sig "adopt()" …
/// ```
/// with `--rpc-url $RPC_URL --private-key $KEY --broadcast`. `CONTRACT` is FastPay's address. Anyone may send each of them,
/// but `endorse` (the guardian) and `announceRecovery` (the recovery address).
///
/// `ANNOUNCEMENT`:
/// ```
/// {
///   "chainId": 1,
///   "authorities": [{ "votingKey": "0x…", "redemptionKey": "0x…" }, …],
///   "guardian": "0x…", "recovery": "0x…",
///   "epoch": 1, "compromisedSince": 1, "checkpoint": "0x…32 bytes", "deadline": 1790000000
/// }
/// ```
/// Authorities may come in any order. All of it is required, because it is what the authorities sign.
///
/// `RAISE`: `{"epoch": 0, "asset": "0x…", "cap": 1000000000, "deadline": 1790000000}`.
///
/// `PROOFS`, one file for each member of the announced committee, in any order:
/// ```
/// { "votingKey": "0x…", "redemptionKey": "0x…", "redemptionSignature": "0x…65 bytes", "votingSignature": "0x…64 bytes" }
/// ```
/// `VOTES`: see `VoteFiles`. The epoch in them is that of the statement: for `announce` and `install` the announced one,
/// for all others the current one. `BLOCK` is the number of the block whose hash the votes name: one of the last 8,191, or of the last
/// 256 where the chain keeps no history of them (EIP-2935).
contract Council is Script {
    /// @notice Announces the next committee.
    function announce() external {
        IFastPay fastPay = _fastPay();
        Announcement memory announcement = announcementOf(vm.readFile(vm.envString("ANNOUNCEMENT")));
        bytes memory proofs =
            packProofs(fastPay, announcement.authorities, VoteFiles.fromEnvironment("PROOFS"));
        bytes32 id = fastPay.council().announcementDigest(announcement);
        bytes memory votes = _currentVotes(fastPay, id, announcement.epoch);
        vm.startBroadcast();
        fastPay.council().announce(announcement, proofs, votes);
        vm.stopBroadcast();
        _showClock(fastPay.council(), id);
    }

    /// @notice Announces a committee in place of one that is silent.
    function announceRecovery() external {
        IFastPay fastPay = _fastPay();
        Announcement memory announcement = announcementOf(vm.readFile(vm.envString("ANNOUNCEMENT")));
        bytes memory proofs =
            packProofs(fastPay, announcement.authorities, VoteFiles.fromEnvironment("PROOFS"));
        vm.startBroadcast();
        fastPay.council().announceRecovery(announcement, proofs);
        vm.stopBroadcast();
        _showClock(fastPay.council(), fastPay.council().announcementDigest(announcement));
    }

    /// @notice Endorses an announcement, or a raise of a cap.
    function endorse() external {
        ICouncil council = _fastPay().council();
        bytes32 id = vm.envExists("RAISE") ? council.capRaiseDigest(_raise()) : _announced(council);
        vm.startBroadcast();
        council.endorse(id);
        vm.stopBroadcast();
        _showClock(council, id);
    }

    /// @notice Records that a committee can be installed.
    function mature() external {
        ICouncil council = _fastPay().council();
        bytes32 id = _announced(council);
        vm.startBroadcast();
        council.mature(id);
        vm.stopBroadcast();
        _showClock(council, id);
    }

    /// @notice Installs a committee, also one of a recovery.
    function install() external {
        IFastPay fastPay = _fastPay();
        Announcement memory announcement = announcementOf(vm.readFile(vm.envString("ANNOUNCEMENT")));
        uint256 blockNumber = vm.envUint("BLOCK");
        bytes32 id = fastPay.council().announcementDigest(announcement);
        bytes32 digest =
            fastPay.council().acceptanceDigest(announcement.epoch, id, Blocks.hashOf(blockNumber));
        bytes memory votes = VoteFiles.pack(
            announcement.authorities, digest, announcement.epoch, VoteFiles.fromEnvironment("VOTES")
        );
        vm.startBroadcast();
        fastPay.council().install(announcement, blockNumber, votes);
        vm.stopBroadcast();
        console.log("epoch", fastPay.epoch(), "has begun; votes of the one before count until");
        console.log(fastPay.epochValidUntil(fastPay.epoch() - 1));
    }

    /// @notice Announces a higher deposit cap.
    function announceCap() external {
        IFastPay fastPay = _fastPay();
        CapRaise memory raise = _raise();
        bytes32 id = fastPay.council().capRaiseDigest(raise);
        bytes memory votes = _currentVotes(fastPay, id, raise.epoch);
        vm.startBroadcast();
        fastPay.council().announceCap(raise, votes);
        vm.stopBroadcast();
        _showClock(fastPay.council(), id);
    }

    /// @notice Raises a deposit cap.
    function raiseCap() external {
        IFastPay fastPay = _fastPay();
        CapRaise memory raise = _raise();
        vm.startBroadcast();
        fastPay.council().raiseCap(raise);
        vm.stopBroadcast();
        console.log("the deposit cap is", fastPay.depositCap(raise.asset));
    }

    /// @notice Shows that the committee is there.
    function heartbeat() external {
        IFastPay fastPay = _fastPay();
        uint256 blockNumber = vm.envUint("BLOCK");
        bytes32 digest = fastPay.council().heartbeatDigest(fastPay.epoch(), Blocks.hashOf(blockNumber));
        bytes memory votes = _currentVotes(fastPay, digest, fastPay.epoch());
        vm.startBroadcast();
        fastPay.council().heartbeat(blockNumber, votes);
        vm.stopBroadcast();
    }

    /// @notice Adopts a rebuilt checkpoint.
    function adopt() external {
        IFastPay fastPay = _fastPay();
        bytes32 checkpoint = vm.envBytes32("CHECKPOINT");
        bytes32 digest = fastPay.council().adoptionDigest(fastPay.epoch(), checkpoint);
        bytes memory votes = _currentVotes(fastPay, digest, fastPay.epoch());
        vm.startBroadcast();
        fastPay.council().adopt(checkpoint, votes);
        vm.stopBroadcast();
    }

    /// @notice The announcement in a file. Reverts if it is for another chain, or if a key is not safe to announce.
    function announcementOf(string memory json) public view returns (Announcement memory announcement) {
        ChainFile.requireThisChain(json);
        announcement = Announcement({
            epoch: _uint64(json, ".epoch"),
            authorities: ChainFile.authorities(json),
            guardian: vm.parseJsonAddress(json, ".guardian"),
            recovery: vm.parseJsonAddress(json, ".recovery"),
            compromisedSince: _uint64(json, ".compromisedSince"),
            checkpoint: vm.parseJsonBytes32(json, ".checkpoint"),
            deadline: _uint64(json, ".deadline")
        });
        ChainFile.requireSafeKeys(announcement.authorities, announcement.guardian, announcement.recovery);
    }

    /// @notice The raise in a file.
    function raiseOf(string memory json) public pure returns (CapRaise memory) {
        uint256 cap = vm.parseJsonUint(json, ".cap");
        require(cap <= type(uint128).max, "the cap is too large");
        return CapRaise({
            epoch: _uint64(json, ".epoch"),
            asset: vm.parseJsonAddress(json, ".asset"),
            // forge-lint: disable-next-line(unsafe-typecast) -- checked above
            cap: uint128(cap),
            deadline: _uint64(json, ".deadline")
        });
    }

    /// @notice The proofs of all members. Reverts, naming the member, if the contract would refuse one. It cannot check the
    /// Ed25519 half, which authorities check before they vote.
    function packProofs(IFastPay fastPay, Authority[] memory members, string[] memory files)
        public
        view
        returns (bytes memory proofs)
    {
        for (uint256 i = 0; i < members.length; ++i) {
            bytes32 digest = fastPay.council().possessionDigest(members[i]);
            proofs = bytes.concat(proofs, _proof(members[i], digest, files));
        }
    }

    function _proof(Authority memory member, bytes32 digest, string[] memory files)
        private
        pure
        returns (bytes memory)
    {
        string memory who = vm.toString(member.votingKey);
        for (uint256 i = 0; i < files.length; ++i) {
            if (vm.parseJsonBytes32(files[i], ".votingKey") != member.votingKey) continue;
            if (vm.parseJsonAddress(files[i], ".redemptionKey") != member.redemptionKey) continue;
            bytes memory redemptionSignature = vm.parseJsonBytes(files[i], ".redemptionSignature");
            bytes memory votingSignature = vm.parseJsonBytes(files[i], ".votingSignature");
            bool good = VoteFiles.isSignedBy(member.redemptionKey, digest, redemptionSignature);
            require(good && votingSignature.length == 64, string.concat("the proof is bad, of ", who));
            return bytes.concat(redemptionSignature, votingSignature);
        }
        revert(string.concat("there is no proof of ", who));
    }

    function _fastPay() private view returns (IFastPay) {
        return IFastPay(payable(vm.envAddress("CONTRACT")));
    }

    function _announced(ICouncil council) private view returns (bytes32) {
        return council.announcementDigest(announcementOf(vm.readFile(vm.envString("ANNOUNCEMENT"))));
    }

    function _raise() private view returns (CapRaise memory) {
        return raiseOf(vm.readFile(vm.envString("RAISE")));
    }

    function _currentVotes(IFastPay fastPay, bytes32 digest, uint256 epoch)
        private
        view
        returns (bytes memory)
    {
        Authority[] memory members = fastPay.committee(fastPay.epoch());
        return VoteFiles.pack(members, digest, epoch, VoteFiles.fromEnvironment("VOTES"));
    }

    function _showClock(ICouncil council, bytes32 id) private view {
        (,,, uint256 installableAt, uint256 lapsesAt, uint256 maturedBlock,) = council.clockOf(id);
        console.log("id", vm.toString(id));
        console.log("can be installed from", installableAt, "until", lapsesAt);
        if (maturedBlock != 0) console.log("accept with block", maturedBlock, "or a later one");
    }

    function _uint64(string memory json, string memory key) private pure returns (uint64) {
        uint256 value = vm.parseJsonUint(json, key);
        require(value <= type(uint64).max, string.concat(key, " is too large"));
        // forge-lint: disable-next-line(unsafe-typecast) -- checked above
        return uint64(value);
    }
}

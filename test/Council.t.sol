// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {Authority} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title Committees of the largest size, and all functions of the council
contract CouncilLimitsTest is FastPayTest {
    string private constant ARTIFACT = "out/Council.sol/Council.json";

    /// @dev Each step fits into one transaction, which may take 2^24.
    function test_TheLargestCommitteeIsAnnouncedAndInstalled() public {
        fastPay = deploy(255);
        ICouncil council = fastPay.council();
        vm.roll(1000);
        Announcement memory next = Announcement({
            epoch: 1,
            authorities: authoritiesFrom(300, 255),
            guardian: guardian,
            recovery: recovery,
            compromisedSince: 1,
            checkpoint: 0,
            deadline: uint64(block.timestamp)
        });
        bytes32 id = council.announcementDigest(next);
        bytes memory proofs = _proofs(council, next.authorities);
        bytes memory votes = votesOf(0, 170, id);
        council.announce(next, proofs, votes);
        assertLt(vm.lastCallGas().gasTotalUsed + 16 * (proofs.length + votes.length), 14_000_000);
        vm.prank(guardian);
        council.endorse(id);
        skip(1 days);
        council.mature(id);
        vm.roll(1001);
        votes = _votesFrom(300, council.acceptanceDigest(1, id, blockhash(1000)));
        council.install(next, 1000, votes);
        assertLt(vm.lastCallGas().gasTotalUsed + 16 * votes.length, 14_000_000);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(next.authorities));
        assertEq(fastPay.quorum(1), 170);
    }

    /// @dev None but `requestUnlock` takes value, and none is for an owner: `endorse` and `announceRecovery` ask for their
    /// callers.
    function test_TheCouncilHasTheseFunctionsAndNoOthers() public view {
        string[32] memory expected = [
            "acceptanceDigest(uint64,bytes32,bytes32)",
            "adopt(bytes32,bytes)",
            "adopted(uint64)",
            "adoptionDigest(uint64,bytes32)",
            "announce((uint64,(bytes32,address)[],address,address,uint64,bytes32,uint64),bytes,bytes)",
            "announceCap((uint64,address,uint128,uint64),bytes)",
            "announceRecovery((uint64,(bytes32,address)[],address,address,uint64,bytes32,uint64),bytes)",
            "announcementDigest((uint64,(bytes32,address)[],address,address,uint64,bytes32,uint64))",
            "capRaiseDigest((uint64,address,uint128,uint64))",
            "certificateVoteDigest(uint64,bytes32,uint64,bytes32)",
            "clockOf(bytes32)",
            "endorse(bytes32)",
            "fastPay()",
            "heartbeat(uint256,bytes)",
            "heartbeatDigest(uint64,bytes32)",
            "install((uint64,(bytes32,address)[],address,address,uint64,bytes32,uint64),uint256,bytes)",
            "installedAt()",
            "lastHeartbeat()",
            "mature(bytes32)",
            "possessionDigest((bytes32,address))",
            "raiseCap((uint64,address,uint128,uint64))",
            "recovery()",
            "requestUnlock(bytes32,uint64,bytes)",
            "returnBond(bytes32,uint64)",
            "unanimousFrom()",
            "unlockBond()",
            "unlockOf(bytes32,uint64)",
            "unlockRequestDigest(bytes32,uint64)",
            "upholdMany((bytes32,uint64,bytes32,bytes)[])",
            "upholdSequence(bytes32,uint64,bytes32,bytes)",
            "voidSequence(bytes32,uint64,bool,bytes)",
            "voidVoteDigest(uint64,bytes32,uint64,bool)"
        ];
        string[] memory found = vm.parseJsonKeys(vm.readFile(ARTIFACT), ".methodIdentifiers");
        assertEq(found.length, 32);
        for (uint256 i = 0; i < found.length; ++i) {
            bool listed = false;
            for (uint256 j = 0; j < 32; ++j) {
                listed = listed || keccak256(bytes(found[i])) == keccak256(bytes(expected[j]));
            }
            assertTrue(listed, found[i]);
        }
    }

    function _proofs(ICouncil council, Authority[] memory members)
        private
        view
        returns (bytes memory proofs)
    {
        proofs = new bytes(129 * members.length);
        for (uint256 i = 0; i < members.length; ++i) {
            (uint8 v, bytes32 r, bytes32 s) =
                vm.sign(memberKey(300 + i), council.possessionDigest(members[i]));
            assembly ("memory-safe") {
                let place := add(add(proofs, 0x20), mul(i, 129))
                mstore(place, r)
                mstore(add(place, 0x20), s)
                mstore8(add(place, 0x40), v)
            }
        }
    }

    function _votesFrom(uint256 first, bytes32 digest) private pure returns (bytes memory votes) {
        for (uint256 i = 0; i < 170; ++i) {
            // forge-lint: disable-next-line(unsafe-typecast) -- below 255
            votes = bytes.concat(votes, vote(uint8(i), memberKey(first + i), digest));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise, Outcome} from "../../contracts/interfaces/ICouncil.sol";
import {Authority} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract CouncilViewsTreeTest is CouncilTest {
    string private constant AUTHORITY = "Authority(bytes32 votingKey,address redemptionKey)";

    function test_ClockOf_GivenNothingWasAnnouncedUnderTheId() external view {
        (uint64 epoch, uint256 a, uint256 b, uint256 c, uint256 d, uint256 e, bool isRecovery) =
            council.clockOf(keccak256("an id"));
        assertEq(epoch + a + b + c + d + e, 0);
        assertFalse(isRecovery);
        assertEq(address(council.fastPay()), address(fastPay));
        assertEq(council.adopted(0), 0);
    }

    function test_UnlockOf_GivenNobodyHasAskedAboutTheNumber() external view {
        (Outcome outcome, uint256 voidableFrom, address payer) = council.unlockOf(ACCOUNT, 7);
        assertTrue(outcome == Outcome.None);
        assertEq(voidableFrom, 0);
        assertEq(payer, address(0));
        assertEq(council.unlockBond(), 0.005 ether);
        assertEq(council.unanimousFrom(), 0);
    }

    function test_Digests_WhenTheChainDiffers() external {
        bytes32[9] memory here = _all();
        vm.chainId(block.chainid + 1);
        bytes32[9] memory there = _all();
        for (uint256 i = 0; i < 9; ++i) {
            assertNotEq(here[i], there[i]);
        }
    }

    function test_Digests_WhenAFieldDiffers() external view {
        Announcement memory one = announcementOfNext();
        bytes memory encoded = abi.encode(one);
        // The fields of the announcement but the list: each in its last byte.
        uint256[6] memory words = [uint256(1), 3, 4, 5, 6, 7];
        bytes32 digest = council.announcementDigest(one);
        for (uint256 i = 0; i < words.length; ++i) {
            bytes memory altered = bytes.concat(encoded);
            altered[words[i] * 32 + 31] ^= 0x01;
            assertNotEq(council.announcementDigest(abi.decode(altered, (Announcement))), digest);
        }
        one.authorities[3].redemptionKey = alice;
        assertNotEq(council.announcementDigest(one), digest);
        CapRaise memory raise = raiseTo(1);
        raise.asset = alice;
        assertNotEq(council.capRaiseDigest(raise), council.capRaiseDigest(raiseTo(1)));
        assertNotEq(council.voidVoteDigest(1, ACCOUNT, 7, false), council.voidVoteDigest(1, ACCOUNT, 7, true));
    }

    function test_Digests_WhenTheyAreComputedByTheRulesOfEIP712() external view {
        Announcement memory one = announcementOfNext();
        bytes32[] memory hashes = new bytes32[](4);
        for (uint256 i = 0; i < 4; ++i) {
            hashes[i] = keccak256(abi.encode(keccak256(bytes(AUTHORITY)), one.authorities[i]));
        }
        string memory announcement = string.concat(
            "CommitteeAnnouncement(uint64 epoch,Authority[] authorities,address guardian,address recovery,",
            "uint64 compromisedSince,bytes32 checkpoint,uint64 deadline)",
            AUTHORITY
        );
        bytes memory fields = abi.encode(
            keccak256(bytes(announcement)),
            one.epoch,
            keccak256(abi.encodePacked(hashes)),
            one.guardian,
            one.recovery,
            one.compromisedSince,
            one.checkpoint,
            one.deadline
        );
        bytes32[9] memory all = _all();
        assertEq(all[0], digestOf(keccak256(fields)));
        assertEq(
            all[1],
            _two("KeyPossession(bytes32 votingKey,address redemptionKey)", abi.encode(one.authorities[0]))
        );
        assertEq(
            all[2],
            _two(
                "CommitteeAcceptance(uint64 epoch,bytes32 announcement,bytes32 blockHash)",
                abi.encode(uint64(1), keccak256("id"), keccak256("block"))
            )
        );
        assertEq(
            all[3],
            _two("CapRaise(uint64 epoch,address asset,uint128 cap,uint64 deadline)", abi.encode(raiseTo(1)))
        );
        assertEq(
            all[4],
            _two("Heartbeat(uint64 epoch,bytes32 blockHash)", abi.encode(uint64(1), keccak256("block")))
        );
        assertEq(
            all[6], _two("UnlockRequest(bytes32 account,uint64 sequence)", abi.encode(ACCOUNT, uint64(7)))
        );
        assertEq(
            all[7],
            _two(
                "CertificateVote(uint64 epoch,bytes32 account,uint64 sequence,bytes32 digest)",
                abi.encode(uint64(1), ACCOUNT, uint64(7), keccak256("order"))
            )
        );
        assertEq(
            all[8],
            _two(
                "VoidVote(uint64 epoch,bytes32 account,uint64 sequence,bool unanimous)",
                abi.encode(uint64(1), ACCOUNT, uint64(7), true)
            )
        );
        assertEq(
            all[5],
            _two("CheckpointAdoption(uint64 epoch,bytes32 checkpoint)", abi.encode(uint64(1), keccak256("c")))
        );
    }

    function _all() private view returns (bytes32[9] memory) {
        Announcement memory one = announcementOfNext();
        return [
            council.announcementDigest(one),
            council.possessionDigest(one.authorities[0]),
            council.acceptanceDigest(1, keccak256("id"), keccak256("block")),
            council.capRaiseDigest(raiseTo(1)),
            council.heartbeatDigest(1, keccak256("block")),
            council.adoptionDigest(1, keccak256("c")),
            council.unlockRequestDigest(ACCOUNT, 7),
            council.certificateVoteDigest(1, ACCOUNT, 7, keccak256("order")),
            council.voidVoteDigest(1, ACCOUNT, 7, true)
        ];
    }

    function _two(string memory typeName, bytes memory fields) private view returns (bytes32) {
        return digestOf(keccak256(bytes.concat(keccak256(bytes(typeName)), fields)));
    }
}

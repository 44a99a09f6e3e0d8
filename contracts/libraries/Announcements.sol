// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise} from "../interfaces/ICouncil.sol";
import {Authority} from "../interfaces/IFastPay.sol";

/// @title The EIP-712 struct hashes of statements about committees
library Announcements {
    // The compiler hashes only literals, so the type that both strings contain is written twice.

    bytes32 private constant AUTHORITY_TYPE_HASH =
        keccak256("Authority(bytes32 votingKey,address redemptionKey)");

    bytes32 private constant ANNOUNCEMENT_TYPE_HASH = keccak256(
        "CommitteeAnnouncement(uint64 epoch,Authority[] authorities,address guardian,address recovery,"
        "uint64 compromisedSince,bytes32 checkpoint,uint64 deadline)"
        "Authority(bytes32 votingKey,address redemptionKey)"
    );

    bytes32 private constant POSSESSION_TYPE_HASH =
        keccak256("KeyPossession(bytes32 votingKey,address redemptionKey)");

    bytes32 private constant ACCEPTANCE_TYPE_HASH =
        keccak256("CommitteeAcceptance(uint64 epoch,bytes32 announcement,bytes32 blockHash)");

    bytes32 private constant CAP_RAISE_TYPE_HASH =
        keccak256("CapRaise(uint64 epoch,address asset,uint128 cap,uint64 deadline)");

    bytes32 private constant HEARTBEAT_TYPE_HASH = keccak256("Heartbeat(uint64 epoch,bytes32 blockHash)");

    bytes32 private constant ADOPTION_TYPE_HASH =
        keccak256("CheckpointAdoption(uint64 epoch,bytes32 checkpoint)");

    /// @notice The hash of an announcement, which members of the current committee sign.
    function hash(Announcement calldata announcement) internal pure returns (bytes32) {
        Authority[] calldata authorities = announcement.authorities;
        bytes32[] memory hashes = new bytes32[](authorities.length);
        for (uint256 i = 0; i < hashes.length; ++i) {
            hashes[i] = keccak256(abi.encode(AUTHORITY_TYPE_HASH, authorities[i]));
        }
        return keccak256(
            abi.encode(
                ANNOUNCEMENT_TYPE_HASH,
                announcement.epoch,
                keccak256(abi.encodePacked(hashes)),
                announcement.guardian,
                announcement.recovery,
                announcement.compromisedSince,
                announcement.checkpoint,
                announcement.deadline
            )
        );
    }

    /// @notice The hash of a proof of possession, which both keys of a member sign.
    function possession(Authority calldata authority) internal pure returns (bytes32) {
        return keccak256(abi.encode(POSSESSION_TYPE_HASH, authority));
    }

    /// @notice The hash of an acceptance, which members of the next committee sign.
    function acceptance(uint64 epoch, bytes32 announcement, bytes32 blockHash)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(ACCEPTANCE_TYPE_HASH, epoch, announcement, blockHash));
    }

    /// @notice The hash of a higher deposit cap, which members of the current committee sign.
    function hash(CapRaise calldata raise) internal pure returns (bytes32) {
        return keccak256(abi.encode(CAP_RAISE_TYPE_HASH, raise));
    }

    /// @notice The hash of a heartbeat, which members of the current committee sign.
    function heartbeat(uint64 epoch, bytes32 blockHash) internal pure returns (bytes32) {
        return keccak256(abi.encode(HEARTBEAT_TYPE_HASH, epoch, blockHash));
    }

    /// @notice The hash of the adoption of a checkpoint, which members of the current committee sign.
    function adoption(uint64 epoch, bytes32 checkpoint) internal pure returns (bytes32) {
        return keccak256(abi.encode(ADOPTION_TYPE_HASH, epoch, checkpoint));
    }
}

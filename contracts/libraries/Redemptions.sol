// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Redemption} from "../interfaces/IFastPay.sol";

/// @title What is signed about redemptions, and where it is noted that one is done
library Redemptions {
    // Hashed when compiled, which only literals are; hence the type that both need stands here twice.

    bytes32 internal constant REDEMPTION_TYPE_HASH = keccak256(
        "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,uint64 sequence,"
        "bytes32 memo)"
    );

    bytes32 internal constant REDEMPTION_VOTE_TYPE_HASH = keccak256(
        "RedemptionVote(uint64 epoch,Redemption redemption)"
        "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,uint64 sequence,"
        "bytes32 memo)"
    );

    bytes32 internal constant REDEMPTION_BATCH_VOTE_TYPE_HASH =
        keccak256("RedemptionBatchVote(uint64 epoch,bytes32 redemptionsHash)");

    /// @notice The EIP-712 struct hash of an order, which its sender signs.
    function hash(Redemption calldata redemption) internal pure returns (bytes32) {
        return keccak256(abi.encode(REDEMPTION_TYPE_HASH, redemption));
    }

    /// @notice The EIP-712 struct hash of a vote for an order, which a committee member signs.
    function voteHash(Redemption calldata redemption, uint64 epoch) internal pure returns (bytes32) {
        return keccak256(abi.encode(REDEMPTION_VOTE_TYPE_HASH, epoch, hash(redemption)));
    }

    /// @notice The EIP-712 struct hash of a vote for orders as a whole, which a committee member signs.
    function batchVoteHash(Redemption[] calldata redemptions, uint64 epoch) internal pure returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](redemptions.length);
        for (uint256 i = 0; i < hashes.length; ++i) {
            hashes[i] = hash(redemptions[i]);
        }
        bytes32 redemptionsHash = keccak256(abi.encodePacked(hashes));
        return keccak256(abi.encode(REDEMPTION_BATCH_VOTE_TYPE_HASH, epoch, redemptionsHash));
    }

    /// @notice Where a sequence number is in an account's bitmap. Any order, exactly once: a high-water mark would
    /// lose what arrives late.
    function place(uint64 sequence) internal pure returns (uint256 word, uint256 bit) {
        return (sequence >> 8, 1 << (sequence & 0xff));
    }
}

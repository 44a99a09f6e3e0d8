// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Redemption} from "../interfaces/IFastPay.sol";

/// @title The EIP-712 statements about redemptions, and the bitmap of spent orders
library Redemptions {
    // The compiler hashes only literals, so the type that both strings contain is written twice.

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

    bytes32 internal constant RELEASE_VOTE_TYPE_HASH = keccak256(
        "ReleaseVote(uint64 epoch,Redemption redemption)"
        "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,uint64 sequence,"
        "bytes32 memo)"
    );

    /// @notice The EIP-712 struct hash of an order, which its sender signs.
    /// @dev A field that does not fit its type is hashed as it is. Nobody has signed that hash, and the contract
    /// reverts when it reads such a field.
    function hash(Redemption calldata redemption) internal pure returns (bytes32 structHash) {
        bytes32 typeHash = REDEMPTION_TYPE_HASH;
        // The seven fields lie in calldata just as EIP-712 hashes them. `abi.encode` would decode and encode them
        // again, for three times the gas. This writes to free memory only.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, typeHash)
            calldatacopy(add(data, 0x20), redemption, 0xe0)
            structHash := keccak256(data, 0x100)
        }
    }

    /// @notice The struct hashes of several orders.
    function hashes(Redemption[] calldata redemptions) internal pure returns (bytes32[] memory structHashes) {
        structHashes = new bytes32[](redemptions.length);
        bytes32 typeHash = REDEMPTION_TYPE_HASH;
        // Like `hash`, for consecutive orders. There are no bounds checks, which a batch would pay for a hundred times:
        // the ABI decoder has checked that the whole array is there.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, typeHash)
            let order := redemptions.offset
            let entry := add(structHashes, 0x20)
            let end := add(entry, shl(5, redemptions.length))
            for {} lt(entry, end) { entry := add(entry, 0x20) } {
                calldatacopy(add(data, 0x20), order, 0xe0)
                mstore(entry, keccak256(data, 0x100))
                order := add(order, 0xe0)
            }
        }
    }

    /// @notice The EIP-712 digest of a vote for an order, which a committee member signs.
    function voteDigest(bytes32 structHash, uint64 epoch, bytes32 domain) internal pure returns (bytes32) {
        return _digest(REDEMPTION_VOTE_TYPE_HASH, epoch, structHash, domain);
    }

    /// @notice The EIP-712 digest of a vote for a batch of orders, which a committee member signs.
    function batchVoteDigest(bytes32[] memory structHashes, uint64 epoch, bytes32 domain)
        internal
        pure
        returns (bytes32)
    {
        bytes32 redemptionsHash;
        // `abi.encodePacked` would copy the array first.
        assembly ("memory-safe") {
            redemptionsHash := keccak256(add(structHashes, 0x20), mul(mload(structHashes), 0x20))
        }
        return _digest(REDEMPTION_BATCH_VOTE_TYPE_HASH, epoch, redemptionsHash, domain);
    }

    /// @notice The EIP-712 digest of a vote to release a queued order, which a committee member signs.
    function releaseVoteDigest(bytes32 structHash, uint64 epoch, bytes32 domain)
        internal
        pure
        returns (bytes32)
    {
        return _digest(RELEASE_VOTE_TYPE_HASH, epoch, structHash, domain);
    }

    /// @notice The place of a sequence number in an account's bitmap. Redemptions may arrive in any order, each once,
    /// so a high-water mark would refuse late ones.
    function place(uint64 sequence) internal pure returns (uint256 word, uint256 bit) {
        return (sequence >> 8, 1 << (sequence & 0xff));
    }

    /// @dev `keccak256(0x1901 ‖ domain ‖ keccak256(typeHash ‖ epoch ‖ content))`.
    function _digest(bytes32 typeHash, uint64 epoch, bytes32 content, bytes32 domain)
        private
        pure
        returns (bytes32 digest)
    {
        // Both hashes use the same free memory, which `abi.encode` would allocate.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, typeHash)
            mstore(add(data, 0x20), epoch)
            mstore(add(data, 0x40), content)
            mstore(add(data, 0x22), keccak256(data, 0x60))
            mstore(data, shl(240, 0x1901))
            mstore(add(data, 0x02), domain)
            digest := keccak256(data, 0x42)
        }
    }
}

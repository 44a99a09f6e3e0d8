// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title The EIP-712 struct hashes of statements about a stuck account
library UnlockStatements {
    bytes32 private constant REQUEST_TYPE_HASH = keccak256("UnlockRequest(bytes32 account,uint64 sequence)");

    bytes32 private constant CERTIFICATE_VOTE_TYPE_HASH =
        keccak256("CertificateVote(uint64 epoch,bytes32 account,uint64 sequence,bytes32 digest)");

    bytes32 private constant VOID_VOTE_TYPE_HASH =
        keccak256("VoidVote(uint64 epoch,bytes32 account,uint64 sequence,bool unanimous)");

    /// @notice The hash of an unlock request, which the account's owner signs.
    function request(bytes32 account, uint64 sequence) internal pure returns (bytes32) {
        return keccak256(abi.encode(REQUEST_TYPE_HASH, account, sequence));
    }

    /// @notice The hash of the statement that an order is certified, which members of the current committee sign.
    function certificateVote(uint64 epoch, bytes32 account, uint64 sequence, bytes32 digest)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(CERTIFICATE_VOTE_TYPE_HASH, epoch, account, sequence, digest));
    }

    /// @notice The hash of the statement that a member has neither executed an order of a number nor seen its
    /// certificate, which members of the current committee sign.
    function voidVote(uint64 epoch, bytes32 account, uint64 sequence, bool unanimous)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(VOID_VOTE_TYPE_HASH, epoch, account, sequence, unanimous));
    }
}

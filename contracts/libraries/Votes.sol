// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../interfaces/IFastPay.sol";
import {Committees} from "./Committees.sol";

/// @title Verification of a quorum's votes
library Votes {
    /// @notice `member (1) ‖ r (32) ‖ s (32) ‖ v (1)`
    uint256 internal constant VOTE_BYTES = 66;

    /// @notice Half of secp256k1's group order. A signature with a larger `s` has a twin with a smaller one. Only the
    /// smaller is accepted, so that a vote has one encoding.
    uint256 internal constant S_MAX = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    /// @notice The `item` in errors if the votes are for the whole call.
    uint256 internal constant WHOLE_CALL = type(uint256).max;

    /// @notice Reverts unless `votes` are signatures of `digest` by a quorum of different members, and no more.
    /// @param keys The members' redemption keys.
    /// @param item The position of the redemption, for errors.
    function check(bytes calldata votes, bytes32 digest, address[] memory keys, uint256 item) internal view {
        check(votes, digest, keys, Committees.quorum(keys.length), item);
    }

    /// @notice The same for `needed` members.
    function check(bytes calldata votes, bytes32 digest, address[] memory keys, uint256 needed, uint256 item)
        internal
        view
    {
        unchecked {
            uint256 length = needed * VOTE_BYTES; // of 255 votes at most
            require(votes.length == length, IFastPay.WrongVotesLength(item, votes.length, length));
        }
        (uint256 counted, uint256 next) = _count(votes, digest, keys);
        if (counted != votes.length) _refuse(votes, counted, next, digest, keys, item);
    }

    /// @dev The number of bytes of valid votes before the first invalid one, and the lowest member allowed next.
    function _count(bytes calldata votes, bytes32 digest, address[] memory keys)
        private
        view
        returns (uint256 counted, uint256 next)
    {
        // Every redemption runs this loop once per vote. In plain Solidity it would cost 350 gas more each time. A vote
        // counts if all of these hold:
        //   next <= member < size, s <= S_MAX, and the signer is the member.
        // The precompile reads digest ‖ v ‖ r ‖ s from free memory and writes the signer to scratch space. It writes
        // nothing if the signature is invalid or `v` is neither 27 nor 28; the zero that stays there is no member's
        // key. `byte` cuts off what is read beyond the end of the last vote. The key of a member that does not exist is
        // some other word of memory; that is harmless, because the check of `member` fails.
        assembly ("memory-safe") {
            let input := mload(0x40)
            mstore(input, digest)
            let vote := votes.offset
            for { let end := add(vote, votes.length) } lt(vote, end) { vote := add(vote, VOTE_BYTES) } {
                calldatacopy(add(input, 0x40), add(vote, 1), 0x40)
                mstore(add(input, 0x20), byte(0, calldataload(add(vote, 65))))
                mstore(0, 0)
                pop(staticcall(gas(), 1, input, 0x80, 0, 0x20))
                let member := byte(0, calldataload(vote))
                let above := add(member, 1)
                if iszero(
                    and(
                        and(gt(above, next), lt(member, mload(keys))),
                        and(
                            iszero(gt(mload(add(input, 0x60)), S_MAX)),
                            eq(mload(0), mload(add(keys, shl(5, above))))
                        )
                    )
                ) { break }
                next := above
            }
            counted := sub(vote, votes.offset)
        }
    }

    /// @dev Reverts with the reason why the vote at `offset` does not count.
    function _refuse(
        bytes calldata votes,
        uint256 offset,
        uint256 next,
        bytes32 digest,
        address[] memory keys,
        uint256 item
    ) private pure {
        uint256 position = offset / VOTE_BYTES;
        bytes calldata vote = votes[offset:offset + VOTE_BYTES];
        (uint8 member, uint8 v) = (uint8(vote[0]), uint8(vote[65]));
        (bytes32 r, bytes32 s) = (bytes32(vote[1:33]), bytes32(vote[33:65]));
        require(member >= next, IFastPay.VotesNotAscending(item, position, member));
        require(member < keys.length, IFastPay.UnknownMember(item, position, member));
        require(uint256(s) <= S_MAX, IFastPay.MalleableVote(item, position, s));
        require(v == 27 || v == 28, IFastPay.InvalidRecoveryId(item, position, v));
        revert IFastPay.WrongSigner(item, position, member, ecrecover(digest, v, r, s));
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../interfaces/IFastPay.sol";
import {Committees} from "./Committees.sol";

/// @title When votes are a quorum
library Votes {
    /// @notice `member (1) ‖ r (32) ‖ s (32) ‖ v (1)`
    uint256 internal constant VOTE_BYTES = 66;

    /// @notice Half of secp256k1's group order. A signature with an `s` above it has a twin below it; one form
    /// only is accepted, so that a vote has one encoding.
    uint256 internal constant S_MAX = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    /// @notice What errors give as the item where votes are for a whole call.
    uint256 internal constant WHOLE_CALL = type(uint256).max;

    /// @notice Reverts unless `votes` are signatures of `digest` by a quorum of different members, and no more.
    /// @param keys The members' redemption keys.
    /// @param item What errors call the redemption that is voted for.
    function check(bytes calldata votes, bytes32 digest, address[] memory keys, uint256 item) internal pure {
        uint256 quorum = Committees.quorum(keys.length);
        uint256 expected = quorum * VOTE_BYTES;
        require(votes.length == expected, IFastPay.WrongVotesLength(item, votes.length, expected));

        uint256 next = 0; // the lowest member who may come next
        for (uint256 i = 0; i < quorum; ++i) {
            (uint8 member, bytes32 r, bytes32 s, uint8 v) = _at(votes, i);
            require(member >= next, IFastPay.VotesNotAscending(item, i, member));
            require(member < keys.length, IFastPay.UnknownMember(item, i, member));
            require(uint256(s) <= S_MAX, IFastPay.MalleableVote(item, i, s));
            require(v == 27 || v == 28, IFastPay.InvalidRecoveryId(item, i, v));
            // Zero if nobody can have signed, and no member's key is zero.
            address recovered = ecrecover(digest, v, r, s);
            require(recovered == keys[member], IFastPay.WrongSigner(item, i, member, recovered));
            next = uint256(member) + 1;
        }
    }

    /// @dev The vote at `position`, which the caller has checked to lie within `votes`.
    function _at(bytes calldata votes, uint256 position)
        private
        pure
        returns (uint8 member, bytes32 r, bytes32 s, uint8 v)
    {
        // Slices would check their bounds four times per vote, which costs a tenth of the signature check itself;
        // the length of `votes` was checked once, and `position` is below it. The last load takes the 32 bytes
        // that end with `v`, so nothing is read beyond the vote.
        assembly ("memory-safe") {
            let vote := add(votes.offset, mul(position, VOTE_BYTES))
            member := byte(0, calldataload(vote))
            r := calldataload(add(vote, 1))
            s := calldataload(add(vote, 33))
            v := and(calldataload(add(vote, 34)), 0xff)
        }
    }
}

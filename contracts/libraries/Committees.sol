// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../interfaces/IFastPay.sol";

/// @notice Data stored as contract code. It is written once, and reading it costs a fraction of reading storage.
contract CommitteeCode {
    constructor(bytes memory data) {
        // Solidity has no statement that deploys chosen bytes; returning them from the constructor is how the
        // EVM does it. They begin with STOP (see `Committees.install`), so they never run as a program.
        assembly ("memory-safe") {
            return(add(data, 0x20), mload(data))
        }
    }
}

/// @title Committees, stored as contract code
/// @dev The code is `STOP ‖ redemption keys ‖ voting keys`, a word per key. Redemption keys come first, so that the
/// verification of votes reads nothing else. FastPay creates one contract for each epoch and no other, so the address
/// follows from the epoch and no slot stores it.
library Committees {
    /// @notice f = 1: the smallest committee that survives a fault.
    uint256 internal constant SIZE_MIN = 4;

    /// @notice A vote names its member in one byte, and 255 members fit into one contract's code.
    uint256 internal constant SIZE_MAX = 255;

    bytes1 private constant STOP = 0x00;

    /// @notice Checks the committee of `epoch` and writes its keys.
    function install(Authority[] memory authorities, uint64 epoch) internal {
        (address[] memory voters, bytes32[] memory names) = check(authorities);
        CommitteeCode code = new CommitteeCode(abi.encodePacked(STOP, voters, names));
        assert(address(code) == codeOf(address(this), epoch));
    }

    /// @notice Reverts unless the authorities can be a committee: 4 to 255, sorted by voting key, no key zero, none
    /// twice.
    /// @return voters Their redemption keys.
    /// @return names Their voting keys.
    function check(Authority[] memory authorities)
        internal
        pure
        returns (address[] memory voters, bytes32[] memory names)
    {
        uint256 size = authorities.length;
        require(size >= SIZE_MIN && size <= SIZE_MAX, IFastPay.InvalidCommitteeSize(size));

        voters = new address[](size);
        names = new bytes32[](size);
        bytes32 previous;
        for (uint256 i = 0; i < size; ++i) {
            (bytes32 votingKey, address redemptionKey) =
                (authorities[i].votingKey, authorities[i].redemptionKey);
            require(votingKey != 0 && redemptionKey != address(0), IFastPay.ZeroKey(i));
            require(votingKey > previous, IFastPay.VotingKeysNotAscending(i));
            for (uint256 j = 0; j < i; ++j) {
                require(redemptionKey != voters[j], IFastPay.RepeatedRedemptionKey(j, i));
            }
            (names[i], voters[i]) = (votingKey, redemptionKey);
            previous = votingKey;
        }
    }

    /// @notice The address of the committee of `epoch`, whether or not it exists yet. The address of a contract is a
    /// hash of its creator's address and of its number among the creator's contracts, from 1.
    /// @param fastPay The creator.
    function codeOf(address fastPay, uint64 epoch) internal pure returns (address code) {
        // RLP of [address, nonce], from the highest byte of a word: 0xc0 + the length of what follows, 0x80 + 20, the
        // address; then the nonce as one byte if it is below 0x80, else 0x80 + its length and its bytes.
        uint256 rlp = (0xd694 << 240) | (uint256(uint160(fastPay)) << 80);
        uint256 nonceBytes = 0; // beside the one byte that there is in any case
        // Nothing here can overflow: a nonce has at most 9 bytes.
        unchecked {
            uint256 nonce = uint256(epoch) + 1;
            if (nonce < 0x80) {
                rlp |= nonce << 72;
            } else {
                while (nonce >> (8 * nonceBytes) != 0) ++nonceBytes;
                rlp += nonceBytes << 248;
                rlp |= ((0x80 + nonceBytes) << 72) | (nonce << (72 - 8 * nonceBytes));
            }
        }
        // Hashes the 23 bytes and those of a long nonce from scratch space.
        assembly ("memory-safe") {
            mstore(0, rlp)
            code := and(keccak256(0, add(23, nonceBytes)), 0xffffffffffffffffffffffffffffffffffffffff)
        }
    }

    /// @notice The addresses whose votes count in `epoch`, by member. The epoch must have a committee.
    function redemptionKeys(address fastPay, uint64 epoch) internal view returns (address[] memory keys) {
        address code = codeOf(fastPay, epoch);
        // Solidity cannot read code directly into an array. This allocates the array in free memory, with one word for
        // each redemption key in the code, whose first byte is STOP. Each word was written from an `address`, so its
        // upper bits are zero.
        assembly ("memory-safe") {
            let size := shr(6, extcodesize(code))
            keys := mload(0x40)
            mstore(keys, size)
            extcodecopy(code, add(keys, 0x20), 1, shl(5, size))
            mstore(0x40, add(keys, shl(5, add(size, 1))))
        }
    }

    /// @notice Both keys of every member. The epoch must have a committee.
    function members(address fastPay, uint64 epoch) internal view returns (Authority[] memory authorities) {
        address[] memory keys = redemptionKeys(fastPay, epoch);
        uint256 size = keys.length;
        bytes32[] memory votingKeys = new bytes32[](size);
        address code = codeOf(fastPay, epoch);
        // As in `redemptionKeys`, for the `size` words that follow those.
        assembly ("memory-safe") {
            extcodecopy(code, add(votingKeys, 0x20), add(1, mul(size, 0x20)), mul(size, 0x20))
        }
        authorities = new Authority[](size);
        for (uint256 i = 0; i < size; ++i) {
            authorities[i] = Authority({votingKey: votingKeys[i], redemptionKey: keys[i]});
        }
    }

    /// @notice The quorum of `size` members: (size + f) / 2 + 1 with f = (size - 1) / 3, both rounded down. For size =
    /// 3f + 1 this is 2f + 1. Other sizes need more: of 5 members, two sets of 3 may share only the Byzantine one,
    /// which would vote for two different orders.
    function quorum(uint256 size) internal pure returns (uint256) {
        // A size is 4 to 255.
        unchecked {
            return (size + (size - 1) / 3) / 2 + 1;
        }
    }
}

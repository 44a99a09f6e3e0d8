// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../interfaces/IFastPay.sol";

/// @notice A committee as the contract keeps it: one storage slot that points at the keys.
/// @param code A contract whose code is the keys; zero if there is no committee.
/// @param size The number of members.
struct Committee {
    address code;
    uint8 size;
}

/// @notice Data kept as contract code: written once, and read at once for a fraction of what storage costs.
contract CommitteeCode {
    constructor(bytes memory data) {
        // Solidity has no statement that deploys chosen bytes; returning them from the constructor is how the
        // EVM does it. They begin with STOP (see `Committees.install`), so they never run as a program.
        assembly ("memory-safe") {
            return(add(data, 0x20), mload(data))
        }
    }
}

/// @title What a committee is, and how it is kept
/// @dev The code is `STOP ‖ redemption keys ‖ voting keys`, a word per key. Redemption keys come first, so that
/// checking votes reads nothing else.
library Committees {
    /// @notice f = 1: the smallest committee that survives a fault.
    uint256 internal constant SIZE_MIN = 4;

    /// @notice A vote names its member in one byte, and 255 members fit into one contract's code.
    uint256 internal constant SIZE_MAX = 255;

    bytes1 private constant STOP = 0x00;

    /// @notice Checks a new committee and writes its keys.
    function install(Authority[] memory authorities) internal returns (Committee memory) {
        uint256 size = authorities.length;
        require(size >= SIZE_MIN && size <= SIZE_MAX, IFastPay.InvalidCommitteeSize(size));

        address[] memory voters = new address[](size);
        bytes32[] memory names = new bytes32[](size);
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
        CommitteeCode code = new CommitteeCode(abi.encodePacked(STOP, voters, names));
        // forge-lint: disable-next-line(unsafe-typecast) -- SIZE_MAX fits
        return Committee({code: address(code), size: uint8(size)});
    }

    /// @notice The addresses whose votes on redemptions count, by member.
    function redemptionKeys(Committee memory self) internal view returns (address[] memory keys) {
        uint256 size = self.size;
        keys = new address[](size);
        address code = self.code;
        // No other way to read code straight into an array. `keys` has room for `size` words, and the code holds
        // as many after its first byte, each written from an `address` and therefore clean.
        assembly ("memory-safe") {
            extcodecopy(code, add(keys, 0x20), 1, mul(size, 0x20))
        }
    }

    /// @notice Both keys of every member.
    function members(Committee memory self) internal view returns (Authority[] memory authorities) {
        uint256 size = self.size;
        address[] memory keys = redemptionKeys(self);
        bytes32[] memory votingKeys = new bytes32[](size);
        address code = self.code;
        // As in `redemptionKeys`, for the `size` words that follow those.
        assembly ("memory-safe") {
            extcodecopy(code, add(votingKeys, 0x20), add(1, mul(size, 0x20)), mul(size, 0x20))
        }
        authorities = new Authority[](size);
        for (uint256 i = 0; i < size; ++i) {
            authorities[i] = Authority({votingKey: votingKeys[i], redemptionKey: keys[i]});
        }
    }

    /// @notice How many of `size` members decide: (size + f) / 2 + 1, with f = (size - 1) / 3, all rounded down. For
    /// size = 3f + 1 that is 2f + 1. For other sizes it is more: of 5 members, two sets of 3 may share only the one
    /// that is Byzantine, which would vote for two different orders.
    function quorum(uint256 size) internal pure returns (uint256) {
        return (size + (size - 1) / 3) / 2 + 1;
    }
}

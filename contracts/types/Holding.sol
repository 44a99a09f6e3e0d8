// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What every deposit and redemption of an asset reads and writes, in one slot: from the lowest bit, `balance`
/// (128 bits), which the contract holds of it for accounts, and `fullAt` (64), the state of its outflow limit.
type Holding is uint256;

using Holdings for Holding global;

/// @title The parts of `Holding`
library Holdings {
    uint256 private constant FULL_AT_BIT = 128;

    /// @notice Puts both parts into one slot.
    function pack(uint128 balance_, uint64 fullAt_) internal pure returns (Holding) {
        return Holding.wrap(uint256(balance_) | (uint256(fullAt_) << FULL_AT_BIT));
    }

    /// @notice What is held of the asset for accounts.
    function balance(Holding self) internal pure returns (uint128) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other part off
        return uint128(Holding.unwrap(self));
    }

    /// @notice When the outflow limit will be whole again (see `Outflow`).
    function fullAt(Holding self) internal pure returns (uint64) {
        // forge-lint: disable-next-line(unsafe-typecast) -- nothing is above it
        return uint64(Holding.unwrap(self) >> FULL_AT_BIT);
    }
}

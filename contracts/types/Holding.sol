// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What deposits and redemptions of an asset read and write. From the lowest bit: `balance` (128 bits), the
/// amount held for accounts; `fullAt` (48), the state of the outflow limit; `cap` (16), the deposit cap as a small
/// float (see `Caps`), zero for none; `hasClaims` (1), set while claims of a token exist.
/// @dev Each token's holding has a storage slot. ETH's holding is a part of `State`, without `hasClaims`.
type Holding is uint256;

using Holdings for Holding global;

/// @title The parts of `Holding`
library Holdings {
    uint256 private constant FULL_AT_BIT = 128;
    uint256 private constant CAP_BIT = 176;
    uint256 private constant HAS_CLAIMS = 1 << 192;

    /// @notice The amount of the asset that is held for accounts.
    function balance(Holding self) internal pure returns (uint128) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint128(Holding.unwrap(self));
    }

    /// @notice The time at which the asset's outflow limit is full again (see `Outflow`).
    function fullAt(Holding self) internal pure returns (uint48) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint48(Holding.unwrap(self) >> FULL_AT_BIT);
    }

    /// @notice The asset's deposit cap as a small float, zero for none.
    function cap(Holding self) internal pure returns (uint16) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint16(Holding.unwrap(self) >> CAP_BIT);
    }

    /// @notice Whether claims of the token exist.
    function hasClaims(Holding self) internal pure returns (bool) {
        return Holding.unwrap(self) & HAS_CLAIMS != 0;
    }

    /// @notice Replaces the balance and the state of the outflow limit.
    function withBalance(Holding self, uint128 balance_, uint48 fullAt_) internal pure returns (Holding) {
        uint256 others = Holding.unwrap(self) >> CAP_BIT << CAP_BIT;
        return Holding.wrap(others | (uint256(fullAt_) << FULL_AT_BIT) | balance_);
    }

    /// @notice Replaces the deposit cap.
    function withCap(Holding self, uint16 cap_) internal pure returns (Holding) {
        uint256 others = Holding.unwrap(self) & ~(uint256(type(uint16).max) << CAP_BIT);
        return Holding.wrap(others | (uint256(cap_) << CAP_BIT));
    }

    /// @notice Replaces whether claims exist.
    function withClaims(Holding self, bool exist) internal pure returns (Holding) {
        uint256 others = Holding.unwrap(self) & ~HAS_CLAIMS;
        return Holding.wrap(exist ? others | HAS_CLAIMS : others);
    }
}

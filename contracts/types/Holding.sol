// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What deposits and redemptions of an asset read and write. From the lowest bit: `balance` (128 bits), which the
/// contract holds of it for accounts; `fullAt` (48), the state of its outflow limit; `cap` (16), its deposit cap as a
/// small float (see `Caps`), zero for none; `hasClaims` (1), set while claims of a token exist.
/// @dev A token's is a storage slot. Ether's is kept in `State`, without `hasClaims`.
type Holding is uint256;

using Holdings for Holding global;

/// @title The parts of `Holding`
library Holdings {
    uint256 private constant FULL_AT_BIT = 128;
    uint256 private constant CAP_BIT = 176;
    uint256 private constant HAS_CLAIMS = 1 << 192;

    /// @notice What is held of the asset for accounts.
    function balance(Holding self) internal pure returns (uint128) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint128(Holding.unwrap(self));
    }

    /// @notice When the asset's outflow limit will be whole again (see `Outflow`).
    function fullAt(Holding self) internal pure returns (uint48) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint48(Holding.unwrap(self) >> FULL_AT_BIT);
    }

    /// @notice The asset's deposit cap as a small float, zero for none.
    function cap(Holding self) internal pure returns (uint16) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint16(Holding.unwrap(self) >> CAP_BIT);
    }

    /// @notice Whether there are claims of the token.
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

    /// @notice Notes whether there are claims.
    function withClaims(Holding self, bool exist) internal pure returns (Holding) {
        uint256 others = Holding.unwrap(self) & ~HAS_CLAIMS;
        return Holding.wrap(exist ? others | HAS_CLAIMS : others);
    }
}

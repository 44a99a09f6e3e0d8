// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What every deposit and redemption of a token reads and writes, in one slot: from the lowest bit, `balance`
/// (128 bits), which the contract holds of it for accounts, and `fullAt` (48), the state of its outflow limit.
type Holding is uint256;

using Holdings for Holding global;

/// @title The parts of `Holding`
library Holdings {
    uint256 private constant FULL_AT_BIT = 128;

    /// @notice Puts both parts into one slot.
    function pack(uint128 balance_, uint48 fullAt_) internal pure returns (Holding) {
        return Holding.wrap(uint256(balance_) | (uint256(fullAt_) << FULL_AT_BIT));
    }

    /// @notice What is held of the token for accounts, and when its outflow limit will be whole again (see `Outflow`).
    function parts(Holding self) internal pure returns (uint128 balance, uint48 fullAt) {
        uint256 bits = Holding.unwrap(self);
        // forge-lint: disable-next-item(unsafe-typecast) -- cuts the other part off; nothing is above the last
        return (uint128(bits), uint48(bits >> FULL_AT_BIT));
    }
}

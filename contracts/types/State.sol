// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Holding} from "./Holding.sol";

/// @notice What every call reads, in one slot. From the lowest bit: `lastTransactionIndex` (48 bits), `epoch` (20),
/// `pausedUntil` (36: seconds, lasts until the year 4147, as `fullAt` does), and ETH's `Holding`: its deposit cap (16),
/// balance (88: up to 309 million ETH) and `fullAt` (48).
/// @dev Packed by hand, because the compiler would read and write the slot once for each part.
type State is uint256;

using States for State global;

/// @title The parts of `State`
library States {
    /// @notice The maximum of ether held for accounts: more than twice the supply of ether.
    uint256 internal constant ETHER_BALANCE_MAX = type(uint88).max;

    uint256 private constant EPOCH_BIT = 48;
    uint256 private constant EPOCH_MAX = (1 << 20) - 1;
    uint256 private constant PAUSED_UNTIL_BIT = 68;
    uint256 private constant TIME_MAX = (1 << 36) - 1;
    uint256 private constant ETHER_CAP_BIT = 104;
    uint256 private constant ETHER_BALANCE_BIT = 120;
    uint256 private constant ETHER_FULL_AT_BIT = 208;

    /// @notice The index of the last event of the order.
    function lastTransactionIndex(State self) internal pure returns (uint48) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint48(State.unwrap(self));
    }

    /// @notice The current epoch.
    function epoch(State self) internal pure returns (uint64) {
        // forge-lint: disable-next-line(unsafe-typecast) -- 20 bits
        return uint64((State.unwrap(self) >> EPOCH_BIT) & EPOCH_MAX);
    }

    /// @notice The contract is paused before this time.
    function pausedUntil(State self) internal pure returns (uint256) {
        return (State.unwrap(self) >> PAUSED_UNTIL_BIT) & TIME_MAX;
    }

    /// @notice The amount of ETH that is held for accounts.
    function etherHolding(State self) internal pure returns (Holding) {
        uint256 bits = State.unwrap(self);
        // forge-lint: disable-next-item(unsafe-typecast) -- each cuts the other parts off; nothing is above the last
        return Holding.wrap(0)
            .withBalance(uint88(bits >> ETHER_BALANCE_BIT), uint48(bits >> ETHER_FULL_AT_BIT))
            .withCap(uint16(bits >> ETHER_CAP_BIT));
    }

    /// @notice Counts one more event of the order. Reverts with a panic after the last of 2^48: full blocks of nothing
    /// but redemptions take forty thousand years to get there.
    function withNextIndex(State self) internal pure returns (State) {
        assert(self.lastTransactionIndex() != type(uint48).max);
        unchecked {
            return State.wrap(State.unwrap(self) + 1); // the index is in the lowest bits
        }
    }

    /// @notice Begins one more epoch. Reverts with a panic after the last of 2^20. An epoch lasts a day at least, so
    /// that takes 2,800 years.
    function withNextEpoch(State self) internal pure returns (State) {
        uint256 next = self.epoch() + 1;
        assert(next <= EPOCH_MAX);
        return State.wrap(State.unwrap(self) & ~(EPOCH_MAX << EPOCH_BIT) | (next << EPOCH_BIT));
    }

    /// @notice Replaces the end of the pause.
    function withPause(State self, uint256 until) internal pure returns (State) {
        uint256 others = State.unwrap(self) & ~(TIME_MAX << PAUSED_UNTIL_BIT);
        return State.wrap(others | ((until & TIME_MAX) << PAUSED_UNTIL_BIT));
    }

    /// @notice Replaces the amount of ether held.
    /// @param holding Its balance is at most `ETHER_BALANCE_MAX`.
    function withEtherHolding(State self, Holding holding) internal pure returns (State) {
        uint256 others = State.unwrap(self) & ((1 << ETHER_CAP_BIT) - 1);
        return State.wrap(
            others | (uint256(holding.cap()) << ETHER_CAP_BIT)
                | (uint256(holding.balance()) << ETHER_BALANCE_BIT)
                | (uint256(holding.fullAt()) << ETHER_FULL_AT_BIT)
        );
    }
}

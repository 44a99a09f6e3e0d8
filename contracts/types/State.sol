// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What every call reads, in one slot: from the lowest bit, `lastTransactionIndex` (48 bits), `epoch` (32),
/// `pausedUntil` (40: seconds, until the year 36,812), and what `Holding` is for tokens: the balance of ether (88: 309
/// million ether) and its `fullAt` (48).
/// @dev Packed by hand, because the compiler would read and write the slot once for each part.
type State is uint256;

using States for State global;

/// @title The parts of `State`
library States {
    /// @notice The most ether that is held for accounts: more than twice of all that there is on Ethereum.
    uint256 internal constant ETHER_BALANCE_MAX = type(uint88).max;

    uint256 private constant EPOCH_BIT = 48;
    uint256 private constant PAUSED_UNTIL_BIT = 80;
    uint256 private constant ETHER_BALANCE_BIT = 120;
    uint256 private constant ETHER_FULL_AT_BIT = 208;
    uint256 private constant TIME_MASK = type(uint40).max;

    /// @notice The number of the last deposit.
    function lastTransactionIndex(State self) internal pure returns (uint48) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint48(State.unwrap(self));
    }

    /// @notice The current epoch.
    function epoch(State self) internal pure returns (uint32) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint32(State.unwrap(self) >> EPOCH_BIT);
    }

    /// @notice The contract is paused before this time.
    function pausedUntil(State self) internal pure returns (uint256) {
        return (State.unwrap(self) >> PAUSED_UNTIL_BIT) & TIME_MASK;
    }

    /// @notice What is held of ether for accounts, and when its outflow limit will be whole again (see `Outflow`).
    function etherHolding(State self) internal pure returns (uint128 balance, uint48 fullAt) {
        uint256 bits = State.unwrap(self);
        // forge-lint: disable-next-item(unsafe-typecast) -- cuts the other parts off; nothing is above the last
        return (uint88(bits >> ETHER_BALANCE_BIT), uint48(bits >> ETHER_FULL_AT_BIT));
    }

    /// @notice One more deposit. Reverts with a panic after the last of 2^48, of which a block full of nothing else
    /// holds two thousand.
    function withNextIndex(State self) internal pure returns (State) {
        uint256 next = self.lastTransactionIndex() + 1; // checked, in 48 bits
        return State.wrap(State.unwrap(self) & ~uint256(type(uint48).max) | next);
    }

    /// @notice One more epoch. Reverts with a panic after the last of 2^32: at one a minute, in 8,000 years.
    function withNextEpoch(State self) internal pure returns (State) {
        uint256 next = self.epoch() + 1; // checked, in 32 bits
        uint256 cleared = State.unwrap(self) & ~(uint256(type(uint32).max) << EPOCH_BIT);
        return State.wrap(cleared | (next << EPOCH_BIT));
    }

    /// @notice A pause until a time.
    function withPause(State self, uint256 until) internal pure returns (State) {
        uint256 cleared = State.unwrap(self) & ~(TIME_MASK << PAUSED_UNTIL_BIT);
        return State.wrap(cleared | ((until & TIME_MASK) << PAUSED_UNTIL_BIT));
    }

    /// @notice What is held of ether from now on.
    /// @param balance At most `ETHER_BALANCE_MAX`.
    function withEtherHolding(State self, uint128 balance, uint48 fullAt) internal pure returns (State) {
        uint256 others = State.unwrap(self) & ((1 << ETHER_BALANCE_BIT) - 1);
        return
            State.wrap(
                others | (uint256(balance) << ETHER_BALANCE_BIT) | (uint256(fullAt) << ETHER_FULL_AT_BIT)
            );
    }
}

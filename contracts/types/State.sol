// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What every call reads, in one slot: from the lowest bit, `lastTransactionIndex` (64 bits), `epoch` (64),
/// `previousEpochEnds`, `pausedUntil` and `nextPauseAt` (40 each: seconds, until the year 36,812).
/// @dev Packed by hand, because the compiler would read and write the slot once for each part.
type State is uint256;

using States for State global;

/// @title The parts of `State`
library States {
    uint256 private constant EPOCH_BIT = 64;
    uint256 private constant PREVIOUS_EPOCH_ENDS_BIT = 128;
    uint256 private constant PAUSED_UNTIL_BIT = 168;
    uint256 private constant NEXT_PAUSE_AT_BIT = 208;
    uint256 private constant TIME_MASK = type(uint40).max;

    /// @notice The number of the last deposit.
    function lastTransactionIndex(State self) internal pure returns (uint64) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint64(State.unwrap(self));
    }

    /// @notice The current epoch.
    function epoch(State self) internal pure returns (uint64) {
        // forge-lint: disable-next-line(unsafe-typecast) -- cuts the other parts off
        return uint64(State.unwrap(self) >> EPOCH_BIT);
    }

    /// @notice Until when votes of the epoch before count, inclusive.
    function previousEpochEnds(State self) internal pure returns (uint256) {
        return (State.unwrap(self) >> PREVIOUS_EPOCH_ENDS_BIT) & TIME_MASK;
    }

    /// @notice The contract is paused before this time.
    function pausedUntil(State self) internal pure returns (uint256) {
        return (State.unwrap(self) >> PAUSED_UNTIL_BIT) & TIME_MASK;
    }

    /// @notice From when on the next pause may begin.
    function nextPauseAt(State self) internal pure returns (uint256) {
        return (State.unwrap(self) >> NEXT_PAUSE_AT_BIT) & TIME_MASK;
    }

    /// @notice One more deposit. Nobody can pay for 2^64 of them.
    function withNextIndex(State self) internal pure returns (State) {
        return State.wrap(State.unwrap(self) + 1);
    }

    /// @notice One more epoch. Nobody can pay for 2^64 of them either.
    function withNextEpoch(State self, uint256 previousEnds) internal pure returns (State) {
        uint256 cleared = State.unwrap(self) & ~(TIME_MASK << PREVIOUS_EPOCH_ENDS_BIT);
        return
            State.wrap((cleared + (1 << EPOCH_BIT)) | ((previousEnds & TIME_MASK) << PREVIOUS_EPOCH_ENDS_BIT));
    }

    /// @notice A pause until one time, and none before another.
    function withPause(State self, uint256 until, uint256 nextAt) internal pure returns (State) {
        uint256 cleared =
            State.unwrap(self) & ~((TIME_MASK << PAUSED_UNTIL_BIT) | (TIME_MASK << NEXT_PAUSE_AT_BIT));
        return State.wrap(
            cleared | ((until & TIME_MASK) << PAUSED_UNTIL_BIT) | ((nextAt & TIME_MASK) << NEXT_PAUSE_AT_BIT)
        );
    }
}

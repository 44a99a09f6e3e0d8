// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title The outflow limit of an asset
/// @notice A token bucket for each asset. A share of the asset's balance may leave within a window, and the bucket
/// refills at that rate. The limit is relative, so no asset needs a configuration, and nobody can change one.
/// @dev The bucket is stored as the time at which it will be full again (generic cell rate algorithm). A redemption
/// costs the time that the bucket needs to refill by its amount, and passes while the sum of costs stays within the
/// window. The balance before each redemption counts, so a run of them takes no more than the share of the first
/// balance. Times are in units of 2^-12 s; 48 bits last until the year 4147. Every cost is rounded up, so the limit is
/// never exceeded. The rounding delays something only at thousands of redemptions a second.
library Outflow {
    uint256 private constant BASIS_POINTS = 10_000;
    uint256 private constant TIME_UNIT_BITS = 12;

    /// @notice Applies a redemption to the limit. Returns whether it may leave at once, and the new time at which the
    /// bucket is full.
    /// @param fullAt The present time at which the bucket is full.
    /// @param amount At least 1, and at most `balance`.
    /// @param share In basis points of `balance`.
    /// @param window In seconds.
    function spend(uint48 fullAt, uint128 amount, uint128 balance, uint256 share, uint256 window)
        internal
        view
        returns (bool passes, uint48 newFullAt)
    {
        // Nothing here can overflow: 128 bits of amount, 20 of window, 12 of unit, 14 of basis points.
        unchecked {
            window <<= TIME_UNIT_BITS;
            uint256 time = block.timestamp << TIME_UNIT_BITS;
            uint256 divisor = share * balance;
            uint256 cost = (amount * (window * BASIS_POINTS) + divisor - 1) / divisor;
            uint256 next = (fullAt > time ? fullAt : time) + cost;
            // forge-lint: disable-next-line(unsafe-typecast) -- what passes is at most a window ahead; what does not is not kept
            return (next - time <= window, uint48(next));
        }
    }

    /// @notice Applies a deposit to the limit: the same amount more may leave, rounded down, until the bucket is full.
    /// So a deposit that is redeemed again changes nothing for others.
    /// @param fullAt The present time at which the bucket is full.
    /// @param amount The deposit: at least 1.
    /// @param balance The balance before the deposit.
    function refill(uint48 fullAt, uint128 amount, uint128 balance, uint256 share, uint256 window)
        internal
        view
        returns (uint48 newFullAt)
    {
        uint256 time = block.timestamp << TIME_UNIT_BITS;
        if (fullAt <= time) return fullAt;
        // Before, (window - used) / window of balance × share is available; then that and the amount, of a balance that
        // is larger by the amount. Nothing here can overflow: 34 bits of time, 128 of balance, 14 of basis points; and
        // a difference below zero is not taken.
        unchecked {
            window <<= TIME_UNIT_BITS;
            uint256 before = (fullAt - time) * share * balance;
            uint256 paid = amount * (window * (BASIS_POINTS - share));
            if (paid >= before) return uint48(time); // forge-lint: disable-line(unsafe-typecast) -- until the year 4147
            uint256 divisor = share * (uint256(balance) + amount);
            // forge-lint: disable-next-line(unsafe-typecast) -- not after `fullAt`
            return uint48(time + (before - paid + divisor - 1) / divisor);
        }
    }

    /// @notice The largest amount that `spend` lets leave at once.
    function available(uint48 fullAt, uint128 balance, uint256 share, uint256 window)
        internal
        view
        returns (uint256)
    {
        window <<= TIME_UNIT_BITS;
        uint256 time = block.timestamp << TIME_UNIT_BITS;
        uint256 used = fullAt > time ? fullAt - time : 0;
        return (window - used) * share * balance / (window * BASIS_POINTS);
    }
}

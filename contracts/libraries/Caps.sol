// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Deposit caps in 16 bits
/// @notice A small float: `mantissa × 2^exponent`, with the mantissa in the lower 9 bits and the exponent in the upper 7.
/// A cap without an exact form is rounded down, by less than 1/256 of it.
library Caps {
    uint256 private constant MANTISSA_BITS = 9;
    uint256 private constant MANTISSA_MAX = (1 << MANTISSA_BITS) - 1;

    /// @notice The largest float that is not above `cap`.
    function encode(uint128 cap) internal pure returns (uint16) {
        uint256 mantissa = cap;
        uint256 exponent = 0;
        for (; mantissa > MANTISSA_MAX; mantissa >>= 1) {
            ++exponent; // 119 times at most
        }
        // forge-lint: disable-next-line(unsafe-typecast) -- 7 and 9 bits
        return uint16((exponent << MANTISSA_BITS) | mantissa);
    }

    /// @notice The value of a float that `encode` made: 128 bits at most.
    function decode(uint16 float) internal pure returns (uint256) {
        return (float & MANTISSA_MAX) << (float >> MANTISSA_BITS);
    }
}

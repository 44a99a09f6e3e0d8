// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Brakes, IFastPay} from "../interfaces/IFastPay.sol";

/// @title Between which bounds a contract may be braked
/// @notice A brake that does not hold protects nobody; one that holds for too long denies what is due.
library Bounds {
    /// @notice Reverts with `InvalidBrake` unless every parameter is within its bounds.
    function check(Brakes memory brakes) internal pure {
        _check("pauseDuration", brakes.pauseDuration, 1 hours, 7 days);
        // Not below the duration, so that the contract runs at least half of the time.
        _check("pauseCooldown", brakes.pauseCooldown, brakes.pauseDuration, 365 days);
        _check("outflowWindow", brakes.outflowWindow, 1 hours, 7 days);
        _check("outflowShare", brakes.outflowShare, 100, 10_000);
        _check("outflowDelay", brakes.outflowDelay, 1 hours, 7 days);
        _check("votesValidity", brakes.votesValidity, 1 days, 90 days);
    }

    function _check(string memory name, uint256 value, uint256 min, uint256 max) private pure {
        require(value >= min && value <= max, IFastPay.InvalidBrake(name, value, min, max));
    }
}

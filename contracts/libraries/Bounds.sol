// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, SafetyParameters} from "../interfaces/IFastPay.sol";

/// @title The bounds of the safety parameters
/// @notice A loose limit protects nobody, and a tight one keeps owners from their money.
library Bounds {
    /// @notice Reverts with `InvalidSafetyParameter` unless every parameter is within its bounds.
    /// @param guardian Zero for none. Then queued redemptions must wait longer.
    function check(SafetyParameters memory parameters, address guardian) internal pure {
        _check("pauseDuration", parameters.pauseDuration, 1 hours, 7 days);
        // Not below the duration, so that the contract runs at least half of the time.
        _check("pauseCooldown", parameters.pauseCooldown, parameters.pauseDuration, 365 days);
        _check("outflowWindow", parameters.outflowWindow, 1 hours, 7 days);
        _check("outflowShare", parameters.outflowShare, 100, 10_000);
        // Longer than an installation takes, so that stolen keys are replaced before the redemptions that they queued
        // are paid. An installation takes a day with an endorsement, and 14 days where nobody can endorse. A week is
        // left to notice the theft and to announce.
        _check("outflowDelay", parameters.outflowDelay, guardian == address(0) ? 21 days : 3 days, 30 days);
        _check("unlockWindow", parameters.unlockWindow, 3 days, 30 days);
        _check("votesValidity", parameters.votesValidity, 2 * uint256(parameters.unlockWindow), 90 days);
    }

    function _check(string memory name, uint256 value, uint256 min, uint256 max) private pure {
        require(value >= min && value <= max, IFastPay.InvalidSafetyParameter(name, value, min, max));
    }
}

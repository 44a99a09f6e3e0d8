// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, Brakes, IFastPay} from "../interfaces/IFastPay.sol";
import {Bounds} from "../libraries/Bounds.sol";
import {Committees} from "../libraries/Committees.sol";
import {Votes} from "../libraries/Votes.sol";
import {State} from "../types/State.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

/// @title The committee and the guardian, and all that they can do
/// @notice A quorum of the committee installs the next committee and guardian. The guardian pauses for a bounded time,
/// with a cool-down. Neither can move anybody's money, nor change anything that was fixed at deployment.
// slither-disable-next-line locked-ether,unimplemented-functions -- FastPay completes it, and pays ether out
abstract contract Roles is IFastPay, EIP712, ReentrancyGuardTransient {
    /// @inheritdoc IFastPay
    address public guardian;

    /// @dev Until when votes of the epoch before the current one count, inclusive. It and the next: in seconds, until
    /// the year 36,812; in the guardian's slot.
    uint40 private _previousEpochEnds;

    /// @dev From when on the next pause may begin.
    uint40 private _nextPauseAt;

    /// @dev What every call reads. Read anew where a foreign contract may have been called since.
    State internal _state;

    uint32 internal immutable PAUSE_DURATION;
    uint32 internal immutable PAUSE_COOLDOWN;
    uint32 internal immutable OUTFLOW_WINDOW;
    uint16 internal immutable OUTFLOW_SHARE;
    uint32 internal immutable OUTFLOW_DELAY;
    uint32 internal immutable VOTES_VALIDITY;

    constructor(Authority[] memory authorities, address guardian_, Brakes memory brakes_)
        EIP712("FastPay", "1")
    {
        Bounds.check(brakes_);
        PAUSE_DURATION = brakes_.pauseDuration;
        PAUSE_COOLDOWN = brakes_.pauseCooldown;
        OUTFLOW_WINDOW = brakes_.outflowWindow;
        OUTFLOW_SHARE = brakes_.outflowShare;
        OUTFLOW_DELAY = brakes_.outflowDelay;
        VOTES_VALIDITY = brakes_.votesValidity;
        _install(0, authorities, guardian_, 0);
    }

    // ------------------------------------------------------------------------------- the committee

    /// @inheritdoc IFastPay
    function rotate(Authority[] calldata authorities, address guardian_, bytes calldata votes)
        external
        nonReentrant
    {
        State state = _state;
        uint64 next = uint64(state.epoch()) + 1;
        bytes32 digest = _hashTypedDataV4(Committees.voteHash(next, authorities, guardian_));
        Votes.check(votes, digest, Committees.redemptionKeys(state.epoch()), Votes.WHOLE_CALL);
        uint256 previousEpochEnds = block.timestamp + VOTES_VALIDITY;
        _state = state.withNextEpoch();
        _install(next, authorities, guardian_, previousEpochEnds);
    }

    /// @inheritdoc IFastPay
    function epoch() external view returns (uint64) {
        return _state.epoch();
    }

    /// @inheritdoc IFastPay
    function epochValidUntil(uint64 epoch_) external view returns (uint256) {
        uint64 current = _state.epoch();
        return epoch_ == current ? type(uint256).max : _validUntil(epoch_, current);
    }

    /// @inheritdoc IFastPay
    function committee(uint64 epoch_) external view returns (Authority[] memory) {
        _requireInstalled(_state, epoch_);
        return Committees.members(epoch_);
    }

    /// @inheritdoc IFastPay
    function quorum(uint64 epoch_) external view returns (uint256) {
        _requireInstalled(_state, epoch_);
        return Committees.quorum(Committees.redemptionKeys(epoch_).length);
    }

    /// @inheritdoc IFastPay
    function committeeVoteDigest(Authority[] calldata authorities, address guardian_)
        external
        view
        returns (bytes32)
    {
        return _hashTypedDataV4(Committees.voteHash(uint64(_state.epoch()) + 1, authorities, guardian_));
    }

    // -------------------------------------------------------------------------------- the guardian

    /// @inheritdoc IFastPay
    function pause() external nonReentrant {
        require(msg.sender == guardian, NotGuardian(msg.sender));
        require(block.timestamp >= _nextPauseAt, PauseTooEarly(_nextPauseAt));
        uint256 until = block.timestamp + PAUSE_DURATION;
        _pauseUntil(until);
        emit Paused(until);
    }

    /// @inheritdoc IFastPay
    function unpause() external nonReentrant {
        require(msg.sender == guardian, NotGuardian(msg.sender));
        require(block.timestamp < _state.pausedUntil(), NotPaused());
        _pauseUntil(block.timestamp);
        emit Unpaused();
    }

    /// @inheritdoc IFastPay
    function brakes() external view returns (Brakes memory) {
        return Brakes({
            pauseDuration: PAUSE_DURATION,
            pauseCooldown: PAUSE_COOLDOWN,
            outflowWindow: OUTFLOW_WINDOW,
            outflowShare: OUTFLOW_SHARE,
            outflowDelay: OUTFLOW_DELAY,
            votesValidity: VOTES_VALIDITY
        });
    }

    /// @inheritdoc IFastPay
    function pausedUntil() external view returns (uint256) {
        return _state.pausedUntil();
    }

    /// @inheritdoc IFastPay
    function nextPauseAt() external view returns (uint256) {
        return _nextPauseAt;
    }

    // ------------------------------------------------------------------------------------ internal

    /// @dev The state, unless the contract is paused.
    function _running() internal view returns (State state) {
        state = _state;
        uint256 until = state.pausedUntil();
        require(block.timestamp >= until, PausedUntil(until));
    }

    /// @dev The members whose votes count, if those of this epoch count now.
    function _voters(State state, uint64 epoch_) internal view returns (address[] memory) {
        uint64 current = state.epoch();
        if (epoch_ != current) {
            _requireInstalled(state, epoch_);
            uint256 until = _validUntil(epoch_, current);
            require(block.timestamp <= until, EpochEnded(epoch_, until));
        }
        return Committees.redemptionKeys(epoch_);
    }

    // ------------------------------------------------------------------------------------- private

    function _install(
        uint64 epoch_,
        Authority[] memory authorities,
        address guardian_,
        uint256 previousEpochEnds
    ) private {
        guardian = guardian_;
        // forge-lint: disable-next-line(unsafe-typecast) -- until the year 36,812
        _previousEpochEnds = uint40(previousEpochEnds);
        emit CommitteeInstalled(epoch_, authorities, guardian_, previousEpochEnds);
        Committees.install(authorities, epoch_);
    }

    function _pauseUntil(uint256 until) private {
        _state = _state.withPause(until);
        // forge-lint: disable-next-line(unsafe-typecast) -- until the year 36,812
        _nextPauseAt = uint40(until + PAUSE_COOLDOWN);
    }

    /// @dev Until when votes of an epoch that is not the current one count; zero for most.
    function _validUntil(uint64 epoch_, uint64 current) private view returns (uint256) {
        return uint256(epoch_) + 1 == current ? _previousEpochEnds : 0;
    }

    function _requireInstalled(State state, uint64 epoch_) private pure {
        require(epoch_ <= state.epoch(), UnknownEpoch(epoch_));
    }
}

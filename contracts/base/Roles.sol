// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../interfaces/ICouncil.sol";
import {Authority, IFastPay, SafetyParameters} from "../interfaces/IFastPay.sol";
import {Bounds} from "../libraries/Bounds.sol";
import {Committees} from "../libraries/Committees.sol";
import {State} from "../types/State.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

/// @title The powers of the committee, the council and the guardian
/// @notice The council installs committees and adds its decisions to the order of events. The guardian can pause and
/// postpone for a bounded time. Neither can move anybody's money. What was fixed at deployment stays fixed, except for
/// deposit caps, which the council can raise.
// slither-disable-next-line locked-ether,unimplemented-functions -- FastPay completes it, and pays ether out
abstract contract Roles is IFastPay, EIP712, ReentrancyGuardTransient {
    /// @dev The maximum by which the guardian may postpone the redemptions of one epoch, in total.
    uint256 private constant POSTPONEMENT_MAX = 30 days;

    /// @dev The maximum age of the council at deployment: a recovery may be announced 120 days after the council's
    /// deployment.
    uint256 private constant COUNCIL_AGE_MAX = 1 days;

    /// @inheritdoc IFastPay
    address public guardian;

    /// @dev Votes of the previous epoch count until this time, inclusive. This field and the next are in seconds, last
    /// until the year 36,812, and share the guardian's slot.
    uint40 private _previousEpochEnds;

    /// @dev The earliest time of the next pause.
    uint40 private _nextPauseAt;

    /// @dev The state that every call reads. It is read again after a call to a foreign contract.
    State internal _state;

    /// @dev The epochs whose keys were compromised: 256 in a word, a bit each.
    mapping(uint256 word => uint256 bits) private _compromised;

    /// @dev By how many seconds the queued redemptions of an epoch are postponed.
    mapping(uint64 epoch => uint256 total) private _postponed;

    ICouncil private immutable COUNCIL;
    uint32 internal immutable PAUSE_DURATION;
    uint32 internal immutable PAUSE_COOLDOWN;
    uint32 internal immutable OUTFLOW_WINDOW;
    uint16 internal immutable OUTFLOW_SHARE;
    uint32 internal immutable OUTFLOW_DELAY;
    uint32 internal immutable VOTES_VALIDITY;
    uint32 internal immutable UNLOCK_WINDOW;

    /// @dev Restricts a function to the council.
    modifier onlyCouncil() {
        _onlyCouncil();
        _;
    }

    constructor(
        Authority[] memory authorities,
        address guardian_,
        ICouncil council_,
        SafetyParameters memory parameters
    ) EIP712("FastPay", "1") {
        Bounds.check(parameters, guardian_);
        PAUSE_DURATION = parameters.pauseDuration;
        PAUSE_COOLDOWN = parameters.pauseCooldown;
        OUTFLOW_WINDOW = parameters.outflowWindow;
        OUTFLOW_SHARE = parameters.outflowShare;
        OUTFLOW_DELAY = parameters.outflowDelay;
        VOTES_VALIDITY = parameters.votesValidity;
        UNLOCK_WINDOW = parameters.unlockWindow;
        require(address(council_.fastPay()) == address(this), CouncilOfAnother(address(council_)));
        uint256 councilAt = council_.installedAt();
        require(block.timestamp <= councilAt + COUNCIL_AGE_MAX, CouncilTooOld(address(council_), councilAt));
        COUNCIL = council_;
        _install(0, 0, authorities, guardian_, 0, 0, 0);
    }

    // --------------------------------------------------------------------------------- the council

    /// @inheritdoc IFastPay
    function install(
        Authority[] calldata authorities,
        address guardian_,
        uint64 compromisedSince,
        bytes32 checkpoint
    ) external onlyCouncil nonReentrant {
        State state = _state.withNextEpoch().withNextIndex();
        _state = state;
        uint64 next = state.epoch();
        bool keysWereOut = compromisedSince < next;
        _install(
            state.lastTransactionIndex(),
            next,
            authorities,
            guardian_,
            keysWereOut ? 0 : block.timestamp + VOTES_VALIDITY,
            compromisedSince,
            checkpoint
        );
        if (keysWereOut) _compromise(compromisedSince, next);
    }

    /// @inheritdoc IFastPay
    function requestUnlock(
        bytes32 account,
        uint64 sequence,
        uint256 voidableFrom,
        bytes calldata authorization
    ) external onlyCouncil nonReentrant {
        emit UnlockRequested(_nextIndex(), account, sequence, voidableFrom, authorization);
    }

    /// @inheritdoc IFastPay
    function uphold(bytes32 account, uint64 sequence, bytes32 digest) external onlyCouncil nonReentrant {
        emit SequenceUpheld(_nextIndex(), account, sequence, digest);
    }

    /// @inheritdoc IFastPay
    function council() external view returns (ICouncil) {
        return COUNCIL;
    }

    // ------------------------------------------------------------------------------- the committee

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
        return Committees.members(address(this), epoch_);
    }

    /// @inheritdoc IFastPay
    function quorum(uint64 epoch_) external view returns (uint256) {
        _requireInstalled(_state, epoch_);
        return Committees.quorum(Committees.redemptionKeys(address(this), epoch_).length);
    }

    /// @inheritdoc IFastPay
    function compromised(uint64 epoch_) external view returns (bool) {
        return _isCompromised(epoch_);
    }

    // -------------------------------------------------------------------------------- the guardian

    /// @inheritdoc IFastPay
    function pause() external nonReentrant {
        _onlyGuardian();
        require(block.timestamp >= _nextPauseAt, PauseTooEarly(_nextPauseAt));
        uint256 until = block.timestamp + PAUSE_DURATION;
        _pauseUntil(until);
        emit Paused(until);
    }

    /// @inheritdoc IFastPay
    function unpause() external nonReentrant {
        _onlyGuardian();
        require(block.timestamp < _state.pausedUntil(), NotPaused());
        _pauseUntil(block.timestamp);
        emit Unpaused();
    }

    /// @inheritdoc IFastPay
    function postpone(uint64 epoch_, uint256 extra) external nonReentrant {
        _onlyGuardian();
        _requireInstalled(_state, epoch_);
        uint256 total = _postponed[epoch_];
        require(extra <= POSTPONEMENT_MAX - total, PostponedTooLong(epoch_, total, POSTPONEMENT_MAX));
        total += extra;
        _postponed[epoch_] = total;
        emit Postponed(epoch_, total);
    }

    /// @inheritdoc IFastPay
    function safetyParameters() external view returns (SafetyParameters memory) {
        return SafetyParameters({
            pauseDuration: PAUSE_DURATION,
            pauseCooldown: PAUSE_COOLDOWN,
            outflowWindow: OUTFLOW_WINDOW,
            outflowShare: OUTFLOW_SHARE,
            outflowDelay: OUTFLOW_DELAY,
            votesValidity: VOTES_VALIDITY,
            unlockWindow: UNLOCK_WINDOW
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

    /// @dev The redemption keys of the members of an epoch. Reverts if its votes do not count now.
    function _voters(State state, uint64 epoch_) internal view returns (address[] memory) {
        uint64 current = state.epoch();
        if (epoch_ != current) {
            _requireInstalled(state, epoch_);
            uint256 until = _validUntil(epoch_, current);
            require(block.timestamp <= until, EpochEnded(epoch_, until));
        }
        return Committees.redemptionKeys(address(this), epoch_);
    }

    /// @dev Takes the index of the next event of the order.
    // slither-disable-next-line costly-loop -- each redemption of a call has its index
    function _nextIndex() internal returns (uint64) {
        State state = _state.withNextIndex();
        _state = state;
        return state.lastTransactionIndex();
    }

    /// @dev By how much the queued redemptions of this epoch are postponed.
    function _postponement(uint64 epoch_) internal view returns (uint256) {
        return _postponed[epoch_];
    }

    /// @dev Whether the epoch is compromised.
    function _isCompromised(uint64 epoch_) internal view returns (bool) {
        return _compromised[epoch_ >> 8] & (1 << (epoch_ & 0xff)) != 0;
    }

    function _onlyCouncil() internal view {
        require(msg.sender == address(COUNCIL), NotCouncil(msg.sender));
    }

    // ------------------------------------------------------------------------------------- private

    function _install(
        uint64 index,
        uint64 epoch_,
        Authority[] memory authorities,
        address guardian_,
        uint256 previousEpochEnds,
        uint64 compromisedSince,
        bytes32 checkpoint
    ) private {
        guardian = guardian_;
        // forge-lint: disable-next-line(unsafe-typecast) -- until the year 36,812
        _previousEpochEnds = uint40(previousEpochEnds);
        emit CommitteeInstalled(
            index, epoch_, authorities, guardian_, previousEpochEnds, compromisedSince, checkpoint
        );
        Committees.install(authorities, epoch_);
    }

    /// @dev Marks the epochs from `first` to before `end` as compromised.
    function _compromise(uint256 first, uint256 end) private {
        while (first < end) {
            uint256 word = first >> 8;
            uint256 bits = type(uint256).max << (first & 0xff);
            first = (word + 1) << 8;
            // In the last word, without the bits from `end` on.
            if (first > end) bits &= (1 << (end & 0xff)) - 1;
            _compromised[word] |= bits;
        }
    }

    function _pauseUntil(uint256 until) private {
        _state = _state.withPause(until);
        // forge-lint: disable-next-line(unsafe-typecast) -- until the year 36,812
        _nextPauseAt = uint40(until + PAUSE_COOLDOWN);
    }

    function _onlyGuardian() private view {
        require(msg.sender == guardian, NotGuardian(msg.sender));
    }

    /// @dev Until when votes of an ended epoch count; zero if they do not.
    function _validUntil(uint64 epoch_, uint64 current) private view returns (uint256) {
        return uint256(epoch_) + 1 == current ? _previousEpochEnds : 0;
    }

    function _requireInstalled(State state, uint64 epoch_) private pure {
        require(epoch_ <= state.epoch(), UnknownEpoch(epoch_));
    }
}

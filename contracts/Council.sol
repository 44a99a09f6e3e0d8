// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Unlocks} from "./base/Unlocks.sol";
import {Announcement, CapRaise, ICouncil} from "./interfaces/ICouncil.sol";
import {Authority, IFastPay} from "./interfaces/IFastPay.sol";
import {Announcements} from "./libraries/Announcements.sol";
import {Blocks} from "./libraries/Blocks.sol";
import {Committees} from "./libraries/Committees.sol";
import {Votes} from "./libraries/Votes.sol";

/// @title Installs committees and unlocks stuck accounts
/// @notice Only the council may install committees, raise deposit caps and decide about numbers on FastPay. It holds no
/// keys and has no owner: it counts votes and enforces delays.
/// @dev The council calls FastPay, precompiles, the block hashes of EIP-2935 and, last, the recipients of bonds. It
/// calls only functions of FastPay that are guarded against re-entry, so no payout can install a committee.
contract Council is Unlocks {
    using Announcements for Announcement;
    using Announcements for CapRaise;

    /// @dev The state of an announcement, in one slot.
    struct Clock {
        uint64 epoch;
        uint40 announcedAt;
        uint40 endorsedAt;
        uint64 maturedBlock;
        bool isRecovery;
    }

    /// @dev The delay with the guardian's endorsement: long enough that its members see the announcement and can sync.
    uint256 private constant SHORT_DELAY = 1 days;

    /// @dev The delay without it: the owners of stolen keys need one day of it to install a committee of their own.
    uint256 private constant LONG_DELAY = 14 days;

    /// @dev An announcement lapses this long after it could be installed without an endorsement.
    uint256 private constant LAPSE = 14 days;

    /// @dev The maximum time from now to an announcement's deadline, so that no old signed announcement turns up.
    uint256 private constant DEADLINE_MAX = 30 days;

    /// @dev A committee without a sign of life for this long counts as lost.
    uint256 private constant RECOVERY_SILENCE = 120 days;

    /// @dev During this time the committee can still send a heartbeat, and users can publish their certificates.
    uint256 private constant RECOVERY_NOTICE = 30 days;

    /// @dev `r (32) ‖ s (32) ‖ v (1)`, and 64 bytes of Ed25519.
    uint256 private constant PROOF_BYTES = 129;

    /// @inheritdoc ICouncil
    address public recovery;

    /// @dev This field and the next are in seconds and last until the year 36,812.
    uint40 private _lastHeartbeat;

    uint40 private _installedAt;

    /// @dev Whether the current epoch may adopt a checkpoint.
    bool private _mayAdopt;

    mapping(bytes32 id => Clock) private _clocks;

    /// @inheritdoc ICouncil
    mapping(uint64 epoch => bytes32) public adopted;

    /// @param fastPay_ The future address of FastPay: it is deployed after its council and refuses the council of
    /// another.
    /// @param recovery_ The address that may announce a recovery; zero for none.
    // slither-disable-next-line missing-zero-check -- zero stands for nobody
    constructor(IFastPay fastPay_, address recovery_) Unlocks(fastPay_) {
        recovery = recovery_;
        _installedAt = _now();
    }

    // ---------------------------------------------------------------------------------- committees

    /// @inheritdoc ICouncil
    function announce(Announcement calldata announcement, bytes calldata proofs, bytes calldata votes)
        external
    {
        uint64 current = FAST_PAY.epoch();
        require(
            announcement.compromisedSince <= announcement.epoch,
            InvalidCompromisedSince(announcement.compromisedSince)
        );
        bytes32 id = _announce(announcement, proofs, current, false);
        _requireQuorum(votes, id, current);
    }

    /// @inheritdoc ICouncil
    function announceRecovery(Announcement calldata announcement, bytes calldata proofs) external {
        require(msg.sender == recovery, NotRecovery(msg.sender));
        uint256 silentAt = (_lastHeartbeat > _installedAt ? _lastHeartbeat : _installedAt) + RECOVERY_SILENCE;
        require(block.timestamp >= silentAt, CommitteeAlive(silentAt));
        require(announcement.compromisedSince == 0, InvalidCompromisedSince(announcement.compromisedSince));
        _announce(announcement, proofs, FAST_PAY.epoch(), true);
    }

    /// @inheritdoc ICouncil
    function endorse(bytes32 id) external {
        require(msg.sender == FAST_PAY.guardian(), IFastPay.NotGuardian(msg.sender));
        Clock memory clock = _open(id);
        require(!clock.isRecovery, RecoveryNotEndorsable(id));
        // slither-disable-next-line incorrect-equality -- zero until it is endorsed
        require(clock.endorsedAt == 0, AlreadyEndorsed(id));
        _clocks[id].endorsedAt = _now();
        emit Endorsed(id);
    }

    /// @inheritdoc ICouncil
    function mature(bytes32 id) external {
        Clock memory clock = _installable(id);
        // slither-disable-next-line incorrect-equality -- zero until it has matured
        require(clock.maturedBlock == 0, AlreadyMatured(id));
        // forge-lint: disable-next-line(unsafe-typecast) -- a block's number
        _clocks[id].maturedBlock = uint64(block.number);
        emit Matured(id, block.number);
    }

    /// @inheritdoc ICouncil
    function install(Announcement calldata announcement, uint256 blockNumber, bytes calldata votes) external {
        bytes32 id = announcementDigest(announcement);
        Clock memory clock = _installable(id);
        require(clock.maturedBlock != 0, NotMatured(id));
        require(blockNumber >= clock.maturedBlock, AcceptedTooEarly(blockNumber, clock.maturedBlock));

        uint64 epoch = announcement.epoch;
        address[] memory voters = _redemptionKeys(announcement.authorities);
        bytes32 digest = acceptanceDigest(epoch, id, Blocks.hashOf(blockNumber));
        Votes.check(votes, digest, voters, Votes.WHOLE_CALL);

        recovery = announcement.recovery;
        _installedAt = _now();
        // A recovery has `compromisedSince` 0, which is below every epoch that it can begin.
        _mayAdopt = announcement.compromisedSince < epoch;
        FAST_PAY.install(
            announcement.authorities,
            announcement.guardian,
            announcement.compromisedSince,
            announcement.checkpoint
        );
    }

    // -------------------------------------------------------------------------------- deposit caps

    /// @inheritdoc ICouncil
    function announceCap(CapRaise calldata raise, bytes calldata votes) external {
        uint64 current = FAST_PAY.epoch();
        require(raise.epoch == current, WrongEpoch(raise.epoch, current));
        _requireTimely(raise.deadline);
        bytes32 id = capRaiseDigest(raise);
        _startClock(id, current, false);
        _requireQuorum(votes, id, current);
        emit CapAnnounced(id, raise);
    }

    /// @inheritdoc ICouncil
    function raiseCap(CapRaise calldata raise) external {
        _installable(capRaiseDigest(raise));
        FAST_PAY.setCap(raise.asset, raise.cap);
    }

    // --------------------------------------------------------------------- signs of life, recovery

    /// @inheritdoc ICouncil
    function heartbeat(uint256 blockNumber, bytes calldata votes) external {
        uint64 current = FAST_PAY.epoch();
        _requireQuorum(votes, heartbeatDigest(current, Blocks.hashOf(blockNumber)), current);
        _lastHeartbeat = _now();
        emit HeartbeatReceived(current);
    }

    /// @inheritdoc ICouncil
    function adopt(bytes32 checkpoint, bytes calldata votes) external {
        uint64 current = FAST_PAY.epoch();
        require(_mayAdopt, NothingToAdopt(current));
        require(checkpoint != 0, ZeroCheckpoint());
        _requireQuorum(votes, adoptionDigest(current, checkpoint), current);
        _mayAdopt = false;
        adopted[current] = checkpoint;
        emit CheckpointAdopted(current, checkpoint);
    }

    // --------------------------------------------------------------------------------------- views

    /// @inheritdoc ICouncil
    function fastPay() external view returns (IFastPay) {
        return FAST_PAY;
    }

    /// @inheritdoc ICouncil
    function lastHeartbeat() external view returns (uint256) {
        return _lastHeartbeat;
    }

    /// @inheritdoc ICouncil
    function installedAt() external view returns (uint256) {
        return _installedAt;
    }

    /// @inheritdoc ICouncil
    function clockOf(bytes32 id)
        external
        view
        returns (
            uint64 epoch,
            uint256 announcedAt,
            uint256 endorsedAt,
            uint256 installableAt,
            uint256 lapsesAt,
            uint256 maturedBlock,
            bool isRecovery
        )
    {
        Clock memory clock = _clocks[id];
        if (clock.epoch != 0) {
            installableAt = _installableAt(clock);
            lapsesAt = _lapsesAt(clock);
        }
        return (
            clock.epoch,
            clock.announcedAt,
            clock.endorsedAt,
            installableAt,
            lapsesAt,
            clock.maturedBlock,
            clock.isRecovery
        );
    }

    /// @inheritdoc ICouncil
    function announcementDigest(Announcement calldata announcement) public view returns (bytes32) {
        return _digest(announcement.hash());
    }

    /// @inheritdoc ICouncil
    function possessionDigest(Authority calldata authority) public view returns (bytes32) {
        return _digest(Announcements.possession(authority));
    }

    /// @inheritdoc ICouncil
    function acceptanceDigest(uint64 epoch, bytes32 announcement, bytes32 blockHash)
        public
        view
        returns (bytes32)
    {
        return _digest(Announcements.acceptance(epoch, announcement, blockHash));
    }

    /// @inheritdoc ICouncil
    function capRaiseDigest(CapRaise calldata raise) public view returns (bytes32) {
        return _digest(raise.hash());
    }

    /// @inheritdoc ICouncil
    function heartbeatDigest(uint64 epoch, bytes32 blockHash) public view returns (bytes32) {
        return _digest(Announcements.heartbeat(epoch, blockHash));
    }

    /// @inheritdoc ICouncil
    function adoptionDigest(uint64 epoch, bytes32 checkpoint) public view returns (bytes32) {
        return _digest(Announcements.adoption(epoch, checkpoint));
    }

    // ------------------------------------------------------------------------- internal and private

    /// @inheritdoc Unlocks
    function _epochBegan() internal view override returns (uint256) {
        return _installedAt;
    }

    /// @dev Checks an announcement of any kind and starts its clock.
    function _announce(
        Announcement calldata announcement,
        bytes calldata proofs,
        uint64 current,
        bool isRecovery
    ) private returns (bytes32 id) {
        require(announcement.epoch == current + 1, WrongEpoch(announcement.epoch, current + 1));
        _requireTimely(announcement.deadline);
        // slither-disable-next-line unused-return -- it reverts, or all is well
        Committees.check(announcement.authorities);
        _requirePossession(announcement.authorities, proofs);
        id = announcementDigest(announcement);
        _startClock(id, current, isRecovery);
        emit CommitteeAnnounced(id, announcement, proofs);
    }

    function _startClock(bytes32 id, uint64 current, bool isRecovery) private {
        // slither-disable-next-line incorrect-equality -- zero until it is announced
        require(_clocks[id].epoch == 0, AlreadyAnnounced(id));
        _clocks[id] = Clock({
            epoch: current + 1, announcedAt: _now(), endorsedAt: 0, maturedBlock: 0, isRecovery: isRecovery
        });
    }

    /// @dev The clock of an announcement that can be installed now.
    function _installable(bytes32 id) private view returns (Clock memory clock) {
        clock = _open(id);
        uint256 installableAt = _installableAt(clock);
        require(block.timestamp >= installableAt, NotInstallable(id, installableAt));
    }

    /// @dev The clock of an announcement that has neither ended nor lapsed.
    function _open(bytes32 id) private view returns (Clock memory clock) {
        clock = _clocks[id];
        require(clock.epoch != 0, NotAnnounced(id));
        bool cancelled = clock.isRecovery && clock.announcedAt <= _lastHeartbeat;
        // slither-disable-next-line incorrect-equality -- an epoch is a number that the contract counts
        require(clock.epoch == FAST_PAY.epoch() + 1 && !cancelled, AnnouncementEnded(id));
        uint256 lapsesAt = _lapsesAt(clock);
        require(block.timestamp <= lapsesAt, AnnouncementLapsed(id, lapsesAt));
    }

    function _requireQuorum(bytes calldata votes, bytes32 digest, uint64 epoch) private view {
        Votes.check(votes, digest, Committees.redemptionKeys(address(FAST_PAY), epoch), Votes.WHOLE_CALL);
    }

    /// @dev Checks that each redemption key signed. The authorities check the Ed25519 half before they vote.
    function _requirePossession(Authority[] calldata authorities, bytes calldata proofs) private view {
        uint256 length = authorities.length * PROOF_BYTES;
        require(proofs.length == length, WrongProofsLength(proofs.length, length));
        for (uint256 i = 0; i < authorities.length; ++i) {
            address signer = _signer(possessionDigest(authorities[i]), proofs[i * PROOF_BYTES:]);
            // `ecrecover` returns zero for an invalid signature, and no key is zero.
            require(signer == authorities[i].redemptionKey, NoPossession(i));
        }
    }

    /// @dev The digest of a committee that was checked when it was announced.
    function _redemptionKeys(Authority[] calldata authorities) private pure returns (address[] memory keys) {
        keys = new address[](authorities.length);
        for (uint256 i = 0; i < keys.length; ++i) {
            keys[i] = authorities[i].redemptionKey;
        }
    }

    function _requireTimely(uint64 deadline) private view {
        uint256 latest = block.timestamp + DEADLINE_MAX;
        require(deadline >= block.timestamp && deadline <= latest, InvalidDeadline(deadline, latest));
    }

    function _installableAt(Clock memory clock) private pure returns (uint256) {
        if (clock.isRecovery) return clock.announcedAt + RECOVERY_NOTICE;
        uint256 unendorsed = clock.announcedAt + LONG_DELAY;
        uint256 endorsed = clock.endorsedAt + SHORT_DELAY;
        return clock.endorsedAt != 0 && endorsed < unendorsed ? endorsed : unendorsed;
    }

    /// @dev An endorsement does not change it, so a stolen guardian key takes no time from those who replace it.
    function _lapsesAt(Clock memory clock) private pure returns (uint256) {
        return clock.announcedAt + (clock.isRecovery ? RECOVERY_NOTICE : LONG_DELAY) + LAPSE;
    }

    function _now() private view returns (uint40) {
        // forge-lint: disable-next-line(unsafe-typecast) -- until the year 36,812
        return uint40(block.timestamp);
    }
}

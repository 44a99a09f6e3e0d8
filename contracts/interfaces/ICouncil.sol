// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "./IFastPay.sol";

/// @notice The next committee, as a quorum of the current one announces it.
/// @param epoch The epoch that it would begin: the current epoch + 1.
/// @param authorities 4 to 255 members, sorted by voting key.
/// @param guardian The next guardian; zero for nobody.
/// @param recovery The address that may announce a recovery from then on; zero for none. It may be a contract.
/// @param compromisedSince The first epoch whose keys were compromised; `epoch` for none.
/// @param checkpoint The digest of a certified checkpoint; zero for none.
/// @param deadline Unix seconds. The announcement must reach the contract by then; 30 days ahead at most.
struct Announcement {
    uint64 epoch;
    Authority[] authorities;
    address guardian;
    address recovery;
    uint64 compromisedSince;
    bytes32 checkpoint;
    uint64 deadline;
}

/// @notice A higher deposit cap, as a quorum of the current committee announces it.
/// @param epoch The current epoch.
/// @param asset The ERC-20, zero for ETH.
/// @param cap See `IFastPay.depositCap`.
/// @param deadline As in an announcement.
struct CapRaise {
    uint64 epoch;
    address asset;
    uint128 cap;
    uint64 deadline;
}

/// @notice The outcome of an unlock request.
enum Outcome {
    None,
    Upheld,
    Voided
}

/// @notice An order to uphold.
/// @param digest The EIP-712 digest of the order, which its sender signed.
/// @param votes The votes of a quorum of the current epoch for `certificateVoteDigest`.
struct Upholding {
    bytes32 account;
    uint64 sequence;
    bytes32 digest;
    bytes votes;
}

/// @title Installs committees and unlocks stuck accounts
/// @notice A quorum of the current committee announces the next one. It can be installed one day after the guardian's
/// endorsement, or 14 days after the announcement without it, and only if a quorum of the new committee accepts. If a
/// committee is silent for 120 days, the recovery address can announce one that can be installed 30 days later.
/// @dev Several announcements may be open at a time. None supersedes another, and none can be vetoed. An installation
/// ends all announcements of its epoch. All statements are signed under FastPay's EIP-712 domain. Votes are packed as
/// those of a redemption (`CertifiedRedemption`) and revert with the errors of `IFastPay`. A pause stops only
/// `voidSequence`.
///
/// An account is stuck if its owner signed two orders for one number. The owner, or anybody for her, requests an
/// unlock. Then a quorum upholds the order that has a certificate, or voids the number. FastPay logs and numbers the
/// events.
interface ICouncil {
    // ------------------------------------------------------------------------------------------ events

    /// @notice A committee was announced; `clockOf(id)` says when it can be installed, and whether it is a recovery.
    /// @param id The EIP-712 digest of the announcement.
    /// @param proofs See `announce`. The contract did not check the Ed25519 signatures in them.
    event CommitteeAnnounced(bytes32 indexed id, Announcement announcement, bytes proofs);

    /// @notice A higher deposit cap was announced.
    /// @param id The EIP-712 digest of the raise.
    event CapAnnounced(bytes32 indexed id, CapRaise raise);

    /// @notice The guardian endorsed the announcement `id`.
    event Endorsed(bytes32 indexed id);

    /// @notice The committee that was announced under `id` can be installed, with acceptances that name block
    /// `blockNumber` or a later one.
    event Matured(bytes32 indexed id, uint256 blockNumber);

    /// @notice A quorum of `epoch` sent a heartbeat. All announcements of a recovery ended.
    event HeartbeatReceived(uint64 indexed epoch);

    /// @notice A quorum of `epoch` fixed the rebuilt checkpoint from which its members start.
    event CheckpointAdopted(uint64 indexed epoch, bytes32 checkpoint);

    // ------------------------------------------------------------------------------------------ errors

    /// @notice The statement is for `epoch`, and only statements for `expected` count now.
    error WrongEpoch(uint64 epoch, uint64 expected);

    /// @notice `compromisedSince` is after the epoch that would begin, or not zero in a recovery.
    error InvalidCompromisedSince(uint64 compromisedSince);

    /// @notice The statement's `deadline` has passed, or is after `latest`.
    error InvalidDeadline(uint64 deadline, uint256 latest);

    /// @notice `proofs` does not have one proof for each member.
    error WrongProofsLength(uint256 length, uint256 expected);

    /// @notice The redemption key of the authority at `member` did not sign its `possessionDigest`.
    error NoPossession(uint256 member);

    /// @notice The same announcement exists. Change the deadline to announce it again.
    error AlreadyAnnounced(bytes32 id);

    /// @notice Nothing was announced under `id`.
    error NotAnnounced(bytes32 id);

    /// @notice The announcement `id` has ended: an epoch has begun since, or a quorum has sent a heartbeat since a
    /// recovery was announced.
    error AnnouncementEnded(bytes32 id);

    /// @notice The announcement `id` lapsed at `lapsedAt`.
    error AnnouncementLapsed(bytes32 id, uint256 lapsedAt);

    /// @notice The guardian has already endorsed `id`.
    error AlreadyEndorsed(bytes32 id);

    /// @notice `id` is a recovery, which an endorsement does not shorten.
    error RecoveryNotEndorsable(bytes32 id);

    /// @notice The announcement `id` can be installed from `installableAt` on.
    error NotInstallable(bytes32 id, uint256 installableAt);

    /// @notice `mature` has already been called for `id`.
    error AlreadyMatured(bytes32 id);

    /// @notice Call `mature(id)` first.
    error NotMatured(bytes32 id);

    /// @notice The acceptance names a block before `maturedBlock`.
    error AcceptedTooEarly(uint256 blockNumber, uint256 maturedBlock);

    /// @notice The chain does not know the hash of the block: it is too old, or does not exist yet.
    error UnknownBlock(uint256 blockNumber);

    /// @notice `caller` is not the recovery address.
    error NotRecovery(address caller);

    /// @notice The committee counts as alive until `silentAt`.
    error CommitteeAlive(uint256 silentAt);

    /// @notice The epoch cannot adopt a checkpoint: it was installed without recovery and without compromised epochs,
    /// or it has adopted one.
    error NothingToAdopt(uint64 epoch);

    /// @notice The checkpoint is zero.
    error ZeroCheckpoint();

    /// @notice The number `sequence` of `account` has its outcome.
    error AlreadyDecided(bytes32 account, uint64 sequence);

    /// @notice The account's owner has already requested the unlock of the number.
    error AlreadyRequested(bytes32 account, uint64 sequence);

    /// @notice Nobody has requested the unlock of the number.
    error NotRequested(bytes32 account, uint64 sequence);

    /// @notice The caller is not the owner of the Ethereum account, and `authorization` is not the signature of its
    /// key.
    error NotOwner(bytes32 account);

    /// @notice `authorization` is longer than `max`.
    error AuthorizationTooLong(uint256 length, uint256 max);

    /// @notice The first request of a number must send `unlockBond`, a further one nothing.
    error WrongBond(uint256 sent, uint256 expected);

    /// @notice The number can be voided with these votes from `voidableFrom` on.
    error NotVoidable(bytes32 account, uint64 sequence, uint256 voidableFrom);

    /// @notice There is no bond to return: the number is not voided, or the bond was paid.
    error NoBond(bytes32 account, uint64 sequence);

    /// @notice `to` refused the bond.
    error BondRefused(address to);

    // -------------------------------------------------------------------------------------- committees

    /// @notice Announces the next committee. Anyone may call.
    /// @param proofs For each member in order 129 bytes: `r (32) ‖ s (32) ‖ v (1)` by its redemption key, and an
    /// Ed25519 signature (64) by its voting key, both of its `possessionDigest`.
    /// @param votes The votes of a quorum of the current epoch for `announcementDigest`.
    function announce(Announcement calldata announcement, bytes calldata proofs, bytes calldata votes)
        external;

    /// @notice Announces a committee that replaces one that has been silent for 120 days. Only for the recovery
    /// address.
    /// @param announcement Its `compromisedSince` is 0: no vote of an earlier epoch counts once it is installed.
    /// @param proofs As in `announce`.
    function announceRecovery(Announcement calldata announcement, bytes calldata proofs) external;

    /// @notice Shortens the delay of the announcement `id`. Only for FastPay's guardian.
    function endorse(bytes32 id) external;

    /// @notice Records the block in which a committee is found installable. Its members sign their acceptance after
    /// that. Anyone may call.
    function mature(bytes32 id) external;

    /// @notice Installs a committee. Anyone may call.
    /// @param announcement What was announced and has matured.
    /// @param blockNumber The block that the acceptances name: the one of `mature` or a later one.
    /// @param votes The votes of a quorum of the new committee for `acceptanceDigest`.
    function install(Announcement calldata announcement, uint256 blockNumber, bytes calldata votes) external;

    // ------------------------------------------------------------------------------------ deposit caps

    /// @notice Announces a higher deposit cap. Anyone may call.
    /// @param votes The votes of a quorum of the current epoch for `capRaiseDigest`.
    function announceCap(CapRaise calldata raise, bytes calldata votes) external;

    /// @notice Raises a deposit cap, after the delay of an installation. Anyone may call.
    function raiseCap(CapRaise calldata raise) external;

    // ------------------------------------------------------------------------------ signs of life, recovery

    /// @notice Shows that a quorum is active. Ends all announced recoveries and restarts the 120 days. Anyone may call.
    /// @param blockNumber A recent block. Its hash is part of the signed statement.
    /// @param votes The votes of a quorum of the current epoch for `heartbeatDigest`.
    function heartbeat(uint256 blockNumber, bytes calldata votes) external;

    /// @notice Fixes the rebuilt checkpoint from which the members of the current epoch start. This is possible once,
    /// and only in an epoch that a recovery installed or that names compromised epochs. Anyone may call.
    /// @param votes The votes of a quorum of the current epoch for `adoptionDigest`.
    function adopt(bytes32 checkpoint, bytes calldata votes) external;

    // --------------------------------------------------------------------------------------- unlocking

    /// @notice Requests the unlock of a number. The call sends `unlockBond`, which is returned if the number is voided.
    /// Anyone may call with the owner's authorization. A request after a stranger's needs no bond.
    /// @param authorization For an Ethereum account: empty if the caller is the account, else `r (32) ‖ s (32) ‖ v (1)`
    /// by its key for `unlockRequestDigest`. For any other account: at most 512 bytes, which the authorities verify.
    function requestUnlock(bytes32 account, uint64 sequence, bytes calldata authorization) external payable;

    /// @notice Upholds the order with `digest`: no other order of the number is valid. The number must have a request;
    /// it may be redeemed already. Anyone may call, and the caller gets the bond. If a later installation marks the
    /// epoch as compromised, the number is open again, without a bond.
    /// @param votes The votes of a quorum of the current epoch for `certificateVoteDigest`.
    function upholdSequence(bytes32 account, uint64 sequence, bytes32 digest, bytes calldata votes) external;

    /// @notice Like `upholdSequence`, for several numbers. A number that has its outcome is skipped.
    function upholdMany(Upholding[] calldata items) external;

    /// @notice Voids a number with a request: no order of it is valid, and it is spent. Anyone may call. The payer gets
    /// the bond back.
    /// @param unanimous False for the votes of a quorum, which count from `voidableFrom` on. True for the votes of all
    /// members, which count from `unanimousFrom` on.
    /// @param votes The votes of members of the current epoch for `voidVoteDigest`.
    function voidSequence(bytes32 account, uint64 sequence, bool unanimous, bytes calldata votes) external;

    /// @notice Pays the bond of a voided number to a payer that refused it before. Anyone may call.
    function returnBond(bytes32 account, uint64 sequence) external;

    // ------------------------------------------------------------------------------------------- views

    /// @notice The bond that the first request of a number must send, in wei.
    function unlockBond() external view returns (uint256);

    /// @notice The unlock request and the outcome of a number.
    /// @return outcome The outcome; `None` also if the number is open again.
    /// @return voidableFrom The time from which a quorum can void it; zero without a request.
    /// @return payer The address that gets the bond back if the number is voided; zero if the bond was paid.
    function unlockOf(bytes32 account, uint64 sequence)
        external
        view
        returns (Outcome outcome, uint256 voidableFrom, address payer);

    /// @notice The time from which all members of the current epoch together can void a number at once.
    function unanimousFrom() external view returns (uint256);

    /// @notice The FastPay contract of these committees.
    function fastPay() external view returns (IFastPay);

    /// @notice The address that may announce a recovery; zero for none.
    function recovery() external view returns (address);

    /// @notice The time of the last heartbeat; zero if there was none.
    function lastHeartbeat() external view returns (uint256);

    /// @notice The time at which the current epoch began.
    function installedAt() external view returns (uint256);

    /// @notice The checkpoint that `epoch` adopted; zero for none.
    function adopted(uint64 epoch) external view returns (bytes32);

    /// @notice The state of the announcement `id`; all zero if there is none.
    /// @return epoch The announcement ends when this epoch begins. A committee's announcement would begin it.
    /// @return announcedAt The time of the announcement.
    /// @return endorsedAt The time of the guardian's endorsement; zero for none.
    /// @return installableAt The time from which `mature`, `install` and the raise of a cap are possible.
    /// @return lapsesAt The time after which they are not. An endorsement does not change it.
    /// @return maturedBlock The block of `mature`; zero for none.
    /// @return isRecovery Whether the recovery address announced it.
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
        );

    /// @notice The EIP-712 digest that a member of the current committee signs to announce the next one. It is the
    /// announcement's id.
    function announcementDigest(Announcement calldata announcement) external view returns (bytes32);

    /// @notice The EIP-712 digest that both keys of an authority sign to show that it has them.
    function possessionDigest(Authority calldata authority) external view returns (bytes32);

    /// @notice The EIP-712 digest that a member of the next committee signs once it is ready to begin.
    function acceptanceDigest(uint64 epoch, bytes32 announcement, bytes32 blockHash)
        external
        view
        returns (bytes32);

    /// @notice The EIP-712 digest that a member of the current committee signs to announce a cap. It is the raise's id.
    function capRaiseDigest(CapRaise calldata raise) external view returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs as a heartbeat.
    function heartbeatDigest(uint64 epoch, bytes32 blockHash) external view returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs to adopt a checkpoint.
    function adoptionDigest(uint64 epoch, bytes32 checkpoint) external view returns (bytes32);

    /// @notice The EIP-712 digest that the owner of an account signs to request the unlock of a number.
    function unlockRequestDigest(bytes32 account, uint64 sequence) external view returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs if it knows the certificate of the
    /// order with `digest`.
    function certificateVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bytes32 digest)
        external
        view
        returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs if it knows no certificate of the
    /// number, and will execute none that is not upheld.
    /// @param unanimous Whether the vote counts only together with those of all members.
    function voidVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bool unanimous)
        external
        view
        returns (bytes32);
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "./IFastPay.sol";

/// @notice The next committee, as a quorum of the current one announces it.
/// @param epoch The epoch that it would begin: the current one and 1.
/// @param authorities 4 to 255 members, sorted by voting key.
/// @param guardian The next guardian; zero for nobody.
/// @param recovery May announce a recovery from then on, and may be a contract; zero for nobody.
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
/// @param deadline As of an announcement.
struct CapRaise {
    uint64 epoch;
    address asset;
    uint128 cap;
    uint64 deadline;
}

/// @notice What became of a number that its owner asked about.
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

/// @title How committees follow one another, and stuck accounts are unlocked
/// @notice A quorum of the current committee announces the next one. It can be installed one day after the guardian's
/// endorsement, or 14 days after the announcement without it, and only if a quorum of the new committee accepts. If a
/// committee is silent for 120 days, the recovery address can announce one that can be installed 30 days later.
/// @dev Announcements are a set. None supersedes another, and none can be vetoed: an installation ends all of its epoch.
/// All statements are signed under FastPay's EIP-712 domain. Votes are packed as those of a redemption
/// (`CertifiedRedemption`), and refused with the errors of `IFastPay`. A pause stops nothing here but `voidSequence`.
///
/// An account is stuck if its owner signed two orders for one number. The owner, or anybody for her, requests an unlock.
/// Then a quorum upholds the order that has a certificate, or voids the number. FastPay logs and numbers the events.
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

    /// @notice The committee that was announced under `id` can be installed, with acceptances that name block `blockNumber`
    /// or a later one.
    event Matured(bytes32 indexed id, uint256 blockNumber);

    /// @notice A quorum of `epoch` gave a sign of life. All announcements of a recovery ended.
    event HeartbeatReceived(uint64 indexed epoch);

    /// @notice A quorum of `epoch` fixed the rebuilt checkpoint from which its members start.
    event CheckpointAdopted(uint64 indexed epoch, bytes32 checkpoint);

    // ------------------------------------------------------------------------------------------ errors

    /// @notice The statement is for `epoch`, and only one for `expected` counts now.
    error WrongEpoch(uint64 epoch, uint64 expected);

    /// @notice `compromisedSince` is after the epoch that would begin, or not zero in a recovery.
    error InvalidCompromisedSince(uint64 compromisedSince);

    /// @notice The statement's `deadline` has passed, or is after `latest`.
    error InvalidDeadline(uint64 deadline, uint256 latest);

    /// @notice `proofs` is not exactly one for each member.
    error WrongProofsLength(uint256 length, uint256 expected);

    /// @notice The redemption key of the authority at `member` did not sign its `possessionDigest`.
    error NoPossession(uint256 member);

    /// @notice The same announcement exists. Change the deadline to announce it again.
    error AlreadyAnnounced(bytes32 id);

    /// @notice Nothing was announced under `id`.
    error NotAnnounced(bytes32 id);

    /// @notice What was announced under `id` has ended: an epoch has begun since, or, of a recovery, a quorum showed that
    /// it is there.
    error AnnouncementEnded(bytes32 id);

    /// @notice What was announced under `id` was to be installed until `lapsedAt`.
    error AnnouncementLapsed(bytes32 id, uint256 lapsedAt);

    /// @notice The guardian endorsed `id` before.
    error AlreadyEndorsed(bytes32 id);

    /// @notice `id` is a recovery, which an endorsement does not shorten.
    error RecoveryNotEndorsable(bytes32 id);

    /// @notice What was announced under `id` can be installed from `installableAt` on.
    error NotInstallable(bytes32 id, uint256 installableAt);

    /// @notice `mature` was called for `id` before.
    error AlreadyMatured(bytes32 id);

    /// @notice Call `mature(id)` first.
    error NotMatured(bytes32 id);

    /// @notice The acceptance names a block before `maturedBlock`.
    error AcceptedTooEarly(uint256 blockNumber, uint256 maturedBlock);

    /// @notice The hash of the block is not known on the chain: it is too old, or not there yet.
    error UnknownBlock(uint256 blockNumber);

    /// @notice `caller` is not the recovery address.
    error NotRecovery(address caller);

    /// @notice The committee counts as alive until `silentAt`.
    error CommitteeAlive(uint256 silentAt);

    /// @notice The epoch cannot adopt a checkpoint: it was installed without recovery and without compromised epochs, or
    /// it has adopted one.
    error NothingToAdopt(uint64 epoch);

    /// @notice The checkpoint is zero.
    error ZeroCheckpoint();

    /// @notice `account` and `sequence` have their outcome.
    error AlreadyDecided(bytes32 account, uint64 sequence);

    /// @notice The unlock of the number is requested already, by the account's owner.
    error AlreadyRequested(bytes32 account, uint64 sequence);

    /// @notice Nobody has requested the unlock of the number.
    error NotRequested(bytes32 account, uint64 sequence);

    /// @notice The caller is not the owner of the Ethereum account, and `authorization` is not the signature of its key.
    error NotOwner(bytes32 account);

    /// @notice `authorization` is longer than `max`.
    error AuthorizationTooLong(uint256 length, uint256 max);

    /// @notice The first request of a number comes with `unlockBond`, a further one with nothing.
    error WrongBond(uint256 sent, uint256 expected);

    /// @notice The number can be voided in this way from `voidableFrom` on.
    error NotVoidable(bytes32 account, uint64 sequence, uint256 voidableFrom);

    /// @notice There is no bond to return: the number is not voided, or the bond was paid.
    error NoBond(bytes32 account, uint64 sequence);

    /// @notice `to` did not take the bond.
    error BondRefused(address to);

    // -------------------------------------------------------------------------------------- committees

    /// @notice Announces the next committee. Anyone may call.
    /// @param proofs For each member in order 129 bytes: `r (32) ‖ s (32) ‖ v (1)` by its redemption key, and an Ed25519
    /// signature (64) by its voting key, both of its `possessionDigest`.
    /// @param votes The votes of a quorum of the current epoch for `announcementDigest`.
    function announce(Announcement calldata announcement, bytes calldata proofs, bytes calldata votes)
        external;

    /// @notice Announces a committee that replaces one that has been silent for 120 days. Only for the recovery
    /// address.
    /// @param announcement Its `compromisedSince` is 0: no vote of an earlier epoch counts once it is installed.
    /// @param proofs As of `announce`.
    function announceRecovery(Announcement calldata announcement, bytes calldata proofs) external;

    /// @notice Shortens the delay of the announcement `id`. Only for FastPay's guardian.
    function endorse(bytes32 id) external;

    /// @notice Records the block in which a committee is found installable. Its members sign their acceptance after that.
    /// Anyone may call.
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

    /// @notice Shows that a quorum is there: ends all recoveries that were announced, and restarts the 120 days. Anyone may
    /// call.
    /// @param blockNumber A recent block. Its hash is part of the signed statement.
    /// @param votes The votes of a quorum of the current epoch for `heartbeatDigest`.
    function heartbeat(uint256 blockNumber, bytes calldata votes) external;

    /// @notice Fixes the rebuilt checkpoint from which the members of the current epoch start. Once, and only in an epoch
    /// that a recovery installed or that says since when keys were out. Anyone may call.
    /// @param votes The votes of a quorum of the current epoch for `adoptionDigest`.
    function adopt(bytes32 checkpoint, bytes calldata votes) external;

    // --------------------------------------------------------------------------------------- unlocking

    /// @notice Asks for the unlock of a number, with `unlockBond`, which comes back if the number is voided. Anyone may call
    /// with the owner's authorization. A number that was asked about by a stranger is asked about again without a bond.
    /// @param authorization Of an Ethereum account: nothing if the caller is the account, else `r (32) ‖ s (32) ‖ v (1)` by
    /// its key, of `unlockRequestDigest`. Of any other account at most 512 bytes, which the authorities judge.
    function requestUnlock(bytes32 account, uint64 sequence, bytes calldata authorization) external payable;

    /// @notice Decides that the order with `digest` holds under a number that was asked about, whether or not it has been
    /// redeemed. Anyone may call, and gets the bond. If keys of the epoch were out, as a later installation says, the
    /// number is open again, without a bond.
    /// @param votes The votes of a quorum of the current epoch for `certificateVoteDigest`.
    function upholdSequence(bytes32 account, uint64 sequence, bytes32 digest, bytes calldata votes) external;

    /// @notice As `upholdSequence`, for several numbers. One that has its outcome is left out.
    function upholdMany(Upholding[] calldata items) external;

    /// @notice Decides that no order holds under a number that was asked about, and spends it. Anyone may call. The bond goes
    /// back to who paid it.
    /// @param unanimous False: from `voidableFrom` on, with the votes of a quorum. True: at once, with the votes of all
    /// members, from `unanimousFrom` on.
    /// @param votes Of members of the current epoch for `voidVoteDigest`.
    function voidSequence(bytes32 account, uint64 sequence, bool unanimous, bytes calldata votes) external;

    /// @notice Pays the bond of a voided number to a payer that refused it before. Anyone may call.
    function returnBond(bytes32 account, uint64 sequence) external;

    // ------------------------------------------------------------------------------------------- views

    /// @notice What the first request of a number comes with, in wei.
    function unlockBond() external view returns (uint256);

    /// @notice What is known of a number.
    /// @return outcome What was decided; `None`, too, where the number is open again.
    /// @return voidableFrom From then on a quorum can void it; zero if nobody has asked.
    /// @return payer Who gets the bond back if the number is voided; zero if the bond was paid.
    function unlockOf(bytes32 account, uint64 sequence)
        external
        view
        returns (Outcome outcome, uint256 voidableFrom, address payer);

    /// @notice From then on all members of the current epoch together can void a number at once.
    function unanimousFrom() external view returns (uint256);

    /// @notice The FastPay contract of these committees.
    function fastPay() external view returns (IFastPay);

    /// @notice May announce a recovery; zero for nobody.
    function recovery() external view returns (address);

    /// @notice When a quorum last showed that it was there; zero if none has.
    function lastHeartbeat() external view returns (uint256);

    /// @notice When the current epoch began.
    function installedAt() external view returns (uint256);

    /// @notice The checkpoint that `epoch` adopted; zero for none.
    function adopted(uint64 epoch) external view returns (bytes32);

    /// @notice The times of the announcement `id`; all zero if there is none.
    /// @return epoch Its beginning ends the announcement. For a committee it is the epoch that it would begin itself.
    /// @return announcedAt The time of the announcement.
    /// @return endorsedAt The time of the guardian's endorsement; zero for none.
    /// @return installableAt From then on it can be matured and installed, or the cap be raised.
    /// @return lapsesAt After that it cannot any more. An endorsement does not change it.
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

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs as a sign of life.
    function heartbeatDigest(uint64 epoch, bytes32 blockHash) external view returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs to adopt a checkpoint.
    function adoptionDigest(uint64 epoch, bytes32 checkpoint) external view returns (bytes32);

    /// @notice The EIP-712 digest that the owner of an account signs to ask for the unlock of a number.
    function unlockRequestDigest(bytes32 account, uint64 sequence) external view returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs who knows the certificate of the order with
    /// `digest`.
    function certificateVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bytes32 digest)
        external
        view
        returns (bytes32);

    /// @notice The EIP-712 digest that a member of the committee of `epoch` signs who knows of no certificate under the
    /// number, and will execute none that is not upheld.
    /// @param unanimous Whether the vote counts only together with those of all members.
    function voidVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bool unanimous)
        external
        view
        returns (bytes32);
}

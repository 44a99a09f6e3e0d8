//! The contracts that FastPay calls, as Solidity declares them, and the conversion of core's types to theirs.
//!
//! `IFastPay` and `ICouncil` repeat `contracts/interfaces/`; a test compares the selectors of both.

use fastpay_core::{Announcement, Authority, Certificate, Committee, Redemption, Transfer, encode_redemption_votes};

#[allow(missing_docs, clippy::too_many_arguments, clippy::indexing_slicing, clippy::unwrap_used)]
mod abi {
    alloy::sol! {
        #[derive(Debug, PartialEq, Eq)]
        struct Authority {
            bytes32 votingKey;
            address redemptionKey;
        }

        #[derive(Debug, PartialEq, Eq)]
        struct Redemption {
            bytes32 sender;
            address recipient;
            address asset;
            uint128 amount;
            uint128 fee;
            uint64 sequence;
            bytes32 memo;
        }

        #[derive(Debug, PartialEq, Eq)]
        struct CertifiedRedemption {
            Redemption redemption;
            uint64 epoch;
            bytes votes;
        }

        #[derive(Debug, PartialEq, Eq)]
        struct SafetyParameters {
            uint32 pauseDuration;
            uint32 pauseCooldown;
            uint32 outflowWindow;
            uint16 outflowShare;
            uint32 outflowDelay;
            uint32 votesValidity;
            uint32 unlockWindow;
        }

        #[derive(Debug, PartialEq, Eq)]
        struct AssetCap {
            address asset;
            uint128 cap;
        }

        #[derive(Debug, PartialEq, Eq)]
        struct Announcement {
            uint64 epoch;
            Authority[] authorities;
            address guardian;
            address recovery;
            uint64 compromisedSince;
            bytes32 checkpoint;
            uint64 deadline;
        }

        #[derive(Debug, PartialEq, Eq)]
        struct CapRaise {
            uint64 epoch;
            address asset;
            uint128 cap;
            uint64 deadline;
        }

        #[derive(Debug, PartialEq, Eq)]
        enum Outcome {
            None,
            Upheld,
            Voided
        }

        #[derive(Debug, PartialEq, Eq)]
        struct Upholding {
            bytes32 account;
            uint64 sequence;
            bytes32 digest;
            bytes votes;
        }

        #[derive(Debug, PartialEq, Eq)]
        interface IFastPay {
            event CommitteeInstalled(
                uint64 indexed index,
                uint64 indexed epoch,
                Authority[] authorities,
                address guardian,
                uint256 previousEpochEnds,
                uint64 compromisedSince,
                bytes32 checkpoint
            );
            event Paused(uint256 until);
            event Unpaused();
            event Postponed(uint64 epoch, uint256 total);
            event CapRaised(address indexed asset, uint256 cap);
            event Funded(
                uint64 indexed index, bytes32 indexed recipient, address indexed asset, uint128 amount, address payer
            );
            event Redeemed(
                bytes32 indexed sender,
                address indexed recipient,
                address indexed asset,
                uint64 index,
                uint64 sequence,
                uint128 amount,
                uint128 fee,
                address relayer,
                bytes32 digest
            );
            event RedemptionQueued(
                bytes32 indexed sender,
                address indexed recipient,
                address indexed asset,
                uint64 index,
                uint64 sequence,
                uint128 amount,
                uint128 fee,
                address relayer,
                bytes32 digest,
                uint64 epoch,
                uint256 executableAt
            );
            event RedemptionReleased(bytes32 indexed sender, uint64 index, uint64 sequence, bytes32 digest);
            event UnlockRequested(
                uint64 indexed index,
                bytes32 indexed account,
                uint64 sequence,
                uint256 voidableFrom,
                bytes authorization
            );
            event SequenceUpheld(uint64 indexed index, bytes32 indexed account, uint64 sequence, bytes32 digest);
            event SequenceVoided(uint64 indexed index, bytes32 indexed account, uint64 sequence);
            event RedemptionSkipped(bytes32 indexed sender, uint64 sequence);
            event ClaimCreated(address indexed owner, address indexed asset, uint256 amount);
            event Claimed(address indexed owner, address indexed asset, address indexed to, uint256 amount);

            error InvalidSafetyParameter(string name, uint256 value, uint256 min, uint256 max);
            error InvalidCap(address asset, uint256 current, uint128 cap);
            error CouncilOfAnother(address council);
            error CouncilTooOld(address council, uint256 deployedAt);
            error InvalidCommitteeSize(uint256 size);
            error ZeroKey(uint256 index);
            error VotingKeysNotAscending(uint256 index);
            error RepeatedRedemptionKey(uint256 first, uint256 second);
            error UnknownEpoch(uint64 epoch);
            error NotCouncil(address caller);
            error PausedUntil(uint256 until);
            error NotGuardian(address caller);
            error PauseTooEarly(uint256 nextPauseAt);
            error NotPaused();
            error PostponedTooLong(uint64 epoch, uint256 total, uint256 max);
            error ZeroRecipient();
            error RecipientIsContract();
            error SenderWithoutKey(address sender);
            error ZeroAsset();
            error AssetWithoutCode(address asset);
            error NothingReceived(address asset);
            error AssetCapExceeded(address asset, uint256 held, uint256 received, uint256 cap);
            error AssetUnderCollateralized(address asset, uint256 held, uint256 owed);
            error PermitRefused(address asset, uint256 allowance, uint256 amount);
            error AlreadyRedeemed(bytes32 sender, uint64 sequence);
            error ZeroRedemption(uint256 item);
            error FeeAboveAmount(uint256 item, uint128 fee, uint128 amount);
            error BalanceTooLow(uint256 item, address asset, uint256 balance, uint128 amount);
            error EpochEnded(uint64 epoch, uint256 endedAt);
            error EmptyBatch();
            error WrongVotesLength(uint256 item, uint256 length, uint256 expected);
            error VotesNotAscending(uint256 item, uint256 position, uint8 member);
            error UnknownMember(uint256 item, uint256 position, uint8 member);
            error MalleableVote(uint256 item, uint256 position, bytes32 s);
            error InvalidRecoveryId(uint256 item, uint256 position, uint8 v);
            error WrongSigner(uint256 item, uint256 position, uint8 member, address recovered);
            error InsufficientGas(uint256 available, uint256 required);
            error NotQueued(bytes32 sender, uint64 sequence);
            error TooEarly(uint256 executableAt);
            error EpochCompromised(uint64 epoch);
            error EpochNotCompromised(uint64 epoch);
            error SequenceSpent(bytes32 account, uint64 sequence);
            error NothingToClaim(address owner, address asset);
            error InvalidClaimAmount(address owner, address asset, uint256 claimed, uint256 amount);
            error ClaimRefused(address to, address asset, uint256 amount);

            function depositEther(bytes32 recipient) external payable;
            function depositToken(bytes32 recipient, address asset, uint128 amount) external;
            function depositTokenWithPermit(
                bytes32 recipient,
                address asset,
                uint128 amount,
                uint256 deadline,
                uint8 v,
                bytes32 r,
                bytes32 s
            ) external;
            function redeem(Redemption calldata redemption, uint64 epoch, bytes calldata votes) external;
            function redeemMany(CertifiedRedemption[] calldata certified) external;
            function redeemBatch(Redemption[] calldata redemptions, uint64 epoch, bytes calldata votes) external;
            function executeQueued(Redemption calldata redemption, bytes calldata votes) external;
            function releaseQueued(Redemption calldata redemption, bytes calldata votes) external;
            function claim(address asset, address to, uint256 amount) external;
            function claimFor(address owner, address asset, uint256 amount) external;

            function pause() external;
            function unpause() external;
            function postpone(uint64 epoch, uint256 extra) external;

            function epoch() external view returns (uint64);
            function epochValidUntil(uint64 epoch) external view returns (uint256);
            function committee(uint64 epoch) external view returns (Authority[] memory);
            function quorum(uint64 epoch) external view returns (uint256);
            function compromised(uint64 epoch) external view returns (bool);
            function guardian() external view returns (address);
            function council() external view returns (address);
            function safetyParameters() external view returns (SafetyParameters memory);
            function pausedUntil() external view returns (uint256);
            function nextPauseAt() external view returns (uint256);
            function totalBalance(address asset) external view returns (uint256);
            function depositCap(address asset) external view returns (uint256);
            function totalClaims(address asset) external view returns (uint256);
            function totalQueued(address asset) external view returns (uint256);
            function outflowAvailable(address asset) external view returns (uint256);
            function queued(bytes32 sender, uint64 sequence)
                external
                view
                returns (uint256 executableAt, address relayer, uint64 epoch, bool needsVotes);
            function claimOf(address owner, address asset) external view returns (uint256);
            function lastTransactionIndex() external view returns (uint64);
            function isRedeemed(bytes32 sender, uint64 sequence) external view returns (bool);
            function redeemedBitmap(bytes32 sender, uint256 word) external view returns (uint256);
            function deploymentBlock() external view returns (uint256);
            function redemptionVoteDigest(uint64 epoch, Redemption calldata redemption)
                external
                view
                returns (bytes32);
            function redemptionBatchVoteDigest(uint64 epoch, Redemption[] calldata redemptions)
                external
                view
                returns (bytes32);
            function releaseVoteDigest(uint64 epoch, Redemption calldata redemption)
                external
                view
                returns (bytes32);
        }

        #[derive(Debug, PartialEq, Eq)]
        interface ICouncil {
            event CommitteeAnnounced(bytes32 indexed id, Announcement announcement, bytes proofs);
            event CapAnnounced(bytes32 indexed id, CapRaise raise);
            event Endorsed(bytes32 indexed id);
            event Matured(bytes32 indexed id, uint256 blockNumber);
            event HeartbeatReceived(uint64 indexed epoch);
            event CheckpointAdopted(uint64 indexed epoch, bytes32 checkpoint);

            error WrongEpoch(uint64 epoch, uint64 expected);
            error InvalidCompromisedSince(uint64 compromisedSince);
            error InvalidDeadline(uint64 deadline, uint256 latest);
            error WrongProofsLength(uint256 length, uint256 expected);
            error NoPossession(uint256 member);
            error AlreadyAnnounced(bytes32 id);
            error NotAnnounced(bytes32 id);
            error AnnouncementEnded(bytes32 id);
            error AnnouncementLapsed(bytes32 id, uint256 lapsedAt);
            error AlreadyEndorsed(bytes32 id);
            error RecoveryNotEndorsable(bytes32 id);
            error NotInstallable(bytes32 id, uint256 installableAt);
            error AlreadyMatured(bytes32 id);
            error NotMatured(bytes32 id);
            error AcceptedTooEarly(uint256 blockNumber, uint256 maturedBlock);
            error UnknownBlock(uint256 blockNumber);
            error NotRecovery(address caller);
            error CommitteeAlive(uint256 silentAt);
            error NothingToAdopt(uint64 epoch);
            error ZeroCheckpoint();
            error AlreadyDecided(bytes32 account, uint64 sequence);
            error AlreadyRequested(bytes32 account, uint64 sequence);
            error NotRequested(bytes32 account, uint64 sequence);
            error NotOwner(bytes32 account);
            error AuthorizationTooLong(uint256 length, uint256 max);
            error WrongBond(uint256 sent, uint256 expected);
            error NotVoidable(bytes32 account, uint64 sequence, uint256 voidableFrom);
            error NoBond(bytes32 account, uint64 sequence);
            error BondRefused(address to);

            function announce(Announcement calldata announcement, bytes calldata proofs, bytes calldata votes) external;
            function announceRecovery(Announcement calldata announcement, bytes calldata proofs) external;
            function endorse(bytes32 id) external;
            function mature(bytes32 id) external;
            function install(Announcement calldata announcement, uint256 blockNumber, bytes calldata votes) external;
            function announceCap(CapRaise calldata raise, bytes calldata votes) external;
            function raiseCap(CapRaise calldata raise) external;
            function heartbeat(uint256 blockNumber, bytes calldata votes) external;
            function adopt(bytes32 checkpoint, bytes calldata votes) external;
            function requestUnlock(bytes32 account, uint64 sequence, bytes calldata authorization) external payable;
            function upholdSequence(bytes32 account, uint64 sequence, bytes32 digest, bytes calldata votes) external;
            function upholdMany(Upholding[] calldata items) external;
            function voidSequence(bytes32 account, uint64 sequence, bool unanimous, bytes calldata votes) external;
            function returnBond(bytes32 account, uint64 sequence) external;

            function fastPay() external view returns (address);
            function recovery() external view returns (address);
            function lastHeartbeat() external view returns (uint256);
            function installedAt() external view returns (uint256);
            function adopted(uint64 epoch) external view returns (bytes32);
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
            function announcementDigest(Announcement calldata announcement) external view returns (bytes32);
            function possessionDigest(Authority calldata authority) external view returns (bytes32);
            function acceptanceDigest(uint64 epoch, bytes32 announcement, bytes32 blockHash)
                external
                view
                returns (bytes32);
            function capRaiseDigest(CapRaise calldata raise) external view returns (bytes32);
            function heartbeatDigest(uint64 epoch, bytes32 blockHash) external view returns (bytes32);
            function adoptionDigest(uint64 epoch, bytes32 checkpoint) external view returns (bytes32);
            function unlockBond() external view returns (uint256);
            function unlockOf(bytes32 account, uint64 sequence)
                external
                view
                returns (Outcome outcome, uint256 voidableFrom, address payer);
            function unanimousFrom() external view returns (uint256);
            function unlockRequestDigest(bytes32 account, uint64 sequence) external view returns (bytes32);
            function certificateVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bytes32 digest)
                external
                view
                returns (bytes32);
            function voidVoteDigest(uint64 epoch, bytes32 account, uint64 sequence, bool unanimous)
                external
                view
                returns (bytes32);
        }

        /// The parts of ERC-20, its metadata, ERC-2612 permits and the errors of ERC-6093 that FastPay uses.
        #[derive(Debug, PartialEq, Eq)]
        interface IToken {
            error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed);
            error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
            error ERC2612ExpiredSignature(uint256 deadline);
            error ERC2612InvalidSigner(address signer, address owner);
            error SafeERC20FailedOperation(address token);

            function name() external view returns (string memory);
            function symbol() external view returns (string memory);
            function decimals() external view returns (uint8);
            function balanceOf(address account) external view returns (uint256);
            function allowance(address owner, address spender) external view returns (uint256);
            function approve(address spender, uint256 value) external returns (bool);
            function nonces(address owner) external view returns (uint256);
            function DOMAIN_SEPARATOR() external view returns (bytes32);
        }

        /// The statement that an ERC-2612 permit signs.
        struct Permit {
            address owner;
            address spender;
            uint256 value;
            uint256 nonce;
            uint256 deadline;
        }
    }
}

pub(crate) use abi::Permit;
pub use abi::{
    Announcement as ContractAnnouncement, AssetCap, Authority as ContractAuthority, CapRaise, CertifiedRedemption,
    ICouncil, IFastPay, IToken, Outcome as UnlockOutcome, Redemption as ContractRedemption, SafetyParameters,
    Upholding,
};

impl From<&Redemption> for ContractRedemption {
    fn from(redemption: &Redemption) -> Self {
        Self {
            sender: redemption.sender.0.into(),
            recipient: redemption.recipient,
            asset: redemption.asset.0,
            amount: redemption.amount.0,
            fee: redemption.fee.0,
            sequence: redemption.sequence.0,
            memo: redemption.memo,
        }
    }
}

impl From<&Authority> for ContractAuthority {
    fn from(authority: &Authority) -> Self {
        Self { votingKey: authority.name.0.into(), redemptionKey: authority.redemption_key }
    }
}

impl From<&Announcement> for ContractAnnouncement {
    fn from(announcement: &Announcement) -> Self {
        Self {
            epoch: announcement.committee.epoch().0,
            authorities: announcement.committee.members().iter().map(Into::into).collect(),
            guardian: announcement.guardian,
            recovery: announcement.recovery,
            compromisedSince: announcement.compromised_since.0,
            checkpoint: announcement.checkpoint,
            deadline: announcement.deadline,
        }
    }
}

/// A redemption certificate in the contract's form; `committee` is the one that voted. `None` if the certificate is not
/// of a redemption, or a vote is not a member's for a redemption.
#[must_use]
pub fn certified_redemption(certificate: &Certificate, committee: &Committee) -> Option<CertifiedRedemption> {
    let Transfer::Redemption(redemption) = &certificate.order.transfer else { return None };
    let votes = encode_redemption_votes(committee, &certificate.votes)?;
    Some(CertifiedRedemption { redemption: redemption.into(), epoch: certificate.epoch.0, votes: votes.into() })
}

//! The contracts that FastPay speaks to, as Solidity declares them, and the way from core's types to
//! theirs.
//!
//! `IFastPay` repeats `contracts/interfaces/IFastPay.sol`; a test compares the selectors of both.

use fastpay_core::{Authority, Certificate, Committee, Redemption, Transfer, encode_redemption_votes};

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
        struct Brakes {
            uint32 pauseDuration;
            uint32 pauseCooldown;
            uint32 outflowWindow;
            uint16 outflowShare;
            uint32 outflowDelay;
            uint32 votesValidity;
        }

        #[derive(Debug, PartialEq, Eq)]
        interface IFastPay {
            event CommitteeInstalled(
                uint64 indexed epoch, Authority[] authorities, address guardian, uint256 previousEpochEnds
            );
            event Paused(uint256 until);
            event Unpaused();
            event Funded(
                uint64 indexed index, bytes32 indexed recipient, address indexed asset, uint128 amount, address payer
            );
            event Redeemed(
                bytes32 indexed sender,
                uint64 sequence,
                address indexed recipient,
                address indexed asset,
                uint128 amount,
                uint128 fee,
                address relayer
            );
            event RedemptionQueued(
                bytes32 indexed sender,
                uint64 sequence,
                address indexed recipient,
                address indexed asset,
                uint128 amount,
                uint128 fee,
                address relayer,
                uint256 executableAt
            );
            event RedemptionSkipped(bytes32 indexed sender, uint64 sequence);
            event ClaimCreated(address indexed owner, address indexed asset, uint256 amount);
            event Claimed(address indexed owner, address indexed asset, address indexed to, uint256 amount);

            error InvalidBrake(string name, uint256 value, uint256 min, uint256 max);
            error InvalidCommitteeSize(uint256 size);
            error ZeroKey(uint256 index);
            error VotingKeysNotAscending(uint256 index);
            error RepeatedRedemptionKey(uint256 first, uint256 second);
            error UnknownEpoch(uint64 epoch);
            error PausedUntil(uint256 until);
            error NotGuardian(address caller);
            error PauseTooEarly(uint256 nextPauseAt);
            error NotPaused();
            error ZeroRecipient();
            error RecipientIsContract();
            error SenderWithoutKey(address sender);
            error ZeroAsset();
            error AssetWithoutCode(address asset);
            error NothingReceived(address asset);
            error AssetCapExceeded(address asset, uint256 held, uint256 received, uint256 cap);
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
            error NothingToClaim(address owner, address asset);
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
            function executeQueued(Redemption calldata redemption) external;
            function claim(address asset) external;
            function claimTo(address asset, address to) external;

            function rotate(Authority[] calldata authorities, address guardian, bytes calldata votes) external;
            function pause() external;
            function unpause() external;

            function epoch() external view returns (uint64);
            function epochValidUntil(uint64 epoch) external view returns (uint256);
            function committee(uint64 epoch) external view returns (Authority[] memory);
            function quorum(uint64 epoch) external view returns (uint256);
            function guardian() external view returns (address);
            function brakes() external view returns (Brakes memory);
            function pausedUntil() external view returns (uint256);
            function nextPauseAt() external view returns (uint256);
            function totalBalance(address asset) external view returns (uint256);
            function totalClaims(address asset) external view returns (uint256);
            function totalQueued(address asset) external view returns (uint256);
            function outflowAvailable(address asset) external view returns (uint256);
            function queued(bytes32 sender, uint64 sequence)
                external
                view
                returns (uint256 executableAt, address relayer);
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
            function committeeVoteDigest(Authority[] calldata authorities, address guardian)
                external
                view
                returns (bytes32);
        }

        /// What FastPay uses of ERC-20, its metadata, ERC-2612 permits and the errors of ERC-6093.
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

        /// What an ERC-2612 permit signs.
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
    Authority as ContractAuthority, Brakes, CertifiedRedemption, IFastPay, IToken, Redemption as ContractRedemption,
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

/// A redemption certificate as the contract takes it; `committee` is the one that voted. None where the
/// certificate is not of a redemption, or a vote is not of a member for a redemption.
#[must_use]
pub fn certified_redemption(certificate: &Certificate, committee: &Committee) -> Option<CertifiedRedemption> {
    let Transfer::Redemption(redemption) = &certificate.order.transfer else { return None };
    let votes = encode_redemption_votes(committee, &certificate.votes)?;
    Some(CertifiedRedemption { redemption: redemption.into(), epoch: certificate.epoch.0, votes: votes.into() })
}

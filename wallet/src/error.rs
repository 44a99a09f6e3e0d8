//! The wallet's errors, sorted by what the caller should do.

use std::path::PathBuf;

use fastpay_core::{AccountId, Amount, Asset, Balance, PrimaryAddress, SequenceNumber};
use fastpay_ethereum::{DepositsError, PrimaryError, SendError, utc};
use fastpay_ledger_client::{ClientError, GroupsError, InstructionErrand, OpenCommitteeError, ReserveError};
use fastpay_ledger_statement::{ClusterId, Rejection};
use fastpay_program::ErrorKind;
use fastpay_program::console::LostAnswer;

use crate::decimal::DecimalError;
use crate::folder::{ConfigError, ContactError, FolderError, KeyError};
use crate::link::LinkError;
use fastpay_client::NetworkError;
use fastpay_client::QuorumError;

/// Why an operation of the wallet failed.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    /// The wallet's files cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The wallet's configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The wallet's keys cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The address book cannot be used.
    #[error(transparent)]
    Contact(ContactError),
    /// A payment link cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The committee or its addresses cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// An order is not certified, or its certificate not settled.
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    /// The Primary failed or refused.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The Primary's committees and deposits cannot be read.
    #[error("the contract's committees and deposits cannot be read: {0}")]
    Events(#[from] DepositsError),
    /// The ledger's file cannot be used.
    #[error(transparent)]
    OpenLedger(#[from] OpenCommitteeError),
    /// The ledger does not answer, or not with what can be proven.
    #[error(transparent)]
    Ledger(#[from] ClientError),
    /// The ledger's groups cannot be read.
    #[error(transparent)]
    Groups(#[from] GroupsError),
    /// The ledger refused.
    #[error(
        "the ledger refused: {0}. What was signed can still be carried out, until another instruction of this key takes \
         its number: repeat the same command to go on with it"
    )]
    Rejected(#[from] Rejection),
    /// The ledger no longer knows what became of an instruction.
    #[error(
        "cluster {0} of the ledger no longer says what became of an instruction that this wallet signed; look whether \
         it was carried out, and remove {1}"
    )]
    UnknownOutcome(ClusterId, PathBuf),
    /// An earlier instruction of the key is unfinished, or was carried out and not reported yet. Nothing else was sent.
    #[error("{0} is unfinished, or not reported yet: repeat exactly that command, which pays once, and then this one")]
    UnfinishedInstruction(Box<InstructionErrand>),
    /// A transaction on the Primary failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A text is not an amount.
    #[error(transparent)]
    Amount(#[from] DecimalError),
    /// The transfer breaks a rule.
    #[error(transparent)]
    Order(#[from] fastpay_core::OrderError),
    /// The account holds too little; nothing was signed.
    #[error(
        "account {account} has {available} of {asset} (smallest unit), and {needed} are needed; nothing was signed"
    )]
    Funds {
        /// The paying account.
        account: AccountId,
        /// The asset.
        asset: Asset,
        /// The amount, in the asset's smallest unit.
        needed: Amount,
        /// The balance that f + 1 authorities agree on.
        available: Balance,
    },
    /// The account holds too little, with amounts in the asset's own decimals.
    #[error("account {account} has {available}, and {needed} are needed; nothing was signed")]
    NotCovered {
        /// The paying account.
        account: AccountId,
        /// The amount, in the asset's smallest unit.
        needed: String,
        /// The balance that f + 1 authorities agree on.
        available: String,
    },
    /// Another copy of this wallet orders faster than this one can follow.
    #[error(
        "another copy of this wallet keeps ordering with the key of account {account}; nothing was signed here. Stop \
         that one, then try again"
    )]
    OtherCopy {
        /// The account.
        account: AccountId,
    },
    /// Another command began to pay the same list after this one had read it.
    #[error(
        "account {account} has begun to pay this list, with up to {outputs_max} lines in one order; nothing was signed \
         here. To go on with that, run this command again with the key of that account (--from)"
    )]
    OtherJob {
        /// The account that pays.
        account: AccountId,
        /// The maximum number of outputs in one order.
        outputs_max: usize,
    },
    /// A read needs the answers of a quorum, and fewer came.
    #[error("{answered} of the {quorum} authorities that are needed answered; try again when more can be reached")]
    TooFewAnswers {
        /// How many answered.
        answered: usize,
        /// The number needed.
        quorum: usize,
    },
    /// It is not known what the account ordered under an earlier number, so a payment of the list may have been made.
    #[error(
        "earlier payments of this wallet cannot be read yet, among them #{sequence} of account {account}: they may \
         have paid this list. Nothing that may be paid already was signed again. Repeat this command later; after a \
         change of the committee, its first checkpoint makes them readable"
    )]
    Unread {
        /// The paying account.
        account: AccountId,
        /// One such number.
        sequence: SequenceNumber,
    },
    /// The same transfer was begun before, and another copy of this wallet has finished it since.
    #[error(
        "the same transfer was begun before, as #{sequence} of account {account}, and is settled, as checkpoint \
         {checkpoint} of the committee proves; nothing was sent now. To make it once more, give the command again"
    )]
    SettledBefore {
        /// The paying account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The number of the checkpoint.
        checkpoint: u64,
    },
    /// The same redemption was begun before, and the contract has paid or queued it since.
    #[error(
        "the same redemption was begun before, as #{sequence} of account {account}, and the contract has paid or queued \
         it; nothing was sent now. To make it once more, give the command again"
    )]
    PaidBefore {
        /// The paying account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// An event did not happen within the time limit.
    #[error("{what} did not happen within {seconds} s, and still may: {hint}")]
    TimedOut {
        /// The event that did not come in time.
        what: &'static str,
        /// The time limit.
        seconds: u64,
        /// The recommended action.
        hint: &'static str,
    },
    /// The wallet knows committees that the contract never had.
    #[error(
        "the contract lists other authorities than this wallet learned for the same epoch: is the Ethereum node of \
         another chain? If the contract is a new one, set it up in another folder: `fastpay --home <folder> init`"
    )]
    OtherCommittee,
    /// A folder's content must not be used in another deployment.
    #[error(
        "{} is of another deployment than chain {chain_id}, contract {contract}: its orders and transactions must not \
         be mixed with those of this one. Set this one up in another folder, also instead of --force: \
         `fastpay --home <folder> init`; keys can be imported there",
        .home.display()
    )]
    OtherDeployment {
        /// The folder.
        home: PathBuf,
        /// The chain of the requested deployment.
        chain_id: u64,
        /// Its contract.
        contract: PrimaryAddress,
    },
    /// The guardian has paused deposits and redemptions.
    #[error("the contract is paused until {} and takes no deposit, redemption or claim before; nothing was signed or sent. Try again then", utc(*.until))]
    Paused {
        /// The end of the pause, in seconds since 1970.
        until: u64,
    },
    /// Money paid to a contract of FastPay is lost.
    #[error(
        "{recipient} is a contract of FastPay: nobody could move what is paid to it; nothing was signed. Give your own \
         address with --to. To move money between accounts, use `fastpay pay`"
    )]
    RecipientIsFastPay {
        /// The recipient.
        recipient: PrimaryAddress,
    },
    /// A deposit was for the account of a contract, which has no key.
    #[error("{account} is a contract, which has no key to spend with; name an account with a key by --to")]
    AccountWithoutKey {
        /// The account to be funded.
        account: AccountId,
    },
    /// The keys that queued a redemption were stolen, and the committee votes only for redemptions that it has
    /// confirmed.
    #[error(
        "the keys that queued #{sequence} of account {account} were stolen, and no authority has a certificate of it; \
         if you signed this redemption, ask the operators of the committee"
    )]
    NotCertified {
        /// The redeeming account.
        account: AccountId,
        /// Its number.
        sequence: SequenceNumber,
    },
    /// An argument is not valid.
    #[error("{0}")]
    Argument(String),
    /// No relayer submits a request to the contract. The text contains the answer of each.
    #[error("no relayer submits the request: {0}; pay for it with --gas-key, or try again later")]
    Relayers(String),
    /// The audit found contradictions.
    #[error("the audit failed: {0}")]
    Audit(String),
    /// The command's answer could not be printed.
    #[error(transparent)]
    Output(#[from] LostAnswer),
}

impl WalletError {
    /// The kind of the error, for programs.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Folder(FolderError::Busy { .. }) | Self::OtherJob { .. } => ErrorKind::Busy,
            Self::Quorum(QuorumError::NoRoom { .. }) => ErrorKind::Busy,
            Self::Folder(FolderError::OtherOrder { .. })
            | Self::OtherCopy { .. }
            | Self::SettledBefore { .. }
            | Self::PaidBefore { .. } => ErrorKind::Conflict,
            Self::Quorum(QuorumError::Conflict(_) | QuorumError::Superseded { .. } | QuorumError::Voided { .. }) => {
                ErrorKind::Conflict
            }
            Self::Folder(_) => ErrorKind::Storage,
            Self::Config(_) | Self::Network(_) | Self::Quorum(QuorumError::NoPrimary) => ErrorKind::Config,
            Self::OpenLedger(_)
            | Self::OtherCommittee
            | Self::OtherDeployment { .. }
            | Self::Send(SendError::OtherChain { .. }) => ErrorKind::Config,
            Self::Key(KeyError::Passphrase(_)) => ErrorKind::Passphrase,
            Self::Key(_) => ErrorKind::Key,
            Self::Contact(_) => ErrorKind::Contact,
            Self::Quorum(QuorumError::InsufficientBalance { .. }) | Self::Funds { .. } | Self::NotCovered { .. } => {
                ErrorKind::Funds
            }
            Self::Primary(PrimaryError::InsufficientFunds) | Self::Rejected(Rejection::ReserveTooLow(_)) => {
                ErrorKind::Funds
            }
            Self::UnknownOutcome(..) | Self::UnfinishedInstruction(_) => ErrorKind::Conflict,
            // No retry helps.
            Self::Groups(GroupsError::Fork(_)) => ErrorKind::Audit,
            Self::Ledger(_) | Self::Groups(_) | Self::Rejected(_) => ErrorKind::Primary,
            Self::Send(SendError::Primary(PrimaryError::InsufficientFunds)) => ErrorKind::Funds,
            Self::Quorum(
                QuorumError::NoQuorum { .. }
                | QuorumError::EpochEnded(_)
                | QuorumError::Outdated(_)
                | QuorumError::Pruned { .. },
            )
            | Self::TooFewAnswers { .. }
            | Self::NotCertified { .. } => ErrorKind::Unreachable,
            Self::Paused { .. } => ErrorKind::Paused,
            Self::Primary(PrimaryError::Reverted(revert))
            | Self::Send(SendError::Primary(PrimaryError::Reverted(revert)))
                if revert.paused_until().is_some() =>
            {
                ErrorKind::Paused
            }
            Self::Quorum(QuorumError::NewEpoch { .. }) | Self::Events(_) | Self::Primary(_) | Self::Send(_) => {
                ErrorKind::Primary
            }
            Self::Amount(_) | Self::Order(_) | Self::Link(_) | Self::Argument(_) => ErrorKind::Argument,
            Self::RecipientIsFastPay { .. } | Self::AccountWithoutKey { .. } => ErrorKind::Argument,
            Self::Relayers(_) | Self::Unread { .. } => ErrorKind::Unreachable,
            Self::TimedOut { .. } => ErrorKind::Timeout,
            Self::Audit(_) => ErrorKind::Audit,
            Self::Output(_) => ErrorKind::Output,
        }
    }
}

impl From<ReserveError> for WalletError {
    fn from(error: ReserveError) -> Self {
        match error {
            ReserveError::Journal(error) => Self::Folder(error.into()),
            ReserveError::Ledger(error) => Self::Ledger(error),
            ReserveError::Rejected(why) => Self::Rejected(why),
            ReserveError::UnknownOutcome(cluster, path) => Self::UnknownOutcome(cluster, path),
            ReserveError::Unfinished(errand) => Self::UnfinishedInstruction(errand),
            ReserveError::NoRedemption => Self::Argument(error.to_string()),
            ReserveError::UnknownEpoch(_) => Self::OtherCommittee,
        }
    }
}

impl From<ContactError> for WalletError {
    /// Converts errors of keys and files in the address book to errors of their own kind.
    fn from(error: ContactError) -> Self {
        match error {
            ContactError::Key(error) => Self::Key(error),
            ContactError::Folder(error) => Self::Folder(error),
            error => Self::Contact(error),
        }
    }
}

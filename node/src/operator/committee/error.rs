//! Why an operator's command about the committee signed or sent nothing.

use std::path::PathBuf;

use fastpay_client::ClientError;
use fastpay_core::{
    Amount, Authority, AuthorityName, CommitteeError as NotACommittee, Digest, Epoch, PossessionError, PrimaryAddress,
};
use fastpay_ethereum::{DepositsError, PrimaryError, SendError, utc};

use crate::authority::certification::ArchiveError;
use crate::authority::config::ConfigError;
use crate::authority::funding::LedgerError;
use crate::authority::rollback::DetectionError;
use crate::authority::storage::StorageError;
use crate::operator::recover::RecoverError;

/// Why nothing was signed or sent.
#[derive(Debug, thiserror::Error)]
pub enum CommitteeError {
    /// There is no Primary.
    #[error("the configuration has no [primary]: a committee without one cannot be changed")]
    NoPrimary,
    /// A ledger has nothing of that kind.
    #[error("{0} is for a contract, and the configuration's [primary] is a ledger")]
    NotOnLedger(&'static str),
    /// The ledger cannot be read, or refuses the step.
    #[error(transparent)]
    Ledger(Box<LedgerError>),
    /// A file cannot be read.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The file's list of members is not a committee.
    #[error(transparent)]
    NotACommittee(#[from] NotACommittee),
    /// The file's epoch is not the next one.
    #[error(
        "the file is for epoch {found}; the contract is in epoch {current}, so only epoch {} can be announced",
        .current.0.saturating_add(1)
    )]
    Epoch {
        /// The contract's epoch.
        current: Epoch,
        /// The file's epoch.
        found: Epoch,
    },
    /// A raise names an epoch other than the current one.
    #[error("the raise is for epoch {found}; the contract is in epoch {current}, whose committee decides")]
    RaiseEpoch {
        /// The contract's epoch.
        current: Epoch,
        /// The file's epoch.
        found: Epoch,
    },
    /// The contract accepts no raise to the present cap or below.
    #[error(
        "the deposit cap is {now} already, and {found} is no raise: the contract keeps its nine highest bits, {kept}. \
         Choose more than {now} by 1/256 of it; an asset without a cap has the largest that there is"
    )]
    CapNotRaised {
        /// The present cap; the largest possible balance if there is none.
        now: Box<Amount>,
        /// The cap in the file.
        found: Box<Amount>,
        /// The cap as the contract would store it.
        kept: Box<Amount>,
    },
    /// The file is for another chain.
    #[error(
        "the file is for chain {found}, the configuration for {expected}: use the file and configuration of one chain"
    )]
    Chain {
        /// The configured chain.
        expected: u64,
        /// The file's chain.
        found: u64,
    },
    /// An epoch that does not exist cannot have been compromised.
    #[error("compromisedSince is epoch {0}, after the epoch that would begin; where no keys were out it is that epoch")]
    CompromisedSince(Epoch),
    /// Those who join the next epoch need what a quorum of this one states.
    #[error(
        "this authority has not joined epoch {0} yet: wait until `/ready` says that it votes. A committee that follows before \
         a quorum of this one has joined could not vote"
    )]
    NotJoined(Epoch),
    /// Those who join the next epoch need what a quorum of this one states.
    #[error(
        "this authority's data folder may lack votes ({0}), so it states nothing of this epoch, and those who join the next \
         one need what a quorum states: a quorum of the other members signs"
    )]
    Stale(String),
    /// A member with a new pair joins the epoch with what the others state.
    #[error(
        "with this pair of keys this authority joins the next epoch before it votes: configure `endpoints`, the file that says \
         where the others are, and accept then"
    )]
    NoEndpoints,
    /// The contract would refuse the deadline.
    #[error(
        "the deadline {} has passed, or is more than 30 days away: write the file anew with another deadline \
         (`fastpay-node committee propose --days`, or the file of the raise), and have it signed again", utc(*.0)
    )]
    Deadline(u64),
    /// The guardian must not be a member: a thief of the member's key would be the guardian, too.
    #[error("the guardian {0} is the redemption key of a member; choose another one")]
    GuardianIsMember(PrimaryAddress),
    /// A member has no proof of possession.
    #[error("there is no proof of {0}; its operator creates it with `fastpay-node committee prove`")]
    MissingProof(AuthorityName),
    /// A proof is wrong.
    #[error(transparent)]
    Proof(#[from] PossessionError),
    /// A key belonged to another pair before.
    #[error(
        "a key of member {} with redemption key {} stood in another pair in epoch {epoch}: {} with {}. A member that \
         changes a key changes both",
        .now.name, .now.redemption_key, .before.name, .before.redemption_key
    )]
    OtherPair {
        /// The earlier epoch.
        epoch: Epoch,
        /// The pair in it.
        before: Authority,
        /// The pair that is announced.
        now: Authority,
    },
    /// None of the configured pairs votes in this epoch.
    #[error(
        "none of the configured pairs of keys is a member of the committee of epoch {0}, which decides: add the \
         member's pair to the configuration as [[keys]]"
    )]
    NotAMember(Epoch),
    /// The contract does not know the announcement.
    #[error("the contract has no such announcement ({0}); announce it first, with the same file")]
    NotAnnounced(Digest),
    /// The announcement has not matured yet.
    #[error("the announcement can be installed from {} on; run `fastpay-node committee install` then", utc(*.0))]
    NotMatured(u64),
    /// The announcement has lapsed.
    #[error("the announcement lapsed at {}; propose it anew", utc(*.0))]
    Lapsed(u64),
    /// An acceptance must name a block in which the announcement had matured.
    #[error(
        "block {block} is before block {matured}, in which the announcement matured: give --block with that one or a later one"
    )]
    BlockTooEarly {
        /// The requested block.
        block: u64,
        /// The block in which it matured.
        matured: u64,
    },
    /// The block is not final, so it may still change.
    #[error("block {block} is not final yet: the newest final block is {newest}; try again in some minutes")]
    NotFinal {
        /// The requested block.
        block: u64,
        /// The newest final block.
        newest: u64,
    },
    /// A node does not get to the block, or another one has invented it.
    #[error(
        "block {block} is still not final at {node}, whose newest final block is {newest}: find out which Ethereum node is \
         wrong, and run the command again"
    )]
    NotSettled {
        /// The node: its URL without the path.
        node: String,
        /// The block.
        block: u64,
        /// The node's newest final block.
        newest: u64,
    },
    /// This authority's own node has not followed the chain far enough.
    #[error(
        "this authority's node has followed the chain up to block {}, and block {block} is to be accepted; start it and \
         wait until it is ready", .at.map_or("none".to_owned(), |at| at.to_string())
    )]
    NotSynchronized {
        /// The block that it has reached.
        at: Option<u64>,
        /// The block that it must reach.
        block: u64,
    },
    /// This authority's own node has not followed the ledger far enough.
    #[error(
        "this authority's node has followed the ledger up to group {}, and the ledger has sent group {group}; start it and wait \
         until it is ready", .at.map_or("none".to_owned(), |at| at.to_string())
    )]
    NotFollowed {
        /// The group that it has reached.
        at: Option<u64>,
        /// The group that it must reach.
        group: u64,
    },
    /// This authority's own node follows another chain.
    #[error(
        "this authority's node has read another block {0} than the Ethereum nodes serve now, so nothing was signed: compare \
         the nodes with others, and see the log of the authority's node"
    )]
    OtherChain(u64),
    /// The contract's queue does not contain the redemption.
    #[error("the contract has no such redemption in its queue")]
    NotQueued,
    /// The redemption's epoch is not compromised.
    #[error("the redemption is queued with votes of epoch {0}, which is not compromised; it cannot be released")]
    NotCompromised(Epoch),
    /// The redemption is honest, and confirmed here.
    #[error("this authority has confirmed the redemption: its owner ordered it, so it must be paid, not released")]
    Confirmed,
    /// An epoch adopts one checkpoint, once.
    #[error("epoch {epoch} has adopted the checkpoint {adopted} already; begin from it")]
    Adopted {
        /// The current epoch.
        epoch: Epoch,
        /// The checkpoint that it adopted.
        adopted: Digest,
    },
    /// A committee that follows one without a checkpoint could adopt none.
    #[error(
        "epoch {0} begins anew, and it has adopted no checkpoint: run `fastpay-node committee adopt` first. A \
         committee that follows could adopt none, and nobody would vote"
    )]
    NotAdopted(Epoch),
    /// The checkpoint that a recovery adopted is not certified yet, or this member has not begun from it.
    #[error(
        "epoch {epoch} begins anew, and this node's data folder does not begin from the checkpoint {adopted} that \
         it adopted: run `fastpay-node recover` with the node's archive as --out, wait until the nodes have certified the \
         checkpoint, run `fastpay-node rebase`, and sign then. A committee that follows before could not certify it, and \
         nobody would vote"
    )]
    NotBegun {
        /// The epoch.
        epoch: Epoch,
        /// The checkpoint.
        adopted: Digest,
    },
    /// An installation makes a checkpoint count that nobody has certified.
    #[error(
        "the archive {archive}, whose newest checkpoint is number {newest}, has no certificate of the checkpoint {named}: it \
         would count without votes. Name one that the committee has certified"
    )]
    NotCertified {
        /// The checkpoint that the announcement names.
        named: Digest,
        /// The folder.
        archive: PathBuf,
        /// The number of the newest one in it; 0 for none.
        newest: u64,
    },
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The secret of a key is public.
    #[error("everybody knows the secret of {0}, which tests and tutorials use: its operator creates another key")]
    KnownKey(String),
    /// Without a guardian, nobody postpones the queue until the honest committee is installed.
    #[error(
        "without a guardian an installation takes 14 days, and the contract pays what stolen keys have queued after {} days: name a guardian", .outflow_delay_s / 86_400
    )]
    NoGuardian {
        /// How long the contract queues redemptions, in seconds.
        outflow_delay_s: u64,
    },
    /// The file has another proposal.
    #[error(
        "{0} exists and has another proposal, or one whose deadline has passed: remove it, or write to another file with --out"
    )]
    OtherProposal(PathBuf),
    /// Fewer members than a quorum have signed.
    #[error("{found} valid {what}, and {needed} are needed; missing: {}", names(.missing))]
    TooFewVotes {
        /// What was counted: signatures or acceptances.
        what: &'static str,
        /// The number of members whose vote counts.
        found: usize,
        /// A quorum.
        needed: usize,
        /// The members whose vote does not count.
        missing: Vec<AuthorityName>,
    },
    /// The key of the transaction has not the role that the contract requires.
    #[error("only the {role} {expected} can send this, and --key is the key of {found}: give the key of the {role}")]
    WrongSender {
        /// The role.
        role: &'static str,
        /// The address that has it.
        expected: PrimaryAddress,
        /// The address of the key.
        found: PrimaryAddress,
    },
    /// A recovery ends all epochs.
    #[error("a recovery names compromisedSince 0, and the file has {0}: propose it with `--compromised-since 0`")]
    RecoverySince(Epoch),
    /// A recovery needs 120 days of silence.
    #[error("the committee counts as alive until {}: announce the recovery then, if it stays silent", utc(*.0))]
    Alive(u64),
    /// The guardian does not shorten a recovery.
    #[error("{0} is a recovery, which an endorsement does not shorten")]
    RecoveryNotEndorsable(Digest),
    /// Who endorses says what: the file may be another one than the guardian has read.
    #[error(
        "the announcement {id} is not endorsed{}: if this is what you want to endorse, repeat the command with --id {id}",
        .asked.map(|asked| format!(", and {asked} is another one")).unwrap_or_default()
    )]
    NotAsked {
        /// The digest of the announcement in the file.
        id: Digest,
        /// The digest that was given.
        asked: Option<Digest>,
    },
    /// The delay has not passed.
    #[error(
        "the announcement can be installed from {} on{}", utc(*.at),
        if *.is_endorsed { "" } else { ". The guardian has not endorsed it: a day after its endorsement it can be installed" }
    )]
    TooEarly {
        /// The time from which it can be installed, in seconds since 1970.
        at: u64,
        /// Whether the guardian has endorsed it.
        is_endorsed: bool,
    },
    /// An epoch has begun since, or a heartbeat ended the recovery.
    #[error(
        "the announcement {0} has ended: another committee was installed, or a quorum ended the recovery; propose anew"
    )]
    Ended(Digest),
    /// The contract no longer knows the hash of the block that acceptances name.
    #[error("the contract no longer knows block {0}: all accept with --block and the number of a newer final block")]
    BlockForgotten(u64),
    /// The nodes keep no logs of that time, or leave one out.
    #[error("the Ethereum nodes show no event of the installation of epoch {0}; configure nodes that keep all logs")]
    NoInstallation(Epoch),
    /// Another command sends transactions for the same announcement.
    #[error("another command sends a transaction for {0}; wait until it has finished")]
    Busy(PathBuf),
    /// The stored transaction cannot be used.
    #[error("cannot use {path}: {error}; find out what it is, and repeat the command")]
    Stored {
        /// The file of the transaction.
        path: PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// The stored transaction is not one that this command sends.
    #[error(
        "{path}: {found}. Nothing was sent. If another command wrote it, repeat that command. Else delete the file, once \
         that transaction or another one with its nonce is final, or none was ever sent"
    )]
    OtherTransaction {
        /// The file of the transaction.
        path: PathBuf,
        /// What it has.
        found: String,
    },
    /// What was done is not done in a final block.
    #[error(
        "the chain has replaced the block in which it was done, or the ledger does not show it yet; run the command again"
    )]
    Undone,
    /// The transaction was not carried out.
    #[error(transparent)]
    Send(Box<SendError>),
    /// The data folder cannot be read.
    #[error(transparent)]
    Folder(#[from] StorageError),
    /// The data folder's mark cannot be read.
    #[error(transparent)]
    Mark(#[from] DetectionError),
    /// The checkpoint cannot be rebuilt.
    #[error(transparent)]
    Recover(#[from] Box<RecoverError>),
    /// Other inputs lead to another checkpoint.
    #[error(
        "these sources lead to the checkpoint {found}, not to {asked}; nothing was signed. Compare both reports: whoever \
         has more certificates publishes them, and all rebuild again"
    )]
    OtherCandidate {
        /// The checkpoint that was rebuilt.
        found: Digest,
        /// The checkpoint that was to be signed.
        asked: Digest,
    },
    /// The running node cannot be asked.
    #[error("cannot ask this authority's node at {address}: {error}; check that it runs")]
    Node {
        /// Its shard's address.
        address: String,
        /// The error.
        error: ClientError,
    },
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The contract computes another digest than this program.
    #[error(
        "the contract computes another digest than this program, so nothing was signed or sent: check chain_id and \
         contract in [primary], and that this release fits the contract"
    )]
    OtherDigest,
    /// Ethereum nodes disagree about the contract: one lags, or lies.
    #[error(
        "the Ethereum nodes disagree on the contract: {node} says something else than one before it. \
         Repeat the command in a minute, and find out which one is wrong if they still do"
    )]
    Disagreement {
        /// The node that differs from one before it: its URL without the path, which may contain a key.
        node: String,
    },
    /// The contract cannot be read.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The committees cannot be read.
    #[error(transparent)]
    Committees(#[from] DepositsError),
}

impl From<LedgerError> for CommitteeError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(Box::new(error))
    }
}

impl From<SendError> for CommitteeError {
    fn from(error: SendError) -> Self {
        Self::Send(Box::new(error))
    }
}

/// Names in one line.
fn names(names: &[AuthorityName]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

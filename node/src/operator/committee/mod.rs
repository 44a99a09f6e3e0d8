//! Statements that an operator signs for `Council` and for the queue: proofs of possession, the next committee, its
//! acceptance, heartbeats, higher deposit caps, the adoption of a rebuilt checkpoint, and the release of a redemption that
//! the committee does not know.
//!
//! ```text
//!  prove (each member) ─► proof files ─┐
//!  announcement file ──────────────────┴─► sign (current members) ─► announced on the chain ─► endorsed ─► matured
//!                                          accept (next members) ──► installed on the chain
//! ```
//! The commands need the configuration, the keys and the Primary. `accept`, and after a recovery `sign`, also read the
//! data folder. `release` asks the running node, and so does `sign` for a member that had to join the current epoch, unless
//! the data folder says that it has. All
//! configured Ethereum nodes must agree: a signature must not rest on one node's answer.

mod accept;
mod adopt;
mod announcement;
mod cap;
mod heartbeat;
mod nodes;
mod prove;
mod release;
mod sign;

use std::path::{Path, PathBuf};

use fastpay_client::{ClientError, ShardClient};
use fastpay_core::{
    AccountId, Amount, Authority, AuthorityKeys, AuthorityName, Committee, CommitteeError as NotACommittee, Committees,
    CouncilStatement, Digest, Domain, Epoch, PossessionError, PrimaryAddress, Recovery, ShardLayout, sign_council_vote,
};
use fastpay_ethereum::{DepositsError, PrimaryError, utc};
use fastpay_rpc::json::{Decimal, Hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::authority::config::{Config, ConfigError};
use crate::authority::rollback::DetectionError;
use crate::authority::storage::{StorageError, generation_in};
use crate::operator::own_node;
use crate::operator::recover::RecoverError;

pub use accept::accept;
pub use adopt::adopt;
pub use cap::raise_cap;
pub use heartbeat::heartbeat;
pub use prove::{Proof, prove};
pub use release::release;
pub use sign::sign;

/// One authority's vote, in the form of the scripts that submit votes to the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoteFile {
    /// The epoch that the statement names.
    pub epoch: Epoch,
    /// The authority that votes.
    pub authority: AuthorityName,
    /// r, s and v.
    pub signature: Hex<65>,
}

/// A vote with its statement.
#[derive(Debug)]
pub struct Ballot {
    /// The text for the operator who signs.
    pub text: String,
    /// The vote for the scripts.
    pub vote: VoteFile,
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum CommitteeError {
    /// There is no contract.
    #[error("the configuration has no [primary]: a committee without a contract cannot be changed")]
    NoPrimary,
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
    #[error("the file is for chain {found}, the configuration for {expected}")]
    Chain {
        /// The configured chain.
        expected: u64,
        /// The file's chain.
        found: u64,
    },
    /// An epoch that does not exist cannot have been compromised.
    #[error("compromisedSince is epoch {0}, after the epoch that would begin; where no keys were out it is that epoch")]
    CompromisedSince(Epoch),
    /// All members would have to join, and nobody joins after an epoch whose keys were out.
    #[error(
        "keys were out, so nobody could join the next committee, and those who remember what {before} authorities certified \
         may not go on in one of {then} without: nobody would vote. Announce a larger one"
    )]
    NobodyJoins {
        /// The size of the committee now, or of an earlier one whose votes count.
        before: usize,
        /// The size of the announced one.
        then: usize,
    },
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
    #[error("the deadline {} has passed, or is more than 30 days away", utc(*.0))]
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
    #[error("none of the configured pairs of keys is a member of the committee of epoch {0}, which decides")]
    NotAMember(Epoch),
    /// The contract does not know the announcement.
    #[error("the contract has no such announcement ({0}); announce it first, with the same file")]
    NotAnnounced(Digest),
    /// The announcement has not matured yet.
    #[error("the announcement can be installed from {} on; call `mature` on the contract then", utc(*.0))]
    NotMatured(u64),
    /// The announcement has lapsed.
    #[error("the announcement lapsed at {}; announce it anew", utc(*.0))]
    Lapsed(u64),
    /// An acceptance must name a block in which the announcement had matured.
    #[error("block {block} is before block {matured}, in which the announcement matured")]
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
    /// This authority's own node follows another chain.
    #[error("this authority's node has read another block {0} than the Ethereum nodes serve now; nothing was signed")]
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
        "a recovery installed epoch {0}, and it has adopted no checkpoint: run `fastpay-node committee adopt` first. A \
         committee that follows could adopt none, and nobody would vote"
    )]
    NotAdopted(Epoch),
    /// The checkpoint that a recovery adopted is not certified yet, or this member has not begun from it.
    #[error(
        "a recovery installed epoch {epoch}, and this node's data folder does not begin from the checkpoint {adopted} that \
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
    #[error("the contract computes another digest than this program; is this the right contract?")]
    OtherDigest,
    /// Ethereum nodes disagree about the contract: one lags, or lies.
    #[error(
        "the Ethereum nodes disagree on the contract: {node} says something else than the first one; nothing was \
         signed. Try again in a minute, and find out which one is wrong if they still do"
    )]
    Disagreement {
        /// The node that differs from the first: its URL without the path, which may contain a key.
        node: String,
    },
    /// The contract cannot be read.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The committees cannot be read.
    #[error(transparent)]
    Committees(#[from] DepositsError),
}

/// The pair among `keys` that is a member of `committee`.
fn member<'a>(keys: &'a [AuthorityKeys], committee: &Committee) -> Result<&'a AuthorityKeys, CommitteeError> {
    let is_member = |keys: &AuthorityKeys| committee.members().contains(&keys.public());
    keys.iter().find(|keys| is_member(keys)).ok_or(CommitteeError::NotAMember(committee.epoch()))
}

/// Checks that a committee may follow: that the newest recovery has adopted a checkpoint, and that this member's folder
/// begins from it, which it can only once a quorum has certified it.
fn check_begun(config: &Config, committees: &Committees) -> Result<(), CommitteeError> {
    match committees.recovery() {
        None => Ok(()),
        Some(Recovery { epoch, adopted: None }) => Err(CommitteeError::NotAdopted(epoch)),
        Some(Recovery { epoch, adopted: Some(adopted) }) => {
            let is_begun = generation_in(&config.data)?.adopted == Some(adopted);
            is_begun.then_some(()).ok_or(CommitteeError::NotBegun { epoch, adopted })
        }
    }
}

/// A client of this authority's shard that has an account, and its address.
fn own_shard(config: &Config, account: &AccountId) -> Result<(ShardClient, String), CommitteeError> {
    let shard = ShardLayout::new(config.shards).shard_of(account);
    let addresses = config.shard_addresses()?;
    let address = addresses.get(shard.0 as usize).expect("there is an address for each shard");
    own_node::client(config, *address).map_err(|(address, error)| CommitteeError::Node { address, error })
}

/// Signs a statement that names `epoch`.
fn vote(keys: &AuthorityKeys, domain: &Domain, epoch: Epoch, statement: &CouncilStatement<'_>) -> VoteFile {
    let vote = sign_council_vote(keys, domain, statement);
    VoteFile { epoch, authority: vote.authority, signature: Hex(vote.signature.0) }
}

/// A number in a file. JSON numbers are limited to 64 bits here, so larger ones are written as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Small(u64),
    Text(Decimal<u128>),
}

impl From<Number> for Amount {
    fn from(number: Number) -> Self {
        match number {
            Number::Small(number) => Self(number.into()),
            Number::Text(number) => Self(number.0),
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, CommitteeError> {
    let wrong = |reason: String| CommitteeError::File { path: path.into(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

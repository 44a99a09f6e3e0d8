//! What an operator does for `Council`, or for the settlement cluster of a ledger, and for the queue: replaces the committee, and signs heartbeats, higher deposit caps,
//! the adoption of a rebuilt checkpoint, and the release of a redemption that the committee does not know.
//!
//! ```text
//!  prove (each member) ─► proof files ─► propose ─► announcement file
//!  sign (current members) ──► vote files ─► announce (anyone) ─► endorse (the guardian) ─► a day ─► install: matured
//!  accept (next members) ───► vote files ─► install (anyone): the next epoch begins
//!  status: what is announced, who has signed and accepted, what is missing
//! ```
//! Each command may be repeated: what is done is not done twice, and what an interrupted command has sent is followed to
//! its end (`transaction`).
//!
//! The commands need the configuration and the Primary; those that sign need the keys, and those that send
//! (`announce`, `endorse`, `install`) an Ethereum key. `accept`, and after a recovery `sign`, also read the data folder.
//! `release` asks the running node, and so does `sign` for a member that had to join the current epoch, unless the data
//! folder says that it has. All configured Ethereum nodes must agree: nothing must rest on one node's answer. On a ledger
//! f + 1 members show what is read (`on_ledger`), and the Ethereum key signs instructions.

mod accept;
mod adopt;
mod announce;
mod announcement;
mod cap;
mod checkpoint;
mod council;
mod describe;
mod endorse;
mod error;
mod heartbeat;
mod install;
mod nodes;
mod on_ledger;
mod proposal;
mod propose;
mod prove;
mod release;
mod sign;
mod status;
mod transaction;
mod votes;

use std::path::Path;

use fastpay_client::ShardClient;
use fastpay_core::{
    AccountId, Amount, AuthorityKeys, AuthorityName, Committee, Committees, CouncilStatement, Domain, Epoch, Recovery,
    ShardLayout, sign_council_vote,
};
use fastpay_rpc::json::{Decimal, Hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::authority::config::Config;
use crate::authority::storage::generation_in;
use crate::operator::own_node;

pub use accept::accept;
pub use adopt::adopt;
pub use announce::{Announce, announce};
pub use cap::raise_cap;
pub use endorse::endorse;
pub use error::CommitteeError;
pub use heartbeat::heartbeat;
pub use install::install;
pub use proposal::{Proposal, State};
pub use propose::{Terms, propose};
pub use prove::{Proof, prove};
pub use release::release;
pub use sign::sign;
pub use status::{CouncilReport, status};
pub use transaction::{Payer, Tell, read_key};

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
    /// The block that an acceptance names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
}

/// A vote with its statement.
#[derive(Debug)]
pub struct Ballot {
    /// The text for the operator who signs.
    pub text: String,
    /// The vote for the scripts.
    pub vote: VoteFile,
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
    VoteFile { epoch, authority: vote.authority, signature: Hex(vote.signature.0), block: None }
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

//! Entries of an archive with their proof, in JSON.

use std::fmt;
use std::str::FromStr;

use fastpay_core::checkpoint as core;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::text::{Bytes, Bytes32, Bytes64, Decimal, Hex, ParseTextError, Uint64};

/// Entries of the archive of an authority, with their proof: each has a path to the segment of its checkpoint, the
/// checkpoints are linked by `previous`, and a quorum voted for the newest one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedPage {
    /// By checkpoint, account and number.
    #[schema(max_items = 100)]
    pub entries: Vec<ArchivedEntry>,
    /// From the lowest one of an entry to the newest one of the archive, without a gap.
    #[schema(max_items = 2048)]
    pub headers: Vec<Checkpoint>,
    /// Of exactly a quorum, for the newest checkpoint, in the order of the authorities' keys.
    #[schema(max_items = 255)]
    pub votes: Vec<CheckpointVote>,
    /// Where the list goes on; absent where the archive has no more of it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<ArchiveCursor>,
}

/// An entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedEntry {
    /// As it is hashed: a kind byte, 0x22 for an executed transfer or 0x23 for a void number, and its borsh fields.
    pub leaf: Bytes,
    /// The number of the checkpoint whose segment it stands in.
    pub checkpoint: Uint64,
    /// Bit k is set where sibling k is on the left.
    pub directions: Uint64,
    /// The hashes from the leaf up.
    #[schema(max_items = 64)]
    pub siblings: Vec<Bytes32>,
}

/// A checkpoint: the EIP-712 struct `CheckpointVote`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checkpoint {
    /// The epoch whose members sign.
    pub epoch: Uint64,
    /// Its number.
    pub number: Uint64,
    /// The digest of the checkpoint before.
    pub previous: Bytes32,
    /// Every event of the contract up to this index is included.
    pub transaction_index: Uint64,
    /// The root of the next numbers of all accounts.
    pub cut: Bytes32,
    /// The root of the state.
    pub state: Bytes32,
    /// The root of the entries since the checkpoint before.
    pub segment: Bytes32,
}

/// A member's vote for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointVote {
    /// The Ed25519 key of the authority.
    pub authority: Bytes32,
    /// By this key, over the EIP-712 digest of the checkpoint.
    pub signature: Bytes64,
}

/// A place in an archive: the checkpoint's number, and the entry's position in its segment, with a dot between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCursor(pub core::ArchiveCursor);

impl fmt::Display for ArchiveCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.checkpoint, self.0.entry)
    }
}

impl FromStr for ArchiveCursor {
    type Err = ParseTextError;
    fn from_str(text: &str) -> Result<Self, ParseTextError> {
        let (checkpoint, entry) = text.split_once('.').unwrap_or((text, ""));
        let (checkpoint, entry): (Decimal<u64>, Decimal<u32>) = (checkpoint.parse()?, entry.parse()?);
        Ok(Self(core::ArchiveCursor { checkpoint: checkpoint.0, entry: entry.0 }))
    }
}

impl From<&core::ArchivedPage> for ArchivedPage {
    fn from(page: &core::ArchivedPage) -> Self {
        let vote = |vote: &core::CheckpointVote| CheckpointVote {
            authority: Hex(vote.authority.0),
            signature: Hex(vote.signature.0),
        };
        Self {
            entries: page.entries.iter().map(Into::into).collect(),
            headers: page.headers.iter().map(Into::into).collect(),
            votes: page.votes.iter().map(vote).collect(),
            next: page.next.map(ArchiveCursor),
        }
    }
}

impl From<&core::ArchivedEntry> for ArchivedEntry {
    fn from(core::ArchivedEntry { leaf, checkpoint, path }: &core::ArchivedEntry) -> Self {
        Self {
            leaf: Bytes(leaf.encoded()),
            checkpoint: Decimal(*checkpoint),
            directions: Decimal(path.directions),
            siblings: path.siblings.iter().map(|sibling| Hex(sibling.0)).collect(),
        }
    }
}

impl From<&core::Checkpoint> for Checkpoint {
    fn from(checkpoint: &core::Checkpoint) -> Self {
        Self {
            epoch: Decimal(checkpoint.epoch.0),
            number: Decimal(checkpoint.number),
            previous: Hex(checkpoint.previous.0),
            transaction_index: Decimal(checkpoint.up_to.0),
            cut: Hex(checkpoint.cut.0),
            state: Hex(checkpoint.state.0),
            segment: Hex(checkpoint.segment.0),
        }
    }
}

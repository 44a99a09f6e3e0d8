//! Entries of an archive with their proof, to and from protobuf. What is decoded is well-formed and unverified:
//! [`fastpay_core::checkpoint::ArchivedPage::verify`].

use fastpay_core::checkpoint::{
    ARCHIVED_HEADERS_MAX, ArchiveCursor, ArchivedEntry, ArchivedList, ArchivedPage, Checkpoint, CheckpointVote,
    LEAF_PATH_LENGTH_MAX, Leaf, LeafPath,
};
use fastpay_core::{AccountId, COMMITTEE_SIZE_MAX, Digest, Ed25519Signature, Epoch, SequenceNumber, TransactionIndex};

use crate::convert::{Malformed, account, array, authority_name, copy, digest};
use crate::proto::archived_request::List;
use crate::{PAGE_ENTRIES_MAX, proto};

/// The longest entries of one page, with their paths, in bytes. A page has at least one entry; the longest one, a payout
/// with its path, takes a tenth of it. JSON takes about twice as much.
pub const ARCHIVED_BYTES_MAX: usize = 1 << 18;

/// Which entries of an archive are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedRequest {
    /// The account.
    pub account: AccountId,
    /// The list, and where to begin.
    pub list: ArchivedList,
    /// The maximum number of entries. 0 or a greater number means a whole page.
    pub limit: u32,
    /// Whether [`Leaf::Paid`] is understood.
    pub with_paid: bool,
}

impl From<ArchivedRequest> for proto::ArchivedRequest {
    fn from(ArchivedRequest { account, list, limit, with_paid }: ArchivedRequest) -> Self {
        let list = match list {
            ArchivedList::Sent(from) => List::Sent(from.0),
            ArchivedList::Received(from) => List::Received(from.into()),
        };
        Self { account: copy(&account.0), list: Some(list), limit, with_paid }
    }
}

impl TryFrom<proto::ArchivedRequest> for ArchivedRequest {
    type Error = Malformed;
    fn try_from(request: proto::ArchivedRequest) -> Result<Self, Malformed> {
        let list = match request.list.ok_or(Malformed::Missing("list"))? {
            List::Sent(from) => ArchivedList::Sent(SequenceNumber(from)),
            List::Received(from) => ArchivedList::Received(from.into()),
        };
        let account = account("account", &request.account)?;
        Ok(Self { account, list, limit: request.limit, with_paid: request.with_paid })
    }
}

impl From<ArchiveCursor> for proto::ArchiveCursor {
    fn from(ArchiveCursor { checkpoint, entry }: ArchiveCursor) -> Self {
        Self { checkpoint, entry }
    }
}

impl From<proto::ArchiveCursor> for ArchiveCursor {
    fn from(proto::ArchiveCursor { checkpoint, entry }: proto::ArchiveCursor) -> Self {
        Self { checkpoint, entry }
    }
}

impl From<&ArchivedPage> for proto::ArchivedPage {
    fn from(page: &ArchivedPage) -> Self {
        let vote = |vote: &CheckpointVote| proto::CheckpointVote {
            authority: copy(&vote.authority.0),
            signature: copy(&vote.signature.0),
        };
        Self {
            entries: page.entries.iter().map(Into::into).collect(),
            headers: page.headers.iter().map(Into::into).collect(),
            votes: page.votes.iter().map(vote).collect(),
            next: page.next.map(Into::into),
        }
    }
}

impl TryFrom<proto::ArchivedPage> for ArchivedPage {
    type Error = Malformed;
    fn try_from(page: proto::ArchivedPage) -> Result<Self, Malformed> {
        let bounds = [
            ("entries", page.entries.len(), PAGE_ENTRIES_MAX as usize),
            ("headers", page.headers.len(), ARCHIVED_HEADERS_MAX),
            ("votes", page.votes.len(), COMMITTEE_SIZE_MAX),
        ];
        if let Some((field, ..)) = bounds.into_iter().find(|(_, length, max)| length > max) {
            return Err(Malformed::OutOfRange(field));
        }
        let vote = |vote: proto::CheckpointVote| {
            let signature = Ed25519Signature(array("signature", &vote.signature)?);
            Ok(CheckpointVote { authority: authority_name("authority", &vote.authority)?, signature })
        };
        Ok(Self {
            entries: page.entries.into_iter().map(TryInto::try_into).collect::<Result<_, Malformed>>()?,
            headers: page.headers.into_iter().map(TryInto::try_into).collect::<Result<_, Malformed>>()?,
            votes: page.votes.into_iter().map(vote).collect::<Result<_, Malformed>>()?,
            next: page.next.map(Into::into),
        })
    }
}

impl From<&ArchivedEntry> for proto::ArchivedEntry {
    fn from(ArchivedEntry { leaf, checkpoint, path }: &ArchivedEntry) -> Self {
        let siblings: Vec<u8> = path.siblings.iter().flat_map(|sibling| sibling.0).collect();
        Self {
            leaf: leaf.encoded().into(),
            checkpoint: *checkpoint,
            directions: path.directions,
            siblings: siblings.into(),
        }
    }
}

impl TryFrom<proto::ArchivedEntry> for ArchivedEntry {
    type Error = Malformed;
    fn try_from(entry: proto::ArchivedEntry) -> Result<Self, Malformed> {
        let leaf = Leaf::decode(&entry.leaf).ok_or(Malformed::OutOfRange("leaf"))?;
        let (siblings, rest) = entry.siblings.as_chunks();
        if !rest.is_empty() || siblings.len() > LEAF_PATH_LENGTH_MAX {
            return Err(Malformed::OutOfRange("siblings"));
        }
        let siblings = siblings.iter().map(|sibling| Digest::new(*sibling)).collect();
        let path = LeafPath { directions: entry.directions, siblings };
        Ok(Self { leaf, checkpoint: entry.checkpoint, path })
    }
}

impl From<&Checkpoint> for proto::Checkpoint {
    fn from(checkpoint: &Checkpoint) -> Self {
        let Checkpoint { epoch, number, previous, up_to, cut, state, segment } = checkpoint;
        let bytes = |digest: &Digest| copy(digest.as_slice());
        Self {
            epoch: epoch.0,
            number: *number,
            previous: bytes(previous),
            transaction_index: up_to.0,
            cut: bytes(cut),
            state: bytes(state),
            segment: bytes(segment),
        }
    }
}

impl TryFrom<proto::Checkpoint> for Checkpoint {
    type Error = Malformed;
    fn try_from(checkpoint: proto::Checkpoint) -> Result<Self, Malformed> {
        Ok(Self {
            epoch: Epoch(checkpoint.epoch),
            number: checkpoint.number,
            previous: digest("previous", &checkpoint.previous)?,
            up_to: TransactionIndex(checkpoint.transaction_index),
            cut: digest("cut", &checkpoint.cut)?,
            state: digest("state", &checkpoint.state)?,
            segment: digest("segment", &checkpoint.segment)?,
        })
    }
}

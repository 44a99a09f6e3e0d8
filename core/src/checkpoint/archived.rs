//! Entries of the archive that one authority shows to a client, with what proves them: each has a path to the segment of
//! its checkpoint, the checkpoints are linked by their digests, and a quorum signed the newest one. As good as the
//! certificates that were pruned, and nothing has to be believed:
//!
//! ```text
//!  entry ─ path ─► segment of k ∈ header k ◄─ previous ─ header k + 1 ◄─ … ◄─ previous ─ newest header ◄─ votes
//! ```
//! A list of what an account sent is complete where it has no gap. That a list of what it received lacks nothing is not
//! proven: an authority can leave out what it likes, and others do not.

use super::certificate::{Checkpoint, CheckpointCertificate, CheckpointError, CheckpointVote};
use super::leaf::Leaf;
use super::tree::LeafPath;
use crate::amount::SequenceNumber;
use crate::committee::Committee;
use crate::identity::AccountId;
use crate::statement::Domain;
use crate::transfer::Transfer;

/// The most headers of a page: with 150 bytes each they fit into a message beside the entries. Older checkpoints are
/// archived, and nothing is proven from them in one page.
pub const ARCHIVED_HEADERS_MAX: usize = 2_048;

/// Entries of an archive with their proof, not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivedPage {
    /// The entries, oldest first: by checkpoint, account and number.
    pub entries: Vec<ArchivedEntry>,
    /// The checkpoints from the lowest one of an entry to the newest one of the archive, without a gap.
    pub headers: Vec<Checkpoint>,
    /// Of exactly a quorum, for the newest checkpoint, in the order of names.
    pub votes: Vec<CheckpointVote>,
    /// Where the list goes on; none if the archive has no more of it now.
    pub next: Option<ArchiveCursor>,
}

/// An entry of an archived segment, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedEntry {
    /// [`Leaf::Executed`], [`Leaf::Void`] or [`Leaf::Paid`].
    pub leaf: Leaf,
    /// The number of the checkpoint whose segment it stands in.
    pub checkpoint: u64,
    /// From the leaf to the segment's root.
    pub path: LeafPath,
}

/// A place in an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchiveCursor {
    /// The number of the checkpoint.
    pub checkpoint: u64,
    /// The position of the entry in its segment, from 0.
    pub entry: u32,
}

/// A list of an account's entries, and where a part of it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchivedList {
    /// The numbers that it took, from this one on, without a gap.
    Sent(SequenceNumber),
    /// The transfers that paid it, by checkpoint, sender and number, from this place on.
    Received(ArchiveCursor),
}

/// Proven entries of an archive. Only checking makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedArchivedPage {
    entries: Vec<ProvenEntry>,
    newest: u64,
    next: Option<ArchiveCursor>,
}

/// A number that an account took, proven by a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenEntry {
    /// The number of the checkpoint that proves it.
    pub checkpoint: u64,
    /// The account.
    pub account: AccountId,
    /// The number.
    pub sequence: SequenceNumber,
    /// What a quorum executed under it; none if the account stepped over the number, which is void.
    pub transfer: Option<Transfer>,
    /// Whether a recovery debited the transfer because the contract had paid it, without its owner's order: it is a
    /// redemption, and nothing else is ever executed under the number. An earlier number may still be free.
    pub is_paid: bool,
}

impl ProvenEntry {
    fn new(checkpoint: u64, leaf: Leaf) -> Result<Self, ArchivedError> {
        match leaf {
            Leaf::Executed(transfer) => {
                let (account, sequence) = (transfer.sender(), transfer.sequence());
                Ok(Self { checkpoint, account, sequence, transfer: Some(transfer), is_paid: false })
            }
            Leaf::Void(account, sequence) => Ok(Self { checkpoint, account, sequence, transfer: None, is_paid: false }),
            Leaf::Paid(redemption) => {
                let (account, sequence) = (redemption.sender, redemption.sequence);
                let transfer = Some(Transfer::Redemption(redemption));
                Ok(Self { checkpoint, account, sequence, transfer, is_paid: true })
            }
            _ => Err(ArchivedError::OtherLeaf),
        }
    }
}

impl VerifiedArchivedPage {
    fn check_sent(&self, account: AccountId, from: SequenceNumber) -> Result<(), ArchivedError> {
        for (entry, expected) in self.entries.iter().zip(from.0..) {
            if entry.account != account {
                return Err(ArchivedError::OtherAccount);
            }
            if entry.sequence.0 != expected {
                return Err(ArchivedError::Gap { expected: SequenceNumber(expected), found: entry.sequence });
            }
        }
        Ok(())
    }

    fn check_received(&self, account: AccountId, from: ArchiveCursor) -> Result<(), ArchivedError> {
        let pays = |entry: &ProvenEntry| {
            let mut receipts = entry.transfer.iter().flat_map(Transfer::receipts);
            receipts.any(|receipt| receipt.payment.recipient == account)
        };
        if !self.entries.iter().all(pays) {
            return Err(ArchivedError::OtherAccount);
        }
        let place = |entry: &ProvenEntry| (entry.checkpoint, entry.account, entry.sequence);
        let is_before = self.entries.first().is_some_and(|first| first.checkpoint < from.checkpoint);
        // A list that does not go forward could be read for ever.
        let goes_on = |next: ArchiveCursor| {
            let last = self.entries.last().map_or(0, |last| last.checkpoint);
            from < next && (last..=self.newest).contains(&next.checkpoint)
        };
        let is_ordered = self.entries.array_windows().all(|[a, b]| place(a) < place(b));
        if is_before || !is_ordered || !self.next.is_none_or(goes_on) {
            return Err(ArchivedError::Unordered);
        }
        Ok(())
    }

    /// The proven entries, oldest first.
    #[must_use]
    pub fn into_entries(self) -> Vec<ProvenEntry> {
        self.entries
    }

    /// The number of the newest checkpoint.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Where the list goes on; none if the archive has no more of it now. It is not proven.
    #[must_use]
    pub fn next(&self) -> Option<ArchiveCursor> {
        self.next
    }
}

impl ArchivedPage {
    /// Checks a part of a list of an account's entries. Votes count of the members of one of the `counting` committees: the
    /// current one, and the one before if its keys were not out.
    ///
    /// # Errors
    /// See [`ArchivedError`].
    pub fn verify(
        self,
        domain: &Domain,
        counting: &[&Committee],
        account: AccountId,
        list: ArchivedList,
    ) -> Result<VerifiedArchivedPage, ArchivedError> {
        let page = self.prove(domain, counting)?;
        match list {
            ArchivedList::Sent(from) => page.check_sent(account, from)?,
            ArchivedList::Received(from) => page.check_received(account, from)?,
        }
        Ok(page)
    }

    fn prove(self, domain: &Domain, counting: &[&Committee]) -> Result<VerifiedArchivedPage, ArchivedError> {
        let Self { entries, headers, votes, next } = self;
        let (Some(lowest), Some(newest)) = (headers.first(), headers.last()) else {
            return Err(ArchivedError::NoHeaders);
        };
        if headers.len() > ARCHIVED_HEADERS_MAX {
            return Err(ArchivedError::TooManyHeaders);
        }
        let (lowest, newest) = (lowest.number, *newest);
        let is_linked = |[before, after]: &[Checkpoint; 2]| {
            after.previous == domain.checkpoint_digest(before) && before.number.checked_add(1) == Some(after.number)
        };
        if let Some([_, after]) = headers.array_windows().find(|pair| !is_linked(pair)) {
            return Err(ArchivedError::Unlinked(after.number));
        }
        let epoch = newest.epoch;
        let committee = counting.iter().find(|committee| committee.epoch() == epoch);
        let committee = committee.ok_or(CheckpointError::EpochEnded(epoch))?;
        CheckpointCertificate { checkpoint: newest, votes }.verify_by(domain, committee)?;
        let prove = |ArchivedEntry { leaf, checkpoint, path }: ArchivedEntry| {
            let place = checkpoint.checked_sub(lowest).and_then(|place| usize::try_from(place).ok());
            let header = place.and_then(|place| headers.get(place)).ok_or(ArchivedError::NoHeader(checkpoint))?;
            if leaf.root(&path) != Some(header.segment) {
                return Err(ArchivedError::NotProven(checkpoint));
            }
            ProvenEntry::new(checkpoint, leaf)
        };
        let entries = entries.into_iter().map(prove).collect::<Result<_, _>>()?;
        Ok(VerifiedArchivedPage { entries, newest: newest.number, next })
    }
}

/// Why entries of an archive prove nothing. Another authority may show them with their proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchivedError {
    /// No checkpoint is shown.
    #[error("no checkpoint is shown")]
    NoHeaders,
    /// More checkpoints than a page may have.
    #[error("more than {ARCHIVED_HEADERS_MAX} checkpoints are shown")]
    TooManyHeaders,
    /// A checkpoint is not built on the one before.
    #[error("checkpoint {0} is not built on the one that is shown before it")]
    Unlinked(u64),
    /// The newest checkpoint is not certified.
    #[error("the newest checkpoint does not count: {0}")]
    Certificate(#[from] CheckpointError),
    /// The checkpoint of an entry is not shown.
    #[error("an entry is of checkpoint {0}, which is not shown")]
    NoHeader(u64),
    /// An entry is not in its segment.
    #[error("an entry is not proven by checkpoint {0}")]
    NotProven(u64),
    /// An entry is not a number that an account took.
    #[error("an entry is not of an account")]
    OtherLeaf,
    /// An entry is of another account.
    #[error("an entry is of another account than the one that was asked for")]
    OtherAccount,
    /// A number is left out or repeated.
    #[error("number {found} is shown where number {expected} must follow")]
    Gap {
        /// The number that must follow.
        expected: SequenceNumber,
        /// The one that is shown.
        found: SequenceNumber,
    },
    /// Received payments are repeated, out of order, or before the place that was asked for; or the list does not go on
    /// forward.
    #[error("entries are repeated or out of order, or the list does not go forward")]
    Unordered,
}

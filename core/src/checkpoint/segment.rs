//! A segment: everything that happened between two cuts and changes a balance, a next number or what the Primary said
//! of a number [LIFE §4]. Events of the Primary come first, in their order; then the numbers that accounts took, by
//! account and number.
//!
//! Nothing of it depends on the authority that writes it down, and its root only on the two cuts: an order's leaf is
//! its transfer. Its owner can authorize one transfer with many signatures, and authorities may hold different ones;
//! each proves itself, so the segment carries one beside the leaf.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};

use super::installations::InstalledCommittee;
use super::leaf::{Leaf, root_of};
use super::state::Cut;
use super::stream::{encode_into, invalid, read_item, read_magic, write_stream};
use super::tree::LeafPath;
use crate::Digest;
use crate::amount::{Amount, Asset, SequenceNumber, TransactionIndex};
use crate::identity::AccountId;
use crate::order::TransferOrder;
use crate::private::{PrivateConfirmation, PrivateOrder};
use crate::record::Record;
use crate::transfer::Redemption;

/// The most entries of a segment that is read into memory: above the 10 million orders after which a checkpoint is due
/// (LIFE §4).
pub const SEGMENT_ENTRIES_MAX: usize = 1 << 24;
pub(super) const MAGIC: &[u8; 8] = b"FPSEGM\0\x01";

/// An event in the Primary's one gap-free order. Its truth is for the reader to compare with the chain; the events of a
/// committee without a Primary are the deposits of its [`crate::Genesis`].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrimaryEvent {
    /// Its place in the order, from 1.
    pub index: TransactionIndex,
    /// What happened.
    pub kind: PrimaryEventKind,
}

/// The kinds of events of the Primary's order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[borsh(use_discriminant = true)]
#[repr(u8)]
pub enum PrimaryEventKind {
    /// A deposit.
    Deposit {
        /// The account that it funds.
        recipient: AccountId,
        /// The asset.
        asset: Asset,
        /// The amount that arrived, in the asset's smallest unit.
        amount: Amount,
    } = 0,
    /// A committee was installed.
    Installed(InstalledCommittee) = 1,
    /// Somebody asked to unlock a number.
    UnlockRequested {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// Whether the request counts, see [`crate::is_unlock_authorized`]: whether its owner signed it.
        is_authorized: bool,
    } = 2,
    /// The order with this digest holds.
    Upheld {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        digest: Digest,
    } = 3,
    /// No order of the number holds.
    Voided {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    } = 4,
    /// The redemption with this digest was paid.
    Redeemed {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the redemption.
        digest: Digest,
    } = 5,
    /// The redemption with this digest waits in the Primary's queue; its number is spent.
    Queued {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the redemption.
        digest: Digest,
    } = 6,
    /// The redemption with this digest left the queue and is never paid.
    Released {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the redemption.
        digest: Digest,
    } = 7,
}

impl PrimaryEventKind {
    /// The account that it is about. An installation is about none, although it may open numbers of any.
    #[must_use]
    pub fn account(&self) -> Option<AccountId> {
        match self {
            Self::Installed(_) => None,
            Self::Deposit { recipient: account, .. }
            | Self::UnlockRequested { account, .. }
            | Self::Upheld { account, .. }
            | Self::Voided { account, .. }
            | Self::Redeemed { account, .. }
            | Self::Queued { account, .. }
            | Self::Released { account, .. } => Some(*account),
        }
    }
}

/// An entry of a segment. The kind bytes are those of the leaves.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[borsh(use_discriminant = true)]
#[repr(u8)]
pub enum SegmentEntry {
    /// An event of the Primary.
    Event(PrimaryEvent) = 0x21,
    /// An order that was executed under its number. Votes are left out: those on the checkpoint replace them.
    Executed(TransferOrder) = 0x22,
    /// A void number that the account stepped over.
    Void {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    } = 0x23,
    /// In a recovery: a number that the Primary spent on exactly this redemption, of which no certificate is known. The
    /// Primary's event proves it, so it needs no authorization. Behind a gap, it does not take the number, which is void
    /// from then on.
    Paid(Redemption) = 0x24,
    /// The first entry of a recovery, see [`super::Recovered`].
    Recovery = 0x25,
    /// A private order that was executed under the number of its account nullifier; it takes the only number of its coin
    /// nullifier, too. Neither votes nor the proof are here: votes on the checkpoint replace both.
    ExecutedPrivate(Box<PrivateOrder>) = 0x26,
}

impl SegmentEntry {
    /// The entry of an executed private order.
    pub(super) fn private(confirmation: &PrivateConfirmation) -> Self {
        Self::ExecutedPrivate(Box::new(confirmation.certificate.order.clone()))
    }

    /// Its leaf in the segment's tree.
    #[must_use]
    pub fn leaf(&self) -> Leaf {
        match self {
            Self::Event(event) => Leaf::Event(event.clone()),
            Self::Executed(order) => Leaf::Executed(order.transfer.clone()),
            Self::Void { account, sequence } => Leaf::Void(*account, *sequence),
            Self::Paid(redemption) => Leaf::Paid(redemption.clone()),
            Self::Recovery => Leaf::Recovery,
            Self::ExecutedPrivate(order) => Leaf::ExecutedPrivate(Box::new(order.transfer)),
        }
    }

    /// Encodes its leaf in the place of what a buffer holds.
    pub(super) fn encode_leaf(&self, bytes: &mut Vec<u8>) {
        match self {
            // Without a copy of the transfer.
            Self::Executed(order) => encode_into(&(Leaf::EXECUTED, &order.transfer), bytes),
            entry => encode_into(&entry.leaf(), bytes),
        }
    }

    /// The accounts of whose rows in a state it may change some, or depend on some.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountId> {
        match self {
            Self::Event(event) => event.kind.account().into_iter().collect(),
            Self::Executed(order) => {
                let recipients = order.transfer.receipts().map(|receipt| receipt.payment.recipient);
                recipients.chain([order.transfer.sender()]).collect()
            }
            Self::Void { account, .. } => vec![*account],
            Self::Paid(redemption) => vec![redemption.sender],
            Self::Recovery => Vec::new(),
            Self::ExecutedPrivate(order) => {
                let taken = order.transfer.taken().into_iter().map(|(account, _)| account);
                let paid = order.transfer.withdrawal().map(|receipt| receipt.payment.recipient);
                taken.chain(paid).chain(paid.map(|_| AccountId::PRIVATE_POOL)).collect()
            }
        }
    }

    /// The account's number that it is about, of a private order the account nullifier's; `None` of an event.
    #[must_use]
    pub fn number(&self) -> Option<(AccountId, SequenceNumber)> {
        match self {
            Self::Event(_) | Self::Recovery => None,
            Self::Executed(order) => Some((order.transfer.sender(), order.transfer.sequence())),
            Self::Void { account, sequence } => Some((*account, *sequence)),
            Self::Paid(redemption) => Some((redemption.sender, redemption.sequence)),
            Self::ExecutedPrivate(order) => {
                let [number, _] = order.transfer.taken();
                Some(number)
            }
        }
    }

    /// All numbers that it is about: a private order takes the one of its coin nullifier, too.
    pub fn numbers(&self) -> impl Iterator<Item = (AccountId, SequenceNumber)> {
        let coin = match self {
            Self::ExecutedPrivate(order) => {
                let [_, coin] = order.transfer.taken();
                Some(coin)
            }
            _ => None,
        };
        self.number().into_iter().chain(coin)
    }
}

/// The entries between two cuts, not yet checked. [`super::CheckpointState::apply`] checks them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Events by index, then numbers by account and number; in a recovery, the installation that made it comes last. At
    /// least one, at most [`SEGMENT_ENTRIES_MAX`].
    pub entries: Vec<SegmentEntry>,
}

impl Segment {
    /// The segment between two cuts as an authority has it: of the Primary's events those that it followed, and of its
    /// shards' journals the numbers that accounts took. Both may hold more than the segment. What they lack is missing
    /// from the segment, which [`super::CheckpointState::apply`] notices.
    #[must_use]
    pub fn from_records(
        events: impl IntoIterator<Item = PrimaryEvent>,
        records: impl IntoIterator<Item = Record>,
        from: &Cut,
        to: &Cut,
    ) -> Self {
        let events = events.into_iter().filter(|event| from.up_to < event.index && event.index <= to.up_to);
        let numbers = records.into_iter().filter_map(|record| match record {
            Record::Confirmation { certificate, .. } => Some(SegmentEntry::Executed(certificate.order.clone())),
            Record::Void { account, sent } => {
                Some(SegmentEntry::Void { account, sequence: SequenceNumber(sent.number) })
            }
            Record::PrivateConfirmation(confirmation) => Some(SegmentEntry::private(&confirmation)),
            _ => None,
        });
        let is_between = |entry: &SegmentEntry| {
            let is_between = |(account, sequence)| (from.next(&account)..to.next(&account)).contains(&sequence);
            entry.number().is_some_and(is_between)
        };
        Self::sorted(events, numbers.filter(is_between).collect())
    }

    /// The segment of the Primary's events, in their order, and of entries about numbers, in any order. Of several about
    /// one number, it has the last.
    #[must_use]
    pub fn sorted(events: impl IntoIterator<Item = PrimaryEvent>, numbers: Vec<SegmentEntry>) -> Self {
        // Entries are long, so their places are sorted.
        let places = numbers.iter().enumerate().filter_map(|(place, entry)| Some((entry.number()?, place)));
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        let mut numbers: Vec<_> = numbers.into_iter().map(Some).collect();
        let last = places.chunk_by(|(of, _), (other, _)| of == other).filter_map(|same| same.last());
        let numbers = last.filter_map(|(_, place)| numbers.get_mut(*place)?.take());
        Self { entries: events.into_iter().map(SegmentEntry::Event).chain(numbers).collect() }
    }

    /// The accounts that its entries touch: see [`SegmentEntry::accounts`].
    #[must_use]
    pub fn accounts(&self) -> BTreeSet<AccountId> {
        self.entries.iter().flat_map(SegmentEntry::accounts).collect()
    }

    /// The next number of each account that takes one in it. `after` is the cut at its end, of which the accounts that it
    /// touches are needed. What is paid behind a gap takes no number.
    #[must_use]
    pub fn next(&self, after: &Cut) -> BTreeMap<AccountId, SequenceNumber> {
        let numbers = self.entries.iter().flat_map(SegmentEntry::numbers);
        let next = |(account, sequence): (AccountId, SequenceNumber)| {
            Some((account, after.next(&account))).filter(|(_, next)| sequence < *next)
        };
        numbers.filter_map(next).collect()
    }

    /// The path of an entry's leaf, by which a certified checkpoint proves it. `None` if the segment has no such leaf.
    #[must_use]
    pub fn path(&self, leaf: &Leaf) -> Option<LeafPath> {
        root_of(self.entries.iter().map(SegmentEntry::leaf), Some(leaf)).1
    }

    /// Writes the segment as it is archived.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, writer: &mut impl Write) -> Result<()> {
        write_stream(writer, MAGIC, self.entries.iter().map(Ok))
    }

    /// Reads an archived segment to the end of `reader`.
    ///
    /// # Errors
    /// Those of the reader; `InvalidData` or `UnexpectedEof` if the bytes are no segment of at most
    /// [`SEGMENT_ENTRIES_MAX`] entries.
    pub fn read(reader: &mut impl Read) -> Result<Self> {
        Self::read_at_most(reader, SEGMENT_ENTRIES_MAX)
    }

    /// The same with a lower bound, for bytes of others: in memory an entry takes more than its bytes.
    ///
    /// # Errors
    /// As [`Segment::read`], with at most `entries_max` entries.
    pub fn read_at_most(reader: &mut impl Read, entries_max: usize) -> Result<Self> {
        read_magic(reader, MAGIC)?;
        let (mut entries, mut item) = (Vec::new(), Vec::new());
        while let Some(entry) = read_item(reader, &mut item)? {
            if entries.len() >= entries_max {
                return Err(invalid("the segment has too many entries"));
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_more_entries_than_fit_into_memory_is_not_read() {
        let entry = SegmentEntry::Void { account: AccountId([1; 32]), sequence: SequenceNumber(2) };
        let mut bytes = Vec::new();
        Segment { entries: vec![entry; 3] }.write(&mut bytes).unwrap();
        assert_eq!(Segment::read_at_most(&mut bytes.as_slice(), 3).unwrap().entries.len(), 3);
        assert!(Segment::read_at_most(&mut bytes.as_slice(), 2).is_err());
    }
}

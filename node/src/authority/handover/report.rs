//! What this authority states of an epoch that has ended: gathered from the journals and ledgers of its shards, all of
//! which have closed the epoch on disk.
//!
//! Memory holds each entry with the place of its order. The orders themselves are read again as they are written.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fastpay_core::handover::{CLOSING_ENTRIES_MAX, Closing, ClosingEntry, Newest, ReportedEntry};
use fastpay_core::{
    AccountId, Digest, Domain, Epoch, JournalPosition, PendingOrder, Record, SequenceNumber, ShardLedger, TransferOrder,
};

use crate::authority::shard::{HistoryError, HistoryReader};

/// Why nothing is stated yet.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A shard has not closed the epoch on disk.
    #[error("a shard has not closed epoch {0} yet")]
    NotClosed(Epoch),
    /// Too much has happened since the checkpoint.
    #[error(
        "the Closing would have more than {CLOSING_ENTRIES_MAX} entries: have the journals end at a newer checkpoint first \
         (`fastpay-node rebase`)"
    )]
    TooMany,
    /// Nobody waits for it any more.
    #[error("the node stops")]
    Stopped,
    /// A journal cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// A record of a shard.
type Place = (usize, JournalPosition);

/// Where the order that an entry names is.
enum Source {
    /// It names none: the number is void.
    Void,
    /// In the record that executed or locked it.
    At(Place),
    /// It was inherited, or its certificate is kept.
    Held(Arc<TransferOrder>),
}

/// What the journals say of an account so far.
#[derive(Default)]
struct Known {
    next: SequenceNumber,
    /// What took the number before; nothing for a void one, or if it is not in the journals.
    newest: Option<(Newest, Place)>,
    pending: Option<(SequenceNumber, Digest, Place)>,
}

/// The entries of a Closing, and its statement.
pub struct Report<'a> {
    histories: &'a [HistoryReader],
    entries: BTreeMap<ClosingEntry, Source>,
    /// The statement, not signed yet.
    pub closing: Closing,
}

impl<'a> Report<'a> {
    /// Reads the journals to their ends, or until `is_stopped`. `ledgers` are those of the shards at a time when each had closed `epoch`.
    ///
    /// # Errors
    /// See [`ReportError`].
    pub fn read(
        epoch: Epoch,
        domain: &Domain,
        histories: &'a [HistoryReader],
        ledgers: &[Arc<ShardLedger>],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, ReportError> {
        if ledgers.iter().any(|ledger| ledger.tenure.closed() < Some(epoch)) {
            return Err(ReportError::NotClosed(epoch));
        }
        let mut entries = BTreeMap::new();
        for (shard, (history, ledger)) in histories.iter().zip(ledgers).enumerate() {
            add(&mut entries, domain, (shard, history), ledger, is_stopped)?;
            if entries.len() > CLOSING_ENTRIES_MAX {
                return Err(ReportError::TooMany);
            }
        }
        let up_to = ledgers.iter().map(|ledger| ledger.synchronized).min().unwrap_or_default();
        let base = histories.first().and_then(HistoryReader::base);
        let checkpoint = base.map_or(Digest::ZERO, |base| base.checkpoint);
        let closing = Closing::new(epoch, up_to, checkpoint, entries.keys());
        Ok(Self { histories, entries, closing })
    }

    /// The entries with their orders, in the order of the statement.
    pub fn reported(&self) -> impl Iterator<Item = io::Result<ReportedEntry>> {
        self.entries.iter().map(|(entry, source)| self.report(entry, source).map_err(io::Error::other))
    }

    fn report(&self, entry: &ClosingEntry, source: &Source) -> Result<ReportedEntry, HistoryError> {
        let order = match source {
            Source::Void => None,
            Source::Held(order) => Some(order.clone()),
            Source::At((shard, position)) => {
                let history = self.histories.get(*shard).ok_or(HistoryError::BrokenLink(*position))?;
                match history.record(*position)? {
                    Record::Confirmation { certificate, .. } => Some(Arc::new(certificate.order.clone())),
                    Record::Lock { order, .. } => Some(order),
                    _ => return Err(HistoryError::BrokenLink(*position)),
                }
            }
        };
        Ok(ReportedEntry::new(*entry, order.map(Arc::unwrap_or_clone)))
    }
}

/// Adds what a shard knows.
fn add(
    entries: &mut BTreeMap<ClosingEntry, Source>,
    domain: &Domain,
    (shard, history): (usize, &HistoryReader),
    ledger: &ShardLedger,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), ReportError> {
    let mut accounts = BTreeMap::<AccountId, Known>::new();
    for entry in history.records(JournalPosition::default()) {
        let (position, record) = entry?;
        if is_stopped() {
            return Err(ReportError::Stopped);
        }
        if accounts.len() > CLOSING_ENTRIES_MAX {
            return Err(ReportError::TooMany);
        }
        let place = (shard, position);
        let (account, number, newest) = match record {
            Record::Lock { order, digest } => {
                let (account, sequence) = (order.transfer.sender(), order.transfer.sequence());
                accounts.entry(account).or_default().pending = Some((sequence, digest, place));
                continue;
            }
            Record::Confirmation { certificate, sent, .. } => {
                let transfer = &certificate.order.transfer;
                (transfer.sender(), sent.number, Newest::Executed(domain.transfer_digest(transfer)))
            }
            Record::Void { account, sent } => (account, sent.number, Newest::Void),
            _ => continue,
        };
        let next = SequenceNumber(number.saturating_add(1));
        accounts.insert(account, Known { next, newest: Some((newest, place)), pending: None });
    }
    let is_left = |account: &AccountId, sequence: SequenceNumber| {
        accounts.get(account).is_none_or(|known| sequence >= known.next)
    };
    for PendingOrder { order, digest } in ledger.tenure.iter() {
        let (account, sequence) = (order.transfer.sender(), order.transfer.sequence());
        if is_left(&account, sequence) {
            entries.insert(ClosingEntry::Lock { account, sequence, order: *digest }, Source::Held(order.clone()));
        }
    }
    for (account, sequence, unlock) in ledger.unlocks.iter() {
        if let Some(seen) = unlock.seen.as_ref().filter(|_| is_left(&account, sequence)) {
            let order = domain.transfer_digest(&seen.order.transfer);
            let held = Source::Held(Arc::new(seen.order.clone()));
            entries.insert(ClosingEntry::Seen { account, sequence, order }, held);
        }
    }
    for (account, Known { next, newest, pending }) in accounts {
        if let Some((newest, place)) = newest {
            let source = if newest == Newest::Void { Source::Void } else { Source::At(place) };
            entries.insert(ClosingEntry::Account { account, next, newest }, source);
        }
        if let Some((sequence, order, place)) = pending {
            entries.insert(ClosingEntry::Lock { account, sequence, order }, Source::At(place));
        }
    }
    Ok(())
}

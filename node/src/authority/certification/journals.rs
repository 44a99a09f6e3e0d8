//! The records of this authority's shards, read while the node may be writing more.
//!
//! The journals of several shards are not read at one moment. That does no harm: a cut names orders that are executed
//! here, wherever their credits are, and an order whose cover is not in it is left out of the cut.

use std::collections::BTreeMap;
use std::path::Path;

use fastpay_core::checkpoint::{Cut, PrimaryEvent, Segment};
use fastpay_core::{AccountId, Base, Record, SequenceNumber, ShardId, TransactionIndex};

use super::cut::weight;
use super::{CheckpointError, Progress};
use crate::authority::shard::RecoveredShard;
use crate::authority::storage::{JournalPosition, JournalRead, JournalReader, shard_folders};
use crate::authority::stored_record::decode;

/// Progress is told each time so many records are read.
const TOLD_RECORDS: u64 = 1_000_000;

/// The journals of all shards, each up to its end when it was opened. Everything in them is durable.
pub(crate) struct Journals(Vec<JournalReader>);

/// How far this authority is, by its journals.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    /// The next number of each account that took one since the journals began.
    pub next: BTreeMap<AccountId, SequenceNumber>,
    /// Of each shard, the newest event that it has applied.
    applied: Vec<TransactionIndex>,
}

impl Executed {
    /// The newest event that all shards have applied.
    pub fn applied(&self) -> TransactionIndex {
        self.applied.iter().copied().min().unwrap_or_default()
    }

    fn add(&mut self, record: &Record) {
        let (account, taken) = match record {
            Record::Confirmation { certificate, sent, .. } => (certificate.order.transfer.sender(), sent.number),
            Record::Void { account, sent } => (*account, sent.number),
            Record::Synchronization { order, .. } => return self.apply(order.up_to),
            Record::Unlock(event) => return self.apply(event.index),
            Record::Installation(installation) => return self.apply(installation.index),
            Record::Base(base) => match &**base {
                Base::Checkpoint(ledger) => return self.apply(ledger.synchronized),
                Base::Account(_)
                | Base::Totals(_)
                | Base::Balances { .. }
                | Base::Received { .. }
                | Base::Unpaid { .. }
                | Base::Number { .. } => return,
            },
            Record::Lock { .. } | Record::Credit(_) | Record::Seen { .. } | Record::VoidVoted { .. } => return,
            Record::Closed { .. } | Record::Inherited { .. } | Record::Joined { .. } => return,
        };
        self.next.insert(account, SequenceNumber(taken.saturating_add(1)));
    }

    fn apply(&mut self, index: TransactionIndex) {
        if let Some(newest) = self.applied.last_mut() {
            *newest = index.max(*newest);
        }
    }
}

impl Journals {
    /// Opens the journals of a data folder.
    pub fn open(data: &Path) -> Result<Self, CheckpointError> {
        let (shards, _) = shard_folders(data)?;
        Ok(Self(shards.iter().map(|shard| JournalReader::open(&shard.journal)).collect::<Result<_, _>>()?))
    }

    /// The journals of recovered shards, in the order of the shards.
    pub fn of(recovered: &[RecoveredShard]) -> Self {
        Self(recovered.iter().map(RecoveredShard::journal).collect())
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.0.len()
    }

    /// Hands all records, each with its shard, shard by shard, to `take`, and says how far they come.
    pub fn read<T>(
        &self,
        told: Progress<'_>,
        take: impl FnOnce(&mut dyn Iterator<Item = (ShardId, Record)>) -> T,
    ) -> Result<(T, Executed), CheckpointError> {
        let (mut executed, mut failure, mut count) = (Executed::default(), None, 0_u64);
        let taken = {
            let all = (0..).map(ShardId).zip(&self.0).flat_map(|(shard, journal)| {
                let records = journal.read_from(JournalPosition::default());
                std::iter::once((shard, None)).chain(records.map(move |record| (shard, Some(record))))
            });
            let mut records = all.map_while(|(shard, record)| {
                let Some(record) = record else {
                    executed.applied.push(TransactionIndex(0));
                    return Some(None);
                };
                match record.map_err(CheckpointError::from).and_then(|(at, bytes)| Ok(decode(shard, at, &bytes)?)) {
                    Ok(record) => {
                        executed.add(&record);
                        count = count.saturating_add(1);
                        if count.is_multiple_of(TOLD_RECORDS) {
                            told(format!("read {count} records"));
                        }
                        Some(Some((shard, record)))
                    }
                    Err(error) => {
                        failure = Some(error);
                        None
                    }
                }
            });
            let mut records = records.by_ref().flatten();
            let taken = take(&mut records);
            records.for_each(drop);
            taken
        };
        failure.map_or(Ok((taken, executed)), Err)
    }

    /// The segment between two cuts, of which only the accounts that differ need be there. It weighs at most
    /// `orders_max` orders. And how far the journals come, also for the accounts of `to` that only their base names.
    pub fn segment(
        &self,
        events: Vec<PrimaryEvent>,
        (from, to): (&Cut, &Cut),
        orders_max: usize,
        told: Progress<'_>,
    ) -> Result<(Segment, Executed), CheckpointError> {
        let (mut orders, mut begun_at) = (0_usize, BTreeMap::new());
        let gather = |records: &mut dyn Iterator<Item = (ShardId, Record)>| {
            let records = records.map(|(_, record)| record).take_while(|record| {
                let (account, number, transfer) = match record {
                    Record::Confirmation { certificate, sent, .. } => {
                        let transfer = &certificate.order.transfer;
                        (transfer.sender(), sent.number, Some(transfer))
                    }
                    Record::Void { account, sent } => (*account, sent.number, None),
                    Record::Base(base) => {
                        if let Base::Account(base) = &**base
                            && to.next.contains_key(&base.account)
                        {
                            begun_at.insert(base.account, base.next);
                        }
                        return true;
                    }
                    _ => return true,
                };
                if (from.next(&account).0..to.next(&account).0).contains(&number) {
                    orders = orders.saturating_add(weight(transfer));
                }
                orders <= orders_max
            });
            Segment::from_records(events, records, from, to)
        };
        let (segment, mut executed) = self.read(told, gather)?;
        if orders > orders_max {
            return Err(CheckpointError::TooManyOrders(orders_max));
        }
        for (account, begun_at) in begun_at {
            executed.next.entry(account).or_insert(begun_at);
        }
        Ok((segment, executed))
    }
}

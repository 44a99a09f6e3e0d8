//! The records of this authority's shards, read while the node may be writing more.
//!
//! The journals of several shards are not read at one moment. That does no harm: a cut names orders that are executed
//! here, wherever their credits are, and an order whose cover is not in it is left out of the cut.

use std::collections::BTreeMap;
use std::path::Path;

use fastpay_core::checkpoint::{Outline, SegmentEntry};
use fastpay_core::{AccountId, Base, Digest, Record, SequenceNumber, ShardId, TransactionIndex};

use super::{CheckpointError, Progress};
use crate::authority::shard::RecoveredShard;
use crate::authority::storage::{JournalPosition, JournalRead, JournalReader, shard_folders};
use crate::authority::stored_record::{UndecodableRecord, decode};

/// Progress is told each time so many records are read.
const TOLD_RECORDS: u64 = 1_000_000;

/// The journals of all shards, each up to its end when it was opened. Everything in them is durable.
pub(crate) struct Journals {
    readers: Vec<JournalReader>,
    starts: Vec<Start>,
}

/// From where on a shard's journal has anything that a checkpoint lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    at: JournalPosition,
    /// The newest event that the shard had applied there.
    applied: TransactionIndex,
}

/// How far this authority is, by its journals.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    /// The next number of each account that took one in what was read.
    pub next: BTreeMap<AccountId, SequenceNumber>,
    /// Of each shard, the newest event that it has applied.
    applied: Vec<TransactionIndex>,
}

impl Executed {
    /// The newest event that all shards have applied.
    pub fn applied(&self) -> TransactionIndex {
        self.applied.iter().copied().min().unwrap_or_default()
    }

    /// How many numbers are executed here and not in a cut, which has the next numbers `cut` of some accounts. `behind` has
    /// those at the cut before, of all that took numbers since.
    pub fn beyond(
        &self,
        cut: &BTreeMap<AccountId, SequenceNumber>,
        behind: &BTreeMap<AccountId, SequenceNumber>,
    ) -> u64 {
        let beyond = |(account, before): (&AccountId, &SequenceNumber)| {
            let included = cut.get(account).max(Some(before)).map_or(0, |next| next.0);
            self.next.get(account).map_or(0, |next| next.0.saturating_sub(included))
        };
        behind.iter().map(beyond).sum()
    }

    fn add(&mut self, shard: ShardId, record: &Record) {
        match record {
            Record::Confirmation { certificate, sent, .. } => {
                self.take(certificate.order.transfer.sender(), SequenceNumber(sent.number));
            }
            Record::Void { account, sent } => self.take(*account, SequenceNumber(sent.number)),
            Record::PrivateConfirmation(confirmation) => {
                let taken = confirmation.certificate.order.transfer.taken();
                taken.into_iter().for_each(|(account, taken)| self.take(account, taken));
            }
            record => follow(&mut self.applied, shard, record),
        }
    }

    fn take(&mut self, account: AccountId, taken: SequenceNumber) {
        self.next.insert(account, SequenceNumber(taken.0.saturating_add(1)));
    }
}

/// Notes the event up to which a record says that its shard has applied all, if it says so.
fn follow(applied: &mut [TransactionIndex], ShardId(shard): ShardId, record: &Record) {
    let index = match record {
        Record::Synchronization { order, .. } => order.up_to,
        Record::Unlock(event) => event.index,
        Record::Installation(installation) => installation.index,
        Record::Base(base) => match &**base {
            Base::Checkpoint(ledger) => ledger.synchronized,
            Base::Account(_)
            | Base::Totals(_)
            | Base::Balances { .. }
            | Base::Received { .. }
            | Base::Unpaid { .. }
            | Base::Number { .. } => return,
        },
        Record::Confirmation { .. } | Record::Void { .. } => return,
        Record::Lock { .. } | Record::Credit(_) | Record::Seen { .. } | Record::VoidVoted { .. } => return,
        Record::Closed { .. } | Record::Inherited { .. } | Record::Joined { .. } => return,
        Record::PrivateLock(_)
        | Record::PrivateConfirmation(_)
        | Record::PrivateSeen(_)
        | Record::PrivateInherited(_) => return,
    };
    if let Some(newest) = usize::try_from(shard).ok().and_then(|shard| applied.get_mut(shard)) {
        *newest = index.max(*newest);
    }
}

impl Journals {
    /// Opens the journals of a data folder.
    pub fn open(data: &Path) -> Result<Self, CheckpointError> {
        let (shards, _) = shard_folders(data)?;
        Ok(Self::over(shards.iter().map(|shard| JournalReader::open(&shard.journal)).collect::<Result<_, _>>()?))
    }

    /// The journals of recovered shards, in the order of the shards.
    pub fn of(recovered: &[RecoveredShard]) -> Self {
        Self::over(recovered.iter().map(RecoveredShard::journal).collect())
    }

    fn over(readers: Vec<JournalReader>) -> Self {
        let starts = vec![Start::default(); readers.len()];
        Self { readers, starts }
    }

    /// The same journals, of which [`Self::executed`] and [`Self::each_number`] leave out what comes before `starts`.
    pub fn starting(self, starts: &[Start]) -> Self {
        let reaches = |(reader, start): (&JournalReader, &Start)| start.at <= reader.end();
        let are_theirs = starts.len() == self.readers.len() && self.readers.iter().zip(starts).all(reaches);
        if are_theirs { Self { starts: starts.to_vec(), ..self } } else { self }
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.readers.len()
    }

    /// Hands all records, each with its shard, shard by shard, to `take`, and says how far they come.
    pub fn read<T>(
        &self,
        told: Progress<'_>,
        take: impl FnOnce(&mut dyn Iterator<Item = (ShardId, Record)>) -> T,
    ) -> Result<(T, Executed), CheckpointError> {
        let (mut failure, mut count) = (None, 0_u64);
        let mut executed = Executed { next: BTreeMap::new(), applied: vec![TransactionIndex(0); self.readers.len()] };
        let taken = {
            let all = (0..).map(ShardId).zip(&self.readers).flat_map(|(shard, journal)| {
                journal.read_from(JournalPosition::default()).map(move |record| (shard, record))
            });
            let mut records = all.map_while(|(shard, record)| {
                match record.map_err(CheckpointError::from).and_then(|(at, bytes)| Ok(decode(shard, at, &bytes)?)) {
                    Ok(record) => {
                        executed.add(shard, &record);
                        tell(&mut count, told);
                        Some((shard, record))
                    }
                    Err(error) => {
                        failure = Some(error);
                        None
                    }
                }
            });
            let mut records = records.by_ref().fuse();
            let taken = take(&mut records);
            records.for_each(drop);
            taken
        };
        failure.map_or(Ok((taken, executed)), Err)
    }

    /// How far the journals come; of the accounts in `named`, also by what their journals begin with.
    pub fn executed(
        &self,
        named: &BTreeMap<AccountId, SequenceNumber>,
        told: Progress<'_>,
    ) -> Result<Executed, CheckpointError> {
        let applied = self.starts.iter().map(|start| start.applied).collect();
        let (mut executed, mut begun_at) = (Executed { next: BTreeMap::new(), applied }, Vec::new());
        self.each(told, |shard, _, outline| {
            match outline {
                Outline::Taken(entry) => {
                    entry.numbers().for_each(|(account, taken)| executed.take(account, taken));
                }
                Outline::Other(record) => {
                    follow(&mut executed.applied, shard, &record);
                    if let Record::Base(base) = record
                        && let Base::Account(base) = *base
                        && named.contains_key(&base.account)
                    {
                        begun_at.push((base.account, base.next));
                    }
                }
            }
            true
        })?;
        for (account, begun_at) in begun_at {
            executed.next.entry(account).or_insert(begun_at);
        }
        Ok(executed)
    }

    /// Hands each number that a checkpoint lacks to `take`, with its shard and in the shard's order, until it wants no
    /// more. `behind` has the accounts that took such numbers, each with its next one in the checkpoint. Returns from where
    /// on each journal has anything that the checkpoint lacks; `None` if `take` did not want all. `includes` tells
    /// whether the checkpoint includes the one at which a journal begins.
    pub fn each_number(
        &self,
        behind: &BTreeMap<AccountId, SequenceNumber>,
        includes: impl Fn(u64, Digest) -> bool,
        told: Progress<'_>,
        mut take: impl FnMut(ShardId, SegmentEntry) -> bool,
    ) -> Result<Option<Vec<Start>>, CheckpointError> {
        let mut applied: Vec<_> = self.starts.iter().map(|start| start.applied).collect();
        let mut starts = vec![None; self.starts.len()];
        let are_all = self.each(told, |shard, at, outline| {
            let place = usize::try_from(shard.0).unwrap_or(usize::MAX);
            let mut lacks = |at| {
                let applied = applied.get(place).copied().unwrap_or_default();
                if let Some(start) = starts.get_mut(place) {
                    start.get_or_insert(Start { at, applied });
                }
            };
            match outline {
                Outline::Taken(entry) => {
                    let is_lacking = |(account, number)| behind.get(&account).is_some_and(|next| *next <= number);
                    if !entry.number().is_some_and(is_lacking) {
                        return true;
                    }
                    lacks(at);
                    take(shard, entry)
                }
                Outline::Other(record) => {
                    if let Record::Base(base) = &record
                        && let Base::Checkpoint(ledger) = &**base
                        && !includes(ledger.number, ledger.checkpoint)
                    {
                        lacks(at);
                    }
                    follow(&mut applied, shard, &record);
                    true
                }
            }
        })?;
        let ends = self.readers.iter().map(JournalRead::end).zip(applied);
        let starts = starts.into_iter().zip(ends).map(|(start, (at, applied))| start.unwrap_or(Start { at, applied }));
        Ok(are_all.then(|| starts.collect()))
    }

    /// Hands what records mean for a checkpoint to `take`, each with its shard and position, until it wants no more. Returns
    /// whether it wanted all.
    fn each(
        &self,
        told: Progress<'_>,
        mut take: impl FnMut(ShardId, JournalPosition, Outline) -> bool,
    ) -> Result<bool, CheckpointError> {
        let mut count = 0_u64;
        for (shard, (journal, start)) in (0..).map(ShardId).zip(self.readers.iter().zip(&self.starts)) {
            for record in journal.read_from(start.at) {
                let (position, bytes) = record?;
                tell(&mut count, told);
                let outline = Outline::decode(&bytes).map_err(|_| UndecodableRecord { shard, position })?;
                if outline.is_some_and(|outline| !take(shard, position, outline)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

fn tell(count: &mut u64, told: Progress<'_>) {
    *count = count.saturating_add(1);
    if count.is_multiple_of(TOLD_RECORDS) {
        told(format!("read {count} records"));
    }
}

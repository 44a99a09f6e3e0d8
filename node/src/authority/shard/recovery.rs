//! Recovers a shard: loads the newest checkpoint, then replays the journal from its position.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use borsh::BorshDeserialize;
use fastpay_core::{
    Account, AccountId, CrossShardCredit, JournalPosition, Record, Shard, ShardId, ShardLayout, ShardLedger,
};

use super::ShardError;
use super::checkpoint::write_checkpoint;
use super::history::HistoryReader;
use super::settings::ShardLimits;
use crate::authority::storage::{
    CheckpointError, CheckpointOptions, CheckpointStore, Checkpoints, Journal, JournalOptions, JournalRead,
    JournalReader, Recovery, ShardFolders,
};
use fastpay_program::disk::{Disk, RealDisk};

/// A shard's storage.
pub struct ShardStorage {
    /// The disk that the journal is on.
    pub disk: Arc<dyn Disk>,
    /// The journal's folder.
    pub journal: PathBuf,
    /// The journal's size limits.
    pub journal_options: JournalOptions,
    /// The store of checkpoints.
    pub checkpoints: Arc<dyn Checkpoints>,
}

impl ShardStorage {
    /// Opens storage in folders of the operating system.
    ///
    /// # Errors
    /// If the store of checkpoints cannot be opened.
    pub fn open(folders: &ShardFolders) -> Result<Self, CheckpointError> {
        let checkpoints = Arc::new(CheckpointStore::open(&folders.checkpoint, CheckpointOptions::default())?);
        let (disk, journal_options) = (Arc::new(RealDisk), JournalOptions::default());
        Ok(Self { disk, journal: folders.journal.clone(), journal_options, checkpoints })
    }
}

/// A shard as it was when it last answered, ready to be started.
pub struct RecoveredShard {
    pub(super) shard: Shard,
    pub(super) journal: Journal,
    pub(super) store: Arc<dyn Checkpoints>,
    /// The journal position that the checkpoint includes.
    pub(super) checkpoint: JournalPosition,
    /// How many records were replayed.
    pub replayed: u64,
}

impl RecoveredShard {
    /// The result of opening the journal.
    #[must_use]
    pub fn journal_recovery(&self) -> &Recovery {
        self.journal.recovery()
    }

    /// The shard's state.
    #[must_use]
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// A reader of the shard's committed records, for other threads.
    #[must_use]
    pub fn journal(&self) -> JournalReader {
        self.journal.reader()
    }

    /// A reader of histories along their links, for other threads.
    #[must_use]
    pub fn history(&self) -> HistoryReader {
        HistoryReader::new(self.journal.reader(), self.shard.ledger().base.clone())
    }

    /// An account's state, from memory or from the store.
    ///
    /// # Errors
    /// When the store fails.
    pub fn account(&self, id: &AccountId) -> Result<Option<Account>, ShardError> {
        match self.shard.account(id) {
            Some(account) => Ok(Some(account.clone())),
            None => stored_account(&*self.store, id),
        }
    }
}

/// The credits that the shards of one authority have applied, while they are recovered side by side.
///
/// Acknowledgements are not in the journals. Without these numbers, a shard that replays its whole journal would have
/// all credits in memory that it ever issued.
#[derive(Clone, Default)]
pub struct AppliedCredits(Arc<BTreeMap<(ShardId, ShardId), AtomicU64>>);

impl AppliedCredits {
    /// No credits yet, for the shards of an authority.
    #[must_use]
    pub fn new(layout: ShardLayout) -> Self {
        let pairs = layout.shards().flat_map(|by| layout.shards().map(move |from| ((by, from), AtomicU64::default())));
        Self(Arc::new(pairs.collect()))
    }

    /// Notes that the shard `by` has applied a credit, which is on disk.
    fn note(&self, by: ShardId, credit: &CrossShardCredit) {
        if let Some(newest) = self.0.get(&(by, credit.from)) {
            newest.store(credit.number, Ordering::Release);
        }
    }

    /// The newest credit of the shard `from` that the shard `by` has applied; 0 before the first.
    fn newest(&self, by: ShardId, from: ShardId) -> u64 {
        self.0.get(&(by, from)).map_or(0, |newest| newest.load(Ordering::Acquire))
    }
}

/// Opens a shard's data on disk and replays its journal, while the other shards do the same.
///
/// # Errors
/// If anything on disk is missing, damaged, or of another version. Nothing is changed then.
pub fn recover(
    folders: &ShardFolders,
    id: ShardId,
    layout: ShardLayout,
    with_primary: bool,
    limits: &ShardLimits,
    applied: &AppliedCredits,
) -> Result<RecoveredShard, ShardError> {
    recover_beside(ShardStorage::open(folders)?, id, layout, with_primary, limits, applied)
}

/// As [`recover`] for one shard alone, with storage of the caller's choice.
///
/// # Errors
/// As [`recover`].
pub fn recover_on(
    storage: ShardStorage,
    id: ShardId,
    layout: ShardLayout,
    with_primary: bool,
    limits: &ShardLimits,
) -> Result<RecoveredShard, ShardError> {
    recover_beside(storage, id, layout, with_primary, limits, &AppliedCredits::default())
}

fn recover_beside(
    storage: ShardStorage,
    id: ShardId,
    layout: ShardLayout,
    with_primary: bool,
    limits: &ShardLimits,
    applied: &AppliedCredits,
) -> Result<RecoveredShard, ShardError> {
    let ShardStorage { disk, journal, journal_options, checkpoints: store } = storage;
    let (mut checkpoint, ledger) = match store.latest()? {
        None => (JournalPosition::default(), ShardLedger::default()),
        Some(newest) => {
            let ledger = ShardLedger::try_from_slice(&newest.header).map_err(|_| ShardError::Ledger)?;
            (newest.position, ledger)
        }
    };
    let journal = Journal::open_on(disk, &journal, journal_options, checkpoint)?;
    let mut shard = Shard::new(id, layout, with_primary, ledger, limits.accounts_in_memory_max);
    let mut replayed = 0_u64;
    let reader = journal.reader();
    for entry in reader.read_from(checkpoint) {
        let (position, bytes) = entry?;
        let record = Record::try_from_slice(&bytes).map_err(|_| ShardError::Record(position))?;
        // A long replay writes checkpoints on the way, which also rebuilds a lost store.
        let due = position.0.saturating_sub(checkpoint.0) >= limits.checkpoint_journal_bytes;
        let accounts = record.accounts();
        if due || !shard.has_room(accounts.len()) {
            write_checkpoint(&*store, &mut shard, position)?;
            checkpoint = position;
        }
        for account in accounts {
            let stored = if shard.account(&account).is_some() { None } else { stored_account(&*store, &account)? };
            shard.load(account, stored);
        }
        shard.apply(&record, position);
        if let Record::Credit(credited) = &record {
            applied.note(id, &credited.credit);
        }
        for (to, _) in record.forwarded() {
            shard.acknowledge(to, applied.newest(to, id));
        }
        replayed = replayed.saturating_add(1);
    }
    Ok(RecoveredShard { shard, journal, store, checkpoint, replayed })
}

/// An account's state in the newest checkpoint.
pub(super) fn stored_account(store: &dyn Checkpoints, id: &AccountId) -> Result<Option<Account>, ShardError> {
    let Some(bytes) = store.account(&id.0)? else { return Ok(None) };
    Account::try_from_slice(&bytes).map(Some).map_err(|_| ShardError::Account(*id))
}

//! Bringing a shard back: the newest checkpoint, then the journal's tail on top of it.

use std::sync::Arc;

use borsh::BorshDeserialize;
use fastpay_core::{Account, AccountId, JournalPosition, Record, Shard, ShardId, ShardLayout, ShardLedger};

use super::ShardError;
use super::actor::ShardLimits;
use super::checkpoint::write_checkpoint;
use super::history::HistoryReader;
use crate::storage::{
    CheckpointOptions, CheckpointStore, Disk, Journal, JournalOptions, JournalRead, RealDisk, Recovery, ShardFolders,
};

/// A shard as it was when it last answered, ready to be started.
pub struct RecoveredShard {
    pub(super) shard: Shard,
    pub(super) journal: Journal,
    pub(super) store: CheckpointStore,
    /// The journal position that the checkpoint includes.
    pub(super) checkpoint: JournalPosition,
    /// How many records were replayed.
    pub replayed: u64,
}

impl RecoveredShard {
    /// What opening the journal found.
    #[must_use]
    pub fn journal_recovery(&self) -> &Recovery {
        self.journal.recovery()
    }

    /// The shard's state.
    #[must_use]
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Reads the shard's journal from other threads.
    #[must_use]
    pub fn history(&self) -> HistoryReader {
        HistoryReader::new(self.journal.reader())
    }
}

/// Opens what a shard has on disk and folds its journal.
///
/// # Errors
/// Where anything on disk is missing, damaged, or of another version. Nothing is changed then.
pub fn recover(
    folders: &ShardFolders,
    id: ShardId,
    layout: ShardLayout,
    with_primary: bool,
    limits: &ShardLimits,
) -> Result<RecoveredShard, ShardError> {
    recover_on(Arc::new(RealDisk), folders, id, layout, with_primary, limits)
}

/// As [`recover`], with the journal on a disk of the caller's choice.
///
/// # Errors
/// As [`recover`].
pub fn recover_on(
    disk: Arc<dyn Disk>,
    folders: &ShardFolders,
    id: ShardId,
    layout: ShardLayout,
    with_primary: bool,
    limits: &ShardLimits,
) -> Result<RecoveredShard, ShardError> {
    let store = CheckpointStore::open(&folders.checkpoint, CheckpointOptions::default())?;
    let (mut checkpoint, ledger) = match store.latest()? {
        None => (JournalPosition::default(), ShardLedger::default()),
        Some(newest) => {
            let ledger = ShardLedger::try_from_slice(&newest.header).map_err(|_| ShardError::Ledger)?;
            (newest.position, ledger)
        }
    };
    let journal = Journal::open_on(disk, &folders.journal, JournalOptions::default(), checkpoint)?;
    let mut shard = Shard::new(id, layout, with_primary, ledger, limits.accounts_in_memory_max);
    let mut replayed = 0_u64;
    for entry in journal.reader().read_from(checkpoint) {
        let (position, bytes) = entry?;
        let record = Record::try_from_slice(&bytes).map_err(|_| ShardError::Record(position))?;
        // Where much is replayed, a store that was lost is rebuilt on the way.
        let due = position.0.saturating_sub(checkpoint.0) >= limits.checkpoint_journal_bytes;
        if due || !shard.has_room() {
            write_checkpoint(&store, &mut shard, position)?;
            checkpoint = position;
        }
        // One may take the place of the other, but not twice.
        while let Some(account) = record.accounts().find(|account| shard.account(account).is_none()) {
            shard.load(account, stored_account(&store, &account)?);
        }
        shard.apply(&record, position);
        replayed = replayed.saturating_add(1);
    }
    Ok(RecoveredShard { shard, journal, store, checkpoint, replayed })
}

/// The state that the newest checkpoint has of an account.
pub(super) fn stored_account(store: &CheckpointStore, id: &AccountId) -> Result<Option<Account>, ShardError> {
    let Some(bytes) = store.account(&id.0)? else { return Ok(None) };
    Account::try_from_slice(&bytes).map(Some).map_err(|_| ShardError::Account(*id))
}

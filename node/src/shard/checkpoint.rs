//! Writes changed accounts to the checkpoint store, beside the shard's thread.
//!
//! A checkpoint is what the shard was at one journal position: its ledger and the accounts that
//! changed since the one before. It only saves time at recovery; the journal is the truth.

use std::collections::HashSet;
use std::thread::JoinHandle;
use std::time::Instant;

use fastpay_core::{AccountId, JournalPosition, Shard};

use super::ShardError;
use super::actor::ShardLimits;
use crate::storage::{CheckpointError, CheckpointStore, Journal, JournalWrite};

/// What one checkpoint writes.
struct Snapshot {
    position: JournalPosition,
    ledger: Vec<u8>,
    accounts: Vec<([u8; 32], Vec<u8>)>,
}

impl Snapshot {
    fn take(shard: &Shard, journal: &Journal, changed: &mut HashSet<AccountId>) -> Self {
        let encode = |id: AccountId| {
            let account = shard.account(&id).expect("a changed account stays in memory until it is written");
            (id.0, borsh::to_vec(account).expect("writing to memory does not fail"))
        };
        Self {
            position: journal.end(),
            ledger: borsh::to_vec(shard.ledger()).expect("writing to memory does not fail"),
            accounts: changed.drain().map(encode).collect(),
        }
    }

    fn write(self, store: &CheckpointStore) -> Result<(), CheckpointError> {
        store.write(self.position, self.ledger, self.accounts)
    }
}

/// Decides when a checkpoint is due and has at most one written at a time.
pub(super) struct Checkpointer {
    store: CheckpointStore,
    limits: ShardLimits,
    newest: JournalPosition,
    newest_at: Instant,
    writing: Option<JoinHandle<Result<(), CheckpointError>>>,
}

impl Checkpointer {
    pub(super) fn new(store: CheckpointStore, limits: ShardLimits, newest: JournalPosition) -> Self {
        Self { store, limits, newest, newest_at: Instant::now(), writing: None }
    }

    /// Takes the outcome of a checkpoint that has been written. Says whether there was one: then all
    /// accounts that have not changed since it was begun are in the store.
    ///
    /// # Errors
    /// Where the store failed.
    pub(super) fn collect(&mut self) -> Result<bool, ShardError> {
        if self.writing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(false);
        }
        self.wait()
    }

    /// Whether none is being written and enough has happened since the newest one.
    pub(super) fn is_due(&self, journal: &Journal) -> bool {
        let bytes = journal.end().0.saturating_sub(self.newest.0);
        let due = bytes >= self.limits.checkpoint_journal_bytes
            || (bytes > 0 && self.newest_at.elapsed() >= self.limits.checkpoint_interval);
        due && self.writing.is_none()
    }

    /// Begins a checkpoint. Only where everything that the shard applied is on disk.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(super) fn begin(
        &mut self,
        shard: &Shard,
        journal: &Journal,
        changed: &mut HashSet<AccountId>,
    ) -> Result<(), ShardError> {
        let snapshot = Snapshot::take(shard, journal, changed);
        (self.newest, self.newest_at) = (snapshot.position, Instant::now());
        let store = self.store.clone();
        let thread = std::thread::Builder::new().name(format!("checkpoint-{}", shard.id()));
        let begun = thread.spawn(move || snapshot.write(&store));
        self.writing = Some(begun.map_err(ShardError::Thread)?);
        Ok(())
    }

    fn wait(&mut self) -> Result<bool, ShardError> {
        let Some(thread) = self.writing.take() else { return Ok(false) };
        thread.join().map_err(|_| ShardError::CheckpointPanicked)??;
        Ok(true)
    }

    /// Writes a last checkpoint, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// Where the store failed.
    pub(super) fn finish(
        &mut self,
        shard: &Shard,
        journal: &Journal,
        changed: &mut HashSet<AccountId>,
    ) -> Result<(), ShardError> {
        self.wait()?;
        if journal.end() > self.newest {
            Snapshot::take(shard, journal, changed).write(&self.store)?;
        }
        Ok(())
    }
}

//! Writes changed accounts to the checkpoint store, beside the shard's thread.
//!
//! A checkpoint is the shard's state at one journal position: its ledger, and the accounts that changed since the one
//! before. It only saves time at recovery; the journal is the truth.
//!
//! ```text
//!  due ─► begin (no work) ─► take a slice after each batch ─► all taken: write, on another thread ─► finished
//! ```
//! Meanwhile the shard continues. It waits for the store only if that is too slow for the rate of changes, in two
//! cases: nearly all accounts in memory are newer than the store's, or the journal is so far ahead that a recovery
//! would take long.

use std::sync::Arc;
use std::thread::JoinHandle;

use fastpay_core::{AccountId, JournalPosition, Shard};
use tokio::time::Instant;

use super::ShardError;
use super::settings::ShardLimits;
use crate::authority::metrics::ShardMetrics;
use crate::authority::storage::{CheckpointError, Checkpoints};

/// A checkpoint is due if more than one in this many of the accounts that fit into memory changed. The others leave
/// room for the changes while it is written.
const CHANGED_SHARE: usize = 4;
/// While a checkpoint is being written, the journal grows by at most this many times the bytes that make the next one
/// due.
const JOURNAL_AHEAD_TIMES: u64 = 4;

/// The data of one checkpoint.
struct Snapshot {
    position: JournalPosition,
    ledger: Vec<u8>,
    /// The slices as they were taken. They are not merged, because together they may be large.
    slices: Vec<Vec<(AccountId, Vec<u8>)>>,
}

impl Snapshot {
    /// Begins a checkpoint of the shard as it is now, with all records before `position` applied.
    fn begin(shard: &mut Shard, position: JournalPosition) -> Self {
        let ledger = borsh::to_vec(shard.ledger()).expect("writing to memory does not fail");
        shard.begin_checkpoint();
        Self { position, ledger, slices: Vec::new() }
    }

    /// Takes the next accounts. Returns false if all are taken.
    fn take(&mut self, shard: &mut Shard, limit: usize) -> bool {
        let slice = shard.take_accounts(limit);
        let more = slice.is_some();
        self.slices.extend(slice);
        more
    }

    fn write(self, store: &dyn Checkpoints) -> Result<(), CheckpointError> {
        let accounts = self.slices.into_iter().flatten().map(|(id, account)| (id.0, account));
        store.write(self.position, self.ledger, accounts.collect())
    }
}

/// Writes a whole checkpoint of all records before `position`, if none is under way.
pub(super) fn write_checkpoint(
    store: &dyn Checkpoints,
    shard: &mut Shard,
    position: JournalPosition,
) -> Result<(), CheckpointError> {
    let mut snapshot = Snapshot::begin(shard, position);
    while snapshot.take(shard, usize::MAX) {}
    snapshot.write(store)?;
    shard.finish_checkpoint();
    Ok(())
}

enum UnderWay {
    Taking(Snapshot),
    Writing(Writing),
}

/// A write whose outcome was not taken yet.
enum Writing {
    OnThread(JoinHandle<Result<(), CheckpointError>>),
    Ended(Result<(), CheckpointError>),
}

impl Writing {
    fn is_finished(&self) -> bool {
        match self {
            Self::OnThread(thread) => thread.is_finished(),
            Self::Ended(_) => true,
        }
    }

    fn outcome(self) -> Result<(), ShardError> {
        let written = match self {
            Self::OnThread(thread) => thread.join().map_err(|_| ShardError::CheckpointPanicked)?,
            Self::Ended(written) => written,
        };
        Ok(written?)
    }
}

/// Decides when a checkpoint is due. At most one is under way.
pub(super) struct Checkpointer {
    store: Arc<dyn Checkpoints>,
    limits: ShardLimits,
    /// The position and time at which the newest checkpoint began.
    newest: JournalPosition,
    newest_at: Instant,
    under_way: Option<UnderWay>,
    metrics: Arc<ShardMetrics>,
}

impl Checkpointer {
    pub(super) fn new(
        store: Arc<dyn Checkpoints>,
        limits: ShardLimits,
        newest: JournalPosition,
        metrics: Arc<ShardMetrics>,
    ) -> Self {
        metrics.checkpointed();
        Self { store, limits, newest, newest_at: Instant::now(), under_way: None, metrics }
    }

    /// Whether no checkpoint is under way and enough has changed since the newest one.
    pub(super) fn is_due(&self, shard: &Shard, end: JournalPosition) -> bool {
        let bytes = end.0.saturating_sub(self.newest.0);
        let due = bytes >= self.limits.checkpoint_journal_bytes
            || shard.accounts_changed() > self.limits.accounts_in_memory_max / CHANGED_SHARE
            || (bytes > 0 && self.newest_at.elapsed() >= self.limits.checkpoint_interval);
        due && self.under_way.is_none()
    }

    fn is_far_ahead(&self, end: JournalPosition) -> bool {
        let bytes = end.0.saturating_sub(self.newest.0);
        bytes >= self.limits.checkpoint_journal_bytes.saturating_mul(JOURNAL_AHEAD_TIMES)
    }

    /// Begins a checkpoint. The shard has applied the whole journal, which ends at `end` and is on disk.
    pub(super) fn begin(&mut self, shard: &mut Shard, end: JournalPosition) {
        let begun = Instant::now();
        self.under_way = Some(UnderWay::Taking(Snapshot::begin(shard, end)));
        (self.newest, self.newest_at) = (end, begun);
        self.metrics.checkpoint_paused(begun.elapsed());
    }

    /// Does the next part of a checkpoint under way: takes a slice, hands it to another thread, or takes its outcome.
    /// The journal ends at `end`. Returns true if more can be done at once.
    ///
    /// # Errors
    /// If the store failed, or the system gives no thread.
    pub(super) fn advance(&mut self, shard: &mut Shard, end: JournalPosition) -> Result<bool, ShardError> {
        let begun = Instant::now();
        let more = match self.under_way.take() {
            None => return Ok(false),
            Some(UnderWay::Taking(mut snapshot)) => {
                let more = snapshot.take(shard, self.limits.checkpoint_slice_accounts);
                self.under_way = Some(if more { UnderWay::Taking(snapshot) } else { self.hand_over(snapshot)? });
                more
            }
            Some(UnderWay::Writing(writing)) if !writing.is_finished() && !self.is_far_ahead(end) => {
                self.under_way = Some(UnderWay::Writing(writing));
                return Ok(false);
            }
            Some(UnderWay::Writing(writing)) => {
                finish(shard, writing)?;
                self.metrics.checkpointed();
                true
            }
        };
        self.metrics.checkpoint_paused(begun.elapsed());
        Ok(more)
    }

    /// Writes a snapshot, on a separate thread if the store is slow.
    fn hand_over(&self, snapshot: Snapshot) -> Result<UnderWay, ShardError> {
        let store = self.store.clone();
        if !store.is_slow() {
            return Ok(UnderWay::Writing(Writing::Ended(snapshot.write(&*store))));
        }
        let thread = std::thread::Builder::new().name("checkpoint".into());
        let writing = thread.spawn(move || snapshot.write(&*store)).map_err(ShardError::Thread)?;
        Ok(UnderWay::Writing(Writing::OnThread(writing)))
    }

    /// Waits until accounts can be loaded again: for the checkpoint under way, or else for a new one.
    ///
    /// # Errors
    /// If the store failed.
    pub(super) fn make_room(&mut self, shard: &mut Shard, end: JournalPosition) -> Result<(), ShardError> {
        let begun = Instant::now();
        if !self.complete(shard)? {
            write_checkpoint(&*self.store, shard, end)?;
            (self.newest, self.newest_at) = (end, Instant::now());
        }
        self.metrics.checkpointed();
        self.metrics.checkpoint_paused(begun.elapsed());
        Ok(())
    }

    /// Writes a last checkpoint, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// If the store failed.
    pub(super) fn finish(&mut self, shard: &mut Shard, end: JournalPosition) -> Result<(), ShardError> {
        self.complete(shard)?;
        if end > self.newest {
            write_checkpoint(&*self.store, shard, end)?;
        }
        Ok(())
    }

    /// Completes the checkpoint under way. Returns whether there was one.
    fn complete(&mut self, shard: &mut Shard) -> Result<bool, ShardError> {
        match self.under_way.take() {
            None => return Ok(false),
            Some(UnderWay::Taking(mut snapshot)) => {
                while snapshot.take(shard, usize::MAX) {}
                snapshot.write(&*self.store)?;
                shard.finish_checkpoint();
            }
            Some(UnderWay::Writing(writing)) => finish(shard, writing)?,
        }
        Ok(true)
    }
}

fn finish(shard: &mut Shard, writing: Writing) -> Result<(), ShardError> {
    writing.outcome()?;
    shard.finish_checkpoint();
    Ok(())
}

/// After the shard has failed, nothing writes to its store any more.
impl Drop for Checkpointer {
    fn drop(&mut self) {
        if let Some(UnderWay::Writing(writing)) = self.under_way.take() {
            let _ = writing.outcome();
        }
    }
}

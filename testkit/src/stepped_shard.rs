//! A shard without threads: the caller decides when it serves its queue and when a batch is committed. The simulator
//! runs the code of production this way, under a seed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastpay_core::{Account, AccountId, Shard, ShardId};
use fastpay_node::authority::shard::{
    Actor, BATCHES_WAITING_MAX, Commits, RecoveredShard, ShardError, ShardHandle, ShardQueue, ShardSettings,
    UncommittedBatch,
};

/// A shard that moves only in [`SteppedShard::turn`] and [`SteppedShard::commit`].
pub struct SteppedShard {
    actor: Actor<CommitQueue>,
    commits: CommitQueue,
}

/// The actor puts batches in, and [`SteppedShard::commit`] takes them out.
#[derive(Clone, Default)]
struct CommitQueue(Arc<Mutex<WaitingBatches>>);

/// Batches that were handed over and are not on disk yet, oldest first.
#[derive(Default)]
struct WaitingBatches {
    batches: VecDeque<UncommittedBatch>,
    failure: Option<ShardError>,
    /// Nothing is committed after a failure.
    failed: bool,
}

impl SteppedShard {
    /// A shard that serves `queue`.
    #[must_use]
    pub fn new(
        settings: ShardSettings,
        recovered: RecoveredShard,
        queue: ShardQueue,
        siblings: BTreeMap<ShardId, ShardHandle>,
    ) -> Self {
        let commits = CommitQueue::default();
        Self { actor: Actor::new(settings, recovered, queue, siblings, commits.clone()), commits }
    }

    /// Serves the queue as one batch, and hands it over to be committed. Returns how long the next turn may be put off
    /// if nothing arrives, or none after the shard ended in order.
    ///
    /// # Errors
    /// When the shard failed. It must not be used after that.
    pub fn turn(&mut self) -> Result<Option<Duration>, ShardError> {
        self.actor.turn(Duration::ZERO).map_err(|error| self.commits.lock().failure.take().unwrap_or(error))
    }

    /// How many batches wait to be committed.
    #[must_use]
    pub fn batches_waiting(&self) -> usize {
        self.commits.lock().batches.len()
    }

    /// Commits the oldest batch that waits, and sends its answers.
    ///
    /// # Errors
    /// As [`SteppedShard::turn`].
    pub fn commit(&mut self) -> Result<(), ShardError> {
        let mut commits = self.commits.lock();
        if commits.commit_oldest() { Ok(()) } else { Err(commits.failure.take().unwrap_or(ShardError::CommitPanicked)) }
    }

    /// The shard's state, including what is not committed yet.
    #[must_use]
    pub fn shard(&self) -> &Shard {
        self.actor.shard()
    }

    /// An account as it is now, in memory or in the store.
    ///
    /// # Errors
    /// When the store fails.
    pub fn account(&self, id: &AccountId) -> Result<Account, ShardError> {
        Ok(self.actor.account(id)?.into_owned())
    }
}

impl CommitQueue {
    fn lock(&self) -> MutexGuard<'_, WaitingBatches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingBatches {
    /// False after a failed commit.
    fn commit_oldest(&mut self) -> bool {
        if !self.failed
            && let Some(batch) = self.batches.pop_front()
        {
            self.failure = batch.commit().err();
            self.failed = self.failure.is_some();
        }
        !self.failed
    }
}

impl Commits for CommitQueue {
    fn hand_over(&mut self, batch: UncommittedBatch) -> bool {
        let mut waiting = self.lock();
        waiting.batches.push_back(batch);
        // On threads the shard blocks here until the disk has caught up.
        while waiting.batches.len() > BATCHES_WAITING_MAX + 1 && !waiting.failed {
            waiting.commit_oldest();
        }
        !waiting.failed
    }

    fn drain(&mut self) -> bool {
        let mut waiting = self.lock();
        while !waiting.batches.is_empty() && waiting.commit_oldest() {}
        !waiting.failed
    }
}

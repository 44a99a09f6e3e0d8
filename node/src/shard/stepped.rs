//! A shard without threads: whoever holds it decides when it serves its queue and when a batch is committed.
//! The same code as on threads runs under a seeded simulation this way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{Account, AccountId, Shard, ShardId};

use super::ShardError;
use super::actor::Actor;
use super::batch::Batch;
use super::commit::{BATCHES_WAITING_MAX, Commits, commit};
use super::queue::{ShardHandle, ShardQueue};
use super::recovery::RecoveredShard;
use super::settings::ShardSettings;
use crate::metrics::ShardMetrics;

/// A shard that moves only when it is told to.
pub struct SteppedShard {
    actor: Actor<WaitingBatches>,
}

/// Batches that were handed over and are not on disk yet, oldest first.
struct WaitingBatches {
    batches: VecDeque<Batch>,
    metrics: Arc<ShardMetrics>,
    /// After a commit that failed nothing is committed any more.
    failure: Option<ShardError>,
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
        let metrics = queue.metrics().clone();
        let commits = WaitingBatches { batches: VecDeque::new(), metrics, failure: None, failed: false };
        Self { actor: Actor::new(settings, recovered, queue, siblings, commits) }
    }

    /// Serves what is queued as one batch, and hands it over to be committed. Says how long the next turn may
    /// be put off where nothing comes; none where the shard was told to end, and did.
    ///
    /// # Errors
    /// Where the shard ends by a failure. It must not be used any more then.
    pub fn turn(&mut self) -> Result<Option<Duration>, ShardError> {
        let first = self.actor.queue().try_recv();
        self.actor.turn(first).map_err(|error| self.actor.commits_mut().failure.take().unwrap_or(error))
    }

    /// How many batches wait to be committed.
    #[must_use]
    pub fn batches_waiting(&self) -> usize {
        self.actor.commits().batches.len()
    }

    /// Commits the oldest batch that waits, and says then what it says.
    ///
    /// # Errors
    /// As [`SteppedShard::turn`].
    pub fn commit(&mut self) -> Result<(), ShardError> {
        let commits = self.actor.commits_mut();
        if commits.commit_oldest() { Ok(()) } else { Err(commits.failure.take().unwrap_or(ShardError::CommitPanicked)) }
    }

    /// The shard's state, with what is not committed yet.
    #[must_use]
    pub fn shard(&self) -> &Shard {
        self.actor.shard()
    }

    /// An account as it is now, in memory or in the store.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn account(&self, id: &AccountId) -> Result<Account, ShardError> {
        Ok(self.actor.account(id)?.into_owned())
    }
}

impl WaitingBatches {
    /// False where that failed, or has before.
    fn commit_oldest(&mut self) -> bool {
        if !self.failed
            && let Some(batch) = self.batches.pop_front()
        {
            self.failure = commit(batch, &self.metrics).err();
            self.failed = self.failure.is_some();
        }
        !self.failed
    }
}

impl Commits for WaitingBatches {
    fn hand_over(&mut self, batch: Batch) -> bool {
        self.batches.push_back(batch);
        // As on threads, where the shard waits for the disk.
        while self.batches.len() > BATCHES_WAITING_MAX.saturating_add(1) && !self.failed {
            self.commit_oldest();
        }
        !self.failed
    }

    fn drain(&mut self) -> bool {
        while !self.batches.is_empty() && self.commit_oldest() {}
        !self.failed
    }
}

//! The commit stage: a thread that puts one batch after the other on disk, and says then what it says,
//! while the shard works on the next ones.
//!
//! Batches are committed and said in the order in which they are handed over. So what a batch says
//! is on disk, and so is everything before it that it may rest on, be it only a refusal's reason. Where a
//! commit fails the stage ends, says nothing more, and wakes the shard, which ends with its error.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tokio::time::Instant;

use super::ShardError;
use super::batch::Batch;
use super::command::Command;
use super::queue::ShardHandle;
use crate::metrics::ShardMetrics;
use crate::storage::SealedBatch;

/// How many batches wait behind the one that is being synced. Where the disk is slower than that the
/// shard waits, and what queues meanwhile becomes one larger batch.
pub(super) const BATCHES_WAITING_MAX: usize = 1;

/// Where a shard's batches go.
pub(super) trait Commits {
    /// Hands a batch over. Waits where too many wait already. False where a commit has failed: then the shard
    /// ends.
    #[must_use]
    fn hand_over(&mut self, batch: Batch) -> bool;

    /// Waits until everything that was handed over is on disk. False where a commit has failed.
    #[must_use]
    fn drain(&mut self) -> bool;
}

enum Work {
    Commit(Box<Batch>),
    /// Tells that everything before is on disk.
    Tell(SyncSender<()>),
}

/// The shard's end of its commit stage.
pub(super) struct CommitStage {
    work: SyncSender<Work>,
    thread: JoinHandle<Result<(), ShardError>>,
}

impl CommitStage {
    /// Starts the stage of a shard, which it wakes where it fails.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(name: String, shard: ShardHandle, metrics: Arc<ShardMetrics>) -> Result<Self, ShardError> {
        let (work, queue) = sync_channel(BATCHES_WAITING_MAX);
        let run = move || {
            let ended = commit_all(&queue, &metrics);
            if ended.is_err() {
                // Where its queue is full it is awake, and hears of it with its next batch.
                let _ = shard.try_send(Command::Stop);
            }
            ended
        };
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(ShardError::Thread)?;
        Ok(Self { work, thread })
    }

    /// Commits what was handed over, and ends.
    ///
    /// # Errors
    /// Where a commit failed.
    pub fn finish(self) -> Result<(), ShardError> {
        drop(self.work);
        self.thread.join().map_err(|_| ShardError::CommitPanicked)?
    }
}

impl Commits for CommitStage {
    fn hand_over(&mut self, batch: Batch) -> bool {
        self.work.send(Work::Commit(Box::new(batch))).is_ok()
    }

    fn drain(&mut self) -> bool {
        let (told, done) = sync_channel(1);
        self.work.send(Work::Tell(told)).is_ok() && done.recv().is_ok()
    }
}

fn commit_all(queue: &Receiver<Work>, metrics: &ShardMetrics) -> Result<(), ShardError> {
    for work in queue {
        match work {
            Work::Commit(batch) => commit(*batch, metrics)?,
            Work::Tell(told) => {
                let _ = told.send(());
            }
        }
    }
    Ok(())
}

/// Puts a batch on disk, and says then what it says.
pub(super) fn commit(mut batch: Batch, metrics: &ShardMetrics) -> Result<(), ShardError> {
    if let Some(frame) = batch.frame.take() {
        let (records, begun) = (frame.records(), Instant::now());
        frame.commit()?;
        metrics.committed(records.into(), begun.elapsed());
    }
    batch.record(metrics);
    Ok(())
}

//! The commit stage: a thread that writes one batch after the other to disk and then sends its answers, while the shard
//! works on the next ones.
//!
//! Batches are committed and answered in the order in which they are handed over. An answer, even a refusal, therefore
//! rests only on records that are on disk. If a commit fails, the stage ends without further answers and wakes the
//! shard, which ends with the error.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tokio::time::Instant;

use super::ShardError;
use super::batch::Batch;
use super::command::Command;
use super::queue::ShardHandle;
use crate::authority::metrics::ShardMetrics;
use crate::authority::storage::SealedBatch;

/// How many batches wait behind the one that is being synced. If the disk is slower than that, the shard waits, and the
/// commands that queue meanwhile become one larger batch.
pub const BATCHES_WAITING_MAX: usize = 1;

/// Commits a shard's batches in the order in which they are handed over.
pub trait Commits {
    /// Takes a batch. Blocks while more than [`BATCHES_WAITING_MAX`] wait behind the one under way. Returns false after
    /// a failed commit; the shard then ends.
    #[must_use]
    fn hand_over(&mut self, batch: UncommittedBatch) -> bool;

    /// Blocks until every batch handed over is on disk. Returns false after a failed commit.
    #[must_use]
    fn drain(&mut self) -> bool;
}

/// A batch that is decided and signed, and not yet on disk.
pub struct UncommittedBatch {
    batch: Box<Batch>,
    metrics: Arc<ShardMetrics>,
}

impl UncommittedBatch {
    pub(super) fn new(batch: Batch, metrics: Arc<ShardMetrics>) -> Self {
        Self { batch: Box::new(batch), metrics }
    }

    /// Writes the batch to disk, and then sends its answers.
    ///
    /// # Errors
    /// If the journal fails. Nothing is sent then.
    pub fn commit(mut self) -> Result<(), ShardError> {
        if let Some(frame) = self.batch.frame.take() {
            let (records, begun) = (frame.records(), Instant::now());
            frame.commit()?;
            self.metrics.committed(records.into(), begun.elapsed());
        }
        self.batch.send(&self.metrics);
        Ok(())
    }
}

enum Work {
    Commit(UncommittedBatch),
    /// Signals that all earlier batches are on disk.
    Tell(SyncSender<()>),
}

/// The shard's end of its commit stage.
pub(super) struct CommitStage {
    work: SyncSender<Work>,
    thread: JoinHandle<Result<(), ShardError>>,
}

impl CommitStage {
    /// Starts the stage of a shard. If a commit fails, the stage wakes that shard.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(name: String, shard: ShardHandle) -> Result<Self, ShardError> {
        let (work, queue) = sync_channel(BATCHES_WAITING_MAX);
        let run = move || {
            let ended = commit_all(&queue);
            if ended.is_err() {
                // If the queue is full, the shard is awake and sees the failure with its next batch.
                let _ = shard.try_send(Command::Stop);
            }
            ended
        };
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(ShardError::Thread)?;
        Ok(Self { work, thread })
    }

    /// Commits the batches that were handed over, and ends.
    ///
    /// # Errors
    /// If a commit failed.
    pub fn finish(self) -> Result<(), ShardError> {
        drop(self.work);
        self.thread.join().map_err(|_| ShardError::CommitPanicked)?
    }
}

impl Commits for CommitStage {
    fn hand_over(&mut self, batch: UncommittedBatch) -> bool {
        self.work.send(Work::Commit(batch)).is_ok()
    }

    fn drain(&mut self) -> bool {
        let (told, done) = sync_channel(1);
        self.work.send(Work::Tell(told)).is_ok() && done.recv().is_ok()
    }
}

fn commit_all(queue: &Receiver<Work>) -> Result<(), ShardError> {
    for work in queue {
        match work {
            Work::Commit(batch) => batch.commit()?,
            Work::Tell(told) => {
                let _ = told.send(());
            }
        }
    }
    Ok(())
}

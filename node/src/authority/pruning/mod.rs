//! Decides when a running node ends its own journals: it stops, is rebased onto the newest certified checkpoint of its
//! archive (`crate::operator::run`), and starts again. `fastpay-node rebase` does the same by command.
//!
//! ```text
//!  at the head of the chain ─► the generations before this one are removed ─► each minute: is it worth it (`worth`)?
//!     is there room? is it this member's turn, and do the others make a quorum (`turn`)?
//!     ─► no checkpoint is being made ─► noted on disk (`report`) ─► the node stops
//! ```
//! Invariants: an older generation is removed only while a node runs on the newer one and follows the chain, and only if
//! the archive has the checkpoint at which the newer one begins. The note comes before the stop, so an attempt that ends
//! the process counts as failed, and is not repeated at once.

mod metrics;
mod report;
mod turn;
mod worth;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{Digest, Domain, Epoch, PrimaryView, TransactionIndex};
use fastpay_program::Clock;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::sleep;

use self::turn::Others;
use self::worth::{Reason, Sizes, Verdict};
use super::certification::Archive;
use super::config::{ArchiveSettings, Config};
use super::follower::{Progress, read_chain_time};
use super::handover::JoinWait;
use super::metrics::HandoverMetrics;
use super::peer_book::PeerBook;
use super::storage::{DataFolder, StorageError, remove_older_generations};
use super::voter_status::VoterStatusWatch;

pub use self::metrics::PruningMetrics;
pub use self::report::{Attempt, Failure, PruningReport, REPORT_FILE};

/// Held while checkpoints are made, and while the node stops in order to be rebased: never both.
pub(crate) type ArchiveLock = Arc<Mutex<()>>;

/// How often and how long a node asks and waits before it ends its journals.
#[derive(Clone, Copy, Debug)]
pub struct PruningTimes {
    /// The pause between looks.
    pub poll: Duration,
    /// How long the node has been ready before the first look: it catches up, and is not away again so soon.
    pub settle: Duration,
    /// How long it is one member's turn.
    pub turn: Duration,
    /// The maximum time for a call to a peer.
    pub call: Duration,
    /// The wait after a failed attempt. It doubles, up to `retry_max`.
    pub retry: Duration,
    /// See `retry`.
    pub retry_max: Duration,
}

impl Default for PruningTimes {
    fn default() -> Self {
        Self::polling_each(Duration::from_secs(60))
    }
}

impl PruningTimes {
    /// The times of a node that looks so often.
    #[must_use]
    pub fn polling_each(poll: Duration) -> Self {
        Self {
            poll,
            settle: poll.saturating_mul(5),
            turn: poll.saturating_mul(5),
            call: Duration::from_secs(5),
            retry: poll.saturating_mul(15),
            retry_max: Duration::from_secs(86_400),
        }
    }
}

/// What the present generation of journals begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begins {
    /// The generation's number.
    pub generation: u64,
    /// The certified checkpoint; none of the first generation.
    pub checkpoint: Option<(u64, Digest)>,
}

/// What the pruner is made from.
pub(crate) struct PrunerContext<'a> {
    pub config: &'a Config,
    pub folder: Arc<DataFolder>,
    pub begins: Begins,
    pub domain: Domain,
    pub voter_status: VoterStatusWatch,
    pub progress: watch::Receiver<Progress>,
    /// Whether the newest certified checkpoint includes what this authority lacks and nobody brings.
    pub is_behind: watch::Receiver<bool>,
    /// What a join waits for.
    pub handover: Arc<HandoverMetrics>,
    pub peers: &'a PeerBook,
    pub metrics: Arc<PruningMetrics>,
    pub lock: ArchiveLock,
}

/// Watches a running node that has an archive.
pub(crate) struct Pruner {
    folder: Arc<DataFolder>,
    archive: Archive,
    begins: Begins,
    reserve: u64,
    times: PruningTimes,
    with_primary: bool,
    domain: Domain,
    voter_status: VoterStatusWatch,
    progress: watch::Receiver<Progress>,
    is_behind: watch::Receiver<bool>,
    handover: Arc<HandoverMetrics>,
    others: Others,
    metrics: Arc<PruningMetrics>,
    lock: ArchiveLock,
    clock: Clock,
    report: PruningReport,
    due_since_ms: Option<u64>,
    told: Option<Wait>,
}

/// Why the node goes on although it is worth to end its journals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Wait {
    #[error("the last attempt failed, and is repeated later: {0}")]
    Failed(String),
    #[error(
        "the new journals need {lacking} more bytes than are free; make room, or see docs/OPERATIONS.md, \
         FastPayPruningNoRoom"
    )]
    Room { lacking: u64 },
    #[error("its view of the chain is old")]
    Chain,
    #[error("it is another member's turn")]
    Turn,
    #[error("{answering} other members answer, and {needed} are needed while this one is away")]
    Others { answering: usize, needed: usize },
}

impl Pruner {
    /// A pruner of the node with this archive.
    pub fn new(context: PrunerContext<'_>, settings: &ArchiveSettings) -> Self {
        let PrunerContext { config, folder, begins, domain, voter_status, progress, .. } = context;
        let PrunerContext { is_behind, handover, peers, metrics, lock, .. } = context;
        let report = PruningReport::read(folder.path());
        Self {
            archive: Archive::new(&settings.folder),
            begins,
            reserve: config.limits.disk_reserve_bytes,
            times: settings.pruning,
            with_primary: config.primary.is_some(),
            domain,
            voter_status,
            progress,
            is_behind,
            handover,
            others: Others::new(peers, settings.pruning.call),
            metrics,
            lock,
            clock: Clock::system(),
            report,
            due_since_ms: None,
            told: None,
            folder,
        }
    }

    /// Returns once the node has to stop for a rebase, which is noted on disk. No checkpoint is made while the returned
    /// guard lives.
    pub async fn until_due(&mut self) -> OwnedMutexGuard<()> {
        self.metrics.begins_at(self.begins.checkpoint.map_or(0, |(number, _)| number));
        self.metrics.observe(&self.report);
        self.until_ready().await;
        self.take_up();
        self.clear().await;
        sleep(self.times.settle).await;
        loop {
            if let Some(guard) = self.look().await {
                return guard;
            }
            sleep(self.times.poll).await;
        }
    }

    async fn until_ready(&mut self) {
        if self.progress.wait_for(|progress| *progress == Progress::AtHead).await.is_err() {
            // The follower has ended, which stops the node or its follower's alarm says so.
            std::future::pending::<()>().await;
        }
    }

    /// Notes how the last attempt ended, if the node was away for one.
    fn take_up(&mut self) {
        let Some(attempt) = self.report.underway.take() else { return };
        let now_ms = self.clock.now_ms();
        let pause_ms = now_ms.saturating_sub(attempt.at_ms);
        self.report.pause_ms = pause_ms;
        if attempt.generation < self.begins.generation {
            let checkpoint = self.begins.checkpoint.map_or(0, |(number, _)| number);
            self.report.succeeded(checkpoint, now_ms);
            tracing::info!(checkpoint, pause_ms, "the journals begin at the checkpoint now; serving again");
        } else if !self.report.has_failed(&attempt) {
            let error = "the process ended before the new journals were complete: look for a lack of memory".into();
            self.report.failed(attempt.checkpoint, error, now_ms, &self.times);
            tracing::error!(pause_ms, "the journals could not be ended; serving again with the old ones");
        }
        self.write();
    }

    /// Removes what the present generation has replaced, and what an attempt left unfinished.
    async fn clear(&mut self) {
        let (folder, begins) = (self.folder.clone(), self.begins);
        let is_archived = begins.checkpoint.is_none_or(|(number, digest)| {
            let found = self.archive.checkpoint(number);
            found.is_ok_and(|checkpoint| self.domain.checkpoint_digest(&checkpoint) == digest)
        });
        let removed = tokio::task::spawn_blocking(move || clear(&folder, begins.generation, is_archived)).await;
        match removed {
            Ok(Ok(removed)) => {
                for path in removed {
                    tracing::info!(path = %path.display(), "removed journals that the present ones replace");
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "old journals are still there; `fastpay-node prune` removes them");
            }
            Err(error) => tracing::error!(%error, "old journals are still there"),
        }
        if !is_archived {
            tracing::error!(
                "the archive lacks the checkpoint at which the journals begin, so older journals are kept; copy another \
                 authority's archive"
            );
        }
    }

    async fn look(&mut self) -> Option<OwnedMutexGuard<()>> {
        let (checkpoint, reason) = self.reason().await?;
        match self.may(reason).await {
            Err(wait) => {
                if self.told.as_ref() != Some(&wait) {
                    tracing::info!(checkpoint, ?reason, "the journals are to end at the checkpoint; not now: {wait}");
                    self.told = Some(wait);
                }
                None
            }
            Ok(guard) => {
                let at_ms = self.clock.now_ms();
                self.report.underway = Some(Attempt { checkpoint, generation: self.begins.generation, at_ms });
                if !self.write() {
                    self.report.underway = None;
                    return None;
                }
                tracing::info!(checkpoint, ?reason, "stopping, to end the journals at the checkpoint");
                Some(guard)
            }
        }
    }

    /// The newest certified checkpoint that has a successor, if it is worth to begin the journals there. The newest one
    /// can still be replaced by a rival (PROTOCOL, C16), which may need what journals that begin at it have not.
    async fn reason(&mut self) -> Option<(u64, Reason)> {
        let onto = self.archive.newest_number().unwrap_or_default().saturating_sub(1);
        let is_newer = onto > self.begins.checkpoint.map_or(0, |(number, _)| number);
        let verdict = if is_newer { self.verdict(onto).await } else { Verdict::NotWorthIt };
        let now_ms = self.clock.now_ms();
        let (reason, lacking) = match verdict {
            Verdict::NotWorthIt => (None, 0),
            Verdict::NoRoom { reason, lacking } => (Some(reason), lacking),
            Verdict::Due(reason) => (Some(reason), 0),
        };
        self.due_since_ms = reason.map(|_| self.due_since_ms.unwrap_or(now_ms));
        self.metrics.due(self.due_since_ms.unwrap_or_default() / 1_000, lacking);
        let reason = reason?;
        if lacking > 0 {
            let wait = Wait::Room { lacking };
            // How much is lacking changes all the time.
            if !matches!(self.told, Some(Wait::Room { .. })) {
                tracing::error!(?reason, "the journals are to end at checkpoint {onto}; not now: {wait}");
                self.told = Some(wait);
            }
            return None;
        }
        Some((onto, reason))
    }

    async fn verdict(&self, onto: u64) -> Verdict {
        let (folder, archive, reserve) = (self.folder.clone(), self.archive.clone(), self.reserve);
        let measured = tokio::task::spawn_blocking(move || Sizes::measure(folder.path(), &archive, onto, reserve));
        match measured.await {
            Ok(Ok(sizes)) => sizes.judge(pressing(self.handover.join(), *self.is_behind.borrow())),
            Ok(Err(error)) => {
                tracing::warn!(%error, "whether it is worth to end the journals cannot be told");
                Verdict::NotWorthIt
            }
            Err(error) => {
                tracing::error!(%error, "whether it is worth to end the journals cannot be told");
                Verdict::NotWorthIt
            }
        }
    }

    /// Whether the node may stop now. No checkpoint is made while the guard lives.
    async fn may(&mut self, reason: Reason) -> Result<OwnedMutexGuard<()>, Wait> {
        if let Some(failure) = &self.report.failure
            && self.clock.now_ms() < failure.retry_at_ms
        {
            return Err(Wait::Failed(failure.error.clone()));
        }
        self.check_chain()?;
        self.check_turn(reason)?;
        // It takes as long as the checkpoint that is being made.
        let guard = self.lock.clone().lock_owned().await;
        // Meanwhile another member may have begun, or this one's turn may have ended.
        self.check_turn(reason)?;
        let voter_status = self.voter_status.borrow().clone();
        let answering = self.others.answering(&voter_status).await;
        let needed = turn::needed(voter_status.committees().current(), reason);
        if answering < needed {
            return Err(Wait::Others { answering, needed });
        }
        self.check_chain()?;
        self.check_turn(reason)?;
        Ok(guard)
    }

    fn check_chain(&self) -> Result<(), Wait> {
        let is_at_head = *self.progress.borrow() == Progress::AtHead;
        let is_recent = !self.with_primary || is_recent(self.folder.path(), self.clock.now_ms());
        if is_at_head && is_recent { Ok(()) } else { Err(Wait::Chain) }
    }

    fn check_turn(&self, reason: Reason) -> Result<(), Wait> {
        let voter_status = self.voter_status.borrow().clone();
        let (committee, own) = (voter_status.committees().current(), voter_status.public().name);
        let is_turn = turn::may_begin(committee, own, reason, self.clock.now_ms(), self.times.turn);
        if is_turn { Ok(()) } else { Err(Wait::Turn) }
    }

    /// Writes the report. Says whether it is on disk.
    fn write(&self) -> bool {
        self.metrics.observe(&self.report);
        match self.report.write(self.folder.path()) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, file = REPORT_FILE, "how the journals were ended cannot be noted");
                false
            }
        }
    }
}

/// What makes it worth it whatever is gained.
fn pressing(join: Option<(Epoch, JoinWait)>, is_behind: bool) -> Option<Reason> {
    match join {
        Some((_, JoinWait::Checkpoint(_))) => Some(Reason::Joining),
        _ => is_behind.then_some(Reason::Behind),
    }
}

/// Whether the shards have followed the chain up to a recent block.
fn is_recent(data: &Path, now_ms: u64) -> bool {
    read_chain_time(data, TransactionIndex(u64::MAX)).view(now_ms) == PrimaryView::Recent
}

fn clear(folder: &DataFolder, generation: u64, is_archived: bool) -> Result<Vec<PathBuf>, StorageError> {
    let unfinished = folder.remove_next()?;
    let mut removed = if is_archived { remove_older_generations(folder.path(), generation)? } else { Vec::new() };
    removed.extend(unfinished);
    Ok(removed)
}

/// The report in a data folder, on which a node may be running; `None` if its journals never ended by themselves.
#[must_use]
pub fn read_report(data: &Path) -> Option<PruningReport> {
    Some(PruningReport::read(data)).filter(|report| *report != PruningReport::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::follower::cursor_file;
    use crate::authority::shard::ChainTime;
    use crate::authority::storage::{FolderIdentity, Switch};
    use fastpay_ethereum::Cursor;

    #[test]
    fn a_view_of_the_chain_is_as_old_as_the_newest_block_that_the_shards_have_followed() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path();
        assert!(!is_recent(data, 1_000_000), "nothing was followed");
        let cursor = Cursor { block_number: 1, block_hash: Default::default(), last_index: TransactionIndex(1) };
        let time = ChainTime { block_time: 1_000, unlock_window: 600 };
        let mut stored = serde_json::to_value(cursor).unwrap();
        stored["time"] = serde_json::to_value(time).unwrap();
        std::fs::write(cursor_file(data), stored.to_string()).unwrap();
        assert!(is_recent(data, 1_300_999) && !is_recent(data, 1_301_000));
    }

    #[test]
    fn a_join_that_waits_for_a_checkpoint_presses_and_any_other_does_not() {
        let waits = |wait| Some((Epoch(1), wait));
        let checkpoint = || waits(JoinWait::Checkpoint(Digest::repeat_byte(1)));
        assert_eq!([false, true].map(|is_behind| pressing(checkpoint(), is_behind)), [Some(Reason::Joining); 2]);
        assert_eq!(pressing(waits(JoinWait::NotFollowing), false), None);
        assert_eq!(pressing(waits(JoinWait::NotFollowing), true), Some(Reason::Behind));
        assert_eq!(pressing(None, false), None);
    }

    #[test]
    fn older_journals_stay_while_the_archive_lacks_the_checkpoint() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let identity = FolderIdentity { names: vec!["aa".into()], shards: 1, chain_id: 1, contract: "0x01".into() };
        let mut folder = DataFolder::create(&data, &identity).unwrap();
        drop(folder.create_next(1).unwrap());
        folder.switch(1, Switch { ends: vec![0], from_generation: 0, from_ends: vec![0] }, None).unwrap();
        drop(folder.create_next(1).unwrap());
        let unfinished = data.join("generation-0002");
        assert_eq!(clear(&folder, 1, false).unwrap(), [unfinished], "of an attempt that was interrupted");
        let (old, new) = (data.join("shard-000"), data.join("generation-0001"));
        assert!(old.exists());
        assert_eq!(clear(&folder, 1, true).unwrap(), [old]);
        assert!(new.join("shard-000/journal").exists());
    }
}

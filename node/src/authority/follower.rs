//! Follows the Primary [FP §4.3]: finalized blocks or certified groups in, synchronization orders and new committees out.
//!
//! ```text
//!  FundingSource ─► batch of whole blocks or groups ─► all shards have its events on disk (`deposit_sink`)
//!  ─► committees that it installs on disk ─► cursor on disk ─► next batch
//! ```
//! The follower reads the committees before a batch that closes an epoch; of a contract, also at each new final block. So
//! deposits are credited also while no Ethereum node can say who is in the committee.
//!
//! The cursor on disk only saves reading the chain again. After an impossible answer of the Ethereum nodes, the
//! follower reads again for some minutes (`inconsistency`), and then stops with an alarm. It stops at once where a quorum
//! of a ledger's cluster certified what is impossible, or forked. Payments go on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{Epoch, TransactionIndex};
use fastpay_ethereum::Cursor;
use fastpay_program::{files, until_stopped};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::authority::deposit_sink::{DepositSink, ShardsEnded};
use crate::authority::funding::{Batch, FundingSource};
use crate::authority::inconsistency::{InconsistentReads, REREADS_MAX};
use crate::authority::metrics::FollowerMetrics;
use crate::authority::rotation::{Rotation, RotationError};
use crate::authority::shard::ChainTime;

/// The wait if nothing new is final.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The longest wait after repeated failures.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);

/// The follower's progress, for readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has not reached the final head since the start.
    CatchingUp,
    /// It has reached the final head.
    AtHead,
    /// It got an impossible answer, and reads again before it stops.
    Rereading(String),
    /// It has stopped, and an operator must act.
    Stopped(String),
}

/// The follower's cursor in this data folder; `None` if it has not begun. A node may be running on the folder.
#[must_use]
pub fn read_cursor(data: &Path) -> Option<Cursor> {
    Some(read_cursor_file(&cursor_file(data))?.cursor)
}

/// The chain time up to which the shards of this data folder had followed the chain, if they have applied all events up
/// to `applied`. The beginning of time if that is unknown.
#[must_use]
pub fn read_chain_time(data: &Path, applied: TransactionIndex) -> ChainTime {
    let stored = read_cursor_file(&cursor_file(data)).filter(|stored| stored.cursor.last_index <= applied);
    stored.and_then(|stored| stored.time).unwrap_or_default()
}

/// The content of the cursor file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredCursor {
    #[serde(flatten)]
    cursor: Cursor,
    /// The time of the cursor's block. Earlier releases did not write it.
    #[serde(default)]
    time: Option<ChainTime>,
    /// The epoch whose committee was stored before the cursor, on a ledger: its groups tell each committee once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<Epoch>,
}

/// The file in which an authority with this data folder stores its cursor.
#[must_use]
pub fn cursor_file(data: &Path) -> PathBuf {
    data.join("follower.json")
}

fn read_cursor_file(file: &Path) -> Option<StoredCursor> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Follows one Primary until it is stopped, or until what it reads has been impossible for minutes, or certainly is.
pub struct Follower {
    source: FundingSource,
    rotation: Arc<Rotation>,
    /// The time at the cursor.
    time: ChainTime,
    /// The chain time that was last sent to the shards.
    told: ChainTime,
    sink: DepositSink,
    cursor_file: PathBuf,
    metrics: Arc<FollowerMetrics>,
    progress: watch::Sender<Progress>,
}

impl Follower {
    /// A follower that keeps its cursor in `cursor_file`.
    #[must_use]
    pub fn new(
        source: impl Into<FundingSource>,
        sink: DepositSink,
        rotation: Arc<Rotation>,
        cursor_file: PathBuf,
        metrics: Arc<FollowerMetrics>,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let (source, time, told) = (source.into(), ChainTime::default(), ChainTime::default());
        Self { source, rotation, time, told, sink, cursor_file, metrics, progress }
    }

    /// Runs until `stop` turns true, or the follower stops with an alarm.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        until_stopped(stop, self.follow()).await;
    }

    async fn follow(&mut self) {
        let Ok(applied) = self.sink.synchronized().await else { return };
        let stored = self.stored(applied);
        self.time = stored.and_then(|stored| stored.time).unwrap_or_default();
        let mut cursor = stored.map(|stored| stored.cursor);
        let (mut wait, mut inconsistent) = (POLL_INTERVAL, InconsistentReads::default());
        loop {
            match self.step(&mut cursor, applied).await {
                Ok(Some(again_at_once)) => {
                    wait = POLL_INTERVAL;
                    if inconsistent.clear() {
                        self.trust_again();
                    }
                    if !again_at_once {
                        self.look_for_life().await;
                        if !self.source.waits() {
                            tokio::time::sleep(POLL_INTERVAL).await;
                        }
                    }
                }
                Ok(None) => {
                    self.progress.send_replace(Progress::Stopped("a shard has ended or did not follow".into()));
                    return;
                }
                Err(error) if error.is_retryable() => {
                    tracing::warn!(%error, wait_ms = wait.as_millis(), "the Primary cannot be read; retrying");
                    self.metrics.retries.inc();
                    tokio::time::sleep(wait).await;
                    wait = wait.saturating_mul(2).min(RETRY_WAIT_MAX);
                }
                Err(error) => match inconsistent.raise().filter(|_| error.is_of_the_nodes()) {
                    Some(wait) => {
                        tracing::warn!(
                            %error, wait_s = wait.as_secs(), rereads_max = REREADS_MAX,
                            "the Ethereum nodes contradict the contract's rules; retrying before the follower stops"
                        );
                        self.metrics.rereads.inc();
                        self.metrics.rereading.set(1);
                        self.progress.send_replace(Progress::Rereading(error.to_string()));
                        tokio::time::sleep(wait).await;
                    }
                    None => return self.stop(&error),
                },
            }
        }
    }

    /// Resets the alarm: the node's answers are consistent again.
    fn trust_again(&self) {
        tracing::info!("the Ethereum nodes are consistent again");
        self.metrics.rereading.set(0);
        self.progress.send_if_modified(|progress| {
            let rereading = matches!(progress, Progress::Rereading(_));
            if rereading {
                *progress = Progress::CatchingUp;
            }
            rereading
        });
    }

    fn stop(&self, error: &RotationError) {
        tracing::error!(
            %error,
            "the follower stops: no deposit is credited and no new committee adopted until an operator intervenes"
        );
        self.metrics.rereading.set(0);
        self.metrics.alarm.set(1);
        self.progress.send_replace(Progress::Stopped(error.to_string()));
    }

    /// Reads and applies one batch. Returns whether more blocks are final; `None` if the shards have ended.
    async fn step(
        &mut self,
        cursor: &mut Option<Cursor>,
        applied: TransactionIndex,
    ) -> Result<Option<bool>, RotationError> {
        let at = match *cursor {
            Some(cursor) => cursor,
            None => {
                let start = self.source.start().await?;
                tracing::info!(block = start.block_number, %applied, "following the Primary from its first event");
                start
            }
        };
        let batch = self.source.next(&at, self.time).await?;
        let are_due = self.source.are_committees_due(&batch);
        // Before the shards close an epoch: if the next committee cannot be read, this authority votes on in the last one.
        let read = match are_due && batch.closes_an_epoch() {
            true => Some(self.source.committees(&self.rotation, &batch).await?),
            false => None,
        };
        if self.apply(at.last_index, &batch).await.is_err() {
            return Ok(None);
        }
        let is_taken_up = read.is_some();
        if let Some(committees) = read {
            self.rotation.follow(committees)?;
        }
        if batch.cursor != at {
            self.store_cursor(&batch.cursor, batch.time);
            let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            self.metrics.block.set(gauge(batch.cursor.block_number));
            self.metrics.deposits.set(gauge(batch.cursor.last_index.0));
        }
        self.metrics.polled(batch.newest);
        (*cursor, self.time) = (Some(batch.cursor), batch.time);
        if are_due {
            if !is_taken_up {
                let committees = self.source.committees(&self.rotation, &batch).await?;
                self.rotation.follow(committees)?;
            }
            self.source.note_committees(&batch);
        }
        if !batch.has_more {
            self.rotation.note_view(batch.time.block_time)?;
            self.progress.send_if_modified(|progress| {
                let changed = *progress != Progress::AtHead;
                *progress = Progress::AtHead;
                changed
            });
        }
        Ok(Some(batch.has_more))
    }

    /// Reads the committee's last sign of life, for an alert only.
    async fn look_for_life(&mut self) {
        if let Some(time) = self.source.sign_of_life().await {
            self.metrics.sign_of_life.set(i64::try_from(time).unwrap_or(i64::MAX));
        }
    }

    /// Has the shards apply the events, and only then sends them the time.
    async fn apply(&mut self, after: TransactionIndex, batch: &Batch) -> Result<(), ShardsEnded> {
        self.sink.try_apply(after, &batch.events, batch.cursor.last_index).await?;
        if batch.time != self.told {
            self.sink.tell_time(batch.time).await?;
            self.told = batch.time;
        }
        Ok(())
    }

    /// The cursor of an earlier run, unless it is missing, unreadable, ahead of a shard, or ahead of the committees that are
    /// stored. Without it, the chain is read from the start, which only takes time.
    fn stored(&self, applied: TransactionIndex) -> Option<StoredCursor> {
        let (stored, known) = (read_cursor_file(&self.cursor_file)?, self.source.epoch_known(&self.rotation));
        Some(stored).filter(|stored| stored.cursor.last_index <= applied && stored.epoch.max(known) == known)
    }

    fn store_cursor(&self, cursor: &Cursor, time: ChainTime) {
        let epoch = self.source.epoch_known(&self.rotation);
        let stored = StoredCursor { cursor: *cursor, time: Some(time), epoch };
        let written = serde_json::to_vec(&stored).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|bytes| files::replace(&self.cursor_file, &bytes)) {
            // This only costs time at the next start.
            tracing::warn!(%error, file = %self.cursor_file.display(), "cannot store the position in the chain");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::shard::{Command, HistoryReader, OrderStep, ShardHandle};
    use crate::authority::storage::{Journal, JournalOptions};
    use fastpay_core::{AccountId, Amount, Domain, PrimaryAddress, ShardLayout};

    /// The rotation of the first committee's first member, whose data folder is gone: nothing is taken up.
    fn rotation() -> Arc<Rotation> {
        rotation_in(tempfile::tempdir().unwrap().path())
    }

    /// The rotation of the first committee's first member.
    fn rotation_in(folder: &Path) -> Arc<Rotation> {
        let committee = fastpay_testkit::TestCommittee::new(4);
        let committees = fastpay_core::Committees::new(committee.committee).unwrap();
        let keys = Arc::new(committee.keys[0].clone());
        let names = [keys.public().name];
        let identity =
            crate::authority::deployment::folder_identity(&names, std::num::NonZeroU32::MIN, &committee.domain);
        let data = crate::authority::storage::DataFolder::create(&folder.join("data"), &identity).unwrap();
        let remembered = names.as_slice().into();
        let voter_status =
            crate::authority::voter_status::VoterStatus::new(committees, vec![keys], &remembered).unwrap();
        Arc::new(Rotation::new(Arc::new(data), voter_status).unwrap())
    }

    /// A sink for one shard, which has executed nothing, or for none.
    fn sink(shard: Option<ShardHandle>) -> DepositSink {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::create(folder.path(), JournalOptions::default()).unwrap();
        let domain = Domain::new(1, PrimaryAddress::ZERO);
        let shards: Vec<_> =
            shard.into_iter().map(|shard| (shard, HistoryReader::new(journal.reader(), None))).collect();
        DepositSink::new(domain, ShardLayout::new(std::num::NonZeroU32::MIN), &shards)
    }

    /// A follower with this cursor file, of a contract that no node serves.
    fn follower(cursor_file: PathBuf) -> Follower {
        let url = "http://127.0.0.1:1".parse().unwrap();
        let config = fastpay_ethereum::PrimaryConfig::new(vec![url], 1, fastpay_core::PrimaryAddress::ZERO);
        let sink = sink(None);
        let metrics = crate::authority::metrics::Metrics::new(1).follower;
        let (progress, _) = watch::channel(Progress::CatchingUp);
        Follower::new(
            fastpay_ethereum::Primary::connect_lazily(config).unwrap(),
            sink,
            rotation(),
            cursor_file,
            metrics,
            progress,
        )
    }

    fn stored(follower: &Follower, applied: TransactionIndex) -> Option<Cursor> {
        follower.stored(applied).map(|stored| stored.cursor)
    }

    #[tokio::test]
    async fn only_a_cursor_behind_every_shard_is_followed_from() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("follower.json");
        let follower = follower(file.clone());
        let cursor = Cursor { block_number: 9, block_hash: Default::default(), last_index: TransactionIndex(5) };
        assert_eq!(stored(&follower, TransactionIndex(7)), None, "there is none");
        follower.store_cursor(&cursor, ChainTime::default());
        assert_eq!(stored(&follower, TransactionIndex(7)), Some(cursor), "older than the shards");
        assert_eq!(stored(&follower, TransactionIndex(5)), Some(cursor));
        // The shards lost their journals, or the file is foreign: the deposits between are read again.
        assert_eq!(stored(&follower, TransactionIndex(4)), None, "ahead of a shard");
        for garbage in [&b""[..], b"{", b"null", b"\xff\xfe", b"{\"block_number\": -1}", b"[1, 2, 3]"] {
            std::fs::write(&file, garbage).unwrap();
            assert_eq!(stored(&follower, TransactionIndex(u64::MAX)), None);
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert_eq!(stored(&follower, TransactionIndex(7)), None);
        // If the cursor cannot be stored, only the next start takes longer.
        follower.store_cursor(&cursor, ChainTime::default());
    }

    #[tokio::test]
    async fn a_follower_ends_with_its_shards_and_at_a_stop_signal() {
        let limits = crate::authority::shard::ShardLimits::default();
        let (handle, queue) = ShardHandle::new(&limits, crate::authority::metrics::Metrics::new(1).shards[0].clone());
        let (stop, stopped) = watch::channel(false);
        let mut waiting = follower(PathBuf::from("/nowhere/follower.json"));
        waiting.sink = sink(Some(handle.clone()));
        let task = tokio::spawn(waiting.run(stopped.clone()));
        stop.send_replace(true);
        task.await.unwrap();
        drop(queue);
        stop.send_replace(false);
        let mut orphan = follower(PathBuf::from("/nowhere/follower.json"));
        orphan.sink = sink(Some(handle));
        orphan.run(stopped).await;
    }

    /// A contract on a simulated chain, a node that serves it, and a follower with a shard that takes all deposits.
    /// Time is virtual.
    struct Scene {
        primary: fastpay_testkit::primary::SimulatedPrimary,
        contract: fastpay_testkit::primary::SimulatedContract,
        node: fastpay_testkit::primary::SimulatedNode,
        metrics: Arc<FollowerMetrics>,
        progress: watch::Receiver<Progress>,
        credited: watch::Receiver<Vec<u128>>,
        _folder: tempfile::TempDir,
        _stop: watch::Sender<bool>,
    }

    impl Scene {
        async fn new() -> Self {
            let primary = fastpay_testkit::primary::SimulatedPrimary::new(Default::default());
            let contract = primary.deploy(&fastpay_testkit::TestCommittee::new(4).committee);
            primary.finalize();
            let node = primary.node("first", 0);
            let connection =
                primary.connect(std::slice::from_ref(&node), contract.address(), fastpay_ethereum::Finality::Finalized);
            let limits = crate::authority::shard::ShardLimits::default();
            let arrivals = Arc::new(tokio::sync::Notify::new());
            let shard_metrics = crate::authority::metrics::Metrics::new(1).shards[0].clone();
            let (handle, queue) = ShardHandle::notifying(&limits, shard_metrics, arrivals.clone());
            let (credit, credited) = watch::channel(Vec::new());
            tokio::spawn(async move {
                let mut applied = TransactionIndex(0);
                loop {
                    while let Some(command) = queue.try_recv() {
                        let Command::Synchronize(steps, reply) = command else { continue };
                        for step in steps {
                            let OrderStep::Deposit(order) = step else { panic!("{step:?}") };
                            assert_eq!(order.after, applied);
                            applied = order.up_to;
                            credit.send_modify(|amounts| amounts.extend(order.deposit.map(|deposit| deposit.amount.0)));
                        }
                        let _ = reply.send(applied);
                    }
                    arrivals.notified().await;
                }
            });
            let (folder, metrics) = (tempfile::tempdir().unwrap(), crate::authority::metrics::Metrics::new(1).follower);
            let ((progress, seen), (stop, stopped)) = (watch::channel(Progress::CatchingUp), watch::channel(false));
            let sink = sink(Some(handle));
            let file = folder.path().join("follower.json");
            let follower = Follower::new(connection, sink, rotation(), file, metrics.clone(), progress);
            tokio::spawn(follower.run(stopped));
            Self { primary, contract, node, metrics, progress: seen, credited, _folder: folder, _stop: stop }
        }

        /// Makes deposits in one block, which is final.
        fn deposit(&self, amounts: &[u128]) {
            let key = fastpay_testkit::anvil::rich_key(1);
            for wei in amounts {
                self.contract.deposit_ether(&key, AccountId::from_ed25519(&[1; 32]), Amount(*wei));
            }
            self.primary.mine(1);
            self.primary.finalize();
        }

        fn lie(&self, lies: Vec<fastpay_testkit::primary::LogLie>) {
            self.node.behave(|behaviour| behaviour.lies = lies);
        }

        async fn wait_for(&mut self, what: impl FnMut(&Progress) -> bool) -> Progress {
            self.progress.wait_for(what).await.unwrap().clone()
        }
    }

    fn is_rereading(progress: &Progress) -> bool {
        matches!(progress, Progress::Rereading(_))
    }

    #[tokio::test(start_paused = true)]
    async fn an_inconsistent_answer_is_reread_and_the_follower_recovers_by_itself() {
        let mut scene = Scene::new().await;
        scene.wait_for(|progress| *progress == Progress::AtHead).await;
        for (number, lie) in (1..).zip(fastpay_testkit::primary::LogLie::all(0)) {
            // An answer with another amount is consistent: only a second node can tell.
            use fastpay_testkit::primary::LogLie::{Amount, Recipient};
            if matches!(lie, Amount(_) | Recipient(_)) {
                continue;
            }
            scene.lie(vec![lie]);
            let (before, rereads) = (scene.credited.borrow().clone(), scene.metrics.rereads.get());
            // Two logs: the order of one cannot be reversed.
            let amounts = [number, number + 100];
            scene.deposit(&amounts);
            scene.wait_for(is_rereading).await;
            assert_eq!((scene.metrics.rereading.get(), scene.metrics.alarm.get()), (1, 0), "{lie:?}");
            // It reads again for minutes, and nothing is credited.
            while scene.metrics.rereads.get() < rereads + u64::from(REREADS_MAX) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert_eq!(*scene.credited.borrow(), before, "{lie:?}");
            scene.lie(Vec::new());
            scene.wait_for(|progress| *progress == Progress::AtHead).await;
            assert_eq!(scene.metrics.rereading.get(), 0, "{lie:?}");
            assert_eq!(*scene.credited.borrow(), [&before[..], &amounts].concat(), "{lie:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn deposits_are_credited_while_nobody_can_say_who_is_in_the_committee() {
        let mut scene = Scene::new().await;
        scene.wait_for(|progress| *progress == Progress::AtHead).await;
        scene.node.behave(|behaviour| behaviour.refuses_calls = vec!["epoch()"]);
        for amounts in [&[5][..], &[5, 6]] {
            let retries = scene.metrics.retries.get();
            scene.deposit(&amounts[amounts.len() - 1..]);
            scene.credited.wait_for(|credited| credited == amounts).await.unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(scene.metrics.retries.get() > retries, "the committee is asked for in vain");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_inconsistency_that_stays_stops_the_follower_for_good() {
        let mut scene = Scene::new().await;
        scene.wait_for(|progress| *progress == Progress::AtHead).await;
        scene.lie(vec![fastpay_testkit::primary::LogLie::AllWithheld]);
        scene.deposit(&[5]);
        let stopped = scene.wait_for(|progress| matches!(progress, Progress::Stopped(_))).await;
        assert!(format!("{stopped:?}").contains("the contract counts 1"), "{stopped:?}");
        let metrics = &scene.metrics;
        assert_eq!((metrics.rereads.get(), metrics.rereading.get(), metrics.alarm.get()), (REREADS_MAX.into(), 0, 1));
        scene.lie(Vec::new());
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert!(scene.credited.borrow().is_empty(), "a person has to look");
    }

    #[tokio::test(start_paused = true)]
    async fn a_blocks_time_is_published_only_when_all_nodes_agree_and_its_events_are_applied() {
        let primary = fastpay_testkit::primary::SimulatedPrimary::new(Default::default());
        let contract = primary.deploy(&fastpay_testkit::TestCommittee::new(4).committee);
        let key = fastpay_testkit::anvil::rich_key(1);
        contract.deposit_ether(&key, AccountId::from_ed25519(&[1; 32]), Amount(5));
        primary.mine(1);
        primary.finalize();
        let nodes = [primary.node("first", 0), primary.node("second", 1)];
        let connection = primary.connect(&nodes, contract.address(), fastpay_ethereum::Finality::Finalized);
        let limits = crate::authority::shard::ShardLimits::default();
        let (handle, queue) = ShardHandle::new(&limits, crate::authority::metrics::Metrics::new(1).shards[0].clone());
        let (folder, metrics) = (tempfile::tempdir().unwrap(), crate::authority::metrics::Metrics::new(1).follower);
        let ((progress, mut seen), (stop, stopped)) = (watch::channel(Progress::CatchingUp), watch::channel(false));
        let file = folder.path().join("follower.json");
        let follower = Follower::new(connection, sink(Some(handle)), rotation(), file, metrics, progress);
        // One node reports a newest final block that is a week old: requests read now would have no open window.
        nodes[0].behave(|behaviour| behaviour.later_s = -7 * 86_400);
        tokio::spawn(follower.run(stopped));
        let mut applied = TransactionIndex(0);
        // Answers the shard's commands, and watches for a while what the follower sends.
        let next = async |applied: &mut TransactionIndex, is_applied: bool| {
            for _ in 0..60 {
                while let Some(command) = queue.try_recv() {
                    match command {
                        Command::Synchronize(steps, reply) => {
                            assert!(is_applied || steps.is_empty(), "it is asked for in vain");
                            *applied = steps.last().map_or(*applied, OrderStep::up_to);
                            reply.send(*applied).unwrap();
                        }
                        Command::ChainTime(time) => return Some(time),
                        _ => panic!("a follower asks for nothing else"),
                    }
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            None
        };
        assert_eq!(next(&mut applied, false).await, None);
        assert!(is_rereading(&seen.wait_for(is_rereading).await.unwrap().clone()));
        nodes[0].recover();
        // The events are sent, and the shard does not confirm them.
        let asked = async {
            loop {
                match queue.try_recv() {
                    Some(Command::Synchronize(steps, reply)) if steps.is_empty() => reply.send(applied).unwrap(),
                    Some(Command::Synchronize(steps, reply)) => break (steps, reply),
                    Some(_) => panic!("the shard is told the time before it has applied the events"),
                    None => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        };
        let (steps, reply) = asked.await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(queue.try_recv().is_none(), "the shard is told the time before it has applied the events");
        let up_to = steps.last().unwrap().up_to();
        reply.send(up_to).unwrap();
        applied = up_to;
        let told = next(&mut applied, false).await.unwrap();
        assert_eq!((applied, Some(told.block_time)), (TransactionIndex(1), primary.block_time(primary.final_number())));
        stop.send_replace(true);
    }

    /// The next command with steps along the contract's order, which are not answered yet.
    async fn next_steps(queue: &crate::authority::shard::ShardQueue, applied: TransactionIndex) -> Asked {
        loop {
            match queue.try_recv() {
                Some(Command::Synchronize(steps, reply)) if steps.is_empty() => reply.send(applied).unwrap(),
                Some(Command::Synchronize(steps, reply)) => return (steps, reply),
                Some(Command::ChainTime(_)) => {}
                Some(_) => panic!("a follower asks for nothing else"),
                None => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    type Asked = (Vec<OrderStep>, tokio::sync::oneshot::Sender<TransactionIndex>);

    /// Announces a committee, and installs it a day later.
    fn install(primary: &fastpay_testkit::primary::SimulatedPrimary, rotation: &fastpay_testkit::anvil::Rotation) {
        let send = |call| {
            primary.send(&fastpay_testkit::anvil::rich_key(fastpay_testkit::anvil::GUARDIAN_KEY), call);
            primary.mine(1);
        };
        send(rotation.announce());
        send(rotation.endorse());
        primary.mine_at(primary.time_s() + 86_400);
        send(rotation.mature());
        let block = primary.block_number();
        send(rotation.install(block, primary.block_hash(block).unwrap()));
        primary.finalize();
    }

    #[tokio::test(start_paused = true)]
    async fn an_epoch_is_taken_up_only_when_its_installation_is_applied_and_on_disk() {
        use fastpay_testkit::anvil::{Rotation as NextCommittee, Signers};
        let first = fastpay_testkit::TestCommittee::new(4);
        let next = first.rotated();
        let primary = fastpay_testkit::primary::SimulatedPrimary::new(Default::default());
        let contract = primary.deploy(&first.committee);
        let deposit = || {
            let (key, recipient) = (fastpay_testkit::anvil::rich_key(1), AccountId::from_ed25519(&[1; 32]));
            contract.deposit_ether(&key, recipient, Amount(5));
            primary.mine(1);
            primary.finalize();
        };
        deposit();
        let nodes = [primary.node("first", 0)];
        let connection = primary.connect(&nodes, contract.address(), fastpay_ethereum::Finality::Finalized);
        let limits = crate::authority::shard::ShardLimits::default();
        let (handle, queue) = ShardHandle::new(&limits, crate::authority::metrics::Metrics::new(1).shards[0].clone());
        let (folder, metrics) = (tempfile::tempdir().unwrap(), crate::authority::metrics::Metrics::new(1).follower);
        let ((progress, _seen), (stop, stopped)) = (watch::channel(Progress::CatchingUp), watch::channel(false));
        let rotation = rotation_in(folder.path());
        let status = rotation.subscribe();
        let epoch = || status.borrow().epoch().0;
        let file = folder.path().join("follower.json");
        tokio::spawn(Follower::new(connection, sink(Some(handle)), rotation, file, metrics, progress).run(stopped));

        // While the shard is busy with the deposit, a committee is installed, and final.
        let (steps, reply) = next_steps(&queue, TransactionIndex(0)).await;
        assert!(matches!(steps[..], [OrderStep::Deposit(_)]), "{steps:?}");
        let now = Signers { committee: &first.committee, keys: &first.keys };
        let then = Signers { committee: &next.committee, keys: &next.keys };
        let deadline = primary.time_s() + 86_400;
        install(&primary, &NextCommittee::new(contract.address(), now, then, deadline));
        nodes[0].behave(|behaviour| behaviour.refuses_calls = vec!["epoch()"]);
        reply.send(TransactionIndex(1)).unwrap();
        let closing = tokio::time::timeout(Duration::from_secs(120), next_steps(&queue, TransactionIndex(1))).await;
        assert!(closing.is_err(), "the epoch is to be closed, and nobody can say who votes in the next one");
        nodes[0].recover();
        let (steps, reply) = next_steps(&queue, TransactionIndex(1)).await;
        assert!(matches!(steps[..], [OrderStep::Installation(_)]), "{steps:?}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(epoch(), 0, "the epoch before is not closed on disk");
        reply.send(TransactionIndex(2)).unwrap();
        // The follower looks for more, and waits for an answer.
        deposit();
        let _held = next_steps(&queue, TransactionIndex(2)).await;
        assert_eq!(epoch(), 1);
        stop.send_replace(true);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_away_over_several_installations_knows_when_each_epoch_ended() {
        use fastpay_testkit::anvil::{Rotation as NextCommittee, Signers};
        let first = fastpay_testkit::TestCommittee::new(4);
        let second = first.rotated();
        let (third, fourth) = (second.rotated(), second.rotated().rotated());
        let all = [&first, &second, &third, &fourth];
        let primary = fastpay_testkit::primary::SimulatedPrimary::new(Default::default());
        let contract = primary.deploy(&first.committee);
        let mut ends = Vec::new();
        // The last installation says that keys were out since epoch 1.
        for (epoch, since) in [(0, 1), (1, 2), (2, 1)] {
            let [now, next] = [all[epoch], all[epoch + 1]]
                .map(|committee| Signers { committee: &committee.committee, keys: &committee.keys });
            let deadline = primary.time_s() + 20 * 86_400;
            install(
                &primary,
                &NextCommittee::since(fastpay_core::Epoch(since), contract.address(), now, next, deadline),
            );
            let call = fastpay_ethereum::IFastPay::epochValidUntilCall { epoch: epoch as u64 };
            ends.push(contract.view(&call).saturating_to::<u64>());
        }
        let nodes = [primary.node("first", 0)];
        let connection = primary.connect(&nodes, contract.address(), fastpay_ethereum::Finality::Finalized);
        let limits = crate::authority::shard::ShardLimits::default();
        let (handle, queue) = ShardHandle::new(&limits, crate::authority::metrics::Metrics::new(1).shards[0].clone());
        let (folder, metrics) = (tempfile::tempdir().unwrap(), crate::authority::metrics::Metrics::new(1).follower);
        let ((progress, _seen), (stop, stopped)) = (watch::channel(Progress::CatchingUp), watch::channel(false));
        let rotation = rotation_in(folder.path());
        let mut status = rotation.subscribe();
        let file = folder.path().join("follower.json");
        tokio::spawn(Follower::new(connection, sink(Some(handle)), rotation, file, metrics, progress).run(stopped));
        let (steps, reply) = next_steps(&queue, TransactionIndex(0)).await;
        assert!(matches!(steps[..], [OrderStep::Installation(_), ..]), "{steps:?}");
        reply.send(TransactionIndex(steps.len() as u64)).unwrap();
        status.changed().await.unwrap();
        let status = status.borrow();
        let end = |epoch| status.committees().known_end(Epoch(epoch));
        assert_eq!(end(0).map(|end| end.kept_until), Some(ends[0]));
        assert!(ends[0] > ends[2], "keys were out, and their epochs end at once: {ends:?}");
        assert_eq!([end(1), end(2)], [Some(fastpay_core::EpochEnd::default()); 2]);
        stop.send_replace(true);
    }

    #[tokio::test(start_paused = true)]
    async fn a_final_block_that_is_another_one_is_read_again_before_the_follower_stops() {
        let mut scene = Scene::new().await;
        scene.deposit(&[5]);
        scene.credited.wait_for(|amounts| amounts == &[5]).await.unwrap();
        scene.wait_for(|progress| *progress == Progress::AtHead).await;
        // Below finality, the deposit moves to another block.
        scene.primary.reorganise(4, |_| fastpay_testkit::primary::Fate::Again);
        scene.primary.mine(1);
        let rereading = scene.wait_for(is_rereading).await;
        assert!(format!("{rereading:?}").contains("was final as"), "{rereading:?}");
        scene.wait_for(|progress| matches!(progress, Progress::Stopped(_))).await;
        assert_eq!(scene.metrics.rereads.get(), u64::from(REREADS_MAX));
        assert_eq!(*scene.credited.borrow(), [5]);
    }
}

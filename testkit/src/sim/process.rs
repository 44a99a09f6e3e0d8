//! An honest authority as a process: the production code of its shards, service and stream of deposits, on its own
//! disks, restarted repeatedly from what was synced.
//!
//! ```text
//!  keeper: recover ─► check that it has all that it sent ─► live (tasks) ─► crash ─► power lost ─► recover …
//!                                                                              └─► copy ··· copy restored
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_client::AuthorityClient;
use fastpay_core::{JournalPosition, ShardId, ShardLayout, ShardLedger};
use fastpay_ethereum::Cursor;
use fastpay_node::authority::certification::ArchivedReads;
use fastpay_node::authority::check_credits;
use fastpay_node::authority::deployment::folder_identity;
use fastpay_node::authority::deposit_sink::DepositSink;
use fastpay_node::authority::follower::{Follower, Progress, cursor_file, read_chain_time, read_cursor};
use fastpay_node::authority::handover::Closings;
use fastpay_node::authority::metrics::Metrics;
use fastpay_node::authority::network::{self, NetworkLimits, ShardContext};
use fastpay_node::authority::peer_book::PeerBook;
use fastpay_node::authority::rollback::{
    CatchUp, HighWaterMark, Memory, Question, RollbackProtection, VoteFloors, default_high_water_mark,
};
use fastpay_node::authority::rotation::Rotation;
use fastpay_node::authority::shard::{
    self, ADDRESS_JOURNAL_BYTES_PER_DAY, ChainTime, HistoryReader, RecoveredShard, ShardHandle, ShardLimits,
    ShardQueue, ShardSettings, ShardStorage, address_budgets,
};
use fastpay_node::authority::storage::{DataFolder, Journal, JournalOptions};
use fastpay_node::authority::voter_status::{VoterStatus, VoterStatusWatch};
use fastpay_program::Clock;
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;
use tonic::codegen::Service;

use super::byzantine;
use super::copying::Copy;
use super::handing_over::{Joiner, Shards, closing, join_at_once};
use super::live_shard::{LiveShard, ShardDisk, run, way_between};
use super::oracle::{Breach, require};
use super::storage::{Cut, Power, PoweredCheckpoints, PoweredDisk};
use super::world::{Serve, Server, Tasks, Word, World, lock, spawn};
use crate::SteppedShard;

/// The maximum time for which a process is down.
const DOWN_MAX: Duration = Duration::from_secs(20);
/// Short segments, so that a run has several.
const SEGMENT_BYTES_MAX: u64 = 20_000;
/// The maximum lag of the high-water mark behind the journals, as in production.
const HIGH_WATER_MARK_INTERVAL: Duration = Duration::from_secs(5);

/// Runs one honest authority.
pub struct Keeper {
    pub(super) world: Arc<World>,
    pub(super) authority: usize,
    pub(super) layout: ShardLayout,
    pub(super) power: Power,
    pub(super) disks: Vec<Arc<Mutex<ShardDisk>>>,
    /// The small files of its folder. They survive crashes: each is synced before its content is used.
    pub(super) folder: (TempDir, Option<Arc<DataFolder>>),
    /// The value in the folder.
    pub(super) voter_status: VoterStatusWatch,
    words: mpsc::UnboundedReceiver<Word>,
    pub(super) copy: Option<Copy>,
}

type Recovered = (RecoveredShard, (ShardHandle, ShardQueue), Arc<Notify>);

impl Keeper {
    /// The disk of an authority that has never run.
    #[must_use]
    pub fn new(world: &Arc<World>, authority: usize, words: mpsc::UnboundedReceiver<Word>) -> Self {
        let shards = world.plan.shards[authority];
        let power = Power::default();
        let disks = (0..shards).map(|shard| {
            let disk = PoweredDisk::new(power.clone());
            Journal::create_on(Arc::new(disk.clone()), &folder(shard), journal_options()).expect("there is power");
            let checkpoints = PoweredCheckpoints::new(power.clone());
            Arc::new(Mutex::new(ShardDisk { disk, checkpoints, seen: JournalPosition::default() }))
        });
        let layout = ShardLayout::new(NonZeroU32::new(shards).expect("an authority has shards"));
        let files = memory_folder();
        let names = [world.keys(authority)[0].public().name];
        let identity =
            folder_identity(&names, NonZeroU32::new(shards).expect("an authority has shards"), &world.domain);
        let data = files.path().join("data");
        let folder = DataFolder::create(&data, &identity).expect("the folder is new");
        HighWaterMark::create(&data, default_high_water_mark(&data)).expect("the folder is new");
        Self {
            authority,
            layout,
            disks: disks.collect(),
            voter_status: watch::Sender::new(Arc::new(voter_status(world, authority))).subscribe(),
            folder: (files, Some(Arc::new(folder))),
            world: world.clone(),
            power,
            words,
            copy: None,
        }
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.0.path().join("data")
    }

    /// The follower stores its block's time, whatever a single Ethereum node reports.
    fn watch_time(&self, tasks: &Tasks) {
        let (world, data, authority) = (self.world.clone(), self.data(), self.authority);
        spawn(tasks, async move {
            loop {
                sleep(Duration::from_secs(1)).await;
                let Some(Cursor { block_number, last_index, .. }) = read_cursor(&data) else { continue };
                let (known, made_at) = (read_chain_time(&data, last_index), world.chain.block_time(block_number));
                world.check(|_| {
                    let is_true = known == ChainTime::default() || made_at == Some(known.block_time);
                    require!(is_true, "authority {authority} knows {known:?} of a block that was made at {made_at:?}");
                    Ok(())
                });
            }
        });
    }

    /// Runs the authority forever.
    pub async fn keep(mut self) {
        loop {
            self.misbehave().await;
            let (tasks, mut word) = (Tasks::default(), None);
            match self.start(&tasks) {
                Ok(()) => word = self.live().await,
                // It crashed during recovery.
                Err(_) if self.power.is_off() => {}
                Err(breach) => return self.world.trace.violation(breach),
            }
            self.world.trace.note("crash", self.authority);
            (0..self.layout.count()).for_each(|shard| self.world.listen(self.authority, shard, None));
            self.power.off();
            let mut ended = std::mem::take(&mut *lock(&tasks));
            ended.shutdown().await;
            for disk in &self.disks {
                let disk = lock(disk);
                disk.disk.lose_power(&self.world.dice);
                disk.checkpoints.lose_power(&self.world.dice);
            }
            if !self.world.is_calm() {
                sleep(self.world.dice.mostly_short(DOWN_MAX)).await;
            }
            while word == Some(Word::Stop) && self.words.recv().await != Some(Word::Restart) {}
            while self.words.try_recv().is_ok() {}
            match word {
                Some(Word::Copy) => self.copy(),
                Some(Word::BringBack) => self.bring_back(),
                _ => self.bring_back_a_copy(),
            }
            self.power.restore();
            if let Err(breach) = self.rebase().await {
                return self.world.trace.violation(breach);
            }
            if !self.world.is_calm() && self.world.dice.chance(100) {
                self.cut_ahead();
            }
        }
    }

    /// While the authority is Byzantine, somebody else answers with its keys, and its folder stays as it is.
    async fn misbehave(&mut self) {
        let Some(role) = self.world.role_of(self.authority) else { return };
        let tasks = byzantine::start(&self.world, self.authority, role);
        while self.world.role_of(self.authority).is_some() {
            self.words.recv().await;
        }
        (0..self.layout.count()).for_each(|shard| self.world.listen(self.authority, shard, None));
        let mut ended = std::mem::take(&mut *lock(&tasks));
        ended.shutdown().await;
    }

    /// Waits for the process's end: a failure, a command, or a random crash. Returns the command.
    async fn live(&mut self) -> Option<Word> {
        let every = Duration::from_secs(self.world.plan.crash_every_s);
        loop {
            if every.is_zero() || self.world.is_calm() {
                return self.words.recv().await;
            }
            tokio::select! {
                biased;
                word = self.words.recv() => return word,
                () = sleep(self.world.dice.between(Duration::ZERO, every * 2)) => {}
            }
            if self.world.is_calm() {
                continue;
            }
            if self.world.dice.chance(300) {
                return None;
            }
            self.cut_ahead();
        }
    }

    /// Schedules a power cut at one of the process's next disk operations, before or after its effect.
    fn cut_ahead(&self) {
        let dice = &self.world.dice;
        let (of_checkpoints, is_done) = (dice.chance(300), dice.chance(400));
        let operations = dice.below(if of_checkpoints { 2 } else { 6 });
        let cut = Cut { operations, of_checkpoints, is_done };
        self.world.trace.note("power cut ahead", format_args!("a{} {cut:?}", self.authority));
        self.power.cut_at(cut);
    }

    /// Starts the process from its disks.
    fn start(&mut self, tasks: &Tasks) -> Result<(), Breach> {
        let limits = limits(&self.world);
        let metrics = Arc::new(Metrics::new(self.layout.count()));
        let mut recovered: Vec<Recovered> = Vec::new();
        for shard in self.recover()? {
            let id = shard.shard().id();
            let arrivals = Arc::new(Notify::new());
            let queue = ShardHandle::notifying(&limits, metrics.shards[id.0 as usize].clone(), arrivals.clone());
            recovered.push((shard, queue, arrivals));
        }
        check_credits(recovered.iter().map(|(shard, ..)| shard.shard()))
            .map_err(|error| Breach(format!("authority {} cannot start: {error}", self.authority)))?;
        self.world.trace.note("start", format_args!("a{}", self.authority));
        let histories: Vec<HistoryReader> = recovered.iter().map(|(shard, ..)| shard.history()).collect();
        let folder = self.open_folder()?;
        let protection = self.judge(tasks, &folder, &histories)?;
        let is_whole = protection.is_none();
        let ledgers: Vec<_> = recovered.iter().map(|(shard, ..)| Arc::new(shard.shard().ledger().clone())).collect();
        let (protection, questions) =
            protection.map(|(protection, questions)| (Arc::new(protection), questions)).unzip();
        let known = self.voter_status.borrow().as_ref().clone().with_rollback_protection(protection.clone());
        let rotation = Rotation::new(folder, known).map_err(|error| Breach(error.to_string()))?;
        self.voter_status = rotation.subscribe();
        self.world.follows(self.authority, self.voter_status.clone());
        if let (Some(protection), Some(questions)) = (protection, questions) {
            self.catch_up(tasks, protection, questions);
        }
        let handles: Vec<ShardHandle> = recovered.iter().map(|(_, (handle, _), _)| handle.clone()).collect();
        let applied = recovered.iter().map(|(shard, ..)| shard.shard().ledger().synchronized).min();
        let chain_time = read_chain_time(&self.data(), applied.unwrap_or_default());
        self.watch_time(tasks);
        let chain = (chain_time, self.world.clock_of(self.authority));
        let mut shards = Vec::new();
        for (shard, (_, queue), arrivals) in recovered {
            shards.push((self.start_shard(shard, queue, &handles, limits, chain, tasks), arrivals));
        }
        for (shard, _) in &shards {
            shard.observe()?;
        }
        if is_whole && self.world.is_calm() {
            self.tells(&histories, &ledgers)?;
        }
        self.remembers(&shards)?;
        for (shard, arrivals) in shards {
            spawn(tasks, run(shard, arrivals));
        }
        self.serve(tasks, &handles, &histories, &metrics);
        self.follow(tasks, Arc::new(handles.into_iter().zip(histories).collect()), rotation, &metrics);
        Ok(())
    }

    /// What it states of the newest epoch that it has closed counts, and says all.
    fn tells(&self, histories: &[HistoryReader], ledgers: &[Arc<ShardLedger>]) -> Result<(), Breach> {
        let Some(Some(closed)) = ledgers.iter().map(|ledger| ledger.tenure.closed()).min() else { return Ok(()) };
        let hands_over = self.world.plan.hand_over.is_some();
        if hands_over && self.voter_status.borrow().closes(closed).is_none() {
            return Ok(());
        }
        let Some(keys) = self.world.keys_in(self.authority, closed) else { return Ok(()) };
        if let Some((_, entries)) = closing(&self.world, self.authority, (closed, keys), histories, ledgers)? {
            self.world.trace.note("told", format_args!("a{} {closed} {}", self.authority, entries.len()));
        }
        Ok(())
    }

    /// Recovers the shards from their disks.
    pub(super) fn recover(&self) -> Result<Vec<RecoveredShard>, Breach> {
        let recover = |(id, disk): (ShardId, &Arc<Mutex<ShardDisk>>)| {
            let disk = lock(disk);
            let storage = ShardStorage {
                disk: Arc::new(disk.disk.clone()),
                journal: folder(id.0),
                journal_options: journal_options(),
                checkpoints: Arc::new(disk.checkpoints.clone()),
            };
            shard::recover_on(storage, id, self.layout, true, &limits(&self.world))
                .map_err(|error| Breach(format!("authority {} cannot start: {error}", self.authority)))
        };
        self.layout.shards().zip(&self.disks).map(recover).collect()
    }

    fn open_folder(&mut self) -> Result<Arc<DataFolder>, Breach> {
        if let Some(folder) = &self.folder.1 {
            return Ok(folder.clone());
        }
        let folder = self.unshared_folder()?;
        Ok(self.folder.1.insert(Arc::new(folder)).clone())
    }

    /// The folder, which no process uses.
    pub(super) fn unshared_folder(&self) -> Result<DataFolder, Breach> {
        let names: Vec<_> = self.world.keys(self.authority).iter().map(|keys| keys.public().name).collect();
        let identity = folder_identity(
            &names,
            NonZeroU32::new(self.layout.count()).expect("an authority has shards"),
            &self.world.domain,
        );
        DataFolder::open(&self.data(), &identity).map_err(|error| Breach(error.to_string()))
    }

    /// The rollback protection, if the folder is an older copy. From now on the high-water mark follows the journals.
    fn judge(
        &self,
        tasks: &Tasks,
        folder: &DataFolder,
        histories: &[HistoryReader],
    ) -> Result<Option<(RollbackProtection, mpsc::Receiver<Question>)>, Breach> {
        let wrong = |error: &dyn std::fmt::Display| Breach(format!("authority {}: {error}", self.authority));
        let high_water_mark =
            HighWaterMark::of(&self.data(), default_high_water_mark(&self.data())).map_err(|error| wrong(&error))?;
        let ends = |histories: &[HistoryReader]| histories.iter().map(HistoryReader::end).collect::<Vec<_>>();
        let memory = high_water_mark.judge(folder, &ends(histories), None).map_err(|error| wrong(&error))?;
        let histories = histories.to_vec();
        spawn(tasks, async move {
            loop {
                sleep(HIGH_WATER_MARK_INTERVAL).await;
                high_water_mark.note(&ends(&histories));
            }
        });
        match memory {
            Memory::Whole => Ok(None),
            Memory::Older { .. } => {
                self.world.trace.note("protected", format_args!("a{}", self.authority));
                Ok(Some(RollbackProtection::new(VoteFloors::open(folder.path()).map_err(|error| wrong(&error))?)))
            }
        }
    }

    /// Asks the other authorities for votes that this one may have forgotten.
    fn catch_up(&self, tasks: &Tasks, protection: Arc<RollbackProtection>, questions: mpsc::Receiver<Question>) {
        // A client number that differs from those of all clients and relayers.
        let client = self.world.owners.len() + self.world.plan.relayers + self.authority;
        let all = self.world.network(client).authorities().to_vec();
        // As an endpoints file that lists each of them under its names of all epochs.
        let terms = self.world.chain.terms().iter().zip(0..=self.world.plan.rotations);
        let mut listed = BTreeSet::new();
        let peers = terms.flat_map(|(term, _)| {
            let named = all.iter().enumerate().filter(|(number, _)| *number != self.authority);
            let client = |(number, peer): (usize, &AuthorityClient)| {
                let name = term.keys_of(number)?.public().name;
                Some(AuthorityClient::of(name, peer.shards().to_vec()).expect("there is a shard"))
            };
            named.filter_map(client).collect::<Vec<_>>()
        });
        let peers = peers.filter(|peer: &AuthorityClient| listed.insert(peer.name())).collect();
        let catch_up = CatchUp::over(protection, questions, peers, self.world.domain, self.voter_status.clone());
        spawn(tasks, catch_up.run());
    }

    /// The follower, which reads deposits and committees from the chain. It must never stop while the process lives.
    fn follow(&self, tasks: &Tasks, shards: Shards, rotation: Rotation, metrics: &Arc<Metrics>) {
        let (world, authority) = (self.world.clone(), self.authority);
        let sink = DepositSink::new(world.domain, self.layout, &shards);
        let (progress, mut seen) = watch::channel(Progress::CatchingUp);
        let (never, stop) = watch::channel(false);
        let cursor_file = cursor_file(&self.data());
        let source = world.chain.source(&world, authority);
        let (rotation, metered) = (Arc::new(rotation), metrics.follower.clone());
        if world.plan.hand_over.is_some() {
            let joiner = Joiner {
                world: world.clone(),
                authority,
                rotation: rotation.clone(),
                shards,
                closings: Closings::of(&self.data(), 0),
                metrics: metrics.clone(),
                power: self.power.clone(),
                cursors: self.data().join("peers"),
            };
            spawn(tasks, joiner.run(tasks.clone()));
        } else {
            spawn(tasks, join_at_once(rotation.clone()));
        }
        let follower = Follower::new(source, sink, rotation, cursor_file, metered, progress);
        spawn(tasks, async move {
            follower.run(stop).await;
            drop(never);
        });
        if let Some(ledger) = world.chain.ledger().filter(|_| world.is_calm()) {
            let (sent, data, world, mut seen) = (ledger.groups(), self.data(), world.clone(), seen.clone());
            spawn(tasks, async move {
                let Ok(_) = seen.wait_for(|progress| *progress == Progress::AtHead).await else { return };
                let applied = read_cursor(&data).map_or(0, |cursor| cursor.block_number);
                world.check(|_| {
                    require!(applied >= sent, "authority {authority} is at the head with group {applied} of {sent}");
                    Ok(())
                });
            });
        }
        let metrics = metrics.clone();
        spawn(tasks, async move {
            let stopped = seen.wait_for(|progress| matches!(progress, Progress::Stopped(_))).await;
            // It also stops if a shard fails, which ends the process anyway.
            if let (Ok(stopped), 1) = (stopped, metrics.follower.alarm.get()) {
                world.trace.violation(format_args!("the follower of authority {authority} stops: {:?}", *stopped));
            }
        });
    }

    fn start_shard(
        &self,
        recovered: RecoveredShard,
        queue: ShardQueue,
        handles: &[ShardHandle],
        limits: ShardLimits,
        chain: (ChainTime, Clock),
        tasks: &Tasks,
    ) -> Arc<LiveShard> {
        let id = recovered.shard().id();
        let siblings = self.layout.shards().zip(handles).filter(|(to, _)| *to != id).map(|(to, handle)| {
            let way = way_between(&self.world, self.authority, (id, to), handle.clone(), tasks);
            (to, way)
        });
        let siblings: BTreeMap<_, _> = siblings.collect();
        let settings = ShardSettings {
            domain: self.world.domain,
            voter_status: self.voter_status.clone(),
            limits,
            addresses: address_budgets(ADDRESS_JOURNAL_BYTES_PER_DAY),
            chain: Some(chain),
        };
        Arc::new(LiveShard {
            world: self.world.clone(),
            authority: self.authority,
            id,
            journal: recovered.journal(),
            epoch: AtomicU64::new(self.voter_status.borrow().epoch().0),
            shard: Mutex::new(SteppedShard::new(settings, recovered, queue, siblings)),
            disk: self.disks[id.0 as usize].clone(),
        })
    }

    /// Checks that each order that the authority voted for is locked there, or confirmed.
    fn remembers(&self, shards: &[(Arc<LiveShard>, Arc<Notify>)]) -> Result<(), Breach> {
        let oracle = self.world.oracle();
        for (account, sequence, digest) in oracle.books(self.authority).votes() {
            let (shard, _) = &shards[self.layout.shard_of(&account).0 as usize];
            let state = lock(&shard.shard).account(&account).map_err(|error| Breach(error.to_string()))?;
            let next = state.next_sequence().0;
            let pending = state.pending.map(|pending| pending.digest);
            let name = self.world.name_of(&account);
            require!(
                next > sequence || pending == Some(digest),
                "authority {} forgot its vote for #{sequence} of {name}",
                self.authority
            );
        }
        for ((account, sequence), digest) in oracle.books(self.authority).taken_over() {
            let (shard, _) = &shards[self.layout.shard_of(&account).0 as usize];
            let shard = lock(&shard.shard);
            let state = shard.account(&account).map_err(|error| Breach(error.to_string()))?;
            let is_kept = shard.shard().locks(account, &state).iter().any(|lock| lock.digest == digest);
            require!(is_kept, "authority {} forgot what it took over of #{sequence} of {account}", self.authority);
        }
        Ok(())
    }

    fn serve(&self, tasks: &Tasks, handles: &[ShardHandle], histories: &[HistoryReader], metrics: &Metrics) {
        let (never, stop) = watch::channel(false);
        let shards: Vec<_> = handles.iter().cloned().zip(histories.iter().cloned()).collect();
        let shards = Arc::new(shards);
        for ((id, handle), history) in self.layout.shards().zip(handles).zip(histories) {
            let context = ShardContext {
                domain: self.world.domain,
                voter_status: self.voter_status.clone(),
                shard: id,
                handle: handle.clone(),
                history: history.clone(),
                shards: shards.clone(),
                closings: Closings::of(&self.data(), 0),
                peers: PeerBook::new(self.world.domain, None, &[]),
                archive: None,
                archived: ArchivedReads::default(),
                handover: metrics.handover.clone(),
                metrics: metrics.network.clone(),
            };
            let service = network::service(context, NetworkLimits::default(), stop.clone());
            let serve: Serve = Arc::new(move |call| Box::pin(service.clone().call(call)));
            self.world.listen(self.authority, id.0, Some(Server { serve, tasks: tasks.clone() }));
        }
        // No stop signal is ever sent: processes end by crashes here.
        spawn(tasks, async move { never.closed().await });
    }
}

pub(super) fn folder(shard: u32) -> PathBuf {
    PathBuf::from(format!("shard-{shard}"))
}

pub(super) fn journal_options() -> JournalOptions {
    JournalOptions { segment_bytes_max: SEGMENT_BYTES_MAX, ..JournalOptions::default() }
}

pub(super) fn limits(world: &World) -> ShardLimits {
    ShardLimits {
        queue_requests_max: 64,
        batch_requests_max: 16,
        checkpoint_journal_bytes: world.plan.checkpoint_bytes,
        checkpoint_interval: Duration::from_secs(10),
        checkpoint_slice_accounts: 2,
        accounts_in_memory_max: world.plan.accounts_in_memory,
        ..ShardLimits::default()
    }
}

fn voter_status(world: &World, authority: usize) -> VoterStatus {
    let keys = world.keys(authority);
    let names = [keys[0].public().name];
    // A later committee may list it.
    let first = &world.chain.terms()[0];
    let is_observer = first.keys_of(authority).is_none() || !first.begins_honest(authority);
    VoterStatus::of(world.known_committees(1), keys, &names.as_slice().into(), is_observer)
        .expect("it is a member of the first committee, or observes")
}

/// A folder in memory if there is one, because these files are not part of the simulation.
pub(super) fn memory_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

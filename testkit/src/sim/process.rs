//! An honest authority as a process: the production code of its shards, its service and its feed of deposits, on
//! disks of its own, started again and again from what was synced.
//!
//! ```text
//!  keeper: recover ─► check that it remembers what it said ─► live (tasks) ─► crash ─► power lost ─► recover …
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_core::{JournalPosition, ShardLayout};
use fastpay_node::authority::check_credits;
use fastpay_node::deployment::folder_identity;
use fastpay_node::follower::{Feed, Follower, Progress};
use fastpay_node::metrics::Metrics;
use fastpay_node::network::{self, NetworkLimits, ShardContext};
use fastpay_node::rotation::Rotation;
use fastpay_node::shard::{
    self, ADDRESS_JOURNAL_BYTES_PER_DAY, HistoryReader, RecoveredShard, ShardHandle, ShardLimits, ShardQueue,
    ShardSettings, ShardStorage, SteppedShard, address_budgets,
};
use fastpay_node::standing::{Standing, StandingSeen};
use fastpay_node::storage::{DataFolder, Journal, JournalOptions};
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;
use tonic::codegen::Service;

use super::live_shard::{LiveShard, ShardDisk, run, way_between};
use super::oracle::{Breach, require};
use super::storage::{Cut, Power, PoweredCheckpoints, PoweredDisk};
use super::world::{Serve, Server, Tasks, Word, World, lock, spawn};

/// How long a process is away at most.
const DOWN_MAX: Duration = Duration::from_secs(20);
/// Segments so short that a run has several.
const SEGMENT_BYTES_MAX: u64 = 20_000;

/// Keeps one honest authority.
pub struct Keeper {
    world: Arc<World>,
    authority: usize,
    layout: ShardLayout,
    power: Power,
    disks: Vec<Arc<Mutex<ShardDisk>>>,
    /// The small files of its folder, which a crash does not take back: each is synced before its news is told.
    folder: (TempDir, Arc<DataFolder>),
    /// As the folder has it.
    standing: StandingSeen,
    words: mpsc::UnboundedReceiver<Word>,
}

type Recovered = (RecoveredShard, (ShardHandle, ShardQueue), Arc<Notify>);

impl Keeper {
    /// Of an authority that has never run.
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
        let folder = memory_folder();
        let names = [world.keys(authority)[0].public().name];
        let identity =
            folder_identity(&names, NonZeroU32::new(shards).expect("an authority has shards"), &world.domain);
        let data = DataFolder::create(&folder.path().join("data"), &identity).expect("the folder is new");
        Self {
            authority,
            layout,
            disks: disks.collect(),
            standing: watch::Sender::new(Arc::new(standing(world, authority))).subscribe(),
            folder: (folder, Arc::new(data)),
            world: world.clone(),
            power,
            words,
        }
    }

    /// Runs the authority for ever.
    pub async fn keep(mut self) {
        loop {
            let tasks = Tasks::default();
            match self.start(&tasks) {
                Ok(()) => self.live().await,
                // It crashed while it recovered.
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
            while self.words.try_recv().is_ok() {}
            self.power.restore();
            if !self.world.is_calm() && self.world.dice.chance(100) {
                self.cut_ahead();
            }
        }
    }

    /// Waits for the process's end: it fails, or somebody or the dice end it.
    async fn live(&mut self) {
        let every = Duration::from_secs(self.world.plan.crash_every_s);
        loop {
            if every.is_zero() || self.world.is_calm() {
                let _ = self.words.recv().await;
                return;
            }
            tokio::select! {
                biased;
                _ = self.words.recv() => return,
                () = sleep(self.world.dice.between(Duration::ZERO, every * 2)) => {}
            }
            if self.world.is_calm() {
                continue;
            }
            if self.world.dice.chance(300) {
                return;
            }
            self.cut_ahead();
        }
    }

    /// The power will go off at one of the next things that the process does to its disk, before or after that is done.
    fn cut_ahead(&self) {
        let cut = Cut { operations: self.world.dice.below(6), is_done: self.world.dice.chance(400) };
        self.world.trace.note("power cut ahead", format_args!("a{} {cut:?}", self.authority));
        self.power.cut_at(cut);
    }

    /// Starts the process from what is on its disks.
    fn start(&mut self, tasks: &Tasks) -> Result<(), Breach> {
        let limits = limits(&self.world);
        let metrics = Arc::new(Metrics::new(self.layout.count()));
        let mut recovered: Vec<Recovered> = Vec::new();
        for (id, disk) in self.layout.shards().zip(&self.disks) {
            let disk = lock(disk);
            let storage = ShardStorage {
                disk: Arc::new(disk.disk.clone()),
                journal: folder(id.0),
                journal_options: journal_options(),
                checkpoints: Arc::new(disk.checkpoints.clone()),
            };
            let shard = shard::recover_on(storage, id, self.layout, true, &limits)
                .map_err(|error| Breach(format!("authority {} cannot start: {error}", self.authority)))?;
            let arrivals = Arc::new(Notify::new());
            let queue = ShardHandle::stepped(&limits, metrics.shards[id.0 as usize].clone(), arrivals.clone());
            recovered.push((shard, queue, arrivals));
        }
        check_credits(recovered.iter().map(|(shard, ..)| shard.shard()))
            .map_err(|error| Breach(format!("authority {} cannot start: {error}", self.authority)))?;
        self.world.trace.note("start", format_args!("a{}", self.authority));
        let known = self.standing.borrow().as_ref().clone();
        let rotation = Rotation::new(self.folder.1.clone(), known).map_err(|error| Breach(error.to_string()))?;
        self.standing = rotation.subscribe();
        let histories: Vec<HistoryReader> = recovered.iter().map(|(shard, ..)| shard.history()).collect();
        let handles: Vec<ShardHandle> = recovered.iter().map(|(_, (handle, _), _)| handle.clone()).collect();
        let mut shards = Vec::new();
        for (shard, (_, queue), arrivals) in recovered {
            shards.push((self.start_shard(shard, queue, &handles, limits, tasks), arrivals));
        }
        for (shard, _) in &shards {
            shard.observe()?;
        }
        self.remembers(&shards)?;
        for (shard, arrivals) in shards {
            spawn(tasks, run(shard, arrivals));
        }
        self.serve(tasks, &handles, &histories, &metrics);
        self.follow(tasks, Feed::new(self.layout, handles), rotation, &metrics);
        Ok(())
    }

    /// The follower, which reads deposits and committees from the chain. It never has a reason to stop while the
    /// process lives.
    fn follow(&self, tasks: &Tasks, feed: Feed, rotation: Rotation, metrics: &Arc<Metrics>) {
        let (world, authority) = (self.world.clone(), self.authority);
        let (progress, mut seen) = watch::channel(Progress::CatchingUp);
        let (never, stop) = watch::channel(false);
        let cursor_file = self.folder.0.path().join("follower.json");
        let primary = world.chain.connect(&world);
        let follower = Follower::new(primary, feed, rotation, cursor_file, metrics.follower.clone(), progress);
        spawn(tasks, async move {
            follower.run(stop).await;
            drop(never);
        });
        let metrics = metrics.clone();
        spawn(tasks, async move {
            let stopped = seen.wait_for(|progress| matches!(progress, Progress::Stopped(_))).await;
            // It also stops where a shard fails: then the process ends anyway.
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
            standing: self.standing.clone(),
            limits,
            addresses: address_budgets(ADDRESS_JOURNAL_BYTES_PER_DAY),
        };
        Arc::new(LiveShard {
            world: self.world.clone(),
            authority: self.authority,
            id,
            journal: recovered.journal(),
            shard: Mutex::new(SteppedShard::new(settings, recovered, queue, siblings)),
            disk: self.disks[id.0 as usize].clone(),
        })
    }

    /// What left the authority as a vote is locked there, or confirmed.
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
        Ok(())
    }

    fn serve(&self, tasks: &Tasks, handles: &[ShardHandle], histories: &[HistoryReader], metrics: &Metrics) {
        let (never, stop) = watch::channel(false);
        let shards: Vec<_> = handles.iter().cloned().zip(histories.iter().cloned()).collect();
        let shards = Arc::new(shards);
        for ((id, handle), history) in self.layout.shards().zip(handles).zip(histories) {
            let context = ShardContext {
                domain: self.world.domain,
                standing: self.standing.clone(),
                shard: id,
                handle: handle.clone(),
                history: history.clone(),
                shards: shards.clone(),
                metrics: metrics.network.clone(),
            };
            let service = network::service(context, NetworkLimits::default(), stop.clone());
            let serve: Serve = Arc::new(move |call| Box::pin(service.clone().call(call)));
            self.world.listen(self.authority, id.0, Some(Server { serve, tasks: tasks.clone() }));
        }
        // The word to stop never comes: processes end by crashes here.
        spawn(tasks, async move { never.closed().await });
    }
}

fn folder(shard: u32) -> PathBuf {
    PathBuf::from(format!("shard-{shard}"))
}

fn journal_options() -> JournalOptions {
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

fn standing(world: &World, authority: usize) -> Standing {
    let keys = world.keys(authority);
    let names = [keys[0].public().name];
    Standing::new(world.known_committees(1), keys, &names).expect("it is a member of the first committee")
}

/// A folder without a disk below it, where there is such: what is written there is not what is tried here.
pub(super) fn memory_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

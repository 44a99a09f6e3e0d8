//! A shard of an honest authority while its process lives: its two threads as one task, the observed part of its
//! journal, and its connections to the other shards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use borsh::BorshDeserialize;
use fastpay_core::{AccountId, JournalPosition, Record, ShardId};
use fastpay_node::authority::metrics::Metrics;
use fastpay_node::authority::shard::ShardHandle;
use fastpay_node::authority::storage::{JournalRead, JournalReader};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::oracle::{Breach, require};
use super::process::limits;
use super::storage::{PoweredCheckpoints, PoweredDisk};
use super::world::{Tasks, Word, World, lock, spawn};
use crate::SteppedShard;

/// The maximum delay until a shard handles its queue, without faults.
const STEP_MAX: Duration = Duration::from_millis(2);
/// The maximum duration of a write with its sync, without faults.
const SYNC_MAX: Duration = Duration::from_millis(10);

/// The disk of a shard, which survives the process.
pub struct ShardDisk {
    /// The journal's disk.
    pub disk: PoweredDisk,
    /// Its checkpoints.
    pub checkpoints: PoweredCheckpoints,
    /// The position up to which its records were checked.
    pub seen: JournalPosition,
}

impl ShardDisk {
    /// A copy with the same bytes.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { disk: self.disk.copy(), checkpoints: self.checkpoints.copy(), seen: self.seen }
    }

    /// Checks the records of its journal that were not checked yet. Returns the senders of executed orders among them.
    pub fn observe(
        &mut self,
        world: &World,
        (authority, id): (usize, ShardId),
        journal: &JournalReader,
        epoch: u64,
    ) -> Result<Vec<AccountId>, Breach> {
        let (end, mut senders) = (journal.end(), Vec::new());
        require!(end >= self.seen, "authority {authority} lost records that were on its disk");
        for entry in journal.read_from(self.seen) {
            let (position, bytes) = entry.map_err(|error| Breach(format!("a journal cannot be read: {error}")))?;
            let record = Record::try_from_slice(&bytes).map_err(|_| Breach("a record is not one".into()))?;
            world.trace.note("record", format_args!("a{authority}.{id} {position} {}", kind(&record)));
            world.check(|oracle| oracle.record(authority, id, &record));
            if let Record::Confirmation { certificate, .. } = &record {
                let transfer = &certificate.order.transfer;
                let slot = (transfer.sender(), transfer.sequence().0);
                world.oracle().executed_in(authority, slot, epoch);
                senders.push(slot.0);
            }
        }
        self.seen = end;
        Ok(senders)
    }
}

/// A running shard, for its task and its observers.
pub struct LiveShard {
    /// The world.
    pub world: Arc<World>,
    /// The authority's index.
    pub authority: usize,
    /// The shard's number.
    pub id: ShardId,
    /// The production code.
    pub shard: Mutex<SteppedShard>,
    /// Its committed records.
    pub journal: JournalReader,
    /// Its disk.
    pub disk: Arc<Mutex<ShardDisk>>,
    /// The epoch when the oldest batch that is not on disk was decided: all of them belong to this epoch or a later one.
    pub epoch: AtomicU64,
}

impl LiveShard {
    /// Checks new records on disk.
    pub fn observe(&self) -> Result<(), Breach> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let senders = lock(&self.disk).observe(&self.world, (self.authority, self.id), &self.journal, epoch)?;
        senders.into_iter().try_for_each(|sender| self.is_free(sender))
    }

    /// No account is locked on a used number.
    fn is_free(&self, account: AccountId) -> Result<(), Breach> {
        let state = lock(&self.shard).account(&account).map_err(|error| Breach(error.to_string()))?;
        let next = state.next_sequence();
        let is_free = state.pending.is_none_or(|pending| pending.order.transfer.sequence() >= next);
        let name = self.world.name_of(&account);
        require!(is_free, "authority {} keeps {name} locked on a number before #{next}", self.authority);
        Ok(())
    }
}

fn kind(record: &Record) -> &'static str {
    match record {
        Record::Lock { .. } => "lock",
        Record::Confirmation { .. } => "confirmation",
        Record::Credit { .. } => "credit",
        Record::Synchronization { .. } => "deposit",
        Record::Unlock(_) => "unlock",
        Record::Seen { .. } => "seen",
        Record::VoidVoted { .. } => "void vote",
        Record::Void { .. } => "void",
        Record::Installation(_) => "installation",
        Record::Base(_) => "base",
        Record::Closed { .. } => "closed",
        Record::Inherited { .. } => "inherited",
        Record::Joined { .. } => "joined",
        Record::PrivateLock(_) => "private lock",
        Record::PrivateConfirmation(_) => "private confirmation",
        Record::PrivateSeen(_) => "private seen",
        Record::PrivateInherited(_) => "private inherited",
    }
}

/// The next step of a shard.
enum Next {
    Commit,
    Turn,
    Wait,
}

/// A shard's threads as one task, which decides at random which of them continues.
pub async fn run(live: Arc<LiveShard>, arrivals: Arc<Notify>) {
    let world = live.world.clone();
    let mut turn_at = Some(Instant::now());
    let mut patience_until = Instant::now();
    let mut commit_at = None;
    loop {
        let far = Instant::now() + Duration::from_secs(3_600);
        let next = tokio::select! {
            biased;
            () = sleep_until(commit_at.unwrap_or(far)), if commit_at.is_some() => Next::Commit,
            () = sleep_until(turn_at.unwrap_or(far)), if turn_at.is_some() => Next::Turn,
            () = arrivals.notified(), if turn_at.is_none() => Next::Wait,
            () = sleep_until(patience_until), if turn_at.is_none() => Next::Turn,
        };
        let (outcome, waiting) = {
            let mut shard = lock(&live.shard);
            let outcome = match next {
                Next::Wait => {
                    turn_at = Some(Instant::now() + step_delay(&world));
                    continue;
                }
                Next::Commit => shard.commit().map(|()| None),
                Next::Turn => {
                    if shard.batches_waiting() == 0 {
                        live.epoch.store(world.epoch_of(live.authority), Ordering::Relaxed);
                    }
                    shard.turn()
                }
            };
            (outcome, shard.batches_waiting())
        };
        // Also after a failure: what was committed before may have been sent.
        if let Err(breach) = live.observe() {
            return world.trace.violation(breach);
        }
        match (next, outcome) {
            (Next::Turn, Ok(patience)) => {
                turn_at = None;
                patience_until = Instant::now() + patience.unwrap_or_default().max(Duration::from_micros(100));
            }
            (_, Ok(_)) => commit_at = None,
            (_, Err(error)) => {
                world.trace.note("process failed", format_args!("a{}.{}: {error}", live.authority, live.id));
                return world.record(live.authority, Word::Failed);
            }
        }
        if waiting > 0 && commit_at.is_none() {
            commit_at = Some(Instant::now() + sync_delay(&world));
        }
    }
}

fn step_delay(world: &World) -> Duration {
    let pause = Duration::from_millis(world.plan.pause_ms_max);
    if !world.is_calm() && world.dice.chance(10) {
        world.dice.between(Duration::ZERO, pause)
    } else {
        world.dice.mostly_short(STEP_MAX)
    }
}

fn sync_delay(world: &World) -> Duration {
    let pause = Duration::from_millis(world.plan.pause_ms_max);
    if !world.is_calm() && world.dice.chance(10) {
        world.dice.between(Duration::ZERO, pause)
    } else {
        world.dice.mostly_short(SYNC_MAX)
    }
}

/// The connection between two shards of one authority, which also loses, duplicates and delays messages.
pub fn way_between(
    world: &Arc<World>,
    authority: usize,
    (from, to): (ShardId, ShardId),
    handle: ShardHandle,
    tasks: &Tasks,
) -> ShardHandle {
    let arrivals = Arc::new(Notify::new());
    let metrics = Metrics::new(1).shards[0].clone();
    let (way, queue) = ShardHandle::notifying(&limits(world), metrics, arrivals.clone());
    let (world, own) = (world.clone(), tasks.clone());
    spawn(tasks, async move {
        loop {
            arrivals.notified().await;
            while let Some(message) = queue.try_recv() {
                world.check(|oracle| oracle.passes(authority, from, to, &message));
                let is_lost = !world.is_calm() && world.dice.chance(world.plan.loss_per_mille);
                let delay = world.dice.mostly_short(Duration::from_millis(world.plan.delay_ms_max));
                world
                    .trace
                    .note(if is_lost { "credit lost" } else { "credit sent" }, format_args!("a{authority} {delay:?}"));
                let handle = handle.clone();
                if !is_lost {
                    spawn(&own, async move {
                        sleep(delay).await;
                        let _ = handle.try_send(message);
                    });
                }
            }
        }
    });
    way
}

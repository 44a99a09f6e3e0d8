//! An authority is rebased onto its archive's newest checkpoint while its process is down, by the code of a node's command.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_core::checkpoint::OwnState;
use fastpay_node::authority::certification::{CheckpointError, read_over};
use fastpay_node::authority::rollback::{HighWaterMark, default_high_water_mark};
use fastpay_node::authority::storage::Journal;
use fastpay_node::operator::rebase::{Foundation, RebaseError, rebase_shards};
use tokio::time::timeout;

use super::live_shard::ShardDisk;
use super::oracle::Breach;
use super::process::{Keeper, folder, journal_options};
use super::storage::{Cut, PoweredCheckpoints, PoweredDisk};
use super::world::lock;

/// The maximum time in which an operator waits for Ethereum nodes.
const READ_PATIENCE: Duration = Duration::from_secs(60);

impl Keeper {
    /// Rebases the authority, mostly, if there is a newer checkpoint than the one at which its journals begin. Where the
    /// chain cannot be read, or the power is cut, the authority goes on as it is.
    pub(super) async fn rebase(&mut self) -> Result<(), Breach> {
        let (world, authority) = (self.world.clone(), self.authority);
        if !world.plan.has_checkpoints || !world.dice.chance(700) {
            return Ok(());
        }
        let Some((checkpoint, state)) = self.bring().await? else { return Ok(()) };
        let number = checkpoint.number;
        let newest = lock(&world.checkpoints)[usize::try_from(number).expect("few")].clone();
        let recovered = self.recover()?;
        // What was written before it died, and nobody has looked at.
        for (shard, disk) in recovered.iter().zip(&self.disks) {
            let (id, epoch) = (shard.shard().id(), world.epoch_of(authority));
            lock(disk).observe(&world, (authority, id), &shard.journal(), epoch)?;
        }
        let ledger = recovered.first().map(|shard| shard.shard().ledger().clone()).unwrap_or_default();
        let (base, before) = ledger.base.map_or((0, 0), |base| (base.number, base.number));
        // A lost archive may be brought up to an earlier one again.
        if number <= base {
            return Ok(());
        }
        let (cut, clock) = (state.cut().clone(), world.clock_of(authority));
        let (mut told, mut seen) = (|_| (), |_: &_, _| ());
        let read = read_over(world.chain.connect(&world), None, cut.up_to, clock, &mut told, &mut seen);
        let Ok(Ok((after, time, _))) = timeout(READ_PATIENCE, read).await else {
            world.trace.note("rebase waits", format_args!("a{authority} cannot read the chain"));
            return Ok(());
        };
        let now = OwnState::new(state.clone(), after.clone(), &world.domain).map(OwnState::finish);
        let (now, _) = now.map_err(|error| Breach(error.to_string()))?;
        if let Some(certificate) = &newest.certificate
            && let Err(error) = certificate.counts(&world.domain, now.installations())
        {
            world.trace.note("rebase waits", format_args!("a{authority}: {error}"));
            return Ok(());
        }

        let mark = HighWaterMark::of(&self.data(), default_high_water_mark(&self.data()));
        let mark = mark.map_err(|error| Breach(error.to_string()))?;
        self.folder.1 = None;
        let mut data = self.unshared_folder()?;
        let ends: Vec<_> = recovered.iter().map(|shard| shard.history().end()).collect();
        mark.judge_before_rebase(&data, &ends).map_err(|error| Breach(error.to_string()))?;
        let foundation = Foundation {
            checkpoint,
            state,
            before: &newest.events_since(&lock(&world.checkpoints)[usize::try_from(before).expect("few")]),
            after,
            generation: data.generation() + 1,
            voidable_at: time.block_time.saturating_add(time.unlock_window),
            layout: self.layout,
            domain: world.domain,
        };
        let disks: Vec<_> = self.layout.shards().map(|_| PoweredDisk::new(self.power.clone())).collect();
        let create = |(shard, disk): (_, &PoweredDisk)| {
            Journal::create_on(Arc::new(disk.clone()), &folder(shard), journal_options()).expect("there is power")
        };
        let new = (0..).zip(&disks).map(create).collect();
        if !world.is_calm() && world.dice.chance(200) {
            let (operations, is_done) = (world.dice.below(6), world.dice.chance(400));
            self.power.cut_at(Cut { operations, of_checkpoints: false, is_done });
        }
        let rebased = rebase_shards(recovered, foundation, new);
        let is_cut = self.power.is_off();
        self.power.restore();
        let rebased = match rebased {
            Err(_) if is_cut => {
                world.trace.note("rebase killed", format_args!("a{authority}"));
                return Ok(());
            }
            Err(RebaseError::Checkpoint(CheckpointError::ChainBehind { .. })) => {
                world.trace.note("rebase waits", format_args!("a{authority}: the chain is behind"));
                return Ok(());
            }
            rebased => rebased.map_err(|error| Breach(format!("authority {authority} cannot be rebased: {error}")))?,
        };
        data.switch(self.layout.count(), mark.switch_to(&rebased.ends, &ends), None)
            .map_err(|error| Breach(error.to_string()))?;
        let disk = |(disk, seen)| {
            let checkpoints = PoweredCheckpoints::new(self.power.clone());
            Arc::new(Mutex::new(ShardDisk { disk, checkpoints, seen }))
        };
        self.disks = disks.into_iter().zip(rebased.ends).map(disk).collect();
        let kind = if rebased.was_complete { "rebased" } else { "rebased behind" };
        world.trace.note(kind, format_args!("a{authority} onto {number}"));
        world.oracle().rebased(authority, &cut, (self.layout, rebased.up_to))
    }
}

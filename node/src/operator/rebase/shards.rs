//! The rebase of recovered shards onto disks of the caller's choice. [`super::rebase`] does the same with a data folder,
//! an archive and a chain; simulations have their own.

use std::num::NonZeroU32;

use fastpay_core::checkpoint::{Checkpoint, CheckpointState, PrimaryEvent};
use fastpay_core::{Domain, JournalPosition, ShardLayout, TransactionIndex};

use super::RebaseError;
use super::own::{Deposited, Own, Target};
use super::plan::plan;
use super::write::write;
use crate::authority::certification::{Base, CheckpointError, Journals};
use crate::authority::shard::RecoveredShard;
use crate::authority::storage::Journal;

/// What recovered shards are rebased onto.
pub struct Foundation<'a> {
    /// The checkpoint, which the caller has verified.
    pub checkpoint: Checkpoint,
    /// Its state.
    pub state: CheckpointState,
    /// The events between the checkpoint at which the shards begin and this one.
    pub before: &'a [PrimaryEvent],
    /// All final events after this checkpoint.
    pub after: Vec<PrimaryEvent>,
    /// The generation to be written.
    pub generation: u64,
    /// From this chain time on, a request that was not read here before can be voided.
    pub voidable_at: u64,
    /// The new shards.
    pub layout: ShardLayout,
    /// The deployment.
    pub domain: Domain,
}

/// Shards that were rebased.
pub struct RebasedShards {
    /// The newest event that all have applied.
    pub up_to: TransactionIndex,
    /// Whether all that the checkpoint includes was executed here.
    pub was_complete: bool,
    /// The ends of the new journals.
    pub ends: Vec<JournalPosition>,
}

/// Writes the journals of the next generation into `new`, which has an empty one for each new shard.
///
/// # Errors
/// See [`RebaseError`].
pub fn rebase_shards(
    recovered: Vec<RecoveredShard>,
    foundation: Foundation<'_>,
    new: Vec<Journal>,
) -> Result<RebasedShards, RebaseError> {
    let Foundation { checkpoint, state, before, after, generation, voidable_at, layout, domain } = foundation;
    let base = Base::in_memory(checkpoint, &state);
    let journals = Journals::of(&recovered);
    let shards = u32::try_from(recovered.len()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let own = Own::new(shards, recovered);
    let up_to = own.up_to.max(base.state.up_to);
    let chain = after.last().map_or(base.state.up_to, |event| event.index);
    if chain < up_to {
        return Err(CheckpointError::ChainBehind { chain, wanted: up_to }.into());
    }
    let (number, checkpoint) = (checkpoint.number, domain.checkpoint_digest(&checkpoint));
    let (with_primary, is_anew) = (true, false);
    let target = Target { number, checkpoint, generation, up_to, voidable_at, layout, with_primary, is_anew, domain };
    let deposits = before.iter().filter_map(Deposited::of).collect();
    let plan = plan(&own, &target, &base, after, deposits, &journals, &mut |_| ())?;
    let written = write(&own, &target, &plan, &journals, new, &mut |_| ())?;
    Ok(RebasedShards { up_to, was_complete: plan.is_complete, ends: written.ends })
}

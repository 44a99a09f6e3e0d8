//! Chooses the next cut, announces it, computes its checkpoint, and writes that into the archive.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fastpay_core::checkpoint::Segment;
use fastpay_core::{AccountId, Digest, Epoch};

use super::archive::{Archive, ProposedCut};
use super::compute::{check_events, compute, follow_events};
use super::cut::Candidates;
use super::journals::Journals;
use super::memory::Memory;
use super::{CheckpointError, Inputs, Progress, events};
use crate::authority::deployment;

/// A checkpoint that members may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Its number.
    pub number: u64,
    /// Its digest.
    pub checkpoint: Digest,
    /// The epoch whose members are to sign.
    pub epoch: Epoch,
    /// The newest event of the contract that it includes.
    pub up_to: u64,
    /// The events, orders and void numbers since the checkpoint before.
    pub entries: u64,
    /// The file for the signers.
    pub cut: PathBuf,
}

/// Proposes the checkpoint after the newest certified one of the archive. A proposal that was not certified is replaced.
/// The cut is in the archive, where peers read it, before its checkpoint is computed.
///
/// # Errors
/// See [`CheckpointError`].
pub async fn propose(inputs: Inputs<'_>, memory: &mut Memory, told: Progress<'_>) -> Result<Proposal, CheckpointError> {
    let Inputs { config, archive, orders_max, .. } = inputs;
    let archive = Archive::create(archive)?.beside(config);
    let deployment = deployment::load(config).await?;
    let (domain, committees) = (deployment.domain(), deployment.committees()?);
    let base = archive.newest(memory, &domain, &committees)?;
    // Before the chain: it is read as far as the shards have applied it.
    let journals = memory.skip_included(Journals::open(&config.data)?, &archive, &domain);
    let number = base.checkpoint.number;
    let executed = journals.executed(&BTreeMap::new(), told)?;
    let up_to = executed.applied().max(base.state.up_to);
    let mut events = events::read(&deployment, base.state.up_to, inputs, told).await?;
    check_events(&base.checkpoint, &events, up_to)?;
    events.retain(|event| event.index <= up_to);

    let behind = base.behind(&executed.next)?;
    let touched = |others: BTreeSet<AccountId>| {
        base.part(events.iter().filter_map(|event| event.kind.account()).chain(others).collect())
    };
    let takers = follow_events(touched(behind.keys().copied().collect())?, &events, &domain)?;
    let limits = (orders_max, journals.shards());
    let mut candidates = Candidates::new(&behind, takers.rows().numbers(), &domain, limits);
    let includes = |number, digest| archive.includes((number, digest), &domain);
    let starts = journals.each_number(&behind, includes, told, |shard, entry| {
        candidates.take(shard, entry);
        true
    })?;
    starts.into_iter().for_each(|starts| memory.note_included(&base.checkpoint, &domain, starts));

    let part = touched(candidates.accounts())?;
    let (next, entries) = match events.as_slice() {
        [] => candidates.cover(part.rows()),
        events => candidates.cover(follow_events(part.clone(), events, &domain)?.rows()),
    };
    drop(takers);
    if up_to == base.state.up_to && next.is_empty() {
        return Err(CheckpointError::Nothing(number));
    }
    let beyond = executed.beyond(&next, &behind);
    // The others compute it at the same time.
    let of = (committees.current().epoch(), domain.checkpoint_digest(&base.checkpoint), &base.checkpoint);
    archive.write_cut(&ProposedCut::announced(of, up_to, next))?;
    told("announced the cut".into());
    let computed = compute(&base, part, Segment::sorted(events, entries), &domain, told)?;
    let (checkpoint, entries) = (computed.checkpoint, computed.segment.entries.len() as u64);
    let cut = archive.write(&base, &computed)?;
    memory.note(&archive, &computed, beyond)?;
    Ok(Proposal {
        number: checkpoint.number,
        checkpoint: domain.checkpoint_digest(&checkpoint),
        epoch: checkpoint.epoch,
        up_to: checkpoint.up_to.0,
        entries,
        cut,
    })
}

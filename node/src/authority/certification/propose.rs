//! Chooses the next cut, computes its checkpoint, and writes both into the archive.

use std::path::PathBuf;

use fastpay_core::checkpoint::Cut;
use fastpay_core::{Digest, Epoch};

use super::archive::Archive;
use super::compute::{check_events, compute, follow_events};
use super::journals::Journals;
use super::{CheckpointError, Inputs, Progress, cut, events};
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
///
/// # Errors
/// See [`CheckpointError`].
pub async fn propose(inputs: Inputs<'_>, told: Progress<'_>) -> Result<Proposal, CheckpointError> {
    let Inputs { config, archive, orders_max, .. } = inputs;
    let archive = Archive::create(archive)?.beside(config);
    let deployment = deployment::load(config).await?;
    let domain = deployment.domain();
    let base = archive.newest(&domain, &deployment.committees()?)?;
    // Before the chain: it is read as far as the shards have applied it.
    let journals = Journals::open(&config.data)?;
    let number = base.checkpoint.number;
    let ((), executed) = journals.read(told, |_| ())?;
    let up_to = executed.applied().max(base.state.up_to);
    let mut events = events::read(&deployment, base.state.up_to, inputs, told).await?;
    check_events(&base, &events, up_to)?;
    events.retain(|event| event.index <= up_to);

    let takers = base.behind(executed.next)?.into_keys().collect();
    let followed = follow_events(&base, takers, &events, &domain)?;
    let limits = (orders_max, journals.shards());
    let gather = |records: &mut dyn Iterator<Item = _>| cut::gather(&followed, records, &domain, limits);
    let (candidates, _) = journals.read(told, gather)?;
    let followed = follow_events(&base, candidates.accounts(), &events, &domain)?;
    let next = candidates.cover(followed.rows());
    if up_to == base.state.up_to && next.is_empty() {
        return Err(CheckpointError::Nothing(number));
    }
    let from = Cut { up_to: base.state.up_to, next: followed.rows().cut().next.clone() };
    let (segment, _) = journals.segment(events, (&from, &Cut { up_to, next }), orders_max, told)?;
    let computed = compute(&base, segment, &domain, told)?;
    let (checkpoint, entries) = (computed.checkpoint, computed.segment.entries.len() as u64);
    let cut = archive.write(&base, &computed)?;
    Ok(Proposal {
        number: checkpoint.number,
        checkpoint: domain.checkpoint_digest(&checkpoint),
        epoch: checkpoint.epoch,
        up_to: checkpoint.up_to.0,
        entries,
        cut,
    })
}

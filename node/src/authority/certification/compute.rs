//! The one computation of a checkpoint, which proposer and signers share.

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointState, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry, SegmentError,
};
use fastpay_core::{Committees, Digest, Domain, Epoch, TransactionIndex};

use super::archive::Base;
use super::{CheckpointError, Progress};

/// Progress is told each time so many entries are applied.
const TOLD_ENTRIES: usize = 250_000;

/// A checkpoint with everything that it stands for.
pub(crate) struct Computed {
    pub checkpoint: Checkpoint,
    pub segment: Segment,
    pub state: CheckpointState,
}

/// The state after the entries of a segment, and the segment's root.
pub(super) fn apply(
    state: CheckpointState,
    segment: &Segment,
    domain: &Domain,
    told: Progress<'_>,
) -> Result<(CheckpointState, Digest), SegmentError> {
    let (mut application, mut rng) = (state.begin(domain)?, rand::rng());
    let count = segment.entries.len();
    for (at, entry) in segment.entries.iter().enumerate() {
        application.take(entry.clone(), &mut rng)?;
        if at % TOLD_ENTRIES == TOLD_ENTRIES - 1 {
            told(format!("checked {} of {count} entries", at.saturating_add(1)));
        }
    }
    application.finish(&mut rng)
}

/// The state of the base after the events up to an index, without any number taken.
pub(crate) fn follow(
    base: &Base,
    events: &[PrimaryEvent],
    up_to: TransactionIndex,
    domain: &Domain,
) -> Result<CheckpointState, SegmentError> {
    let included = events.iter().filter(|event| event.index <= up_to);
    let segment = Segment { entries: included.cloned().map(SegmentEntry::Event).collect() };
    if segment.entries.is_empty() {
        return Ok(base.state.clone());
    }
    apply(base.state.clone(), &segment, domain, &mut |_| ()).map(|(state, _)| state)
}

/// Checks that the events reach as far as a cut, and that no epoch has begun after it.
pub(super) fn check_events(
    base: &Base,
    events: &[PrimaryEvent],
    up_to: TransactionIndex,
) -> Result<(), CheckpointError> {
    let chain = events.last().map_or(base.state.cut().up_to, |event| event.index);
    if chain < up_to {
        return Err(CheckpointError::ChainBehind { chain, wanted: up_to });
    }
    let mut epoch = base.state.installations().epoch();
    for event in events {
        let PrimaryEventKind::Installed(installed) = &event.kind else { continue };
        let current = installed.committee.epoch();
        if event.index > up_to {
            return Err(CheckpointError::EpochEnded { epoch, current });
        }
        epoch = current;
    }
    Ok(())
}

/// Computes the checkpoint of a segment that was gathered from this authority's journals and its Ethereum nodes.
pub(super) fn compute(
    base: &Base,
    segment: Segment,
    domain: &Domain,
    told: Progress<'_>,
) -> Result<Computed, CheckpointError> {
    let (state, root) = match apply(base.state.clone(), &segment, domain, told) {
        Err(SegmentError::Empty) => return Err(CheckpointError::Nothing(base.checkpoint.number)),
        applied => applied?,
    };
    base.check(domain, state.installations())?;
    let epoch = state.installations().epoch();
    let checkpoint = base.checkpoint.next(domain, epoch, &state, root).expect("fewer than 2^64 checkpoints");
    Ok(Computed { checkpoint, segment, state })
}

/// The first committee alone.
pub(super) fn first_state(committees: &Committees) -> Result<CheckpointState, CheckpointError> {
    let first = committees.get(Epoch(0)).unwrap_or(committees.current());
    Ok(CheckpointState::new((**first).clone())?)
}

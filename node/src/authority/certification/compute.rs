//! The one computation of a checkpoint, which proposer and signers share.

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointState, Installations, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry, SegmentError,
    StatePart, StateSummary,
};
use fastpay_core::{Committees, Digest, Domain, Epoch, EpochsError, TransactionIndex};

use super::base::Base;
use super::{ArchiveError, CheckpointError, Progress};

/// Progress is told each time so many entries are applied.
const TOLD_ENTRIES: usize = 250_000;

/// A checkpoint with everything that it stands for.
pub(crate) struct Computed {
    pub checkpoint: Checkpoint,
    pub segment: Segment,
    /// Of the state the rows that the segment changed.
    pub part: StatePart,
    pub state: StateSummary,
}

impl Computed {
    /// Whether a recovery made it: what its base is built on counts no more, and the contract has adopted it.
    pub(super) fn is_recovery(&self) -> bool {
        self.segment.entries.first() == Some(&SegmentEntry::Recovery)
    }
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

/// What a segment makes of the base.
pub(crate) fn follow_segment(
    base: &Base,
    segment: Segment,
    domain: &Domain,
    told: Progress<'_>,
) -> Result<Result<Computed, SegmentError>, ArchiveError> {
    let part = base.part(segment.accounts())?;
    follow_segment_in(base, part, segment, domain, told)
}

/// The same with the rows of all accounts that the segment touches, which were read from the base.
fn follow_segment_in(
    base: &Base,
    part: StatePart,
    segment: Segment,
    domain: &Domain,
    told: Progress<'_>,
) -> Result<Result<Computed, SegmentError>, ArchiveError> {
    let (part, root) = match part.change(|rows| apply(rows, &segment, domain, told)) {
        Ok(changed) => changed,
        Err(error) => return Ok(Err(error)),
    };
    let state = base.read(|mut stored| part.summary(&mut stored))?;
    let epoch = state.installations.epoch();
    let checkpoint = base.checkpoint.next(domain, epoch, &state, root).expect("fewer than 2^64 checkpoints");
    Ok(Ok(Computed { checkpoint, segment, part, state }))
}

/// Rows after events, without any number taken. The rows are those of a base, of all accounts that the events touch.
pub(super) fn follow_events(
    part: StatePart,
    events: &[PrimaryEvent],
    domain: &Domain,
) -> Result<StatePart, CheckpointError> {
    if events.is_empty() {
        return Ok(part);
    }
    let segment = Segment { entries: events.iter().cloned().map(SegmentEntry::Event).collect() };
    Ok(part.change(|rows| apply(rows, &segment, domain, &mut |_| ()))?.0)
}

/// The committees of the base and of installations after it.
pub(crate) fn installations_after(base: &Base, events: &[PrimaryEvent]) -> Result<Installations, EpochsError> {
    let mut installations = base.state.installations.clone();
    for event in events {
        if let PrimaryEventKind::Installed(installed) = &event.kind {
            installations.install(installed.clone())?;
        }
    }
    Ok(installations)
}

/// Checks that the events after a checkpoint reach as far as a cut, and that no epoch has begun after it.
pub(super) fn check_events(
    base: &Checkpoint,
    events: &[PrimaryEvent],
    up_to: TransactionIndex,
) -> Result<(), CheckpointError> {
    let chain = events.last().map_or(base.up_to, |event| event.index);
    if chain < up_to {
        return Err(CheckpointError::ChainBehind { chain, wanted: up_to });
    }
    let mut epoch = base.epoch;
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

/// Computes the checkpoint of a segment that was gathered from this authority's journals and its Ethereum nodes. `part`
/// has the rows of all accounts that it touches, read from the base.
pub(super) fn compute(
    base: &Base,
    part: StatePart,
    segment: Segment,
    domain: &Domain,
    told: Progress<'_>,
) -> Result<Computed, CheckpointError> {
    let computed = match follow_segment_in(base, part, segment, domain, told)? {
        Err(SegmentError::Empty) => return Err(CheckpointError::Nothing(base.checkpoint.number)),
        computed => computed?,
    };
    base.check(domain, &computed.state.installations)?;
    Ok(computed)
}

/// The first committee alone.
pub(super) fn first_state(committees: &Committees) -> Result<CheckpointState, CheckpointError> {
    let first = committees.get(Epoch(0)).unwrap_or(committees.current());
    Ok(CheckpointState::new((**first).clone())?)
}

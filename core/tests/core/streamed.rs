//! States that are read row by row. What a segment makes of the rows of its accounts, merged with all others, is what it
//! makes of the whole state in memory.

use fastpay_core::checkpoint::{CheckpointState, Segment, SegmentError, StatePart, StateSummary};
use fastpay_core::{Digest, Domain};
use rand::SeedableRng;
use rand::rngs::StdRng;

pub fn stored(state: &CheckpointState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.write(&mut bytes).unwrap();
    bytes
}

/// The bytes of the state after a segment, their summary, and the segment's root.
pub fn apply(
    state: &CheckpointState,
    segment: &Segment,
    domain: &Domain,
) -> Result<(Vec<u8>, StateSummary, Digest), SegmentError> {
    let (base, rng) = (stored(state), &mut StdRng::seed_from_u64(0));
    let part = StatePart::read(&mut base.as_slice(), segment.accounts()).unwrap();
    let (part, root) = part.change(|rows| rows.apply(segment.clone(), domain, rng))?;
    let (summary, mut written) = (part.summary(&mut base.as_slice()).unwrap(), Vec::new());
    part.write(&mut base.as_slice(), &mut written).unwrap();
    assert_eq!(StateSummary::read(&mut written.as_slice()).unwrap(), summary);
    Ok((written, summary, root))
}

/// Compares it with what was computed in memory.
pub fn compare(
    state: &CheckpointState,
    segment: &Segment,
    in_memory: &Result<(CheckpointState, Digest), SegmentError>,
    domain: &Domain,
) {
    let expected = in_memory.as_ref().map(|(state, root)| (stored(state), state.summary(), *root));
    assert_eq!(apply(state, segment, domain), expected.map_err(SegmentError::clone));
}

//! Finding the first point that is wrong.

use std::ops::Range;

use blstrs::{Bls12, G1Affine, G2Affine};
use group::Curve;
use pairing::Engine;

use crate::flaw::{Flaw, Part};
use crate::group::{Factors, Point};

/// That an equation over many points holds. `holds` decides it for a range of them, with random factors; if it does not
/// hold for all, the first point for which it does not is found by halves.
pub(crate) fn require(part: Part, count: usize, holds: impl Fn(Range<usize>) -> bool) -> Result<(), Flaw> {
    if count == 0 || holds(0..count) {
        return Ok(());
    }
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(low..middle) { low = middle } else { high = middle }
    }
    Err(Flaw::Value { part, index: low })
}

/// e(a, b) = e(c, d)
pub(crate) fn pairings_agree(a: &G1Affine, b: &G2Affine, c: &G1Affine, d: &G2Affine) -> bool {
    Bls12::pairing(a, b) == Bls12::pairing(c, d)
}

/// Σ factorᵢ·pointᵢ over a range of each list, with the same factors.
pub(crate) fn sums<P: Point, const N: usize>(lists: [&[P]; N], range: &Range<usize>) -> [P; N] {
    let factors = Factors::draw(range.len());
    lists.map(|list| factors.sum(list, range).to_affine())
}

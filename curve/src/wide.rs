//! The entry point, from code for any processor to code for processors with the instructions.
#![allow(unsafe_code, reason = "to call code for these processors, by the proof that this is one")]

use crate::decode::{self, DECODED_TOGETHER};
pub use crate::each::Relation;
use crate::each::{self, EACH_TOGETHER};
pub use crate::point::Affine;
use crate::point::PointCell;
use crate::sum;

/// Proof that this processor has AVX-512 IFMA, and the operations that need it.
#[derive(Clone, Copy, Debug)]
pub struct Wide(());

/// A sum of multiples of points.
#[derive(Clone, Copy, Debug)]
pub struct Point(PointCell);

impl Wide {
    /// The proof; `None` if this processor, or its operating system, does not support the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512ifma")).then_some(Self(()))
    }

    /// Decodes points under the rules of ZIP-215: y is taken modulo p, and x = 0 may have either sign. `None` for an
    /// encoding of no point.
    #[must_use]
    pub fn decode(self, encodings: &[[u8; 32]]) -> Vec<Option<Affine>> {
        let mut points = Vec::with_capacity(encodings.len().next_multiple_of(DECODED_TOGETHER));
        for chunk in encodings.chunks(DECODED_TOGETHER) {
            let mut together = [[0; 32]; DECODED_TOGETHER];
            together[..chunk.len()].copy_from_slice(chunk);
            // SAFETY: a `Wide` exists only if the processor has the instructions.
            points.extend(unsafe { decode::decode(&together) });
        }
        points.truncate(encodings.len());
        points
    }

    /// Σ scalar · point + Σ digits · point. Scalars are below 2²⁵³, least significant byte first; short ones are given by their digits
    /// dᵢ, as Σ dᵢ·256ⁱ.
    ///
    /// # Panics
    /// If a scalar is 2²⁵³ or more.
    #[must_use]
    pub fn sum(self, long: &[(Affine, [u8; 32])], short: &[(Affine, [i8; 16])]) -> Point {
        // SAFETY: a `Wide` exists only if the processor has the instructions.
        Point(unsafe { sum::sum(long, short) })
    }

    /// `a` − `b`.
    #[must_use]
    pub fn difference(self, a: &Point, b: &Point) -> Point {
        // SAFETY: a `Wide` exists only if the processor has the instructions.
        Point(unsafe { sum::difference(&a.0, &b.0) })
    }

    /// Whether 8 · `point` is the neutral point.
    #[must_use]
    pub fn vanishes_times_8(self, point: &Point) -> bool {
        // SAFETY: a `Wide` exists only if the processor has the instructions.
        unsafe { sum::vanishes_times_8(&point.0) }
    }

    /// Computes for each equation whether it vanishes times 8. `base` is B.
    ///
    /// # Panics
    /// As [`Wide::sum`].
    #[must_use]
    pub fn each_vanishes_times_8(self, base: &Affine, relations: &[Relation]) -> Vec<bool> {
        let nothing = Relation { r: Affine::IDENTITY, a: Affine::IDENTITY, k: [0; 32], s: [0; 32] };
        let mut answers = Vec::with_capacity(relations.len().next_multiple_of(EACH_TOGETHER));
        for chunk in relations.chunks(EACH_TOGETHER) {
            let mut together = [nothing; EACH_TOGETHER];
            together[..chunk.len()].copy_from_slice(chunk);
            // SAFETY: a `Wide` exists only if the processor has the instructions.
            let vanish = unsafe { each::vanish_times_8(base, &together) };
            answers.extend((0..chunk.len()).map(|lane| vanish >> lane & 1 == 1));
        }
        answers
    }
}

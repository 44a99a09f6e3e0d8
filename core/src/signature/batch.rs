//! Many Ed25519 signatures in one equation: the sum of all, each times a random number that whoever made
//! the signatures cannot know. Where every signature is valid the sum vanishes; where one is not, it
//! vanishes with a probability of 2⁻¹²⁸.

use std::collections::HashMap;

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use rand_core::CryptoRng;

use super::ed25519::{Equation, vanishes};

/// From this many terms on the library sorts them into buckets (Pippenger) and makes no table for each
/// (Straus).
const BUCKETS_FROM_TERMS: usize = 190;
/// From this many different keys on buckets are cheaper already, since the tables of so many long terms do not
/// fit into the fastest cache: by a fifth at 80 keys, measured with AVX2 and with AVX-512. Terms that are zero,
/// which cost next to nothing, then make up the number.
const BUCKETS_FROM_KEYS: usize = 64;

/// Equations to be checked together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    equations: Vec<Equation>,
}

/// An equation with its random coefficient z multiplied out.
struct Term {
    equation: Equation,
    z: Scalar,
    zk: Scalar,
    zs: Scalar,
}

impl Batch {
    /// Adds an equation.
    pub(crate) fn push(&mut self, equation: Equation) {
        self.equations.push(equation);
    }

    /// Which equations hold, in the order in which they were added.
    pub(crate) fn verdicts(self, rng: &mut impl CryptoRng) -> Vec<bool> {
        match self.equations.as_slice() {
            [] => return Vec::new(),
            [equation] => return vec![equation.holds()],
            _ => {}
        }
        let terms: Vec<Term> = self.equations.into_iter().map(|equation| Term::new(equation, rng)).collect();
        let mut verdicts = vec![true; terms.len()];
        find_bad(&terms, sum(&terms), &mut verdicts);
        verdicts
    }
}

impl Term {
    fn new(equation: Equation, rng: &mut impl CryptoRng) -> Self {
        let mut coefficient = [0; 16];
        rng.fill_bytes(&mut coefficient);
        let z = Scalar::from(u128::from_le_bytes(coefficient));
        Self { z, zk: z * equation.k, zs: z * equation.s, equation }
    }
}

/// Marks the equations that do not hold among `terms`, whose sum is known: by halves, of which only one has
/// to be summed up. The coefficients stay the same, so that the halves make up the whole; nobody has
/// learnt them in between.
fn find_bad(terms: &[Term], total: EdwardsPoint, verdicts: &mut [bool]) {
    if vanishes(&total) {
        return;
    }
    if let [verdict] = verdicts {
        *verdict = false;
        return;
    }
    let middle = terms.len() / 2;
    let (left, right) = terms.split_at(middle);
    let (left_verdicts, right_verdicts) = verdicts.split_at_mut(middle);
    let left_sum = sum(left);
    find_bad(left, left_sum, left_verdicts);
    find_bad(right, total - left_sum, right_verdicts);
}

/// Σ z·(R + k·A − s·B). All terms of a key are collapsed to one, and all of the base point.
fn sum(terms: &[Term]) -> EdwardsPoint {
    let mut base = Scalar::ZERO;
    let mut keys: HashMap<&[u8; 32], (EdwardsPoint, Scalar)> = HashMap::with_capacity(terms.len());
    for Term { equation, zk, zs, .. } in terms {
        base -= zs;
        keys.entry(&equation.key).or_insert((equation.a, Scalar::ZERO)).1 += zk;
    }
    let padding = if keys.len() < BUCKETS_FROM_KEYS { 0 } else { BUCKETS_FROM_TERMS };
    let (points, scalars): (Vec<_>, Vec<_>) = std::iter::once((ED25519_BASEPOINT_POINT, base))
        .chain(keys.into_values())
        .chain(terms.iter().map(|term| (term.equation.r, term.z)))
        .unzip();
    let missing = padding.saturating_sub(points.len());
    let points = points.into_iter().chain(std::iter::repeat_n(EdwardsPoint::identity(), missing));
    let scalars = scalars.into_iter().chain(std::iter::repeat_n(Scalar::ZERO, missing));
    EdwardsPoint::vartime_multiscalar_mul(scalars, points)
}

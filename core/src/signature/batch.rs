//! Many Ed25519 signatures in one equation: the sum of all, each multiplied by a random number that the signers cannot
//! predict. If all signatures are valid the sum vanishes; otherwise it vanishes with probability 2⁻¹²⁸.

use std::collections::HashMap;

use curve25519_dalek::scalar::Scalar;
use fastpay_curve::Wide;
use rand_core::CryptoRng;

use super::curve::{Coefficient, Curve, KeyPoint, OneByOne};
use super::ed25519::Equation;

/// Equations to be checked together, each with its key's decoded point if that is remembered.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    equations: Vec<(Equation, Option<KeyPoint>)>,
}

/// The verdict on one equation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// Whether it holds.
    pub(crate) holds: bool,
    /// The point of its key, if that should be remembered.
    pub(crate) new_key: Option<KeyPoint>,
}

impl Batch {
    /// Adds an equation. `known` is its key's point, from an earlier [`Verdict`].
    pub(crate) fn push(&mut self, equation: Equation, known: Option<KeyPoint>) {
        self.equations.push((equation, known));
    }

    /// The verdicts, in the order in which the equations were added.
    pub(crate) fn verdicts(self, rng: &mut impl CryptoRng) -> Vec<Verdict> {
        match (self.equations.as_slice(), Wide::detect()) {
            // One or two in eight lanes would take longer.
            (equations @ [_, _, _, ..], Some(wide)) => judge(wide, equations, rng),
            (equations, _) => judge(OneByOne, equations, rng),
        }
    }
}

/// A key of the batch.
struct Key<P> {
    /// None if the encoding is not a point.
    point: Option<P>,
    /// Its point was not remembered in this form.
    new: bool,
}

/// An equation with its points, and with its random coefficient z multiplied out.
struct Term<'a, P> {
    equation: &'a Equation,
    /// The place of its key.
    key: usize,
    a: P,
    r: P,
    z: &'a Coefficient,
    zk: Scalar,
    zs: Scalar,
}

/// The verdicts on equations, by sums on this curve.
pub(super) fn judge<C: Curve>(
    curve: C,
    equations: &[(Equation, Option<KeyPoint>)],
    rng: &mut impl CryptoRng,
) -> Vec<Verdict> {
    let Decoded { places, keys, nonces } = decode(curve, equations);
    let coefficients: Vec<Coefficient> = equations.iter().map(|_| curve.coefficient(random(rng))).collect();
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(equations.len());
    let mut open = Vec::with_capacity(equations.len());
    for ((((equation, known), key), r), z) in equations.iter().zip(places).zip(nonces).zip(&coefficients) {
        let found = keys.get(key);
        let point = found.and_then(|found| found.point);
        let is_news = found.is_some_and(|found| found.new) && (known.is_none() || C::SUPERSEDES);
        let new_key = point.filter(|_| is_news).map(C::remember);
        // An encoding without a point is invalid. The others count as valid until the equation fails.
        verdicts.push(Verdict { holds: point.is_some() && r.is_some(), new_key });
        if let (Some(a), Some(r)) = (point, r) {
            open.push(Term { equation, key, a, r, z, zk: z.z * equation.k, zs: z.z * equation.s });
        }
    }
    let sums = Sums { curve, keys };
    let mut holds = vec![true; open.len()];
    match sums.each(&open) {
        Some(verdicts) => holds = verdicts,
        None => sums.find_bad(&open, sums.sum(&open), &mut holds),
    }
    let assumed = verdicts.iter_mut().filter(|verdict| verdict.holds);
    assumed.zip(holds).for_each(|(verdict, holds)| verdict.holds = holds);
    verdicts
}

fn random(rng: &mut impl CryptoRng) -> [u8; 16] {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// The points of equations.
struct Decoded<P> {
    /// For each equation the place of its key in `keys`.
    places: Vec<usize>,
    /// The different keys.
    keys: Vec<Key<P>>,
    /// For each equation R.
    nonces: Vec<Option<P>>,
}

/// Decodes together all points that are not remembered.
fn decode<C: Curve>(curve: C, equations: &[(Equation, Option<KeyPoint>)]) -> Decoded<C::Point> {
    let mut place_of: HashMap<&[u8; 32], usize> = HashMap::with_capacity(equations.len());
    let mut keys: Vec<Key<C::Point>> = Vec::with_capacity(equations.len());
    let mut encodings: Vec<[u8; 32]> = equations.iter().map(|(equation, _)| equation.r).collect();
    let mut places = Vec::with_capacity(equations.len());
    for (equation, known) in equations {
        places.push(*place_of.entry(&equation.key).or_insert_with(|| {
            let point = known.as_ref().and_then(C::remembered);
            if point.is_none() {
                encodings.push(equation.key);
            }
            keys.push(Key { point, new: point.is_none() });
            keys.len() - 1
        }));
    }
    let mut nonces = curve.decode(&encodings);
    let new = nonces.split_off(equations.len());
    for (key, point) in keys.iter_mut().filter(|key| key.new).zip(new) {
        key.point = point;
    }
    Decoded { places, keys, nonces }
}

struct Sums<C: Curve> {
    curve: C,
    keys: Vec<Key<C::Point>>,
}

impl<C: Curve> Sums<C> {
    /// Marks the equations that do not hold among `terms`, whose sum is known. It halves the batch and sums up one
    /// half, until few are left. The coefficients stay the same, so the other half is the difference; the signers have
    /// not learnt them meanwhile.
    fn find_bad(&self, terms: &[Term<'_, C::Point>], total: C::Sum, holds: &mut [bool]) {
        if self.curve.vanishes(&total) {
            return;
        }
        if let [holds] = holds {
            *holds = false;
            return;
        }
        if let Some(verdicts) = self.each(terms) {
            holds.copy_from_slice(&verdicts);
            return;
        }
        let middle = terms.len() / 2;
        let (left, right) = terms.split_at(middle);
        let (left_holds, right_holds) = holds.split_at_mut(middle);
        let left_sum = self.sum(left);
        let right_sum = self.curve.difference(&total, &left_sum);
        self.find_bad(left, left_sum, left_holds);
        self.find_bad(right, right_sum, right_holds);
    }

    /// The verdict on each equation alone, for batches so small that a sum is no cheaper.
    fn each(&self, terms: &[Term<'_, C::Point>]) -> Option<Vec<bool>> {
        if terms.len() > C::EACH_MAX {
            return None;
        }
        let equations: Vec<_> = terms.iter().map(|term| (term.equation, term.a, term.r)).collect();
        Some(self.curve.each_holds(&equations))
    }

    /// Σ z·(R + k·A − s·B). All terms of a key are collapsed to one, and all of the base point.
    fn sum(&self, terms: &[Term<'_, C::Point>]) -> C::Sum {
        let mut base = Scalar::ZERO;
        let mut of_key: Vec<Option<Scalar>> = vec![None; self.keys.len()];
        for Term { key, zk, zs, .. } in terms {
            base -= zs;
            if let Some(sum) = of_key.get_mut(*key) {
                *sum = Some(sum.map_or(*zk, |sum| sum + zk));
            }
        }
        let keys = self.keys.iter().zip(of_key).filter_map(|(key, scalar)| Some((key.point?, scalar?)));
        let long: Vec<_> = std::iter::once((self.curve.base(), base)).chain(keys).collect();
        let short: Vec<_> = terms.iter().map(|term| (term.r, term.z)).collect();
        self.curve.sum(&long, &short)
    }
}

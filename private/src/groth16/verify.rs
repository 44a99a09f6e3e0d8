//! Checking proofs, one by one and many at once.

use blstrs::{Bls12, G1Affine, G1Projective, G2Prepared};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use pairing::{MillerLoopResult, MultiMillerLoop};
use rand_core::{CryptoRng, RngCore};
use thiserror::Error;

use super::proof::Proof;
use super::verifying_key::VerifyingKey;
use crate::field::{Fr, field_from_u128};
use crate::public::Public;

/// A proof that does not prove these public inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the proof does not prove this transaction")]
pub struct InvalidProof;

impl VerifyingKey {
    /// The inputs, if they are as many as the key is for.
    fn inputs_of(&self, public: &Public) -> Option<Vec<Fr>> {
        (public.members.len() == self.shape.members()).then(|| public.inputs())
    }

    /// Checks one proof.
    ///
    /// # Errors
    /// [`InvalidProof`]
    pub fn verify(&self, public: &Public, proof: &Proof) -> Result<(), InvalidProof> {
        let inputs = self.inputs_of(public).ok_or(InvalidProof)?;
        let scalars: Vec<Fr> = [Fr::ONE].into_iter().chain(inputs).collect();
        let inputs = G1Projective::multi_exp(&self.inputs, &scalars).to_affine();
        let terms = [(&proof.a, &proof.b.into()), (&inputs, &self.minus_gamma), (&proof.c, &self.minus_delta)];
        let product = Bls12::multi_miller_loop(&terms).final_exponentiation();
        if product == self.alpha_beta { Ok(()) } else { Err(InvalidProof) }
    }

    /// Checks many proofs, and returns the places of those that are invalid. If all are valid, each costs about a third
    /// of a proof by itself; each invalid one costs about as much as all.
    #[must_use]
    pub fn verify_batch(&self, claims: &[(&Public, &Proof)], random: &mut (impl RngCore + CryptoRng)) -> Vec<usize> {
        let mut invalid = vec![];
        self.bisect(claims, 0, random, &mut invalid);
        invalid
    }

    fn bisect(
        &self,
        claims: &[(&Public, &Proof)],
        first: usize,
        random: &mut (impl RngCore + CryptoRng),
        invalid: &mut Vec<usize>,
    ) {
        match claims {
            [] => (),
            [(public, proof)] => invalid.extend(self.verify(public, proof).is_err().then_some(first)),
            claims if self.are_all_valid(claims, random) => (),
            claims => {
                let (left, right) = claims.split_at(claims.len() / 2);
                self.bisect(left, first, random, invalid);
                self.bisect(right, first + left.len(), random, invalid);
            }
        }
    }

    /// One equation, Σ zᵢ·(eᵢ(A, B) − e(α, β) − e(inputsᵢ, γ) − e(Cᵢ, δ)) = 0, with factors zᵢ of 128 bits that no prover
    /// foresees. An invalid proof passes with probability 2^-127.
    fn are_all_valid(&self, claims: &[(&Public, &Proof)], random: &mut (impl RngCore + CryptoRng)) -> bool {
        let mut scalars = vec![Fr::ZERO; self.inputs.len()];
        let (mut a, mut c, mut factors) = (vec![], vec![], vec![]);
        for (public, proof) in claims {
            let Some(inputs) = self.inputs_of(public) else { return false };
            let factor = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64()) | 1;
            let element = field_from_u128(factor);
            for (sum, input) in scalars.iter_mut().zip([Fr::ONE].into_iter().chain(inputs)) {
                *sum += input * element;
            }
            a.push(multiple(&proof.a, factor));
            c.push(proof.c.to_curve());
            factors.push(element);
        }
        let Some(sum) = scalars.first() else { return true };
        let alpha = (self.alpha * sum).to_affine();
        let inputs = G1Projective::multi_exp(&self.inputs, &scalars).to_affine();
        let c = G1Projective::multi_exp(&c, &factors).to_affine();
        let mut affine = vec![G1Affine::identity(); a.len()];
        G1Projective::batch_normalize(&a, &mut affine);
        let b: Vec<G2Prepared> = claims.iter().map(|(_, proof)| proof.b.into()).collect();
        let fixed = [(&alpha, &self.minus_beta), (&inputs, &self.minus_gamma), (&c, &self.minus_delta)];
        let terms: Vec<(&G1Affine, &G2Prepared)> = affine.iter().zip(&b).chain(fixed).collect();
        Bls12::multi_miller_loop(&terms).final_exponentiation().is_identity().into()
    }
}

/// A multiple by 128 bits, four at a time. All of it is public, so its time may depend on them.
fn multiple(point: &G1Affine, by: u128) -> G1Projective {
    let mut multiples = [G1Projective::identity(); 16];
    let mut last = G1Projective::identity();
    for multiple in multiples.iter_mut().skip(1) {
        last += point;
        *multiple = last;
    }
    (0..32).rev().fold(G1Projective::identity(), |sum, digit| {
        let shifted = sum.double().double().double().double();
        multiples.get((by >> (4 * digit) & 15) as usize).map_or(shifted, |multiple| shifted + multiple)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_is_what_the_group_says() {
        let point = G1Affine::generator();
        for by in [0, 1, 15, 16, 0x1234_5678_9abc_def0, u128::MAX, 1 << 127] {
            assert_eq!(multiple(&point, by), point * field_from_u128(by));
        }
    }
}

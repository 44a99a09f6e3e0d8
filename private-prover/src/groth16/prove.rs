//! Making proofs. The parameters, transforms and points are those of others; their sums are blst's, which are twice as
//! fast on one core as the ones that come with the parameters.

use bellperson::domain::EvaluationDomain;
use bellperson::{Circuit, ConstraintSystem, Index, Variable};
use blst::{MultiPoint, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ec_gpu_gen::threadpool::Worker;
use fastpay_private::parts::Secret;
use fastpay_private::{Fr, Proof, Public, Shape};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::{CryptoRng, RngCore};
use thiserror::Error;
use zeroize::Zeroizing;

use super::assignment::Assignment;
use super::keys::ProvingKey;
use crate::circuit::Statement;
use crate::statement::Witness;

/// The statement is false, or is for another number of members or signers than the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the statement is false, or for another committee than the key: nothing proves it")]
pub struct FalseStatement;

impl ProvingKey {
    /// Proves that these public inputs have this witness. The randomness hides the witness: take it from the operating
    /// system, never from a seed. This takes about a second of one core.
    ///
    /// # Errors
    /// [`FalseStatement`] if the statement has another shape than the key, or if the proof, which is checked before it is
    /// returned, does not verify.
    pub fn prove(
        &self,
        public: &Public,
        witness: &Witness,
        random: &mut (impl RngCore + CryptoRng),
    ) -> Result<Proof, FalseStatement> {
        let shape = self.verifying.shape();
        if !fits(shape, public, witness) {
            return Err(FalseStatement);
        }
        let statement = Statement::new(shape, public.clone(), witness.clone());
        let proof = self.prove_unchecked(statement, random);
        self.verifying.verify(public, &proof).map_err(|_| FalseStatement)?;
        Ok(proof)
    }

    fn prove_unchecked(&self, statement: Statement, random: &mut (impl RngCore + CryptoRng)) -> Proof {
        let assignment = assign(statement, self.parameters.l.len());
        let inputs = &assignment.inputs;
        let auxiliary = || assignment.auxiliary.iter().map(|secret| secret.0);
        let chosen =
            |marks: &[bool]| auxiliary().zip(marks.to_vec()).filter(|(_, marked)| *marked).map(|(value, _)| value);
        let key = &self.parameters;

        let a_values = inputs.iter().copied().chain(chosen(&assignment.auxiliary_in_a));
        let a = sum_g1(key.a.iter().zip(a_values));
        let inputs_in_b =
            inputs.iter().zip(&assignment.inputs_in_b).filter(|(_, marked)| **marked).map(|(value, _)| *value);
        let mut b_values = Zeroizing::new(Vec::with_capacity(key.b_g1.len()));
        b_values.extend(inputs_in_b.chain(chosen(&assignment.auxiliary_in_b)).map(Secret));
        debug_assert_eq!(b_values.capacity(), key.b_g1.len(), "grown, the vector would have left copies behind");
        let b_g1 = sum_g1(key.b_g1.iter().zip(b_values.iter().map(|secret| secret.0)));
        let b_g2 = sum_g2(key.b_g2.iter().zip(b_values.iter().map(|secret| secret.0)));
        let l = sum_g1(key.l.iter().zip(auxiliary()));
        let h = sum_g1(key.h.iter().zip(quotient(assignment.a, assignment.b, assignment.c)));

        let (r, s) = (Fr::random(&mut *random), Fr::random(random));
        let vk = &key.vk;
        let a = a + vk.alpha_g1.to_curve() + vk.delta_g1 * r;
        let b_g1 = b_g1 + vk.beta_g1.to_curve() + vk.delta_g1 * s;
        let b = b_g2 + vk.beta_g2.to_curve() + vk.delta_g2 * s;
        let c = h + l + a * s + b_g1 * r - vk.delta_g1 * (r * s);
        Proof::new(a.to_affine(), b.to_affine(), c.to_affine())
    }
}

/// Whether the statement has a value for each variable of this shape, and no more.
fn fits(shape: Shape, public: &Public, witness: &Witness) -> bool {
    let Witness { signers, account_signatures, coin_signatures, .. } = witness;
    public.members.len() == shape.members()
        && [signers.len(), account_signatures.len(), coin_signatures.len()] == [shape.signers(); 3]
}

/// The values of a statement with so many variables, without the inputs.
fn assign(statement: Statement, variables: usize) -> Assignment {
    let mut assignment = Assignment::default();
    assignment.auxiliary.reserve_exact(variables);
    assignment.alloc_input(|| "one", || Ok(Fr::ONE)).expect("the value is there");
    statement.synthesize(&mut assignment).expect("a statement with a transaction has all values");
    debug_assert_eq!(assignment.auxiliary.capacity(), variables, "grown, the vector would have left copies behind");
    // As the keys have it: so the inputs' polynomials are independent of each other.
    for at in 0..assignment.inputs.len() {
        assignment.enforce(|| "input", |zero| zero + Variable(Index::Input(at)), |zero| zero, |zero| zero);
    }
    assignment
}

/// The coefficients of (a·b − c)/z, where z is 0 at each constraint.
fn quotient(a: Vec<Scalar>, b: Vec<Scalar>, c: Vec<Scalar>) -> Vec<Scalar> {
    let worker = Worker::new();
    let on_coset = |values: Vec<Scalar>| {
        let mut domain = EvaluationDomain::from_coeffs(values).expect("the domain is large enough for a statement");
        domain.ifft(&worker, &mut None).expect("the processor transforms");
        domain.coset_fft(&worker, &mut None).expect("the processor transforms");
        domain
    };
    let mut all = on_coset(a);
    all.mul_assign(&worker, &on_coset(b));
    all.sub_assign(&worker, &on_coset(c));
    all.divide_by_z_on_coset(&worker);
    all.icoset_fft(&worker, &mut None).expect("the processor transforms");
    all.into_coeffs()
}

/// Points whose factor is 0 cost nothing, and those whose factor is 1 an addition: most of a witness are bits.
macro_rules! sum_of_multiples {
    ($name:ident, $affine:ty, $projective:ty, $inner:ty) => {
        fn $name<'a>(terms: impl Iterator<Item = (&'a $affine, Fr)>) -> $projective {
            let mut ones = <$projective>::identity();
            let (mut points, mut factors): (Vec<$inner>, Zeroizing<Vec<u8>>) = Default::default();
            // Grown in place, a vector would leave copies behind.
            factors.reserve_exact(32 * terms.size_hint().1.unwrap_or(0));
            for (point, factor) in terms {
                if factor == Fr::ONE {
                    ones += point;
                } else if !factor.is_zero_vartime() {
                    points.push(*point.as_ref());
                    factors.extend_from_slice(&factor.to_bytes_le());
                }
            }
            if points.is_empty() {
                return ones;
            }
            let mut sum = <$projective>::identity();
            *sum.as_mut() = points[..].mult(&factors, Fr::NUM_BITS as usize);
            sum + ones
        }
    };
}

sum_of_multiples!(sum_g1, G1Affine, G1Projective, blst_p1_affine);
sum_of_multiples!(sum_g2, G2Affine, G2Projective, blst_p2_affine);

//! Ceremonies for a small circuit.

mod alterations;
mod keys;
mod powers;

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;

use crate::secret::Entropy;
use crate::{Constraints, Keys, Powers};

/// Powers for 64 constraints: the circuit has 42, and one for each of its two inputs.
const SIZE: u8 = 6;
const STEPS: u64 = 40;
const NAMES: [&str; 3] = ["alice", "bob", "carol"];

/// A number x of which y is public: x₀ = x, xᵢ₊₁ = (xᵢ + i + 2)·xᵢ, and y is the sum of all xᵢ times i + 3. One more
/// variable stands in no second factor, and in none of the first but one.
#[derive(Clone, Copy)]
struct Toy {
    x: Option<Scalar>,
}

impl Toy {
    fn y(x: Scalar) -> Scalar {
        let (mut x, mut y) = (x, Scalar::ZERO);
        for i in 0..STEPS {
            y += x * Scalar::from(i + 3);
            x = (x + Scalar::from(i + 2)) * x;
        }
        y
    }
}

impl Circuit<Scalar> for Toy {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = SynthesisError::AssignmentMissing;
        let y = cs.alloc_input(|| "y", || self.x.map(Self::y).ok_or(SynthesisError::AssignmentMissing))?;
        let one = CS::one();
        let mut value = self.x;
        let mut x = cs.alloc(|| "x", || value.ok_or(missing))?;
        let mut sum = LinearCombination::zero();
        for i in 0..STEPS {
            sum = sum + (Scalar::from(i + 3), x);
            value = value.map(|x| (x + Scalar::from(i + 2)) * x);
            let next = cs.alloc(|| format!("x {i}"), || value.ok_or(SynthesisError::AssignmentMissing))?;
            cs.enforce(
                || format!("step {i}"),
                |zero| zero + x + (Scalar::from(i + 2), one),
                |zero| zero + x,
                |zero| zero + next,
            );
            x = next;
        }
        cs.enforce(|| "sum", |_| sum, |zero| zero + one, |zero| zero + y);
        let last = cs.alloc(|| "minus x", || value.map(|x| -x).ok_or(SynthesisError::AssignmentMissing))?;
        cs.enforce(|| "minus", |zero| zero + x + last, |zero| zero + one, |zero| zero);
        Ok(())
    }
}

/// The same circuit with another number in its last step.
struct Other;

impl Circuit<Scalar> for Other {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        Toy { x: None }.synthesize(cs)?;
        cs.enforce(|| "more", |zero| zero + CS::one(), |zero| zero, |zero| zero);
        Ok(())
    }
}

/// One variable is in no constraint.
struct Loose;

impl Circuit<Scalar> for Loose {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let _: Variable = cs.alloc(|| "loose", || Err(SynthesisError::AssignmentMissing))?;
        Toy { x: None }.synthesize(cs)
    }
}

fn toy() -> Constraints {
    Constraints::of(Toy { x: None }).unwrap()
}

/// The same entropy each time.
fn entropy(seed: u8) -> Entropy {
    Entropy::from_parts(&[seed; 64], b"")
}

/// Powers of three contributors; other seeds make other powers.
fn powers(seed: u8) -> Powers {
    let mut powers = Powers::begin(SIZE);
    for (name, seed) in NAMES.iter().zip(seed..) {
        powers.contribute(name, entropy(seed)).unwrap();
    }
    powers
}

fn begun(powers: &Powers) -> Keys {
    Keys::begin(4, powers, &toy(), &|_| ()).unwrap()
}

/// Keys of three contributors, in another order.
fn keys(powers: &Powers, seed: u8) -> Keys {
    let mut keys = begun(powers);
    for (name, seed) in NAMES.iter().rev().zip(seed..) {
        keys.contribute(name, entropy(seed)).unwrap();
    }
    keys
}

/// Points of the curves that are not in the groups, as bytes.
fn outside() -> [Vec<u8>; 2] {
    let g1 = (0_u8..).find_map(|x| {
        let mut bytes = [0; 48];
        (bytes[0], bytes[47]) = (0x80, x);
        Option::<G1Affine>::from(G1Affine::from_compressed_unchecked(&bytes))
            .filter(|point| !bool::from(point.is_torsion_free()))
    });
    let g2 = (0_u8..).find_map(|x| {
        let mut bytes = [0; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        Option::<G2Affine>::from(G2Affine::from_compressed_unchecked(&bytes))
            .filter(|point| !bool::from(point.is_torsion_free()))
    });
    [g1.unwrap().to_uncompressed().to_vec(), g2.unwrap().to_uncompressed().to_vec()]
}

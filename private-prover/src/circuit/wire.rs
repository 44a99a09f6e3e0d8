//! Wires: linear combinations of variables, with their value while a proof is made.

use std::ops::{Add, Mul, Sub};

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use fastpay_private::Fr;
use ff::{Field, PrimeField};

pub(super) type Made<T> = Result<T, SynthesisError>;

/// The variable that is always 1.
const ONE: Variable = Variable(Index::Input(0));

/// A linear combination of variables. Its value is unknown while keys are made.
#[derive(Clone)]
pub(super) struct Wire {
    terms: LinearCombination<Fr>,
    value: Option<Fr>,
}

impl Wire {
    pub fn constant(value: Fr) -> Self {
        Self { terms: LinearCombination::from_coeff(ONE, value), value: Some(value) }
    }

    pub fn zero() -> Self {
        Self { terms: LinearCombination::zero(), value: Some(Fr::ZERO) }
    }

    pub fn one() -> Self {
        Self::constant(Fr::ONE)
    }

    pub const fn value(&self) -> Option<Fr> {
        self.value
    }

    /// The value, if no variable has a part in it.
    pub fn as_constant(&self) -> Option<Fr> {
        self.terms.iter().all(|(variable, _)| variable == ONE).then_some(self.value).flatten()
    }

    /// The wire of a public input.
    pub fn input<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, value: Option<Fr>) -> Made<Self> {
        let variable = cs.alloc_input(|| name, || value.ok_or(SynthesisError::AssignmentMissing))?;
        Ok(Self { terms: LinearCombination::from_variable(variable), value })
    }

    /// A variable that only the prover knows, and chooses.
    pub fn given<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, value: Option<Fr>) -> Made<Self> {
        let variable = cs.alloc(|| format!("given {name}"), || value.ok_or(SynthesisError::AssignmentMissing))?;
        Ok(Self { terms: LinearCombination::from_variable(variable), value })
    }

    /// A variable that constraints determine.
    pub fn derived<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, value: Option<Fr>) -> Made<Self> {
        let variable = cs.alloc(|| name, || value.ok_or(SynthesisError::AssignmentMissing))?;
        Ok(Self { terms: LinearCombination::from_variable(variable), value })
    }

    /// A bit that the prover chooses.
    pub fn given_bit<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, bit: Option<bool>) -> Made<Self> {
        let wire = Self::given(cs, name, bit.map(|bit| Fr::from(u64::from(bit))))?;
        require_bit(cs, name, &wire);
        Ok(wire)
    }

    /// 1 for 0, and 0 for 1.
    pub fn not(&self) -> Self {
        Self::one() - self
    }

    /// −1 for 0, and 1 for 1.
    pub fn sign(&self) -> Self {
        self.clone() * Fr::from(2) - &Self::one()
    }
}

impl Add<&Self> for Wire {
    type Output = Self;
    fn add(self, other: &Self) -> Self {
        Self { terms: self.terms + &other.terms, value: self.value.zip(other.value).map(|(a, b)| a + b) }
    }
}

impl Sub<&Self> for Wire {
    type Output = Self;
    fn sub(self, other: &Self) -> Self {
        Self { terms: self.terms - &other.terms, value: self.value.zip(other.value).map(|(a, b)| a - b) }
    }
}

impl Mul<Fr> for Wire {
    type Output = Self;
    fn mul(self, by: Fr) -> Self {
        let mut terms = self.terms;
        terms.iter_mut().for_each(|(_, factor)| *factor *= by);
        Self { terms, value: self.value.map(|value| value * by) }
    }
}

/// `a·b = c`. What stands at `b` costs the prover a point of G2 for each variable that stands there anywhere.
pub(super) fn require<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, a: &Wire, b: &Wire, c: &Wire) {
    cs.enforce(|| name, |zero| zero + &a.terms, |zero| zero + &b.terms, |zero| zero + &c.terms);
}

/// `a = b`
pub(super) fn require_equal<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, a: &Wire, b: &Wire) {
    require(cs, name, a, &Wire::one(), b);
}

fn require_bit<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, bit: &Wire) {
    require(cs, name, &bit.not(), bit, &Wire::zero());
}

/// `a·b`
pub(super) fn product<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, a: &Wire, b: &Wire) -> Made<Wire> {
    let wire = Wire::derived(cs, name, a.value.zip(b.value).map(|(a, b)| a * b))?;
    require(cs, name, a, b, &wire);
    Ok(wire)
}

/// `a/b`, where `b` is not 0.
pub(super) fn quotient<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, a: &Wire, b: &Wire) -> Made<Wire> {
    let inverse = b.value.map(|b| Option::<Fr>::from(b.invert()).unwrap_or(Fr::ZERO));
    let wire = Wire::derived(cs, name, a.value.zip(inverse).map(|(a, b)| a * b))?;
    require(cs, name, &wire, b, a);
    Ok(wire)
}

/// 1 if `a` is 0, and 0 if it is not.
pub(super) fn is_zero<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, a: &Wire) -> Made<Wire> {
    let cs = &mut cs.namespace(|| name);
    let inverse = a.value.map(|a| Option::<Fr>::from(a.invert()).unwrap_or(Fr::ZERO));
    let inverse = Wire::derived(cs, "inverse", inverse)?;
    let not_zero = product(cs, "not zero", a, &inverse)?;
    let zero = not_zero.not();
    require(cs, "zero, or has an inverse", a, &zero, &Wire::zero());
    // Nothing depends on it; but so the inverse of 0 is determined, too.
    require(cs, "inverse of zero", &inverse, &zero, &Wire::zero());
    Ok(zero)
}

/// Σ 2^i · bit i
pub(super) fn pack(bits: &[Wire]) -> Wire {
    let powers = std::iter::successors(Some(Fr::ONE), |power| Some(power.double()));
    bits.iter().zip(powers).fold(Wire::zero(), |sum, (bit, power)| sum + &(bit.clone() * power))
}

/// Bits of a number in little-endian bytes. They say nothing of another number until [`pack`] is compared with it.
pub(super) fn bits<CS: ConstraintSystem<Fr>>(
    cs: &mut CS,
    name: &str,
    number: Option<[u8; 32]>,
    count: usize,
) -> Made<Vec<Wire>> {
    let cs = &mut cs.namespace(|| name);
    let bit =
        |at: usize| number.map(|bytes| Fr::from(u64::from(bytes.get(at / 8).map_or(0, |byte| byte >> (at % 8) & 1))));
    (0..count)
        .map(|at| {
            let wire = Wire::derived(&mut *cs, &format!("bit {at}"), bit(at))?;
            require_bit(&mut *cs, &format!("bit {at}"), &wire);
            Ok(wire)
        })
        .collect()
}

/// 0 ≤ a < 2^count
pub(super) fn require_range<CS: ConstraintSystem<Fr>>(cs: &mut CS, name: &str, a: &Wire, count: usize) -> Made<()> {
    let cs = &mut cs.namespace(|| name);
    let bits = bits(cs, "bits", a.value.map(|a| a.to_repr()), count)?;
    require_equal(cs, "sum of bits", &pack(&bits), a);
    Ok(())
}

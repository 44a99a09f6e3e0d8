//! Poseidon as constraints: the rounds of the paper in the form with few multiplications, three constraints for each
//! fifth power. It uses the constants of `fastpay-private`'s hash, and must agree with that hash.

use bellpepper_core::ConstraintSystem;
use fastpay_private::Fr;
use fastpay_private::parts::Constants;
use ff::Field;

use super::wire::{Made, Wire, product};

/// The hash of as many elements as the constants are for.
pub(super) fn hash<CS: ConstraintSystem<Fr>, const T: usize>(
    cs: &mut CS,
    name: &str,
    constants: &Constants<T>,
    elements: &[&Wire],
) -> Made<Wire> {
    let cs = &mut cs.namespace(|| name);
    let tag = Wire::constant(constants.tag);
    let mut state: Vec<Wire> = [&tag].into_iter().chain(elements.iter().copied()).cloned().collect();
    assert_eq!(state.len(), T, "a hash takes as many elements as it is for");
    let mut round = 0..;
    let mut name = || format!("round {}", round.next().unwrap_or_default());
    for (keys, matrix) in constants.rounds_before() {
        full_round(&mut cs.namespace(&mut name), &mut state, keys, matrix)?;
    }
    for partial in &constants.partial {
        let cs = &mut cs.namespace(&mut name);
        let (first, rest) = state.split_first_mut().expect("a state has three elements at least");
        let powered = fifth_power(cs, 0, &(first.clone() + &Wire::constant(partial.key)))?;
        *first = sum([&powered].into_iter().chain(rest.iter()).zip(partial.row));
        for (wire, factor) in rest.iter_mut().zip(&partial.column) {
            *wire = wire.clone() + &(powered.clone() * *factor);
        }
    }
    for (keys, matrix) in constants.rounds_after() {
        full_round(&mut cs.namespace(&mut name), &mut state, keys, matrix)?;
    }
    // A variable of its own, so that what is hashed further is no long sum.
    let output = state.get(1).expect("a state has three elements at least");
    product(cs, "hash", output, &Wire::one())
}

fn full_round<CS: ConstraintSystem<Fr>, const T: usize>(
    cs: &mut CS,
    state: &mut Vec<Wire>,
    keys: &[Fr; T],
    matrix: &[[Fr; T]; T],
) -> Made<()> {
    for (at, (wire, key)) in state.iter_mut().zip(keys).enumerate() {
        *wire = fifth_power(cs, at, &(wire.clone() + &Wire::constant(*key)))?;
    }
    *state = matrix.iter().map(|row| sum(state.iter().zip(*row))).collect();
    Ok(())
}

fn fifth_power<CS: ConstraintSystem<Fr>>(cs: &mut CS, at: usize, wire: &Wire) -> Made<Wire> {
    if let Some(constant) = wire.as_constant() {
        return Ok(Wire::constant(constant.pow_vartime([5])));
    }
    let cs = &mut cs.namespace(|| at.to_string());
    let second = product(cs, "second power", wire, wire)?;
    let fourth = product(cs, "fourth power", &second, &second)?;
    product(cs, "fifth power", wire, &fourth)
}

fn sum<'a>(terms: impl Iterator<Item = (&'a Wire, Fr)>) -> Wire {
    terms.fold(Wire::zero(), |sum, (wire, factor)| sum + &(wire.clone() * factor))
}

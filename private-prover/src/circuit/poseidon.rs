//! Poseidon as constraints: the rounds of the paper in the form with few multiplications, three constraints for each
//! fifth power. Written here over the constants of the hash outside, so that each of the two checks the other.

use bellpepper_core::ConstraintSystem;
use ff::Field;
use neptune::Arity;
use neptune::poseidon::PoseidonConstants;

use super::wire::{Made, Wire, product};
use crate::field::Fr;

/// The hash of as many elements as the constants are for.
pub(super) fn hash<CS: ConstraintSystem<Fr>, A: Arity<Fr>>(
    cs: &mut CS,
    name: &str,
    constants: &PoseidonConstants<Fr, A>,
    elements: &[&Wire],
) -> Made<Wire> {
    let cs = &mut cs.namespace(|| name);
    let tag = Wire::constant(constants.domain_tag);
    let mut state: Vec<Wire> = [&tag].into_iter().chain(elements.iter().copied()).cloned().collect();
    assert_eq!(state.len(), constants.width(), "a hash takes as many elements as it is for");
    let (half, partial) = (constants.half_full_rounds, constants.partial_rounds);
    let mut keys = constants.compressed_round_constants.iter();
    let mut add_key = |wire: &mut Wire| {
        if let Some(key) = keys.next() {
            *wire = wire.clone() + &Wire::constant(*key);
        }
    };
    state.iter_mut().for_each(&mut add_key);
    for round in 0..2 * half + partial {
        let cs = &mut cs.namespace(|| format!("round {round}"));
        let is_partial = (half..half + partial).contains(&round);
        let powered = if is_partial { 1 } else { state.len() };
        for (at, wire) in state.iter_mut().take(powered).enumerate() {
            *wire = fifth_power(cs, at, wire)?;
            // There are no keys left after the last round.
            add_key(wire);
        }
        if is_partial {
            let matrix = constants.sparse_matrixes.get(round - half).expect("a matrix for each partial round");
            mix_sparsely(&mut state, &matrix.w_hat, &matrix.v_rest);
        } else if round == half - 1 {
            state = mixed(&state, &constants.pre_sparse_matrix);
        } else {
            state = mixed(&state, &constants.mds_matrices.m);
        }
    }
    // A variable of its own, so that what is hashed further is no long sum.
    let output = state.get(1).expect("a state has three elements at least");
    product(cs, "hash", output, &Wire::one())
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

/// state · matrix
fn mixed(state: &[Wire], matrix: &[Vec<Fr>]) -> Vec<Wire> {
    let column = |at: usize| matrix.iter().map(move |row| row.get(at).copied().unwrap_or(Fr::ZERO));
    (0..state.len()).map(|at| sum(state.iter().zip(column(at)))).collect()
}

/// The same for a matrix with only its first column, its first row and ones on its diagonal.
fn mix_sparsely(state: &mut [Wire], column: &[Fr], row: &[Fr]) {
    let first = sum(state.iter().zip(column.iter().copied()));
    if let Some((old, rest)) = state.split_first_mut() {
        for (wire, factor) in rest.iter_mut().zip(row) {
            *wire = wire.clone() + &(old.clone() * *factor);
        }
        *old = first;
    }
}

fn sum<'a>(terms: impl Iterator<Item = (&'a Wire, Fr)>) -> Wire {
    terms.fold(Wire::zero(), |sum, (wire, factor)| sum + &(wire.clone() * factor))
}

//! Poseidon of two, four and eight elements: standard strength, constant length, so that the arities do not collide.
//!
//! The paper's permutation in the form with few multiplications: each partial round adds one key and multiplies by a
//! sparse matrix. `grain` has the paper's generator of keys, and `constants` makes the sparse form of them.

use std::sync::LazyLock;

use ff::Field;

use crate::field::Fr;

mod constants;
mod grain;

pub use constants::{Constants, PartialRound};

/// The constants for two elements.
pub static TWO: LazyLock<Constants<3>> = LazyLock::new(|| Constants::new(55));
/// The constants for four elements.
pub static FOUR: LazyLock<Constants<5>> = LazyLock::new(|| Constants::new(56));
/// The constants for eight elements.
pub static EIGHT: LazyLock<Constants<9>> = LazyLock::new(|| Constants::new(57));

fn hash<const T: usize>(elements: &[Fr], constants: &Constants<T>) -> Fr {
    let mut state = [constants.tag; T];
    for (place, element) in state.iter_mut().skip(1).zip(elements) {
        *place = *element;
    }
    for (keys, matrix) in constants.rounds_before() {
        state = full_round(state, keys, matrix);
    }
    for round in &constants.partial {
        partial_round(&mut state, round);
    }
    for (keys, matrix) in constants.rounds_after() {
        state = full_round(state, keys, matrix);
    }
    *state.get(1).expect("a state has three elements at least")
}

fn full_round<const T: usize>(mut state: [Fr; T], keys: &[Fr; T], matrix: &[[Fr; T]; T]) -> [Fr; T] {
    for (element, key) in state.iter_mut().zip(keys) {
        *element = fifth_power(*element + key);
    }
    matrix.each_ref().map(|row| dot(row, &state))
}

fn partial_round<const T: usize>(state: &mut [Fr; T], round: &PartialRound<T>) {
    let (first, rest) = state.split_first_mut().expect("a state has elements");
    let (corner, row) = round.row.split_first().expect("a row has elements");
    let powered = fifth_power(*first + round.key);
    *first = powered * corner + dot(row, rest);
    for (element, factor) in rest.iter_mut().zip(&round.column) {
        *element += powered * factor;
    }
}

fn fifth_power(element: Fr) -> Fr {
    element.square().square() * element
}

fn dot(row: &[Fr], elements: &[Fr]) -> Fr {
    row.iter().zip(elements).map(|(factor, element)| *element * factor).sum()
}

/// The hash of two elements.
#[must_use]
pub fn h2(elements: [Fr; 2]) -> Fr {
    hash(&elements, &TWO)
}

/// The hash of four elements.
#[must_use]
pub fn h4(elements: [Fr; 4]) -> Fr {
    hash(&elements, &FOUR)
}

/// The hash of eight elements.
#[must_use]
pub fn h8(elements: [Fr; 8]) -> Fr {
    hash(&elements, &EIGHT)
}

#[cfg(test)]
mod tests {
    use super::constants::matrix;
    use super::grain::Grain;
    use super::*;

    /// The permutation as the paper writes it: a key for each element and the whole matrix in every round.
    fn plain<const T: usize>(elements: &[Fr], partial: usize) -> Fr {
        let mut state = [Fr::from(T as u64 - 1) * Fr::from(2).pow([64]); T];
        state[1..].copy_from_slice(elements);
        let mut keys = Grain::new(T, partial);
        for round in 0..8 + partial {
            state = state.map(|element| element + keys.element());
            if (4..4 + partial).contains(&round) {
                state[0] = fifth_power(state[0]);
            } else {
                state = state.map(fifth_power);
            }
            state = matrix::<T>().map(|row| dot(&row, &state));
        }
        state[1]
    }

    #[test]
    fn the_form_with_few_multiplications_is_the_plain_one() {
        let elements: Vec<Fr> = (10..18).map(Fr::from).map(|number| -number).collect();
        assert_eq!(hash(&elements[..2], &TWO), plain::<3>(&elements[..2], 55));
        assert_eq!(hash(&elements[..4], &FOUR), plain::<5>(&elements[..4], 56));
        assert_eq!(hash(&elements, &EIGHT), plain::<9>(&elements, 57));
    }

    #[test]
    fn arities_do_not_collide() {
        let zero = Fr::from(0);
        assert_ne!(h2([zero; 2]), h4([zero; 4]));
        assert_ne!(h4([zero; 4]), h8([zero; 8]));
    }
}

//! The constants of a permutation, with sparse matrices for the partial rounds.

use ff::Field;

use super::grain::Grain;
use crate::field::Fr;

/// Full rounds before the partial ones, and after them.
const HALF: usize = 4;

/// The constants of the hash of T − 1 elements. A round adds keys, takes fifth powers, and multiplies by a matrix.
pub struct Constants<const T: usize> {
    /// The first element of the state; the others are what is hashed.
    pub tag: Fr,
    /// The keys of the full rounds before the partial ones.
    before: [[Fr; T]; HALF],
    /// The keys of the full rounds after the partial ones.
    after: [[Fr; T]; HALF],
    matrix: [[Fr; T]; T],
    /// The matrix of the last full round before the partial ones.
    dense: [[Fr; T]; T],
    /// The partial rounds, in which only the first element is powered.
    pub partial: Vec<PartialRound<T>>,
}

/// A partial round: its key is for the first element. Its matrix has this first row, this first column below, ones on
/// the rest of its diagonal, and zeros.
pub struct PartialRound<const T: usize> {
    /// Added to the first element.
    pub key: Fr,
    /// The first row.
    pub row: [Fr; T],
    /// The first column, without the first row.
    pub column: Vec<Fr>,
}

/// The matrix of the paper's full rounds: 1/(i + j + t). It is its own transpose.
pub(super) fn matrix<const T: usize>() -> [[Fr; T]; T] {
    let entry = |sum: usize| Option::from(Fr::from(sum as u64).invert()).expect("a small number is not 0");
    std::array::from_fn(|row| std::array::from_fn(|column| entry(row + column + T)))
}

impl<const T: usize> Constants<T> {
    /// The constants for so many partial rounds.
    pub(super) fn new(partial: usize) -> Self {
        let mut grain = Grain::new(T, partial);
        let matrix = matrix();
        let mut keys = || std::array::from_fn(|_| grain.element());
        let before = [(); HALF].map(|()| keys());
        // What is added to elements that are not powered in this round is as well added after it.
        let mut moved = [Fr::ZERO; T];
        let first_keys: Vec<Fr> = (0..partial)
            .map(|_| {
                let mut keys = sum(keys(), moved);
                let first = keys.first_mut().map(std::mem::take).expect("a state has elements");
                moved = times(&matrix, &keys);
                first
            })
            .collect();
        let after = [(); HALF].map(|()| sum(keys(), std::mem::replace(&mut moved, [Fr::ZERO; T])));
        // From the last round back: its matrix is a sparse one times a block that leaves the first element alone. So
        // the block is as well applied before the fifth power, as a part of the round before.
        let mut dense = matrix;
        let mut rounds: Vec<PartialRound<T>> = first_keys
            .into_iter()
            .rev()
            .map(|key| {
                let block = block_of(&dense);
                let (first, rest) = dense.split_first().expect("a matrix has rows");
                let row = solve(&block, first);
                let column = rest.iter().filter_map(|row| row.first().copied()).collect();
                dense = block.each_ref().map(|row| times(&matrix, row));
                PartialRound { key, row, column }
            })
            .collect();
        rounds.reverse();
        let tag = Fr::from(T as u64 - 1) * Fr::from(2).pow_vartime([64]);
        Self { tag, before, after, matrix, dense, partial: rounds }
    }

    /// Keys and matrix of each full round before the partial ones.
    pub fn rounds_before(&self) -> impl Iterator<Item = (&[Fr; T], &[[Fr; T]; T])> {
        let last = HALF - 1;
        self.before
            .iter()
            .enumerate()
            .map(move |(at, keys)| (keys, if at == last { &self.dense } else { &self.matrix }))
    }

    /// Keys and matrix of each full round after the partial ones.
    pub fn rounds_after(&self) -> impl Iterator<Item = (&[Fr; T], &[[Fr; T]; T])> {
        self.after.iter().map(|keys| (keys, &self.matrix))
    }
}

fn sum<const T: usize>(one: [Fr; T], other: [Fr; T]) -> [Fr; T] {
    let mut sum = one;
    for (element, more) in sum.iter_mut().zip(other) {
        *element += more;
    }
    sum
}

/// The matrix times a column. For the matrix of full rounds, which is its own transpose, that is a row times it, too.
fn times<const T: usize>(matrix: &[[Fr; T]; T], column: &[Fr; T]) -> [Fr; T] {
    matrix.each_ref().map(|row| row.iter().zip(column).map(|(factor, element)| *factor * element).sum())
}

/// The matrix with its first row and first column as the identity has them.
fn block_of<const T: usize>(matrix: &[[Fr; T]; T]) -> [[Fr; T]; T] {
    let mut block = *matrix;
    for (at, row) in block.iter_mut().enumerate() {
        for (column, entry) in row.iter_mut().enumerate() {
            if at == 0 || column == 0 {
                *entry = if at == column { Fr::ONE } else { Fr::ZERO };
            }
        }
    }
    block
}

/// The row that, times the matrix, is this one: Gauss's elimination.
fn solve<const T: usize>(matrix: &[[Fr; T]; T], product: &[Fr; T]) -> [Fr; T] {
    // An equation for each column of the matrix: the factors of the unknowns, and the sum.
    let entry =
        |row: usize, column: usize| matrix.get(row).and_then(|row| row.get(column)).copied().unwrap_or(Fr::ZERO);
    let mut equations: Vec<([Fr; T], Fr)> =
        product.iter().enumerate().map(|(column, sum)| (std::array::from_fn(|row| entry(row, column)), *sum)).collect();
    let factor = |(factors, _): &([Fr; T], Fr), of: usize| factors.get(of).copied().unwrap_or(Fr::ZERO);
    for unknown in 0..T {
        let pivot = (unknown..T).find(|at| equations.get(*at).is_some_and(|one| factor(one, unknown) != Fr::ZERO));
        equations.swap(unknown, pivot.expect("the blocks of this matrix have inverses"));
        let chosen = equations.get_mut(unknown).expect("an equation for each unknown");
        let inverse = Option::<Fr>::from(factor(chosen, unknown).invert()).expect("a pivot is not 0");
        *chosen = (chosen.0.map(|factor| factor * inverse), chosen.1 * inverse);
        let (factors, sum) = *chosen;
        for (_, other) in equations.iter_mut().enumerate().filter(|(at, _)| *at != unknown) {
            let times = factor(other, unknown);
            for (one, chosen) in other.0.iter_mut().zip(factors) {
                *one -= chosen * times;
            }
            other.1 -= sum * times;
        }
    }
    std::array::from_fn(|unknown| equations.get(unknown).map_or(Fr::ZERO, |(_, sum)| *sum))
}

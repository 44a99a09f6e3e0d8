//! The hashes are those of neptune, which others wrote.

use fastpay_private_prover::*;
use ff::Field;
use neptune::hash_type::HashType;
use neptune::poseidon::{HashMode, Poseidon, PoseidonConstants};
use neptune::{Arity, Strength};

use super::random;

fn of_others<A: Arity<Fr>>(elements: &[Fr]) -> Fr {
    let constants: PoseidonConstants<Fr, A> =
        PoseidonConstants::new_with_strength_and_type(Strength::Standard, HashType::ConstantLength(elements.len()));
    let hash = |mode| Poseidon::new_with_preimage(elements, &constants).hash_in_mode(mode);
    let plain = hash(HashMode::Correct);
    assert_eq!(hash(HashMode::OptimizedStatic), plain);
    plain
}

#[test]
fn hashes_are_those_of_neptune() {
    use generic_array::typenum::{U2, U4, U8};
    let random = &mut random();
    for round in 0..20 {
        let elements: [Fr; 8] = std::array::from_fn(|at| match (round, at % 3) {
            (0, _) | (1, 0) => Fr::ZERO,
            (1 | 2, _) => -Fr::ONE,
            _ => Fr::random(&mut *random),
        });
        let [a, b, c, d, ..] = elements;
        assert_eq!(h2([a, b]), of_others::<U2>(&[a, b]));
        assert_eq!(h4([a, b, c, d]), of_others::<U4>(&[a, b, c, d]));
        assert_eq!(h8(elements), of_others::<U8>(&elements));
    }
}

//! Poseidon of two, four and eight elements: standard strength, constant length, so that the arities do not collide.

use std::sync::LazyLock;

use neptune::hash_type::HashType;
use neptune::poseidon::{HashMode, Poseidon, PoseidonConstants};
use neptune::{Arity, Strength};

use crate::field::Fr;

/// The types by which the crate of the hash names an arity.
pub(crate) type Two = generic_array::typenum::U2;
pub(crate) type Four = generic_array::typenum::U4;
pub(crate) type Eight = generic_array::typenum::U8;

fn constants<A: Arity<Fr>>(arity: usize) -> PoseidonConstants<Fr, A> {
    PoseidonConstants::new_with_strength_and_type(Strength::Standard, HashType::ConstantLength(arity))
}

pub(crate) static TWO: LazyLock<PoseidonConstants<Fr, Two>> = LazyLock::new(|| constants(2));
pub(crate) static FOUR: LazyLock<PoseidonConstants<Fr, Four>> = LazyLock::new(|| constants(4));
pub(crate) static EIGHT: LazyLock<PoseidonConstants<Fr, Eight>> = LazyLock::new(|| constants(8));

fn hash<A: Arity<Fr>>(elements: &[Fr], constants: &PoseidonConstants<Fr, A>) -> Fr {
    Poseidon::new_with_preimage(elements, constants).hash_in_mode(HashMode::OptimizedStatic)
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
    use super::*;

    /// The form with few multiplications is the one that is used. The plain form of the paper is the reference.
    #[test]
    fn the_optimised_form_is_the_plain_one() {
        let elements: Vec<Fr> = (10..18).map(Fr::from).collect();
        fn plain<A: Arity<Fr>>(elements: &[Fr], constants: &PoseidonConstants<Fr, A>) -> Fr {
            Poseidon::new_with_preimage(elements, constants).hash_in_mode(HashMode::Correct)
        }
        assert_eq!(hash(&elements[..2], &TWO), plain(&elements[..2], &TWO));
        assert_eq!(hash(&elements[..4], &FOUR), plain(&elements[..4], &FOUR));
        assert_eq!(hash(&elements, &EIGHT), plain(&elements, &EIGHT));
    }

    #[test]
    fn arities_do_not_collide() {
        let zero = Fr::from(0);
        assert_ne!(h2([zero; 2]), h4([zero; 4]));
        assert_ne!(h4([zero; 4]), h8([zero; 8]));
    }
}

//! "This key is not on the list", as constraints.

use bellpepper_core::ConstraintSystem;
use fastpay_private::parts::{EIGHT, TAG_BITS, TWO};
use fastpay_private::{Fr, GapPath, SANCTIONS_DEPTH, SANCTIONS_WIDTH, field_from_u128};
use ff::{Field, PrimeField};

use super::poseidon::hash;
use super::wire::{Made, Wire, bits, pack, product, require, require_equal, require_range};

/// The tag of a key. Its bits are those of the canonical form, so that a key has one tag.
fn tag<CS: ConstraintSystem<Fr>>(cs: &mut CS, key: &Wire) -> Made<Wire> {
    let cs = &mut cs.namespace(|| "tag");
    let bits = bits(cs, "bits", key.value().map(|key| key.to_repr()), Fr::NUM_BITS as usize)?;
    require_equal(cs, "sum of bits", &pack(&bits), key);
    // What is above 2^128 is less than for the largest element, so the sum is below the modulus. One key in 2^126 is
    // left out, and cannot be found.
    let (low, high) = bits.split_at(128);
    let largest = u128::from_le_bytes(*(-Fr::ONE).to_repr().last_chunk().expect("an element has 32 bytes"));
    let room = Wire::constant(field_from_u128(largest - 1)) - &pack(high);
    require_range(cs, "canonical", &room, Fr::NUM_BITS as usize - 128)?;
    Ok(pack(low.get(..TAG_BITS).expect("a tag is part of the low bits")))
}

/// Requires that the key lies in a gap of the list with this root.
pub(super) fn require_unlisted<CS: ConstraintSystem<Fr>>(
    cs: &mut CS,
    key: &Wire,
    root: &Wire,
    path: Option<&GapPath>,
) -> Made<()> {
    let tag = tag(cs, key)?;
    let low = Wire::given(cs, "low", path.map(|path| path.low))?;
    let high = Wire::given(cs, "high", path.map(|path| path.high))?;
    require_range(cs, "above the low end", &(tag.clone() - &low - &Wire::one()), TAG_BITS)?;
    require_range(cs, "below the high end", &(high.clone() - &tag - &Wire::one()), TAG_BITS)?;
    let mut node = hash(cs, "leaf", &TWO, &[&low, &high])?;
    for level in 0..SANCTIONS_DEPTH {
        let cs = &mut cs.namespace(|| format!("level {level}"));
        let children: Option<&[Fr]> = path.map(|path| path.children.get(level).map_or(&[][..], |children| children));
        let child = |at: usize| children.map(|children| children.get(at).copied().unwrap_or(Fr::ZERO));
        let children = (0..SANCTIONS_WIDTH)
            .map(|at| Wire::given(cs, &format!("child {at}"), child(at)))
            .collect::<Made<Vec<Wire>>>()?;
        // The node is one of them: a product of differences is 0.
        let mut differences = children.iter().map(|child| child.clone() - &node);
        let last = differences.next_back().expect("a node has children");
        let first = differences.next().expect("a node has children");
        let others = differences
            .enumerate()
            .try_fold(first, |all, (at, difference)| product(cs, &format!("difference {at}"), &difference, &all))?;
        require(cs, "one of the children", &last, &others, &Wire::zero());
        node = hash(cs, "node", &EIGHT, &children.iter().collect::<Vec<_>>())?;
    }
    require_equal(cs, "root", &node, root);
    Ok(())
}

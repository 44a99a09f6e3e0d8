//! Signatures as constraints, and the members of the committee who made them.

use bellpepper_core::ConstraintSystem;
use fastpay_private::parts::{DIGITS, FOUR};
use fastpay_private::{Fr, Signature};
use ff::{Field, PrimeField};

use super::curve::{CHALLENGE_BITS, Point, Table, multiple_of_generator};
use super::poseidon::hash;
use super::wire::{Made, Wire, bits, pack, product, require, require_equal, require_range};

/// A key that signatures are checked with.
pub(super) struct Key {
    u: Wire,
    /// Multiples of the key's negative.
    negative: Table,
}

impl Key {
    pub fn new<CS: ConstraintSystem<Fr>>(cs: &mut CS, u: Wire, v: Wire) -> Made<Self> {
        let negative = Table::of(cs, Point { u: u.clone() * -Fr::ONE, v })?;
        Ok(Self { u, negative })
    }

    /// Requires the signature of an element, unless `excused` is 1. The context is the deployment and the kind.
    ///
    /// The 255 bits of the hash may stand for it or for it and the modulus. A forger so has up to two challenges for
    /// one: a bit of 128.
    pub fn require_signature<CS: ConstraintSystem<Fr>>(
        &self,
        cs: &mut CS,
        context: &Wire,
        message: &Wire,
        signature: Option<&Signature>,
        excused: &Wire,
    ) -> Made<()> {
        let given = |cs: &mut bellpepper_core::Namespace<'_, Fr, CS::Root>,
                     name: &str,
                     number: Option<[u8; 32]>,
                     count: usize| {
            let bit = |at: usize| number.map(|bytes| bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1));
            (0..count).map(|at| Wire::given_bit(cs, &format!("{name} {at}"), bit(at))).collect::<Made<Vec<Wire>>>()
        };
        let cs = &mut cs.namespace(|| "signature");
        let digits = given(cs, "digit", signature.map(Signature::digits), 3 * DIGITS)?;
        let challenge = given(cs, "challenge", signature.map(Signature::challenge_bytes), CHALLENGE_BITS)?;
        let nonce = multiple_of_generator(cs, &digits)?;
        let nonce = self.negative.add_multiple(cs, nonce, &challenge)?;
        let hash = hash(cs, "challenge", &FOUR, &[&nonce.u, &self.u, message, context])?;
        let high = hash.value().map(|hash| {
            let mut high = [0; 32];
            high[..16].copy_from_slice(&hash.to_repr()[16..]);
            high
        });
        let high = bits(cs, "high bits", high, Fr::NUM_BITS as usize - CHALLENGE_BITS)?;
        let shift = Fr::from(2).pow_vartime([CHALLENGE_BITS as u64]);
        let claimed = pack(&challenge) + &(pack(&high) * shift);
        require(cs, "challenge is the hash's", &(hash - &claimed), &excused.not(), &Wire::zero());
        Ok(())
    }
}

/// The members whose signatures are shown, one key each: which they are stays hidden, and that they differ does not.
///
/// Constraints are under the two names given: one that they are members, one that they differ.
pub(super) fn choose<CS: ConstraintSystem<Fr>>(
    cs: &mut CS,
    rule: &str,
    members: &[[Wire; 2]],
    count: usize,
    chosen: Option<&[usize]>,
) -> Made<Vec<Key>> {
    let mut previous: Option<Wire> = None;
    let mut keys = vec![];
    for at in 0..count {
        let cs = &mut cs.namespace(|| format!("signer {at}"));
        let chosen = chosen.map(|chosen| chosen.get(at).copied().unwrap_or(usize::MAX));
        let (mut u, mut v, mut index, mut sum) = (Wire::zero(), Wire::zero(), Wire::zero(), Wire::zero());
        for (member, [member_u, member_v]) in members.iter().enumerate() {
            let is = Wire::given_bit(cs, &format!("is member {member}"), chosen.map(|chosen| chosen == member))?;
            u = u + &product(cs, &format!("u {member}"), member_u, &is)?;
            v = v + &product(cs, &format!("v {member}"), member_v, &is)?;
            index = index + &(is.clone() * Fr::from(member as u64));
            sum = sum + &is;
        }
        {
            let cs = &mut cs.namespace(|| rule);
            require_equal(cs, "one member", &sum, &Wire::one());
            if let Some(previous) = previous {
                require_range(cs, "another than before", &(index.clone() - &previous - &Wire::one()), 8)?;
            }
        }
        previous = Some(index);
        keys.push(Key::new(cs, u, v)?);
    }
    Ok(keys)
}

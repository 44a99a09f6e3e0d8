//! Owners: the key that spends, and the element that others know it by.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::field::{Fr, Secret, derive};
use crate::poseidon::h2;
use crate::sanctions::Tag;

/// The second input of the hash that makes an owner of a key: `pk`.
pub const OWNER: u64 = 0x706b;
/// Added to the key for a coin's nullifier: `nf`.
pub const COIN_NULLIFIER: u64 = 0x6e66;
/// Added to the key for an account's nullifier: `cc`.
pub const ACCOUNT_NULLIFIER: u64 = 0x6363;

/// Whoever holds the key behind this element. It is in addresses, and in nothing that the authorities see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub Fr);

impl Owner {
    /// The low 120 bits, by which the sanctions list names an owner.
    #[must_use]
    pub fn tag(self) -> Tag {
        Tag::of(self.0)
    }
}

/// The key that spends an owner's coins and accounts. It is wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SpendingKey(Secret);

impl SpendingKey {
    /// The key of a seed.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(Secret(derive("fastpay/private/spending-key", &[seed])))
    }

    /// The key as the circuit has it. It is as secret as the key: wipe what you make of it.
    #[must_use]
    pub const fn element(&self) -> Fr {
        self.0.0
    }

    /// Its owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner(h2([self.0.0, Fr::from(OWNER)]))
    }

    /// What a transaction shows in place of the coin with this ρ.
    #[must_use]
    pub fn coin_nullifier(&self, rho: Fr) -> Fr {
        h2([self.0.0 + Fr::from(COIN_NULLIFIER), rho])
    }

    /// What a transaction shows in place of the account with this ρ.
    #[must_use]
    pub fn account_nullifier(&self, rho: Fr) -> Fr {
        h2([self.0.0 + Fr::from(ACCOUNT_NULLIFIER), rho])
    }
}

impl fmt::Debug for SpendingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpendingKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_prints_nothing_of_itself() {
        assert_eq!(format!("{:?}", SpendingKey::from_seed(&[1; 32])), "SpendingKey");
    }

    #[test]
    fn nullifiers_of_the_two_kinds_differ() {
        let key = SpendingKey::from_seed(&[1; 32]);
        let rho = Fr::from(5);
        assert_ne!(key.coin_nullifier(rho), key.account_nullifier(rho));
        assert_ne!(key.coin_nullifier(rho), SpendingKey::from_seed(&[2; 32]).coin_nullifier(rho));
    }
}

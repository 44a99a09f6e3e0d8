//! Coins: what one owner pays to another, and what a deposit becomes.

use crate::field::{Asset, Fr, derive, field_from_u128};
use crate::owner::Owner;
use crate::poseidon::{h2, h4};

/// An amount for an owner. Authorities see its commitment only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coin {
    /// The amount, in the asset's smallest unit.
    pub value: u128,
    /// The asset.
    pub asset: Asset,
    /// What makes the coin unique: the account nullifier of the transaction that made it, or [`deposit_rho`].
    pub rho: Fr,
    /// Its owner.
    pub owner: Owner,
    /// The randomness that hides the owner.
    pub r: Fr,
}

impl Coin {
    /// What a depositor puts into the payment's memo. It hides the owner from the authorities.
    #[must_use]
    pub fn inner(owner: Owner, r: Fr) -> Fr {
        h2([owner.0, r])
    }

    /// The commitment of a coin with this inner part: an authority computes a deposit's coin by it.
    #[must_use]
    pub fn commit(value: u128, asset: Asset, rho: Fr, inner: Fr) -> Fr {
        h4([field_from_u128(value), asset.element(), rho, inner])
    }

    /// The commitment.
    #[must_use]
    pub fn commitment(&self) -> Fr {
        Self::commit(self.value, self.asset, self.rho, Self::inner(self.owner, self.r))
    }
}

/// The ρ of the coin that a deposit becomes, from the digest of the payment to the pool.
#[must_use]
pub fn deposit_rho(payment: &[u8; 32]) -> Fr {
    derive("fastpay/private/deposit", &[payment])
}

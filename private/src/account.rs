//! Private accounts: balance, limits used and history of one owner in one asset. Each transaction replaces the account.

use ff::Field;

use crate::field::{Asset, Domain, Fr, field_from_u128};
use crate::owner::Owner;
use crate::poseidon::{h4, h8};

/// An owner's account in an asset. Authorities see its commitment only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its owner.
    pub owner: Owner,
    /// The asset.
    pub asset: Asset,
    /// What it holds.
    pub balance: u128,
    /// What it gave away in [`Self::period`]: payments to others, and withdrawals.
    pub spent: u128,
    /// What it gave away since it exists.
    pub total: u128,
    /// The period of its last transaction.
    pub period: u32,
    /// What it claimed in [`Self::period`].
    pub received: u128,
    /// The chain of its payments: see [`crate::history_after`].
    pub history: Fr,
    /// What makes it unique: the nullifier of the account that it replaced.
    pub rho: Fr,
    /// The randomness that hides it.
    pub r: Fr,
}

impl Account {
    /// The account that everyone has without asking: empty, of known randomness, and spent once by who opens it.
    #[must_use]
    pub fn first(owner: Owner, asset: Asset, domain: Domain) -> Self {
        let rho = h4([owner.0, asset.element(), domain.element(), Fr::ZERO]);
        Self {
            owner,
            asset,
            balance: 0,
            spent: 0,
            total: 0,
            period: 0,
            received: 0,
            history: Fr::ZERO,
            rho,
            r: Fr::ZERO,
        }
    }

    /// The commitment.
    #[must_use]
    pub fn commitment(&self) -> Fr {
        let more = h4([Fr::from(u64::from(self.period)), field_from_u128(self.received), self.history, Fr::ZERO]);
        h8([
            self.owner.0,
            self.asset.element(),
            field_from_u128(self.balance),
            field_from_u128(self.spent),
            field_from_u128(self.total),
            more,
            self.rho,
            self.r,
        ])
    }
}

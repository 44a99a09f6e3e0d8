//! Credentials: a registrar's word on a person's limits. Proofs show that there is one, and never which.

use ff::Field;

use crate::field::{Asset, Domain, Fr, field_from_u128};
use crate::owner::Owner;
use crate::poseidon::{h4, h8};
use crate::schnorr::{InvalidSignature, Kind, PublicKey, Signature};

/// What a person may do in one asset, in its smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Given away by one transaction.
    pub transaction: u128,
    /// Given away in one period.
    pub period: u128,
    /// Given away since the account exists.
    pub total: u128,
    /// Held in the account after a transaction that claims something.
    pub hold: u128,
    /// Claimed in one period.
    pub receive: u128,
}

impl Limits {
    /// No limits: those of an exit.
    pub const NONE: Self =
        Self { transaction: u128::MAX, period: u128::MAX, total: u128::MAX, hold: u128::MAX, receive: u128::MAX };
}

/// What a registrar signs for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The person.
    pub owner: Owner,
    /// The asset.
    pub asset: Asset,
    /// What the person may do.
    pub limits: Limits,
    /// The last period in which the credential is valid.
    pub expiry: u32,
    /// The registrar's own, such as a hash of a file. The statement passes it by.
    pub attributes: Fr,
}

impl Credential {
    /// What the registrar signs.
    #[must_use]
    pub fn message(&self) -> Fr {
        let Limits { transaction, period, total, hold, receive } = self.limits;
        let expiry = Fr::from(u64::from(self.expiry));
        let more = h4([field_from_u128(hold), field_from_u128(receive), expiry, self.attributes]);
        h8([
            self.owner.0,
            self.asset.element(),
            field_from_u128(transaction),
            field_from_u128(period),
            field_from_u128(total),
            more,
            Fr::ZERO,
            Fr::ZERO,
        ])
    }

    /// Checks the registrar's signature.
    ///
    /// # Errors
    /// [`InvalidSignature`] if this registrar did not sign it for this deployment.
    pub fn verify(&self, domain: Domain, registrar: &PublicKey, signature: &Signature) -> Result<(), InvalidSignature> {
        registrar.verify(domain, Kind::Credential, self.message(), signature)
    }
}

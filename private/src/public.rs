//! The public part of a private transaction: what everybody sees of it, and for which committees there are proofs.

use thiserror::Error;

use crate::field::{Asset, Domain, Fr, field_from_u128};
use crate::schnorr::PublicKey;

/// For how many members and signatures a statement is. Each shape has keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    members: usize,
    signers: usize,
}

/// A committee that is too small or too large for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("private payments are for committees of 4 to 255 members, and this one has {0}")]
pub struct CommitteeSize(pub usize);

impl Shape {
    /// The shape for a committee of n members: f + 1 of them sign, and at least one of these is honest.
    ///
    /// # Errors
    /// [`CommitteeSize`] unless n is from 4 to 255.
    pub const fn of_committee(members: usize) -> Result<Self, CommitteeSize> {
        if members < 4 || members > 255 {
            return Err(CommitteeSize(members));
        }
        Ok(Self { members, signers: (members - 1) / 3 + 1 })
    }

    /// n
    #[must_use]
    pub const fn members(self) -> usize {
        self.members
    }

    /// f + 1
    #[must_use]
    pub const fn signers(self) -> usize {
        self.signers
    }

    /// The number of public inputs: the twelve of every transaction, and two for each member's key.
    #[must_use]
    pub const fn inputs(self) -> usize {
        12 + 2 * self.members
    }
}

/// What everybody sees of a transaction, and what an authority puts in itself. The public inputs of its proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Public {
    /// The deployment.
    pub domain: Domain,
    /// The asset.
    pub asset: Asset,
    /// In place of the account that is replaced.
    pub account_nullifier: Fr,
    /// In place of the coin that is claimed.
    pub coin_nullifier: Fr,
    /// The commitment of the new account.
    pub account: Fr,
    /// The commitment of the coin that is made.
    pub coin: Fr,
    /// What leaves the pool.
    pub withdrawn: u128,
    /// The low 253 bits of the transaction's digest, so that nothing else of it can be altered.
    pub digest: Fr,
    /// The period, by the authority.
    pub period: u32,
    /// The root of the sanctions list in force, by the authority.
    pub sanctions: Fr,
    /// The registrar in force, by the authority.
    pub registrar: PublicKey,
    /// The coin keys of all members in this epoch, by the authority.
    pub members: Vec<PublicKey>,
}

impl Public {
    /// The public inputs, in their order.
    #[must_use]
    pub fn inputs(&self) -> Vec<Fr> {
        let mut inputs = vec![
            self.domain.element(),
            self.asset.element(),
            self.account_nullifier,
            self.coin_nullifier,
            self.account,
            self.coin,
            field_from_u128(self.withdrawn),
            self.digest,
            Fr::from(u64::from(self.period)),
            self.sanctions,
        ];
        inputs.extend(self.registrar.coordinates());
        inputs.extend(self.members.iter().flat_map(PublicKey::coordinates));
        inputs
    }
}

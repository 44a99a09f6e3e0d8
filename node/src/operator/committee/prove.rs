//! A member's proof that it has both keys of its pair.

use fastpay_core::{
    Authority, AuthorityKeys, AuthorityName, Domain, EcdsaSignature, Ed25519Signature, PossessionError,
    PossessionProof, PrimaryAddress,
};
use fastpay_ledger_statement::Possession;
use fastpay_rpc::json::Hex;
use serde::{Deserialize, Serialize};

use super::CommitteeError;
use crate::authority::config::Config;
use crate::authority::deployment::domain_of;

/// A proof of possession, as its file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Proof {
    voting_key: AuthorityName,
    redemption_key: PrimaryAddress,
    redemption_signature: Hex<65>,
    voting_signature: Hex<64>,
}

impl Proof {
    /// The pair of keys.
    #[must_use]
    pub fn authority(&self) -> Authority {
        Authority { name: self.voting_key, redemption_key: self.redemption_key }
    }

    /// Both signatures, as the contract reads them.
    pub(super) fn packed(&self) -> impl Iterator<Item = u8> {
        self.redemption_signature.0.into_iter().chain(self.voting_signature.0)
    }

    /// Both signatures, as a ledger reads them.
    pub(super) fn possession(&self) -> Possession {
        self.proof().into()
    }

    fn proof(&self) -> PossessionProof {
        PossessionProof {
            authority: self.authority(),
            redemption_signature: EcdsaSignature(self.redemption_signature.0),
            voting_signature: Ed25519Signature(self.voting_signature.0),
        }
    }

    /// Checks both signatures.
    ///
    /// # Errors
    /// See [`PossessionError`].
    pub fn verify(&self, domain: &Domain) -> Result<(), PossessionError> {
        self.proof().verify(domain)
    }
}

/// Proves possession of `keys` to the configured contract or committee, without network access. Must be called within a
/// tokio runtime.
///
/// # Errors
/// If the configuration names none.
pub fn prove(config: &Config, keys: &AuthorityKeys) -> Result<Proof, CommitteeError> {
    let domain = domain_of(config.primary.as_ref().ok_or(CommitteeError::NoPrimary)?)?;
    let proof = PossessionProof::new(keys, &domain);
    Ok(Proof {
        voting_key: proof.authority.name,
        redemption_key: proof.authority.redemption_key,
        redemption_signature: Hex(proof.redemption_signature.0),
        voting_signature: Hex(proof.voting_signature.0),
    })
}

//! The check of proofs that core's rules ask for: an authority puts into the statement what is certified, by the versions
//! that the transfer names.

use std::collections::BTreeMap;

use fastpay_core::Domain as Deployment;
use fastpay_core::private::{PrivateCommittee, PrivateRules, ProofCheck, ProofClaim, ProofError};
use rand_core::OsRng;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::field::{Asset, Domain, Fr, NotCanonical, field_from_bytes, field_from_hash};
use crate::groth16::{KeyError, Proof, VerifyingKey};
use crate::public::Public;
use crate::schnorr::{InvalidKey, PublicKey};

/// What a version of the rules puts into statements.
struct Rules {
    registrar: PublicKey,
    sanctions: Fr,
    period: u32,
}

/// Checks proofs under one version of the committee's coin keys and any number of versions of the rules.
pub struct ProofVerifier {
    domain: Domain,
    committee: u64,
    members: Vec<PublicKey>,
    key: VerifyingKey,
    rules: BTreeMap<u64, Rules>,
}

/// Why certified keys or rules cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotInstalled {
    /// The verifying key is another one than the certified, malformed, or for development on another chain.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The verifying key is for another number of members.
    #[error("the verifying key is for {key} members, and the committee has {committee} coin keys")]
    Members {
        /// The number that the verifying key is for.
        key: usize,
        /// The number of coin keys.
        committee: usize,
    },
    /// A coin key, or the registrar's.
    #[error(transparent)]
    PublicKey(#[from] InvalidKey),
    /// The root of the sanctions list.
    #[error(transparent)]
    Root(#[from] NotCanonical),
}

impl ProofVerifier {
    /// A verifier for a deployment under a certified version of the coin keys, with the bytes of its verifying key.
    ///
    /// # Errors
    /// [`NotInstalled`]
    pub fn new(deployment: &Deployment, committee: &PrivateCommittee, key: &[u8]) -> Result<Self, NotInstalled> {
        if <[u8; 32]>::from(Sha256::digest(key)) != committee.verifying_key_hash.0 {
            return Err(KeyError::Hash.into());
        }
        let key = VerifyingKey::from_bytes(key, deployment.chain_id())?;
        let members =
            committee.coin_keys.iter().map(|key| PublicKey::from_bytes(&key.0)).collect::<Result<Vec<_>, _>>()?;
        if members.len() != key.shape().members() {
            return Err(NotInstalled::Members { key: key.shape().members(), committee: members.len() });
        }
        let domain = Domain::new(&deployment.separator().0);
        Ok(Self { domain, committee: committee.version, members, key, rules: BTreeMap::new() })
    }

    /// Adds a certified version of the rules.
    ///
    /// # Errors
    /// [`NotInstalled`]
    pub fn install(&mut self, rules: &PrivateRules) -> Result<(), NotInstalled> {
        let registrar = PublicKey::from_bytes(&rules.registrar.0)?;
        let sanctions = field_from_bytes(&rules.sanctions_root.0)?;
        self.rules.insert(rules.version, Rules { registrar, sanctions, period: rules.period });
        Ok(())
    }

    /// The public part of the proof, and the proof.
    fn read(&self, claim: &ProofClaim<'_>) -> Result<(Public, Proof), ProofError> {
        let transfer = claim.transfer;
        let rules = self.rules.get(&transfer.rules).ok_or(ProofError::UnknownVersion)?;
        if transfer.committee != self.committee {
            return Err(ProofError::UnknownVersion);
        }
        let element = |bytes: &[u8; 32]| field_from_bytes(bytes).map_err(|_| ProofError::BadProof);
        let public = Public {
            domain: self.domain,
            asset: Asset(transfer.asset.0.into()),
            account_nullifier: element(&transfer.account_spent.0)?,
            coin_nullifier: element(&transfer.coin_spent.0)?,
            account: element(&transfer.account)?,
            coin: element(&transfer.coin)?,
            withdrawn: transfer.amount_out.0,
            digest: field_from_hash(claim.digest.0),
            period: rules.period,
            sanctions: rules.sanctions,
            registrar: rules.registrar,
            members: self.members.clone(),
        };
        Ok((public, Proof::from_bytes(claim.proof).map_err(|_| ProofError::BadProof)?))
    }
}

impl ProofCheck for ProofVerifier {
    fn check(&self, claims: &[ProofClaim<'_>]) -> Vec<Result<(), ProofError>> {
        let read: Vec<_> = claims.iter().map(|claim| self.read(claim)).collect();
        let batch: Vec<(&Public, &Proof)> = read.iter().flatten().map(|(public, proof)| (public, proof)).collect();
        let invalid = self.key.verify_batch(&batch, &mut OsRng);
        let mut places = 0..batch.len();
        let answer = |read: &Result<_, ProofError>| {
            read.as_ref().map_err(|error| *error)?;
            let is_valid = places.next().is_some_and(|place| !invalid.contains(&place));
            if is_valid { Ok(()) } else { Err(ProofError::BadProof) }
        };
        read.iter().map(answer).collect()
    }
}

//! Signs and checks the engine's messages, with core's signature equation: what the engine takes for a certificate, every
//! other reader of the ledger does too.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fastpay_core::{Digest, DigestVerifier, Ed25519Signature, SignedDigest};
use fastpay_ledger_statement::MemberKeys;
use malachite::app::types::core::{SignedMessage, ValidatorProof, VoteExtensionScope};
use malachite_signing::{Error, Signer, VerificationResult, Verifier};
use malachite_signing_ed25519::{PublicKey, Signature};

use super::context::{Cluster, Proposal, Vote, digest};
use super::polkas::Polkas;
use crate::votes::{Cast, VoteFile};

/// As many keys as a cluster can have, with those of a few connections that are none.
const KEYS_MAX: usize = 512;

/// Checks messages of a cluster's members.
#[derive(Debug)]
pub struct EngineVerifier {
    cluster: Cluster,
    signatures: Mutex<DigestVerifier>,
    polkas: Polkas,
}

impl EngineVerifier {
    /// Checks messages of this cluster, and remembers the votes that hold.
    #[must_use]
    pub fn new(cluster: Cluster, polkas: Polkas) -> Self {
        Self { cluster, signatures: Mutex::new(DigestVerifier::new(KEYS_MAX)), polkas }
    }

    pub(crate) fn is_signed(&self, key: [u8; 32], digest: Digest, signature: [u8; 64]) -> bool {
        let signed = SignedDigest { key, digest, signature: Ed25519Signature(signature) };
        let mut signatures = self.signatures.lock().expect("nothing panics under this lock");
        signatures.verify(&[signed], &mut rand::rng()) == [true]
    }

    fn verdict(&self, key: &PublicKey, digest: Digest, signature: &Signature) -> VerificationResult {
        VerificationResult::from_bool(self.is_signed(*key.as_bytes(), digest, signature.to_bytes()))
    }
}

/// What a member signs to show that a network identity is its own.
fn proof_digest(preimage: &[u8]) -> Digest {
    digest("fastpay ledger engine validator proof v1", &preimage)
}

#[async_trait]
impl Verifier<Cluster> for EngineVerifier {
    async fn verify_signed_vote(
        &self,
        vote: &Vote,
        signature: &Signature,
        key: &PublicKey,
    ) -> Result<VerificationResult, Error> {
        let verdict = self.verdict(key, vote.digest(&self.cluster), signature);
        if verdict.is_valid() {
            self.polkas.see(vote);
        }
        Ok(verdict)
    }

    async fn verify_signed_proposal(
        &self,
        proposal: &Proposal,
        signature: &Signature,
        key: &PublicKey,
    ) -> Result<VerificationResult, Error> {
        Ok(self.verdict(key, proposal.digest(&self.cluster), signature))
    }

    /// Votes have no extensions.
    async fn verify_signed_vote_extension(
        &self,
        _: &VoteExtensionScope<Cluster>,
        (): &(),
        _: &Signature,
        _: &PublicKey,
    ) -> Result<VerificationResult, Error> {
        Ok(VerificationResult::Invalid)
    }

    async fn verify_validator_proof(&self, proof: &ValidatorProof<Cluster>) -> Result<VerificationResult, Error> {
        let Ok(key) = proof.decoded_public_key() else { return Ok(VerificationResult::Invalid) };
        Ok(self.verdict(&key, proof_digest(&proof.preimage()), &proof.signature))
    }
}

/// Signs this member's messages, after the file of votes has agreed.
#[derive(Debug)]
pub struct EngineSigner {
    cluster: Cluster,
    keys: MemberKeys,
    votes: Arc<Mutex<VoteFile>>,
    polkas: Polkas,
}

impl EngineSigner {
    /// Signs for this member of the cluster.
    #[must_use]
    pub fn new(cluster: Cluster, keys: MemberKeys, votes: Arc<Mutex<VoteFile>>, polkas: Polkas) -> Self {
        Self { cluster, keys, votes, polkas }
    }

    fn sign(&self, cast: Cast, digest: Digest) -> Result<Signature, Error> {
        let mut votes = self.votes.lock().map_err(|_| Error::from_source("the file of votes is poisoned"))?;
        votes.sign(cast).map_err(|refused| {
            tracing::error!("nothing is signed: {refused}");
            Error::from_source(refused)
        })?;
        Ok(sign(&self.keys, digest))
    }
}

fn sign(keys: &MemberKeys, digest: Digest) -> Signature {
    Signature::from_bytes(keys.sign(digest).0)
}

/// Shows that a network identity is a member's.
pub(crate) fn prove_identity(keys: &MemberKeys, peer: Vec<u8>) -> ValidatorProof<Cluster> {
    let key = keys.public().0.to_vec();
    let signature = sign(keys, proof_digest(&ValidatorProof::<Cluster>::signing_bytes(&key, &peer)));
    ValidatorProof::new(key, peer, signature)
}

#[async_trait]
impl Signer<Cluster> for EngineSigner {
    async fn sign_vote(&self, vote: Vote) -> Result<SignedMessage<Cluster, Vote>, Error> {
        let signature = self.sign(vote.cast(), vote.digest(&self.cluster))?;
        self.polkas.see(&vote);
        Ok(SignedMessage::new(vote, signature))
    }

    async fn sign_proposal(&self, proposal: Proposal) -> Result<SignedMessage<Cluster, Proposal>, Error> {
        let signature = self.sign(proposal.cast(), proposal.digest(&self.cluster))?;
        Ok(SignedMessage::new(proposal, signature))
    }

    async fn sign_vote_extension(
        &self,
        _: VoteExtensionScope<Cluster>,
        (): (),
    ) -> Result<SignedMessage<Cluster, ()>, Error> {
        Err(Error::from_source("votes of the ledger have no extensions"))
    }

    async fn sign_validator_proof(&self, _: Vec<u8>, peer: Vec<u8>) -> Result<ValidatorProof<Cluster>, Error> {
        Ok(prove_identity(&self.keys, peer))
    }
}

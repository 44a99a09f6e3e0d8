//! Orders of private transfers: the transfer with its notes, which is certified, and the proof, which is not.

use std::sync::Arc;

use alloy_primitives::Keccak256;
use borsh::{BorshDeserialize, BorshSerialize};

use super::transfer::{InvalidPrivateTransfer, PrivateTransfer};
use crate::Digest;
use crate::committee::Committee;
use crate::statement::Domain;
use crate::vote::{Ballot, VerifiedVote, Vote, VoteError};

/// The size of the note to the payee.
pub const PAYMENT_NOTE_BYTES: usize = 129;
/// The size of the note to oneself.
pub const OWN_NOTE_BYTES: usize = 261;
/// The size of a proof.
pub const PROOF_BYTES: usize = 384;

/// A transfer and its notes: all that its digest covers. The digest covers no proof, so neither does a certificate.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrivateOrder {
    /// The transfer.
    pub transfer: PrivateTransfer,
    /// The note to the payee. All notes have one size, so that they tell no transfers apart.
    pub payment_note: [u8; PAYMENT_NOTE_BYTES],
    /// The note to oneself.
    pub own_note: [u8; OWN_NOTE_BYTES],
}

/// The Keccak-256 hash of the two notes of a transfer, the payee's first.
#[must_use]
pub fn notes_hash(payment: &[u8; PAYMENT_NOTE_BYTES], own: &[u8; OWN_NOTE_BYTES]) -> Digest {
    let mut hash = Keccak256::new();
    hash.update(payment);
    hash.update(own);
    hash.finalize()
}

impl PrivateOrder {
    /// Checks all that needs neither a proof nor state, and gives the digest.
    pub(crate) fn check(&self, domain: &Domain) -> Result<Digest, InvalidPrivateTransfer> {
        self.transfer.check(domain)?;
        if self.transfer.notes_hash != notes_hash(&self.payment_note, &self.own_note) {
            return Err(InvalidPrivateTransfer::Notes);
        }
        Ok(domain.private_transfer_digest(&self.transfer))
    }
}

/// An order and its proof, not yet checked: what a wallet sends to be voted for.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ProvenOrder {
    /// The order.
    pub order: PrivateOrder,
    /// The proof of its transfer, bound to the digest.
    pub proof: [u8; PROOF_BYTES],
}

impl ProvenOrder {
    /// Checks all that needs neither the proof nor state. What follows is [`crate::Shard::precheck_private`], which may
    /// refuse the order or repeat a vote, and only then [`verify_proofs`].
    ///
    /// # Errors
    /// If the transfer breaks a rule by itself.
    pub fn check(self, domain: &Domain) -> Result<CheckedPrivateOrder, InvalidPrivateTransfer> {
        let digest = self.order.check(domain)?;
        Ok(CheckedPrivateOrder { proven: Arc::new(self), digest })
    }
}

/// An order of which all is checked but its proof. Cannot be deserialised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPrivateOrder {
    proven: Arc<ProvenOrder>,
    digest: Digest,
}

impl CheckedPrivateOrder {
    /// The transfer.
    #[must_use]
    pub fn transfer(&self) -> &PrivateTransfer {
        &self.proven.order.transfer
    }

    /// The digest, which names the order, and which members vote for.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// A proof, and what it must prove.
#[derive(Clone, Copy, Debug)]
pub struct ProofClaim<'a> {
    /// The transfer. Nullifiers and commitments are elements in canonical form.
    pub transfer: &'a PrivateTransfer,
    /// Its digest.
    pub digest: Digest,
    /// The proof.
    pub proof: &'a [u8; PROOF_BYTES],
}

/// A check of proofs under the versions that this authority has installed. `private/` has the one that authorities use.
pub trait ProofCheck {
    /// Checks each claim, in order. A claim without an answer counts as false.
    fn check(&self, claims: &[ProofClaim<'_>]) -> Vec<Result<(), ProofError>>;
}

/// Knows no proof: the check of a program that takes no private orders.
#[derive(Clone, Copy, Debug)]
pub struct NoProofs;

impl ProofCheck for NoProofs {
    fn check(&self, claims: &[ProofClaim<'_>]) -> Vec<Result<(), ProofError>> {
        vec![Err(ProofError::UnknownVersion); claims.len()]
    }
}

/// Why a proof does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The transfer names a version of the committee's coin keys or of the rules that is not installed here.
    #[error("this authority does not have the version of the coin keys or rules that the transfer names")]
    UnknownVersion,
    /// The bytes are no proof, or prove something else.
    #[error("the proof does not prove this transfer")]
    BadProof,
}

/// An order whose proof was checked. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPrivateOrder(CheckedPrivateOrder);

impl VerifiedPrivateOrder {
    /// The order, of which more than this is checked.
    #[must_use]
    pub fn checked(&self) -> &CheckedPrivateOrder {
        &self.0
    }

    /// The transfer.
    #[must_use]
    pub fn transfer(&self) -> &PrivateTransfer {
        self.0.transfer()
    }

    /// The order and its proof, shared with the record that is made of it.
    #[must_use]
    pub fn proven(&self) -> &Arc<ProvenOrder> {
        &self.0.proven
    }

    /// The digest, which names the order, and which members vote for.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Checks a member's vote for this order.
    ///
    /// # Errors
    /// As [`Vote::verify`].
    pub fn verify_vote(&self, vote: Vote, domain: &Domain, committee: &Committee) -> Result<VerifiedVote, VoteError> {
        let digest = self.digest();
        vote.verify_ballot(domain, committee, &Ballot::payment(committee.epoch(), digest), digest)
    }
}

/// Checks the proofs of orders, all at once. The answers are in the order of `orders`.
pub fn verify_proofs(
    orders: Vec<CheckedPrivateOrder>,
    proofs: &impl ProofCheck,
) -> Vec<Result<VerifiedPrivateOrder, ProofError>> {
    let claims: Vec<ProofClaim<'_>> = orders
        .iter()
        .map(|CheckedPrivateOrder { proven, digest }| ProofClaim {
            transfer: &proven.order.transfer,
            digest: *digest,
            proof: &proven.proof,
        })
        .collect();
    let mut answers = proofs.check(&claims).into_iter();
    let verdict = |order| answers.next().unwrap_or(Err(ProofError::BadProof)).map(|()| VerifiedPrivateOrder(order));
    orders.into_iter().map(verdict).collect()
}

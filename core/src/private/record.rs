//! What a journal keeps of private transfers. A shard is a fold over these records, too: see [`crate::Record`].

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use super::certificate::PrivateCertificate;
use super::order::{PrivateOrder, ProvenOrder};
use super::transfer::PrivateTransfer;
use crate::Digest;
use crate::amount::SequenceNumber;
use crate::history::Link;
use crate::identity::AccountId;
use crate::record::Effect;

/// What shows that the owner ordered a transfer.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PrivateEvidence {
    /// The proof, which counts under the versions that the transfer names.
    Proven(Arc<ProvenOrder>),
    /// A quorum's votes, without the proof, which no certificate has.
    Certified(Arc<PrivateCertificate>),
}

impl PrivateEvidence {
    /// The order.
    #[must_use]
    pub fn order(&self) -> &PrivateOrder {
        match self {
            Self::Proven(proven) => &proven.order,
            Self::Certified(certificate) => &certificate.order,
        }
    }
}

/// An order of which the authority votes for no other one that takes one of its numbers.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrivateLock {
    /// The order. The proof was checked, if this authority voted for it.
    pub evidence: PrivateEvidence,
    /// Its digest.
    pub digest: Digest,
}

impl PrivateLock {
    /// The transfer.
    #[must_use]
    pub fn transfer(&self) -> &PrivateTransfer {
        &self.evidence.order().transfer
    }

    /// The number of its account nullifier.
    #[must_use]
    pub fn number(&self) -> (AccountId, SequenceNumber) {
        let [number, _] = self.transfer().taken();
        number
    }
}

/// A certificate is executed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrivateConfirmation {
    /// The certificate, written here and nowhere else.
    pub certificate: Arc<PrivateCertificate>,
    /// The digest of its order.
    pub digest: Digest,
    /// The links in what the account nullifier and the coin nullifier sent.
    pub sent: [Link; 2],
    /// Where the amount goes that leaves the pool; none if nothing does.
    pub effect: Option<Effect>,
}

/// A certificate that may not be executed now is kept, to be attested.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrivateSeen {
    /// The certificate, written here; again where it is executed later.
    pub certificate: Arc<PrivateCertificate>,
    /// The digest of its order.
    pub digest: Digest,
}

//! Certificates of private transfers: an order and the votes of a quorum for its digest, as of payments.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use super::order::{PrivateOrder, VerifiedPrivateOrder};
use super::transfer::PrivateTransfer;
use crate::Digest;
use crate::amount::Epoch;
use crate::certificate::{CertificateError, check_quorum, quorum_of_votes};
use crate::committee::Committee;
use crate::merkle::Nodes;
use crate::statement::Domain;
use crate::vote::{Ballot, VerifiedVote, Vote};

/// An order and the votes for it, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrivateCertificate {
    /// The certified order.
    pub order: PrivateOrder,
    /// The committee that voted.
    pub epoch: Epoch,
    /// Exactly a quorum, in the order of the authorities' names, none twice.
    pub votes: Vec<Vote>,
}

impl PrivateCertificate {
    /// Makes a certificate of verified votes: the first quorum of those for this order, in the order of names. `None` if
    /// they are too few.
    #[must_use]
    pub fn from_votes(
        order: &VerifiedPrivateOrder,
        committee: &Committee,
        votes: &[VerifiedVote],
    ) -> Option<VerifiedPrivateCertificate> {
        let votes = quorum_of_votes(order.digest(), committee, votes)?;
        let certificate = Self { order: order.proven().order.clone(), epoch: committee.epoch(), votes };
        Some(VerifiedPrivateCertificate { certificate: Arc::new(certificate), digest: order.digest() })
    }

    /// Checks the whole certificate.
    ///
    /// # Errors
    /// If the order breaks a rule by itself, the epoch is another, the votes are not exactly a quorum in order, or a vote
    /// is not valid.
    pub fn verify(
        self,
        domain: &Domain,
        committee: &Committee,
    ) -> Result<VerifiedPrivateCertificate, CertificateError> {
        check_quorum(self.epoch, &self.votes, committee)?;
        let digest = self.order.check(domain)?;
        let ballot = Ballot::payment(self.epoch, digest);
        for vote in &self.votes {
            vote.signature_check(committee, &ballot, &mut Nodes::unremembered())?.check(domain)?;
        }
        Ok(VerifiedPrivateCertificate { certificate: Arc::new(self), digest })
    }
}

/// A certificate with a valid quorum. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPrivateCertificate {
    certificate: Arc<PrivateCertificate>,
    digest: Digest,
}

impl VerifiedPrivateCertificate {
    /// The certificate, shared with the record that is made of it.
    #[must_use]
    pub fn certificate(&self) -> &Arc<PrivateCertificate> {
        &self.certificate
    }

    /// The transfer.
    #[must_use]
    pub fn transfer(&self) -> &PrivateTransfer {
        &self.certificate.order.transfer
    }

    /// The digest, which names the transfer.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

//! Certificates: a transfer order and the votes of a quorum for it. No other order of the same number can have one
//! [FP §4.2]; the transfer is settled once a quorum has confirmed the certificate.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::Epoch;
use crate::committee::{Committee, check_sorted};
use crate::identity::AuthorityName;
use crate::merkle::Nodes;
use crate::order::{OrderError, TransferOrder, VerifiedOrder};
use crate::private::InvalidPrivateTransfer;
use crate::signature::BadSignature;
use crate::signature_check::PendingVerification;
use crate::statement::Domain;
use crate::transfer::Transfer;
use crate::vote::{Ballot, VerifiedVote, Vote, VoteError};

/// An order and the votes for it, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Certificate {
    /// The certified order.
    pub order: TransferOrder,
    /// The committee that voted.
    pub epoch: Epoch,
    /// Exactly a quorum, in the order of the authorities' names, none twice.
    pub votes: Vec<Vote>,
}

impl Certificate {
    /// Makes a certificate of verified votes: the first quorum of those for this order, in the order of
    /// names. `None` if they are too few.
    #[must_use]
    pub fn from_votes(
        order: &VerifiedOrder,
        committee: &Committee,
        votes: &[VerifiedVote],
    ) -> Option<VerifiedCertificate> {
        let votes = quorum_of_votes(order.digest(), committee, votes)?;
        let certificate = Self { order: order.order().clone(), epoch: committee.epoch(), votes };
        Some(VerifiedCertificate { certificate: Arc::new(certificate), digest: order.digest() })
    }

    /// Checks all but the signatures. `known` is the digest of its order where that is known to be valid, and `nodes`
    /// are those of its votes' trees.
    pub(crate) fn prepare(
        self,
        domain: &Domain,
        committee: &Committee,
        known: Option<Digest>,
        nodes: &mut Nodes,
    ) -> Result<PendingVerification<VerifiedCertificate>, CertificateError> {
        check_quorum(self.epoch, &self.votes, committee)?;
        let (digest, of_sender) = self.order.signature_check(domain, known)?;
        let ballot = Ballot::new(domain, self.epoch, &self.order.transfer, digest);
        let mut checks = Vec::with_capacity(self.votes.len() + 1);
        checks.extend(of_sender);
        for vote in &self.votes {
            checks.push(vote.signature_check(committee, &ballot, nodes)?);
        }
        Ok(PendingVerification { value: VerifiedCertificate { certificate: Arc::new(self), digest }, checks })
    }

    /// Checks the whole certificate.
    ///
    /// # Errors
    /// If the epoch is another, the votes are not exactly a quorum in order, an order or a vote is not
    /// valid, or a signature is bad.
    pub fn verify(self, domain: &Domain, committee: &Committee) -> Result<VerifiedCertificate, CertificateError> {
        Ok(self.prepare(domain, committee, None, &mut Nodes::unremembered())?.check(domain)?)
    }
}

/// The first quorum of the votes for the order with this digest, in the order of names. `None` if they are too few.
pub(crate) fn quorum_of_votes(digest: Digest, committee: &Committee, votes: &[VerifiedVote]) -> Option<Vec<Vote>> {
    let fitting = votes.iter().filter(|vote| vote.is_for_digest(digest, committee.epoch()));
    let mut votes: Vec<Vote> = fitting.map(|vote| vote.vote().clone()).collect();
    votes.sort_by_key(|vote| vote.authority);
    votes.dedup_by_key(|vote| vote.authority);
    votes.truncate(committee.quorum());
    (votes.len() == committee.quorum()).then_some(votes)
}

/// Checks that the votes are exactly a quorum of this committee in the order of names, and not what they sign.
pub(crate) fn check_quorum(epoch: Epoch, votes: &[Vote], committee: &Committee) -> Result<(), CertificateError> {
    if epoch != committee.epoch() {
        return Err(CertificateError::WrongEpoch { expected: committee.epoch(), found: epoch });
    }
    if votes.len() != committee.quorum() {
        return Err(CertificateError::VoteCount { expected: committee.quorum(), found: votes.len() });
    }
    check_sorted(votes.iter().map(|vote| vote.authority)).map_err(CertificateError::VotesUnsorted)
}

/// A certificate with a valid quorum. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedCertificate {
    certificate: Arc<Certificate>,
    digest: Digest,
}

impl VerifiedCertificate {
    /// The certificate.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The certificate, shared with the record that is made of it.
    pub(crate) fn shared(&self) -> Arc<Certificate> {
        self.certificate.clone()
    }

    /// The order.
    #[must_use]
    pub fn transfer(&self) -> &Transfer {
        &self.certificate.order.transfer
    }

    /// The digest that the sender signed; it names the transfer.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The certificate, no longer marked as verified.
    #[must_use]
    pub fn into_certificate(self) -> Certificate {
        Arc::unwrap_or_clone(self.certificate)
    }
}

/// Why a certificate proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Signed by another committee.
    #[error("the certificate belongs to epoch {found}, the committee to epoch {expected}")]
    WrongEpoch {
        /// The committee's.
        expected: Epoch,
        /// The certificate's.
        found: Epoch,
    },
    /// Too few votes, or more than are needed.
    #[error("the certificate has {found} votes; it must have exactly {expected}")]
    VoteCount {
        /// The quorum.
        expected: usize,
        /// The number that the certificate has.
        found: usize,
    },
    /// A vote twice, or out of order.
    #[error("the vote of authority {0} is repeated or out of order; votes are sorted by authority")]
    VotesUnsorted(AuthorityName),
    /// The order in it is bad.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The private transfer in it breaks a rule by itself.
    #[error(transparent)]
    PrivateTransfer(#[from] InvalidPrivateTransfer),
    /// A vote in it is bad.
    #[error(transparent)]
    Vote(#[from] VoteError),
    /// A signature in it is bad.
    #[error(transparent)]
    Signature(#[from] BadSignature),
}

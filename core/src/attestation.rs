//! The votes of f + 1 members of the current committee that a number's certificate exists: at least one honest one of
//! them executed it, or kept it while it counted. With them, a certificate counts at any age.

use crate::Digest;
use crate::amount::{Epoch, SequenceNumber};
use crate::certificate::Certificate;
use crate::committee::{COMMITTEE_SIZE_MAX, Committee, check_sorted};
use crate::contract_vote::{ContractVote, VerifiedContractVote};
use crate::identity::{AccountId, AuthorityName};
use crate::statement::Domain;
use crate::unlock::UnlockVote;
use crate::vote::VoteError;

/// Votes that the certificate of a number exists, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attestation {
    /// The epoch of the members that vote.
    pub epoch: Epoch,
    /// Of exactly f + 1 members, in the order of their names.
    pub votes: Vec<ContractVote>,
}

/// A certificate with the votes that it exists, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestedCertificate {
    /// The certificate.
    pub certificate: Certificate,
    /// The votes.
    pub attestation: Attestation,
}

impl Attestation {
    /// So many members vote that one of them is honest.
    fn needed(committee: &Committee) -> usize {
        committee.one_honest()
    }

    /// The first f + 1 of these votes on the digest of a [`UnlockVote::Certificate`]. `None` if they are too few.
    #[must_use]
    pub fn from_votes(committee: &Committee, digest: Digest, votes: &[VerifiedContractVote]) -> Option<Self> {
        let votes = VerifiedContractVote::chosen(Self::needed(committee), committee, digest, votes)?;
        Some(Self { epoch: committee.epoch(), votes: votes.into_iter().cloned().collect() })
    }

    /// Checks the votes of this committee, which is of their epoch, for the order with this digest.
    ///
    /// # Errors
    /// If they are not exactly f + 1 in order, or one is not a member's vote on it.
    pub fn check(
        &self,
        domain: &Domain,
        committee: &Committee,
        (account, sequence): (AccountId, SequenceNumber),
        order: Digest,
    ) -> Result<(), AttestationError> {
        let expected = Self::needed(committee);
        if self.votes.len() != expected {
            return Err(AttestationError::VoteCount { expected, found: self.votes.len().min(COMMITTEE_SIZE_MAX) });
        }
        let voters = self.votes.iter().map(|vote| vote.authority);
        check_sorted(voters).map_err(AttestationError::VotesUnsorted)?;
        let digest = UnlockVote::Certificate(order).digest(domain, committee.epoch(), account, sequence);
        self.votes.iter().try_for_each(|vote| vote.clone().verify(committee, digest).map(drop).map_err(Into::into))
    }
}

/// Why votes do not show that a certificate exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttestationError {
    /// Too few votes, or more than are needed.
    #[error("{found} members vote that the certificate exists; exactly {expected} must")]
    VoteCount {
        /// One more than may be faulty.
        expected: usize,
        /// The number that came.
        found: usize,
    },
    /// A vote twice, or out of order.
    #[error("the vote of authority {0} is repeated or out of order; votes are sorted by authority")]
    VotesUnsorted(AuthorityName),
    /// A vote is bad.
    #[error(transparent)]
    Vote(#[from] VoteError),
}

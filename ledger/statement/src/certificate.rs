//! A quorum certificate: precommits of a cluster's members for one header.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Ed25519Signature, SignedDigest};

use crate::header::{Header, HeaderError};
use crate::identity::{MemberIndex, MemberKey};
use crate::members::Members;
use crate::vote::{VoteKind, VoteStatement};

/// Votes for a header, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct QuorumCertificate {
    /// The engine's round in which all of them voted.
    pub round: u32,
    /// Exactly a quorum, in the order of the members, none twice.
    pub votes: Vec<(MemberIndex, Ed25519Signature)>,
}

impl QuorumCertificate {
    /// A certificate of votes that the engine has verified: the first quorum of them in the order of members. `None` if
    /// they are too few, or one is not by a member.
    #[must_use]
    pub fn of_votes(members: &Members, round: u32, votes: &[(MemberKey, Ed25519Signature)]) -> Option<Self> {
        let named = votes.iter().map(|(key, signature)| Some((members.index(key)?, *signature)));
        let mut votes: Vec<_> = named.collect::<Option<_>>()?;
        votes.sort_by_key(|(member, _)| *member);
        votes.dedup_by_key(|(member, _)| *member);
        votes.truncate(members.quorum());
        (votes.len() == members.quorum()).then_some(Self { round, votes })
    }

    /// What a precommit for `header` in this certificate's round says.
    fn statement(&self, header: &Header) -> VoteStatement {
        VoteStatement {
            deployment: header.deployment,
            cluster: header.cluster,
            height: header.height,
            round: self.round,
            kind: VoteKind::Precommit,
            value: Some(header.id()),
        }
    }

    /// Checks all but the signatures, and gives those, in the order of the votes.
    pub(crate) fn signatures(&self, header: &Header, members: &Members) -> Result<Vec<SignedDigest>, CertificateError> {
        header.check_place(members)?;
        let (expected, found) = (members.quorum(), self.votes.len());
        if found != expected {
            return Err(CertificateError::VoteCount { expected, found });
        }
        if let Some([_, (member, _)]) = self.votes.array_windows().find(|[(a, _), (b, _)]| a >= b) {
            return Err(CertificateError::VotesUnsorted(*member));
        }
        let digest = self.statement(header).digest();
        let signed = |(member, signature): &(MemberIndex, Ed25519Signature)| {
            let key = members.key(*member).ok_or(CertificateError::UnknownMember(*member))?;
            Ok(SignedDigest { key: key.0, digest, signature: *signature })
        };
        self.votes.iter().map(signed).collect()
    }

    /// The error of the first vote whose signature is not valid.
    pub(crate) fn judge(&self, verdicts: impl IntoIterator<Item = bool>) -> Result<(), CertificateError> {
        match self.votes.iter().zip(verdicts).find(|(_, holds)| !holds) {
            Some(((member, _), _)) => Err(CertificateError::Signature(*member)),
            None => Ok(()),
        }
    }
}

/// Why a certificate proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The header is of another deployment or cluster.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// Too few votes, or more than are needed.
    #[error("the certificate has {found} votes; exactly {expected} are a quorum")]
    VoteCount {
        /// The quorum.
        expected: usize,
        /// The number that the certificate has.
        found: usize,
    },
    /// A vote twice, or out of order.
    #[error("the vote of member {0} is repeated or not in the order of members")]
    VotesUnsorted(MemberIndex),
    /// The voter is no member.
    #[error("member {0}, which should have voted, does not exist")]
    UnknownMember(MemberIndex),
    /// Not a precommit of this member for this header in this round.
    #[error("the signature of member {0} is not its precommit for this header in this round")]
    Signature(MemberIndex),
}

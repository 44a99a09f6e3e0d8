//! Votes that only the contract counts: for many redemptions at once, and for the statements of the council. Unlike
//! a vote on an order they lock nothing: an authority gives them for what it has confirmed, or for what
//! its operator has agreed to.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::Epoch;
use crate::committee::Committee;
use crate::identity::AuthorityName;
use crate::keys::AuthorityKeys;
use crate::signature::{BadSignature, EcdsaSignature, Signatory};
use crate::statement::Domain;
use crate::transfer::Redemption;
use crate::vote::VoteError;

/// One authority's vote, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ContractVote {
    /// The authority that votes.
    pub authority: AuthorityName,
    /// The signature by its secp256k1 key, on a [`Domain::redemption_batch_vote_digest`] or a
    /// [`Domain::council_digest`].
    pub signature: EcdsaSignature,
}

/// A vote under `epoch` for many redemptions, in this order. The caller has confirmed each of them.
#[must_use]
pub fn sign_batch_vote(
    keys: &AuthorityKeys,
    domain: &Domain,
    epoch: Epoch,
    redemptions: &[Redemption],
) -> ContractVote {
    let signature = keys.sign_ecdsa(domain.redemption_batch_vote_digest(epoch, redemptions));
    ContractVote { authority: keys.public().name, signature }
}

impl ContractVote {
    /// Checks the vote. `committee` is the one whose quorum the contract will count.
    ///
    /// # Errors
    /// If the authority is no member, or the signature is not by its key on this digest.
    pub fn verify(self, committee: &Committee, digest: Digest) -> Result<VerifiedContractVote, VoteError> {
        let (_, member) = committee.member(&self.authority).ok_or(VoteError::NotAMember(self.authority))?;
        if self.signature.recover(digest) != Some(member.redemption_key) {
            return Err(VoteError::Signature(BadSignature(Signatory::Authority(self.authority))));
        }
        Ok(VerifiedContractVote { vote: self, epoch: committee.epoch(), digest })
    }
}

/// A vote of a member on one digest. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedContractVote {
    vote: ContractVote,
    epoch: Epoch,
    digest: Digest,
}

impl VerifiedContractVote {
    /// The vote.
    #[must_use]
    pub fn vote(&self) -> &ContractVote {
        &self.vote
    }

    /// Whether it is a vote of this committee on this digest.
    #[must_use]
    pub fn is_for(&self, committee: &Committee, digest: Digest) -> bool {
        self.epoch == committee.epoch() && self.digest == digest
    }

    /// The first quorum of `votes` that are by this committee on this digest, as the contract reads it: 66
    /// bytes each, ascending. `None` if they are too few.
    #[must_use]
    pub fn quorum(committee: &Committee, digest: Digest, votes: &[Self]) -> Option<Vec<u8>> {
        Self::first(committee.quorum(), committee, digest, votes)
    }

    /// The same of the first `needed` votes.
    #[must_use]
    pub fn first(needed: usize, committee: &Committee, digest: Digest, votes: &[Self]) -> Option<Vec<u8>> {
        let chosen = Self::chosen(needed, committee, digest, votes)?;
        committee.pack(chosen.into_iter().map(|vote| Some((vote.authority, vote.signature))))
    }

    /// The first `needed` of `votes` that are by this committee on this digest, in the order of names, none twice. `None`
    /// if they are too few.
    pub(crate) fn chosen<'a>(
        needed: usize,
        committee: &Committee,
        digest: Digest,
        votes: &'a [Self],
    ) -> Option<Vec<&'a ContractVote>> {
        let fitting = votes.iter().filter(|vote| vote.is_for(committee, digest));
        let mut fitting: Vec<&ContractVote> = fitting.map(Self::vote).collect();
        fitting.sort_by_key(|vote| vote.authority);
        fitting.dedup_by_key(|vote| vote.authority);
        fitting.truncate(needed);
        (fitting.len() == needed).then_some(fitting)
    }
}

//! Votes: an authority's signature on a transfer order. It locks the sender's account at that
//! authority until a certificate for its sequence number is confirmed [FP §4.2].

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::Epoch;
use crate::committee::Committee;
use crate::identity::AuthorityName;
use crate::keys::AuthorityKeys;
use crate::merkle::{self, MerklePath, MerkleTree};
use crate::order::{Transfer, VerifiedOrder};
use crate::signature::{BadSignature, Deferred, EcdsaSignature, Ed25519Signature, Signatory};
use crate::statement::Domain;

/// One authority's vote, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Vote {
    /// Who votes.
    pub authority: AuthorityName,
    /// Its signature, of the kind that the transfer demands.
    pub signature: VoteSignature,
}

/// The signature of a vote.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum VoteSignature {
    /// On the Merkle root of a batch of payments.
    Payment {
        /// By the authority's Ed25519 key.
        signature: Ed25519Signature,
        /// From this payment to the root.
        path: MerklePath,
    },
    /// On one redemption, as the contract checks it.
    Redemption {
        /// By the authority's secp256k1 key.
        signature: EcdsaSignature,
    },
}

impl Vote {
    /// Checks all but the Ed25519 equation. `digest` is that of the transfer.
    ///
    /// # Errors
    /// Where the authority is no member, the vote is of the wrong kind, or its path or redemption
    /// signature does not fit.
    pub fn prepare(
        &self,
        domain: &Domain,
        committee: &Committee,
        transfer: &Transfer,
        digest: Digest,
    ) -> Result<Deferred<()>, VoteError> {
        let (_, member) = committee.member(&self.authority).ok_or(VoteError::NotAMember(self.authority))?;
        let by = Signatory::Authority(self.authority);
        let mut deferred = Deferred::new(());
        match (&self.signature, transfer) {
            (VoteSignature::Payment { signature, path }, Transfer::Payment(_)) => {
                let root = path.root(digest).ok_or(VoteError::Path(self.authority))?;
                let vote_digest = domain.payment_vote_digest(committee.epoch(), root);
                deferred.require(by, &self.authority.0, signature, vote_digest);
            }
            (VoteSignature::Redemption { signature }, Transfer::Redemption(redemption)) => {
                let vote_digest = domain.redemption_vote_digest(committee.epoch(), redemption);
                if signature.recover(vote_digest) != Some(member.redemption_key) {
                    return Err(VoteError::Signature(BadSignature(by)));
                }
            }
            _ => return Err(VoteError::WrongKind(self.authority)),
        }
        Ok(deferred)
    }

    /// Checks the whole vote, as a wallet does with each that it is given.
    ///
    /// # Errors
    /// As [`Vote::prepare`], or a bad Ed25519 signature.
    pub fn verify(
        self,
        domain: &Domain,
        committee: &Committee,
        order: &VerifiedOrder,
    ) -> Result<VerifiedVote, VoteError> {
        self.prepare(domain, committee, order.transfer(), order.digest())?.check()?;
        Ok(VerifiedVote { vote: self, epoch: committee.epoch(), digest: order.digest() })
    }
}

/// A vote of a member for one order. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedVote {
    vote: Vote,
    epoch: Epoch,
    digest: Digest,
}

impl VerifiedVote {
    /// The vote.
    #[must_use]
    pub fn vote(&self) -> &Vote {
        &self.vote
    }

    /// Whether it is for this order, in this epoch.
    #[must_use]
    pub fn is_for(&self, order: &VerifiedOrder, epoch: Epoch) -> bool {
        self.digest == order.digest() && self.epoch == epoch
    }
}

/// Why a vote does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoteError {
    /// By nobody that the committee lists.
    #[error("authority {0} is not a member of the committee")]
    NotAMember(AuthorityName),
    /// A payment's vote on a redemption, or the other way round.
    #[error("the vote of authority {0} is not of the kind that this transfer needs")]
    WrongKind(AuthorityName),
    /// The Merkle path is malformed.
    #[error("the Merkle path in the vote of authority {0} is malformed")]
    Path(AuthorityName),
    /// The signature does not fit.
    #[error(transparent)]
    Signature(#[from] BadSignature),
}

/// Votes for one transfer.
#[must_use]
pub fn sign_vote(keys: &AuthorityKeys, domain: &Domain, epoch: Epoch, transfer: &Transfer, digest: Digest) -> Vote {
    let authority = keys.public().name;
    let signature = match transfer {
        Transfer::Payment(_) => VoteSignature::Payment {
            signature: keys.sign_ed25519(domain.payment_vote_digest(epoch, merkle::leaf(digest))),
            path: MerklePath::default(),
        },
        Transfer::Redemption(redemption) => {
            VoteSignature::Redemption { signature: keys.sign_ecdsa(domain.redemption_vote_digest(epoch, redemption)) }
        }
    };
    Vote { authority, signature }
}

/// Votes for many payments with one signature, in the order of their `digests`. No votes where there
/// are no digests, or more than [`crate::MERKLE_LEAVES_MAX`].
#[must_use]
pub fn sign_payment_votes(keys: &AuthorityKeys, domain: &Domain, epoch: Epoch, digests: &[Digest]) -> Vec<Vote> {
    let Some(tree) = MerkleTree::new(digests) else { return Vec::new() };
    let signature = keys.sign_ed25519(domain.payment_vote_digest(epoch, tree.root()));
    let authority = keys.public().name;
    (0..digests.len())
        .map(|index| Vote { authority, signature: VoteSignature::Payment { signature, path: tree.path(index) } })
        .collect()
}

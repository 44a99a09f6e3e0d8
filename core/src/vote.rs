//! Votes: an authority's signature on a transfer order. It locks the sender's account at that
//! authority until a certificate for its sequence number is confirmed [FP §4.2].

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::Epoch;
use crate::committee::{Authority, Committee};
use crate::identity::AuthorityName;
use crate::keys::AuthorityKeys;
use crate::merkle::{self, MerklePath, MerkleTree, Nodes};
use crate::order::VerifiedOrder;
use crate::signature::{BadSignature, EcdsaSignature, Ed25519Signature};
use crate::signature_check::SignatureCheck;
use crate::statement::Domain;
use crate::transfer::{Redemption, Transfer};

/// One authority's vote, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Vote {
    /// The authority that votes.
    pub authority: AuthorityName,
    /// Its signature, of the kind that the transfer checks.
    pub signature: VoteSignature,
}

/// The signature of a vote.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum VoteSignature {
    /// On the Merkle root of a batch of payments.
    Payment {
        /// The authority's Ed25519 signature.
        signature: Ed25519Signature,
        /// From this payment to the root.
        path: MerklePath,
    },
    /// On one redemption, as the contract checks it.
    Redemption {
        /// The authority's secp256k1 signature.
        signature: EcdsaSignature,
    },
}

/// The statement that an authority signs to vote for a transfer. The vote on a payment or a payout also has a path.
pub(crate) enum Ballot {
    Payment { epoch: Epoch, leaf: Digest },
    Redemption { digest: Digest },
}

impl Ballot {
    /// Of a transfer that stays within FastPay, by its digest.
    pub(crate) fn payment(epoch: Epoch, digest: Digest) -> Self {
        Self::Payment { epoch, leaf: merkle::leaf(digest) }
    }

    /// `digest` is that of the transfer.
    pub(crate) fn new(domain: &Domain, epoch: Epoch, transfer: &Transfer, digest: Digest) -> Self {
        match transfer {
            Transfer::Payment(_) | Transfer::Payout(_) => Self::payment(epoch, digest),
            Transfer::Redemption(redemption) => {
                Self::Redemption { digest: domain.redemption_vote_digest(epoch, redemption) }
            }
        }
    }
}

impl Vote {
    /// Checks all but the signature, and gives what is left to check.
    pub(crate) fn signature_check(
        &self,
        committee: &Committee,
        ballot: &Ballot,
        nodes: &mut Nodes,
    ) -> Result<SignatureCheck, VoteError> {
        let authority = self.authority;
        let (_, member) = committee.member(&authority).ok_or(VoteError::NotAMember(authority))?;
        match (&self.signature, ballot) {
            (VoteSignature::Payment { signature, path }, Ballot::Payment { epoch, leaf }) => {
                let root = path.root_above(*leaf, nodes).ok_or(VoteError::Path(authority))?;
                Ok(SignatureCheck::PaymentVote { authority, epoch: *epoch, root, signature: *signature })
            }
            (VoteSignature::Redemption { signature }, Ballot::Redemption { digest }) => {
                let redemption_key = member.redemption_key;
                Ok(SignatureCheck::RedemptionVote { authority, redemption_key, digest: *digest, signature: *signature })
            }
            _ => Err(VoteError::WrongKind(authority)),
        }
    }

    /// Checks the whole vote, as a wallet does with each that it is given.
    ///
    /// # Errors
    /// If the authority is no member, the vote is of the wrong kind, its path is malformed, or the
    /// signature is bad.
    pub fn verify(
        self,
        domain: &Domain,
        committee: &Committee,
        order: &VerifiedOrder,
    ) -> Result<VerifiedVote, VoteError> {
        let ballot = Ballot::new(domain, committee.epoch(), order.transfer(), order.digest());
        self.verify_ballot(domain, committee, &ballot, order.digest())
    }

    /// Checks the whole vote for the order with this digest.
    pub(crate) fn verify_ballot(
        self,
        domain: &Domain,
        committee: &Committee,
        ballot: &Ballot,
        digest: Digest,
    ) -> Result<VerifiedVote, VoteError> {
        self.signature_check(committee, ballot, &mut Nodes::unremembered())?.check(domain)?;
        Ok(VerifiedVote { vote: self, epoch: committee.epoch(), digest })
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
        self.is_for_digest(order.digest(), epoch)
    }

    /// Whether it is for the order with this digest, in this epoch.
    pub(crate) fn is_for_digest(&self, digest: Digest, epoch: Epoch) -> bool {
        self.digest == digest && self.epoch == epoch
    }
}

/// Why a vote does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoteError {
    /// The signer is not a member of the committee.
    #[error("authority {0} is not a member of the committee")]
    NotAMember(AuthorityName),
    /// A payment's vote on a redemption, or the other way round.
    #[error("the vote of authority {0} has the wrong kind for this transfer")]
    WrongKind(AuthorityName),
    /// The Merkle path is malformed.
    #[error("the Merkle path in the vote of authority {0} is malformed")]
    Path(AuthorityName),
    /// The signature does not fit.
    #[error(transparent)]
    Signature(#[from] BadSignature),
}

/// A signature that an authority has made itself, which its [`crate::Verifier`] need not check. Only signing
/// makes one.
#[derive(Debug)]
pub struct OwnSignature(pub(crate) SignatureCheck);

/// Votes for one transfer.
#[must_use]
pub fn sign_vote(keys: &AuthorityKeys, domain: &Domain, epoch: Epoch, transfer: &Transfer, digest: Digest) -> Vote {
    match transfer {
        Transfer::Payment(_) | Transfer::Payout(_) => {
            let signature = keys.sign_ed25519(domain.payment_vote_digest(epoch, merkle::leaf(digest)));
            let signature = VoteSignature::Payment { signature, path: MerklePath::default() };
            Vote { authority: keys.public().name, signature }
        }
        Transfer::Redemption(redemption) => sign_redemption_vote(keys, domain, epoch, redemption).0,
    }
}

/// Votes for a redemption.
#[must_use]
pub fn sign_redemption_vote(
    keys: &AuthorityKeys,
    domain: &Domain,
    epoch: Epoch,
    redemption: &Redemption,
) -> (Vote, OwnSignature) {
    let Authority { name: authority, redemption_key } = keys.public();
    let digest = domain.redemption_vote_digest(epoch, redemption);
    let signature = keys.sign_ecdsa(digest);
    let vote = Vote { authority, signature: VoteSignature::Redemption { signature } };
    (vote, OwnSignature(SignatureCheck::RedemptionVote { authority, redemption_key, digest, signature }))
}

/// Votes for many payments with one signature, in the order of their `digests`. `None` if there are no
/// digests, or more than [`crate::MERKLE_LEAVES_MAX`].
#[must_use]
pub fn sign_payment_votes(
    keys: &AuthorityKeys,
    domain: &Domain,
    epoch: Epoch,
    digests: &[Digest],
) -> Option<(Vec<Vote>, OwnSignature)> {
    let tree = MerkleTree::new(digests)?;
    let (root, authority) = (tree.root(), keys.public().name);
    let signature = keys.sign_ed25519(domain.payment_vote_digest(epoch, root));
    let votes = (0..digests.len())
        .map(|index| Vote { authority, signature: VoteSignature::Payment { signature, path: tree.path(index) } })
        .collect();
    Some((votes, OwnSignature(SignatureCheck::PaymentVote { authority, epoch, root, signature })))
}

/// The votes of a redemption certificate as the contract reads them: for each vote the member's index
/// in one byte and its 65-byte signature, in ascending order of index. `None` if a vote is not by a
/// member, or not for a redemption.
#[must_use]
pub fn encode_redemption_votes(committee: &Committee, votes: &[Vote]) -> Option<Vec<u8>> {
    committee.pack(votes.iter().map(|vote| match &vote.signature {
        VoteSignature::Redemption { signature } => Some((vote.authority, *signature)),
        VoteSignature::Payment { .. } => None,
    }))
}

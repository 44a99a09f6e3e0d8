//! The signatures that make a message valid. [`PendingVerification`] holds a value and the checks that must pass
//! before anyone can take it. A wallet verifies them one by one, an authority many at once, without those that passed
//! before.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::Epoch;
use crate::identity::{AccountId, AuthorityName, PrimaryAddress};
use crate::signature::{BadSignature, EcdsaSignature, Ed25519Signature, Equation, Signatory};
use crate::statement::Domain;

/// The proof that the owner of the sender's account ordered a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum Authorization {
    /// By the key whose hash is the account.
    Ed25519 {
        /// The verification key.
        key: [u8; 32],
        /// Over the order's digest.
        signature: Ed25519Signature,
    },
    /// By the key of an Ethereum account, as `eth_signTypedData_v4` returns it.
    Ethereum {
        /// Over the order's digest.
        signature: EcdsaSignature,
    },
}

impl Authorization {
    /// Whether the key that owns `account` signed `digest`, which is of a statement of another crate.
    #[must_use]
    pub fn is_by(&self, account: AccountId, digest: Digest) -> bool {
        match self {
            Self::Ed25519 { key, signature } => {
                AccountId::from_ed25519(key) == account && Proof::Ed25519 { key, digest, signature }.holds()
            }
            Self::Ethereum { signature } => {
                Proof::Ecdsa { owner: account.ethereum_address(), digest, signature }.holds()
            }
        }
    }
}

/// A signature that a message needs, with everything that its verdict depends on apart from the deployment: equal
/// checks have equal verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SignatureCheck {
    /// The sender's, on its order. That the key owns the account has been checked.
    Order { sender: AccountId, digest: Digest, authorization: Authorization },
    /// An authority's, on the root of a batch of payments.
    PaymentVote { authority: AuthorityName, epoch: Epoch, root: Digest, signature: Ed25519Signature },
    /// An authority's, on a redemption.
    RedemptionVote {
        authority: AuthorityName,
        redemption_key: PrimaryAddress,
        digest: Digest,
        signature: EcdsaSignature,
    },
}

/// The same check on one of the two curves.
pub(crate) enum Proof<'a> {
    Ed25519 { key: &'a [u8; 32], digest: Digest, signature: &'a Ed25519Signature },
    Ecdsa { owner: Option<PrimaryAddress>, digest: Digest, signature: &'a EcdsaSignature },
}

impl SignatureCheck {
    /// The signer.
    pub(crate) fn by(&self) -> Signatory {
        match self {
            Self::Order { sender, .. } => Signatory::Sender(*sender),
            Self::PaymentVote { authority, .. } | Self::RedemptionVote { authority, .. } => {
                Signatory::Authority(*authority)
            }
        }
    }

    /// Whether it is an authority's signature.
    pub(crate) fn is_vote(&self) -> bool {
        !matches!(self, Self::Order { .. })
    }

    /// Checks this signature alone.
    pub(crate) fn check(&self, domain: &Domain) -> Result<(), BadSignature> {
        if self.proof(domain).holds() { Ok(()) } else { Err(BadSignature(self.by())) }
    }

    pub(crate) fn proof(&self, domain: &Domain) -> Proof<'_> {
        match self {
            Self::Order { digest, authorization: Authorization::Ed25519 { key, signature }, .. } => {
                Proof::Ed25519 { key, digest: *digest, signature }
            }
            Self::Order { sender, digest, authorization: Authorization::Ethereum { signature } } => {
                Proof::Ecdsa { owner: sender.ethereum_address(), digest: *digest, signature }
            }
            Self::PaymentVote { authority, epoch, root, signature } => {
                Proof::Ed25519 { key: &authority.0, digest: domain.payment_vote_digest(*epoch, *root), signature }
            }
            Self::RedemptionVote { redemption_key, digest, signature, .. } => {
                Proof::Ecdsa { owner: Some(*redemption_key), digest: *digest, signature }
            }
        }
    }
}

impl Proof<'_> {
    /// Checks this signature alone.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Ed25519 { key, digest, signature } => {
                Equation::new(key, signature, *digest).is_some_and(|equation| equation.holds())
            }
            Self::Ecdsa { owner, digest, signature } => owner.is_some() && signature.recover(*digest) == *owner,
        }
    }
}

/// A value that is valid once its checks are met.
#[derive(Debug)]
pub(crate) struct PendingVerification<T> {
    pub(crate) value: T,
    pub(crate) checks: Vec<SignatureCheck>,
}

impl<T> PendingVerification<T> {
    /// Checks each signature on its own.
    ///
    /// # Errors
    /// The first bad signature.
    pub(crate) fn check(self, domain: &Domain) -> Result<T, BadSignature> {
        self.checks.iter().try_for_each(|check| check.check(domain))?;
        Ok(self.value)
    }

    /// The same checks for another value.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> PendingVerification<U> {
        PendingVerification { value: f(self.value), checks: self.checks }
    }
}

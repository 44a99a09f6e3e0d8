//! Secret keys: an authority's pair, and an account owner's of either kind.

use std::fmt;

use ed25519_zebra::SigningKey;
use secp256k1::{PublicKey, SecretKey};

use crate::Digest;
use crate::amount::SequenceNumber;
use crate::committee::Authority;
use crate::identity::{AccountId, AuthorityName};
use crate::order::TransferOrder;
use crate::signature::{EcdsaSignature, Ed25519Signature, ethereum_address};
use crate::signature_check::Authorization;
use crate::statement::Domain;
use crate::transfer::Transfer;

/// The 32 bytes are not a secp256k1 secret key: zero, or not below the group's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these 32 bytes are not a secp256k1 secret key")]
pub struct InvalidKey;

fn ed25519_sign(key: &SigningKey, digest: Digest) -> Ed25519Signature {
    Ed25519Signature(key.sign(digest.as_slice()).to_bytes())
}

/// An authority's two keys: Ed25519 for payments, secp256k1 for redemptions (docs/PROTOCOL.md, formats).
#[derive(Clone)]
pub struct AuthorityKeys {
    voting: SigningKey,
    redemption: SecretKey,
    public: Authority,
}

impl AuthorityKeys {
    /// The keys of two 32-byte secrets.
    ///
    /// # Errors
    /// If the second is not a secp256k1 key.
    pub fn from_secrets(voting: [u8; 32], redemption: [u8; 32]) -> Result<Self, InvalidKey> {
        let voting = SigningKey::from(voting);
        let redemption = SecretKey::from_secret_bytes(redemption).map_err(|_| InvalidKey)?;
        let name = AuthorityName(voting.verification_key().into());
        let redemption_key = ethereum_address(&PublicKey::from_secret_key(&redemption));
        Ok(Self { voting, redemption, public: Authority { name, redemption_key } })
    }

    /// The public side, as the committee lists it.
    #[must_use]
    pub fn public(&self) -> Authority {
        self.public
    }

    pub(crate) fn sign_ed25519(&self, digest: Digest) -> Ed25519Signature {
        ed25519_sign(&self.voting, digest)
    }

    pub(crate) fn sign_ecdsa(&self, digest: Digest) -> EcdsaSignature {
        EcdsaSignature::sign(digest, &self.redemption)
    }
}

/// The key of an account's owner.
#[derive(Clone)]
pub enum AccountKey {
    /// Owns an Ed25519 account.
    Ed25519(Box<SigningKey>),
    /// Owns an Ethereum account.
    Ethereum(SecretKey),
}

impl AccountKey {
    /// An Ed25519 key of its 32-byte seed.
    #[must_use]
    pub fn ed25519(seed: [u8; 32]) -> Self {
        Self::Ed25519(Box::new(SigningKey::from(seed)))
    }

    /// An Ethereum key.
    ///
    /// # Errors
    /// If the bytes are not a secp256k1 key.
    pub fn ethereum(secret: [u8; 32]) -> Result<Self, InvalidKey> {
        SecretKey::from_secret_bytes(secret).map(Self::Ethereum).map_err(|_| InvalidKey)
    }

    /// The account that this key owns.
    #[must_use]
    pub fn account(&self) -> AccountId {
        match self {
            Self::Ed25519(key) => AccountId::from_ed25519(&key.verification_key().into()),
            Self::Ethereum(key) => AccountId::from_ethereum(ethereum_address(&PublicKey::from_secret_key(key))),
        }
    }

    /// The 32 secret bytes, for storing them.
    #[must_use]
    pub fn to_secret_bytes(&self) -> [u8; 32] {
        match self {
            Self::Ed25519(key) => key.to_bytes(),
            Self::Ethereum(key) => key.to_secret_bytes(),
        }
    }

    /// Signs an order to make `transfer`. That its sender is this key's account is for the caller to
    /// see to: any other order is refused by every authority.
    #[must_use]
    pub fn order(&self, domain: &Domain, transfer: Transfer) -> TransferOrder {
        let authorization = self.authorize(domain.transfer_digest(&transfer));
        TransferOrder { transfer, authorization }
    }

    /// Signs the digest of a statement.
    #[must_use]
    pub fn authorize(&self, digest: Digest) -> Authorization {
        match self {
            Self::Ed25519(key) => {
                Authorization::Ed25519 { key: key.verification_key().into(), signature: ed25519_sign(key, digest) }
            }
            Self::Ethereum(key) => Authorization::Ethereum { signature: EcdsaSignature::sign(digest, key) },
        }
    }

    /// Signs the owner's request to unlock a number, as the contract takes it: 32 bytes of an Ed25519 key and 64 of its
    /// signature, or the 65 bytes of an Ethereum signature.
    #[must_use]
    pub fn sign_unlock_request(&self, domain: &Domain, sequence: SequenceNumber) -> Vec<u8> {
        let digest = domain.unlock_request_digest(self.account(), sequence);
        match self {
            Self::Ed25519(key) => {
                let public: [u8; 32] = key.verification_key().into();
                [&public[..], &ed25519_sign(key, digest).0].concat()
            }
            Self::Ethereum(key) => EcdsaSignature::sign(digest, key).0.to_vec(),
        }
    }
}

impl fmt::Debug for AuthorityKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthorityKeys({}, secret)", self.public.name)
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountKey({}, secret)", self.account())
    }
}

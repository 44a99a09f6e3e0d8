//! Checking signatures: one predicate for Ed25519 (ZIP-215), one for secp256k1 (what Ethereum
//! recovers, low-s only).
//!
//! An Ed25519 check is first *deferred*: [`Deferred`] holds the value and the equations that must hold
//! before anyone may have it. Many of them can then be checked as one batch. Under ZIP-215 the batch
//! and the single check agree on every input; if they did not, two authorities could disagree on a
//! certificate, and redeemability would be lost (docs/PROTOCOL.md, S4).

use std::fmt;

use alloy_primitives::{Address, keccak256};
use borsh::{BorshDeserialize, BorshSerialize};
use ed25519_zebra::{Signature, VerificationKeyBytes, batch};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SecretKey};

use crate::Digest;
use crate::identity::{AccountId, AuthorityName, PrimaryAddress};

/// An Ed25519 signature: R and s, 32 bytes each.
#[derive(Clone, Copy, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Ed25519Signature(pub [u8; 64]);

/// A secp256k1 signature as Ethereum takes it: r, s (32 bytes each) and v, which is 27 or 28.
#[derive(Clone, Copy, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EcdsaSignature(pub [u8; 65]);

impl fmt::Debug for Ed25519Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&alloy_primitives::hex::encode(self.0))
    }
}

impl fmt::Debug for EcdsaSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&alloy_primitives::hex::encode(self.0))
    }
}

impl EcdsaSignature {
    /// Signs a digest. The nonce is derived from key and digest (RFC 6979), and s is low.
    #[must_use]
    pub(crate) fn sign(digest: Digest, key: &SecretKey) -> Self {
        let signature = RecoverableSignature::sign_ecdsa_recoverable(Message::from_digest(digest.0), key);
        let (recovery_id, compact) = signature.serialize_compact();
        let mut bytes = [0; 65];
        let (rs, v) = bytes.split_at_mut(64);
        rs.copy_from_slice(&compact);
        v.fill(27 + recovery_id.to_u8());
        Self(bytes)
    }

    /// The address whose key signed `digest`, or none where the signature is not one: v is neither 27
    /// nor 28, s is high (the same signature written a second way), or r is not a point.
    #[must_use]
    pub(crate) fn recover(&self, digest: Digest) -> Option<PrimaryAddress> {
        let (compact, v) = self.0.split_first_chunk::<64>()?;
        let recovery_id = match v {
            [27] => RecoveryId::Zero,
            [28] => RecoveryId::One,
            _ => return None,
        };
        let signature = RecoverableSignature::from_compact(compact, recovery_id).ok()?;
        let mut normalized = signature.to_standard();
        normalized.normalize_s();
        if normalized != signature.to_standard() {
            return None;
        }
        signature.recover(Message::from_digest(digest.0)).ok().map(|key| ethereum_address(&key))
    }
}

/// The Ethereum address of a secp256k1 public key: the last 20 bytes of its hash.
pub(crate) fn ethereum_address(key: &PublicKey) -> PrimaryAddress {
    let [_, uncompressed @ ..] = key.serialize_uncompressed();
    let hash: [u8; 32] = keccak256(uncompressed).0;
    let [_, _, _, _, _, _, _, _, _, _, _, _, address @ ..] = hash;
    Address::new(address)
}

/// Whose signature is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signatory {
    /// The sender of a transfer order.
    Sender(AccountId),
    /// An authority that voted.
    Authority(AuthorityName),
}

impl fmt::Display for Signatory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sender(account) => write!(f, "sender {account}"),
            Self::Authority(name) => write!(f, "authority {name}"),
        }
    }
}

/// A signature does not fit what it is said to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature of {0} is not valid for this statement in this deployment; sign the order again as it is")]
pub struct BadSignature(pub Signatory);

/// A value that is valid once its Ed25519 signatures are.
#[derive(Debug)]
pub struct Deferred<T> {
    value: T,
    equations: Vec<(Signatory, batch::Item)>,
}

impl<T> Deferred<T> {
    /// A value with no signature left to check.
    pub(crate) fn new(value: T) -> Self {
        Self { value, equations: Vec::new() }
    }

    /// Demands another signature.
    pub(crate) fn require(&mut self, by: Signatory, key: &[u8; 32], signature: &Ed25519Signature, digest: Digest) {
        let key = VerificationKeyBytes::from(*key);
        let item = batch::Item::from((key, Signature::from_bytes(&signature.0), digest.as_slice()));
        self.equations.push((by, item));
    }

    /// The value, for whoever adds demands to it.
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// The same demands for another value.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Deferred<U> {
        Deferred { value: f(self.value), equations: self.equations }
    }

    /// Adds the demands of another value and takes that value out.
    pub(crate) fn absorb<U>(&mut self, other: Deferred<U>) -> U {
        self.equations.extend(other.equations);
        other.value
    }

    /// Checks each signature on its own.
    ///
    /// # Errors
    /// The first bad signature.
    pub fn check(self) -> Result<T, BadSignature> {
        for (by, equation) in self.equations {
            equation.verify_single().map_err(|_| BadSignature(by))?;
        }
        Ok(self.value)
    }

    /// Checks the signatures of many values in one equation; where it does not hold, each value alone.
    /// The answers are in the order of `values` and the same as [`Deferred::check`] gives.
    pub fn check_all(values: Vec<Self>, rng: impl rand_core::CryptoRng) -> Vec<Result<T, BadSignature>> {
        let mut verifier = batch::Verifier::new();
        for (_, equation) in values.iter().flat_map(|value| &value.equations) {
            verifier.queue(equation.clone());
        }
        if values.len() > 1 && verifier.verify(rng).is_ok() {
            return values.into_iter().map(|value| Ok(value.value)).collect();
        }
        values.into_iter().map(Self::check).collect()
    }
}

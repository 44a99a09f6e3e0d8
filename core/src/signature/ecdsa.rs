//! secp256k1 signatures as Ethereum takes them.

use std::fmt;

use alloy_primitives::{Address, keccak256};
use borsh::{BorshDeserialize, BorshSerialize};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, SecretKey};

use crate::Digest;
use crate::identity::PrimaryAddress;

/// A secp256k1 signature as Ethereum takes it: r, s (32 bytes each) and v, which is 27 or 28.
#[derive(Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct EcdsaSignature(pub [u8; 65]);

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

    /// The address whose key signed `digest`, or `None` if the signature is not one: v is neither 27
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

//! Signatures: one predicate for Ed25519 (ZIP-215), one for secp256k1 (what Ethereum recovers, low-s
//! only).

#[cfg(test)]
mod agreement;
mod batch;
mod curve;
mod ecdsa;
mod ed25519;

use std::fmt;

pub(crate) use batch::Batch;
pub(crate) use curve::KeyPoint;
pub use ecdsa::EcdsaSignature;
pub(crate) use ecdsa::ethereum_address;
pub use ed25519::{Ed25519Signature, is_safe_ed25519_key};
pub(crate) use ed25519::{Equation, verify_ed25519};

use crate::identity::{AccountId, AuthorityName};

/// The kind of signature.
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

/// A signature does not match the statement that it should sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature of {0} is not valid for this statement in this deployment; sign the unchanged order again")]
pub struct BadSignature(pub Signatory);

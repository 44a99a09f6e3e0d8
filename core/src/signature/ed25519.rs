//! Ed25519 under the ZIP-215 rules: the equation is taken times the cofactor, and points need not be
//! encoded canonically. So the single check and the batch agree on every input; if they did not, two
//! authorities could disagree on a certificate, and redeemability would be lost (docs/PROTOCOL.md, S4).

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use sha2::{Digest as _, Sha512};

use crate::Digest;

/// An Ed25519 signature: R and s, 32 bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Ed25519Signature(pub [u8; 64]);

impl fmt::Debug for Ed25519Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&alloy_primitives::hex::encode(self.0))
    }
}

/// A signature is valid if 8·(s·B − R − k·A) = 0, with k the hash of R, A and the message.
#[derive(Clone, Debug)]
pub(crate) struct Equation {
    /// The encodings of A and R. The encoding of A is hashed, and identifies the key.
    pub(super) key: [u8; 32],
    pub(super) r: [u8; 32],
    pub(super) s: Scalar,
    pub(super) k: Scalar,
}

impl Equation {
    /// The equation of a signature on `digest` by the key with this encoding. None where s is not below the group's order.
    pub(crate) fn new(key: &[u8; 32], signature: &Ed25519Signature, digest: Digest) -> Option<Self> {
        let (r, s) = signature.0.split_first_chunk::<32>()?;
        let s = Option::from(Scalar::from_canonical_bytes(*s.first_chunk::<32>()?))?;
        let hash = Sha512::new().chain_update(r).chain_update(key).chain_update(digest).finalize();
        let k = Scalar::from_bytes_mod_order_wide(&hash.into());
        Some(Self { key: *key, r: *r, s, k })
    }

    /// Checks this equation alone: the cheapest way for one. It does not hold where A or R is no point.
    pub(crate) fn holds(&self) -> bool {
        match (decode(&self.key), decode(&self.r)) {
            (Some(a), Some(r)) => self.holds_with(&a, &r),
            _ => false,
        }
    }

    /// As [`Equation::holds`], with A and R decoded.
    pub(super) fn holds_with(&self, a: &EdwardsPoint, r: &EdwardsPoint) -> bool {
        vanishes(&(EdwardsPoint::vartime_double_scalar_mul_basepoint(&self.k, &-a, &self.s) - r))
    }
}

/// The point of an encoding, canonical or not. `None` if it encodes none.
pub(super) fn decode(encoding: &[u8; 32]) -> Option<EdwardsPoint> {
    CompressedEdwardsY(*encoding).decompress()
}

/// Whether this is the encoding of a verification key in whose name only its owner can sign: a point, and not of small
/// order.
#[must_use]
pub fn is_safe_ed25519_key(key: &[u8; 32]) -> bool {
    decode(key).is_some_and(|point| !point.is_small_order())
}

/// Whether the key signed `digest`.
pub(crate) fn verify_ed25519(key: &[u8; 32], signature: &Ed25519Signature, digest: Digest) -> bool {
    Equation::new(key, signature, digest).is_some_and(|equation| equation.holds())
}

/// Whether a sum of equations is zero, times the cofactor.
pub(super) fn vanishes(sum: &EdwardsPoint) -> bool {
    sum.mul_by_cofactor().is_identity()
}

//! The bytes of a proof: three points, uncompressed.

use blstrs::{G1Affine, G2Affine};
use fastpay_core::private::PROOF_BYTES;
use thiserror::Error;

use super::points::{MalformedPoint, decode_point};

/// A proof whose points are of the right groups. Whether it proves anything is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub(super) a: G1Affine,
    pub(super) b: G2Affine,
    pub(super) c: G1Affine,
}

/// Bytes that are no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MalformedProof {
    /// A point is compressed, or marked as infinite: each proof has one encoding.
    #[error("a point of the proof has flags")]
    Flags,
    /// A coordinate is not below the modulus, or a point is not on its curve or not in its group.
    #[error("a point of the proof is not in its group")]
    Point,
}

impl From<MalformedPoint> for MalformedProof {
    fn from(error: MalformedPoint) -> Self {
        match error {
            MalformedPoint::Flags => Self::Flags,
            MalformedPoint::Length | MalformedPoint::Curve | MalformedPoint::Group => Self::Point,
        }
    }
}

impl Proof {
    /// The proof of these points, by who made them.
    #[must_use]
    pub const fn new(a: G1Affine, b: G2Affine, c: G1Affine) -> Self {
        Self { a, b, c }
    }

    /// The bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PROOF_BYTES] {
        let mut bytes = [0; PROOF_BYTES];
        bytes[..96].copy_from_slice(&self.a.to_uncompressed());
        bytes[96..288].copy_from_slice(&self.b.to_uncompressed());
        bytes[288..].copy_from_slice(&self.c.to_uncompressed());
        bytes
    }

    /// The proof of these bytes.
    ///
    /// # Errors
    /// [`MalformedProof`]
    pub fn from_bytes(bytes: &[u8; PROOF_BYTES]) -> Result<Self, MalformedProof> {
        let (a, rest) = bytes.split_at(96);
        let (b, c) = rest.split_at(192);
        Ok(Self { a: decode_point(a)?, b: decode_point(b)?, c: decode_point(c)? })
    }
}

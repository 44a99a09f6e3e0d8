//! The bytes of a proof: three points, uncompressed.

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use thiserror::Error;

/// The bytes of a proof: 96, 192 and 96.
pub const PROOF_BYTES: usize = 384;

/// The bits of a point's first byte that say how it is encoded.
const FLAGS: u8 = 0b1110_0000;

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

impl Proof {
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
        let (a, rest) = bytes.split_first_chunk().expect("a proof begins with 96 bytes");
        let (b, rest) = rest.split_first_chunk().expect("192 bytes follow");
        let c = rest.first_chunk().expect("96 bytes are left");
        if (a[0] | b[0] | c[0]) & FLAGS != 0 {
            return Err(MalformedProof::Flags);
        }
        let g1 = |bytes| Option::<G1Affine>::from(G1Affine::from_uncompressed(bytes)).ok_or(MalformedProof::Point);
        let g2 = |bytes| Option::<G2Affine>::from(G2Affine::from_uncompressed(bytes)).ok_or(MalformedProof::Point);
        let proof = Self { a: g1(a)?, b: g2(b)?, c: g1(c)? };
        // The point at infinity has a flag, which is refused above.
        let infinite = proof.a.is_identity() | proof.b.is_identity() | proof.c.is_identity();
        if bool::from(infinite) { Err(MalformedProof::Point) } else { Ok(proof) }
    }
}

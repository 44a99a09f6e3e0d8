//! Ed25519 signatures that no honest signer makes.

use alloy_primitives::B256;
use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use sha2::{Digest as _, Sha512};

use super::Ed25519Signature;

/// The order of Ed25519's prime group, least significant byte first.
const ED25519_ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The same Ed25519 signature with the group's order added to s.
pub fn s_not_reduced(signature: Ed25519Signature) -> Ed25519Signature {
    let mut bytes = signature.0;
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(ED25519_ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = (sum & 0xff) as u8;
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    Ed25519Signature(bytes)
}

/// The points of small order, in all encodings that decode to one: the canonical ones, and those with
/// y not reduced or with the sign of x = 0 set.
pub fn small_order_encodings() -> Vec<[u8; 32]> {
    let canonical = EIGHT_TORSION.iter().map(|point| point.compress().to_bytes());
    let y_plus_p = |y: u8, sign: u8| {
        let mut bytes = [0xff; 32];
        bytes[0] = 0xed + y;
        bytes[31] = 0x7f | sign;
        bytes
    };
    let one_with_sign = {
        let mut bytes = [0; 32];
        (bytes[0], bytes[31]) = (1, 0x80);
        bytes
    };
    let minus_one_with_sign = {
        let mut bytes = [0xff; 32];
        bytes[0] = 0xec;
        bytes
    };
    canonical
        .chain([
            one_with_sign,
            minus_one_with_sign,
            y_plus_p(0, 0),
            y_plus_p(0, 0x80),
            y_plus_p(1, 0),
            y_plus_p(1, 0x80),
        ])
        .collect()
}

/// A key a·B + T, with T the torsion point of this number.
#[derive(Clone, Copy)]
pub struct MixedKey {
    secret: Scalar,
    torsion: EdwardsPoint,
}

impl MixedKey {
    pub fn new(secret: u64, torsion: usize) -> Self {
        Self { secret: Scalar::from(secret), torsion: EIGHT_TORSION[torsion] }
    }

    pub fn public(self) -> [u8; 32] {
        (ED25519_BASEPOINT_POINT * self.secret + self.torsion).compress().to_bytes()
    }

    /// R = r·B + T', s = r + k·a. Satisfies the equation times the cofactor, whatever T and T' are.
    pub fn sign(self, nonce: u64, nonce_torsion: usize, message: B256) -> Ed25519Signature {
        let nonce = Scalar::from(nonce);
        let r = (ED25519_BASEPOINT_POINT * nonce + EIGHT_TORSION[nonce_torsion]).compress().to_bytes();
        let hash = Sha512::new().chain_update(r).chain_update(self.public()).chain_update(message).finalize();
        let k = Scalar::from_bytes_mod_order_wide(&hash.into());
        with_parts(r, (nonce + k * self.secret).to_bytes())
    }
}

pub fn with_parts(r: [u8; 32], s: [u8; 32]) -> Ed25519Signature {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&r);
    bytes[32..].copy_from_slice(&s);
    Ed25519Signature(bytes)
}

/// Bytes that are no point: no x fits this y.
pub fn no_point() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = 2;
    assert!(curve25519_dalek::edwards::CompressedEdwardsY(bytes).decompress().is_none());
    bytes
}

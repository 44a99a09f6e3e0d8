//! Decoding and the group's operations against curve25519-dalek.

use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::CompressedEdwardsY;
use num_bigint::BigUint;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{d, p, value};
use crate::{Affine, Wide};

/// What the point's coordinates encode to; they must be a point's.
fn encoding(point: &Affine) -> [u8; 32] {
    let half: BigUint = (p() + 1_u8) >> 1;
    let (minus, plus): (BigUint, BigUint) = (value(&point.minus) % p(), value(&point.plus) % p());
    let y: BigUint = (&plus + &minus) * &half % p();
    let x: BigUint = (plus + p() - minus) * half % p();
    assert_eq!(value(&point.t2d) % p(), &x * &y * d() * 2_u8 % p());
    let (xx, yy) = (&x * &x, &y * &y);
    assert_eq!((&yy + p() * p() - &xx) % p(), (d() * &xx * &yy + 1_u8) % p());
    let mut bytes = y.to_bytes_le();
    bytes.resize(32, 0);
    bytes[31] |= u8::from(x.bit(0)) << 7;
    bytes.try_into().unwrap()
}

/// Encodings on which decoders are known to differ: all y from p on, small y, points of small order, both signs; and random ones.
pub(super) fn encodings(random: &mut StdRng) -> Vec<[u8; 32]> {
    let bytes = |number: BigUint| -> [u8; 32] {
        let mut bytes = number.to_bytes_le();
        bytes.resize(32, 0);
        bytes.try_into().unwrap()
    };
    let near_p = (0..39_u32).map(|near| bytes(p() + near - 20_u8));
    let small = (0..20_u32).map(|small| bytes(BigUint::from(small)));
    let torsion = EIGHT_TORSION.iter().map(|point| point.compress().to_bytes());
    let encodings: Vec<[u8; 32]> = near_p.chain(small).chain(torsion).collect();
    let other_sign = encodings.iter().map(|encoding| {
        let mut encoding = *encoding;
        encoding[31] ^= 0x80;
        encoding
    });
    let other_sign: Vec<[u8; 32]> = other_sign.collect();
    encodings.into_iter().chain(other_sign).chain((0..600).map(|_| random.random())).collect()
}

#[test]
fn what_is_decoded_is_what_the_library_decodes() {
    let Some(wide) = Wide::detect() else { return super::say_not_tested("decoding") };
    let encodings = encodings(&mut StdRng::seed_from_u64(5));
    // All y from p to 2²⁵⁵ − 1, with both signs, are among them.
    let not_canonical = encodings.iter().filter(|e| e[1..31] == [0xFF; 30] && e[0] >= 0xED && e[31] | 0x80 == 0xFF);
    assert_eq!(not_canonical.count(), 2 * 19);
    for length in [1, 7, 15, 16, 17, encodings.len()] {
        for encodings in encodings.windows(length).step_by(11) {
            for (encoded, found) in encodings.iter().zip(wide.decode(encodings)) {
                let expected = CompressedEdwardsY(*encoded).decompress().map(|point| point.compress().to_bytes());
                assert_eq!(found.map(|point| encoding(&point)), expected, "{encoded:x?}");
            }
        }
    }
    assert!(wide.decode(&[]).is_empty());
}

//! Verifying keys and their bytes: what is refused, and where.

use blstrs::{G1Affine, G2Affine};
use fastpay_private::*;
use group::prime::PrimeCurveAffine;

use super::kept::{KEY, PROVED, outside_g1, outside_g2};

const MAINNET: u64 = 1;
/// Where points begin: α, β, γ, δ, and those of the inputs.
const ALPHA: usize = 2;
const BETA: usize = ALPHA + 96;
const GAMMA: usize = BETA + 192;
const DELTA: usize = GAMMA + 192;
const INPUTS: usize = DELTA + 192;

fn with(bytes: &[u8], changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, change) in changes {
        bytes[*at..at + change.len()].copy_from_slice(change);
    }
    bytes
}

fn refusal(bytes: &[u8]) -> Option<KeyError> {
    VerifyingKey::from_bytes(bytes, DEVELOPMENT_CHAIN).err()
}

/// Development keys that say that a ceremony made them, with the generator as γ as those of ceremonies have it. (So
/// they verify nothing.)
fn like_a_ceremony() -> Vec<u8> {
    with(KEY.to_bytes(), &[(0, &[1]), (GAMMA, &G2Affine::generator().to_uncompressed())])
}

#[test]
fn development_keys_are_for_local_networks_only() {
    let bytes = KEY.to_bytes();
    for chain in [MAINNET, 17000, 11155111, 31338] {
        let refused = Some(KeyError::Development(DevelopmentKeysRefused(chain)));
        assert_eq!(VerifyingKey::from_bytes(bytes, chain).err(), refused);
        assert_eq!(VerifyingKey::development(KEY.points().clone(), KEY.shape(), chain).err(), refused);
    }
    // To say that they are others does not help them.
    for chain in [MAINNET, DEVELOPMENT_CHAIN] {
        let renamed = VerifyingKey::from_bytes(&with(bytes, &[(0, &[1])]), chain);
        assert_eq!(renamed.err(), Some(KeyError::NoCeremony));
    }
}

#[test]
fn a_key_is_read_as_it_was_written() {
    let (public, proof) = &PROVED[0];
    let read = VerifyingKey::from_bytes(KEY.to_bytes(), DEVELOPMENT_CHAIN).unwrap();
    assert_eq!(read.to_bytes(), KEY.to_bytes());
    assert_eq!(read.verify(public, proof), Ok(()));
    let of_ceremony = VerifyingKey::from_bytes(&like_a_ceremony(), MAINNET).unwrap();
    assert_eq!(of_ceremony.to_bytes(), like_a_ceremony());
    assert_eq!(of_ceremony.verify(public, proof), Err(InvalidProof));
}

/// A key for other inputs than its shape says would have proofs checked against a part of them.
#[test]
fn points_for_another_number_of_inputs_are_no_key() {
    let mut points = KEY.points().clone();
    points.inputs.pop();
    let development = VerifyingKey::development(points.clone(), KEY.shape(), DEVELOPMENT_CHAIN);
    assert_eq!(development.err(), Some(KeyError::Length));
    points.gamma = G2Affine::generator();
    assert_eq!(VerifyingKey::of_ceremony(points, KEY.shape()).err(), Some(KeyError::Length));
}

#[test]
fn a_verifying_key_has_one_length_for_its_committee() {
    let bytes = KEY.to_bytes();
    for end in [0, 1, 2, 100, bytes.len() - 96, bytes.len() - 1] {
        assert_eq!(refusal(&bytes[..end]), Some(KeyError::Length), "{end}");
    }
    assert_eq!(refusal(&[bytes, &[0]].concat()), Some(KeyError::Length));
    for members in [5, 255] {
        assert_eq!(refusal(&with(bytes, &[(1, &[members])])), Some(KeyError::Length));
    }
    assert_eq!(refusal(&with(bytes, &[(1, &[3])])), Some(CommitteeSize(3).into()));
    for origin in [2, 255] {
        assert_eq!(refusal(&with(bytes, &[(0, &[origin])])), Some(KeyError::Format));
    }
}

#[test]
fn malformed_points_of_a_verifying_key_are_refused_at_each_place() {
    let bytes = KEY.to_bytes();
    let refuse = |at: usize, point: &[u8], error| {
        assert_eq!(refusal(&with(bytes, &[(at, point)])), Some(KeyError::Point(error)), "{at}");
    };
    for at in [ALPHA, INPUTS, INPUTS + 96, bytes.len() - 96] {
        refuse(at, &outside_g1(), MalformedPoint::Group);
        refuse(at, &[0; 96], MalformedPoint::Curve);
        refuse(at, &G1Affine::identity().to_uncompressed(), MalformedPoint::Flags);
        refuse(at, &G1Affine::generator().to_compressed(), MalformedPoint::Flags);
    }
    for at in [BETA, GAMMA, DELTA] {
        refuse(at, &outside_g2(), MalformedPoint::Group);
        refuse(at, &[0; 192], MalformedPoint::Curve);
        refuse(at, &G2Affine::identity().to_uncompressed(), MalformedPoint::Flags);
    }
}

/// α, β and δ are 1 before anybody contributed. If δ is γ, a proof of one statement is turned into one of any other.
#[test]
fn a_key_to_which_nobody_contributed_is_refused() {
    let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
    let refuse = |at: usize, point: &[u8]| {
        let bytes = with(&like_a_ceremony(), &[(at, point)]);
        for chain in [MAINNET, DEVELOPMENT_CHAIN] {
            assert_eq!(VerifyingKey::from_bytes(&bytes, chain).err(), Some(KeyError::NoCeremony), "{at}");
        }
    };
    for point in [g1, -g1] {
        refuse(ALPHA, &point.to_uncompressed());
    }
    for point in [g2, -g2] {
        refuse(BETA, &point.to_uncompressed());
        refuse(DELTA, &point.to_uncompressed());
    }
}

#[test]
fn a_shape_says_how_many_inputs_there_are() {
    let public = &PROVED[0].0;
    assert_eq!(public.inputs().len(), Shape::of_committee(4).unwrap().inputs());
}

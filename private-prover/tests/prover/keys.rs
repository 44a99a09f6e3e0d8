//! Keys and their bytes: what is refused, and where.

use blstrs::{G1Affine, G2Affine};
use fastpay_private_prover::*;
use group::prime::PrimeCurveAffine;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};

use super::proofs::{KEY, PROVED, outside_g1, outside_g2};

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
    with(KEY.verifying().to_bytes(), &[(0, &[1]), (GAMMA, &G2Affine::generator().to_uncompressed())])
}

#[test]
fn development_keys_are_for_local_networks_only() {
    let shape = Shape::of_committee(4).unwrap();
    let (verifying, proving) = (KEY.verifying().to_bytes(), KEY.to_bytes());
    let hash = Sha256::digest(&proving).into();
    for chain in [MAINNET, 17000, 11155111, 31338] {
        let refused = DevelopmentKeysRefused(chain);
        assert_eq!(ProvingKey::development(shape, chain).err(), Some(refused));
        assert_eq!(VerifyingKey::from_bytes(verifying, chain).err(), Some(refused.into()));
        assert_eq!(ProvingKey::from_bytes(&proving, &hash, chain).err(), Some(refused.into()));
    }
    // To say that they are others does not help them.
    for chain in [MAINNET, DEVELOPMENT_CHAIN] {
        let renamed = VerifyingKey::from_bytes(&with(verifying, &[(0, &[1])]), chain);
        assert_eq!(renamed.err(), Some(KeyError::NoCeremony));
    }
}

#[test]
fn keys_are_read_as_they_were_written() {
    let (claim, proof) = &PROVED[0];
    let proving = KEY.to_bytes();
    let read = ProvingKey::from_bytes(&proving, &Sha256::digest(&proving).into(), DEVELOPMENT_CHAIN).unwrap();
    assert!(read.to_bytes() == proving);
    let verifying = VerifyingKey::from_bytes(KEY.verifying().to_bytes(), DEVELOPMENT_CHAIN).unwrap();
    assert_eq!(verifying.to_bytes(), KEY.verifying().to_bytes());
    assert_eq!(verifying.verify(&claim.public, proof), Ok(()));
    let again = read.prove(&claim.public, &claim.witness, &mut OsRng).unwrap();
    assert_eq!(verifying.verify(&claim.public, &again), Ok(()));
    let of_ceremony = VerifyingKey::from_bytes(&like_a_ceremony(), MAINNET).unwrap();
    assert_eq!(of_ceremony.to_bytes(), like_a_ceremony());
    assert_eq!(of_ceremony.verify(&claim.public, proof), Err(InvalidProof));
}

#[test]
fn a_verifying_key_has_one_length_for_its_committee() {
    let bytes = KEY.verifying().to_bytes();
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
    let bytes = KEY.verifying().to_bytes();
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
fn a_proving_key_is_the_certified_one() {
    let bytes = KEY.to_bytes();
    let certified: [u8; 32] = Sha256::digest(&bytes).into();
    let read = |bytes: &[u8], hash: &[u8; 32]| ProvingKey::from_bytes(bytes, hash, DEVELOPMENT_CHAIN).err();
    let mut altered = bytes.clone();
    altered[5_000_000] ^= 1;
    assert_eq!(read(&altered, &certified), Some(KeyError::Hash));
    assert_eq!(read(&bytes[..bytes.len() - 1], &certified), Some(KeyError::Hash));
    // Whatever is certified, other bytes than a key's are refused.
    let refusal = |bytes: &[u8]| read(bytes, &Sha256::digest(bytes).into());
    assert_eq!(refusal(&altered), Some(KeyError::Point(MalformedPoint::Curve)));
    assert_eq!(refusal(&with(&bytes, &[(0, b"x")])), Some(KeyError::Format));
    assert_eq!(refusal(b""), Some(KeyError::Format));
    assert_eq!(refusal(&[&bytes[..], &[0]].concat()), Some(KeyError::Length));
    let verifying = 16 + KEY.verifying().to_bytes().len();
    for end in [16, 17, 18, verifying, verifying + 95, verifying + 192, verifying + 194, bytes.len() - 1] {
        assert_eq!(refusal(&bytes[..end]), Some(KeyError::Length), "{end}");
    }
    assert_eq!(refusal(&with(&bytes, &[(verifying + 192, &[0xff; 4])])), Some(KeyError::Point(MalformedPoint::Curve)));
}

#[test]
fn a_shape_says_how_many_inputs_there_are() {
    let public = &PROVED[0].0.public;
    assert_eq!(public.inputs().len(), Shape::of_committee(4).unwrap().inputs());
}

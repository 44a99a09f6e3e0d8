//! Proving keys and their bytes: what is refused, and where. `fastpay-private` has the tests of verifying keys.

use fastpay_private_prover::*;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};

use super::proofs::{KEY, PROVED};

const MAINNET: u64 = 1;

fn with(bytes: &[u8], at: usize, change: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + change.len()].copy_from_slice(change);
    bytes
}

#[test]
fn development_keys_are_for_local_networks_only() {
    let shape = Shape::of_committee(4).unwrap();
    let proving = KEY.to_bytes();
    let hash = Sha256::digest(&proving).into();
    for chain in [MAINNET, 17000, 11155111, 31338] {
        let refused = DevelopmentKeysRefused(chain);
        assert_eq!(ProvingKey::development(shape, chain).err(), Some(refused));
        assert_eq!(ProvingKey::from_bytes(&proving, &hash, chain).err(), Some(refused.into()));
    }
}

#[test]
fn a_key_is_read_as_it_was_written() {
    let claim = &PROVED[0].0;
    let bytes = KEY.to_bytes();
    let read = ProvingKey::from_bytes(&bytes, &Sha256::digest(&bytes).into(), DEVELOPMENT_CHAIN).unwrap();
    assert!(read.to_bytes() == bytes);
    let again = read.prove(&claim.public, &claim.witness, &mut OsRng).unwrap();
    assert_eq!(KEY.verifying().verify(&claim.public, &again), Ok(()));
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
    assert_eq!(refusal(&with(&bytes, 0, b"x")), Some(KeyError::Format));
    assert_eq!(refusal(b""), Some(KeyError::Format));
    assert_eq!(refusal(&[&bytes[..], &[0]].concat()), Some(KeyError::Length));
    let verifying = 16 + KEY.verifying().to_bytes().len();
    for end in [16, 17, 18, verifying, verifying + 95, verifying + 192, verifying + 194, bytes.len() - 1] {
        assert_eq!(refusal(&bytes[..end]), Some(KeyError::Length), "{end}");
    }
    assert_eq!(refusal(&with(&bytes, verifying + 192, &[0xff; 4])), Some(KeyError::Point(MalformedPoint::Curve)));
}

//! A ceremony for a committee of four, from nothing to a proof of a payment.

use std::fs;

use fastpay_ceremony::{CeremonyError, Flaw, Folder, Part, Phase};
use fastpay_private_prover::*;
use rand::rngs::OsRng;

use super::scene::{Claim, Scene};
use super::silent;

/// Powers for 2^15 constraints: what the statement needs, and half of what the command makes.
const SIZE: u8 = 15;
const MAINNET: u64 = 1;

#[test]
fn a_ceremony_ends_with_keys_that_prove_payments() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    let shape = Shape::of_committee(4).unwrap();
    let keys = Phase::Keys(shape);
    folder.begin(Phase::Powers, &silent).unwrap();
    folder.contribute(Phase::Powers, "alice", b"", &silent).unwrap();
    folder.begin(keys, &silent).unwrap();
    let closed = folder.contribute(Phase::Powers, "bob", b"", &silent);
    assert!(matches!(closed, Err(CeremonyError::Closed(_))));
    let hash = folder.contribute(keys, "bob", b"", &silent).unwrap();

    let [(verifying_path, verifying_hash), (proving_path, proving_hash)] = folder.finish(shape, &silent).unwrap();
    let (verifying, proving) = (fs::read(&verifying_path).unwrap(), fs::read(&proving_path).unwrap());
    let closed = folder.contribute(keys, "carol", b"", &silent);
    assert!(matches!(closed, Err(CeremonyError::Closed(file)) if file == verifying_path));
    let verified = folder.verify(&silent).unwrap();
    assert_eq!(verified[1].keys, Some((4, Some([verifying_hash, proving_hash]))));
    assert_eq!(verified[1].transcript.contributions().last(), Some(("bob", hash)));

    // They are keys for a chain where money is real.
    let key = ProvingKey::from_bytes(&proving, &proving_hash, MAINNET).unwrap();
    let verifier = VerifyingKey::from_bytes(&verifying, MAINNET).unwrap();
    assert_eq!((verifier.to_bytes(), verifier.hash()), (&verifying[..], verifying_hash));
    let scene = Scene::new(4);
    for Claim { public, witness } in scene.claims() {
        let proof = key.prove(&public, &witness, &mut OsRng).unwrap();
        assert_eq!(verifier.verify(&public, &proof), Ok(()));
        let mut other = public.clone();
        other.withdrawn += 1;
        assert_eq!(verifier.verify(&other, &proof), Err(InvalidProof));
        assert_eq!(key.prove(&other, &witness, &mut OsRng).err(), Some(FalseStatement));
        let development = ProvingKey::development(shape, DEVELOPMENT_CHAIN).unwrap();
        assert_eq!(development.verifying().verify(&public, &proof), Err(InvalidProof));
    }

    // Killed between the two keys, `finish` is given again. A key that is another one is never replaced.
    fs::remove_file(&proving_path).unwrap();
    folder.finish(shape, &silent).unwrap();
    assert_eq!(fs::read(&proving_path).unwrap(), proving);
    let mut altered = verifying.clone();
    altered[100] ^= 1;
    fs::write(&verifying_path, &altered).unwrap();
    assert!(matches!(folder.finish(shape, &silent), Err(CeremonyError::OtherKey(file)) if file == verifying_path));
    assert!(matches!(folder.verify(&silent), Err(CeremonyError::OtherKey(file)) if file == verifying_path));
    assert_eq!(fs::read(&verifying_path).unwrap(), altered);

    // A key whose last step is altered: the file is refused, and so is the key.
    fs::remove_file(&verifying_path).unwrap();
    fs::remove_file(&proving_path).unwrap();
    let keys_path = path.path().join("keys-4");
    let mut bytes = fs::read(&keys_path).unwrap();
    let last = bytes.len() - 96;
    let (head, tail) = bytes.split_at_mut(last);
    tail.copy_from_slice(&head[last - 96..]);
    fs::write(&keys_path, &bytes).unwrap();
    let refused = folder.finish(shape, &silent);
    let index = (1 << SIZE) - 2;
    let expected = Flaw::Value { part: Part::H, index };
    assert!(matches!(refused, Err(CeremonyError::Flaw { flaw, .. }) if flaw == expected));
    assert!(!verifying_path.exists() && !proving_path.exists());
}

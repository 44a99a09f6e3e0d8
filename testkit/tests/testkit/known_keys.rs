//! Voting keys whose secrets are public: the deployment script refuses those of `script/known-voting-keys.json`.

use std::collections::BTreeSet;
use std::path::Path;

use fastpay_core::{AuthorityKeys, AuthorityName};
use fastpay_testkit::{TestCommittee, secret};

/// The secret keys of RFC 8032, section 7.1.
const PUBLISHED: [&str; 5] = [
    "0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "0x3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "0xfc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    "0x278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",
    "0xec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
];

fn key(seed: [u8; 32]) -> AuthorityName {
    AuthorityKeys::from_secrets(seed, secret(4, 0)).unwrap().public().name
}

fn known() -> BTreeSet<String> {
    let repeated = (0..=u8::MAX).map(|byte| key([byte; 32]));
    let of_testkit = (0..3).flat_map(|epoch| (0..32).map(move |member| key(secret(3, 1_000 * epoch + member))));
    let of_sdk = (0..3).flat_map(|epoch| {
        (0..10).map(move |member| key(alloy::primitives::keccak256(format!("voting epoch {epoch} {member}")).0))
    });
    let computed = repeated.chain(of_testkit).chain(of_sdk).map(|key| key.to_string());
    computed.chain(PUBLISHED.map(str::to_owned)).collect()
}

#[test]
fn every_voting_key_whose_secret_is_public_is_in_the_list_of_the_deployment_script() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../script/known-voting-keys.json");
    let known = known();
    if std::env::var_os("UPDATE_KNOWN_KEYS").is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(&known).unwrap() + "\n").unwrap();
    }
    let listed: BTreeSet<String> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(listed, known, "UPDATE_KNOWN_KEYS=1 writes it");
    let (now, next) = (TestCommittee::new(7), TestCommittee::new(7).rotated());
    for member in now.committee.members().iter().chain(next.committee.members()) {
        assert!(listed.contains(&member.name.to_string()), "{}", member.name);
    }
}

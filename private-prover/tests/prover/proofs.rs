//! Proofs: true statements have one, and false ones none.

use std::sync::LazyLock;

use fastpay_core::private::ProvenOrder;
use fastpay_private_prover::*;
use rand::Rng;
use rand::rngs::OsRng;
use serde_json::{Value, json};

use super::forgeries::{Forger, forgeries};
use super::random;
use super::scene::{Claim, Scene};
use super::transfers::{deployment, envelope};

pub static KEY: LazyLock<ProvingKey> = LazyLock::new(|| {
    ProvingKey::development(Shape::of_committee(4).unwrap(), DEVELOPMENT_CHAIN).expect("a local network")
});

/// A payment, an opening and an exit, bound to their transfers' digests, with their proofs.
pub static PROVED: LazyLock<Vec<(Claim, Proof)>> = LazyLock::new(|| {
    Scene::new(4)
        .claims()
        .map(|mut claim| {
            let transfer = envelope(&claim.public).order(&claim.public).transfer;
            claim.public.digest = field_from_hash(deployment().private_transfer_digest(&transfer).0);
            let proof = KEY.prove(&claim.public, &claim.witness, &mut OsRng).unwrap();
            (claim, proof)
        })
        .into()
});

#[test]
fn a_true_statement_is_proved() {
    for (claim, proof) in PROVED.iter() {
        assert_eq!(KEY.verifying().verify(&claim.public, proof), Ok(()));
        assert_eq!(Proof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
    }
}

#[test]
fn two_proofs_of_one_statement_have_no_point_in_common() {
    let (claim, proof) = &PROVED[0];
    let other = KEY.prove(&claim.public, &claim.witness, &mut OsRng).unwrap().to_bytes();
    let proof = proof.to_bytes();
    for range in [0..96, 96..288, 288..384] {
        assert_ne!(proof[range.clone()], other[range]);
    }
}

/// One forgery for each rule: a proof is made of it, and is not valid.
#[test]
fn a_false_statement_has_no_proof() {
    let Forger { mut made, .. } = forgeries();
    made.sort_by_key(|forgery| forgery.rule);
    made.dedup_by_key(|forgery| forgery.rule);
    assert_eq!(made.len(), Rule::ALL.len());
    // Each takes a second: three of them, chosen anew in each run.
    let random = &mut random();
    for _ in 0..3 {
        let forgery = made.swap_remove(random.gen_range(0..made.len()));
        let Claim { public, witness } = forgery.claim;
        assert_eq!(KEY.prove(&public, &witness, &mut OsRng), Err(FalseStatement), "{:?}", forgery.rule);
    }
}

/// Too few or too many keys or signatures are no proof and no panic.
#[test]
fn a_statement_of_another_shape_has_no_proof() {
    let claim = &PROVED[0].0;
    let others: [fn(&mut Claim); 8] = [
        |claim| claim.public.members.truncate(3),
        |claim| claim.public.members.push(claim.public.registrar),
        |claim| claim.witness.signers.truncate(1),
        |claim| claim.witness.signers.push(3),
        |claim| claim.witness.account_signatures.truncate(1),
        |claim| claim.witness.account_signatures.push(Signature::none()),
        |claim| claim.witness.coin_signatures.clear(),
        |claim| claim.witness.coin_signatures.push(Signature::none()),
    ];
    for (at, alter) in others.into_iter().enumerate() {
        let mut altered = claim.clone();
        alter(&mut altered);
        let proof = KEY.prove(&altered.public, &altered.witness, &mut OsRng);
        assert_eq!(proof, Err(FalseStatement), "alteration {at}");
    }
    let larger = Scene::new(7);
    let claim = larger.claim(&larger.payment());
    assert_eq!(KEY.prove(&claim.public, &claim.witness, &mut OsRng), Err(FalseStatement));
}

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/private-proof.json");

/// `vectors/private-proof.json` has three proofs for verifiers of their own. A proof is another each time, so they are
/// kept: they must verify for as long as development keys are the same, and the key's bytes are as they were.
///
/// After a change that is meant: `UPDATE_VECTORS=1 cargo test --test prover kept_proofs` (in `private-prover/`).
#[test]
fn kept_proofs_verify() {
    let hex = |bytes: &[u8]| format!("0x{}", hex::encode(bytes));
    let inputs = |claim: &Claim| -> Vec<String> {
        claim.public.inputs().into_iter().map(|input| hex(&field_to_bytes(input))).collect()
    };
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        let [first, others @ ..] = &PROVED[..] else { panic!("there are three proofs") };
        let kept = |(claim, proof): &(Claim, Proof)| {
            let order = ProvenOrder { order: envelope(&claim.public).order(&claim.public), proof: proof.to_bytes() };
            let order = hex(&borsh::to_vec(&order).unwrap());
            json!({ "inputs": inputs(claim), "order": order, "proof": hex(&proof.to_bytes()) })
        };
        let mut all = kept(first);
        all["key"] = hex(KEY.verifying().to_bytes()).into();
        all["key hash"] = hex(&KEY.verifying().hash()).into();
        all["others"] = others.iter().map(kept).collect();
        std::fs::write(VECTORS, format!("{all:#}\n")).unwrap();
    }
    let all: Value = serde_json::from_str(&std::fs::read_to_string(VECTORS).unwrap()).unwrap();
    let bytes = |value: &Value| hex::decode(value.as_str().unwrap().strip_prefix("0x").unwrap()).unwrap();
    assert_eq!(bytes(&all["key"]), KEY.verifying().to_bytes(), "development keys are the same for everybody");
    assert_eq!(bytes(&all["key hash"]), KEY.verifying().hash());
    let kept: Vec<&Value> = [&all].into_iter().chain(all["others"].as_array().unwrap()).collect();
    assert_eq!(kept.len(), PROVED.len());
    for (kept, (claim, _)) in kept.into_iter().zip(PROVED.iter()) {
        assert_eq!(json!(inputs(claim)), kept["inputs"], "the scene has a seed of its own");
        let proof = Proof::from_bytes(&bytes(&kept["proof"]).try_into().unwrap()).unwrap();
        assert_eq!(KEY.verifying().verify(&claim.public, &proof), Ok(()));
    }
}

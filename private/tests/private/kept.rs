//! The verifying key and the proofs of `vectors/private-proof.json`, which a prover made (`private-prover/`).

use std::sync::LazyLock;

use blstrs::{G1Affine, G2Affine};
use fastpay_core::private::ProvenOrder;
use fastpay_private::*;
use serde_json::Value;

use super::deployment;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/private-proof.json");

static KEPT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(&std::fs::read_to_string(PATH).unwrap()).unwrap());

/// The development key for a committee of four.
pub static KEY: LazyLock<VerifyingKey> = LazyLock::new(|| {
    let key = VerifyingKey::from_bytes(&bytes(&KEPT["key"]), DEVELOPMENT_CHAIN).unwrap();
    assert_eq!(key.hash()[..], bytes(&KEPT["key hash"]));
    key
});

/// A payment that withdraws, too, an opening of an account, and an exit.
fn kept() -> [&'static Value; 3] {
    let [opening, exit] = &KEPT["others"].as_array().unwrap()[..] else { panic!("two others") };
    [&KEPT, opening, exit]
}

/// Their public parts, and proofs.
pub static PROVED: LazyLock<[(Public, Proof); 3]> = LazyLock::new(|| {
    kept().map(|kept| {
        let proof = Proof::from_bytes(&bytes(&kept["proof"]).try_into().unwrap()).unwrap();
        (public(kept["inputs"].as_array().unwrap()), proof)
    })
});

/// The same as orders.
pub fn orders() -> [ProvenOrder; 3] {
    kept().map(|kept| {
        let order: ProvenOrder = borsh::from_slice(&bytes(&kept["order"])).unwrap();
        assert_eq!(order.proof[..], bytes(&kept["proof"]));
        order
    })
}

fn bytes(text: &Value) -> Vec<u8> {
    hex::decode(text.as_str().unwrap().strip_prefix("0x").unwrap()).unwrap()
}

/// The public part that has these inputs.
fn public(inputs: &[Value]) -> Public {
    let bytes: Vec<[u8; 32]> = inputs.iter().map(|input| bytes(input).try_into().unwrap()).collect();
    let elements: Vec<Fr> = bytes.iter().map(|bytes| field_from_bytes(bytes).unwrap()).collect();
    let keys: Vec<PublicKey> = bytes[10..].chunks_exact(2).map(|of| key(of[0], of[1])).collect();
    let public = Public {
        domain: Domain::new(&deployment().separator().0),
        asset: Asset(*bytes[1].last_chunk().unwrap()),
        account_nullifier: elements[2],
        coin_nullifier: elements[3],
        account: elements[4],
        coin: elements[5],
        withdrawn: u128::from_be_bytes(*bytes[6].last_chunk().unwrap()),
        digest: elements[7],
        period: u32::from_be_bytes(*bytes[8].last_chunk().unwrap()),
        sanctions: elements[9],
        registrar: keys[0],
        members: keys[1..].to_vec(),
    };
    assert_eq!(public.inputs(), elements);
    public
}

/// The key with these coordinates.
fn key(u: [u8; 32], mut v: [u8; 32]) -> PublicKey {
    v.reverse();
    v[31] |= u[31] << 7;
    PublicKey::from_bytes(&v).unwrap()
}

/// A point of the curve that is not in the group.
pub fn outside_g1() -> [u8; 96] {
    let point = (0_u8..).find_map(|x| {
        let mut bytes = [0; 48];
        (bytes[0], bytes[47]) = (0x80, x);
        Option::<G1Affine>::from(G1Affine::from_compressed_unchecked(&bytes))
            .filter(|point| !bool::from(point.is_torsion_free()))
    });
    point.unwrap().to_uncompressed()
}

/// The same in G2.
pub fn outside_g2() -> [u8; 192] {
    let point = (0_u8..).find_map(|x| {
        let mut bytes = [0; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        Option::<G2Affine>::from(G2Affine::from_compressed_unchecked(&bytes))
            .filter(|point| !bool::from(point.is_torsion_free()))
    });
    point.unwrap().to_uncompressed()
}

//! Proofs: true statements have one, false ones none, and neither inputs nor bytes can be altered.

use std::sync::LazyLock;

use blstrs::{G1Affine, G1Projective, G2Affine};
use fastpay_private_prover::*;
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::Rng;
use rand::rngs::OsRng;
use serde_json::{Value, json};

use super::forgeries::{Forger, forgeries};
use super::random;
use super::scene::{Claim, Scene};

pub static KEY: LazyLock<ProvingKey> = LazyLock::new(|| {
    ProvingKey::development(Shape::of_committee(4).unwrap(), DEVELOPMENT_CHAIN).expect("a local network")
});

/// A payment, an opening and an exit, with their proofs.
pub static PROVED: LazyLock<Vec<(Claim, Proof)>> = LazyLock::new(|| {
    Scene::new(4)
        .claims()
        .map(|claim| {
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

#[test]
fn a_proof_is_bound_to_every_public_input() {
    let (claim, proof) = &PROVED[0];
    let others: [fn(&mut Public); 14] = [
        |public| public.domain = Domain::new(&[0; 32]),
        |public| public.asset.0[0] ^= 1,
        |public| public.account_nullifier += Fr::ONE,
        |public| public.coin_nullifier += Fr::ONE,
        |public| public.account += Fr::ONE,
        |public| public.coin += Fr::ONE,
        |public| public.withdrawn += 1,
        |public| public.digest += Fr::ONE,
        |public| public.digest = -public.digest,
        |public| public.period += 1,
        |public| public.sanctions += Fr::ONE,
        |public| public.registrar = public.members[0],
        // Keys of members that did not sign are bound, too.
        |public| public.members[3] = public.registrar,
        |public| public.members.swap(2, 3),
    ];
    for (at, alter) in others.into_iter().enumerate() {
        let mut public = claim.public.clone();
        alter(&mut public);
        assert_eq!(KEY.verifying().verify(&public, proof), Err(InvalidProof), "alteration {at}");
    }
    for members in [3, 5] {
        let mut public = claim.public.clone();
        public.members.resize(members, public.registrar);
        assert_eq!(KEY.verifying().verify(&public, proof), Err(InvalidProof), "{members} members");
        let batch = [(&public, proof), (&claim.public, proof)];
        assert_eq!(KEY.verifying().verify_batch(&batch, &mut OsRng), [0], "{members} members");
    }
    assert_eq!(KEY.verifying().verify(&PROVED[1].0.public, proof), Err(InvalidProof), "of another transaction");
}

#[test]
fn a_batch_finds_exactly_the_invalid_ones() {
    let random = &mut random();
    let mut altered = PROVED[0].0.public.clone();
    altered.digest += Fr::ONE;
    for size in [0, 1, 2, 3, 32] {
        for count in [0, 1, 2, size] {
            let mut bad: Vec<usize> = (0..count.min(size)).map(|_| random.gen_range(0..size)).collect();
            bad.sort_unstable();
            bad.dedup();
            let claims: Vec<(&Public, &Proof)> = (0..size)
                .map(|at| {
                    let (claim, proof) = &PROVED[at % 3];
                    if bad.contains(&at) { (&altered, proof) } else { (&claim.public, proof) }
                })
                .collect();
            assert_eq!(KEY.verifying().verify_batch(&claims, random), bad, "{size}");
        }
    }
}

/// What is added to one proof and taken from another cancels out in a plain sum, and not in one with random factors.
#[test]
fn two_invalid_proofs_do_not_make_up_for_each_other() {
    let shifted = |proof: &Proof, by: G1Projective| {
        let mut bytes = proof.to_bytes();
        let c = G1Affine::from_uncompressed(bytes[288..].try_into().unwrap()).unwrap();
        bytes[288..].copy_from_slice(&(by + c).to_affine().to_uncompressed());
        Proof::from_bytes(&bytes).unwrap()
    };
    let by = G1Projective::random(&mut OsRng);
    let (claim, proof) = &PROVED[0];
    let (more, less) = (shifted(proof, by), shifted(proof, -by));
    let batch = [(&claim.public, &more), (&claim.public, &less), (&claim.public, proof)];
    assert_eq!(KEY.verifying().verify_batch(&batch, &mut OsRng), [0, 1]);
}

#[test]
fn no_byte_of_a_proof_can_be_altered() {
    let random = &mut random();
    let (claim, proof) = &PROVED[0];
    for _ in 0..200 {
        let mut bytes = proof.to_bytes();
        bytes[random.gen_range(0..PROOF_BYTES)] ^= 1 << random.gen_range(0..8);
        assert!(Proof::from_bytes(&bytes).is_err(), "a point is not on its curve");
    }
    // Points of the right groups, but other ones.
    let negative = |range: std::ops::Range<usize>| {
        let mut bytes = proof.to_bytes();
        if range.len() == 96 {
            let point = G1Affine::from_uncompressed(bytes[range.clone()].try_into().unwrap()).unwrap();
            bytes[range].copy_from_slice(&(-point).to_uncompressed());
        } else {
            let point = G2Affine::from_uncompressed(bytes[range.clone()].try_into().unwrap()).unwrap();
            bytes[range].copy_from_slice(&(-point).to_uncompressed());
        }
        Proof::from_bytes(&bytes).unwrap()
    };
    for range in [0..96, 96..288, 288..384] {
        assert_eq!(KEY.verifying().verify(&claim.public, &negative(range)), Err(InvalidProof));
    }
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

#[test]
fn malformed_points_are_refused_at_each_place() {
    let good = PROVED[0].1.to_bytes();
    let with = |at: usize, bytes: &[u8]| {
        let mut all = good;
        all[at..at + bytes.len()].copy_from_slice(bytes);
        Proof::from_bytes(&all)
    };
    let mut compressed = [0; 96];
    compressed[..48].copy_from_slice(&G1Affine::generator().to_compressed());
    for at in [0, 288] {
        assert_eq!(with(at, &outside_g1()), Err(MalformedProof::Point), "outside of the group");
        assert_eq!(with(at, &G1Affine::identity().to_uncompressed()), Err(MalformedProof::Flags));
        assert_eq!(with(at, &[0; 96]), Err(MalformedProof::Point), "(0, 0) is not on the curve");
        assert_eq!(with(at, &compressed), Err(MalformedProof::Flags));
    }
    assert_eq!(with(96, &outside_g2()), Err(MalformedProof::Point), "outside of the group");
    assert_eq!(with(96, &G2Affine::identity().to_uncompressed()), Err(MalformedProof::Flags));
    assert_eq!(with(96, &[0; 192]), Err(MalformedProof::Point));
    for at in [0, 96, 288] {
        for flag in [0x80, 0x40, 0x20] {
            assert_eq!(with(at, &[good[at] | flag]), Err(MalformedProof::Flags), "flag {flag:#x} of {at}");
        }
    }
}

/// A coordinate and the modulus together are the same number, and have room in 381 bits if the coordinate is small.
#[test]
fn a_coordinate_above_the_modulus_is_refused() {
    const MODULUS: &str =
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    let modulus = hex::decode(MODULUS).unwrap();
    let plus_modulus = |bytes: &[u8]| {
        let (mut sum, mut carry) = (bytes.to_vec(), 0);
        for (byte, other) in sum.iter_mut().zip(&modulus).rev() {
            let both = u16::from(*byte) + u16::from(*other) + carry;
            (*byte, carry) = (both as u8, both >> 8);
        }
        sum
    };
    let is_small = |bytes: &[u8]| plus_modulus(bytes)[0] < 0x20;
    let mut points = std::iter::repeat_with(|| G1Projective::random(&mut OsRng).to_affine().to_uncompressed());
    let point = points.find(|point| is_small(&point[..48]) && is_small(&point[48..])).unwrap();
    for coordinate in [0, 48] {
        let mut bytes = PROVED[0].1.to_bytes();
        bytes[..96].copy_from_slice(&point);
        assert!(Proof::from_bytes(&bytes).is_ok());
        let above = plus_modulus(&point[coordinate..coordinate + 48]);
        bytes[coordinate..coordinate + 48].copy_from_slice(&above);
        assert_eq!(Proof::from_bytes(&bytes), Err(MalformedProof::Point));
    }
}

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/private-proof.json");

/// `vectors/private-proof.json` has a proof for verifiers of their own. A proof is another each time, so it is kept: it
/// must verify for as long as development keys are the same, and their bytes are as they were.
///
/// After a change that is meant: `UPDATE_VECTORS=1 cargo test --test prover kept_proof` (in `private-prover/`).
#[test]
fn a_kept_proof_verifies() {
    let (claim, proof) = &PROVED[0];
    let hex = |bytes: &[u8]| format!("0x{}", hex::encode(bytes));
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        let inputs: Vec<String> = claim.public.inputs().into_iter().map(|input| hex(&field_to_bytes(input))).collect();
        let (key, key_hash) = (hex(KEY.verifying().to_bytes()), hex(&KEY.verifying().hash()));
        let all = json!({ "key": key, "key hash": key_hash, "inputs": inputs, "proof": hex(&proof.to_bytes()) });
        std::fs::write(VECTORS, format!("{all:#}\n")).unwrap();
    }
    let all: Value = serde_json::from_str(&std::fs::read_to_string(VECTORS).unwrap()).unwrap();
    let bytes = |value: &Value| hex::decode(value.as_str().unwrap().strip_prefix("0x").unwrap()).unwrap();
    assert_eq!(bytes(&all["key"]), KEY.verifying().to_bytes(), "development keys are the same for everybody");
    assert_eq!(bytes(&all["key hash"]), KEY.verifying().hash());
    let kept = Proof::from_bytes(&bytes(&all["proof"]).try_into().unwrap()).unwrap();
    let inputs: Vec<Fr> = all["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| field_from_bytes(&bytes(input).try_into().unwrap()).unwrap())
        .collect();
    assert_eq!(claim.public.inputs(), inputs, "the scene has a seed of its own");
    assert_eq!(KEY.verifying().verify(&claim.public, &kept), Ok(()));
}

//! The check of proofs: neither inputs nor bytes can be altered, alone or in a batch.

use blstrs::{G1Affine, G1Projective, G2Affine};
use fastpay_core::private::PROOF_BYTES;
use fastpay_private::*;
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::Rng;
use rand::rngs::OsRng;

use super::kept::{KEY, PROVED, outside_g1, outside_g2};
use super::random;

#[test]
fn kept_proofs_verify() {
    for (public, proof) in PROVED.iter() {
        assert_eq!(KEY.verify(public, proof), Ok(()));
        assert_eq!(Proof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
    }
}

#[test]
fn a_proof_is_bound_to_every_public_input() {
    let (public, proof) = &PROVED[0];
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
        let mut public = public.clone();
        alter(&mut public);
        assert_eq!(KEY.verify(&public, proof), Err(InvalidProof), "alteration {at}");
    }
    for members in [3, 5] {
        let mut other = public.clone();
        other.members.resize(members, public.registrar);
        assert_eq!(KEY.verify(&other, proof), Err(InvalidProof), "{members} members");
        let batch = [(&other, proof), (public, proof)];
        assert_eq!(KEY.verify_batch(&batch, &mut OsRng), [0], "{members} members");
    }
    assert_eq!(KEY.verify(&PROVED[1].0, proof), Err(InvalidProof), "of another transaction");
}

#[test]
fn a_batch_finds_exactly_the_invalid_ones() {
    let random = &mut random();
    let mut altered = PROVED[0].0.clone();
    altered.digest += Fr::ONE;
    for size in [0, 1, 2, 3, 32] {
        for count in [0, 1, 2, size] {
            let mut bad: Vec<usize> = (0..count.min(size)).map(|_| random.gen_range(0..size)).collect();
            bad.sort_unstable();
            bad.dedup();
            let claims: Vec<(&Public, &Proof)> = (0..size)
                .map(|at| {
                    let (public, proof) = &PROVED[at % 3];
                    if bad.contains(&at) { (&altered, proof) } else { (public, proof) }
                })
                .collect();
            assert_eq!(KEY.verify_batch(&claims, random), bad, "{size}");
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
    let (public, proof) = &PROVED[0];
    let (more, less) = (shifted(proof, by), shifted(proof, -by));
    let batch = [(public, &more), (public, &less), (public, proof)];
    assert_eq!(KEY.verify_batch(&batch, &mut OsRng), [0, 1]);
}

#[test]
fn no_byte_of_a_proof_can_be_altered() {
    let random = &mut random();
    let (public, proof) = &PROVED[0];
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
        assert_eq!(KEY.verify(public, &negative(range)), Err(InvalidProof));
    }
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

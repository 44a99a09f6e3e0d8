//! The second phase, and the keys that it ends with.

use std::sync::Arc;

use bellperson::SynthesisError;
use bellperson::groth16::{Parameters, create_random_proof, generate_parameters, prepare_verifying_key, verify_proof};
use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use fastpay_private_prover::MalformedPoint;
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::rngs::OsRng;

use super::alterations::{File, refuse_altered_bits, refuse_altered_contributions, shift, with_point};
use super::{Loose, NAMES, Other, SIZE, Toy, begun, entropy, keys, outside, powers, toy};
use crate::{Constraints, Flaw, Keys, Part, Powers, SecretName};

const HEAD: usize = 81;

fn file(keys: &Keys) -> File {
    File::split(&keys.to_bytes(), HEAD, 1)
}

fn check(bytes: &[u8], powers: &Powers) -> Result<(), Flaw> {
    Keys::from_bytes(bytes, 4, &toy())?.verify(powers, &toy())
}

fn proves(parameters: &Parameters<Bls12>, x: Scalar, y: Scalar) -> bool {
    let proof = create_random_proof(Toy { x: Some(x) }, parameters, &mut OsRng).unwrap();
    verify_proof(&prepare_verifying_key(&parameters.vk), &proof, &[y]).unwrap()
}

/// Who knows all secrets can make the keys at once. The generator is of others, so it agrees only if ours is right.
#[test]
fn keys_are_those_that_all_secrets_together_make() {
    let powers = powers(0);
    let parameters = keys(&powers, 20).parameters(&powers).unwrap();
    let [mut tau, mut alpha, mut beta, mut delta] = [Scalar::ONE; 4];
    for seed in 0..3 {
        let mut entropy = entropy(seed);
        for product in [&mut tau, &mut alpha, &mut beta] {
            *product *= entropy.secret().get();
        }
    }
    for seed in 20..23 {
        delta *= entropy(seed).secret().get();
    }
    let (g1, g2) = (G1Projective::generator(), G2Projective::generator());
    let at_once =
        generate_parameters::<Bls12, _>(Toy { x: None }, g1, g2, alpha, beta, Scalar::ONE, delta, tau).unwrap();
    assert!(parameters == at_once);
    let x = Scalar::from(7);
    assert!(proves(&parameters, x, Toy::y(x)));
    assert!(!proves(&parameters, x, Toy::y(x) + Scalar::ONE));
}

#[test]
fn each_state_from_the_first_on_is_verified() {
    let powers = powers(0);
    let mut keys = begun(&powers);
    assert_eq!(check(&keys.to_bytes(), &powers), Ok(()));
    for (name, seed) in NAMES.iter().zip(0..) {
        keys.contribute(name, entropy(seed)).unwrap();
        assert_eq!(check(&keys.to_bytes(), &powers), Ok(()));
    }
    let before = keys.to_bytes();
    assert!(matches!(keys.contribute("Carol", entropy(9)), Err(Flaw::Repeated { first: 3, .. })));
    assert_eq!(keys.to_bytes(), before);
}

#[test]
fn altered_contributions_are_refused() {
    let powers = powers(0);
    let names = [NAMES[2], NAMES[1], NAMES[0]];
    let (ours, others) = (file(&keys(&powers, 20)), file(&keys(&powers, 30)));
    let cut = Flaw::Value { part: Part::DeltaG1, index: 0 };
    refuse_altered_contributions(&ours, &others, names, &[SecretName::Delta], cut, |bytes| check(bytes, &powers));
}

#[test]
fn each_altered_point_is_named() {
    let powers = powers(0);
    let all = keys(&powers, 20);
    let points = &all.points;
    let counts = [
        (Part::DeltaG1, 1),
        (Part::DeltaG2, 1),
        (Part::A, points.a.len()),
        (Part::BG1, points.b_g1.len()),
        (Part::BG2, points.b_g2.len()),
        (Part::Inputs, points.inputs.len()),
        (Part::L, points.l.len()),
        (Part::H, points.h.len()),
    ];
    assert!(points.b_g1.len() < points.a.len(), "a variable stands in no second factor");
    let altered = file(&all);
    let [outside_g1, outside_g2] = outside();
    let mut start = 0;
    for (part, count) in counts {
        let in_g1 = !matches!(part, Part::DeltaG2 | Part::BG2);
        let size = if in_g1 { 96 } else { 192 };
        let (good, outside) = if in_g1 {
            (G1Projective::random(OsRng).to_affine().to_uncompressed().to_vec(), &outside_g1)
        } else {
            (G2Projective::random(OsRng).to_affine().to_uncompressed().to_vec(), &outside_g2)
        };
        for index in [0, 1, count / 2, count - 1].into_iter().filter(|index| *index < count) {
            let with = |point: &[u8]| check(&with_point(&altered, start + index * size, point), &powers).unwrap_err();
            assert_eq!(with(&good), Flaw::Value { part, index });
            let malformed = |error| Flaw::Point { part, index, error };
            assert_eq!(with(outside), malformed(MalformedPoint::Group));
            assert_eq!(with(&vec![0; size]), malformed(MalformedPoint::Curve));
            assert_eq!(with(&[0x40]), malformed(MalformedPoint::Flags));
        }
        start += count * size;
    }
    assert_eq!(start, altered.points.len());
}

#[test]
fn no_bit_of_a_file_can_be_altered() {
    let powers = powers(0);
    refuse_altered_bits(&keys(&powers, 20).to_bytes(), |bytes| check(bytes, &powers));
}

#[test]
fn two_false_points_do_not_make_up_for_each_other() {
    let powers = powers(0);
    let keys = keys(&powers, 20);
    for part in [Part::A, Part::BG1, Part::BG2, Part::L, Part::H] {
        let mut keys = keys.clone();
        let points = &mut keys.points;
        match part {
            Part::A => shift(&mut points.a),
            Part::BG1 => shift(&mut points.b_g1),
            Part::BG2 => shift(&mut points.b_g2),
            Part::L => shift(&mut points.l),
            _ => shift(&mut points.h),
        }
        assert_eq!(keys.verify(&powers, &toy()), Err(Flaw::Value { part, index: 1 }));
    }
    // Of the inputs there are two.
    let mut keys = keys.clone();
    let by = G1Projective::random(OsRng);
    keys.points.inputs = vec![(by + keys.points.inputs[0]).to_affine(), (-by + keys.points.inputs[1]).to_affine()];
    assert_eq!(keys.verify(&powers, &toy()), Err(Flaw::Value { part: Part::Inputs, index: 0 }));
}

/// The last contributor states δ rightly, and divides one list by something else.
#[test]
fn a_last_step_that_is_half_done_is_refused_and_proves_nothing() {
    let powers = powers(0);
    let before = keys(&powers, 20);
    let mut after = before.clone();
    after.contribute("dave", entropy(40)).unwrap();
    let x = Scalar::from(7);
    for part in [Part::L, Part::H, Part::DeltaG2] {
        let mut keys = after.clone();
        match part {
            Part::L => keys.points.l = before.points.l.clone(),
            Part::H => keys.points.h = before.points.h.clone(),
            _ => keys.delta_g2 = before.delta_g2,
        }
        assert_eq!(keys.verify(&powers, &toy()), Err(Flaw::Value { part, index: 0 }));
        assert!(!proves(&keys.parameters(&powers).unwrap(), x, Toy::y(x)), "{part}");
    }
    assert!(proves(&after.parameters(&powers).unwrap(), x, Toy::y(x)));
}

#[test]
fn two_ceremonies_make_keys_that_do_not_verify_each_other() {
    let powers = powers(0);
    let [one, two] = [20, 30].map(|seed| keys(&powers, seed).parameters(&powers).unwrap());
    assert!(one != two);
    let x = Scalar::from(7);
    let mixed = Parameters { vk: two.vk, h: Arc::clone(&one.h), ..one.clone() };
    let proof = create_random_proof(Toy { x: Some(x) }, &one, &mut OsRng).unwrap();
    let verifies =
        |key: &Parameters<Bls12>| verify_proof(&prepare_verifying_key(&key.vk), &proof, &[Toy::y(x)]).unwrap();
    assert!(verifies(&one));
    assert!(!verifies(&mixed));
}

#[test]
fn nobody_is_no_contributor() {
    let untouched = Powers::begin(SIZE);
    assert_eq!(Keys::begin(4, &untouched, &toy(), &|_| ()).err(), Some(Flaw::Nobody));
    let powers = powers(0);
    assert_eq!(begun(&powers).parameters(&powers).err(), Some(Flaw::Nobody));
}

#[test]
fn keys_of_other_powers_another_circuit_or_committee_are_refused() {
    let (ours, others) = (powers(0), powers(10));
    let keys = keys(&ours, 20);
    assert_eq!(keys.verify(&others, &toy()), Err(Flaw::Powers));
    let other = Constraints::of(Other).unwrap();
    assert_eq!(keys.verify(&ours, &other), Err(Flaw::Circuit));
    let bytes = keys.to_bytes();
    assert_eq!(Keys::from_bytes(&bytes, 4, &other).err(), Some(Flaw::Circuit));
    assert_eq!(Keys::from_bytes(&bytes, 7, &toy()).err(), Some(Flaw::Members { found: 4, expected: 7 }));
    assert_eq!(Keys::from_bytes(&ours.to_bytes(), 4, &toy()).err(), Some(Flaw::Format));
    // Another hash in the head, or another committee, gives another transcript: the proofs are bound to it.
    let mut file = file(&keys);
    file.head[16] = 7;
    let as_for_seven = Keys::from_bytes(&file.join(), 7, &toy()).unwrap();
    assert!(matches!(as_for_seven.verify(&ours, &toy()), Err(Flaw::Proof { .. })));
    file.head[16] = 4;
    file.head[17..49].copy_from_slice(&others.transcript().hash());
    assert!(matches!(check(&file.join(), &others), Err(Flaw::Proof { .. })));
}

#[test]
fn a_circuit_must_fit_and_use_all_variables() {
    let mut few = Powers::begin(5);
    few.contribute("alice", entropy(1)).unwrap();
    let too_large = Flaw::TooLarge { constraints: 44, powers: 32 };
    assert_eq!(Keys::begin(4, &few, &toy(), &|_| ()).err(), Some(too_large.clone()));
    assert_eq!(keys(&powers(0), 20).verify(&few, &toy()), Err(too_large));
    assert!(matches!(Constraints::of(Loose).err(), Some(SynthesisError::UnconstrainedVariable)));
}

/// Neutral points would satisfy the equations of L and H for a neutral δ.
#[test]
fn a_neutral_delta_is_refused() {
    let powers = powers(0);
    let mut keys = keys(&powers, 20);
    (keys.delta_g1, keys.delta_g2) = (G1Affine::identity(), G2Affine::identity());
    assert_eq!(keys.verify(&powers, &toy()), Err(Flaw::Value { part: Part::DeltaG1, index: 0 }));
    let bytes = keys.to_bytes();
    let flags = Flaw::Point { part: Part::DeltaG1, index: 0, error: MalformedPoint::Flags };
    assert_eq!(check(&bytes, &powers), Err(flags));
}

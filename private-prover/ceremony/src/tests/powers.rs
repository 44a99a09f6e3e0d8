//! The first phase.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use fastpay_private_prover::MalformedPoint;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::rngs::OsRng;

use super::alterations::{File, refuse_altered_bits, refuse_altered_contributions, shift, with_point};
use super::{NAMES, SIZE, entropy, keys, outside, powers};
use crate::{Flaw, Part, Powers, SecretName};

const HEAD: usize = 17;
const COUNT: usize = 1 << SIZE;

fn file(powers: &Powers) -> File {
    File::split(&powers.to_bytes(), HEAD, 3)
}

fn check(bytes: &[u8]) -> Result<(), Flaw> {
    Powers::from_bytes(bytes, SIZE)?.verify()
}

/// The lists of points, where each begins, and its points.
const PARTS: [(Part, usize, usize); 5] = [
    (Part::TauG1, 0, 2 * COUNT - 1),
    (Part::TauG2, 96 * (2 * COUNT - 1), COUNT),
    (Part::AlphaG1, 96 * (2 * COUNT - 1) + 192 * COUNT, COUNT),
    (Part::BetaG1, 96 * (3 * COUNT - 1) + 192 * COUNT, COUNT),
    (Part::BetaG2, 96 * (4 * COUNT - 1) + 192 * COUNT, 1),
];

#[test]
fn each_state_from_the_first_on_is_verified() {
    let mut powers = Powers::begin(SIZE);
    assert_eq!(check(&powers.to_bytes()), Ok(()));
    for (name, seed) in NAMES.iter().zip(0..) {
        powers.contribute(name, entropy(seed)).unwrap();
        assert_eq!(powers.verify(), Ok(()));
        assert_eq!(check(&powers.to_bytes()), Ok(()));
    }
    let names: Vec<&str> = powers.transcript().contributions().map(|(name, _)| name).collect();
    assert_eq!(names, NAMES);
    assert_eq!(powers.transcript().contributions().last().unwrap().1, powers.transcript().hash());
}

/// Proofs are bound to every byte of what is hashed for them, and a transcript to every byte of its contributions. So a
/// file of another version would have another hash.
#[test]
fn the_same_secrets_give_the_same_transcript() {
    let powers = powers(0);
    let hashes = [powers.transcript().hash(), keys(&powers, 20).transcript().hash()];
    let expected = [
        "7398cbf006ea811a566a0651248c311d13676423667c59d10d50632525c47ab8",
        "20b5fd7803bed1c0a0f2f8a0510ccb6a62d302e9313fbad1bfb9d927944d5c79",
    ];
    assert_eq!(hashes.map(hex::encode), expected);
}

#[test]
fn a_contributor_is_refused_before_anything_changes() {
    let mut powers = powers(0);
    let before = powers.to_bytes();
    for name in ["", "two words", "ä", &"a".repeat(65)] {
        assert_eq!(powers.contribute(name, entropy(9)), Err(Flaw::Name(4)));
    }
    for name in ["bob", "Bob"] {
        let flaw = powers.contribute(name, entropy(9)).unwrap_err();
        assert_eq!(flaw.to_string(), format!("contribution 4 ({name}): {name} contributed before, as contribution 2"));
    }
    assert_eq!(powers.to_bytes(), before);
    powers.contribute(&"a".repeat(64), entropy(9)).unwrap();
}

#[test]
fn altered_contributions_are_refused() {
    let secrets = [SecretName::Tau, SecretName::Alpha, SecretName::Beta];
    let cut = Flaw::Value { part: Part::AlphaG1, index: 0 };
    refuse_altered_contributions(&file(&powers(0)), &file(&powers(10)), NAMES, &secrets, cut, check);
}

#[test]
fn each_altered_point_is_named() {
    let powers = file(&powers(0));
    let [outside_g1, outside_g2] = outside();
    for (part, start, count) in PARTS {
        let in_g1 = matches!(part, Part::TauG1 | Part::AlphaG1 | Part::BetaG1);
        let size = if in_g1 { 96 } else { 192 };
        let (good, outside) = if in_g1 {
            (G1Projective::random(OsRng).to_affine().to_uncompressed().to_vec(), &outside_g1)
        } else {
            (G2Projective::random(OsRng).to_affine().to_uncompressed().to_vec(), &outside_g2)
        };
        for index in [0, 1, 2, count / 2, count - 1].into_iter().filter(|index| *index < count) {
            let with = |point: &[u8]| check(&with_point(&powers, start + index * size, point)).unwrap_err();
            assert_eq!(with(&good), Flaw::Value { part, index });
            let malformed = |error| Flaw::Point { part, index, error };
            assert_eq!(with(outside), malformed(MalformedPoint::Group));
            assert_eq!(with(&vec![0; size]), malformed(MalformedPoint::Curve));
            assert_eq!(with(&[0x40]), malformed(MalformedPoint::Flags));
            assert_eq!(with(&[0xc0]), malformed(MalformedPoint::Flags));
        }
    }
    assert_eq!(PARTS[4].1 + 192, powers.points.len());
}

#[test]
fn no_bit_of_a_file_can_be_altered() {
    refuse_altered_bits(&powers(0).to_bytes(), check);
}

#[test]
fn two_false_points_do_not_make_up_for_each_other() {
    let powers = powers(0);
    for part in [Part::TauG1, Part::TauG2, Part::AlphaG1, Part::BetaG1] {
        let mut powers = powers.clone();
        // The second power is checked by itself, so the shifted ones are the third and fourth.
        match part {
            Part::TauG1 => shift(&mut powers.tau_g1[1..]),
            Part::TauG2 => shift(&mut powers.tau_g2[1..]),
            Part::AlphaG1 => shift(&mut powers.alpha_g1[1..]),
            _ => shift(&mut powers.beta_g1[1..]),
        }
        assert_eq!(powers.verify(), Err(Flaw::Value { part, index: 2 }));
    }
}

/// What is neutral everywhere would be accepted by equations between sums alone.
#[test]
fn powers_of_zero_are_refused() {
    let mut zero = powers(0);
    zero.tau_g1 = vec![G1Affine::identity(); zero.tau_g1.len()];
    zero.tau_g2 = vec![G2Affine::identity(); zero.tau_g2.len()];
    assert_eq!(zero.verify(), Err(Flaw::Value { part: Part::TauG1, index: 0 }));
    zero.tau_g1[0] = G1Affine::generator();
    zero.tau_g2[0] = G2Affine::generator();
    assert_eq!(zero.verify(), Err(Flaw::Value { part: Part::TauG1, index: 1 }));
}

/// Powers that are well-formed, of a τ that nobody contributed.
#[test]
fn powers_of_another_tau_are_refused() {
    let mut mixed = powers(0);
    let other = powers(10);
    mixed.tau_g2 = other.tau_g2.clone();
    assert_eq!(mixed.verify(), Err(Flaw::Value { part: Part::TauG2, index: 1 }));
    mixed.tau_g1 = other.tau_g1.clone();
    assert_eq!(mixed.verify(), Err(Flaw::Value { part: Part::TauG1, index: 1 }));
    let mut mixed = powers(0);
    mixed.beta_g2 = other.beta_g2;
    assert_eq!(mixed.verify(), Err(Flaw::Value { part: Part::BetaG2, index: 0 }));
}

#[test]
fn powers_of_another_size_are_refused() {
    let bytes = Powers::begin(5).to_bytes();
    assert_eq!(Powers::from_bytes(&bytes, SIZE).err(), Some(Flaw::Size { found: 5, expected: 6 }));
}

#[test]
fn two_ceremonies_have_no_hash_and_no_power_in_common() {
    let (one, two) = (powers(0), powers(10));
    assert_ne!(one.transcript().hash(), two.transcript().hash());
    assert!(one.tau_g1.iter().zip(&two.tau_g1).skip(1).all(|(one, two)| one != two));
}

//! Sums against curve25519-dalek, exactly: not only times the cofactor.

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::wide_test;
use crate::point::{Affine, Points};
use crate::sum::{BYTES_FROM_POINTS, difference, sum, vanishes_times_8};
use crate::{Relation, Wide};

/// Σ dᵢ·256ⁱ times the point, as an integer: modulo the group's order it would be another multiple of a point of mixed order.
fn times(point: EdwardsPoint, digits: &[i8; 16]) -> EdwardsPoint {
    let shifted = u128::from_le_bytes(digits.map(|digit| digit.cast_unsigned() ^ 128));
    let zero = u128::from_le_bytes([128; 16]);
    match shifted.checked_sub(zero) {
        Some(positive) => point * Scalar::from(positive),
        None => -point * Scalar::from(zero - shifted),
    }
}

fn affine(points: &[EdwardsPoint]) -> Vec<Affine> {
    let encodings: Vec<[u8; 32]> = points.iter().map(|point| point.compress().to_bytes()).collect();
    Wide::detect().unwrap().decode(&encodings).into_iter().map(Option::unwrap).collect()
}

/// Points in the group of prime order, of mixed and of small order, zero, and such that cancel one another.
fn point(random: &mut StdRng, earlier: &[EdwardsPoint]) -> EdwardsPoint {
    let torsion = EIGHT_TORSION[random.random_range(0..8)];
    let multiple = ED25519_BASEPOINT_POINT * Scalar::from_bytes_mod_order(random.random());
    match (random.random_range(0..8), earlier.last()) {
        (0, _) => torsion,
        (1, Some(last)) => *last,
        (2, Some(last)) => -last,
        (3, _) => multiple,
        (4, _) => EdwardsPoint::identity(),
        _ => multiple + torsion,
    }
}

fn scalar(random: &mut StdRng) -> Scalar {
    match random.random_range(0..8) {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        // Digits of −128 and 127.
        3 => Scalar::from_bytes_mod_order([[0x80, 0x7F][random.random_range(0..2)]; 32]),
        4 => Scalar::from(random.random::<u64>()),
        _ => Scalar::from_bytes_mod_order(random.random()),
    }
}

fn digits(random: &mut StdRng) -> [i8; 16] {
    match random.random_range(0..6) {
        0 => [-128; 16],
        1 => [127; 16],
        2 => [0; 16],
        3 => std::array::from_fn(|_| [-128, -120, -8, -1, 0, 1, 7, 8, 120, 127][random.random_range(0..10)]),
        _ => random.random::<[u8; 16]>().map(u8::cast_signed),
    }
}

#[target_feature(enable = "avx512dq,avx512ifma")]
fn check(random: &mut StdRng, long: usize, short: usize) {
    let mut points = Vec::new();
    for _ in 0..long + short {
        points.push(point(random, &points));
    }
    let decoded = affine(&points);
    let scalars: Vec<Scalar> = (0..long).map(|_| scalar(random)).collect();
    let digits: Vec<[i8; 16]> = (0..short).map(|_| digits(random)).collect();
    let expected: EdwardsPoint = points.iter().zip(&scalars).map(|(point, scalar)| point * scalar).sum();
    let expected = points[long..]
        .iter()
        .zip(&digits)
        .map(|(point, digits)| times(*point, digits))
        .fold(expected, |sum, term| sum + term);
    let (long_points, short_points) = decoded.split_at(long);
    let long_terms: Vec<_> = long_points.iter().copied().zip(scalars.iter().map(Scalar::to_bytes)).collect();
    let short_terms: Vec<_> = short_points.iter().copied().zip(digits).collect();
    let found = sum(&long_terms, &short_terms);
    let expected_point = affine(&[expected])[0];
    let expected_sum = sum(&[(expected_point, Scalar::ONE.to_bytes())], &[]);
    let zero = difference(&found, &expected_sum);
    assert_eq!(Points::read([&zero; 8]).is_identity(), 0xFF, "{long} long and {short} short ones");
    assert_eq!(Points::read([&found; 8]).is_identity() == 0xFF, expected == EdwardsPoint::identity());
    assert_eq!(vanishes_times_8(&found), expected.mul_by_cofactor() == EdwardsPoint::identity());
}

wide_test! {
    fn a_sum_is_the_librarys() {
        let seed = rand::rng().random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for size in 0..40 {
            check(&mut random, size, 0);
            check(&mut random, 0, size);
            check(&mut random, size, size);
        }
        // Where buckets become those of bytes.
        let change = BYTES_FROM_POINTS;
        let half = change / 2;
        for (long, short) in
            [(half - 1, half), (half, half), (change - 1, 0), (change, 0), (0, change - 1), (0, change), (500, 501)]
        {
            check(&mut random, long, short);
        }
    }
}

wide_test! {
    /// All points into one bucket of each lane, again and again: the same point, and one and its negative in turn.
    fn repeated_and_cancelling_points_are_added_rightly() {
        for point in [ED25519_BASEPOINT_POINT, EIGHT_TORSION[1], EIGHT_TORSION[4], EdwardsPoint::identity()] {
            let [plus, minus] = [point, -point].map(|point| affine(&[point])[0]);
            for count in [2, 3, 8, 64, 400] {
                let same = vec![(plus, [1; 16]); count];
                let expected = affine(&[times(point, &[1; 16]) * Scalar::from(count as u64)])[0];
                let expected = sum(&[(expected, Scalar::ONE.to_bytes())], &[]);
                let zero = difference(&sum(&[], &same), &expected);
                assert_eq!(Points::read([&zero; 8]).is_identity(), 0xFF);
                let turns: Vec<_> = (0..count / 2).flat_map(|_| [(plus, [-128; 16]), (minus, [-128; 16])]).collect();
                assert_eq!(Points::read([&sum(&[], &turns); 8]).is_identity(), 0xFF);
            }
        }
    }
}

#[test]
#[should_panic(expected = "below 2²⁵³")]
fn a_scalar_that_is_too_large_is_refused() {
    let Some(wide) = Wide::detect() else { panic!("NOT TESTED, no AVX-512 IFMA; a scalar is below 2²⁵³") };
    let point = affine(&[ED25519_BASEPOINT_POINT])[0];
    let mut scalar = [0; 32];
    scalar[31] = 0x20;
    let _ = wide.sum(&[(point, scalar)], &[]);
}

wide_test! {
    fn each_relation_is_judged_by_itself() {
        let seed = rand::rng().random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let wide = Wide::detect().unwrap();
        let base = affine(&[ED25519_BASEPOINT_POINT])[0];
        for count in (0..20).chain([64]) {
            let mut relations = Vec::new();
            let mut expected = Vec::new();
            for _ in 0..count {
                let (secret, nonce, k) = (scalar(&mut random), scalar(&mut random), scalar(&mut random));
                let torsion = [0, 1].map(|_| EIGHT_TORSION[random.random_range(0..8)]);
                let a = ED25519_BASEPOINT_POINT * secret + torsion[0];
                let r = ED25519_BASEPOINT_POINT * nonce + torsion[1];
                // Good, or with any other s.
                let right = nonce + k * secret;
                let s = if random.random() { right } else { scalar(&mut random) };
                expected.push(s == right);
                let [r, a] = [affine(&[r])[0], affine(&[a])[0]];
                relations.push(Relation { r, a, k: k.to_bytes(), s: s.to_bytes() });
            }
            assert_eq!(wide.each_vanishes_times_8(&base, &relations), expected, "{count} of them");
        }
    }
}

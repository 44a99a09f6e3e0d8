//! The curve arithmetic of the batch equation, in two implementations with equal results: eight points at a time on
//! processors with AVX-512 IFMA ([`Wide`]), and one by one everywhere ([`OneByOne`]).

use std::sync::LazyLock;

use curve25519_dalek::constants::{ED25519_BASEPOINT_COMPRESSED, ED25519_BASEPOINT_POINT};
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use fastpay_curve::{Affine, Relation, Wide};

use super::ed25519::{Equation, decode, vanishes};

/// A random number z that an equation is multiplied by, one of 2¹²⁸.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coefficient {
    /// The random bytes that determine z.
    random: [u8; 16],
    pub(super) z: Scalar,
}

/// A key's decoded point, in the form of one implementation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyPoint {
    OneByOne(EdwardsPoint),
    Wide(Affine),
}

/// Points, and sums of multiples of them.
pub(super) trait Curve: Copy {
    /// A decoded point.
    type Point: Copy;
    /// A sum of multiples.
    type Sum;

    /// Whether points are remembered in this form rather than in the other.
    const SUPERSEDES: bool;

    /// Up to this many equations are judged faster singly than by a sum.
    const EACH_MAX: usize;

    /// The base point B.
    fn base(self) -> Self::Point;

    /// The points of encodings under the rules of ZIP-215; none for an encoding that is not a point.
    fn decode(self, encodings: &[[u8; 32]]) -> Vec<Option<Self::Point>>;

    /// The point to be remembered.
    fn remember(point: Self::Point) -> KeyPoint;

    /// The point of what was remembered, if it is in this form.
    fn remembered(point: &KeyPoint) -> Option<Self::Point>;

    /// A coefficient from random bytes. Different bytes give different ones.
    fn coefficient(self, random: [u8; 16]) -> Coefficient;

    /// Σ scalar · point + Σ z · point.
    fn sum(self, long: &[(Self::Point, Scalar)], short: &[(Self::Point, &Coefficient)]) -> Self::Sum;

    /// `a` − `b`.
    fn difference(self, a: &Self::Sum, b: &Self::Sum) -> Self::Sum;

    /// Which of these equations hold, with their points A and R.
    fn each_holds(self, equations: &[(&Equation, Self::Point, Self::Point)]) -> Vec<bool>;

    /// Whether the sum is zero, times the cofactor.
    fn vanishes(self, sum: &Self::Sum) -> bool;
}

/// The library's arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneByOne;

/// From this many terms on the library sorts them into buckets (Pippenger) and makes no table for each
/// (Straus).
const BUCKETS_FROM_TERMS: usize = 190;
/// From this many different keys on buckets are cheaper already, since the tables of so many long terms do not
/// fit into the fastest cache: by a fifth at 80 keys, measured with AVX2 and with AVX-512. Terms that are zero,
/// which cost next to nothing, then make up the number.
const BUCKETS_FROM_KEYS: usize = 64;

impl Curve for OneByOne {
    type Point = EdwardsPoint;
    type Sum = EdwardsPoint;

    const SUPERSEDES: bool = false;
    const EACH_MAX: usize = 1;

    fn base(self) -> EdwardsPoint {
        ED25519_BASEPOINT_POINT
    }

    fn decode(self, encodings: &[[u8; 32]]) -> Vec<Option<EdwardsPoint>> {
        encodings.iter().map(decode).collect()
    }

    fn remember(point: EdwardsPoint) -> KeyPoint {
        KeyPoint::OneByOne(point)
    }

    fn remembered(point: &KeyPoint) -> Option<EdwardsPoint> {
        if let KeyPoint::OneByOne(point) = point { Some(*point) } else { None }
    }

    fn coefficient(self, random: [u8; 16]) -> Coefficient {
        Coefficient { random, z: Scalar::from(u128::from_le_bytes(random)) }
    }

    fn sum(self, long: &[(EdwardsPoint, Scalar)], short: &[(EdwardsPoint, &Coefficient)]) -> EdwardsPoint {
        // One of the long terms is the base point's.
        let padding = if long.len() <= BUCKETS_FROM_KEYS { 0 } else { BUCKETS_FROM_TERMS };
        let missing = padding.saturating_sub(long.len() + short.len());
        let nothing = std::iter::repeat_n((EdwardsPoint::identity(), Scalar::ZERO), missing);
        let short = short.iter().map(|(point, coefficient)| (*point, coefficient.z));
        let (points, scalars): (Vec<_>, Vec<_>) = long.iter().copied().chain(short).chain(nothing).unzip();
        EdwardsPoint::vartime_multiscalar_mul(scalars, points)
    }

    fn difference(self, a: &EdwardsPoint, b: &EdwardsPoint) -> EdwardsPoint {
        a - b
    }

    fn each_holds(self, equations: &[(&Equation, EdwardsPoint, EdwardsPoint)]) -> Vec<bool> {
        equations.iter().map(|(equation, a, r)| equation.holds_with(a, r)).collect()
    }

    fn vanishes(self, sum: &EdwardsPoint) -> bool {
        vanishes(sum)
    }
}

/// Σ 128·256ⁱ for the 16 digits of a short scalar.
const DIGITS_OFFSET: u128 = u128::from_le_bytes([128; 16]);

impl Curve for Wide {
    type Point = Affine;
    type Sum = fastpay_curve::Point;

    const SUPERSEDES: bool = true;
    const EACH_MAX: usize = 8;

    fn base(self) -> Affine {
        static BASE: LazyLock<Option<Affine>> =
            LazyLock::new(|| Wide::detect()?.decode(&[ED25519_BASEPOINT_COMPRESSED.to_bytes()]).pop().flatten());
        BASE.expect("the base point is a point, and there is a `Wide`")
    }

    fn decode(self, encodings: &[[u8; 32]]) -> Vec<Option<Affine>> {
        Wide::decode(self, encodings)
    }

    fn remember(point: Affine) -> KeyPoint {
        KeyPoint::Wide(point)
    }

    fn remembered(point: &KeyPoint) -> Option<Affine> {
        if let KeyPoint::Wide(point) = point { Some(*point) } else { None }
    }

    /// The bytes are z's digits to base 256, from −128 to 127: each of 2¹²⁸ numbers is as likely, and none needs a
    /// seventeenth digit.
    fn coefficient(self, random: [u8; 16]) -> Coefficient {
        let shifted = u128::from_le_bytes(random.map(|byte| byte ^ 128));
        Coefficient { random, z: Scalar::from(shifted) - Scalar::from(DIGITS_OFFSET) }
    }

    fn sum(self, long: &[(Affine, Scalar)], short: &[(Affine, &Coefficient)]) -> fastpay_curve::Point {
        let long: Vec<_> = long.iter().map(|(point, scalar)| (*point, scalar.to_bytes())).collect();
        let digits = |coefficient: &Coefficient| coefficient.random.map(u8::cast_signed);
        let short: Vec<_> = short.iter().map(|(point, coefficient)| (*point, digits(coefficient))).collect();
        Wide::sum(self, &long, &short)
    }

    fn difference(self, a: &fastpay_curve::Point, b: &fastpay_curve::Point) -> fastpay_curve::Point {
        Wide::difference(self, a, b)
    }

    fn each_holds(self, equations: &[(&Equation, Affine, Affine)]) -> Vec<bool> {
        let relation = |(equation, a, r): &(&Equation, Affine, Affine)| {
            let (k, s) = (equation.k.to_bytes(), equation.s.to_bytes());
            Relation { r: *r, a: *a, k, s }
        };
        let relations: Vec<Relation> = equations.iter().map(relation).collect();
        self.each_vanishes_times_8(&self.base(), &relations)
    }

    fn vanishes(self, sum: &fastpay_curve::Point) -> bool {
        self.vanishes_times_8(sum)
    }
}

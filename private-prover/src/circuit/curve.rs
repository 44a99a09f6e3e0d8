//! Points of Jubjub as two wires, and sums of them.
//!
//! The law of addition is complete on this curve: it has no exceptions, and no denominator is 0. All points come from
//! constants and from keys that were checked before they became public inputs, so they are on the curve.

use std::sync::LazyLock;

use bellpepper_core::ConstraintSystem;
use fastpay_private::Fr;
use fastpay_private::parts::{DIGITS, GENERATOR, coordinate};
use ff::Field;
use jubjub::{AffinePoint, ExtendedPoint};

use super::wire::{Made, Wire, product, quotient};

/// The curve is −u² + v² = 1 + d·u²·v², with this d.
static D: LazyLock<Fr> =
    LazyLock::new(|| -(Fr::from(10240) * Option::<Fr>::from(Fr::from(10241).invert()).expect("10241 is not 0")));

/// A point.
#[derive(Clone)]
pub(super) struct Point {
    pub u: Wire,
    pub v: Wire,
}

impl Point {
    /// The sum of two points, in six constraints. The point that occurs in several sums stands at `other`: what stands
    /// there costs more, but once.
    pub fn add<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS, name: &str, other: &Self) -> Made<Self> {
        let cs = &mut cs.namespace(|| name);
        let all = product(cs, "(u + v)(u' + v')", &(self.u.clone() + &self.v), &(other.u.clone() + &other.v))?;
        let uv = product(cs, "u·v'", &self.u, &other.v)?;
        let vu = product(cs, "v·u'", &self.v, &other.u)?;
        let d = product(cs, "d·u·v·u'·v'", &(uv.clone() * *D), &vu)?;
        let cross = uv + &vu;
        let u = quotient(cs, "u of sum", &cross, &(Wire::one() + &d))?;
        let v = quotient(cs, "v of sum", &(all - &cross), &(Wire::one() - &d))?;
        Ok(Self { u, v })
    }

    /// Twice the point, in five constraints.
    pub fn double<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS, name: &str) -> Made<Self> {
        let cs = &mut cs.namespace(|| name);
        let sum = self.u.clone() + &self.v;
        let all = product(cs, "(u + v)²", &sum, &sum)?;
        let uv = product(cs, "u·v", &self.u, &self.v)?;
        let d = product(cs, "d·u²·v²", &(uv.clone() * *D), &uv)?;
        let cross = uv * Fr::from(2);
        let u = quotient(cs, "u of double", &cross, &(Wire::one() + &d))?;
        let v = quotient(cs, "v of double", &(all - &cross), &(Wire::one() - &d))?;
        Ok(Self { u, v })
    }
}

/// For each digit to the base 8, the coordinates of 1, 3, 5 and 7 times its unit.
static ODD_MULTIPLES: LazyLock<Vec<[[Fr; 2]; 4]>> = LazyLock::new(|| {
    let coordinates = |point: ExtendedPoint| {
        let affine = AffinePoint::from(point);
        [coordinate(affine.get_u()), coordinate(affine.get_v())]
    };
    std::iter::successors(Some(*GENERATOR), |unit| Some(unit.double().double().double()))
        .take(DIGITS)
        .map(|unit| {
            let third = unit + unit.double();
            [unit, third, third + unit.double(), third + third + unit].map(coordinates)
        })
        .collect()
});

/// A multiple of the generator. Each digit, in three bits, is one of ±1, ±3, ±5, ±7: two bits choose, the last is the
/// sign. Every multiple can be written so: see `Signature::digits`.
pub(super) fn multiple_of_generator<CS: ConstraintSystem<Fr>>(cs: &mut CS, bits: &[Wire]) -> Made<Point> {
    let cs = &mut cs.namespace(|| "multiple of the generator");
    let mut sum: Option<Point> = None;
    for (at, (digit, choices)) in bits.chunks_exact(3).zip(ODD_MULTIPLES.iter()).enumerate() {
        let cs = &mut cs.namespace(|| format!("digit {at}"));
        let [low, high, sign] = digit else { unreachable!("a digit has three bits") };
        let both = product(cs, "both", low, high)?;
        let [one, three, five, seven] = choices;
        let chosen = |coordinate: fn(&[Fr; 2]) -> Fr| {
            let [one, three, five, seven] = [one, three, five, seven].map(coordinate);
            Wire::constant(one)
                + &(low.clone() * (three - one))
                + &(high.clone() * (five - one))
                + &(both.clone() * (seven - five - three + one))
        };
        let u = product(cs, "signed u", &chosen(|[u, _]| *u), &sign.sign())?;
        let point = Point { u, v: chosen(|[_, v]| *v) };
        sum = Some(match sum {
            None => point,
            Some(sum) => sum.add(cs, "sum", &point)?,
        });
    }
    Ok(sum.expect("there are digits"))
}

/// 4^i times a point and three times that, for as many i as a challenge has pairs of bits.
pub(super) struct Table(Vec<[Point; 2]>);

/// Bits of a challenge.
pub(super) const CHALLENGE_BITS: usize = 128;

impl Table {
    pub fn of<CS: ConstraintSystem<Fr>>(cs: &mut CS, point: Point) -> Made<Self> {
        let cs = &mut cs.namespace(|| "table");
        let mut rows = vec![];
        let mut unit = Some(point);
        for at in 0..CHALLENGE_BITS / 2 {
            let cs = &mut cs.namespace(|| format!("row {at}"));
            let one = unit.take().expect("each row but the last makes the next");
            let two = one.double(cs, "two")?;
            let three = two.add(cs, "three", &one)?;
            if at + 1 < CHALLENGE_BITS / 2 {
                unit = Some(two.double(cs, "four")?);
            }
            rows.push([one, three]);
        }
        Ok(Self(rows))
    }

    /// A point and the multiple of the table's point by Σ ±2^i, where bit i is the sign.
    pub fn add_multiple<CS: ConstraintSystem<Fr>>(&self, cs: &mut CS, mut sum: Point, bits: &[Wire]) -> Made<Point> {
        let cs = &mut cs.namespace(|| "multiple of the key");
        for (at, (pair, [one, three])) in bits.chunks_exact(2).zip(&self.0).enumerate() {
            let cs = &mut cs.namespace(|| format!("pair {at}"));
            let [low, high] = pair else { unreachable!("a pair has two bits") };
            // ±1 ± 2 is three times the sign of the 2 if the signs agree, and once if not.
            let both = product(cs, "both", low, high)?;
            let agree = Wire::one() - low - high + &(both * Fr::from(2));
            let u = product(cs, "u chosen", &(three.u.clone() - &one.u), &agree)?;
            let u = product(cs, "signed u", &(one.u.clone() + &u), &high.sign())?;
            let v = product(cs, "v chosen", &(three.v.clone() - &one.v), &agree)?;
            let point = Point { u, v: one.v.clone() + &v };
            sum = sum.add(cs, "sum", &point)?;
        }
        Ok(sum)
    }
}

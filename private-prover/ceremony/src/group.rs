//! What the ceremony does with many points: sums, multiples, the Lagrange form.

use std::ops::Range;

use blst::MultiPoint;
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group, UncompressedEncoding};
use rand::RngCore;
use rand::rngs::OsRng;

use crate::parallel::{PIECE, in_parallel};
use crate::secret::Secret;

/// A point of G1 or G2.
pub(crate) trait Point:
    PrimeCurveAffine<Scalar = Scalar, Curve: Curve<AffineRepr = Self> + Send> + UncompressedEncoding + Eq
{
    /// The bytes of a point.
    const BYTES: usize;

    /// Σ factorᵢ·pointᵢ. A factor has so many bits in little-endian bytes.
    fn sum(points: &[Self], factors: &[u8], bits: usize) -> Self::Curve;
}

macro_rules! point {
    ($affine:ty, $bytes:literal) => {
        impl Point for $affine {
            const BYTES: usize = $bytes;

            fn sum(points: &[Self], factors: &[u8], bits: usize) -> Self::Curve {
                let mut sum = Self::Curve::identity();
                if !points.is_empty() {
                    let points: Vec<_> = points.iter().map(|point| *point.as_ref()).collect();
                    *sum.as_mut() = points[..].mult(factors, bits);
                }
                sum
            }
        }
    };
}

point!(G1Affine, 96);
point!(G2Affine, 192);

/// Σ factorᵢ·pointᵢ
pub(crate) fn sum<P: Point>(points: &[P], factors: &[Scalar]) -> P::Curve {
    let bytes: Vec<u8> = factors.iter().flat_map(Scalar::to_bytes_le).collect();
    P::sum(points, &bytes, Scalar::NUM_BITS as usize)
}

/// Factors of 128 bits that nobody foresees. A false equation between sums with such factors holds with a probability
/// of 2^-128.
pub(crate) struct Factors(Vec<u8>);

impl Factors {
    pub(crate) fn draw(count: usize) -> Self {
        let mut bytes = vec![0; 16 * count];
        OsRng.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// Σ factorᵢ·pointᵢ over a range of points, as many as there are factors.
    pub(crate) fn sum<P: Point>(&self, points: &[P], range: &Range<usize>) -> P::Curve {
        P::sum(points.get(range.clone()).expect("the range is one of these points"), &self.0, 128)
    }

    pub(crate) fn scalars(&self) -> impl Iterator<Item = Scalar> {
        self.0.chunks(16).map(|chunk| {
            let mut bytes = [0; 32];
            bytes[..16].copy_from_slice(chunk);
            Scalar::from_bytes_le(&bytes).expect("128 bits are below the modulus")
        })
    }
}

/// Multiplies the points by first·ratio^i.
pub(crate) fn scale<P: Point>(points: &mut [P], first: &Secret, ratio: &Secret) {
    let pieces = points.chunks_mut(PIECE).enumerate().collect();
    in_parallel(pieces, |(at, piece): (usize, &mut [P])| {
        let start = ratio.get().pow_vartime([(at * PIECE) as u64]);
        let mut factor = Secret::new(*first.get() * start);
        let mut products = Vec::with_capacity(piece.len());
        for point in &*piece {
            products.push(*point * factor.get());
            factor = Secret::new(*factor.get() * ratio.get());
        }
        P::Curve::batch_normalize(&products, piece);
    });
}

/// From the points τ^i of a domain's size to those of its Lagrange polynomials at τ: an inverse transform.
pub(crate) fn lagrange<P: Point>(powers: &[P]) -> Vec<P> {
    let size = powers.len();
    let bits = size.trailing_zeros();
    let mut root = Scalar::ROOT_OF_UNITY_INV;
    for _ in bits..Scalar::S {
        root = root.square();
    }
    let twiddles: Vec<Scalar> =
        std::iter::successors(Some(Scalar::ONE), |power| Some(*power * root)).take(size / 2).collect();
    let reversed = |at: usize| if bits == 0 { 0 } else { at.reverse_bits() >> (usize::BITS - bits) };
    let mut values: Vec<P::Curve> =
        (0..size).filter_map(|at| powers.get(reversed(at))).map(PrimeCurveAffine::to_curve).collect();
    let mut half = 1;
    while half < size {
        let stride = size / (2 * half);
        let mut pieces = vec![];
        for block in values.chunks_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            pieces.extend(low.chunks_mut(PIECE).zip(high.chunks_mut(PIECE)).enumerate());
        }
        in_parallel(pieces, |(piece, (low, high))| {
            let factors = twiddles.iter().step_by(stride).skip(piece * PIECE);
            for ((low, high), factor) in low.iter_mut().zip(high).zip(factors) {
                let product = if *factor == Scalar::ONE { *high } else { *high * factor };
                *high = *low - product;
                *low += product;
            }
        });
        half *= 2;
    }
    let scale = Scalar::from(size as u64).invert().expect("the modulus is odd");
    in_parallel(values.chunks(PIECE).collect(), |piece| {
        let scaled: Vec<P::Curve> = piece.iter().map(|value| *value * scale).collect();
        let mut affine = vec![P::identity(); scaled.len()];
        P::Curve::batch_normalize(&scaled, &mut affine);
        affine
    })
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a polynomial of degree below 8, values at the eighth roots and coefficients tell the same value at τ.
    #[test]
    fn the_lagrange_form_evaluates_the_same_polynomials() {
        let tau = Secret::new(Scalar::from(987_654_321));
        let one = Secret::new(Scalar::ONE);
        let mut powers = vec![G1Affine::generator(); 8];
        scale(&mut powers, &one, &tau);
        assert_eq!(powers[3], (G1Affine::generator() * tau.get().pow_vartime([3])).to_affine());
        let root = Scalar::ROOT_OF_UNITY.pow_vartime([1 << (Scalar::S - 3)]);
        let coefficients: Vec<Scalar> = (1..9).map(Scalar::from).collect();
        let at = |x: Scalar| coefficients.iter().rev().fold(Scalar::ZERO, |sum, next| sum * x + next);
        let values: Vec<Scalar> = (0..8).map(|k| at(root.pow_vartime([k]))).collect();
        let expected = G1Affine::generator() * at(*tau.get());
        assert_eq!(sum(&powers, &coefficients), expected);
        assert_eq!(sum(&lagrange(&powers), &values), expected);
        let mut in_g2 = vec![G2Affine::generator(); 512];
        scale(&mut in_g2, &one, &tau);
        let all: Vec<Scalar> = vec![Scalar::ONE; 512];
        assert_eq!(sum(&lagrange(&in_g2), &all), G2Affine::generator().to_curve(), "their sum is 1");
    }
}

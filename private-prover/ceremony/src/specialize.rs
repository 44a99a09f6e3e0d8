//! From powers and a circuit to the points of its keys, and the check that points are these.
//!
//! To make them, powers are brought into Lagrange form, which takes minutes. To check them takes seconds: a sum of
//! polynomials with random factors is computed in the scalar field, and then once with the powers.

use std::ops::Range;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};

use crate::check::{pairings_agree, require, sums};
use crate::constraints::{Column, Constraints, Matrix};
use crate::flaw::{Flaw, Part};
use crate::group::{Factors, Point, lagrange, sum};
use crate::keys::Keys;
use crate::parallel::{PIECE, in_parallel};
use crate::powers::Powers;

/// From so many terms on, a sum at once is faster than one by one.
const TERMS_AT_ONCE: usize = 16;

/// Points of a key. Those of `a` and `b` leave out variables that stand in no first or second factor.
#[derive(Clone)]
pub(crate) struct Points {
    pub a: Vec<G1Affine>,
    pub b_g1: Vec<G1Affine>,
    pub b_g2: Vec<G2Affine>,
    pub inputs: Vec<G1Affine>,
    pub l: Vec<G1Affine>,
    pub h: Vec<G1Affine>,
}

/// The points of a circuit's keys while δ is 1.
pub(crate) fn points(powers: &Powers, circuit: &Constraints, progress: &dyn Fn(&str)) -> Points {
    let size = circuit.domain();
    let form = |number: usize, of: &str| progress(&format!("Lagrange form {number} of 4: {of}"));
    form(1, "tau in G1");
    let tau_g1 = lagrange(head(&powers.tau_g1, size));
    form(2, "alpha");
    let alpha = lagrange(head(&powers.alpha_g1, size));
    form(3, "beta");
    let beta = lagrange(head(&powers.beta_g1, size));
    form(4, "tau in G2");
    let tau_g2 = lagrange(head(&powers.tau_g2, size));
    progress("points of each variable");
    let a = polynomials(&circuit.a, &tau_g1);
    let b_g1 = polynomials(&circuit.b, &tau_g1);
    let b_g2 = polynomials(&circuit.b, &tau_g2);
    let columns: Vec<[&Column; 3]> = circuit.columns().collect();
    let mut inputs = in_pieces(&columns, |[a, b, c]| {
        evaluate(&[(a, beta.as_slice()), (b, alpha.as_slice()), (c, tau_g1.as_slice())])
    });
    let l = inputs.split_off(circuit.inputs());
    let h = vanishing(powers, size).map(|(high, low)| high.to_curve() - low).collect::<Vec<_>>();
    let h = in_pieces(&h, |point| *point);
    Points { a, b_g1, b_g2, inputs, l, h }
}

/// Whether the points are those of powers and circuit, L and H divided by δ. `delta` is what the contributions made.
pub(crate) fn verify(keys: &Keys, delta: &G1Affine, powers: &Powers, circuit: &Constraints) -> Result<(), Flaw> {
    let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
    if keys.delta_g1 != *delta {
        return Err(Flaw::Value { part: Part::DeltaG1, index: 0 });
    }
    if !pairings_agree(&g1, &keys.delta_g2, delta, &g2) {
        return Err(Flaw::Value { part: Part::DeltaG2, index: 0 });
    }
    let size = circuit.domain();
    let Points { a, b_g1, b_g2, inputs, l, h } = &keys.points;
    let tau = head(&powers.tau_g1, size);
    require_polynomials(Part::A, a, tau, circuit, &circuit.a)?;
    require_polynomials(Part::BG1, b_g1, tau, circuit, &circuit.b)?;
    require_polynomials(Part::BG2, b_g2, head(&powers.tau_g2, size), circuit, &circuit.b)?;

    // Σ factorⱼ·(β·aⱼ(τ) + α·bⱼ(τ) + cⱼ(τ))
    let outer = |variables: Range<usize>, factors: &Factors| {
        let part = |matrix, powers| {
            let coefficients = circuit.combine(matrix, variables.clone(), factors.scalars());
            sum(head(powers, size), &coefficients)
        };
        part(&circuit.a, &powers.beta_g1) + part(&circuit.b, &powers.alpha_g1) + part(&circuit.c, &powers.tau_g1)
    };
    require(Part::Inputs, inputs.len(), |range| {
        let factors = Factors::draw(range.len());
        factors.sum(inputs, &range) == outer(range, &factors)
    })?;
    require(Part::L, l.len(), |range| {
        let factors = Factors::draw(range.len());
        let divided = factors.sum(l, &range).to_affine();
        let whole = outer(range.start + inputs.len()..range.end + inputs.len(), &factors).to_affine();
        pairings_agree(&divided, &keys.delta_g2, &whole, &g2)
    })?;
    let (high, low): (Vec<_>, Vec<_>) = vanishing(powers, size).unzip();
    require(Part::H, h.len(), |range| {
        let [divided, high, low] = sums([h, &high, &low], &range);
        let whole = (high.to_curve() - low).to_affine();
        pairings_agree(&divided, &keys.delta_g2, &whole, &g2)
    })
}

/// The first powers, as many as a domain has.
fn head<P>(powers: &[P], size: usize) -> &[P] {
    powers.get(..size).expect("the circuit has no more constraints than there are powers")
}

/// The two powers whose difference is τ^i·(τ^size − 1), for each i that a quotient's coefficients have.
fn vanishing(powers: &Powers, size: usize) -> impl Iterator<Item = (G1Affine, G1Affine)> {
    powers.tau_g1.iter().copied().skip(size).zip(powers.tau_g1.iter().copied()).take(size - 1)
}

/// The polynomials of all variables that have one, at τ.
fn polynomials<P: Point>(matrix: &Matrix, lagrange: &[P]) -> Vec<P> {
    let columns: Vec<&Column> = matrix.columns().filter(|column| !column.is_empty()).collect();
    in_pieces(&columns, |column| evaluate(&[(column, lagrange)]))
}

/// Σ factor·point over the constraints of all columns.
fn evaluate<P: Point>(columns: &[(&Column, &[P])]) -> P::Curve {
    let mut total = P::Curve::identity();
    let (mut points, mut factors) = (vec![], vec![]);
    for (column, lagrange) in columns {
        for (row, factor) in *column {
            let point = lagrange.get(*row as usize).expect("a domain has a point for each constraint");
            if *factor == Scalar::ONE {
                total += *point;
            } else if *factor == -Scalar::ONE {
                total -= *point;
            } else {
                points.push(*point);
                factors.push(*factor);
            }
        }
    }
    if points.len() < TERMS_AT_ONCE {
        points.iter().zip(&factors).fold(total, |total, (point, factor)| total + *point * *factor)
    } else {
        total + sum(&points, &factors)
    }
}

/// A point for each item, on all processors.
fn in_pieces<P: Point, T: Sync>(items: &[T], point: impl Fn(&T) -> P::Curve + Sync) -> Vec<P> {
    in_parallel(items.chunks(PIECE).collect(), |items| {
        let points: Vec<P::Curve> = items.iter().map(&point).collect();
        let mut affine = vec![P::identity(); points.len()];
        P::Curve::batch_normalize(&points, &mut affine);
        affine
    })
    .concat()
}

/// That each point is the polynomial of the variable at τ.
fn require_polynomials<P: Point>(
    part: Part,
    points: &[P],
    powers: &[P],
    circuit: &Constraints,
    matrix: &Matrix,
) -> Result<(), Flaw> {
    // The variables that have a point.
    let variables: Vec<usize> =
        matrix.columns().enumerate().filter(|(_, column)| !column.is_empty()).map(|(at, _)| at).collect();
    require(part, points.len(), |range| {
        let factors = Factors::draw(range.len());
        let mut of_all = vec![Scalar::ZERO; circuit.variables()];
        for (variable, factor) in variables.iter().skip(range.start).zip(factors.scalars()) {
            if let Some(of_one) = of_all.get_mut(*variable) {
                *of_one = factor;
            }
        }
        let coefficients = circuit.combine(matrix, 0..of_all.len(), of_all.into_iter());
        factors.sum(points, &range) == sum(powers, &coefficients)
    })
}

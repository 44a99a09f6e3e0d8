//! Which constraint determines which variable, beginning with what the prover chooses.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_private_prover::{Fr, Rule};
use ff::Field;

use super::recorder::{Constraint, Recorder, rule_of};

/// A constraint, and what it determines: one variable, or the bits of a number, the lowest first.
pub struct Step {
    pub constraint: usize,
    pub variables: Vec<usize>,
}

pub struct Solver<'a> {
    recorder: &'a Recorder,
    bits: BTreeSet<usize>,
    /// Variables that are known or were solved for.
    pub known: BTreeSet<usize>,
    /// How many were known in the beginning.
    pub given: usize,
    /// In the order in which they can be taken.
    pub steps: Vec<Step>,
}

impl<'a> Solver<'a> {
    /// Solves for all variables but what the prover chooses and the public inputs. Those of them that are `open` are
    /// solved for, too, and the constraints of one rule can be left out.
    pub fn solve(recorder: &'a Recorder, is_open: impl Fn(&str) -> bool, without: Option<Rule>) -> Self {
        let is_known = |variable: usize| {
            (variable < recorder.inputs || recorder.is_given(variable)) && !is_open(&recorder.names[variable])
        };
        let given: BTreeSet<usize> = recorder.variables().filter(|variable| is_known(*variable)).collect();
        let known = [0].into_iter().chain(given.iter().copied()).collect();
        let bits = recorder.constraints.iter().filter_map(is_bit).collect();
        let mut solver = Self { recorder, bits, known, given: given.len(), steps: vec![] };
        let mut left: Vec<usize> = (0..recorder.constraints.len())
            .filter(|at| without.is_none_or(|rule| rule_of(&recorder.constraints[*at].name) != Some(rule)))
            .collect();
        loop {
            let before = left.len();
            left.retain(|at| {
                let variables = solver.solved_by(&recorder.constraints[*at]);
                if variables.is_empty() {
                    return true;
                }
                solver.known.extend(&variables);
                solver.steps.push(Step { constraint: *at, variables });
                false
            });
            if left.len() == before {
                return solver;
            }
        }
    }

    /// The variables that a constraint determines, given those that are known.
    fn solved_by(&self, constraint: &Constraint) -> Vec<usize> {
        let [a, b, c] = &constraint.terms;
        let is_known = |terms: &[(usize, Fr)]| terms.iter().all(|(variable, _)| self.known.contains(variable));
        // One factor is known, so the constraint is linear in what is not.
        let (factor, other) = if is_known(b) {
            (self.recorder.sum(b), a)
        } else if is_known(a) {
            (self.recorder.sum(a), b)
        } else {
            return vec![];
        };
        let mut unknown: BTreeMap<usize, Fr> = BTreeMap::new();
        for (variable, coefficient) in other.iter().map(|(variable, by)| (variable, *by * factor)) {
            *unknown.entry(*variable).or_default() += coefficient;
        }
        for (variable, by) in c {
            *unknown.entry(*variable).or_default() -= by;
        }
        unknown.retain(|variable, coefficient| !self.known.contains(variable) && *coefficient != Fr::ZERO);
        let is_determined = unknown.len() == 1 || self.are_bits_of_one_number(&unknown, &constraint.name);
        if is_determined { unknown.into_keys().collect() } else { vec![] }
    }

    /// Whether the unknown are bits, each with twice the coefficient of the one before. Two sums of fewer than 255 bits
    /// differ modulo the modulus. For the 255 bits of a key, `a_tag_is_that_of_the_canonical_form` shows it.
    fn are_bits_of_one_number(&self, unknown: &BTreeMap<usize, Fr>, name: &str) -> bool {
        let coefficients: Vec<Fr> = unknown.values().copied().collect();
        let limit = if name.ends_with("tag/sum of bits") { 255 } else { 254 };
        unknown.len() <= limit
            && unknown.keys().all(|variable| self.bits.contains(variable))
            && coefficients.windows(2).all(|pair| pair[1] == pair[0].double())
    }
}

/// The variable of a constraint `(1 − x)·x = 0`.
pub fn is_bit(constraint: &Constraint) -> Option<usize> {
    let [a, b, c] = &constraint.terms;
    let [(variable, factor)] = b[..] else { return None };
    let complement = BTreeMap::from([(0, Fr::ONE), (variable, -Fr::ONE)]);
    let is = factor == Fr::ONE && c.is_empty();
    (is && a.iter().copied().collect::<BTreeMap<_, _>>() == complement).then_some(variable)
}

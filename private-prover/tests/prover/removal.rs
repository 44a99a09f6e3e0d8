//! Every constraint removed in turn: for each, some assignment violates it and no other. So each is needed, and without
//! it these tests would fail.
//!
//! An assignment is found by altering what the constraint determines, and computing anew what depends on that. For the
//! constraint of a bit, another bit of the same number makes up for it. What is public of a transaction is computed
//! anew, too. One rule at a time is not looked at: of the two lists, which share a root, one; and where the owner's hash
//! is altered, on which all signatures depend, the rule by which a first account cannot exit.

use std::collections::BTreeSet;

use fastpay_private_prover::*;
use ff::{Field, PrimeField};

use super::forgeries::{Forger, Forgery, forgeries, without_limits};
use super::random;
use super::recorder::{Recorder, Terms, rule_of};
use super::scene::{Claim, Scene};
use super::solver::{Solver, Step, is_bit};

/// What follows from the rest of the witness: these public inputs, on each level of a list the last child, and the ρ of
/// a first account.
fn is_open(name: &str, is_first: bool) -> bool {
    ["account nullifier", "coin nullifier", "account", "coin", "sanctions"].contains(&name)
        || name.ends_with("/given child 7")
        || is_first && name == "account before/given ρ"
}

/// Which constraints each variable stands in, by what they are for.
struct Removal<'a> {
    recorder: &'a mut Recorder,
    steps: Vec<Step>,
    /// The step of a constraint.
    step_of: Vec<Option<usize>>,
    /// The step that determines a variable.
    determined_by: Vec<Option<usize>>,
    /// The constraints in which a variable stands.
    uses: Vec<Vec<usize>>,
    /// What has been altered, and was before.
    before: Vec<(usize, Fr)>,
}

fn variables(terms: &[Terms; 3]) -> BTreeSet<usize> {
    terms.iter().flatten().map(|(variable, _)| *variable).collect()
}

impl<'a> Removal<'a> {
    fn new(recorder: &'a mut Recorder, without: Rule) -> Self {
        let steps = Solver::solve(recorder, |name| is_open(name, without == Rule::Exit), Some(without)).steps;
        let mut step_of = vec![None; recorder.constraints.len()];
        let mut determined_by = vec![None; recorder.values.len()];
        for (at, step) in steps.iter().enumerate() {
            step_of[step.constraint] = Some(at);
            step.variables.iter().for_each(|variable| determined_by[*variable] = Some(at));
        }
        let mut uses = vec![vec![]; recorder.values.len()];
        for (at, constraint) in recorder.constraints.iter().enumerate() {
            if rule_of(&constraint.name) != Some(without) {
                variables(&constraint.terms).into_iter().for_each(|variable| uses[variable].push(at));
            }
        }
        Self { recorder, steps, step_of, determined_by, uses, before: vec![] }
    }

    fn set(&mut self, variable: usize, value: Fr) {
        self.before.push((variable, self.recorder.values[variable]));
        self.recorder.values[variable] = value;
    }

    /// `a·b − c`
    fn difference(&self, constraint: usize) -> Fr {
        let [a, b, c] = &self.recorder.constraints[constraint].terms;
        self.recorder.sum(a) * self.recorder.sum(b) - self.recorder.sum(c)
    }

    /// Whether the alterations, and what follows from them, violate this constraint alone. They are undone afterwards.
    fn only_violates(&mut self, constraint: usize, alterations: &[(usize, Fr)]) -> bool {
        alterations.iter().for_each(|(variable, value)| self.set(*variable, *value));
        let fixed = alterations.iter().filter_map(|(variable, _)| self.determined_by[*variable]).collect();
        let is_found = self.follow(constraint, &fixed) == Some(());
        while let Some((variable, value)) = self.before.pop() {
            self.recorder.values[variable] = value;
        }
        is_found
    }

    fn follow(&mut self, removed: usize, fixed: &BTreeSet<usize>) -> Option<()> {
        let mut checks = BTreeSet::new();
        let mut queue = BTreeSet::new();
        let mut seen = 0;
        loop {
            for (variable, _) in &self.before[seen..] {
                for constraint in &self.uses[*variable] {
                    match &self.step_of[*constraint] {
                        Some(step) if !fixed.contains(step) => drop(queue.insert(*step)),
                        _ => drop(checks.insert(*constraint)),
                    }
                }
            }
            seen = self.before.len();
            let Some(step) = queue.pop_first() else { break };
            self.take(step)?;
        }
        let is_violated = self.difference(removed) != Fr::ZERO;
        let others_hold = checks.iter().all(|one| *one == removed || self.difference(*one) == Fr::ZERO);
        (is_violated && others_hold).then_some(())
    }

    /// Computes anew what a step determines. None: no value satisfies it.
    fn take(&mut self, step: usize) -> Option<()> {
        let Step { constraint, ref variables } = self.steps[step];
        let difference = self.difference(constraint);
        if difference == Fr::ZERO {
            return Some(());
        }
        // The constraint is linear in the number that it determines.
        let lowest = variables[0];
        let old = self.recorder.values[lowest];
        self.recorder.values[lowest] += Fr::ONE;
        let slope = self.difference(constraint) - difference;
        self.recorder.values[lowest] = old;
        let more = if slope == -Fr::ONE { difference } else { -difference * Option::<Fr>::from(slope.invert())? };
        if variables.len() == 1 {
            self.set(lowest, old + more);
            return Some(());
        }
        let variables = variables.clone();
        let number = variables.iter().rev().fold(Fr::ZERO, |sum, bit| sum.double() + self.recorder.values[*bit]) + more;
        let bytes = number.to_repr();
        let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (at % 8) & 1);
        if (variables.len()..256).any(|at| bit(at) == 1) {
            return None;
        }
        for (at, variable) in variables.into_iter().enumerate() {
            let bit = Fr::from(u64::from(bit(at)));
            if self.recorder.values[variable] != bit {
                self.set(variable, bit);
            }
        }
        Some(())
    }

    /// Whether some alteration violates this constraint alone.
    fn is_needed(&mut self, constraint: usize, random: Fr) -> bool {
        self.alterations(constraint, random).iter().any(|alterations| self.only_violates(constraint, alterations))
    }

    fn alterations(&self, constraint: usize, random: Fr) -> Vec<Vec<(usize, Fr)>> {
        let value = |variable: usize| self.recorder.values[variable];
        let terms = &self.recorder.constraints[constraint].terms;
        if let Some(bit) = is_bit(&self.recorder.constraints[constraint]) {
            let Some(step) = self.determined_by[bit] else {
                return [vec![(bit, Fr::from(2))]].into_iter().chain(self.members(bit)).collect();
            };
            let bits = &self.steps[step].variables;
            let at = bits.iter().position(|one| *one == bit).unwrap();
            // 2^(other − at), taken from this bit for what the other one gains.
            let with = |other: usize| {
                let power = |exponent: usize| Fr::from(2).pow_vartime([exponent as u64]);
                let gained = Fr::ONE - value(bits[other]).double();
                let ratio = power(other) * power(at).invert().unwrap();
                vec![(bits[other], Fr::ONE - value(bits[other])), (bit, value(bit) - gained * ratio)]
            };
            return [at.checked_sub(1), Some(at + 1)]
                .into_iter()
                .flatten()
                .filter(|at| *at < bits.len())
                .map(with)
                .collect();
        }
        let Some(step) = self.step_of[constraint] else {
            let is_chosen = |one: &usize| self.recorder.is_given(*one);
            return variables(terms)
                .into_iter()
                .filter(is_chosen)
                .map(|one| vec![(one, Fr::ONE - value(one))])
                .collect();
        };
        match self.steps[step].variables[..] {
            [one] => [Fr::ONE, -Fr::ONE, random].map(|by| vec![(one, value(one) + by)]).into(),
            ref bits => [0, bits.len() / 2].map(|at| vec![(bits[at], Fr::ONE - value(bits[at]))]).into(),
        }
    }

    /// For the bit of a member: other bits of the same signer, for which this one makes up.
    fn members(&self, bit: usize) -> Vec<Vec<(usize, Fr)>> {
        let is_sum = |at: &&usize| self.recorder.constraints[**at].name.ends_with("/one member");
        let Some(sum) = self.uses[bit].iter().find(is_sum) else { return vec![] };
        let all = variables(&self.recorder.constraints[*sum].terms);
        let others: Vec<usize> = all.into_iter().filter(|one| *one != 0 && *one != bit).collect();
        let chosen = |set: usize| {
            let value = |at: usize| Fr::from((set >> at & 1) as u64);
            let mut bits: Vec<(usize, Fr)> = others.iter().enumerate().map(|(at, one)| (*one, value(at))).collect();
            bits.push((bit, Fr::ONE - Fr::from(u64::from(set.count_ones()))));
            bits
        };
        (0..1 << others.len()).map(chosen).collect()
    }
}

/// The gap of a list without entries, always the last child on its path: so no product of differences is 0 too early.
fn widest_gap() -> GapPath {
    let mut path = Sanctions::new([]).unwrap().path(Owner(Fr::from(5)).tag());
    let mut node = h2([path.low, path.high]);
    for (level, children) in path.children.iter_mut().enumerate() {
        *children = std::array::from_fn(|at| if at == 7 { node } else { Fr::from((100 * level + at) as u64) });
        node = h8(*children);
    }
    path
}

/// Constraints that forgeries violate alone.
fn violated_by_forgeries() -> BTreeSet<String> {
    let Forger { scene, made, .. } = forgeries();
    let alone = |Forgery { claim, .. }: &Forgery| match scene.record(claim).violated()[..] {
        [name] => Some(name.to_owned()),
        _ => None,
    };
    made.iter().filter_map(alone).collect()
}

/// True claims, and one that only the rule `Exit` refuses, each with the rules that are left out in turn. Those
/// signatures that are not needed are there, too.
fn claims(scene: &Scene) -> [(Claim, &'static [Rule]); 4] {
    let lists = &[Rule::PayerListed, Rule::PayeeListed];
    let [payment, opening, exit] = scene.claims().map(|mut claim| {
        claim.witness.payer_gap = widest_gap();
        claim.witness.payee_gap = widest_gap();
        claim.witness.signers = vec![0, 3];
        scene.sign_account(&mut claim, scene.alice.owner());
        scene.sign_coin(&mut claim, scene.alice.owner());
        scene.sign_credential(&mut claim, scene.alice.owner());
        claim
    });
    let mut first = opening.clone();
    // Altered, an owner is another than the payee.
    first.witness.output.owner = scene.bob.0;
    first.witness.exit = true;
    first.witness.credential = without_limits();
    [(opening, lists), (exit, lists), (payment, lists), (first, &[Rule::Exit])]
}

#[test]
fn every_constraint_is_needed() {
    let random = Fr::random(&mut random());
    let scene = Scene::new(4);
    let mut needed = violated_by_forgeries();
    println!("{} are violated alone by forgeries", needed.len());
    let mut all = BTreeSet::new();
    for (claim, rules) in claims(&scene) {
        let mut recorder = scene.record(&claim);
        all.extend(recorder.constraints.iter().map(|one| one.name.clone()));
        for without in rules {
            let mut removal = Removal::new(&mut recorder, *without);
            for constraint in 0..removal.recorder.constraints.len() {
                let name = removal.recorder.constraints[constraint].name.clone();
                let is_open = !needed.contains(&name) && rule_of(&name) != Some(*without);
                if is_open && removal.is_needed(constraint, random) {
                    needed.insert(name);
                }
            }
            println!("{} of {} are needed", needed.len(), all.len());
        }
    }
    let left: Vec<&str> = all.difference(&needed).map(String::as_str).collect();
    // If this bit alone may be another number, the other bits name two members or three. The place of the signer is then
    // 3 or more for the first, and 0 or less for the second, which the order of the signers refuses.
    assert_eq!(left, ["signer 0/is member 0", "signer 1/is member 3"]);
}

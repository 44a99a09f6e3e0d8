//! A constraint system that keeps everything: variables with names and values, constraints with names.

use std::collections::BTreeSet;

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use fastpay_private_prover::{Fr, Rule};
use ff::Field;

/// Where auxiliary variables begin: after all inputs.
pub const AUXILIARY: usize = 1 << 10;

pub type Terms = Vec<(usize, Fr)>;

/// `a·b = c`
pub struct Constraint {
    pub name: String,
    pub terms: [Terms; 3],
}

#[derive(Default)]
pub struct Recorder {
    pub inputs: usize,
    /// Names and values. Between the inputs and [`AUXILIARY`] there are none.
    pub names: Vec<String>,
    pub values: Vec<Fr>,
    pub constraints: Vec<Constraint>,
    path: Vec<String>,
}

impl Recorder {
    pub fn of(circuit: impl Circuit<Fr>) -> Self {
        let mut recorder = Self {
            inputs: 1,
            names: vec![String::new(); AUXILIARY],
            values: vec![Fr::ZERO; AUXILIARY],
            ..Self::default()
        };
        recorder.values[0] = Fr::ONE;
        circuit.synthesize(&mut recorder).unwrap();
        recorder
    }

    fn name(&self, last: String) -> String {
        if self.path.is_empty() { last } else { format!("{}/{last}", self.path.join("/")) }
    }

    /// All variables but the constant.
    pub fn variables(&self) -> impl Iterator<Item = usize> + use<> {
        (1..self.inputs).chain(AUXILIARY..self.values.len())
    }

    /// Whether the prover chooses the variable.
    pub fn is_given(&self, variable: usize) -> bool {
        self.names[variable].rsplit('/').next().unwrap().starts_with("given ")
    }

    pub fn sum(&self, terms: &Terms) -> Fr {
        terms.iter().map(|(variable, factor)| self.values[*variable] * factor).sum()
    }

    pub fn holds(&self, constraint: &Constraint) -> bool {
        let [a, b, c] = &constraint.terms;
        self.sum(a) * self.sum(b) == self.sum(c)
    }

    pub fn violated(&self) -> Vec<&str> {
        self.constraints.iter().filter(|one| !self.holds(one)).map(|one| one.name.as_str()).collect()
    }

    /// The rules whose constraints are violated. A constraint under no rule defines a value, and always holds.
    pub fn broken_rules(&self) -> Vec<Rule> {
        let rules: BTreeSet<Rule> = self.violated().into_iter().map(|name| rule_of(name).expect(name)).collect();
        rules.into_iter().collect()
    }
}

/// The rule under which a constraint stands.
pub fn rule_of(name: &str) -> Option<Rule> {
    Rule::ALL.into_iter().find(|rule| name.split('/').any(|part| part == rule.name()))
}

impl ConstraintSystem<Fr> for Recorder {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, name: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.values.push(value()?);
        self.names.push(self.name(name().into()));
        Ok(Variable(Index::Aux(self.values.len() - 1 - AUXILIARY)))
    }

    fn alloc_input<F, A, AR>(&mut self, name: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.values[self.inputs] = value()?;
        self.names[self.inputs] = self.name(name().into());
        self.inputs += 1;
        Ok(Variable(Index::Input(self.inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, name: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LB: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LC: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
    {
        let zero = LinearCombination::zero;
        let terms = [a(zero()), b(zero()), c(zero())].map(|sum| {
            let at = |variable: Variable| match variable.0 {
                Index::Input(at) => at,
                Index::Aux(at) => AUXILIARY + at,
            };
            sum.iter().filter(|(_, factor)| **factor != Fr::ZERO).map(|(at_, factor)| (at(at_), *factor)).collect()
        });
        self.constraints.push(Constraint { name: self.name(name().into()), terms });
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.path.push(name().into());
    }

    fn pop_namespace(&mut self) {
        self.path.pop();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

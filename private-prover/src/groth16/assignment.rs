//! A witness as the prover needs it: the values of all variables, and of both factors and the product of each constraint.

use bellperson::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use fastpay_private::Fr;
use fastpay_private::parts::Secret;
use ff::Field;
use zeroize::Zeroizing;

type Terms = LinearCombination<Fr>;

/// Values of variables, and which variables stand in a first or a second factor.
#[derive(Default)]
pub(super) struct Assignment {
    pub a: Vec<Fr>,
    pub b: Vec<Fr>,
    pub c: Vec<Fr>,
    pub inputs: Vec<Fr>,
    pub auxiliary: Zeroizing<Vec<Secret>>,
    pub auxiliary_in_a: Vec<bool>,
    pub inputs_in_b: Vec<bool>,
    pub auxiliary_in_b: Vec<bool>,
}

impl Assignment {
    fn value(&self, terms: &Terms) -> Fr {
        terms.iter().map(|(variable, factor)| self.variable(variable) * factor).sum()
    }

    fn variable(&self, variable: Variable) -> Fr {
        match variable.0 {
            Index::Input(at) => self.inputs.get(at).copied(),
            Index::Aux(at) => self.auxiliary.get(at).map(|secret| secret.0),
        }
        .expect("a constraint has variables that were allocated before")
    }
}

fn mark(inputs: Option<&mut Vec<bool>>, auxiliary: &mut [bool], terms: &Terms) {
    if let Some(inputs) = inputs {
        for (at, factor) in terms.iter_inputs() {
            if let Some(mark) = inputs.get_mut(*at) {
                *mark |= !factor.is_zero_vartime();
            }
        }
    }
    for (at, factor) in terms.iter_aux() {
        if let Some(mark) = auxiliary.get_mut(*at) {
            *mark |= !factor.is_zero_vartime();
        }
    }
}

impl ConstraintSystem<Fr> for Assignment {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.auxiliary.push(Secret(value()?));
        self.auxiliary_in_a.push(false);
        self.auxiliary_in_b.push(false);
        Ok(Variable(Index::Aux(self.auxiliary.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        self.inputs_in_b.push(false);
        Ok(Variable(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(Terms) -> Terms,
        LB: FnOnce(Terms) -> Terms,
        LC: FnOnce(Terms) -> Terms,
    {
        let (a, b, c) = (a(Terms::zero()), b(Terms::zero()), c(Terms::zero()));
        // All inputs stand in a first factor: each has a constraint of its own at the end.
        mark(None, &mut self.auxiliary_in_a, &a);
        mark(Some(&mut self.inputs_in_b), &mut self.auxiliary_in_b, &b);
        self.a.push(self.value(&a));
        self.b.push(self.value(&b));
        self.c.push(self.value(&c));
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

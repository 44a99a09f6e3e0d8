//! A circuit's constraints as keys need them: for each variable, its factor in each constraint.

use std::ops::Range;

use bellperson::domain::EvaluationDomain;
use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ec_gpu_gen::threadpool::Worker;
use ff::Field;
use sha2::{Digest, Sha256};

use crate::flaw::Flaw;

type Terms = LinearCombination<Scalar>;
/// Constraints that a variable stands in, and its factors there.
pub(crate) type Column = Vec<(u32, Scalar)>;

/// A constraint is a·b = c, and each of these is a sum over the variables.
#[derive(Default)]
pub(crate) struct Matrix {
    inputs: Vec<Column>,
    auxiliary: Vec<Column>,
}

impl Matrix {
    /// The columns of all variables, the inputs first.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.inputs.iter().chain(&self.auxiliary)
    }

    fn add(&mut self, row: u32, terms: &Terms) {
        for (variable, factor) in terms.iter().filter(|(_, factor)| !factor.is_zero_vartime()) {
            let column = match variable.0 {
                Index::Input(at) => self.inputs.get_mut(at),
                Index::Aux(at) => self.auxiliary.get_mut(at),
            };
            column.expect("a constraint has variables that were allocated before").push((row, *factor));
        }
    }
}

/// The constraints of a circuit, with one more for each public input: so their polynomials are independent of each
/// other.
#[derive(Default)]
pub struct Constraints {
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    pub(crate) c: Matrix,
    rows: u32,
}

impl Constraints {
    /// The constraints of a circuit, which is synthesized without values.
    ///
    /// # Errors
    /// [`SynthesisError`] of a circuit that needs values, and `UnconstrainedVariable` if a variable stands in no
    /// constraint.
    pub fn of(circuit: impl Circuit<Scalar>) -> Result<Self, SynthesisError> {
        let mut all = Self::default();
        all.alloc_input(|| "one", || Ok(Scalar::ONE))?;
        circuit.synthesize(&mut all)?;
        for at in 0..all.inputs() {
            all.enforce(|| "input", |zero| zero + Variable(Index::Input(at)), |zero| zero, |zero| zero);
        }
        if all.columns().any(|columns| columns.iter().all(|column| column.is_empty())) {
            return Err(SynthesisError::UnconstrainedVariable);
        }
        Ok(all)
    }

    /// The columns of each variable in the three matrices.
    pub(crate) fn columns(&self) -> impl Iterator<Item = [&Column; 3]> {
        self.a.columns().zip(self.b.columns()).zip(self.c.columns()).map(|((a, b), c)| [a, b, c])
    }

    /// The number of constraints, and one for each public input.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows as usize
    }

    /// The size of the domain: the power of two that the constraints fit into.
    pub(crate) fn domain(&self) -> usize {
        self.count().next_power_of_two()
    }

    /// The number of public inputs, with the constant 1.
    pub(crate) fn inputs(&self) -> usize {
        self.a.inputs.len()
    }

    /// The number of all variables, the inputs first.
    pub(crate) fn variables(&self) -> usize {
        self.a.inputs.len() + self.a.auxiliary.len()
    }

    /// SHA-256 of everything: two circuits with the same hash have the same keys.
    pub(crate) fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let number = |hash: &mut Sha256, number: usize| hash.update((number as u64).to_be_bytes());
        number(&mut hash, self.count());
        number(&mut hash, self.inputs());
        number(&mut hash, self.variables());
        for column in [&self.a, &self.b, &self.c].into_iter().flat_map(Matrix::columns) {
            number(&mut hash, column.len());
            for (row, factor) in column {
                hash.update(row.to_be_bytes());
                hash.update(factor.to_bytes_be());
            }
        }
        hash.finalize().into()
    }

    /// The coefficients of Σ factorⱼ·polynomialⱼ over some of a matrix's variables: the factors are those of these
    /// variables, in order.
    pub(crate) fn combine(
        &self,
        matrix: &Matrix,
        variables: Range<usize>,
        factors: impl Iterator<Item = Scalar>,
    ) -> Vec<Scalar> {
        let mut values = vec![Scalar::ZERO; self.domain()];
        for (column, by) in matrix.columns().skip(variables.start).take(variables.len()).zip(factors) {
            for (row, factor) in column {
                if let Some(value) = values.get_mut(*row as usize) {
                    *value += by * factor;
                }
            }
        }
        let mut domain = EvaluationDomain::from_coeffs(values).expect("2^32 constraints are the most");
        domain.ifft(&Worker::new(), &mut None).expect("the processor transforms");
        domain.into_coeffs()
    }

    /// That there are as many powers as constraints.
    pub(crate) fn require_powers(&self, powers: usize) -> Result<(), Flaw> {
        if self.domain() > powers {
            return Err(Flaw::TooLarge { constraints: self.count(), powers });
        }
        Ok(())
    }
}

impl ConstraintSystem<Scalar> for Constraints {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        for matrix in [&mut self.a, &mut self.b, &mut self.c] {
            matrix.auxiliary.push(vec![]);
        }
        Ok(Variable(Index::Aux(self.a.auxiliary.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        for matrix in [&mut self.a, &mut self.b, &mut self.c] {
            matrix.inputs.push(vec![]);
        }
        Ok(Variable(Index::Input(self.a.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(Terms) -> Terms,
        LB: FnOnce(Terms) -> Terms,
        LC: FnOnce(Terms) -> Terms,
    {
        self.a.add(self.rows, &a(Terms::zero()));
        self.b.add(self.rows, &b(Terms::zero()));
        self.c.add(self.rows, &c(Terms::zero()));
        self.rows += 1;
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

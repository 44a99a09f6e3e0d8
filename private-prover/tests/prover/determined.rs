//! Nothing is left open: every variable follows from the witness, and none can be altered alone.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_private_prover::*;
use ff::{Field, PrimeField};

use super::recorder::Recorder;
use super::scene::Scene;
use super::solver::Solver;

/// The recorded payment, opening and exit, and which signatures of each are excused: of a first account, of a dummy, of
/// the credential of an exit.
fn recorded() -> [(Recorder, &'static [Rule]); 3] {
    let scene = Scene::new(4);
    let [payment, opening, exit] = scene.claims().map(|claim| scene.record(&claim));
    [(payment, &[]), (opening, &[Rule::AccountSigned, Rule::CoinSigned]), (exit, &[Rule::CredentialSigned])]
}

/// The bits above the challenge of a signature that nobody needs are of no consequence.
fn is_excused(name: &str, excused: &[Rule]) -> bool {
    name.contains("signature/high bits/") && excused.iter().any(|rule| name.contains(rule.name()))
}

/// Alters every variable alone: each must break a constraint. A bit is flipped as well, so that its own constraint is not
/// the only one that notices.
#[test]
fn no_variable_can_be_altered_alone() {
    for (mut recorder, excused) in recorded() {
        let mut uses: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, constraint) in recorder.constraints.iter().enumerate() {
            let variables: BTreeSet<usize> = constraint.terms.iter().flatten().map(|(variable, _)| *variable).collect();
            for variable in variables {
                uses.entry(variable).or_default().push(at);
            }
        }
        let mut unnoticed = BTreeSet::new();
        for variable in recorder.variables() {
            let value = recorder.values[variable];
            let others = if value == Fr::ZERO || value == Fr::ONE {
                [Fr::ONE - value, value + Fr::from(5)]
            } else {
                [value + Fr::ONE, -value]
            };
            for other in others {
                recorder.values[variable] = other;
                let used_by = uses.get(&variable).map_or(&[][..], |used_by| used_by);
                if used_by.iter().all(|at| recorder.holds(&recorder.constraints[*at])) {
                    unnoticed.insert(recorder.names[variable].as_str().to_owned());
                }
            }
            recorder.values[variable] = value;
        }
        println!("{} variables altered alone", recorder.variables().count());
        // Members 2 and 3 do not sign. An authority puts their keys in, and a proof is bound to them as to all inputs.
        unnoticed.retain(|name| !is_excused(name, excused));
        let keys = ["member 2 u", "member 2 v", "member 3 u", "member 3 v"];
        assert_eq!(unnoticed, keys.map(str::to_owned).into(), "unnoticed");
    }
}

/// Starts from the public inputs and what the prover chooses, and solves constraint after constraint for what is left.
/// If all variables can be solved for, there is one assignment for each witness: no other way to satisfy the circuit.
#[test]
fn the_witness_determines_every_variable() {
    for (recorder, excused) in recorded() {
        let solver = Solver::solve(&recorder, |_| false, None);
        let open: Vec<&str> = recorder
            .variables()
            .filter(|variable| !solver.known.contains(variable))
            .map(|variable| recorder.names[variable].as_str())
            .filter(|name| !is_excused(name, excused))
            .collect();
        println!("{} of {} variables are the witness", solver.given, recorder.variables().count());
        assert!(open.is_empty(), "{} variables are open: {:?}", open.len(), &open[..open.len().min(20)]);
    }
}

/// A small key and the modulus together have 255 bits, too: a second tag for one key, with which a listed payee would
/// lie in a gap. What is above 2^128 is then out of range.
#[test]
fn a_tag_is_that_of_the_canonical_form() {
    let scene = Scene::new(4);
    let small = Fr::from(5);
    let mut claim = scene.payment_and_withdrawal();
    claim.witness.output.owner = small;
    let mut recorder = scene.record(&claim);
    let prefix = format!("lists/{}/tag/", Rule::PayeeListed.name());
    let find = |what: &str| {
        let name = format!("{prefix}{what}/sum of bits");
        let name = name.replace("//", "/");
        recorder.constraints.iter().position(|one| one.name == name).expect(&name)
    };
    let (sum, canonical) = (find(""), find("canonical"));
    assert!(recorder.holds(&recorder.constraints[sum]) && recorder.holds(&recorder.constraints[canonical]));

    // The modulus is one more than the largest element.
    let mut alias = (-Fr::ONE).to_repr();
    let mut carry = 6;
    for byte in &mut alias {
        let sum = u16::from(*byte) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    for bit in 0..255 {
        let name = format!("{prefix}bits/bit {bit}");
        let variable = recorder.names.iter().position(|other| *other == name).expect(&name);
        recorder.values[variable] = Fr::from(u64::from(alias[bit / 8] >> (bit % 8) & 1));
    }
    assert!(recorder.holds(&recorder.constraints[sum]), "the alias has the same sum");
    let [_, _, room] = &recorder.constraints[canonical].terms;
    let room = recorder.sum(room).to_repr();
    assert!(room[16..].iter().any(|byte| *byte != 0), "what is above is out of range");
}

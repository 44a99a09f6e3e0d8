//! Explores a setting, and makes of a counterexample a story that can be read.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Path};

use crate::merge::merged;
use crate::protocol::{Action, Protocol};
use crate::rules::Rules;
use crate::setting::Setting;
use crate::state::State;

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Report {
    /// Different states.
    pub states: usize,
    /// The longest path from the start.
    pub depth: usize,
    /// How long it took.
    pub time: Duration,
    /// The claim that does not hold, and how it comes to that.
    pub broken: Option<(&'static str, Vec<Action>)>,
    /// Conditions that must be reachable and were not reached.
    pub missed: Vec<&'static str>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, depth, time, .. } = self;
        write!(formatter, "{states} states, depth {depth}, {:.1} s: ", time.as_secs_f64())?;
        match &self.broken {
            Some((claim, story)) => write!(formatter, "BROKEN in {} steps: {claim}", story.len()),
            None => write!(formatter, "all claims hold"),
        }
    }
}

/// Explores all states of the setting, or those up to the first counterexample.
pub fn explore(setting: &Setting, rules: Rules, threads: usize) -> Report {
    let begun = Instant::now();
    let protocol = Protocol { setting: *setting, rules, merges: true };
    let checker = protocol.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let discoveries = checker.discoveries();
    let broken = setting.claims.iter().find_map(|claim| {
        let path = discoveries.get(claim.name())?;
        Some((claim.name(), replayed(&protocol, path)))
    });
    let reached = protocol.properties().into_iter().filter(|property| property.name.starts_with("reached"));
    Report {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        time: begun.elapsed(),
        broken,
        missed: reached.map(|property| property.name).filter(|name| !discoveries.contains_key(name)).collect(),
    }
}

/// The same path without merging: authorities and orders keep their names, and every step is told.
fn replayed(protocol: &Protocol, path: &Path<State, Action>) -> Vec<Action> {
    let plain = Protocol { merges: false, ..*protocol };
    let mut reached = (plain.init_states()[0], plain.setting.begins.to_vec());
    for next in path.clone().into_states().into_iter().skip(1) {
        reached = step(&plain, reached, next).expect("merged states have the same futures");
    }
    reached.1
}

/// The shortest way on to a state that is merged into `next`, over states that are merged into the same as the first.
fn step(plain: &Protocol, (state, story): (State, Vec<Action>), next: State) -> Option<(State, Vec<Action>)> {
    let start = merged(plain, state);
    let mut seen = HashSet::from([state]);
    let mut queue = VecDeque::from([(state, story)]);
    while let Some((state, story)) = queue.pop_front() {
        let mut actions = Vec::new();
        plain.actions(&state, &mut actions);
        for action in actions {
            let Some(reached) = plain.next_state(&state, action) else { continue };
            let told = || story.iter().copied().chain([action]).collect();
            let as_merged = merged(plain, reached);
            if as_merged == next {
                return Some((reached, told()));
            }
            if as_merged == start && seen.insert(reached) {
                queue.push_back((reached, told()));
            }
        }
    }
    None
}

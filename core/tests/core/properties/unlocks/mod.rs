//! Numbers that their owners ask to unlock, under whatever order of events: see [`World`] for what happens and [`Oracle`]
//! for what must hold. A failing run prints its seed; `WORLD_SEEDS=17..18` runs that one alone, `WORLD_SEEDS=0..100000`
//! looks further.
//!
//! [`World`]: world::World
//! [`Oracle`]: oracle::Oracle

mod agenda;
mod checkpoints;
mod contract;
mod deciding;
mod following;
mod oracle;
mod overdrawn;
mod rebasing;
mod world;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::prelude::*;

use super::seeds;
use rebasing::Tally;
use world::World;

/// Runs that are always made, and how many more from a seed that nobody chose.
const FIXED: Range<u64> = 0..100;
const OTHERS: u64 = 50;
/// Runs with checkpoints take longer.
const WITH_CHECKPOINTS: Range<u64> = 0..50;
const FEW_OTHERS: u64 = 20;

#[test]
fn unlocking_in_whatever_order() {
    let tallies = run(seeds(FIXED, OTHERS), false);
    let decided: usize = tallies.iter().map(|tally| tally.decided).sum();
    println!("{decided} numbers decided in {} runs", tallies.len());
    let is_telling = decided > tallies.len();
    assert!(tallies.len() < 20 || is_telling, "the runs lead to nothing: {decided} in {}", tallies.len());
}

/// The same with checkpoints, onto which authorities are rebased at any moment.
#[test]
fn rebasing_in_whatever_order() {
    let tallies = run(seeds(WITH_CHECKPOINTS, FEW_OTHERS), true);
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let rebased = [("checkpoints", sum(|tally| tally.certified)), ("rebased", sum(|tally| tally.rebased))];
    let of_which = [
        ("behind", sum(|tally| tally.behind)),
        ("ahead", sum(|tally| tally.ahead)),
        ("restored", sum(|tally| tally.restored)),
        ("frozen", sum(|tally| tally.frozen)),
        ("kept", sum(|tally| tally.kept)),
        ("void votes", sum(|tally| tally.void_voted)),
        ("locks", sum(|tally| tally.locked)),
        ("unpaid", sum(|tally| tally.unpaid)),
    ];
    println!("{rebased:?}, {of_which:?}, {} decided, in {} runs", sum(|tally| tally.decided), tallies.len());
    let is_much = |(_, count): &(&str, usize)| *count > 2 * tallies.len();
    let is_some = |(_, count): &(&str, usize)| *count > tallies.len() / 10;
    let is_telling = rebased.iter().all(is_much) && of_which.iter().all(is_some);
    assert!(tallies.len() < 20 || is_telling, "the runs lead to little: {rebased:?}, {of_which:?}");
}

/// Makes the runs, and says what each led to.
fn run(seeds: Vec<u64>, has_checkpoints: bool) -> Vec<Tally> {
    seeds
        .into_iter()
        .map(|seed| {
            let mut world = World::new(seed, has_checkpoints);
            let run = catch_unwind(AssertUnwindSafe(|| {
                let steps = world.rng.random_range(60..400);
                (0..steps).for_each(|_| world.step());
                world.settle();
            }));
            if let Err(panic) = run {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let reason = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                println!("seed {seed}: {}", reason.replace('\n', " "));
                panic!("seed {seed} fails: {reason}");
            }
            Tally { decided: world.decided(), ..world.tally }
        })
        .collect()
}

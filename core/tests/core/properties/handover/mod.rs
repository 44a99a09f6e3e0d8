//! Committees whose members, keys and sizes change, under whatever order of events: see [`World`] for what happens and
//! what must hold. A failing run prints its seed; `WORLD_SEEDS=17..18` runs that one alone, `WORLD_SEEDS=0..100000` looks
//! further.
//!
//! [`World`]: world::World

mod ended;
mod joining;
mod operator;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::seeds;
use world::{Tally, World};

#[test]
fn handing_over_in_whatever_order() {
    let mut tallies = Vec::new();
    for seed in seeds(0..60, 20) {
        let run = catch_unwind(AssertUnwindSafe(|| {
            let mut world = World::new(seed);
            world.run();
            world.tally
        }));
        match run {
            Ok(tally) => tallies.push(tally),
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let reason = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                println!("seed {seed}: {}", reason.replace('\n', " "));
                panic!("seed {seed} fails: {reason}");
            }
        }
    }
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let counts = [
        ("certificates", sum(|tally| tally.certificates)),
        ("of an earlier order in a later epoch", sum(|tally| tally.finished_later)),
        ("joined", sum(|tally| tally.joined)),
        ("went on", sum(|tally| tally.went_on)),
        ("new keys", sum(|tally| tally.rekeyed)),
        ("restored", sum(|tally| tally.restored)),
        ("certified apart", sum(|tally| tally.apart)),
        ("inherited", sum(|tally| tally.inherited)),
        ("contested", sum(|tally| tally.contested)),
        ("claims not borne out", sum(|tally| tally.unproven)),
        ("votes refused after closing", sum(|tally| tally.refused_after_closing)),
        ("other sizes", sum(|tally| tally.resized)),
        ("turned with the same keys", sum(|tally| tally.turned)),
        ("attested", sum(|tally| tally.attested)),
        ("forged", sum(|tally| tally.forged)),
    ];
    let anew = (sum(|tally| tally.anew), sum(|tally| tally.stuck));
    println!("{counts:?}, {} voted for anew, of which {} in vain, in {} runs", anew.0, anew.1, tallies.len());
    let is_telling = counts.iter().all(|(_, count)| *count > tallies.len() / 10);
    assert!(tallies.len() < 20 || is_telling, "the runs lead to little: {counts:?}");
}

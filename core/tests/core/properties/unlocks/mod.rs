//! Numbers that their owners ask to unlock, under whatever order of events: see [`World`] for what happens and [`Oracle`]
//! for what must hold. A failing run prints its seed; `WORLD_SEEDS=17..18` runs that one alone, `WORLD_SEEDS=0..100000`
//! looks further.
//!
//! [`World`]: world::World
//! [`Oracle`]: oracle::Oracle

mod agenda;
mod contract;
mod deciding;
mod following;
mod oracle;
mod overdrawn;
mod world;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::prelude::*;

use super::seeds;
use world::World;

/// Runs that are always made, and how many more from a seed that nobody chose.
const FIXED: Range<u64> = 0..100;
const OTHERS: u64 = 50;

#[test]
fn unlocking_in_whatever_order() {
    let (seeds, mut decided) = (seeds(FIXED, OTHERS), 0);
    for seed in &seeds {
        let mut world = World::new(*seed);
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
        decided += world.decided();
    }
    println!("{decided} numbers decided in {} runs", seeds.len());
    assert!(seeds.len() < 20 || decided > seeds.len(), "the runs lead to nothing: {decided} in {}", seeds.len());
}

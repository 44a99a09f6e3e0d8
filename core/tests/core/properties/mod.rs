//! Properties that hold for whatever comes, in whatever order. A failing case is printed with its
//! smallest form, and its seed is written to `core/tests/core/properties/regressions.txt`, to be committed:
//! it is tried first from then on. More cases: `PROPTEST_CASES=10000`.

mod batches;
mod checkpoints;
mod encodings;
mod handover;
mod interleavings;
mod nullifiers;
mod private;
mod retired;
mod unlocks;
mod world;
mod zip215;

use std::ops::Range;

use proptest::test_runner::{Config, FileFailurePersistence};
use rand::prelude::*;

const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/properties/regressions.txt");

/// `cases` of them, unless the environment says how many.
fn config(cases: u32) -> Config {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { cases };
    let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS)) as Box<_>);
    Config { cases, failure_persistence, ..Config::default() }
}

/// The seeds of runs that print theirs: some that are always made, and `others` more from one that nobody chose. The
/// environment may say which: `WORLD_SEEDS=0..100`.
fn seeds(fixed: Range<u64>, others: u64) -> Vec<u64> {
    let Ok(asked) = std::env::var("WORLD_SEEDS") else {
        let other = rand::rng().random_range(fixed.end..1 << 40);
        return fixed.chain(other..other + others).collect();
    };
    let (from, to) = asked.split_once("..").expect("a range such as 0..100");
    (from.parse().expect("a seed")..to.parse().expect("a seed")).collect()
}

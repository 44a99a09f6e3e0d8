//! Properties that hold for whatever comes, in whatever order. A failing case is printed with its
//! smallest form, and its seed is written to `core/tests/core/properties/regressions.txt`, to be committed:
//! it is tried first from then on. More cases: `PROPTEST_CASES=10000`.

mod batches;
mod encodings;
mod interleavings;
mod unlocks;
mod world;
mod zip215;

use proptest::test_runner::{Config, FileFailurePersistence};

const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/properties/regressions.txt");

/// `cases` of them, unless the environment says how many.
fn config(cases: u32) -> Config {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { cases };
    let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS)) as Box<_>);
    Config { cases, failure_persistence, ..Config::default() }
}

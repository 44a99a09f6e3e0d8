//! Hostile bytes for every decoder.
//!
//! ```text
//!  seeds (made here, well-formed) ─┬─► libFuzzer, which keeps what reaches new branches ─► run(bytes)
//!  regressions (files, committed) ─┴─► tests: each of them, and random changes of them ──► run(bytes)
//! ```
//! A target is a module with `run`, which panics if an invariant is violated, and `seeds`. Besides "no panic, no
//! endless loop" each target states what must hold of a decoded value: it encodes to what was read, nothing is valid
//! that nobody signed, and no record appears that was never written. `make fuzz` runs them with a stable compiler.
//!
//! | target | bytes of | decoded by |
//! |---|---|---|
//! | `wire` | clients and authorities | `rpc`, then `core`'s verifier |
//! | `stored` | a shard's journal records and checkpoint, an archive's segments and states | `core` |
//! | `journal` | a shard's segment files | `node`'s storage |
//! | `configuration` | operators and owners: TOML and JSON | `node`, `relayer`, `wallet`, `rpc`, `core` |
//! | `files` | what programs keep for themselves | `relayer`, `wallet`, `node` |
//! | `chain` | Ethereum nodes | `ethereum` |
//! | `http` | clients, as JSON | `rpc`, then `core`'s checks |
//!
//! For tests only: it panics.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, clippy::indexing_slicing)]

pub mod chain;
pub mod configuration;
pub mod files;
pub mod http;
pub mod journal;
pub mod memory;
pub mod signed;
pub mod stored;
pub mod wire;

/// A decoder to be fuzzed.
pub struct Target {
    /// The target's name, which is also that of its module, its program `fuzz-NAME` and its folder of regressions.
    pub name: &'static str,
    /// Decodes the bytes and checks the invariants.
    pub run: fn(&[u8]),
    /// Well-formed inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 7] = [
    Target { name: "wire", run: wire::run, seeds: wire::seeds },
    Target { name: "stored", run: stored::run, seeds: stored::seeds },
    Target { name: "journal", run: journal::run, seeds: journal::seeds },
    Target { name: "configuration", run: configuration::run, seeds: configuration::seeds },
    Target { name: "files", run: files::run, seeds: files::seeds },
    Target { name: "chain", run: chain::run, seeds: chain::seeds },
    Target { name: "http", run: http::run, seeds: http::seeds },
];

/// An input: a first byte that selects what the other bytes are, and those bytes.
fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag], bytes].concat()
}

/// Writes the seeds of a target into the first folder among its program's arguments, in which the engine keeps the
/// inputs that it finds useful.
pub fn plant(seeds: fn() -> Vec<Vec<u8>>) {
    let folder = std::env::args_os().skip(1).map(std::path::PathBuf::from).find(|argument| argument.is_dir());
    for (number, seed) in seeds().iter().enumerate() {
        folder.iter().for_each(|folder| std::fs::write(folder.join(format!("seed-{number:02}")), seed).unwrap());
    }
}

//! Hostile bytes for every decoder.
//!
//! ```text
//!  seeds (made here, well-formed) ─┬─► libFuzzer, which keeps what reaches new branches ─► run(bytes)
//!  regressions (files, committed) ─┴─► tests: each of them, and random changes of them ──► run(bytes)
//! ```
//! A target is a module with `run`, which panics where something does not hold, and `seeds`. Besides "no panic, no
//! endless loop" each states what must hold of what was decoded: it is written as it was read, nothing is valid
//! that nobody signed, no record appears that was never written. `make fuzz` drives them with a stable compiler.
//!
//! | target | bytes of | decoded by |
//! |---|---|---|
//! | `wire` | clients and authorities | `rpc`, then `core`'s verifier |
//! | `stored` | a shard's journal records and checkpoint | `core` |
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

/// What is fuzzed.
pub struct Target {
    /// Its name: of the module, of the program `fuzz-NAME`, of the folder of regressions.
    pub name: &'static str,
    /// Decodes the bytes and checks what must hold.
    pub run: fn(&[u8]),
    /// Well-formed inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 7] = [
    Target { name: "wire", run: wire::run, seeds: wire::seeds },
    Target { name: "stored", run: stored::run, seeds: stored::seeds },
    Target { name: "journal", run: journal::run, seeds: journal::seeds },
    Target { name: "configuration", run: configuration::run, seeds: configuration::seeds },
    Target { name: "files", run: files::run, seeds: files::seeds },
    Target { name: "chain", run: chain::run, seeds: chain::seeds },
    Target { name: "http", run: http::run, seeds: http::seeds },
];

/// An input that begins with the byte which says what the rest is.
fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag], bytes].concat()
}

/// Writes the seeds of a target into the first folder that its program was given, which is where the engine keeps what
/// it finds worth keeping.
pub fn plant(seeds: fn() -> Vec<Vec<u8>>) {
    let folder = std::env::args_os().skip(1).map(std::path::PathBuf::from).find(|argument| argument.is_dir());
    for (number, seed) in seeds().iter().enumerate() {
        folder.iter().for_each(|folder| std::fs::write(folder.join(format!("seed-{number:02}")), seed).unwrap());
    }
}

//! Ceremonies in folders, by the library and by the command.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod command;
mod folder;
#[path = "../../../tests/prover/recorder.rs"]
#[allow(dead_code)]
mod recorder;
#[path = "../../../tests/prover/scene.rs"]
#[allow(dead_code)]
mod scene;
mod whole;

/// Nobody is told of progress.
fn silent(_: &str) {}

//! Frames, their chain, the rules of owners and standbys one by one, and all of them together over a bad stream.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation, missing_docs)]

mod chains;
mod credits;
mod fixture;
mod folders;
mod frames;
mod machines;
mod simulation;
mod vectors;

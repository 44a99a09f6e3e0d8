//! The ceremony that makes the keys of private payments, such that nobody can prove what is false.
//!
//! A phase of [`Powers`] for all circuits is followed by one of [`Keys`] for each size of committee. In each phase
//! every contributor multiplies secrets by new ones and forgets these. The keys are sound if in each phase one
//! contributor was honest: a product is unknown if one of its factors is. [`Folder`] keeps both phases in files.
//!
//! Nothing is believed: [`Powers::verify`] and [`Keys::verify`] check a file from its first contribution to its last
//! point, against the circuit that this program has.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod check;
mod constraints;
mod durable;
mod flaw;
mod folder;
mod group;
mod keys;
mod parallel;
mod powers;
mod reader;
mod secret;
mod specialize;
mod transcript;

#[cfg(test)]
mod tests;

pub use constraints::Constraints;
pub use flaw::{Flaw, Part, Place, SecretName};
pub use folder::{CeremonyError, Folder, POWERS_SIZE, Phase, Verified};
pub use keys::Keys;
pub use powers::Powers;
pub use secret::Entropy;
pub use transcript::{CONTRIBUTIONS_MAX, Hash, Transcript};

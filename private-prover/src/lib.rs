//! The prover of private payments: the statement of a transaction as a circuit and as a program, keys for proofs, and
//! proofs. The objects and the check of proofs are in `fastpay-private`, all of which this crate offers, too.
//!
//! Nothing here reads a clock, a file or the network. Randomness is the caller's.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod check;
mod circuit;
mod groth16;
mod statement;
mod transaction;

pub use check::broken_rules;
pub use circuit::Statement;
pub use fastpay_private::*;
pub use groth16::{FalseStatement, ProvingKey};
pub use statement::{AccountValues, CoinValues, CredentialValues, OutputValues, Rule, Witness};
pub use transaction::{Certified, Envelope, InForce, Order, Prepared, Refusal, prepare};

//! The simulated Ethereum and the simulator themselves, and the contract under other gas rules.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod gas_rules;
mod primary;
mod sim;

//! The simulated Ethereum and the simulator themselves, the contract under other gas rules, and
//! keys that everybody knows.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod gas_rules;
mod known_keys;
mod primary;
mod sim;

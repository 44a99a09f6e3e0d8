//! Tests of the simulated Ethereum and the simulator, the contract under other gas rules, and keys whose secrets are
//! public.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod gas_rules;
mod known_keys;
mod primary;
mod sim;

//! The relayer against real and simulated chains, and authorities of which some lie.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod batches;
mod command;
mod dust;
mod gas;
mod hostile;
mod on_ledger;
mod relaying;
mod retired;
mod scene;
mod unlocking;
mod weather;

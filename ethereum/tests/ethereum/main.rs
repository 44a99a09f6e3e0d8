//! The reader and the sender of transactions against real chains, and nodes that lag, lie, leave and return.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod bindings;
mod deposits;
mod epochs;
mod keys_in_urls;
mod sender;
mod unlocks;

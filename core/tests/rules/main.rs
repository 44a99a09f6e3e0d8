//! Each reason for which an order, a vote, a certificate or a message to a shard is refused, by name.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod epochs;
mod messages;
mod shard;
mod verifier;

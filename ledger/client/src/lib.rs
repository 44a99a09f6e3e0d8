//! Clients of the ledger. Nothing here is taken on a member's word.
//!
//! ```text
//!  the ledger's file ─► Network ─► Client: submit, read (proven answers, from f + 1 members)
//! ```
//! The consensus engine is not compiled for this crate. A member depends on it for the gRPC schema.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod api;
mod client;
mod network;

pub use client::{Client, ClientError, Connection, MemberStatus};
pub use network::{Addresses, Network, NetworkError};

//! Clients of the ledger, and receivers of its groups. Nothing here is taken on a member's word.
//!
//! ```text
//!  the ledger's file ─► Network ─► Client: submit, read (proven answers, from f + 1 members)
//!                            └───► GroupReader: the groups for a FastPay committee, from all members of a cluster
//! ```
//! The consensus engine is not compiled for this crate. A member depends on it for the gRPC schema.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod api;
mod client;
mod committee;
mod groups;
mod network;
#[cfg(feature = "testing")]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
pub mod scripted;

pub use client::{Client, ClientError, Connection, MemberStatus};
pub use committee::{ANNOUNCEMENTS_READ_MAX, CommitteeClient, OpenCommitteeError};
pub use groups::{ForkFound, GroupReader, GroupsError};
pub use network::{Addresses, Network, NetworkError};

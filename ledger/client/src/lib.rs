//! Clients of the ledger, and receivers of its groups. Nothing here is taken on a member's word.
//!
//! ```text
//!  the ledger's file ─► Network ─► Client: submit, read (proven answers, from f + 1 members)
//!                            │        └─► Reserve: deposit, redeem (each instruction on disk before it is sent)
//!                            ├───► GroupReader: the groups for a FastPay committee, from all members of a cluster
//!                            └───► Description: what a browser needs to read a committee by itself
//! ```
//! The consensus engine is not compiled for this crate. A member depends on it for the gRPC schema.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod api;
mod bulk;
mod client;
mod committee;
mod description;
mod groups;
mod instructions;
mod network;
mod reserve;
#[cfg(feature = "testing")]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
pub mod scripted;
mod transport;

pub use bulk::{Bulk, Settled};
pub use client::{Client, ClientError, Connection, MemberStatus};
pub use committee::{ANNOUNCEMENTS_READ_MAX, CommitteeClient, OpenAnnouncements, OpenCommitteeError, oldest_state};
pub use description::{DescribedMember, Description};
pub use groups::{ForkFound, GroupReader, GroupsError};
pub use instructions::{InstructionErrand, Instructions, JournalError, StoredInstruction};
pub use network::{Addresses, Network, NetworkError};
pub use reserve::{CarriedOut, Reserve, ReserveError, unpacked_votes};
pub use transport::{Carrier, Transport};

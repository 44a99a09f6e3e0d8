//! A member of a ledger cluster.
//!
//! ```text
//!  clients ─► grpc, http ─┐                       ┌─► store (decided, groups, checkpoint)
//!  clusters ─► fetch ─────┼─► host (pool, chain) ─┤
//!  members ◄─► engine ────┘        ▲              └─► answers, groups for other clusters
//!                └─ signer ─► votes (recorded before they are sent)
//! ```
//!
//! One task owns the state; everything else asks it through a bounded channel. Always true: what is acknowledged is on
//! disk, and what is signed is recorded before it is sent. The consensus engine is compiled for this crate alone.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

#[cfg(feature = "testing")]
mod alteration;
pub mod audit;
#[cfg(feature = "testing")]
pub mod authorities;
mod bulk;
pub mod chain;
mod checker;
mod command;
mod connections;
pub mod engine;
mod fetch;
mod frames;
mod grpc;
mod host;
mod http;
mod lie;
#[cfg(feature = "testing")]
pub mod localnet;
pub mod member;
mod payload;
mod places;
mod pool;
mod relay;
mod resume;
mod room;
#[cfg(feature = "testing")]
pub mod rotation;
mod store;
mod votes;

pub use command::Unavailable;
pub use host::{End, HostError};

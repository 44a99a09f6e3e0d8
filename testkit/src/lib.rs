//! Builders and simulated authorities for tests. Everything is fixed by small numbers, so that a test
//! that fails fails again.
//!
//! ```text
//!  payment(from, to, …) ─► TestAccount::sign ─► TransferOrder ─► TestCommittee::certificate
//!                                                    │                     │
//!                                                    ▼                     ▼
//!                                   TestAuthority: routes to ─► TestShard: decide, journal, apply
//! ```
//!
//! For tests only: a wrong use panics, and secrets are public.
#![allow(clippy::indexing_slicing)]

mod account;
#[cfg(feature = "anvil")]
pub mod anvil;
mod authority;
mod committee;
#[cfg(feature = "network")]
pub mod fake;
mod journal;
#[cfg(feature = "disk")]
mod memory_disk;
mod ports;
#[cfg(feature = "simulation")]
pub mod primary;
#[cfg(feature = "rebase")]
mod rebase;
mod richer_state;
mod shard;
#[cfg(feature = "simulation")]
pub mod sim;
#[cfg(feature = "simulation")]
mod stepped_shard;

pub use account::{TestAccount, alice, bob, carol, payment, payout, redemption};
pub use authority::{TestAuthority, TestAuthorityError};
pub use committee::{TestCommittee, authority_keys, test_domain};
pub use journal::MemoryJournal;
#[cfg(feature = "disk")]
pub use memory_disk::MemoryDisk;
pub use ports::{NoPort, Ports};
#[cfg(feature = "rebase")]
pub use rebase::{Foundation, rebase};
pub use richer_state::richer_state;
pub use shard::{Outcome, TestShard};
#[cfg(feature = "simulation")]
pub use stepped_shard::SteppedShard;

/// 32 secret bytes, the same for the same arguments. A valid key of either curve.
#[must_use]
pub fn secret(purpose: u8, number: u64) -> [u8; 32] {
    let mut bytes = [purpose; 32];
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    bytes
}

//! Brings redemption certificates to the contract, for the fee that their senders offer.
//!
//! ```text
//!  authorities' feeds ─► Feeds ─► verify, fee policy, on-chain check ─► waiting items ─┐
//!                                                                                     ▼
//!       done ◄─ final ◄─ status, replace, send again ◄─ broadcast ◄─ State on disk ◄─ bundle, simulated
//! ```
//! Modules in reading order: `config`, `key`, `item` (one redemption), `store` (what survives a restart),
//! `feeds` (reading the authorities) and `intake` (what is taken from them), `bundle` (what goes together)
//! and `submit`, `relayer` (the loop).
//!
//! Invariants: nothing is sent that is not on disk; an item is forgotten only when it is redeemed in a
//! final block, offers less than the minimum, or failed too often (its owner can always redeem it alone);
//! no item can hold up others; the relayer holds a gas key and nothing else.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod bundle;
mod config;
mod feeds;
mod intake;
mod item;
mod key;
mod relayer;
mod store;
mod submit;

pub use config::{BundleConfig, Config, ConfigError, KeyConfig, Overrides};
pub use item::{Item, ItemId, Parked};
pub use key::{create_key, read_key};
pub use relayer::{Relayer, RelayerError, Tick};
pub use store::{Bundle, State, StoreError, Totals};

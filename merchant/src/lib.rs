//! Invoices paid with FastPay, for a shop that uses HTTP and webhooks and need not know votes and certificates.
//!
//! ```text
//!  shop ── POST /v1/invoices ─► http ─► Ledger ◄─ watch ── Wallet::collect ── authorities
//!    ▲                                    │ one SQLite database, synced before anything is answered or sent
//!    └──────── signed webhooks ◄─ deliver ┘
//! ```
//! Modules in reading order: `invoice` (its states, pure), `event`, `store` (all of it on disk), `request`, `forms`
//! (the JSON), `ledger` (the only owner of the store), `watch`, `signature`, `deliver`, `http`, `export`, `config`.
//! `checkout` is what customers see, `refund` and `payout` are what the owner's wallet is to sign, `follow` reads from
//! Ethereum.
//!
//! Invariants: this service holds no key and moves no money. A payment counts once, and only after the wallet library
//! has verified its certificate. Everything answered or announced survives a crash. A webhook is sent until it was
//! accepted or given up, always with the same id and body.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod checkout;
pub mod config;
pub mod deliver;
pub mod event;
pub mod export;
pub mod follow;
pub mod forms;
pub mod http;
pub mod invoice;
pub mod ledger;
pub mod ledger_error;
pub mod payout;
pub mod refund;
pub mod request;
pub mod signature;
pub mod store;
pub mod watch;

//! Invoices that are paid with FastPay: for a shop that knows HTTP and webhooks, and nothing of votes and certificates.
//!
//! ```text
//!  shop ── POST /v1/invoices ─► http ─► Ledger ◄─ watch ── Wallet::collect ── authorities
//!    ▲                                    │ one journal, synced before anything is answered or sent
//!    └──────── signed webhooks ◄─ deliver ┘
//! ```
//! Modules in reading order: `invoice` (what a state is, pure), `book` (everything, as a fold over entries, pure),
//! `journal` (the entries on disk), `archive` (what ended long ago), `forms` (what is said of them, in JSON), `ledger` (the one owner of all three), `watch`,
//! `signature`, `deliver`, `http`, `export`, `config`.
//!
//! Invariants: this service holds no key and moves no money; a payment counts once, and only after the wallet library
//! has verified its certificate; what was answered or announced survives a crash; a webhook is sent until it was
//! taken or given up, always with the same id and body.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod archive;
pub mod book;
pub mod config;
pub mod deliver;
pub mod export;
pub mod forms;
pub mod http;
pub mod invoice;
pub mod journal;
pub mod ledger;
pub mod signature;
pub mod watch;

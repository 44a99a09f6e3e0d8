//! One cluster's part of the ledger, as a pure fold: the groups of other clusters and clients' requests go in, state,
//! answers and groups come out. Every member executes a proposal, and votes only for the header that comes out here
//! too.
//!
//! ```text
//!  VerifiedGroup ───┐                         ┌─► State, whose root is in the header
//!  VerifiedRequest ─┼─► State::execute ───────┤
//!  height, time ────┘   (all or nothing)      └─► Outputs: groups to clusters, committees and clients
//! ```
//!
//! Kept here: namespaces with their writers (`store`), reserves (`reserves`), and FastPay committees: what their
//! accounts have (`committees`), stuck numbers (`unlocks`), and who comes next (`rotation`). Money moves between
//! clusters by FastPay's own rule between shards: the payer's shard debits and sends a numbered credit, which cannot
//! fail. There is no two-phase commit.
//!
//! Always true: reserves + omnibus + bonds + Σ sent − Σ taken, over all clusters, is what the genesis issued
//! [`State::holdings`]. A rejected request changes nothing. Equal inputs give equal roots.
//!
//! Deliberately absent: I/O, clocks, randomness, signatures of clusters ([`fastpay_ledger_statement`] checks them).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod audit;
mod committees;
mod draft;
mod outbox;
mod reserves;
mod rotation;
mod sequence;
mod state;
mod store;
mod tree;
mod unlocks;

pub use audit::{Holdings, Overdraft, overdrafts};
pub use draft::{Executed, FoldError, Moment, PENDING_MAX};
pub use outbox::{COMMITTEE_GROUP_INTERVAL_MS, LOOK_UP_BYTES_MAX, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX};
pub use rotation::DEADLINE_MAX_S;
pub use sequence::ANSWERS_KEPT;
pub use state::State;

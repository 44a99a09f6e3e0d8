//! The hand-over from a committee to the next one, whose members, keys and size may differ [LIFE §3]. This is the pure
//! part: what a member reports of the epoch that ends, and what a member that joins the next one takes over. The rules
//! of a shard about it are [`crate::Shard::close`] and [`crate::Shard::join`]; docs/PROTOCOL.md, "Hand-over", has the
//! formats and the promises.
//!
//! ```text
//!  CommitteeInstalled(e + 1) ─► Record::Closed in all shards ─► Closing(e): signed, served with its orders
//!                                                                       │ of a quorum of e
//!  newest checkpoint that they name ─► certificates they report ─► Inheritance ─► Record::Inherited* ─► Record::Joined
//! ```
//! Invariant: an order with a certificate of epoch e is executed or locked at every honest member of e + 1 that votes:
//! it went on with its own memory ([`full_since`]), or one of the quorum whose Closings it joined with was honest and had
//! voted for it.

mod closing;
mod closing_file;
mod full;
mod inheritance;
mod tenure;

pub use closing::{Closing, ClosingEntry, Newest, ReportedEntry};
pub use closing_file::{
    CLOSING_ENTRIES_MAX, ClosingEntries, ClosingError, SignedClosing, VerifiedClosing, VerifiedNamed,
};
pub use full::{Stale, Term, all_join_after, full_since, may_stay};
pub(crate) use inheritance::ReportedLock;
pub use inheritance::{Inheritance, InheritanceError, JoinError, JoinPosition, Joining};
pub use tenure::Tenure;

//! Traces of the programs' work that follow one payment by its digest, through wallet, authorities and relayer.
//!
//! ```text
//!  digest ─► trace id, root span's id, sampled or not     (each program by itself: nothing crosses the wire)
//!  Tracer ─► span of a stage that is over ─► bounded queue ─► a thread of its own ─► collector (OTLP over gRPC)
//!                                             └ full: dropped, counted
//! ```
//! Modules in reading order: `ids` (from a digest), `settings` (the `[traces]` section), `span` (one stage), `tracer`
//! (used by programs), `export` (the thread).
//!
//! Invariants: nothing ever waits for the collector, and a program ends in bounded time without it; the [`Attribute`]s
//! are a closed list without amounts, memos, keys, accounts or text from outside, since a third party often runs the
//! collector; no decision depends on anything here.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod export;
mod ids;
mod settings;
mod span;
mod tracer;

pub use export::{Export, Service, TraceError};
pub use ids::{root_span_id, trace_id};
pub use settings::{Collector, Ratio, SettingsError, TraceSettings};
pub use span::{Attribute, Side, Span};
pub use tracer::{Counts, OpenSpan, Tracer};

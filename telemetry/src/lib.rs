//! What programs tell of their work: traces that follow one payment by its digest, through wallet, authorities and relayer.
//!
//! ```text
//!  digest ─► trace id, root span's id, sampled or not     (each program by itself: nothing crosses the wire)
//!  Tracer ─► span of a stage that is over ─► bounded queue ─► a thread of its own ─► collector (OTLP over gRPC)
//!                                             └ full: dropped, counted
//! ```
//! Modules in reading order: `ids` (from a digest), `settings` (the `[traces]` section), `span` (what is said of a
//! stage), `tracer` (what programs hold), `export` (the thread).
//!
//! Invariants: nothing ever waits for the collector, and a program ends in bounded time without it; what an
//! [`Attribute`] can say is closed: no amount, memo, key, account or text from outside, since whoever keeps traces is
//! often somebody else; no decision depends on anything here.
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

//! HTTP ports within bounds.
//!
//! ```text
//!  TCP ─► bounded connections ─► head and body in time ─► JSON ─► (the program's own routes)
//! ```
//! Invariants: a peer that says nothing, drops by drop, or takes nothing of an answer is left; what a request can have
//! us hold is bounded before anything is asked.

mod body;
mod connections;

pub use body::{BodyError, read_json, require_json};
pub use connections::{ConnectionLimits, HEAD_BYTES_MAX, serve};

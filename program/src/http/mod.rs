//! HTTP ports within bounds.
//!
//! ```text
//!  TCP ─► bounded connections ─► head and body in time ─► JSON ─► (the program's own routes)
//! ```
//! Invariants: a peer that sends nothing, sends byte by byte, or does not read its answer is disconnected; the memory
//! that a request can occupy is bounded before it is handled.

mod body;
mod connections;

pub use body::{BodyError, read_json, require_json};
pub use connections::{ConnectionLimits, HEAD_BYTES_MAX, serve};

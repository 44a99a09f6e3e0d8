//! Common parts of the HTTP ports of all programs.
//!
//! ```text
//!  TCP ─► bounded connections ─► head and body in time ─► JSON ─► (the program's own routes) ─► JSON, or a problem
//! ```
//! Invariants: a peer that sends nothing, sends byte by byte, or does not read its answer is disconnected; the memory
//! that a request can occupy is bounded before it is handled; a refused request gets the reason as problem details
//! (RFC 9457).

mod document;
mod problem;

pub use document::Document;
pub use problem::{ProblemKind, Retry, TYPE_PREFIX, problem_response, problem_responses};

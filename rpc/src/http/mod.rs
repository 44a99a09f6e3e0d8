//! What the HTTP ports of all programs have in common.
//!
//! ```text
//!  TCP ─► bounded connections ─► head and body in time ─► JSON ─► (the program's own routes) ─► JSON, or a problem
//! ```
//! Invariants: a peer that says nothing, drops by drop, or takes nothing of an answer is left; what a request can have
//! us hold is bounded before anything is asked; whoever is refused is told why by problem details (RFC 9457).

mod document;
mod problem;

pub use document::Document;
pub use problem::{ProblemKind, Retry, TYPE_PREFIX, problem_response, problem_responses};

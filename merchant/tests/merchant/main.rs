//! The merchant's service: its command, its port, and what it sees of payments.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod command;
mod http;
mod watching;

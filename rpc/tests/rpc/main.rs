//! The wire: conversions there and back, hostile bytes, and the client against servers of all kinds.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod client;
mod conversions;
mod endpoints;
mod refusals;
mod server;
mod values;

//! The wire: conversions there and back, and hostile bytes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod archived;
mod conversions;
mod previous_release;
mod refusals;
mod values;

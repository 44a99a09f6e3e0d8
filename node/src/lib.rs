//! What runs (`authority`), and what its operator runs (`operator`).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod authority;
pub mod operator;

//! The running authority (`authority`), and its operator's commands (`operator`).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod authority;
pub mod operator;

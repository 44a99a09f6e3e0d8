//! Receivers of the ledger's groups, and reserves, against members that are honest, lie, lag or are away.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod bulk;
mod groups;
mod reads;
mod reserve;
mod vectors;

//! What the ledger certifies: every alteration is refused by the error that names it, and the bytes are pinned.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod alterations;
mod answers;
mod encodings;
mod fixture;
mod forks;
mod headers;
mod reads;
mod requests;
mod vectors;

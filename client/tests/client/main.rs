//! The client against servers that answer in any order, not at all, wrongly, or are away.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod archived;
mod behind;
mod certificates;
mod connection;
mod conversations;
mod dialogues;
mod endpoints;
mod members;
mod server;
mod values;

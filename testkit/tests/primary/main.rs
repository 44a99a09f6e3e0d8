//! The simulated Ethereum: the real reader of deposits, sender and relayer run against it, it answers as a real node
//! does, and the same seed gives the same run.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod differential;
mod reading;
mod refusing;
mod scene;
mod sending;

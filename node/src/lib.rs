//! An authority: shards, storage, network, follower, HTTP.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod metrics;
pub mod network;
pub mod shard;
pub mod storage;

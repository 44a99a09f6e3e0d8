//! An authority: shards, storage, network, follower, HTTP.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod authority;
pub mod config;
pub mod deployment;
pub mod deposit_sink;
pub mod follower;
pub mod http;
pub mod inconsistency;
pub mod index;
pub mod keys;
pub mod known_committees;
pub mod metrics;
pub mod network;
pub mod operator;
pub mod payouts;
pub mod peer_sync;
pub mod rollback;
pub mod rotation;
pub mod shard;
pub mod storage;
pub mod tls;
pub mod voter_status;

//! An authority: shards, storage, network, follower, HTTP.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod authority;
pub mod backup;
pub mod check;
pub mod committee;
pub mod config;
pub mod deployment;
pub mod follower;
pub mod http;
pub mod inconsistency;
pub mod index;
pub mod keys;
pub mod metrics;
pub mod network;
pub mod payouts;
pub mod rollback;
pub mod rotation;
pub mod setup;
pub mod shard;
pub mod status;
pub mod storage;
pub mod tls;
pub mod voter_status;

//! An authority: shards, storage, network, follower, HTTP.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

pub mod authority;
pub mod backup;
pub mod check;
pub mod committee;
pub mod config;
pub mod deployment;
pub mod follower;
pub mod guard;
pub mod http;
pub mod index;
pub mod keys;
pub mod metrics;
pub mod network;
pub mod payouts;
pub mod rotation;
pub mod setup;
pub mod shard;
pub mod standing;
pub mod status;
pub mod storage;
pub mod suspicion;
pub mod tls;

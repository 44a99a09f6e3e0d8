//! An authority: shard actors, storage, network, follower, HTTP.

//! The parts of an authority at work: real threads, real journals in temporary folders, real gRPC on
//! loopback. Nothing waits for a fixed time: what must happen is polled for, within [`scene::PATIENCE`].
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod alarm;
mod announcements;
mod archive_room;
mod archive_store;
mod archived;
mod archived_store;
mod authority;
mod backup;
mod certification;
mod checkpoint;
mod committee;
mod credits;
mod deposit_sink;
mod durability;
mod durable_before_visible;
mod first_start;
mod floods;
mod handover;
mod history;
mod hostile_peers;
mod http_api;
mod http_bounds;
mod http_events;
mod http_index;
mod http_scene;
mod http_unlock;
mod joining;
mod network;
mod operator;
mod payouts;
mod peer_sync;
mod previous_release;
mod probation;
mod process;
mod pruning;
mod rebase;
mod recover;
mod rollback;
mod room;
mod rotation;
mod scene;
mod shard;
mod skipping;
mod traces;

//! The fold, by example and as properties. Clusters talk by compact decisions that are certified and opened for real.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod bounds;
mod committees;
mod differential;
mod faults;
mod genesis;
mod outbox;
mod passing;
mod people;
mod properties;
mod reserves;
mod rotation;
mod sequences;
mod store;
mod unlocks;
mod world;

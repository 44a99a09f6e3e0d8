//! The rules of owners and standbys, one by one, over a stream that does what the test says.

mod leaving;
mod reads;
mod shard;
mod takeovers;
mod visible;

pub use shard::Shard;

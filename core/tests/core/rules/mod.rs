//! Each reason for which an order, a vote, a certificate or a message to a shard is refused, by name.

mod checkpoint;
mod ended;
mod endpoint;
mod epochs;
mod full;
mod handover;
mod messages;
mod outline;
mod private;
mod private_checkpoint;
mod private_handover;
mod private_shard;
pub mod recovery;
mod shard;
mod unlock;
mod verifier;

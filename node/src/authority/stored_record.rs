//! Decodes the records of a shard's journal.

use borsh::BorshDeserialize;
use fastpay_core::{JournalPosition, Record, ShardId};

/// A record of a journal that is not one of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the record at position {position} of shard {shard}'s journal cannot be decoded: the disk has changed it, or a newer \
     program wrote it"
)]
pub struct UndecodableRecord {
    /// The shard.
    pub shard: ShardId,
    /// The position of the record.
    pub position: JournalPosition,
}

pub(crate) fn decode(shard: ShardId, position: JournalPosition, bytes: &[u8]) -> Result<Record, UndecodableRecord> {
    Record::try_from_slice(bytes).map_err(|_| UndecodableRecord { shard, position })
}

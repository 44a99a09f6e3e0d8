//! The settings of a shard.

use std::num::NonZeroU64;
use std::time::Duration;

use fastpay_core::Domain;
use fastpay_program::Clock;

use super::budget::AddressBudgets;
use super::chain_time::ChainTime;
use crate::authority::voter_status::VoterStatusWatch;

/// Sizes that bound a shard's memory and its batches.
#[derive(Clone, Copy, Debug)]
pub struct ShardLimits {
    /// The maximum number of queued client requests; further ones are refused as busy.
    pub queue_requests_max: usize,
    /// The approximate number of requests in a batch: they are verified together and share one sync.
    pub batch_requests_max: usize,
    /// A checkpoint is due after this many bytes of journal. It bounds the time of a recovery.
    pub checkpoint_journal_bytes: u64,
    /// After this long a checkpoint is due where anything changed.
    pub checkpoint_interval: Duration,
    /// At most so many accounts of a checkpoint are taken between two batches: bounds how long it holds
    /// them up.
    pub checkpoint_slice_accounts: usize,
    /// Never more accounts than this are in memory. A checkpoint is due where a quarter of them changed.
    pub accounts_in_memory_max: usize,
    /// Below this much free disk space, no new orders are voted for.
    pub disk_reserve_bytes: u64,
    /// Bytes of journal per day for the orders of one account.
    pub account_journal_bytes_per_day: NonZeroU64,
}

/// A gibibyte.
const GIB: NonZeroU64 = NonZeroU64::new(1 << 30).expect("not zero");

/// For the orders of one address: as much as for sixteen accounts. It is above what honest people behind one address
/// send, and fills a disk of a terabyte in two months.
pub const ADDRESS_JOURNAL_BYTES_PER_DAY: NonZeroU64 = GIB.saturating_mul(NonZeroU64::new(16).expect("not zero"));

impl Default for ShardLimits {
    fn default() -> Self {
        Self {
            // About 30 milliseconds of work, and room for all that one stream alone can have in flight. What waits
            // goes out of the processor's cache before its turn comes: more is not better.
            queue_requests_max: 2_048,
            // Larger ones are hardly cheaper for each request, and fill the cache.
            batch_requests_max: 512,
            checkpoint_journal_bytes: 64 << 20,
            checkpoint_interval: Duration::from_secs(60),
            checkpoint_slice_accounts: 1_024,
            accounts_in_memory_max: 8_000_000,
            // A million confirmations of what is under way, and room for checkpoints to be rewritten.
            disk_reserve_bytes: GIB.get(),
            // A million payments.
            account_journal_bytes_per_day: GIB,
        }
    }
}

/// The settings that all shards of an authority share.
#[derive(Clone)]
pub struct ShardSettings {
    /// The deployment that it votes in.
    pub domain: Domain,
    /// The committees, and the keys with which it votes now.
    pub voter_status: VoterStatusWatch,
    /// Bounds.
    pub limits: ShardLimits,
    /// The bytes written for clients at each address.
    pub addresses: AddressBudgets,
    /// How far the chain was followed before, and the clock with which that is compared. None where no chain is followed:
    /// then nothing is too old.
    pub chain: Option<(ChainTime, Clock)>,
}

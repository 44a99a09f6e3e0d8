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
    /// A checkpoint is due this long after the last one, if anything changed.
    pub checkpoint_interval: Duration,
    /// The maximum number of accounts that a checkpoint takes between two batches. It bounds how long the batches are
    /// held up.
    pub checkpoint_slice_accounts: usize,
    /// The maximum number of accounts in memory. A checkpoint is due when a quarter of this number have changed.
    pub accounts_in_memory_max: usize,
    /// The authority votes for no new order if less disk space than this is free.
    pub disk_reserve_bytes: u64,
    /// Bytes of journal per day for the orders of one account.
    pub account_journal_bytes_per_day: NonZeroU64,
}

/// A gibibyte.
const GIB: NonZeroU64 = NonZeroU64::new(1 << 30).expect("not zero");

/// The budget of one address: as much as that of sixteen accounts. It is above what honest users behind one address
/// send, and fills a disk of a terabyte in two months.
pub const ADDRESS_JOURNAL_BYTES_PER_DAY: NonZeroU64 = GIB.saturating_mul(NonZeroU64::new(16).expect("not zero"));

impl Default for ShardLimits {
    fn default() -> Self {
        Self {
            // About 30 milliseconds of work, and room for all requests that one stream can have in flight. More is no
            // better: what waits longer leaves the processor's cache before it is served.
            queue_requests_max: 2_048,
            // Larger batches are hardly cheaper per request, and fill the cache.
            batch_requests_max: 512,
            checkpoint_journal_bytes: 64 << 20,
            checkpoint_interval: Duration::from_secs(60),
            checkpoint_slice_accounts: 1_024,
            accounts_in_memory_max: 8_000_000,
            // A million confirmations of payments under way, and room to rewrite checkpoints.
            disk_reserve_bytes: GIB.get(),
            // A million payments.
            account_journal_bytes_per_day: GIB,
        }
    }
}

/// The settings that all shards of an authority share.
#[derive(Clone)]
pub struct ShardSettings {
    /// The deployment in which the authority votes.
    pub domain: Domain,
    /// The committees, and the keys with which the authority votes now.
    pub voter_status: VoterStatusWatch,
    /// Bounds.
    pub limits: ShardLimits,
    /// The budgets of journal bytes of each client address.
    pub addresses: AddressBudgets,
    /// How far the chain was followed before, and the clock to compare that with. `None` without a chain: then no view
    /// is too old.
    pub chain: Option<(ChainTime, Clock)>,
}

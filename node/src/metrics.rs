//! What the node counts, in the Prometheus text format.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{JournalPosition, Shard};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// What one shard counts.
#[derive(Debug)]
pub struct ShardMetrics {
    /// Commands that wait in the queue.
    pub queued: Gauge,
    /// Votes given, repeated ones included.
    pub votes: Counter,
    /// Certificates answered as confirmed, repeated ones included.
    pub confirmed: Counter,
    /// Requests refused by the rules.
    pub refused: Counter,
    /// Orders and certificates that did not stand up.
    pub invalid: Counter,
    /// Votes of this authority in certificates that it does not remember.
    pub forgotten_votes: Counter,
    /// How many requests were verified and committed together.
    pub batch_requests: Histogram,
    records: Counter,
    commit_seconds: Histogram,
    checkpoint_pause_seconds: Histogram,
    accounts_in_memory: Gauge,
    journal_bytes: Gauge,
    synchronized: Gauge,
    credits_in_flight: Gauge,
}

impl ShardMetrics {
    /// Counts a commit of `records` records.
    pub fn committed(&self, records: u64, duration: Duration) {
        self.records.inc_by(records);
        self.commit_seconds.observe(duration.as_secs_f64());
    }

    /// Counts a part of a checkpoint, for which the shard held up its commands.
    pub fn checkpoint_paused(&self, duration: Duration) {
        self.checkpoint_pause_seconds.observe(duration.as_secs_f64());
    }

    /// Takes the sizes of a shard's state.
    pub fn observe(&self, shard: &Shard, journal_end: JournalPosition) {
        let gauge = |gauge: &Gauge, value: u64| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        let ledger = shard.ledger();
        gauge(&self.accounts_in_memory, shard.accounts_in_memory() as u64);
        gauge(&self.journal_bytes, journal_end.0);
        gauge(&self.synchronized, ledger.synchronized.0);
        let in_flight: usize = ledger.outboxes.values().map(|outbox| outbox.waiting.len()).sum();
        gauge(&self.credits_in_flight, in_flight as u64);
    }
}

/// What the network room counts.
#[derive(Debug)]
pub struct NetworkMetrics {
    /// Open connections.
    pub connections: Gauge,
    /// Connections closed at once because there were too many.
    pub connections_refused: Counter,
    /// Requests that are not what the schema says.
    pub malformed: Counter,
    /// Requests refused because a shard's queue was full.
    pub busy: Counter,
}

/// What the follower counts.
#[derive(Debug)]
pub struct FollowerMetrics {
    /// The newest finalized block that was read whole.
    pub block: Gauge,
    /// The index of the newest deposit handed to the shards.
    pub deposits: Gauge,
    /// Failures after which it tries again.
    pub retries: Counter,
    /// 1 where it stopped because its Ethereum node cannot be right.
    pub alarm: Gauge,
}

/// All of the node's counters.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// The network room's.
    pub network: Arc<NetworkMetrics>,
    /// The follower's.
    pub follower: Arc<FollowerMetrics>,
    /// Each shard's, from the first.
    pub shards: Vec<Arc<ShardMetrics>>,
}

impl Metrics {
    /// Counters for a node with so many shards.
    #[must_use]
    pub fn new(shards: u32) -> Self {
        let mut registry = Registry::with_prefix("fastpay");
        let network = Arc::new(network(&mut registry));
        let follower = Arc::new(follower(&mut registry));
        let shards = (0..shards).map(|id| Arc::new(shard(&mut registry, id))).collect();
        Self { registry, network, follower, shards }
    }

    /// All counters as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to memory does not fail");
        text
    }
}

fn network(registry: &mut Registry) -> NetworkMetrics {
    let metrics = NetworkMetrics {
        connections: Gauge::default(),
        connections_refused: Counter::default(),
        malformed: Counter::default(),
        busy: Counter::default(),
    };
    registry.register("connections", "Open connections", metrics.connections.clone());
    registry.register("connections_refused", "Connections above the bound", metrics.connections_refused.clone());
    registry.register("malformed", "Requests that are not what the schema says", metrics.malformed.clone());
    registry.register("busy", "Requests refused because a queue was full", metrics.busy.clone());
    metrics
}

fn follower(registry: &mut Registry) -> FollowerMetrics {
    let metrics = FollowerMetrics {
        block: Gauge::default(),
        deposits: Gauge::default(),
        retries: Counter::default(),
        alarm: Gauge::default(),
    };
    registry.register("follower_block", "The newest finalized block that was read", metrics.block.clone());
    registry.register("follower_deposits", "The index of the newest deposit", metrics.deposits.clone());
    registry.register("follower_retries", "Failures that were retried", metrics.retries.clone());
    registry.register("follower_alarm", "1 where the follower has stopped", metrics.alarm.clone());
    metrics
}

fn shard(registry: &mut Registry, id: u32) -> ShardMetrics {
    let label = ("shard".into(), id.to_string().into());
    let registry = registry.sub_registry_with_label(label);
    let metrics = ShardMetrics {
        queued: Gauge::default(),
        votes: Counter::default(),
        confirmed: Counter::default(),
        refused: Counter::default(),
        invalid: Counter::default(),
        forgotten_votes: Counter::default(),
        batch_requests: Histogram::new(exponential_buckets(1.0, 2.0, 12)),
        records: Counter::default(),
        commit_seconds: Histogram::new(exponential_buckets(50e-6, 2.0, 14)),
        checkpoint_pause_seconds: Histogram::new(exponential_buckets(50e-6, 2.0, 18)),
        accounts_in_memory: Gauge::default(),
        journal_bytes: Gauge::default(),
        synchronized: Gauge::default(),
        credits_in_flight: Gauge::default(),
    };
    registry.register("queued", "Commands that wait", metrics.queued.clone());
    registry.register("votes", "Votes given", metrics.votes.clone());
    registry.register("confirmed", "Certificates confirmed", metrics.confirmed.clone());
    registry.register("refused", "Requests refused by the rules", metrics.refused.clone());
    registry.register("invalid", "Orders and certificates that did not stand up", metrics.invalid.clone());
    let forgotten = metrics.forgotten_votes.clone();
    registry.register(
        "forgotten_votes",
        "Votes of this authority in certificates that it does not remember",
        forgotten,
    );
    registry.register("batch_requests", "Requests that were served together", metrics.batch_requests.clone());
    registry.register("records", "Records committed to the journal", metrics.records.clone());
    registry.register_with_unit("commit", "Write and sync of a batch", Unit::Seconds, metrics.commit_seconds.clone());
    let pauses = metrics.checkpoint_pause_seconds.clone();
    registry.register_with_unit("checkpoint_pause", "How long a checkpoint held up commands", Unit::Seconds, pauses);
    registry.register("accounts_in_memory", "Accounts in memory", metrics.accounts_in_memory.clone());
    registry.register_with_unit("journal", "Length of the journal", Unit::Bytes, metrics.journal_bytes.clone());
    registry.register("synchronized", "The index of the newest deposit applied", metrics.synchronized.clone());
    registry.register("credits_in_flight", "Credits on their way to other shards", metrics.credits_in_flight.clone());
    metrics
}

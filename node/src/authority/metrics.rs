//! The node's metrics as OpenMetrics text.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastpay_core::{Asset, AssetTotals, AuthorityName, Balance, Epoch, JournalPosition, Shard, ShardLedger, Vote};
use fastpay_program::metrics;
use fastpay_rpc::Refusal;
use fastpay_telemetry::Tracer;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::authority::handover::JoinWait;
use crate::authority::index::Index;
use crate::authority::pruning::PruningMetrics;
use crate::authority::voter_status::VoterStatus;

/// The maximum number of assets whose sums are shown, ETH first: anyone can deposit tokens of their own making.
const ASSETS_SHOWN_MAX: usize = 32;

type Labels = [(&'static str, String); 1];
type Timestamps = Family<Labels, Gauge>;

metrics! {
    /// The metrics of one shard, and its tracer.
    #[derive(Debug)]
    pub struct ShardMetrics {
        pub queued: Gauge = plain("queued", "Commands that wait"),
        // Repeated ones are included, in the next one, too.
        pub votes: Counter = plain("votes", "Votes given"),
        pub confirmed: Counter = plain("confirmed", "Certificates confirmed"),
        pub refused: Counter = plain("refused", "Requests refused by the rules"),
        pub invalid: Counter = plain("invalid", "Orders and certificates that were not valid"),
        pub forgotten_votes: Counter =
            plain("forgotten_votes", "Votes of this authority in certificates that it does not remember"),
        pub voided_executed: Counter =
            plain("voided_executed", "Numbers that the contract voided and that are executed here"),
        pub batch_requests: Histogram = plain("batch_requests", "Requests that were served together", 1.0, 12),
        records: Counter = plain("records", "Records committed to the journal"),
        commit_seconds: Histogram = seconds("commit", "Write and sync of a batch", 50e-6, 14),
        checkpoint_pause_seconds: Histogram =
            seconds("checkpoint_pause", "How long a checkpoint held up commands", 50e-6, 18),
        accounts_in_memory: Gauge = plain("accounts_in_memory", "Accounts in memory"),
        journal_bytes: Gauge = bytes("journal", "Length of the journal"),
        synchronized: Gauge = plain("synchronized", "The index of the newest deposit applied"),
        credits_in_flight: Gauge = plain("credits_in_flight", "Credits on their way to other shards"),
        pub credit_redeliveries: Counter = plain(
            "credit_redeliveries",
            "Times that another shard acknowledged nothing for a second, and its credits were handed over again"
        ),
        redemptions: Gauge = plain("redemptions", "Redemption certificates confirmed"),
        checkpoint_timestamp: Gauge = seconds("checkpoint_timestamp", "When a checkpoint was last on disk"),
        disk_free: Gauge = bytes("disk_free", "Free where the journal is"),
        disk_reserve: Gauge = bytes("disk_reserve", "Below this, no new order is voted for"),
        ..
        /// The tracer that takes spans.
        pub tracer: Tracer,
        peer_vote_timestamp: Timestamps,
        locks_refused: LocksRefused,
    }
}

/// New locks refused for lack of room, by reason.
#[derive(Debug, Default)]
struct LocksRefused {
    disk: Counter,
    account_budget: Counter,
    address_budget: Counter,
}

impl ShardMetrics {
    /// Sets the number of free bytes on the disk.
    pub fn observe_disk(&self, free: u64) {
        self.disk_free.set(signed(free));
    }

    /// Sets the number of bytes reserved for payments under way.
    pub fn observe_reserve(&self, reserve: u64) {
        self.disk_reserve.set(signed(reserve));
    }

    /// Counts an order refused for lack of room.
    pub fn refused_lock(&self, why: &Refusal) {
        match why {
            Refusal::DiskLow(_) => drop(self.locks_refused.disk.inc()),
            Refusal::AccountBudget(_) => drop(self.locks_refused.account_budget.inc()),
            Refusal::AddressBudget(_) => drop(self.locks_refused.address_budget.inc()),
            _ => {}
        }
    }

    /// Counts a commit of `records` records.
    pub fn committed(&self, records: u64, duration: Duration) {
        self.records.inc_by(records);
        self.commit_seconds.observe(duration.as_secs_f64());
    }

    /// Observes the time for which a part of a checkpoint delayed the shard's commands.
    pub fn checkpoint_paused(&self, duration: Duration) {
        self.checkpoint_pause_seconds.observe(duration.as_secs_f64());
    }

    /// Notes that a checkpoint was written, or was found at the start.
    pub fn checkpointed(&self) {
        self.checkpoint_timestamp.set(now_seconds());
    }

    /// Notes who voted in a certificate.
    pub fn saw_votes(&self, votes: &[Vote]) {
        let now = now_seconds();
        for vote in votes {
            self.peer_vote_timestamp.get_or_create(&[("authority", vote.authority.to_string())]).set(now);
        }
    }

    /// Sets the gauges of a shard's state.
    pub fn observe(&self, shard: &Shard, journal_end: JournalPosition) {
        let gauge = |gauge: &Gauge, value: u64| gauge.set(signed(value));
        let ledger = shard.ledger();
        gauge(&self.accounts_in_memory, shard.accounts_in_memory() as u64);
        gauge(&self.journal_bytes, journal_end.0);
        gauge(&self.synchronized, ledger.synchronized.0);
        let in_flight: usize = ledger.outboxes.values().map(|outbox| outbox.waiting.len()).sum();
        gauge(&self.credits_in_flight, in_flight as u64);
        gauge(&self.redemptions, ledger.redemptions.count());
    }
}

metrics! {
    /// The metrics of the network.
    #[derive(Debug, Default)]
    pub struct NetworkMetrics {
        pub connections: Gauge = plain("connections", "Open connections"),
        pub connections_refused: Counter = plain("connections_refused", "Connections above the bound"),
        pub malformed: Counter = plain("malformed", "Requests that are not what the schema says"),
        pub busy: Counter = plain("busy", "Requests refused because a queue was full"),
    }
}

metrics! {
    /// The metrics of the follower.
    #[derive(Debug, Default)]
    pub struct FollowerMetrics {
        pub block: Gauge = plain("follower_block", "The newest finalized block that was read"),
        pub final_block: Gauge = plain("follower_final_block", "The newest finalized block"),
        pub polled_timestamp: Gauge = seconds("follower_polled_timestamp", "When the Primary last answered"),
        pub deposits: Gauge = plain("follower_deposits", "The index of the newest deposit"),
        pub retries: Counter = plain("follower_retries", "Failures that were retried"),
        pub rereads: Counter = plain("follower_rereads", "Inconsistent answers that were read again"),
        pub rereading: Gauge = plain("follower_rereading", "1 while an inconsistent answer is read again"),
        pub alarm: Gauge = plain("follower_alarm", "1 where the follower has stopped"),
        pub sign_of_life: Gauge =
            plain("committee_sign_of_life_timestamp_seconds", "Its last heartbeat or installation"),
    }
}

impl FollowerMetrics {
    /// Notes an answer of the Primary.
    pub fn polled(&self, final_block: u64) {
        self.final_block.set(signed(final_block));
        self.polled_timestamp.set(now_seconds());
    }
}

metrics! {
    /// The metrics of peer synchronization.
    #[derive(Debug, Default)]
    pub struct PeerMetrics {
        pub certificates: Counter = plain("peer_certificates", "Certificates that a peer supplied"),
        pub left: Counter = plain("peers_left", "Times that a peer was left for a while"),
        behind: Family<[(&'static str, String); 2], Gauge> = bytes("peer_log_behind", "Of a peer's log, not read yet"),
    }
}

impl PeerMetrics {
    /// Sets how many bytes of the log of a peer's shard are still to be read.
    pub fn observe_behind(&self, peer: AuthorityName, shard: usize, bytes: u64) {
        let labels = [("authority", peer.to_string()), ("shard", shard.to_string())];
        self.behind.get_or_create(&labels).set(signed(bytes));
    }
}

metrics! {
    /// The metrics of the archive of certified checkpoints.
    #[derive(Debug, Default)]
    pub struct CertificationMetrics {
        number: Gauge = plain("certified_checkpoint_number", "The newest certified checkpoint in the archive"),
        timestamp: Gauge =
            seconds("certified_checkpoint_timestamp", "When the newest certified checkpoint was archived; 0 for none"),
        due_timestamp: Gauge =
            seconds("certified_checkpoint_due_timestamp", "When the next checkpoint is due; 0 without an archive"),
        pub failures: Counter =
            plain("certified_checkpoint_failures", "Failures to sign, certify or archive a checkpoint"),
        pub peers_left: Counter = plain("archive_peers_left", "Times that a peer's archive was left for a while"),
        pub store_failures: Counter =
            plain("archive_store_failures", "Failures to upload the archive, or to read it back"),
        pub room_lacking: Gauge = bytes(
            "archive_room_lacking",
            "What is lacking on the disk for the next checkpoint, beside the reserve of the journals"
        ),
        stored_number: Gauge =
            plain("archive_store_number", "The newest checkpoint in the archive's store; 0 without one"),
        skipped_numbers: Gauge =
            plain("archive_skipped_numbers", "Skipped checkpoints whose files are still to be fetched"),
    }
}

impl CertificationMetrics {
    /// Sets the newest certified checkpoint in the archive's store.
    pub fn observe_store(&self, number: u64) {
        self.stored_number.set(signed(number));
    }

    /// Sets how many certified numbers were skipped and are still to be fetched.
    pub fn observe_skipped(&self, count: usize) {
        self.skipped_numbers.set(signed(u64::try_from(count).unwrap_or(u64::MAX)));
    }

    /// Sets the newest certified checkpoint, when it was archived, and when the next one is due, in seconds since 1970.
    pub fn observe(&self, number: u64, archived_at: u64, due_at: u64) {
        self.number.set(signed(number));
        self.timestamp.set(signed(archived_at));
        self.due_timestamp.set(signed(due_at));
    }
}

metrics! {
    /// Metrics of the hand-over from an epoch that has ended.
    #[derive(Debug, Default)]
    pub struct HandoverMetrics {
        closings: Gauge = plain("closings", "Members whose Closing of the newest epoch that has ended is here"),
        pub peers_left: Counter =
            plain("closing_peers_left", "Times that a peer was not asked for its Closing for a while"),
        join_closings_missing: Gauge = plain("join_closings_missing", "Closings that are missing for the join"),
        join_certificates_missing: Gauge =
            plain("join_certificates_missing", "Certificates that are missing for the join"),
        ..
        /// The epoch that this authority joins, and what it waits for.
        join: Mutex<Option<(Epoch, JoinWait)>>,
    }
}

impl HandoverMetrics {
    /// Sets of how many members the Closings of the newest epoch that has ended are here.
    pub fn observe(&self, closings: usize) {
        self.closings.set(i64::try_from(closings).unwrap_or(i64::MAX));
    }

    /// Sets the epoch that this authority joins, and what it waits for; `None` if it joins none. Another kind
    /// of reason is logged.
    pub fn observe_join(&self, join: Option<(Epoch, JoinWait)>) {
        let (closings, certificates) = join.as_ref().map(|(_, wait)| wait.missing()).unwrap_or_default();
        self.join_closings_missing.set(i64::try_from(closings).unwrap_or(i64::MAX));
        self.join_certificates_missing.set(signed(certificates));
        let mut known = self.join.lock().unwrap_or_else(PoisonError::into_inner);
        let code = |join: &Option<(Epoch, JoinWait)>| join.as_ref().map(|(epoch, wait)| (*epoch, wait.code()));
        if let Some((epoch, wait)) = join.as_ref().filter(|_| code(&known) != code(&join)) {
            tracing::info!(%epoch, waits_for = wait.code(), %wait, "this authority votes once it has joined the epoch");
        }
        *known = join;
    }

    /// The epoch that this authority joins, and what it waits for.
    #[must_use]
    pub fn join(&self) -> Option<(Epoch, JoinWait)> {
        self.join.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

metrics! {
    /// The state of the authority, read when metrics are requested.
    #[derive(Debug, Default)]
    pub struct AuthorityMetrics {
        ready: Gauge = plain("ready", "1 where it has read the Primary up to its final head"),
        epoch: Gauge = plain("epoch", "The epoch of the current committee"),
        voting: Gauge = plain("voting", "1 where the authority votes in the current epoch"),
        restored: Gauge = plain("restored", "1 where its data folder is marked as an older copy"),
        joining: Gauge = plain("joining", "1 where the authority joins the current epoch before it votes"),
        peer_vote_timestamp: Timestamps = seconds(
            "peer_vote_timestamp",
            "When a certificate with a vote of this member was last seen; 0 for not since the start"
        ),
        tls_end_timestamp: Gauge = seconds(
            "tls_end_timestamp",
            "When the certificate that is served ends, the earliest of its chain; 0 without TLS"
        ),
        index_behind: Gauge = bytes("index_behind", "Of the journals, not in the index yet"),
        index_failed: Gauge = plain("index_failed", "1 where the index has stopped to follow"),
        redemptions_waiting: Gauge =
            plain("redemptions_waiting", "Redemptions confirmed here that the contract has not taken"),
        redemption_waiting_timestamp: Gauge = seconds(
            "redemption_waiting_timestamp",
            "When the one of them that has waited longest was first seen; 0 for none"
        ),
        announcements_open: Gauge =
            plain("announcements_open", "Announced committees that can be installed, now or later"),
        announcement_installable_timestamp: Gauge =
            seconds("announcement_installable_timestamp", "When the first of them can be installed; 0 for none"),
        assets_imbalanced: Gauge = plain("assets_imbalanced", "Sums of assets in shards that do not add up"),
        asset_deposited: Amounts = plain("asset_deposited", "Deposits credited, in base units"),
        asset_held: Amounts = plain("asset_held", "Balances of accounts, in base units"),
        asset_in_flight: Amounts = plain("asset_in_flight", "Credits between shards, in base units"),
        asset_redeemed: Amounts = plain("asset_redeemed", "Redemptions confirmed, in base units"),
    }
}

/// Amounts in an asset's smallest unit, rounded to 53 bits: for graphs, not for accounting.
type Amounts = Family<Labels, Gauge<f64, AtomicU64>>;

impl AuthorityMetrics {
    /// Sets whether the node is ready, and its place in the committee. Members that have not voted since the start are
    /// shown as never seen, and members of earlier epochs only are not shown.
    pub fn observe(&self, ready: bool, voter_status: &VoterStatus) {
        self.ready.set(ready.into());
        self.epoch.set(signed(voter_status.epoch().0));
        self.voting.set(voter_status.voter().is_some().into());
        self.restored.set(voter_status.rollback_protection().is_some().into());
        self.joining.set(voter_status.joins().is_some_and(|_| !voter_status.is_stale()).into());
        let current = voter_status.committees().current();
        let label = |name: &dyn ToString| [("authority", name.to_string())];
        for gone in voter_status.committees().iter().flat_map(|committee| committee.members()) {
            if current.member(&gone.name).is_none() {
                self.peer_vote_timestamp.remove(&label(&gone.name));
            }
        }
        for member in current.members() {
            drop(self.peer_vote_timestamp.get_or_create(&label(&member.name)));
        }
    }

    /// Sets when the served TLS certificate ends, in seconds since 1970.
    pub fn observe_certificate(&self, ends_at: i64) {
        self.tls_end_timestamp.set(ends_at);
    }

    /// Sets how far the index has followed the journals.
    pub fn observe_index(&self, index: &Index) {
        self.index_behind.set(signed(index.bytes_behind()));
        self.index_failed.set(index.has_failed().into());
    }

    /// Sets how many redemptions wait for the contract, and since when the oldest does, in seconds since 1970.
    pub fn observe_waiting(&self, count: u64, oldest: Option<u64>) {
        self.redemptions_waiting.set(signed(count));
        self.redemption_waiting_timestamp.set(signed(oldest.unwrap_or_default()));
    }

    /// Sets how many announced committees can still be installed, and from when the first can, in seconds since 1970.
    pub fn observe_announcements(&self, count: u64, installable_at: Option<u64>) {
        self.announcements_open.set(signed(count));
        self.announcement_installable_timestamp.set(signed(installable_at.unwrap_or_default()));
    }

    /// Sets the sums of all shards, and checks that each shard's sums balance exactly.
    pub fn observe_ledgers(&self, ledgers: &[Arc<ShardLedger>]) {
        let all = || ledgers.iter().flat_map(|ledger| &ledger.totals);
        let imbalanced = all().filter(|(_, totals)| imbalance(totals) != Balance::ZERO).count();
        self.assets_imbalanced.set(signed(imbalanced as u64));
        let mut assets: Vec<Asset> = all().map(|(asset, _)| *asset).collect();
        assets.sort_unstable();
        assets.dedup();
        for asset in assets.into_iter().take(ASSETS_SHOWN_MAX) {
            let of_asset = || ledgers.iter().filter_map(|ledger| ledger.totals.get(&asset));
            let show = |family: &Amounts, part: fn(&AssetTotals) -> Balance| {
                let sum = of_asset().fold(Balance::ZERO, |sum, totals| sum.plus(part(totals)));
                let nearest = sum.to_string().parse::<f64>().unwrap_or(f64::NAN);
                family.get_or_create(&[("asset", asset.to_string())]).set(nearest);
            };
            show(&self.asset_deposited, |totals| totals.deposited);
            show(&self.asset_held, |totals| totals.accounts);
            show(&self.asset_in_flight, |totals| totals.forwarded.plus(totals.credited.negated()));
            show(&self.asset_redeemed, |totals| totals.redeemed);
        }
    }
}

/// The value that entered a shard, less the value that left it and its balances. It must be zero.
fn imbalance(totals: &AssetTotals) -> Balance {
    let came = totals.deposited.plus(totals.credited);
    let left = totals.forwarded.plus(totals.redeemed);
    came.plus(left.plus(totals.accounts).negated())
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "shown to operators; nothing is decided by it")]
pub(crate) fn now_seconds() -> i64 {
    signed(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// All of the node's counters.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// The authority's metrics.
    pub authority: AuthorityMetrics,
    /// The network's.
    pub network: Arc<NetworkMetrics>,
    /// The follower's.
    pub follower: Arc<FollowerMetrics>,
    /// Those of peer synchronization.
    pub peers: Arc<PeerMetrics>,
    /// Those of the archive.
    pub certification: Arc<CertificationMetrics>,
    /// Those of the hand-over.
    pub handover: Arc<HandoverMetrics>,
    /// Those of the journals' end.
    pub pruning: Arc<PruningMetrics>,
    /// Each shard's, from the first.
    pub shards: Vec<Arc<ShardMetrics>>,
    tracer: Tracer,
    spans_exported: Counter,
    spans_dropped: Counter,
}

impl Metrics {
    /// Metrics for a node with this many shards, without traces.
    #[must_use]
    pub fn new(shards: u32) -> Self {
        Self::traced(shards, Tracer::off())
    }

    /// Metrics for a node with this many shards, which trace payments.
    #[must_use]
    pub fn traced(shards: u32, tracer: Tracer) -> Self {
        let mut registry = Registry::with_prefix("fastpay");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program", build);
        let authority = AuthorityMetrics::registered(&mut registry);
        let network = Arc::new(NetworkMetrics::registered(&mut registry));
        let follower = Arc::new(FollowerMetrics::registered(&mut registry));
        let peers = Arc::new(PeerMetrics::registered(&mut registry));
        let certification = Arc::new(CertificationMetrics::registered(&mut registry));
        let handover = Arc::new(HandoverMetrics::registered(&mut registry));
        let pruning = Arc::new(PruningMetrics::registered(&mut registry));
        let shards = 0..shards;
        let shards = shards
            .map(|id| Arc::new(shard(&mut registry, id, &authority.peer_vote_timestamp, tracer.clone())))
            .collect();
        let (spans_exported, spans_dropped) = (Counter::default(), Counter::default());
        registry.register("spans_exported", "Spans that the collector took", spans_exported.clone());
        registry.register("spans_dropped", "Spans that the collector did not take in time", spans_dropped.clone());
        Self {
            registry,
            authority,
            network,
            follower,
            peers,
            certification,
            handover,
            pruning,
            shards,
            tracer,
            spans_exported,
            spans_dropped,
        }
    }

    /// All metrics as text.
    #[must_use]
    pub fn text(&self) -> String {
        if let Some(spans) = self.tracer.counts() {
            self.spans_exported.inc_by(spans.exported_so_far().saturating_sub(self.spans_exported.get()));
            self.spans_dropped.inc_by(spans.dropped_so_far().saturating_sub(self.spans_dropped.get()));
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to memory does not fail");
        text
    }
}

fn shard(registry: &mut Registry, id: u32, peer_vote_timestamp: &Timestamps, tracer: Tracer) -> ShardMetrics {
    let label = ("shard".into(), id.to_string().into());
    let registry = registry.sub_registry_with_label(label);
    let metrics = ShardMetrics::registered(registry);
    let locks_refused = LocksRefused::default();
    let LocksRefused { disk, account_budget, address_budget } = &locks_refused;
    for (reason, counter) in [("disk", disk), ("account-budget", account_budget), ("address-budget", address_budget)] {
        let registry = registry.sub_registry_with_label(("reason".into(), reason.into()));
        registry.register("locks_refused", "Orders not voted for because there was no room", counter.clone());
    }
    ShardMetrics { tracer, peer_vote_timestamp: peer_vote_timestamp.clone(), locks_refused, ..metrics }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Amount;

    #[test]
    fn sums_add_up_and_where_they_do_not_that_is_seen() {
        let metrics = Metrics::new(2);
        let balance = |amount| Balance::from(Amount(amount));
        let shard = |deposited, credited, forwarded, redeemed, accounts| {
            let [deposited, credited, forwarded] = [deposited, credited, forwarded].map(balance);
            let totals = AssetTotals { deposited, credited, forwarded, redeemed: balance(redeemed), accounts };
            Arc::new(ShardLedger { totals: [(Asset::ETHER, totals)].into(), ..ShardLedger::default() })
        };
        let first = shard(100, 0, 30, 0, balance(70));
        // Credits on their way are in neither shard's balance, and a deposit not read yet leaves a negative balance.
        let second = shard(0, 20, 0, 25, balance(5).negated());
        metrics.authority.observe_ledgers(&[first.clone(), second]);
        let said = |name: &str| {
            let text = metrics.text();
            let line = text.lines().find(|line| line.starts_with(&format!("fastpay_{name}"))).unwrap();
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
        };
        let sums = ["asset_deposited", "asset_held", "asset_in_flight", "asset_redeemed", "assets_imbalanced"];
        assert_eq!(sums.map(said), [100.0, 65.0, 10.0, 25.0, 0.0]);
        metrics.authority.observe_ledgers(&[first, shard(0, 20, 0, 25, Balance::ZERO)]);
        assert_eq!(said("assets_imbalanced"), 1.0);
    }
}

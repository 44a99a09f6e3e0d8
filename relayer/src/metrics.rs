//! The relayer's metrics as OpenMetrics text, and the port that serves them.
//!
//! They are updated at the end of each round, so an old timestamp shows a round that does not end.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use alloy::primitives::U256;
use alloy::primitives::utils::format_ether;
use axum::Router;
use axum::extract::State as Shared;
use axum::response::IntoResponse;
use axum::routing::get;
use fastpay_ethereum::Inclusion;
use fastpay_program::http::ConnectionLimits;
use fastpay_program::metrics;
use fastpay_telemetry::Tracer;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::pending::PendingRedemption;
use crate::store::State;
use crate::unlocks::Unlocks;

/// The maximum number of connections to the port; further ones are closed at once. Few clients connect.
const CONNECTIONS_MAX: usize = 32;

/// The result of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Shards that answered.
    pub answered: usize,
    /// Shards that did not.
    pub silent: usize,
    /// Whether every shard that answered was read to its end.
    pub caught_up: bool,
    /// Pending redemptions that can be submitted now.
    pub waiting: usize,
    /// Pending redemptions that are parked because they failed.
    pub parked: usize,
    /// Redemptions in the contract's queue.
    pub queued: usize,
    /// Transactions that are not final yet.
    pub under_way: usize,
}

metrics! {
    /// All metrics.
    #[derive(Debug, Default)]
    pub struct Metrics {
        pub submitted: Counter = plain("submitted", "Transactions submitted"),
        pub reverted: Counter = plain("reverted", "Final transactions that reverted"),
        pub taken_apart: Counter = plain("taken_apart", "Transactions that no Ethereum node would take"),
        gas_used: Counter = plain("gas_used", "Gas of final transactions"),
        redeemed: Counter = plain("redeemed", "Redemptions brought to a final block"),
        redeemed_by_others: Counter = plain("redeemed_by_others", "Redemptions that somebody else brought"),
        displaced: Counter = plain("displaced", "Redemptions never paid because another order took their number"),
        executed: Counter = plain("executed", "Queued redemptions brought to a final block"),
        given_up: Counter = plain("given_up", "Redemptions that failed too often before they were sent"),
        failed_alone: Counter =
            plain("failed_alone", "Redemptions left to their owners after their own transaction failed"),
        not_served: Counter = plain("not_served", "Redemptions left to others for their asset"),
        below_cost: Counter = plain("below_cost", "Redemptions left to others for the gas"),
        invalid: Counter = plain("invalid", "Entries of redemption logs that are no valid certificates"),
        unlock_requested: Counter = plain("unlock_requested", "Requests to unlock an account brought to a final block"),
        unlock_upheld: Counter = plain("unlock_upheld", "Numbers upheld in a final block"),
        unlock_voided: Counter = plain("unlock_voided", "Numbers voided in a final block"),
        spans_exported: Counter = plain("spans_exported", "Spans that the collector took"),
        spans_dropped: Counter = plain("spans_dropped", "Spans that the collector did not take in time"),
        waiting: Gauge = plain("waiting", "Redemptions that wait to be submitted"),
        parked: Gauge = plain("parked", "Redemptions left out for a while because they failed"),
        queued: Gauge = plain("queued", "Redemptions in the contract's queue"),
        in_flight: Gauge = plain("in_flight", "Transactions that are not final"),
        silent_shards: Gauge = plain("silent_shards", "Shards that did not answer in the last round"),
        unlock_open: Gauge = plain("unlock_open", "Numbers that their owners asked to unlock and that are undecided"),
        contract_paused: Gauge = plain("contract_paused", "1 where the contract is paused"),
        oldest_waiting: Gauge =
            seconds("oldest_waiting", "How long the oldest redemption that is not in the queue has waited"),
        oldest_overdue: Gauge =
            seconds("oldest_overdue", "For how long the oldest redemption in the queue has been due"),
        unlock_overdue: Gauge = seconds(
            "unlock_overdue",
            "For how long the oldest number that this relayer requested could have been voided by a quorum"
        ),
        round_timestamp: Gauge = seconds("round_timestamp", "When the last round ended"),
        gas_balance: Gauge<f64, AtomicU64> = ether("gas_balance", "What the gas key has"),
        unlock_budget: Gauge<f64, AtomicU64> = ether("unlock_budget", "What may still be spent today on unlocking"),
        gas_cost: Counter<f64, AtomicU64> = ether("gas_cost", "What final transactions cost"),
        ..
        registry: Registry,
    }
}

impl Metrics {
    /// Metrics at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("fastpay_relayer");
        registry.register("build", "The program", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let metrics = Self::registered(&mut registry);
        // Unknown until a node has answered.
        metrics.gas_balance.set(f64::NAN);
        Self { registry, ..metrics }
    }

    /// Sets the results of a round that ended at `now_ms`.
    pub(crate) fn observe(&self, tick: &Tick, state: &State, now_ms: u64) {
        let set = |gauge: &Gauge, value: u64| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        set(&self.waiting, tick.waiting as u64);
        set(&self.parked, tick.parked as u64);
        set(&self.queued, tick.queued as u64);
        set(&self.in_flight, tick.under_way as u64);
        set(&self.silent_shards, tick.silent as u64);
        set(&self.contract_paused, state.paused_until.is_some().into());
        let now = now_ms / 1_000;
        set(&self.round_timestamp, now);
        let oldest = |ages: &mut dyn Iterator<Item = u64>| ages.max().unwrap_or_default();
        let waiting = state.items.iter().filter(|item| item.queued.is_none());
        let waited = |item: &PendingRedemption| now_ms.saturating_sub(item.seen_at_ms) / 1_000;
        set(&self.oldest_waiting, oldest(&mut waiting.map(waited)));
        let due = state.items.iter().filter_map(|item| item.queued).map(|queued| queued.executable_at);
        set(&self.oldest_overdue, oldest(&mut due.map(|due| now.saturating_sub(due))));
        let totals = &state.totals;
        for (counter, total) in [
            (&self.redeemed, totals.redeemed),
            (&self.redeemed_by_others, totals.redeemed_by_others),
            (&self.displaced, totals.displaced),
            (&self.executed, totals.executed),
            (&self.given_up, totals.given_up),
            (&self.failed_alone, totals.failed_alone),
            (&self.not_served, totals.not_served),
            (&self.below_cost, totals.below_cost),
            (&self.invalid, totals.invalid),
            (&self.unlock_requested, totals.unlock_requested),
            (&self.unlock_upheld, totals.unlock_upheld),
            (&self.unlock_voided, totals.unlock_voided),
        ] {
            counter.inc_by(total.saturating_sub(counter.get()));
        }
    }

    /// Sets the results of a round of unlocking.
    pub(crate) fn observe_unlocks(&self, state: &State, daily_budget_wei: U256, now_ms: u64) {
        let Unlocks { open, .. } = &state.unlock;
        self.unlock_open.set(i64::try_from(open.len()).unwrap_or(i64::MAX));
        let overdue = open.iter().filter(|open| open.is_ours);
        let overdue = overdue.map(|open| (now_ms / 1_000).saturating_sub(open.voidable_from)).max().unwrap_or_default();
        self.unlock_overdue.set(i64::try_from(overdue).unwrap_or(i64::MAX));
        self.unlock_budget.set(ether(state.unlock.left(daily_budget_wei, now_ms)));
    }

    /// Copies the counts of exported and dropped spans.
    pub(crate) fn observe_spans(&self, tracer: &Tracer) {
        if let Some(spans) = tracer.counts() {
            self.spans_exported.inc_by(spans.exported_so_far().saturating_sub(self.spans_exported.get()));
            self.spans_dropped.inc_by(spans.dropped_so_far().saturating_sub(self.spans_dropped.get()));
        }
    }

    /// Sets the gas key's balance, in wei.
    pub(crate) fn observe_balance(&self, wei: U256) {
        self.gas_balance.set(ether(wei));
    }

    /// Adds the cost of a final transaction.
    pub(crate) fn observe_gas(&self, inclusion: &Inclusion) {
        self.gas_used.inc_by(inclusion.gas_used);
        if let Some(wei) = inclusion.cost_wei() {
            self.gas_cost.inc_by(ether(wei));
        }
    }

    /// All metrics as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to memory does not fail");
        text
    }
}

fn ether(wei: U256) -> f64 {
    format_ether(wei).parse().unwrap_or(f64::NAN)
}

/// Serves the metrics until `stop` turns true.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, stop: watch::Receiver<bool>) {
    let router =
        Router::new().route("/metrics", get(answer)).route("/health", get(async || "up\n")).with_state(metrics);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let admit = move |_| Some(((), room.clone().try_acquire_owned().ok()?));
    fastpay_program::http::serve(listener, router, ConnectionLimits::default(), None, admit, stop).await;
}

async fn answer(Shared(metrics): Shared<Arc<Metrics>>) -> impl IntoResponse {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", content_type)], metrics.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::tests::item;
    use crate::unlocks::OpenUnlock;
    use fastpay_core::{AccountId, SequenceNumber};
    use fastpay_ethereum::Queued;

    #[test]
    fn ages_are_of_the_oldest_and_totals_are_counted_once() {
        let metrics = Metrics::new();
        let said = |name: &str| -> f64 {
            let text = metrics.text();
            let line = text.lines().find(|line| line.starts_with(&format!("fastpay_relayer_{name} "))).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert!(said("gas_balance_ether").is_nan(), "not known is not nothing");
        let (mut first, mut second, mut third) = (item(0), item(1), item(2));
        (first.seen_at_ms, second.seen_at_ms) = (40_000, 70_000);
        // One redemption that is due, and one that is not yet.
        third.enqueue(Queued { executable_at: 95, relayer: Default::default(), epoch: 0, needs_votes: false });
        let mut fourth = item(3);
        fourth.enqueue(Queued { executable_at: 500, relayer: Default::default(), epoch: 0, needs_votes: false });
        let mut state = State::new(1, Default::default());
        state.items = vec![second, first, third, fourth];
        (state.totals.redeemed, state.paused_until) = (7, Some(1_000));
        let tick = Tick { silent: 3, ..Tick::default() };
        for _ in 0..2 {
            metrics.observe(&tick, &state, 100_000);
        }
        let names =
            ["oldest_waiting_seconds", "oldest_overdue_seconds", "redeemed_total", "contract_paused", "silent_shards"];
        assert_eq!(names.map(said), [60.0, 5.0, 7.0, 1.0, 3.0]);
        metrics.observe(&tick, &State::new(1, Default::default()), 130_000);
        assert_eq!(
            ["oldest_waiting_seconds", "contract_paused", "round_timestamp_seconds"].map(said),
            [0.0, 0.0, 130.0]
        );
        let open = |voidable_from, is_ours| OpenUnlock {
            account: AccountId([7; 32]),
            sequence: SequenceNumber(1),
            voidable_from,
            is_ours,
            is_below: None,
            tries: 0,
            next_at_ms: 0,
            waits_for: String::new(),
        };
        state.unlock.open = vec![open(90, true), open(20, false)];
        state.totals.unlock_voided = 2;
        metrics.observe(&tick, &state, 100_000);
        metrics.observe_unlocks(&state, U256::from(500_000_000_000_000_000_u64), 100_000);
        let names = ["unlock_open", "unlock_overdue_seconds", "unlock_budget_ether", "unlock_voided_total"];
        assert_eq!(names.map(said), [2.0, 10.0, 0.5, 2.0]);
        metrics.observe_balance(U256::from(1_500_000_000_000_000_000_u64));
        assert_eq!(said("gas_balance_ether"), 1.5);
        let inclusion = Inclusion {
            hash: Default::default(),
            block_number: 1,
            block_hash: Default::default(),
            success: true,
            gas_used: 50_000,
            gas_price_wei: Some(U256::from(2_000_000_000_u64)),
        };
        for price in [inclusion.gas_price_wei, None] {
            metrics.observe_gas(&Inclusion { gas_price_wei: price, ..inclusion });
        }
        assert_eq!(["gas_used_total", "gas_cost_ether_total"].map(said), [100_000.0, 0.0001]);
    }
}

//! One authority under load, with a real process, disk and sockets. For each payment, an order is answered with a vote,
//! and then a certificate with a confirmation.

use std::collections::BTreeMap;
use std::time::Instant;

use fastpay_e2e::Failure;
use serde::{Deserialize, Serialize};

use crate::draw::Mix;
use crate::generator::{self, Counts, Outcome, Part, Plan, Until, Watched};
use crate::machine::{Cores, load_average};
use crate::meter::{on_core, resident_bytes};
use crate::pace::Pace;
use crate::server::{Server, Size};
use crate::statistics::{Percentiles, Spread, Times, rounded};
use crate::traced::{Collector, Spans};
use crate::wire::Streams;
use crate::workload::{self, Accounts, Voters};
use crate::{checkpointing, flood, progress, runtime};

/// A generator that uses more of its core than this may limit the figures.
const GENERATOR_BUSY_MAX_PERCENT: f64 = 95.0;

/// The load on the node.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in the table.
    pub name: String,
    pub authorities: usize,
    pub shards: u16,
    /// Whether the node may use every core, including the generator's.
    pub on_all_cores: bool,
    pub zipf_exponent: f64,
    pub cross_shard: Option<f64>,
    pub accounts: usize,
    pub connections: usize,
    pub vote_batch: usize,
    /// The number of payments in one order.
    pub outputs: usize,
    /// Whether another client floods the node meanwhile.
    pub flood: bool,
    /// Whether checkpoints are computed meanwhile.
    pub checkpoints: bool,
    /// The share of payments that is traced; `None` turns tracing off.
    pub traces: Option<f64>,
    pub plan: Plan,
    /// The number of payments prepared.
    pub prepared: usize,
}

/// The result. All figures but `latency` are medians over the parts of the run, with the extremes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub name: String,
    pub authorities: usize,
    pub quorum: usize,
    pub shards: u16,
    pub on_all_cores: bool,
    pub zipf_exponent: f64,
    pub cross_shard: Option<f64>,
    pub accounts: usize,
    pub connections: usize,
    pub vote_batch: usize,
    pub traces: Option<f64>,
    /// `None` in an open loop.
    pub in_flight: Option<usize>,
    /// `None` in a closed loop.
    pub offered_per_second: Option<f64>,
    pub parts: usize,
    pub seconds: f64,
    pub payments_per_second: Spread,
    pub server_cpu_us_per_payment: Spread,
    pub server_cpu_us_in_kernel: Spread,
    /// The processor time by name of the node's threads.
    pub server_cpu_us_by_thread: BTreeMap<String, f64>,
    pub server_core_percent: Spread,
    /// The share of the node's core that other processes used, and that the host withheld.
    pub core_others_percent: Spread,
    pub core_stolen_percent: Spread,
    pub generator_cpu_us_per_payment: Spread,
    pub generator_core_percent: Spread,
    /// Whether the generator limited the figures: the node may be faster.
    pub generator_is_the_limit: bool,
    pub vote_ms: Percentiles,
    pub certificate_ms: Percentiles,
    pub settled_ms: Percentiles,
    /// How late payments of an open loop began. The latencies include it.
    pub generator_late_ms: Percentiles,
    pub counts: Counts,
    pub busy_share_of_orders: f64,
    /// Orders held back because the node did not read the stream.
    pub unsent_share_of_orders: f64,
    /// The flood's figures, if there was one.
    pub forged_per_second: f64,
    /// The checkpoints that were computed meanwhile.
    pub checkpoints: u64,
    pub spans: Spans,
    pub requests_lost: usize,
    pub ran_dry: bool,
    pub wire_bytes_in_per_payment: f64,
    pub wire_bytes_out_per_payment: f64,
    pub journal_bytes_per_payment: f64,
    pub disk_bytes_per_payment: f64,
    /// The number of requests that the node served with one sync.
    pub requests_per_batch: f64,
    pub resident_mib: f64,
    pub load_average: f64,
}

/// Prepares and runs the load, and checks the node's totals.
pub fn measure(scenario: &Scenario, cores: Cores) -> Result<Report, Failure> {
    progress(&format!("{}: setting up", scenario.name));
    let accounts = Accounts::new(scenario.accounts);
    let core = if scenario.on_all_cores { None } else { cores.server };
    let size = Size { authorities: scenario.authorities, shards: scenario.shards, core };
    let control = runtime()?;
    let mut server = Server::prepare("bench-load", size, accounts.balances())?;
    let collector = scenario.traces.map(|_| Collector::start(cores.generator)).transpose()?;
    if let (Some(collector), Some(ratio)) = (&collector, scenario.traces) {
        server.trace_to(collector.address(), ratio)?;
    }
    server.start_again()?;
    control.block_on(server.wait_ready())?;
    progress(&format!("{}: signing {} payments", scenario.name, scenario.prepared));
    let mix = Mix {
        zipf_exponent: scenario.zipf_exponent,
        payments_per_sender_max: payments_per_sender_max(scenario),
        cross_shard: scenario.cross_shard,
    };
    let pairs = mix.draw(scenario.prepared, accounts.ids(), server.layout());
    let (domain, keys) = (server.domain(), server.other_keys()?);
    let voters = Voters { domain: &domain, keys: &keys, batch: scenario.vote_batch };
    let payments = workload::prepare_payouts(&pairs, &accounts, server.layout(), &voters, scenario.outputs);
    let before = control.block_on(server.progress())?;
    let (addresses, connections) = (server.addresses()?, scenario.connections);
    let watched = Watched { process: server.process(), core };
    progress(&format!("{}: running", scenario.name));
    let average = load_average();
    let forged = if scenario.flood { workload::forged(flood::FORGED, &accounts, &domain) } else { Vec::new() };
    let checkpoints = match scenario.checkpoints {
        true => Some(checkpointing::Running::start(server.config()?, server.archive()?, core)),
        false => None,
    };
    let (outcome, forged_per_second) = on_core(cores.generator, || {
        runtime()?.block_on(async {
            let flood = match addresses.first().filter(|_| scenario.flood) {
                Some(address) => Some(flood::Running::start(address, &forged).await?),
                None => None,
            };
            let (streams, answers) = Streams::open(&addresses, connections).await?;
            let start = Instant::now();
            let outcome = generator::run(scenario.plan, &payments, streams, answers, watched).await?;
            let refused = flood.map_or(0, |flood| flood.refused());
            Ok::<_, Failure>((outcome, refused as f64 / start.elapsed().as_secs_f64()))
        })
    })?;
    let checkpoints = checkpoints.map_or(Ok(0), checkpointing::Running::stop)?;
    let after = control.block_on(server.progress())?;
    if outcome.lost == 0 {
        control.block_on(server.check(&accounts, &outcome.settled_by_sender))?;
    }
    let settled = outcome.settled_by_sender.iter().sum::<u64>().max(1) as f64;
    let mut report = summarize(scenario, server.quorum(), outcome);
    report.journal_bytes_per_payment = rounded((after.journal_bytes - before.journal_bytes) / settled, 0);
    report.disk_bytes_per_payment = rounded((after.written_bytes - before.written_bytes) / settled, 0);
    let batches = (after.batches - before.batches).max(1.0);
    report.requests_per_batch = rounded((after.requests_in_batches - before.requests_in_batches) / batches, 1);
    report.resident_mib = rounded(resident_bytes(server.process()) as f64 / f64::from(1 << 20), 0);
    report.spans = after.spans;
    report.forged_per_second = rounded(forged_per_second, 0);
    report.checkpoints = checkpoints;
    report.load_average = average;
    server.kill()?;
    Ok(report)
}

/// Half of what a sender could pay in the whole run, with one payment at a time.
fn payments_per_sender_max(scenario: &Scenario) -> usize {
    match scenario.plan.pace {
        Pace::Closed { in_flight } => (scenario.prepared / in_flight.max(1) / 2).max(1),
        // An even share, with a margin for chance.
        Pace::Open { .. } => (2 * scenario.prepared / scenario.accounts.max(1)).max(8),
    }
}

fn summarize(scenario: &Scenario, quorum: usize, outcome: Outcome) -> Report {
    let parts = &outcome.parts;
    let each = |value: fn(&Part) -> f64, digits| Spread::of(parts.iter().map(value)).rounded(digits);
    let counts = parts.iter().fold(Counts::default(), |sum, part| sum.plus(part.counts));
    let settled = counts.settled.max(1) as f64;
    let generator_core_percent = each(|part| part.generator / part.seconds * 1e2, 1);
    let (in_flight, offered_per_second) = match scenario.plan.pace {
        Pace::Closed { in_flight } => (Some(in_flight), None),
        Pace::Open { per_second } => (None, Some(rounded(per_second, 0))),
    };
    let mut by_thread: BTreeMap<String, f64> = BTreeMap::new();
    for (name, seconds) in parts.iter().flat_map(|part| &part.server.threads) {
        *by_thread.entry(name.clone()).or_default() += seconds * 1e6 / settled;
    }
    by_thread.values_mut().for_each(|micros| *micros = rounded(*micros, 1));
    by_thread.retain(|_, micros| *micros > 0.0);
    let report = Report {
        name: scenario.name.clone(),
        authorities: scenario.authorities,
        quorum,
        shards: scenario.shards,
        on_all_cores: scenario.on_all_cores,
        zipf_exponent: scenario.zipf_exponent,
        cross_shard: scenario.cross_shard,
        accounts: scenario.accounts,
        connections: scenario.connections,
        vote_batch: scenario.vote_batch,
        traces: scenario.traces,
        in_flight,
        offered_per_second,
        parts: parts.len(),
        seconds: rounded(parts.iter().map(|part| part.seconds).sum(), 2),
        payments_per_second: each(|part| part.counts.settled as f64 / part.seconds, 0),
        server_cpu_us_per_payment: each(|part| part.server.processor() * 1e6 / part.settled_or_one(), 1),
        server_cpu_us_in_kernel: each(|part| part.server.system * 1e6 / part.settled_or_one(), 1),
        server_cpu_us_by_thread: by_thread,
        server_core_percent: each(|part| part.server.processor() / part.seconds * 1e2, 1),
        core_others_percent: each(|part| part.server.core_others / part.seconds * 1e2, 1),
        core_stolen_percent: each(|part| part.server.core_stolen / part.seconds * 1e2, 1),
        generator_cpu_us_per_payment: each(|part| part.generator * 1e6 / part.settled_or_one(), 1),
        generator_core_percent,
        generator_is_the_limit: generator_core_percent.max > GENERATOR_BUSY_MAX_PERCENT,
        vote_ms: Percentiles::default(),
        certificate_ms: Percentiles::default(),
        settled_ms: Percentiles::default(),
        generator_late_ms: Percentiles::default(),
        counts,
        busy_share_of_orders: rounded(counts.orders_busy as f64 / counts.offered.max(1) as f64, 3),
        unsent_share_of_orders: rounded(counts.orders_unsent as f64 / counts.offered.max(1) as f64, 3),
        forged_per_second: 0.0,
        checkpoints: 0,
        spans: Spans::default(),
        requests_lost: outcome.lost,
        ran_dry: outcome.ran_dry,
        wire_bytes_in_per_payment: rounded(counts.bytes_sent as f64 / settled, 0),
        wire_bytes_out_per_payment: rounded(counts.bytes_received as f64 / settled, 0),
        journal_bytes_per_payment: 0.0,
        disk_bytes_per_payment: 0.0,
        requests_per_batch: 0.0,
        resident_mib: 0.0,
        load_average: 0.0,
    };
    with_latencies(report, outcome.parts)
}

fn with_latencies(mut report: Report, parts: Vec<Part>) -> Report {
    let (mut votes, mut certificates, mut settled, mut lateness) =
        (Times::default(), Times::default(), Times::default(), Times::default());
    for part in parts {
        votes.append(part.votes);
        certificates.append(part.certificates);
        settled.append(part.settled);
        lateness.append(part.lateness);
    }
    report.vote_ms = votes.percentiles();
    report.certificate_ms = certificates.percentiles();
    report.settled_ms = settled.percentiles();
    report.generator_late_ms = lateness.percentiles();
    report
}

/// A closed loop with the given number of payments in each part.
pub fn closed(in_flight: usize, payments: usize, parts: usize) -> (Plan, usize) {
    let warm_up = payments / 2;
    let plan = Plan {
        pace: Pace::Closed { in_flight },
        warm_up: Until::Settled(warm_up),
        part: Until::Settled(payments),
        parts,
    };
    // Include payments in flight at the end, and those that wait for their sender.
    (plan, warm_up + payments * parts + payments / 4 + 2 * in_flight)
}

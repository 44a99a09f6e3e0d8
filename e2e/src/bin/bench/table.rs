//! The result as tables.

use crate::absence::Absence;
use crate::checkpoint::Checkpoints;
use crate::handover::HandOver;
use crate::inside::Costs;
use crate::load::Report;
use crate::model::Row;
use crate::outcome::{FILE, Outcome};
use crate::state::State;
use crate::statistics::{Percentiles, Spread};

pub fn show(outcome: &Outcome) {
    let machine = &outcome.machine;
    println!("{}, {} cores, Linux {}, commit {}", machine.processor, machine.cores, machine.kernel, machine.git_commit);
    let (start, end) = (machine.load_average_at_start, machine.load_average_at_end);
    println!("load average {start} at the start, {end} at the end: above 1, others were at work too");
    row("write and sync of 4 KiB, p50 / p99 / p99.9 ms", &percentiles(machine.sync_ms));
    if let Some(idle) = &outcome.idle {
        println!("\nidle: four authorities, one payment at a time, through the wallet's client");
        row("order to vote, p50 / p99 / p99.9 ms", &percentiles(idle.vote_ms));
        row("order to certificate, p50 / p99 / p99.9 ms", &percentiles(idle.certificate_ms));
        row("order to settled, p50 / p99 / p99.9 ms", &percentiles(idle.settled_ms));
    }
    outcome.stages.iter().chain(&outcome.payout_stages).for_each(|costs| stages(costs, outcome));
    if let Some(report) = &outcome.payouts {
        load(report);
        let headline = &outcome.headline;
        let text = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}"));
        row("  outputs a second, as measured", &text(headline.payouts_per_second_per_core));
        row("  outputs for each second of processor time", &text(headline.payouts_per_cpu_second));
    }
    if let Some(lists) = &outcome.lists {
        println!("\n{} accounts pay {} people, round trip {} ms", lists.payers, lists.payments, lists.round_trip_ms);
        row("from the first order to the last settlement, s", &format!("{:.2}", lists.seconds));
    }
    outcome.load.iter().chain(&outcome.open).chain(&outcome.skew).chain(&outcome.shards).for_each(load);
    if let Some(overload) = &outcome.overload {
        load(&overload.report);
        let (ratio, by_time) = (overload.ratio * 1e2, overload.ratio_by_processor_time * 1e2);
        row("  of the peak; for the same processor time", &format!("{ratio:.0} %; {by_time:.0} %"));
    }
    if let Some(flood) = &outcome.flood {
        load(&flood.report);
        row("forged orders answered a second", &format!("{:.0}", flood.report.forged_per_second));
        let (ratio, by_time) = (flood.ratio * 1e2, flood.ratio_by_processor_time * 1e2);
        row("  of the peak without them; for the same time", &format!("{ratio:.0} %; {by_time:.0} %"));
    }
    if let Some(checkpointing) = &outcome.checkpointing {
        load(&checkpointing.report);
        row("checkpoints computed meanwhile", &checkpointing.report.checkpoints.to_string());
        let (ratio, by_time) = (checkpointing.ratio * 1e2, checkpointing.ratio_by_processor_time * 1e2);
        row("  of the peak without them; for the same time", &format!("{ratio:.1} %; {by_time:.1} %"));
    }
    outcome.load_again.iter().chain(&outcome.traced).for_each(load);
    if let Some(recovery) = &outcome.recovery {
        println!("\nkill -9 with {} accounts", recovery.accounts);
        row("from the start of the process to the first vote, s", &spread(recovery.seconds, 2));
        row("resident memory, MiB", &format!("{:.0}", recovery.resident_mib));
    }
    if let Some(found) = &outcome.state {
        state(found);
    }
    if let Some(found) = &outcome.checkpoints {
        checkpoints(found);
    }
    if let Some(found) = &outcome.absence {
        absence(found);
    }
    if let Some(found) = &outcome.hand_over {
        hand_over(found);
    }
    if !outcome.model.is_empty() {
        model(&outcome.model);
    }
    println!("\nthe same and more in {FILE}");
}

fn stages(costs: &Costs, outcome: &Outcome) {
    println!(
        "\nin process, n = {}, batches of {}, {} payments in an order: processor time, µs for each order and certificate",
        costs.authorities, costs.batch, costs.outputs
    );
    let both = |name: &str, order: Option<f64>, certificate: Option<f64>| {
        let text = |micros: Option<f64>| micros.map_or_else(|| "–".to_owned(), |micros| format!("{micros:.2}"));
        row(name, &format!("{:>10} {:>10}", text(order), text(certificate)));
    };
    for stage in &costs.order.stages {
        let same = costs.certificate.stages.iter().find(|other| other.name == stage.name);
        both(&format!("  {}", stage.name), Some(stage.us.median), same.map(|stage| stage.us.median));
    }
    both("sum of the stages", Some(costs.order.sum_us), Some(costs.certificate.sum_us));
    both(
        "the whole, by a shard's own threads",
        Some(costs.order.whole_us.median),
        Some(costs.certificate.whole_us.median),
    );
    both("  of it not in the stages", Some(costs.order.threads_us), Some(costs.certificate.threads_us));
    let of_process = outcome.load.iter().find(|report| report.authorities == costs.authorities);
    if let Some(report) = of_process {
        let inside = costs.order.whole_us.median + costs.certificate.whole_us.median;
        let whole = report.server_cpu_us_per_payment.median;
        row(
            "a payment: in process + transport = node under load",
            &format!("{inside:.1} + {:.1} = {whole:.1}", whole - inside),
        );
    }
}

fn model(rows: &[Row]) {
    println!("\nmodel: payments a second by processor time; what a link of 1 and 10 Gbit/s carries");
    println!(
        "{:>5} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}",
        "n", "µs, 1 core", "1 core", "16 cores", "48 cores", "1 Gbit/s", "10 Gbit/s", "paper, 48"
    );
    for row in rows {
        let capacity = row.payments_per_second.iter().map(|at| format!(" {:>10.0}", at.payments_per_second));
        let micros = row.order_us + row.certificate_us + row.transport_us;
        let paper = row.paper_48_cores.map_or_else(|| "–".to_owned(), |paper| format!("{paper:.0}"));
        let (one, ten) = (row.payments_per_second_1_gbit, row.payments_per_second_10_gbit);
        println!(
            "{:>5} {micros:>12.1}{} {one:>10.0} {ten:>10.0} {paper:>12}",
            row.authorities,
            capacity.collect::<String>()
        );
    }
}

fn state(state: &State) {
    println!("\n{} accounts, {} of them in memory", state.accounts, state.accounts_in_memory);
    row("first start: the store is made from the journal, s", &format!("{:.1}", state.rebuild_seconds));
    row("resident bytes for each account in memory", &format!("{:.0}", state.resident_bytes_per_account));
    let disk = format!("{:.0} / {:.0}", state.journal_bytes_per_account, state.store_bytes_per_account);
    row("bytes on disk for each, journal / store", &disk);
    for (what, load) in [("on disk", &state.cold), ("in memory", &state.warm)] {
        row(&format!("payments a second, accounts {what}"), &spread(load.payments_per_second, 0));
        row("  processor time for each, µs", &spread(load.server_cpu_us_per_payment, 1));
    }
    let pause = state.checkpoint_pause_seconds_max.map_or("unknown".into(), |pause| format!("{:.2}", pause * 1e3));
    row("longest pause for a checkpoint, below, ms", &pause);
    row("kill -9 to the first vote, s", &spread(state.recovery_seconds, 2));
}

fn load(report: &Report) {
    println!("\n{}", report.name);
    row("settled payments a second", &spread(report.payments_per_second, 0));
    row("node: processor time for each, µs", &spread(report.server_cpu_us_per_payment, 1));
    row("  of it in the kernel, µs", &spread(report.server_cpu_us_in_kernel, 1));
    for (thread, micros) in &report.server_cpu_us_by_thread {
        row(&format!("  of it in thread {thread}, µs"), &format!("{micros:.1}"));
    }
    row("node: share of its core", &format!("{} %", spread(report.server_core_percent, 0)));
    row("  taken from that core by others", &format!("{} %", spread(report.core_others_percent, 0)));
    row("generator: processor time for each, µs", &spread(report.generator_cpu_us_per_payment, 1));
    row("order to vote, p50 / p99 / p99.9 ms", &percentiles(report.vote_ms));
    row("certificate to confirmed, p50 / p99 / p99.9 ms", &percentiles(report.certificate_ms));
    row("order to settled, p50 / p99 / p99.9 ms", &percentiles(report.settled_ms));
    if report.offered_per_second.is_some() {
        row("  of it the generator's delay", &percentiles(report.generator_late_ms));
        row("orders refused as busy", &format!("{:.1} %", report.busy_share_of_orders * 1e2));
        row("orders held back by streams left unread", &format!("{:.1} %", report.unsent_share_of_orders * 1e2));
    }
    let (sent, received) = (report.wire_bytes_in_per_payment, report.wire_bytes_out_per_payment);
    row("bytes on the wire for each, to and from the node", &format!("{sent:.0} + {received:.0}"));
    let (journal, disk) = (report.journal_bytes_per_payment, report.disk_bytes_per_payment);
    row("bytes in the journal for each; written to disk", &format!("{journal:.0}; {disk:.0}"));
    row("requests that the node served with one sync", &format!("{:.0}", report.requests_per_batch));
    if report.traces.is_some() {
        let (exported, dropped) = (report.spans.exported, report.spans.dropped);
        row("spans that the collector took; dropped", &format!("{exported:.0}; {dropped:.0}"));
    }
    if report.generator_is_the_limit {
        println!("  ATTENTION: the generator's core was full; the node can perhaps do more");
    }
    if report.requests_lost > 0 {
        println!("  ATTENTION: {} requests were never answered", report.requests_lost);
    }
    if report.ran_dry {
        println!("  ATTENTION: too few payments were prepared; the last part was cut off");
    }
}

fn checkpoints(found: &Checkpoints) {
    let Checkpoints { accounts, orders, state_bytes, .. } = found;
    println!("\na checkpoint of {orders} orders among {accounts} accounts, whose state has {state_bytes} bytes");
    for (what, cost) in [
        ("propose", found.propose),
        ("of it until the cut is announced", found.announce),
        ("sign the own proposal", found.sign_own),
        ("sign", found.sign),
        ("compute what is announced", found.prepare),
        ("sign what was announced", found.sign_prepared),
        ("certify", found.certify),
        ("index", found.index),
        ("rebase", found.rebase),
    ] {
        let of_each = cost.processor_seconds * 1e6 / *orders as f64;
        let value = format!("{:.2}; {:.2} = {of_each:.1}; {:.0}", cost.seconds, cost.processor_seconds, cost.peak_mib);
        row(&format!("{what}, s; processor, s = µs an order; peak, MiB"), &value);
    }
}

fn absence(found: &Absence) {
    println!(
        "\na member of four was away, with {} accounts, whose state has {} bytes",
        found.accounts, found.state_bytes
    );
    let seconds = |what: &str, seconds: f64| row(what, &format!("{seconds:.1}"));
    row("payments meanwhile; checkpoints of them", &format!("{}; {}", found.payments, found.checkpoints));
    row("payments that each of three confirmed a second", &format!("{:.0}", found.confirmed_per_second));
    row("orders that checkpoints took a second", &format!("{:.0}", found.certified_orders_per_second));
    seconds("until it has the certified state, s", found.state_seconds);
    seconds("the newest checkpoint, s", found.newest_seconds);
    seconds(&format!("waits, with a look each {} s, s", found.poll_seconds), found.waited_seconds);
    seconds("rebase, from stop to start, s", found.rebase_seconds);
    let rest = format!("{:.1}; {:.0}", found.rest_seconds, found.rest_per_second);
    row(&format!("the rest and {} payments more, s; each s", found.remaining), &rest);
    seconds("until it has everything and votes, s", found.seconds);
    let (best, worst) = found.usual_minutes;
    row("the same with the usual waits, minutes", &format!("{best:.1} to {worst:.1}"));
}

fn hand_over(found: &HandOver) {
    let HandOver { accounts, closing_bytes, .. } = found;
    println!("\na committee of four changes; {accounts} accounts have paid, and a Closing has {closing_bytes} bytes");
    let seconds = |what: &str, seconds: f64| row(what, &format!("{seconds:.2}"));
    seconds("longest time between two payments before, s", found.usual_seconds);
    seconds("while one member is replaced, s", found.replaced_seconds);
    seconds("the new member, from its start to its votes, s", found.new_member_seconds);
    seconds("longest time while all change their keys, s", found.rekeyed_seconds);
}

fn row(what: &str, value: &str) {
    println!("{what:<52} {value:>24}");
}

fn percentiles(percentiles: Percentiles) -> String {
    let Percentiles { p50, p99, p99_9 } = percentiles;
    format!("{p50:.2} / {p99:.2} / {p99_9:.2}")
}

fn spread(spread: Spread, digits: usize) -> String {
    let Spread { median, min, max } = spread;
    format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
}

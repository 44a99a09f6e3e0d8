//! The outcome for people.

use crate::load::Report;
use crate::outcome::{FILE, Outcome};
use crate::statistics::{Percentiles, Spread};

pub fn show(outcome: &Outcome) {
    let machine = &outcome.machine;
    println!("{}, {} cores, Linux {}, commit {}", machine.processor, machine.cores, machine.kernel, machine.git_commit);
    let (start, end) = (machine.load_average_at_start, machine.load_average_at_end);
    println!("load average {start} at the start, {end} at the end: above 1, others were at work too");
    row("write and sync of 4 KiB, p50 / p99 / p99.9 ms", &percentiles(machine.sync_ms));
    if let Some(idle) = &outcome.idle {
        println!("\nidle: four authorities, one payment at a time, through the wallet's driver");
        row("order to vote, p50 / p99 / p99.9 ms", &percentiles(idle.vote_ms));
        row("order to certificate, p50 / p99 / p99.9 ms", &percentiles(idle.certificate_ms));
        row("order to settled, p50 / p99 / p99.9 ms", &percentiles(idle.settled_ms));
    }
    outcome.load.iter().chain(&outcome.open).chain(&outcome.skew).chain(&outcome.shards).for_each(load);
    if let Some(overload) = &outcome.overload {
        load(&overload.report);
        row("  of the peak", &format!("{:.0} %", overload.ratio * 1e2));
    }
    if let Some(recovery) = &outcome.recovery {
        println!("\nkill -9 with {} accounts", recovery.accounts);
        row("from the start of the process to the first vote, s", &spread(recovery.seconds, 2));
        row("resident memory, MiB", &format!("{:.0}", recovery.resident_mib));
    }
    println!("\nthe same and more in {FILE}");
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
    }
    let (sent, received) = (report.wire_bytes_in_per_payment, report.wire_bytes_out_per_payment);
    row("bytes on the wire for each, to and from the node", &format!("{sent:.0} + {received:.0}"));
    let (journal, disk) = (report.journal_bytes_per_payment, report.disk_bytes_per_payment);
    row("bytes in the journal for each; written to disk", &format!("{journal:.0}; {disk:.0}"));
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

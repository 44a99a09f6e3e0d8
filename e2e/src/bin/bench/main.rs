//! `fastpay-bench`: what a shard does under load on one core, and how long a payment takes when nothing else happens.
//!
//! Real node processes on loopback, stand-alone from a genesis, with everything synced to disk before it is answered.
//! Under load one authority's only shard is bound to one core, and the load comes from another one, made ahead: the
//! bench has the keys of the whole committee, so it needs no other authority to make certificates.

mod idle;
mod load;
mod machine;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use fastpay_e2e::Failure;
use serde::Serialize;

/// Where programs find the outcome.
const FILE: &str = "target/bench.json";

/// Measures payments per second and latency.
#[derive(Clone, Debug, Parser)]
#[command(name = "fastpay-bench")]
struct Arguments {
    /// How many accounts pay.
    #[arg(long, default_value_t = 8_192)]
    accounts: usize,
    /// How many payments each of them makes; the first is for warming up.
    #[arg(long, default_value_t = 6)]
    payments_each: usize,
    /// How many payments are under way at a time.
    #[arg(long, default_value_t = 512)]
    in_flight: usize,
    /// Over how many connections.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// How many payments share one signature of an authority in the certificates.
    #[arg(long, default_value_t = 32)]
    vote_batch: usize,
    /// How many payments are measured one by one on an idle network.
    #[arg(long, default_value_t = 300)]
    idle_rounds: u64,
}

/// Flat, so that two runs are easily compared.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    load: load::Outcome,
    #[serde(flatten)]
    idle: idle::Outcome,
    #[serde(flatten)]
    machine: machine::Machine,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::wrong)
}

fn measure(arguments: &Arguments) -> Result<(), Failure> {
    let machine = machine::describe();
    println!("{} ({} cores, load average {})", machine.processor, machine.cores, machine.load_average);
    println!("idle: four authorities, one payment at a time …");
    let idle = runtime()?.block_on(idle::measure(arguments))?;
    let cores = machine::split_cores();
    match cores {
        Some((server, generator)) => println!("load: one shard on core {server}, the load from core {generator} …"),
        None => println!("load: the cores cannot be separated here; node and load share them …"),
    }
    let load = runtime()?.block_on(load::measure(arguments, cores.map(|(server, _)| server)))?;
    let outcome = Outcome { load, idle, machine };
    show(&outcome);
    let text = serde_json::to_string_pretty(&outcome).map_err(Failure::wrong)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
    std::fs::write(&path, text).map_err(|error| Failure::Io { path, error })
}

fn show(outcome: &Outcome) {
    let Outcome { load, idle, machine } = outcome;
    let row = |what: &str, value: String| println!("{what:<56} {value:>12}");
    println!();
    row("settled payments a second, one shard on one core", format!("{:.0}", load.payments_per_second_per_core));
    row("  processor time of the node for each, µs", format!("{:.0}", load.cpu_us_per_payment));
    row("  how much of its core the node used, %", format!("{:.0}", load.core_used_percent));
    row("  order to vote under load, p50 / p99 ms", pair(load.vote_p50_ms_load, load.vote_p99_ms_load));
    row("  order to settled under load, p50 / p99 ms", pair(load.settled_p50_ms_load, load.settled_p99_ms_load));
    row("order to vote, idle, p50 / p99 ms", pair(idle.vote_p50_ms_idle, idle.vote_p99_ms_idle));
    row("order to certificate, idle, p50 / p99 ms", pair(idle.certificate_p50_ms_idle, idle.certificate_p99_ms_idle));
    row("order to settled, idle, p50 / p99 ms", pair(idle.settled_p50_ms_idle, idle.settled_p99_ms_idle));
    row("one write and sync of 4 KiB on this disk, p50 ms", format!("{:.2}", machine.sync_p50_ms));
    println!("\n{} payments measured, {} in flight; the same in {FILE}", load.payments, load.in_flight);
}

fn pair(p50: f64, p99: f64) -> String {
    format!("{p50:.2} / {p99:.2}")
}

/// The value that so many of a hundred stay below, in milliseconds.
fn percentile(sorted: &[std::time::Duration], percent: usize) -> f64 {
    let index = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(index).map_or(0.0, |time| (time.as_secs_f64() * 1e6).round() / 1e3)
}

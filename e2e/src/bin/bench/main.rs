//! `fastpay-bench`: measures the throughput of an authority on one core, the cost of each stage, and latency.
//!
//! It runs real node processes on loopback, from a genesis without Ethereum. They sync everything to disk before they
//! answer. Under load, one authority is bound to one core. Another core sends the load, which is made beforehand: the
//! bench has the keys of the whole committee, so it needs no other authority to make certificates.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod absence;
mod arguments;
mod checkpoint;
mod checkpointing;
mod draw;
mod flood;
mod flow;
mod generator;
mod handover;
mod idle;
mod inside;
mod laid;
mod lists;
mod load;
mod machine;
mod meter;
mod model;
mod outcome;
mod overload;
mod pace;
mod recovery;
mod server;
mod state;
mod statistics;
mod suite;
mod table;
mod traced;
mod wire;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use fastpay_e2e::Failure;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match suite::measure(&arguments).and_then(|outcome| outcome.print(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Reports the current step.
fn progress(what: &str) {
    eprintln!("{what} …");
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::wrong)
}

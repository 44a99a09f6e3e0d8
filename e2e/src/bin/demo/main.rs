//! `fastpay-demo`: the whole way, from an empty machine to an audit, with real processes on loopback.

mod report;
mod scenario;

use std::process::ExitCode;

use report::Report;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    let mut report = Report::new();
    let stopped = async {
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
    };
    // The processes end with the story, whichever way it ends.
    tokio::select! {
        told = scenario::run(&mut report) => if let Err(failure) = told {
            report.fail(&failure);
        },
        () = stopped => report.fail(&"stopped by a signal"),
    }
    match report.finish() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cannot write the report: {error}");
            ExitCode::FAILURE
        }
    }
}

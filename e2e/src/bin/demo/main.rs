//! `fastpay-demo`: runs every step from an empty machine to an audit, with real processes on loopback.

mod report;
mod scenario;

use std::process::ExitCode;

use fastpay_program::stop_signal;
use report::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let mut report = Report::new();
    let mut stop = match stop_signal() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    // The processes end with the scenario, whether it succeeds or not.
    tokio::select! {
        told = scenario::run(&mut report) => if let Err(failure) = told {
            report.fail(&failure);
        },
        _ = stop.wait_for(|stop| *stop) => report.fail(&"stopped by a signal"),
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

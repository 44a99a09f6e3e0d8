//! What a run of the bench has found, as `target/bench.json` has it.

use std::path::Path;

use fastpay_e2e::Failure;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::idle::Idle;
use crate::load::Report;
use crate::machine::Machine;
use crate::overload::Overload;
use crate::recovery::Recovery;
use crate::table;

/// Where programs find the outcome.
pub const FILE: &str = "target/bench.json";

/// Everything. What was not asked for is missing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The figures that the project's aims are about, not nested, for whoever compares two runs.
    #[serde(flatten)]
    pub headline: Headline,
    pub machine: Machine,
    pub settings: Arguments,
    pub idle: Option<Idle>,
    /// Closed loops, one for each size of the committee.
    pub load: Vec<Report>,
    pub open: Option<Report>,
    pub overload: Option<Overload>,
    pub skew: Option<Report>,
    pub shards: Vec<Report>,
    pub recovery: Option<Recovery>,
}

/// Microseconds, payments a second, milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Headline {
    pub payments_per_second_per_core: Option<f64>,
    pub server_cpu_us_per_payment: Option<f64>,
    pub vote_p50_ms_idle: Option<f64>,
    pub certificate_p50_ms_idle: Option<f64>,
    pub settled_p99_ms_saturated: Option<f64>,
    pub overload_ratio: Option<f64>,
    pub recovery_seconds: Option<f64>,
}

impl Outcome {
    pub fn new(settings: Arguments, machine: Machine) -> Self {
        Self {
            headline: Headline::default(),
            machine,
            settings,
            idle: None,
            load: Vec::new(),
            open: None,
            overload: None,
            skew: None,
            shards: Vec::new(),
            recovery: None,
        }
    }

    /// Writes the file, and prints it or the table.
    pub fn tell(mut self, arguments: &Arguments) -> Result<(), Failure> {
        self.headline = self.headline();
        let text = serde_json::to_string_pretty(&self).map_err(Failure::wrong)?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE);
        std::fs::write(&path, &text).map_err(|error| Failure::Io { path, error })?;
        if arguments.json {
            println!("{text}");
        } else {
            table::show(&self);
        }
        Ok(())
    }

    fn headline(&self) -> Headline {
        let four = self.load.iter().find(|report| report.authorities == 4);
        let idle = self.idle.as_ref();
        Headline {
            payments_per_second_per_core: four.map(|report| report.payments_per_second.median),
            server_cpu_us_per_payment: four.map(|report| report.server_cpu_us_per_payment.median),
            vote_p50_ms_idle: idle.map(|idle| idle.vote_ms.p50),
            certificate_p50_ms_idle: idle.map(|idle| idle.certificate_ms.p50),
            settled_p99_ms_saturated: four.map(|report| report.settled_ms.p99),
            overload_ratio: self.overload.as_ref().map(|overload| overload.ratio),
            recovery_seconds: self.recovery.as_ref().map(|recovery| recovery.seconds.median),
        }
    }
}

//! The result of a run of the bench, as written to `target/bench.json`.

use std::path::Path;

use fastpay_e2e::Failure;
use serde::{Deserialize, Serialize};

use crate::absence::Absence;
use crate::arguments::{Arguments, PAYOUT_OUTPUTS};
use crate::checkpoint::Checkpoints;
use crate::checkpointing::Checkpointing;
use crate::flood::Flood;
use crate::handover::HandOver;
use crate::idle::Idle;
use crate::inside::Costs;
use crate::lists::Lists;
use crate::load::Report;
use crate::machine::Machine;
use crate::model::Row;
use crate::overload::Overload;
use crate::recovery::Recovery;
use crate::state::State;
use crate::table;

/// The file of the result.
pub const FILE: &str = "target/bench.json";

/// All results. Parts that did not run are absent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The figures for which the project has goals, flat, so that two runs can be compared.
    #[serde(flatten)]
    pub headline: Headline,
    pub machine: Machine,
    pub settings: Arguments,
    pub idle: Option<Idle>,
    /// The in-process costs for each committee size.
    pub stages: Vec<Costs>,
    /// The same for orders with many outputs, and these under load; all figures are per order.
    pub payout_stages: Option<Costs>,
    pub payouts: Option<Report>,
    pub lists: Option<Lists>,
    /// The closed loops, one for each committee size.
    pub load: Vec<Report>,
    /// The closed loop of four authorities once more, after the parts that are compared with it.
    pub load_again: Option<Report>,
    pub open: Option<Report>,
    pub overload: Option<Overload>,
    pub flood: Option<Flood>,
    pub checkpointing: Option<Checkpointing>,
    /// The closed loop with and without traces.
    pub traced: Vec<Report>,
    pub skew: Option<Report>,
    pub shards: Vec<Report>,
    pub recovery: Option<Recovery>,
    pub state: Option<State>,
    pub checkpoints: Option<Checkpoints>,
    pub absence: Option<Absence>,
    pub hand_over: Option<HandOver>,
    /// The projection to other machines and committees.
    pub model: Vec<Row>,
}

/// The key figures, in microseconds, payments per second and milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Headline {
    /// The durable in-process cost from request bytes to answer bytes, with a committee of 4.
    pub order_us: Option<f64>,
    pub certificate_us: Option<f64>,
    /// The same with a committee of 20.
    pub certificate_us_n20: Option<f64>,
    /// As measured, with the share of the core that other processes left.
    pub payments_per_second_per_core: Option<f64>,
    /// Outputs settled in orders of 100, as measured and per second of the node's processor time.
    pub payouts_per_second_per_core: Option<f64>,
    pub payouts_per_cpu_second: Option<f64>,
    /// The in-process cost of each output, for order and certificate together.
    pub payout_output_us: Option<f64>,
    /// The same per second of the node's processor time.
    pub payments_per_cpu_second: Option<f64>,
    pub server_cpu_us_per_payment: Option<f64>,
    pub vote_p50_ms_idle: Option<f64>,
    pub certificate_p50_ms_idle: Option<f64>,
    pub settled_p99_ms_saturated: Option<f64>,
    pub overload_ratio: Option<f64>,
    /// The share of throughput that payers keep during a flood of forged orders from another address.
    pub flood_ratio: Option<f64>,
    /// The share of throughput while a checkpoint is computed.
    pub checkpointing_ratio: Option<f64>,
    pub recovery_seconds: Option<f64>,
}

impl Outcome {
    pub fn new(settings: Arguments, machine: Machine) -> Self {
        Self {
            headline: Headline::default(),
            machine,
            settings,
            idle: None,
            stages: Vec::new(),
            payout_stages: None,
            payouts: None,
            lists: None,
            load: Vec::new(),
            load_again: None,
            open: None,
            overload: None,
            flood: None,
            checkpointing: None,
            traced: Vec::new(),
            skew: None,
            shards: Vec::new(),
            recovery: None,
            state: None,
            checkpoints: None,
            absence: None,
            hand_over: None,
            model: Vec::new(),
        }
    }

    /// Writes the file, and prints it or the table.
    pub fn print(mut self, arguments: &Arguments) -> Result<(), Failure> {
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
        let outputs = PAYOUT_OUTPUTS as f64;
        let idle = self.idle.as_ref();
        let inside = |authorities| self.stages.iter().find(|costs| costs.authorities == authorities);
        Headline {
            order_us: inside(4).map(|costs| costs.order.whole_us.median),
            certificate_us: inside(4).map(|costs| costs.certificate.whole_us.median),
            certificate_us_n20: inside(20).map(|costs| costs.certificate.whole_us.median),
            payments_per_second_per_core: four.map(|report| report.payments_per_second.median),
            payouts_per_second_per_core: self
                .payouts
                .as_ref()
                .map(|report| report.payments_per_second.median * outputs),
            payouts_per_cpu_second: self
                .payouts
                .as_ref()
                .map(|report| (1e6 * outputs / report.server_cpu_us_per_payment.median).round()),
            payout_output_us: self.payout_stages.as_ref().map(|costs| {
                crate::statistics::rounded(
                    (costs.order.whole_us.median + costs.certificate.whole_us.median) / outputs,
                    2,
                )
            }),
            payments_per_cpu_second: four.map(|report| (1e6 / report.server_cpu_us_per_payment.median).round()),
            server_cpu_us_per_payment: four.map(|report| report.server_cpu_us_per_payment.median),
            vote_p50_ms_idle: idle.map(|idle| idle.vote_ms.p50),
            certificate_p50_ms_idle: idle.map(|idle| idle.certificate_ms.p50),
            settled_p99_ms_saturated: four.map(|report| report.settled_ms.p99),
            overload_ratio: self.overload.as_ref().map(|overload| overload.ratio),
            flood_ratio: self.flood.as_ref().map(|flood| flood.ratio),
            checkpointing_ratio: self.checkpointing.as_ref().map(|checkpointing| checkpointing.ratio),
            recovery_seconds: self.recovery.as_ref().map(|recovery| recovery.seconds.median),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inside::Path as StepCosts;
    use crate::statistics::{Percentiles, Spread};
    use clap::Parser;

    fn spread(median: f64) -> Spread {
        Spread { median, min: median - 1.0, max: median + 1.0 }
    }

    fn costs(authorities: usize, order: f64, certificate: f64) -> Costs {
        let path = |us| StepCosts { whole_us: spread(us), ..StepCosts::default() };
        Costs { authorities, order: path(order), certificate: path(certificate), ..Costs::default() }
    }

    fn report(authorities: usize, payments_per_second: f64) -> Report {
        let settled_ms = Percentiles { p50: 20.0, p99: 60.0, p99_9: 90.0 };
        Report { authorities, payments_per_second: spread(payments_per_second), settled_ms, ..Report::default() }
    }

    #[test]
    fn the_key_figures_are_at_the_top_level_of_the_json() {
        let mut outcome = Outcome::new(Arguments::parse_from(["fastpay-bench"]), Machine::default());
        outcome.stages = vec![costs(4, 11.0, 12.0), costs(20, 13.0, 24.0)];
        outcome.load = vec![report(10, 17_000.0), report(4, 21_000.0)];
        let peak = Overload { ratio: 0.93, report: report(4, 19_530.0), ..Overload::default() };
        outcome.overload = Some(peak);
        outcome.headline = outcome.headline();
        let json = serde_json::to_value(&outcome).unwrap();
        for (name, expected) in [
            ("order_us", 11.0),
            ("certificate_us", 12.0),
            ("certificate_us_n20", 24.0),
            ("payments_per_second_per_core", 21_000.0),
            ("settled_p99_ms_saturated", 60.0),
            ("overload_ratio", 0.93),
        ] {
            assert_eq!(json.get(name).and_then(serde_json::Value::as_f64), Some(expected), "{name}");
        }
        // A part that was not measured is absent, not zero.
        assert!(json.get("vote_p50_ms_idle").unwrap().is_null());
        let again: Outcome = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&again).unwrap(), json);
    }
}

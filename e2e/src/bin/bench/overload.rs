//! More load than the node can serve. It must keep its throughput, refuse or not read the rest, and lose nothing.

use std::time::Duration;

use fastpay_e2e::Failure;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::generator::{Plan, Until};
use crate::load::{self, Report, Scenario};
use crate::machine::Cores;
use crate::pace::Pace;
use crate::statistics::rounded;

/// The number of streams. A stream accepts a limited number of requests at a time.
const CONNECTIONS: usize = 32;
/// The effect of overload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Overload {
    /// The closed loop's throughput. The load is a multiple of the first one.
    pub peak: Peak,
    pub factor: f64,
    /// The throughput under overload, as a share of the peak.
    pub ratio: f64,
    /// The same share per second of the node's processor time.
    pub ratio_by_processor_time: f64,
    pub report: Report,
}

/// Offers `factor` times as many payments as the closed loop `peak` settled.
pub fn measure(arguments: &Arguments, base: &Scenario, peak: &Report, cores: Cores) -> Result<Overload, Failure> {
    let peak = peak.payments_per_second.median;
    let factor = arguments.overload_factor;
    let seconds = arguments.open_seconds();
    let part = Until::Elapsed(Duration::from_secs_f64(seconds));
    let parts = arguments.parts().min(3);
    // Refused payments are retried, so only settled payments are used up.
    let prepared = (peak * 1.5 * seconds * (parts + 1) as f64) as usize + 2 * base.accounts;
    let scenario = Scenario {
        name: format!("{factor} times the capacity offered"),
        connections: CONNECTIONS,
        plan: Plan { pace: Pace::Open { per_second: peak * factor }, warm_up: part, part, parts },
        prepared,
        ..base.clone()
    };
    let report = load::measure(&scenario, cores)?;
    Ok(Overload { factor, report, ..Overload::default() })
}

/// A closed loop's throughput, measured before and after the run to compare, because a machine's speed drifts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Peak {
    /// The mean of the two measurements.
    pub payments_per_second: f64,
    pub cpu_us_per_payment: f64,
}

impl Peak {
    pub fn of(before: &Report, after: &Report) -> Self {
        let mean = |value: fn(&Report) -> f64| rounded(f64::midpoint(value(before), value(after)), 1);
        Self {
            payments_per_second: mean(|report| report.payments_per_second.median),
            cpu_us_per_payment: mean(|report| report.server_cpu_us_per_payment.median),
        }
    }

    /// The throughput of `report` as a share of it: per wall-clock second, and per second of processor time.
    pub fn shares(&self, report: &Report) -> (f64, f64) {
        let cpu_us_per_payment = report.server_cpu_us_per_payment.median.max(f64::MIN_POSITIVE);
        let by_clock = report.payments_per_second.median / self.payments_per_second.max(f64::MIN_POSITIVE);
        (rounded(by_clock, 3), rounded(self.cpu_us_per_payment / cpu_us_per_payment, 3))
    }
}

impl Overload {
    /// Compares it with a peak.
    pub fn against(self, peak: Peak) -> Self {
        let (ratio, ratio_by_processor_time) = peak.shares(&self.report);
        Self { peak, ratio, ratio_by_processor_time, ..self }
    }
}

//! Much more than the node can do: it must go on at its pace, refuse the rest or leave it unread, and lose nothing.

use std::time::Duration;

use fastpay_e2e::Failure;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::generator::{Plan, Until};
use crate::load::{self, Report, Scenario};
use crate::machine::Cores;
use crate::pace::Pace;
use crate::statistics::rounded;

/// A stream takes only so many requests at a time; a crowd has many streams.
const CONNECTIONS: usize = 32;
/// What overload does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Overload {
    /// The closed loop's, which the load is a multiple of.
    pub peak_payments_per_second: f64,
    pub peak_cpu_us_per_payment: f64,
    pub factor: f64,
    /// What is still settled, as a share of the peak.
    pub ratio: f64,
    /// The same for each second of the node's processor time, whatever others left it of its core.
    pub ratio_by_processor_time: f64,
    pub report: Report,
}

/// Offers `factor` times as many payments as the closed loop `peak` settled.
pub fn measure(arguments: &Arguments, base: &Scenario, peak: &Report, cores: Cores) -> Result<Overload, Failure> {
    let peak_cpu_us_per_payment = peak.server_cpu_us_per_payment.median;
    let peak = peak.payments_per_second.median;
    let factor = arguments.overload_factor;
    let seconds = arguments.open_seconds();
    let part = Until::Elapsed(Duration::from_secs_f64(seconds));
    let parts = arguments.parts().min(3);
    // Whatever is refused comes again, so only what is settled is used up.
    let prepared = (peak * 1.5 * seconds * (parts + 1) as f64) as usize + 2 * base.accounts;
    let scenario = Scenario {
        name: format!("{factor} times the capacity offered"),
        connections: CONNECTIONS,
        plan: Plan { pace: Pace::Open { per_second: peak * factor }, warm_up: part, part, parts },
        prepared,
        ..base.clone()
    };
    let report = load::measure(&scenario, cores)?;
    let ratio = rounded(report.payments_per_second.median / peak, 3);
    let cpu_us_per_payment = report.server_cpu_us_per_payment.median.max(f64::MIN_POSITIVE);
    let ratio_by_processor_time = rounded(peak_cpu_us_per_payment / cpu_us_per_payment, 3);
    let peak_payments_per_second = peak;
    Ok(Overload { peak_payments_per_second, peak_cpu_us_per_payment, factor, ratio, ratio_by_processor_time, report })
}

//! Projects the measured costs to more cores and more authorities. It assumes only that shards on different cores do
//! not slow each other down, beyond the credits that they exchange.
//!
//! ```text
//!  µs per payment (n, cores) = order + certificate(n) + transport(bytes(n)) + share across shards (cores) × credit
//! ```

use serde::{Deserialize, Serialize};

use crate::inside::Costs;
use crate::load::Report;
use crate::statistics::rounded;

/// The numbers of cores to project. The last is the paper's.
const CORES: [usize; 3] = [1, 16, 48];
/// The paper's figures for 48 cores, by number of authorities.
const PAPER_48_CORES: [(usize, f64); 2] = [(4, 160_000.0), (20, 80_000.0)];
/// The bytes per second of a gigabit link, less a twentieth for packet headers.
const BYTES_PER_SECOND_OF_GIGABIT: f64 = 1e9 / 8.0 * 0.95;

/// A committee's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub authorities: usize,
    pub order_us: f64,
    pub certificate_us: f64,
    /// The cost of the transport, measured or interpolated.
    pub transport_us: f64,
    pub transport_is_measured: bool,
    /// The additional cost of a payment between two shards.
    pub credit_us: f64,
    /// The projected throughput by number of cores.
    pub payments_per_second: Vec<Capacity>,
    pub wire_bytes_to_node: f64,
    /// The throughput that the link allows.
    pub payments_per_second_1_gbit: f64,
    pub payments_per_second_10_gbit: f64,
    pub paper_48_cores: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    pub cores: usize,
    /// The throughput by processor time.
    pub payments_per_second: f64,
}

/// `None` if too little was measured.
pub fn rows(costs: &[Costs], load: &[Report], shards: &[Report]) -> Vec<Row> {
    let measured: Vec<Point> = costs.iter().filter_map(|costs| Point::of(costs, load)).collect();
    let Some(line) = Line::through(&measured) else { return Vec::new() };
    let answers = load.first().map_or(0.0, |report| report.wire_bytes_out_per_payment);
    let credit_us = credit(shards);
    costs.iter().map(|costs| row(costs, &measured, line, credit_us, answers)).collect()
}

fn row(costs: &Costs, measured: &[Point], line: Line, credit_us: f64, answers: f64) -> Row {
    let point = measured.iter().find(|point| point.authorities == costs.authorities);
    let bytes = point.map_or((costs.order_bytes + costs.certificate_bytes) as f64, |point| point.bytes);
    let transport_us = point.map_or_else(|| line.at(bytes), |point| point.transport_us);
    let (order_us, certificate_us) = (costs.order.whole_us.median, costs.certificate.whole_us.median);
    let capacity = |cores: usize| {
        let across = (cores - 1) as f64 / cores as f64;
        let micros = order_us + certificate_us + transport_us + across * credit_us;
        Capacity { cores, payments_per_second: rounded(cores as f64 * 1e6 / micros, 0) }
    };
    let link = |gigabits: f64| rounded(gigabits * BYTES_PER_SECOND_OF_GIGABIT / bytes.max(answers), 0);
    let paper = PAPER_48_CORES.iter().find(|(authorities, _)| *authorities == costs.authorities);
    Row {
        authorities: costs.authorities,
        order_us,
        certificate_us,
        transport_us: rounded(transport_us, 1),
        transport_is_measured: point.is_some(),
        credit_us: rounded(credit_us, 1),
        payments_per_second: CORES.into_iter().map(capacity).collect(),
        wire_bytes_to_node: bytes,
        payments_per_second_1_gbit: link(1.0),
        payments_per_second_10_gbit: link(10.0),
        paper_48_cores: paper.map(|(_, payments)| *payments),
    }
}

/// The additional cost of a payment across shards, from runs with all and with no payments across.
fn credit(shards: &[Report]) -> f64 {
    let cost = |share: f64| {
        let is_it = |report: &&Report| !report.on_all_cores && report.cross_shard == Some(share);
        shards.iter().find(is_it).map(|report| report.server_cpu_us_per_payment.median)
    };
    cost(1.0).zip(cost(0.0)).map_or(0.0, |(across, within)| (across - within).max(0.0))
}

/// The cost of transport by message size.
#[derive(Clone, Copy, Debug)]
struct Point {
    authorities: usize,
    bytes: f64,
    transport_us: f64,
}

impl Point {
    fn of(costs: &Costs, load: &[Report]) -> Option<Self> {
        let report = load.iter().find(|report| report.authorities == costs.authorities)?;
        let inside = costs.order.whole_us.median + costs.certificate.whole_us.median;
        let transport_us = report.server_cpu_us_per_payment.median - inside;
        Some(Self { authorities: costs.authorities, bytes: report.wire_bytes_in_per_payment, transport_us })
    }
}

/// Fits a line by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    start: f64,
    slope: f64,
}

impl Line {
    /// A constant through a single point.
    fn through(points: &[Point]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.bytes), mean(|point| point.transport_us));
        let covariance: f64 = points.iter().map(|point| (point.bytes - x) * (point.transport_us - y)).sum();
        let variance: f64 = points.iter().map(|point| (point.bytes - x).powi(2)).sum();
        let slope = if variance > 0.0 { covariance / variance } else { 0.0 };
        (!points.is_empty()).then_some(Self { start: y - slope * x, slope })
    }

    fn at(self, bytes: f64) -> f64 {
        (self.start + self.slope * bytes).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: f64, transport_us: f64) -> Point {
        Point { authorities: 0, bytes, transport_us }
    }

    #[test]
    fn the_line_is_that_of_least_squares() {
        let exact = Line::through(&[point(100.0, 3.0), point(200.0, 5.0), point(400.0, 9.0)]).unwrap();
        assert!((exact.slope - 0.02).abs() < 1e-9 && (exact.at(1000.0) - 21.0).abs() < 1e-9, "{exact:?}");
        let scattered = Line::through(&[point(0.0, 1.0), point(1.0, 1.0), point(2.0, 4.0)]).unwrap();
        assert!((scattered.slope - 1.5).abs() < 1e-9 && (scattered.start - 0.5).abs() < 1e-9, "{scattered:?}");
        assert_eq!(Line::through(&[point(5.0, 7.0)]).unwrap().at(99.0), 7.0);
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line { start: 1.0, slope: -1.0 }.at(9.0), 0.0);
    }
}

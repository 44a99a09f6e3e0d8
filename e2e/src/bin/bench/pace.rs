//! The times at which payments begin.

use std::time::{Duration, Instant};

/// The shape of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A constant number of payments in flight: each that ends makes room for the next. Measures capacity.
    Closed { in_flight: usize },
    /// A constant number of payments begins per second, whatever the node does. Measures latency.
    Open { per_second: f64 },
}

/// The scheduled beginnings of an open loop's payments, evenly spaced and fixed in advance. Latency is measured from
/// them, so a delay by the generator or the node counts in full.
#[derive(Clone, Debug)]
pub struct Timetable {
    start: Instant,
    interval: Duration,
    begun: u32,
}

impl Timetable {
    /// # Panics
    /// Not for a rate above zero.
    pub fn new(start: Instant, per_second: f64) -> Self {
        Self { start, interval: Duration::from_secs_f64(1.0 / per_second), begun: 0 }
    }

    /// The instant at which the next payment is to begin.
    pub fn next(&self) -> Instant {
        self.start + self.interval * self.begun
    }

    /// The instant of the next payment, if it has come. Each instant is returned once, however late.
    pub fn take_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next();
        (due <= now).then(|| {
            self.begun += 1;
            due
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timetable_is_kept_whatever_the_delays() {
        let start = Instant::now();
        let mut table = Timetable::new(start, 1000.0);
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert_eq!(table.take_due(start), Some(at(0)));
        assert_eq!(table.take_due(start), None);
        assert_eq!(table.next(), at(1));
        // Held up for five milliseconds: all five are due, each with the instant at which it should have begun.
        let late = std::iter::from_fn(|| table.take_due(at(5))).collect::<Vec<_>>();
        assert_eq!(late, [at(1), at(2), at(3), at(4), at(5)]);
        // And the rate has not changed.
        assert_eq!((table.take_due(at(5)), table.next()), (None, at(6)));
    }

    #[test]
    fn a_second_has_as_many_payments_as_the_rate() {
        let start = Instant::now();
        let mut table = Timetable::new(start, 60_000.0);
        let count = std::iter::from_fn(|| table.take_due(start + Duration::from_secs(1))).count();
        // An interval is a whole number of nanoseconds.
        assert!((59_990..=60_010).contains(&count), "{count}");
    }
}

//! Statistics of many measurements.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The durations of many events of one kind.
#[derive(Clone, Debug, Default)]
pub struct Times {
    micros: Vec<u32>,
}

/// Percentiles in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
}

impl Times {
    pub fn push(&mut self, time: Duration) {
        self.micros.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    pub fn append(&mut self, mut other: Self) {
        self.micros.append(&mut other.micros);
    }

    pub fn percentiles(mut self) -> Percentiles {
        self.micros.sort_unstable();
        let ms = |per_mille| nearest_rank(&self.micros, per_mille).map_or(0.0, |micros| f64::from(*micros) / 1e3);
        Percentiles { p50: ms(500), p99: ms(990), p99_9: ms(999) }
    }
}

/// The smallest value that at least this many per thousand do not exceed.
fn nearest_rank<T>(sorted: &[T], per_mille: usize) -> Option<&T> {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    sorted.get(rank.max(1) - 1)
}

/// The median and the extremes of repeated measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of these values; zeros if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.max(1) - 1), at(middle)) };
        Self { median, min: at(0), max: at(values.len().max(1) - 1) }
    }

    /// Rounds to this many decimals.
    pub fn rounded(self, digits: i32) -> Self {
        let round = |value| rounded(value, digits);
        Self { median: round(self.median), min: round(self.min), max: round(self.max) }
    }
}

pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(micros: impl IntoIterator<Item = u64>) -> Percentiles {
        let mut times = Times::default();
        micros.into_iter().for_each(|micros| times.push(Duration::from_micros(micros)));
        times.percentiles()
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        // In no order; by definition the 500th, 990th and 999th of a thousand.
        let shuffled = (1..=1000).map(|i| i * 7919 % 1000 + 1);
        assert_eq!(percentiles(shuffled), Percentiles { p50: 0.5, p99: 0.99, p99_9: 0.999 });
        // Of few values the upper ones are the largest: never better than what was seen.
        assert_eq!(percentiles([1000, 2000, 3000]), Percentiles { p50: 2.0, p99: 3.0, p99_9: 3.0 });
        assert_eq!(percentiles([4000]), Percentiles { p50: 4.0, p99: 4.0, p99_9: 4.0 });
        assert_eq!(percentiles([]), Percentiles::default());
    }

    #[test]
    fn one_outlier_in_a_thousand_is_seen_at_p99_9_only_where_it_is_more_than_one() {
        let with = |outliers: u64| percentiles((0..1000).map(move |i| if i < outliers { 90_000 } else { 1_000 }));
        assert_eq!(with(1).p99_9, 1.0);
        assert_eq!(with(2).p99_9, 90.0);
        assert_eq!(with(10).p99, 1.0);
        assert_eq!(with(11).p99, 90.0);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of([]), Spread::default());
        assert_eq!(Spread::of([1.26, 1.24]).rounded(1), Spread { median: 1.3, min: 1.2, max: 1.3 });
    }
}

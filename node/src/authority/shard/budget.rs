//! Bounds how many bytes of journal are written for each of many spenders: a token bucket for each, in bounded memory.
//!
//! A spender may use its budget of a day at once, and as much again each day. Only spenders that are ahead of their
//! budget's pace are stored, each by one instant: when its bucket will be full again. Invariants: no spender is ever
//! counted as having spent more than it has; at most [`SPENDERS_MAX`] are stored; an operation costs O(1), amortised.
//! If more spend at a time, the lower half of them is forgiven everything, and the upper half is forgiven as much as
//! the median has spent (Misra and Gries), so no spender gets more above its budget than two parts in [`SPENDERS_MAX`]
//! of what all have spent.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::client_reputation::Address;

/// The maximum number of stored spenders: about 2 MB. A spender that stays within its budget's pace is not stored.
const SPENDERS_MAX: usize = 16_384;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The budgets of addresses, which all shards of an authority share.
pub type AddressBudgets = Arc<Mutex<Budgets<Address>>>;

/// Budgets of this many bytes for each address.
#[must_use]
pub fn address_budgets(bytes_per_day: NonZeroU64) -> AddressBudgets {
    Arc::new(Mutex::new(Budgets::new(bytes_per_day)))
}

/// The budgets of spenders identified by `K`. The hash is keyed, because strangers choose their identifiers.
#[derive(Debug)]
pub struct Budgets<K> {
    bytes_per_day: NonZeroU64,
    even_at: HashMap<K, Instant>,
    spenders_max: usize,
}

impl<K: Copy + Eq + Hash> Budgets<K> {
    /// Budgets of which nothing has been spent.
    #[must_use]
    pub fn new(bytes_per_day: NonZeroU64) -> Self {
        Self { bytes_per_day, even_at: HashMap::new(), spenders_max: SPENDERS_MAX }
    }

    /// Records the bytes written for a spender.
    pub fn spend(&mut self, spender: K, bytes: u64, now: Instant) {
        if bytes == 0 {
            return;
        }
        if self.even_at.len() >= self.spenders_max && !self.even_at.contains_key(&spender) {
            self.make_room(now);
        }
        let worth = self.worth(bytes);
        let even_at = self.even_at.entry(spender).or_insert(now);
        // If the addition overflows, use a year from now.
        *even_at = (*even_at).max(now).checked_add(worth).unwrap_or(now + 365 * DAY);
    }

    /// How long a spender must wait until more may be written for it; `None` if it need not wait.
    #[must_use]
    pub fn wait(&self, spender: &K, now: Instant) -> Option<Duration> {
        let ahead = self.even_at.get(spender)?.saturating_duration_since(now);
        ahead.checked_sub(DAY).filter(|wait| !wait.is_zero())
    }

    /// The time in which the budget grows by this many bytes.
    fn worth(&self, bytes: u64) -> Duration {
        let nanos = DAY.as_nanos().saturating_mul(bytes.into()) / u128::from(self.bytes_per_day.get());
        Duration::from_nanos_u128(nanos.min(u64::MAX.into()))
    }

    /// Removes spenders with full buckets. If those are fewer than half, forgives everybody the median amount.
    fn make_room(&mut self, now: Instant) {
        self.even_at.retain(|_, even_at| *even_at > now);
        if self.even_at.len().saturating_mul(2) <= self.spenders_max {
            return;
        }
        let mut ahead: Vec<Duration> = self.even_at.values().map(|even_at| even_at.duration_since(now)).collect();
        let middle = ahead.len() / 2;
        let (_, forgiven, _) = ahead.select_nth_unstable(middle);
        let forgiven = *forgiven;
        self.even_at.retain(|_, even_at| {
            *even_at = even_at.checked_sub(forgiven).unwrap_or(now);
            *even_at > now
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    fn budgets(bytes_per_day: u64, spenders_max: usize) -> Budgets<u32> {
        Budgets { spenders_max, ..Budgets::new(bytes_per_day.try_into().unwrap()) }
    }

    #[test]
    fn a_days_budget_may_be_spent_at_once_and_as_much_each_day() {
        let (mut budgets, start) = (budgets(86_400, 10), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        budgets.spend(1, 86_400, at(0));
        assert_eq!(budgets.wait(&1, at(0)), None, "to the byte");
        budgets.spend(1, 10, at(0));
        assert_eq!(budgets.wait(&1, at(0)), Some(Duration::from_secs(10)));
        assert_eq!(budgets.wait(&2, at(0)), None, "another one");
        assert_eq!(budgets.wait(&1, at(4)), Some(Duration::from_secs(6)));
        assert_eq!(budgets.wait(&1, at(10)), None);
        // Unused budget does not accumulate beyond one day.
        budgets.spend(1, 2 * 86_400, at(90 * 86_400));
        assert_eq!(budgets.wait(&1, at(90 * 86_400)), Some(DAY));
    }

    #[test]
    fn the_largest_numbers_do_no_harm() {
        let (mut least, mut most, now) = (budgets(1, 10), budgets(u64::MAX, 10), Instant::now());
        for _ in 0..3 {
            least.spend(1, u64::MAX, now);
            most.spend(1, u64::MAX / 4, now);
        }
        assert!(least.wait(&1, now).is_some());
        assert_eq!(most.wait(&1, now), None);
    }

    #[test]
    fn however_many_spend_memory_is_bounded_and_a_heavy_spender_is_found() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let (max, per_day) = (64, 1_000_000);
        let (mut budgets, mut now) = (budgets(per_day, max), Instant::now());
        let (mut heavy, mut all) = (0, 0);
        for number in 0..50_000_u32 {
            now += Duration::from_millis(1);
            let bytes = rng.random_range(1..200);
            // Thousands of strangers, most seen once; number 0 spends as much as all of them.
            budgets.spend(1 + number % 20_000, bytes, now);
            budgets.spend(0, bytes, now);
            heavy += bytes;
            all += 2 * bytes;
            assert!(budgets.even_at.len() <= max);
            if let Some(wait) = budgets.wait(&0, now) {
                let allowed = per_day + budgets.worth(1).as_millis() as u64;
                assert!(heavy > per_day && !wait.is_zero(), "{heavy} of {allowed}");
            }
            if heavy > per_day + 2 * all / max as u64 + per_day / 1_000 {
                assert!(budgets.wait(&0, now).is_some(), "{heavy} of {all} bytes");
            }
            // Nobody else is near its budget, or counted as such.
            assert_eq!(budgets.wait(&(1 + number % 20_000), now), None);
        }
        assert!(heavy > 2 * per_day);
    }
}

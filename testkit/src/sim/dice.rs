//! The only source of randomness of a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A random generator with a seed. Clones share its state. The order of draws depends on the schedule, which the seed
/// determines.
#[derive(Clone, Debug)]
pub struct Dice(Arc<Mutex<fastrand::Rng>>);

impl Dice {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    fn generator(&self) -> MutexGuard<'_, fastrand::Rng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number from 0 to `count` - 1. `count` must not be 0.
    #[must_use]
    pub fn below(&self, count: usize) -> usize {
        self.generator().usize(..count)
    }

    /// True with this probability per thousand.
    #[must_use]
    pub fn chance(&self, per_mille: u32) -> bool {
        self.generator().u32(..1_000) < per_mille
    }

    /// One of these elements, of which there must be at least one.
    #[must_use]
    pub fn pick<'a, T>(&self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len())]
    }

    /// A duration between two bounds, inclusive.
    #[must_use]
    pub fn between(&self, min: Duration, max: Duration) -> Duration {
        Duration::from_micros(self.generator().u64(micros(min)..=micros(max)))
    }

    /// A number of seconds between two bounds, inclusive.
    #[must_use]
    pub fn between_s(&self, min: i64, max: i64) -> i64 {
        self.generator().i64(min..=max)
    }

    /// A duration that is mostly short and sometimes up to `max`.
    #[must_use]
    pub fn mostly_short(&self, max: Duration) -> Duration {
        let scale = [1_000, 100, 10, 10, 1][self.below(5)];
        self.between(Duration::ZERO, max / scale)
    }

    /// A subset of the numbers below `count`, in order; often all of them.
    #[must_use]
    pub fn some_of(&self, count: usize) -> Vec<usize> {
        let all = self.chance(250);
        (0..count).filter(|_| all || self.chance(500)).collect()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("no simulation runs for millennia")
}

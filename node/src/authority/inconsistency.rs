//! Bounds how often the follower reads again after an impossible answer of the Ethereum nodes.
//!
//! Providers answer from many machines behind one address: one of them may lag or hold another fork, and the next
//! answer is right. Meanwhile the follower credits nothing, because its cursor moves only with a consistent batch. It
//! stops only if the inconsistency outlasts all readings.

use std::time::Duration;

/// How often the follower reads again after the first inconsistent reading. This takes five minutes and a quarter, in
/// which a provider replaces a machine that lags.
pub const REREADS_MAX: u32 = 8;
/// The wait before the first repeated reading. Each wait is twice as long as the one before.
const WAIT_MIN: Duration = Duration::from_secs(5);
/// The longest wait between two readings.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How many readings in a row were inconsistent.
#[derive(Debug, Default)]
pub struct InconsistentReads {
    readings: u32,
}

impl InconsistentReads {
    /// Notes an inconsistent reading. Returns the wait before the next one; `None` if the follower must stop.
    pub fn raise(&mut self) -> Option<Duration> {
        let wait = WAIT_MIN.saturating_mul(2_u32.saturating_pow(self.readings)).min(WAIT_MAX);
        self.readings = self.readings.saturating_add(1);
        (self.readings <= REREADS_MAX).then_some(wait)
    }

    /// Notes a consistent reading. Returns whether the one before it was inconsistent.
    pub fn clear(&mut self) -> bool {
        std::mem::take(&mut self.readings) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_again_for_some_minutes_and_then_stops() {
        let mut inconsistent = InconsistentReads::default();
        let waits: Vec<_> = std::iter::from_fn(|| inconsistent.raise()).map(|wait| wait.as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 60, 60, 60, 60]);
        assert_eq!(inconsistent.raise(), None, "it stays stopped");
    }

    #[test]
    fn one_consistent_reading_clears_it() {
        let mut inconsistent = InconsistentReads::default();
        assert!(!inconsistent.clear());
        while inconsistent.raise().is_some() {}
        assert!(inconsistent.clear() && !inconsistent.clear());
        assert_eq!(inconsistent.raise(), Some(WAIT_MIN));
    }
}

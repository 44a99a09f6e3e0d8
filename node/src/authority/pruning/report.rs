//! How the journals were ended, in a file of the data folder: across the node's stop, and across a crash.

use std::io;
use std::path::Path;

use fastpay_program::files;
use serde::{Deserialize, Serialize};

use super::PruningTimes;

/// The report's file in the data folder.
pub const REPORT_FILE: &str = "pruning.json";

/// How the node ended its journals. Losing it costs nothing but an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PruningReport {
    /// The attempt for which the node stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underway: Option<Attempt>,
    /// The last checkpoint at which the node ended its journals; 0: none yet.
    pub checkpoint: u64,
    /// When it served again, in milliseconds since 1970.
    pub at_ms: u64,
    /// How long the node was away for the last attempt.
    pub pause_ms: u64,
    /// The last attempt, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// An attempt to end the journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The newest certified checkpoint.
    pub checkpoint: u64,
    /// The generation that it replaces.
    pub generation: u64,
    /// When the node stopped, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A failed attempt. The node goes on with the journals that it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The checkpoint at which the journals were to end.
    pub checkpoint: u64,
    /// Why.
    pub error: String,
    /// When it was known, in milliseconds since 1970.
    pub at_ms: u64,
    /// When the next attempt may begin.
    pub retry_at_ms: u64,
    /// The failures since the last success.
    pub count: u32,
}

impl PruningReport {
    /// Reads the report of a data folder; an empty one if there is none.
    #[must_use]
    pub fn read(data: &Path) -> Self {
        let stored = files::read(&data.join(REPORT_FILE)).ok().flatten();
        stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes it durably.
    ///
    /// # Errors
    /// If that fails.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        files::replace(&data.join(REPORT_FILE), &serde_json::to_vec_pretty(self)?)
    }

    /// Whether this attempt is known to have failed.
    #[must_use]
    pub fn has_failed(&self, attempt: &Attempt) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.at_ms >= attempt.at_ms)
    }

    /// Notes a success.
    pub fn succeeded(&mut self, checkpoint: u64, now_ms: u64) {
        (self.checkpoint, self.at_ms, self.failure) = (checkpoint, now_ms, None);
    }

    /// Notes a failure: the next attempt waits, longer each time.
    pub fn failed(&mut self, checkpoint: u64, error: String, now_ms: u64, times: &PruningTimes) {
        let count = self.failure.as_ref().map_or(0, |failure| failure.count).saturating_add(1);
        let doubled = 2_u32.saturating_pow(count.saturating_sub(1));
        let wait = times.retry.saturating_mul(doubled).min(times.retry_max);
        let retry_at_ms = now_ms.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self.failure = Some(Failure { checkpoint, error, at_ms: now_ms, retry_at_ms, count });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_attempt_that_failed_is_repeated_later_and_later_until_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = PruningReport::read(folder.path());
        assert_eq!(report, PruningReport::default());
        let times =
            PruningTimes { retry_max: Duration::from_secs(250), ..PruningTimes::polling_each(Duration::from_secs(4)) };
        for (count, wait_s) in [(1, 60), (2, 120), (3, 240), (4, 250), (5, 250)] {
            report.failed(7, "no room".into(), 1_000, &times);
            let failure = report.failure.clone().unwrap();
            assert_eq!((failure.count, failure.retry_at_ms), (count, 1_000 + wait_s * 1_000));
        }
        let attempt = |at_ms| Attempt { checkpoint: 7, generation: 0, at_ms };
        assert!(report.has_failed(&attempt(1_000)) && !report.has_failed(&attempt(1_001)));
        report.underway = Some(attempt(5_000));
        report.write(folder.path()).unwrap();
        assert_eq!(PruningReport::read(folder.path()), report);
        report.succeeded(8, 9_000);
        assert_eq!((report.checkpoint, report.at_ms, report.failure), (8, 9_000, None));
        std::fs::write(folder.path().join(REPORT_FILE), "{").unwrap();
        assert_eq!(PruningReport::read(folder.path()), PruningReport::default());
    }
}

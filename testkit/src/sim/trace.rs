//! The events of a run: a digest, counts by kind, and on demand a line per event.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The record of a run.
pub struct Trace {
    started: Instant,
    is_shown: bool,
    seen: Mutex<Seen>,
    violated: Notify,
}

#[derive(Default)]
struct Seen {
    /// A hasher with fixed keys, so that equal events have equal digests.
    hasher: DefaultHasher,
    events: u64,
    counts: BTreeMap<&'static str, u64>,
    violation: Option<String>,
}

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The digest of all events with their times. Runs with equal digests are equal.
    pub digest: u64,
    /// The number of events.
    pub events: u64,
    /// The number of faults and events by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// The first violated invariant.
    pub violation: Option<String>,
    /// The simulated time, in milliseconds.
    pub simulated_ms: u64,
}

impl Trace {
    /// An empty trace, which prints its events if it `is_shown`. Must be called within the run's runtime.
    #[must_use]
    pub fn new(is_shown: bool) -> Self {
        Self { started: Instant::now(), is_shown, seen: Mutex::default(), violated: Notify::new() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event of a counted kind.
    pub fn note(&self, kind: &'static str, what: impl fmt::Display) {
        let (elapsed, line) = (self.started.elapsed(), format!("{kind} {what}"));
        if self.is_shown {
            println!("[{:>10.3} ms] {line}", elapsed.as_secs_f64() * 1_000.0);
        }
        let mut seen = self.seen();
        seen.hasher.write_u128(elapsed.as_nanos());
        seen.hasher.write(line.as_bytes());
        seen.events += 1;
        *seen.counts.entry(kind).or_default() += 1;
    }

    /// Records a violation. Only the first one counts.
    pub fn violation(&self, what: impl fmt::Display) {
        self.note("VIOLATION", &what);
        self.seen().violation.get_or_insert_with(|| what.to_string());
        self.violated.notify_one();
    }

    /// The simulated time since the run began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits for a violation.
    pub async fn violated(&self) {
        self.violated.notified().await;
    }

    /// The summary so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let seen = self.seen();
        Summary {
            digest: seen.hasher.finish(),
            events: seen.events,
            counts: seen.counts.clone(),
            violation: seen.violation.clone(),
            simulated_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

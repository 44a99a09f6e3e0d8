//! The wall clock, for programs that compare the time with times in files or on a chain.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// A clock that reads the machine's time once and then advances with tokio's clock. Setting the machine's clock has no
/// effect on delays, and a test that pauses tokio's time controls this clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    at_start_ms: u64,
    start: Instant,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "its users make a wrong clock harmless: the relayer corrects stored times, a node only refuses"
        )]
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::at(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    /// A clock that starts at this time, in milliseconds since 1970.
    #[must_use]
    pub fn at(now_ms: u64) -> Self {
        Self { at_start_ms: now_ms, start: Instant::now() }
    }

    /// The current time, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at_start_ms.saturating_add(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn it_advances_with_tokios_time() {
        let clock = Clock::at(5_000);
        assert_eq!(clock.now_ms(), 5_000);
        tokio::time::advance(Duration::from_millis(1_234)).await;
        assert_eq!(clock.now_ms(), 6_234);
    }
}

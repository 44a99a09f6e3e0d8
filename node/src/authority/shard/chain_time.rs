//! The chain time up to which a shard has followed the Primary.

use fastpay_core::{Moment, PrimaryView};
use serde::{Deserialize, Serialize};

/// The maximum age, in seconds, of the view of the chain on which an order is voted for or a certificate executed; half
/// of the contract's unlock window if that is less. A number that is voided meanwhile must not be executed here.
const CHAIN_AGE_MAX_S: u64 = 3 * 24 * 3_600;

/// The time of the newest final block whose events a shard has applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainTime {
    /// In seconds since 1970.
    pub block_time: u64,
    /// How long an unlock request is open before a quorum can void its number, in seconds.
    pub unlock_window: u64,
}

impl ChainTime {
    /// Whether the view is recent or too old, at this time in milliseconds since 1970.
    #[must_use]
    pub fn view(&self, now_ms: u64) -> PrimaryView {
        let age_max = (self.unlock_window / 2).min(CHAIN_AGE_MAX_S);
        let is_recent = now_ms / 1_000 <= self.block_time.saturating_add(age_max);
        if is_recent { PrimaryView::Recent } else { PrimaryView::TooOld }
    }

    /// The time by which certificates of ended epochs are judged, at this time in milliseconds since 1970.
    #[must_use]
    pub fn moment(&self, now_ms: u64) -> Moment {
        let Self { block_time: followed, unlock_window } = *self;
        Moment { now: followed.max(now_ms / 1_000), followed, unlock_window }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_too_old_after_three_days_or_half_of_the_window() {
        const DAY: u64 = 86_400;
        for (unlock_window, age_max) in [(3 * DAY, 3 * DAY / 2), (6 * DAY, 3 * DAY), (30 * DAY, 3 * DAY)] {
            let time = ChainTime { block_time: 1_000, unlock_window };
            assert_eq!(time.view((1_000 + age_max) * 1_000 + 999), PrimaryView::Recent);
            assert_eq!(time.view((1_001 + age_max) * 1_000), PrimaryView::TooOld);
            // The block is in the future: the machine's clock is late.
            assert_eq!(time.view(0), PrimaryView::Recent);
        }
        assert_eq!(ChainTime::default().view(1_000), PrimaryView::TooOld, "nothing was read yet");
    }
}

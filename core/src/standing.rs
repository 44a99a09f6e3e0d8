//! How far a certificate counts by itself, by the epoch in which it was made. The keys of a committee that was replaced
//! are guarded for a while and no longer. docs/PROTOCOL.md, "Certificates of an ended epoch".
//!
//! ```text
//!  epoch e + 1 is installed          executed_until                       kept_until
//!   │ executed, like those of e + 1   │ kept and attested, not executed    │ only with the votes of f + 1 members ─►
//! ```

use serde::{Deserialize, Serialize};

/// Until when the certificates of an ended epoch count by themselves, in seconds since 1970 by the chain's clock. At no
/// time if its keys were out, or if that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochEnd {
    /// Before this time, they are executed.
    pub executed_until: u64,
    /// Before this time, they are kept and attested.
    pub kept_until: u64,
}

impl EpochEnd {
    /// The end of an epoch whose votes the contract counts until `valid_until`, at least two unlock windows after the
    /// installation; 0 if it counts none. What is executed at the last moment is shown to all others, and they keep it,
    /// within one `unlock_window`, which is twice as long as a view of the chain may be old.
    #[must_use]
    pub fn new(valid_until: u64, unlock_window: u64) -> Self {
        Self { executed_until: valid_until.saturating_sub(unlock_window), kept_until: valid_until }
    }

    /// How far the epoch's certificates count at `now`.
    #[must_use]
    pub fn standing(&self, now: u64) -> Standing {
        if now < self.executed_until {
            Standing::Counts
        } else if now < self.kept_until {
            Standing::Kept
        } else {
            Standing::Ended
        }
    }
}

/// How far a certificate counts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Not at all: only with the votes of f + 1 members of the current committee that it exists.
    Ended,
    /// The epoch may have ended long ago: the view of the chain is too old to tell, or the clock is wrong. The certificate
    /// is kept only if its number is frozen, because whoever keeps one does not vote to void its number.
    Unsure,
    /// It is kept and attested, and not executed.
    Kept,
    /// It is executed.
    Counts,
}

/// The time by which an authority judges how far certificates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Now, in seconds since 1970: the later one of the own clock's time and the newest final block's.
    pub now: u64,
    /// The time of the newest final block whose events are applied, in seconds since 1970.
    pub followed: u64,
    /// The contract's unlock window, in seconds.
    pub unlock_window: u64,
}

impl Moment {
    /// How far certificates of the current epoch count: it may have ended right after the newest block that is followed.
    pub(crate) fn of_current(&self) -> Standing {
        let valid_until = self.followed.saturating_add(self.unlock_window.saturating_mul(2));
        EpochEnd::new(valid_until, self.unlock_window).standing(self.now).max(Standing::Unsure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_of_an_ended_epoch_are_executed_then_kept_then_neither() {
        let end = EpochEnd::new(1_000, 300);
        let standings = [0, 699, 700, 999, 1_000, u64::MAX].map(|now| end.standing(now));
        use Standing::{Counts, Ended, Kept};
        assert_eq!(standings, [Counts, Counts, Kept, Kept, Ended, Ended]);
        assert_eq!(EpochEnd::default().standing(0), Ended, "its keys were out");
        assert_eq!(EpochEnd::new(100, 300).standing(0), Kept, "nothing is executed where the window is longer");
    }

    #[test]
    fn on_an_old_view_the_current_epoch_may_have_ended_already() {
        let at = |now| Moment { now, followed: 1_000, unlock_window: 300 }.of_current();
        let standings = [1_000, 1_299, 1_300, 1_599, 1_600].map(at);
        use Standing::{Counts, Kept, Unsure};
        assert_eq!(standings, [Counts, Counts, Kept, Kept, Unsure]);
        assert_eq!(Moment { now: 7, followed: 0, unlock_window: 0 }.of_current(), Unsure, "nothing was read yet");
    }
}

//! What a member remembers from one round to the next, until its node ends.

use std::time::Duration;

use fastpay_core::{AuthorityName, Digest, Epoch};
use tokio::time::Instant;

/// How often the own vote for a number is replaced by that of one leader.
const REPLACEMENTS_MAX: u32 = 3;
/// While rounds bring something, this many take the place of one.
const QUICK_ROUNDS: u32 = 60;
/// And each of them at least so long.
const QUICK_MIN: Duration = Duration::from_millis(100);

/// What rounds bring: the newest certified number, the own vote for the next one, and an announcement for one, with the
/// leader that made it.
pub(super) type Reached = (u64, Option<Digest>, Option<(u64, Option<AuthorityName>)>);

/// How long rounds are apart. After one that brought something the others' answer is awaited, and another checkpoint may
/// be due at once, so rounds are quick for as long as they are apart otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    reached: Option<Reached>,
    quick_until: Option<Instant>,
}

impl Pace {
    /// The pause after a round that ends now, where `poll` is the usual one.
    pub fn pause(&mut self, reached: Reached, poll: Duration) -> Duration {
        let now = Instant::now();
        if self.reached.is_some_and(|before| before != reached) {
            self.quick_until = Some(now + poll);
        }
        self.reached = Some(reached);
        let is_quick = self.quick_until.is_some_and(|until| now < until);
        if is_quick { poll.min((poll / QUICK_ROUNDS).max(QUICK_MIN)) } else { poll }
    }
}

/// The epoch, and since when this node has been in it, or at work: nobody was late before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Began {
    pub epoch: Epoch,
    pub at_ms: u64,
}

impl Began {
    pub fn follow(&mut self, epoch: Epoch, now_ms: u64) {
        if self.epoch != epoch {
            *self = Self { epoch, at_ms: now_ms };
        }
    }
}

/// How often the own vote was replaced for a number while a member led. One that shows ever new cuts is followed no more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replaced {
    of: Option<(u64, Option<AuthorityName>)>,
    count: u32,
}

impl Replaced {
    pub fn allows(&self, of: (u64, Option<AuthorityName>)) -> bool {
        self.of != Some(of) || self.count < REPLACEMENTS_MAX
    }

    pub fn note(&mut self, of: (u64, Option<AuthorityName>)) {
        self.count = if self.of == Some(of) { self.count.saturating_add(1) } else { 1 };
        self.of = Some(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_late_before_its_node_was_at_work_in_the_epoch() {
        let mut began = Began { epoch: Epoch(1), at_ms: 5 };
        began.follow(Epoch(1), 7);
        assert_eq!(began.at_ms, 5);
        began.follow(Epoch(2), 9);
        assert_eq!(began, Began { epoch: Epoch(2), at_ms: 9 });
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_follow_each_other_quickly_for_a_minute_after_one_that_brought_something() {
        let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
        let (mut pace, vote) = (Pace::default(), Some(Digest::repeat_byte(1)));
        assert_eq!(pace.pause((7, None, None), minute), minute, "what was there before is nothing new");
        assert_eq!(pace.pause((7, None, None), minute), minute);
        assert_eq!(pace.pause((7, vote, None), minute), second);
        tokio::time::advance(minute - second).await;
        assert_eq!(pace.pause((7, vote, None), minute), second);
        tokio::time::advance(second).await;
        assert_eq!(pace.pause((7, vote, None), minute), minute);
        assert_eq!(pace.pause((8, None, None), minute), second);
        tokio::time::advance(minute).await;
        assert_eq!(pace.pause((8, None, Some((9, None))), minute), second);
        let (mut short, poll) = (Pace::default(), QUICK_MIN / 2);
        short.pause((1, None, None), poll);
        assert_eq!(short.pause((2, None, None), poll), poll, "never longer than usual");
        let mut fast = Pace::default();
        fast.pause((1, None, None), second);
        assert_eq!(fast.pause((2, None, None), second), QUICK_MIN);
    }

    #[test]
    fn a_leader_may_have_the_own_vote_replaced_a_few_times() {
        let mut replaced = Replaced::default();
        let of = (7, Some(AuthorityName([1; 32])));
        for _ in 0..REPLACEMENTS_MAX {
            assert!(replaced.allows(of));
            replaced.note(of);
        }
        assert!(!replaced.allows(of));
        let next = (7, Some(AuthorityName([2; 32])));
        assert!(replaced.allows(next) && replaced.allows((8, of.1)));
        replaced.note(next);
        assert_eq!((replaced.of, replaced.count), (Some(next), 1));
    }
}

//! What a member remembers from one round to the next, until its node ends.

use fastpay_core::{AuthorityName, Epoch};

/// How often the own vote for a number is replaced by that of one leader.
const REPLACEMENTS_MAX: u32 = 3;

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

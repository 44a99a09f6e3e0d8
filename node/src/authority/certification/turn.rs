//! Whose turn it is to propose a checkpoint [LIFE §4]: member number mod n by name, and each time that it has not come
//! about within an hour, the next one.

use std::time::Duration;

use fastpay_core::{AuthorityName, Committee};

/// When a checkpoint is due, and how long a member has to bring it about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The checkpoint's number.
    pub number: u64,
    /// From when on it is to be proposed, in milliseconds since 1970.
    pub due_at_ms: u64,
    /// How long a member leads.
    pub takeover: Duration,
}

impl Turn {
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.due_at_ms <= now_ms
    }

    /// The member whose proposal is signed now. Clocks may differ: then members follow different ones for a while.
    pub fn leader(&self, committee: &Committee, now_ms: u64) -> Option<AuthorityName> {
        let takeover_ms = u64::try_from(self.takeover.as_millis()).unwrap_or(u64::MAX).max(1);
        let passed = now_ms.saturating_sub(self.due_at_ms) / takeover_ms;
        let members = u64::try_from(committee.members().len()).unwrap_or(u64::MAX);
        let place = (self.number % members).saturating_add(passed % members) % members;
        // Members are in the order of their names.
        Some(committee.members().get(usize::try_from(place).ok()?)?.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::TestCommittee;

    #[test]
    fn members_lead_by_name_and_the_next_one_after_an_hour() {
        let committee = TestCommittee::new(4).committee;
        let name = |place: usize| Some(committee.members()[place].name);
        assert!(committee.members().is_sorted_by_key(|member| member.name));
        let takeover = Duration::from_secs(3_600);
        for (number, first) in [(1, 1), (3, 3), (4, 0), (u64::MAX, 3)] {
            let turn = Turn { number, due_at_ms: 1_000, takeover };
            for (now_ms, place) in [
                (0, first),
                (1_000, first),
                (3_600_999, first),
                (3_601_000, (first + 1) % 4),
                (1_000 + 4 * 3_600_000, first),
                (1_000 + 7 * 3_600_000, (first + 3) % 4),
            ] {
                assert_eq!(turn.leader(&committee, now_ms), name(place), "{number} at {now_ms}");
                assert_eq!(turn.is_due(now_ms), now_ms >= 1_000);
            }
        }
    }
}

//! What a quorum has prevoted, from the votes that the engine has checked and those that this member signed. A leader that
//! says so of its proposal is believed where it is true: else it could pass a new proposal off as an old one, which is
//! asked less.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fastpay_core::Digest;
use malachite::app::types::core::VoteType;

use super::context::{MemberAddress, Vote, id_of};

/// The prevotes of the height under way.
#[derive(Clone, Debug, Default)]
pub struct Polkas(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    height: u64,
    /// The value that each member prevoted in a round; `None` for a member that prevoted several. It counts for every
    /// value: others may have taken another one of its votes into their quorum, and must be believed.
    prevotes: BTreeMap<(u32, MemberAddress), Option<Digest>>,
}

impl Polkas {
    /// Forgets the votes of other heights.
    pub fn begin(&self, height: u64) {
        let mut seen = self.0.lock().expect("nothing panics under this lock");
        if seen.height != height {
            *seen = Seen { height, prevotes: BTreeMap::new() };
        }
    }

    /// Remembers a vote whose signature holds, if it is a prevote for a value at this height.
    pub(crate) fn see(&self, vote: &Vote) {
        let (VoteType::Prevote, Some(id), Some(round)) = (vote.kind, id_of(&vote.value), vote.round.as_u32()) else {
            return;
        };
        let mut seen = self.0.lock().expect("nothing panics under this lock");
        if seen.height == vote.height.0 {
            let same = |voted: &mut Option<Digest>| *voted = voted.filter(|voted| *voted == id);
            seen.prevotes.entry((round, vote.voter)).and_modify(same).or_insert(Some(id));
        }
    }

    /// Whether so many members have prevoted a value in a round of the height under way.
    #[must_use]
    pub fn has(&self, round: u32, id: &Digest, quorum: usize) -> bool {
        let seen = self.0.lock().expect("nothing panics under this lock");
        let counts = |of: u32, voted: &Option<Digest>| of == round && voted.is_none_or(|voted| voted == *id);
        seen.prevotes.iter().filter(|((of, _), voted)| counts(*of, voted)).count() >= quorum
    }

    /// Whether so many members have prevoted a value in any round of the height under way.
    #[must_use]
    pub fn has_any(&self, id: &Digest, quorum: usize) -> bool {
        let seen = self.0.lock().expect("nothing panics under this lock");
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (round, _) in
            seen.prevotes.iter().filter(|(_, voted)| voted.is_none_or(|voted| voted == *id)).map(|(place, _)| *place)
        {
            let count = counts.entry(round).or_default();
            *count = count.saturating_add(1);
        }
        counts.values().any(|count| *count >= quorum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{precommit, prevote};
    use fastpay_ledger_statement::MemberKeys;

    #[test]
    fn a_quorum_of_prevotes_for_one_value_in_one_round_of_this_height_counts() {
        let member = |seed| MemberAddress(MemberKeys::from_seed([seed; 32]).public());
        let (value, other) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
        let polkas = Polkas::default();
        polkas.begin(7);
        polkas.see(&prevote(7, 0, Some(value), member(1)));
        polkas.see(&prevote(7, 0, Some(value), member(2)));
        for ignored in [
            prevote(7, 0, Some(value), member(2)),
            prevote(7, 0, Some(other), member(3)),
            prevote(7, 1, Some(value), member(4)),
            prevote(6, 0, Some(value), member(4)),
            prevote(8, 0, Some(value), member(4)),
            prevote(7, 0, None, member(4)),
            precommit(7, 0, Some(value), member(4)),
        ] {
            polkas.see(&ignored);
            assert!(!polkas.has(0, &value, 3), "{ignored:?}");
            assert!(!polkas.has_any(&value, 3), "{ignored:?}");
        }
        polkas.see(&prevote(7, 0, Some(value), member(5)));
        assert!(polkas.has(0, &value, 3) && polkas.has_any(&value, 3));
        assert!(!polkas.has(1, &value, 3) && !polkas.has(0, &other, 3));
        polkas.begin(7);
        assert!(polkas.has(0, &value, 3));
        polkas.begin(8);
        assert!(!polkas.has(0, &value, 3));
    }

    #[test]
    fn a_member_that_prevotes_two_values_counts_for_each_in_whatever_order_it_shows_them() {
        let member = |seed| MemberAddress(MemberKeys::from_seed([seed; 32]).public());
        let (value, other) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
        for shown in [[value, other], [other, value]] {
            let polkas = Polkas::default();
            polkas.begin(7);
            polkas.see(&prevote(7, 0, Some(value), member(1)));
            polkas.see(&prevote(7, 0, Some(value), member(2)));
            shown.iter().for_each(|id| polkas.see(&prevote(7, 0, Some(*id), member(3))));
            assert!(polkas.has(0, &value, 3) && polkas.has_any(&value, 3), "{shown:?}");
            assert!(!polkas.has(0, &other, 2) && !polkas.has_any(&other, 2), "it counts once: {shown:?}");
            assert!(!polkas.has(1, &value, 1), "in its round alone: {shown:?}");
            polkas.see(&prevote(7, 0, Some(other), member(3)));
            assert!(polkas.has(0, &value, 3), "{shown:?}");
        }
    }
}

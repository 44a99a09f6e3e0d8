//! Whose turn it is to propose a checkpoint [LIFE §4]: member number mod n by name, and each time that it has not come
//! about within an hour, the next one. One that does not answer is passed over after three rounds. And what is signed of
//! what members have signed.

use std::time::Duration;

use fastpay_core::{AuthorityName, Committee, Digest};

use super::CheckpointVoteFile;
use super::peers::Shown;

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

    /// The member whose proposal is signed now: the first one, from the one whose turn it is, that is not silent. Clocks
    /// and contacts may differ: then members follow different ones for a while.
    pub fn leader(
        &self,
        committee: &Committee,
        now_ms: u64,
        is_silent: impl Fn(&AuthorityName) -> bool,
    ) -> Option<AuthorityName> {
        let takeover_ms = u64::try_from(self.takeover.as_millis()).unwrap_or(u64::MAX).max(1);
        let passed = now_ms.saturating_sub(self.due_at_ms) / takeover_ms;
        // Members are in the order of their names.
        let members = committee.members();
        let count = u64::try_from(members.len()).unwrap_or(u64::MAX);
        let place = (self.number % count).saturating_add(passed % count) % count;
        let (before, from) = members.split_at_checked(usize::try_from(place).ok()?)?;
        let mut in_turn = from.iter().chain(before).map(|member| member.name);
        in_turn.clone().find(|name| !is_silent(name)).or_else(|| in_turn.next())
    }
}

pub(super) fn votes_for(shown: &[Shown], digest: Digest) -> usize {
    shown.iter().filter(|(_, vote)| vote.checkpoint == digest).count()
}

/// Whose checkpoint is signed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// This authority's own.
    Own,
    /// That of this member.
    Other(AuthorityName),
    /// Nobody's alone: no checkpoint is due here, or the leader has replaced its own too often.
    Nobody,
}

/// What to sign: the leader's checkpoint; if it shows none, or this authority leads, the one that most members and at
/// least f + 1 have signed. None if it is signed already.
pub(super) fn proposal<'a>(
    shown: &'a [Shown],
    committee: &Committee,
    lead: Lead,
    own: Option<&CheckpointVoteFile>,
) -> Option<(usize, &'a CheckpointVoteFile)> {
    let is_leaders = |(_, vote): &&Shown| Lead::Other(vote.authority) == lead;
    let votes = |digest| votes_for(shown, digest);
    let least = own.map_or(0, |own| votes(own.checkpoint)).saturating_add(1).max(committee.one_honest());
    let most = || shown.iter().max_by_key(|(_, vote)| votes(vote.checkpoint));
    let chosen = match shown.iter().find(is_leaders) {
        Some(leaders) => leaders,
        None if lead == Lead::Own && own.is_some() => return None,
        None => most().filter(|(_, vote)| votes(vote.checkpoint) >= least)?,
    };
    let (peer, vote) = chosen;
    (own.map(|own| own.checkpoint) != Some(vote.checkpoint)).then_some((*peer, vote))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Epoch;
    use fastpay_rpc::json::Hex;
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
                assert_eq!(turn.leader(&committee, now_ms, |_| false), name(place), "{number} at {now_ms}");
                assert_eq!(turn.is_due(now_ms), now_ms >= 1_000);
            }
        }
    }

    #[test]
    fn a_member_that_does_not_answer_is_passed_over_at_once() {
        let committee = TestCommittee::new(4).committee;
        let leader = |number, now_s: u64, silent: &[usize]| {
            let turn = Turn { number, due_at_ms: 0, takeover: Duration::from_secs(3_600) };
            let is_silent = |name: &AuthorityName| silent.iter().any(|place| committee.members()[*place].name == *name);
            let leader = turn.leader(&committee, now_s * 1_000, is_silent);
            committee.members().iter().position(|member| Some(member.name) == leader).unwrap()
        };
        assert_eq!((leader(1, 0, &[0]), leader(1, 0, &[1]), leader(1, 0, &[1, 2])), (1, 2, 3));
        assert_eq!((leader(3, 0, &[3]), leader(3, 0, &[0, 3])), (0, 1), "the first follows the last");
        assert_eq!(leader(1, 3_600, &[2]), 3, "also one that would have taken over");
        assert_eq!(leader(1, 0, &[0, 1, 2, 3]), 1, "where nobody answers, it is whose turn it is");
    }

    fn vote(committee: &TestCommittee, member: usize, checkpoint: u8) -> CheckpointVoteFile {
        let (checkpoint, authority) = (Digest::repeat_byte(checkpoint), committee.keys[member].public().name);
        CheckpointVoteFile { number: 1, checkpoint, epoch: Epoch(0), authority, signature: Hex([0; 64]) }
    }

    #[test]
    fn what_the_leader_signed_is_signed_and_else_what_an_honest_member_signed() {
        let committee = TestCommittee::new(7);
        // Each case: the other member who leads, or 0 for this one, or nobody; what the own vote is for; who shows votes for what; and
        // the position and checkpoint of the vote that is followed.
        let check = |leader: Option<usize>, own: Option<u8>, votes: &[(usize, u8)], expected: Option<(usize, u8)>| {
            let votes = votes.iter().map(|(member, checkpoint)| vote(&committee, *member, *checkpoint));
            let shown: Vec<_> = votes.enumerate().collect();
            let own = own.map(|own| vote(&committee, 0, own));
            let lead = match leader {
                None => Lead::Nobody,
                Some(0) => Lead::Own,
                Some(leader) => Lead::Other(committee.keys[leader].public().name),
            };
            let chosen = proposal(&shown, &committee.committee, lead, own.as_ref());
            let chosen = chosen.map(|(place, vote)| (place, vote.checkpoint));
            let expected = expected.map(|(place, checkpoint)| (place, Digest::repeat_byte(checkpoint)));
            assert_eq!(chosen, expected, "{leader:?} {shown:?}");
        };
        // The leader's comes first, whatever others signed, and is signed once.
        check(Some(1), None, &[(2, 8), (3, 8), (4, 8), (1, 9)], Some((3, 9)));
        check(Some(1), Some(8), &[(2, 8), (3, 8), (4, 8), (1, 9)], Some((3, 9)));
        check(Some(1), Some(9), &[(2, 8), (3, 8), (4, 8), (1, 9)], None);
        // Without it f members may lie; with one more, one of them is honest.
        check(Some(1), None, &[(2, 8), (3, 8)], None);
        check(Some(1), None, &[(4, 7), (2, 8), (3, 8), (5, 8), (6, 7)], Some((3, 8)));
        // It goes over only to more votes than its own has.
        check(Some(6), Some(7), &[(2, 8), (3, 8), (4, 8)], Some((2, 8)));
        check(Some(6), Some(7), &[(2, 8), (3, 8), (4, 8), (1, 7), (5, 7)], Some((2, 8)));
        check(Some(6), Some(8), &[(2, 8), (3, 8), (4, 8)], None);
        // Who leads keeps what it signed, or joins what was signed already.
        check(Some(0), Some(7), &[(2, 8), (3, 8), (4, 8)], None);
        check(Some(0), None, &[(2, 8), (3, 8), (4, 8)], Some((2, 8)));
        check(Some(0), None, &[(2, 8), (3, 8)], None);
        check(Some(0), None, &[], None);
        // Where nobody is followed alone, it is what f + 1 signed and more than the own.
        check(None, None, &[(1, 8), (2, 8)], None);
        check(None, None, &[(1, 8), (2, 8), (3, 8)], Some((2, 8)));
        check(None, Some(7), &[(1, 8), (2, 8), (3, 8)], Some((2, 8)));
        check(None, Some(8), &[(1, 9), (2, 8)], None);
    }
}

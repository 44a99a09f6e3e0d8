//! Whose turn it is to be away, and whether the others can do without.

use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientOptions};
use fastpay_core::{AuthorityName, Committee};
use tokio::task::JoinSet;

use super::worth::Reason;
use crate::authority::peer_book::{PeerBook, PeerReader};
use crate::authority::voter_status::VoterStatus;

/// Whether a member may begin now. Members take turns in the order of their names. One begins in the first half of its
/// turn alone, so that two whose clocks differ by less than the other half never begin together. One that is behind,
/// and so votes for few, begins also in anybody's turn, amid the second half, in which nobody else does. An authority
/// that is no member of the committee, or has yet to join, is needed by nobody.
pub(super) fn may_begin(
    committee: &Committee,
    own: AuthorityName,
    reason: Reason,
    now_ms: u64,
    turn: Duration,
) -> bool {
    let members = committee.members();
    let place = members.iter().position(|member| member.name == own).filter(|_| reason != Reason::Joining);
    let Some(place) = place else { return true };
    let turn_ms = u64::try_from(turn.as_millis()).unwrap_or(u64::MAX).max(2);
    let (count, place) = (u64::try_from(members.len()).unwrap_or(u64::MAX), u64::try_from(place).unwrap_or(u64::MAX));
    let within_ms = now_ms % turn_ms;
    let is_own = (now_ms / turn_ms) % count == place && within_ms < turn_ms / 2;
    let is_between = (turn_ms / 8 * 5..turn_ms / 8 * 7).contains(&within_ms);
    is_own || (reason == Reason::Behind && is_between)
}

/// How many other members have to vote for everybody while this one is away: a quorum; none if this one has yet to join.
/// Where this one's disk is about to end its voting, the quorum lacks this one alone: payments pause for as long as a
/// rebase takes, rather than until somebody makes room.
pub(super) fn needed(committee: &Committee, reason: Reason) -> usize {
    match reason {
        Reason::Joining => 0,
        Reason::VotingEnds => committee.quorum().saturating_sub(1),
        Reason::Behind | Reason::DiskLow | Reason::Grown => committee.quorum(),
    }
}

/// The other authorities.
pub(super) struct Others {
    all: Vec<AuthorityClient>,
    news: PeerReader,
}

impl Others {
    /// The authorities of a book.
    pub fn new(book: &PeerBook, call: Duration) -> Self {
        let news = book.reader(ClientOptions { connect_timeout: call, request_timeout: call });
        Self { all: Vec::new(), news }
    }

    /// How many members of the current committee vote for everybody: all their shards answer, in its epoch, and none is
    /// restored from an older copy.
    pub async fn answering(&mut self, voter_status: &VoterStatus) -> usize {
        self.news.update(&mut self.all, AuthorityClient::name, |client| client);
        let epoch = voter_status.epoch();
        let committee = voter_status.committees().current();
        let mut asked = JoinSet::new();
        for other in self.all.iter().filter(|other| committee.member(&other.name()).is_some()) {
            let other = other.clone();
            asked.spawn(async move {
                for shard in other.shards() {
                    match shard.status().await {
                        Ok(status) if status.epoch == epoch && !status.restored => {}
                        _ => return false,
                    }
                }
                true
            });
        }
        asked.join_all().await.into_iter().filter(|answers| *answers).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::TestCommittee;

    #[test]
    fn members_take_turns_by_name_and_begin_in_the_first_half() {
        let committee = TestCommittee::new(4).committee;
        let turn = Duration::from_secs(300);
        for (now_s, place) in [(0, Some(0)), (149, Some(0)), (150, None), (299, None), (300, Some(1)), (1_049, Some(3))]
        {
            for (own, member) in committee.members().iter().enumerate() {
                for reason in [Reason::Grown, Reason::DiskLow, Reason::VotingEnds, Reason::Behind] {
                    let may = may_begin(&committee, member.name, reason, now_s * 1_000, turn);
                    assert_eq!(may, place == Some(own), "{own} at {now_s} s, {reason:?}");
                }
            }
        }
        let first = committee.members()[0].name;
        assert!(may_begin(&committee, first, Reason::Grown, 1_200_000, turn), "again after all others");
        assert!(may_begin(&committee, AuthorityName([0; 32]), Reason::Grown, 200_000, turn), "not needed");
        assert!(may_begin(&committee, first, Reason::Joining, 200_000, turn), "nor one that has yet to join");
    }

    #[test]
    fn a_member_that_is_behind_begins_also_between_the_others() {
        let committee = TestCommittee::new(4).committee;
        let (own, turn) = (committee.members()[2].name, Duration::from_secs(300));
        for begun_s in [0, 300, 600, 900] {
            for (within_s, is_between) in
                [(0, false), (149, false), (186, false), (188, true), (260, true), (263, false)]
            {
                let may = |reason| may_begin(&committee, own, reason, (begun_s + within_s) * 1_000, turn);
                let is_own = begun_s == 600 && within_s < 150;
                assert_eq!(may(Reason::Behind), is_own || is_between, "{within_s} s of the turn from {begun_s} s on");
                assert_eq!(may(Reason::Grown), is_own);
            }
        }
    }

    #[test]
    fn the_others_make_a_quorum_or_lack_this_member_alone_where_its_disk_ends_its_voting() {
        for (size, quorum, without) in [(4, 3, 2), (7, 5, 4), (10, 7, 6)] {
            let committee = TestCommittee::new(size).committee;
            assert_eq!(needed(&committee, Reason::VotingEnds), without);
            assert_eq!(needed(&committee, Reason::Joining), 0);
            for reason in [Reason::Behind, Reason::DiskLow, Reason::Grown] {
                assert_eq!(needed(&committee, reason), quorum);
            }
        }
    }
}

//! Whether a member may vote when it starts [LEDGER 1]. Where it may have forgotten what it signed, it follows the others
//! until what it may have signed no longer matters.

use std::io;
use std::path::Path;

use crate::engine::{MemberAddress, own_casts};
use crate::votes::{Cast, Untrusted, VoteFile};

/// How a member starts.
#[derive(Debug)]
pub enum Resume {
    /// It remembers everything.
    Vote(VoteFile),
    /// The engine's log lacks what the member signed at this height. It votes once the others have decided that.
    FollowTo(u64),
    /// The file of votes is of no use. It votes two heights past the highest that a quorum of the others has decided:
    /// one of them was in every quorum that this member has voted with, so no height above is one that it voted at.
    FollowTwoPast(Untrusted),
}

/// Looks at the file of votes and the engine's log of a member that has decided `height`.
///
/// # Errors
/// Any of the file system.
pub fn resume(votes: &Path, log: &Path, me: MemberAddress, height: u64) -> io::Result<Resume> {
    let votes = match VoteFile::open(votes)? {
        Ok(votes) => votes,
        Err(untrusted) => return Ok(Resume::FollowTwoPast(untrusted)),
    };
    let Some(newest) = votes.casts().next_back().map(|cast| cast.slot.height) else { return Ok(Resume::Vote(votes)) };
    if newest <= height {
        return Ok(Resume::Vote(votes));
    }
    let logged = own_casts(log, me)?.filter(|(of, _)| *of == newest).map(|(_, casts)| casts).unwrap_or_default();
    let recorded: Vec<Cast> = votes.casts().filter(|cast| cast.slot.height == newest).collect();
    let is_next = height.checked_add(1) == Some(newest);
    let is_logged = recorded.iter().all(|cast| logged.contains(cast));
    Ok(if is_next && is_logged { Resume::Vote(votes) } else { Resume::FollowTo(newest) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{entry_of_vote, precommit, prevote};
    use fastpay_core::Digest;
    use fastpay_ledger_statement::MemberKeys;
    use malachite::app::wal::Log;
    use std::path::PathBuf;

    /// A member that has decided height 6 and voted at height 7.
    struct Member {
        folder: tempfile::TempDir,
        me: MemberAddress,
    }

    impl Member {
        fn votes(&self) -> PathBuf {
            self.folder.path().join("votes")
        }

        fn log(&self) -> PathBuf {
            self.folder.path().join("engine.log")
        }

        fn resume(&self, height: u64) -> Resume {
            resume(&self.votes(), &self.log(), self.me, height).unwrap()
        }

        fn own_casts(&self) -> Option<(u64, Vec<Cast>)> {
            own_casts(&self.log(), self.me).unwrap()
        }

        /// Opens the log as the engine does, which cuts off what is damaged.
        fn engine_opens(&self) {
            let mut log = Log::open(self.log()).unwrap();
            if log.sequence() != 7 {
                log.reset(7).unwrap();
            }
            let damaged = log.iter().unwrap().position(|entry| entry.is_err());
            if let Some(at) = damaged {
                log.truncate(at as u64).unwrap();
            }
        }
    }

    fn voted() -> Member {
        let (folder, keys) = (tempfile::tempdir().unwrap(), MemberKeys::from_seed([3; 32]));
        let member = Member { folder, me: MemberAddress(keys.public()) };
        let id = Some(Digest::repeat_byte(9));
        let own = [prevote(7, 0, id, member.me), precommit(7, 0, id, member.me)];
        let other = prevote(7, 0, id, MemberAddress(MemberKeys::from_seed([4; 32]).public()));
        let mut log = Log::open(member.log()).unwrap();
        log.reset(7).unwrap();
        for vote in [&own[0], &other, &own[1]] {
            log.append(entry_of_vote(vote, &keys)).unwrap();
        }
        log.flush().unwrap();
        VoteFile::create(&member.votes()).unwrap();
        let mut votes = VoteFile::open(&member.votes()).unwrap().unwrap();
        own.iter().for_each(|vote| votes.sign(vote.cast()).unwrap());
        votes.record(own[1].cast()).unwrap();
        member
    }

    #[test]
    fn a_whole_log_lets_the_member_vote_at_once() {
        let member = voted();
        assert!(matches!(member.resume(6), Resume::Vote(_)));
        member.engine_opens();
        assert!(matches!(member.resume(6), Resume::Vote(_)));
    }

    /// The engine cuts a damaged log off at the first start, and would go on without its votes at the second.
    #[test]
    fn a_flip_in_the_log_forgets_no_vote_over_two_restarts() {
        let member = voted();
        let (whole, casts) = (std::fs::read(member.log()).unwrap(), member.own_casts());
        // The version of the format has 4 bytes. The engine does not start with another one.
        for at in 4..whole.len() {
            let mut content = whole.clone();
            content[at] ^= 1 << (at % 8);
            std::fs::write(member.log(), content).unwrap();
            assert_ne!(member.own_casts(), casts, "byte {at}");
            // Each start writes and syncs files.
            if at % 16 != 0 {
                continue;
            }
            for restart in 0..2 {
                let resumed = member.resume(6);
                assert!(matches!(resumed, Resume::FollowTo(7)), "byte {at}, restart {restart}: {resumed:?}");
                member.engine_opens();
            }
            assert!(matches!(member.resume(7), Resume::Vote(_)), "decided by the others");
        }
    }

    #[test]
    fn a_log_that_is_cut_off_missing_or_of_another_height_forgets_no_vote() {
        let member = voted();
        let (whole, casts) = (std::fs::read(member.log()).unwrap(), member.own_casts());
        for length in 0..whole.len() {
            std::fs::write(member.log(), &whole[..length]).unwrap();
            assert_ne!(member.own_casts(), casts, "cut at {length}");
            if length % 16 != 0 {
                continue;
            }
            assert!(matches!(member.resume(6), Resume::FollowTo(7)), "cut at {length}");
        }
        std::fs::remove_file(member.log()).unwrap();
        assert!(matches!(member.resume(6), Resume::FollowTo(7)));
        let member = voted();
        Log::open(member.log()).unwrap().reset(8).unwrap();
        assert!(matches!(member.resume(6), Resume::FollowTo(7)));
    }

    #[test]
    fn a_store_that_is_behind_the_votes_waits_for_them() {
        assert!(matches!(voted().resume(5), Resume::FollowTo(7)));
    }

    #[test]
    fn without_a_file_of_votes_a_member_waits_longer() {
        let member = voted();
        std::fs::remove_file(member.votes()).unwrap();
        assert!(matches!(member.resume(6), Resume::FollowTwoPast(Untrusted::Missing)));
    }
}

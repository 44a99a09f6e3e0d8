//! Rollback protection: an authority whose data folder is an older copy of the one that it voted with must not vote for
//! a second order of a number.
//!
//! ```text
//!  start: new folder ─► deployment in use? ────────────────┬─► mark in the folder ─► RollbackProtection
//!  high-water mark beside the folder ─► older, or a copy? ─┘
//!  order ─► shard ─► RollbackProtection: votes from? ── unknown ─► refused for now; catch-up asks the peers ─► floor
//!                         └── below ─► refused: ask the others   └── from there on ─► vote
//! ```
//! Every forgotten vote was given before the process began. The account's state at a quorum of the *other* authorities
//! gives a number above everything that it may have voted for (`catch_up`; docs/PROTOCOL.md, M1 to M4, has the
//! argument). From that number on, it votes for the account as usual. Until then it confirms, credits and answers, and
//! locks nothing.
//!
//! Once the authority has joined an epoch after those in which it may have forgotten votes, it votes for everything again.
//!
//! Invariants: the mark is on disk before anything is served, and only such a join removes it. What was learned before a
//! folder was restored is never used after that.

mod catch_up;
mod detect;
mod first_start;
mod vote_floors;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use fastpay_core::{Account, AccountId, SequenceNumber, VoteFloor};
use tokio::sync::mpsc;

pub use catch_up::{CatchUp, PeersError};
pub(crate) use detect::note_first;
pub use detect::{
    Age, DetectionError, HighWaterMark, Memory, StaleReason, age, default_high_water_mark, mark_stale, trust_data,
};
pub(crate) use detect::{mark_as_copy, mark_as_cut, marked, note_up_to, unmark};
pub use first_start::in_use;
pub use vote_floors::VoteFloors;

/// The maximum number of accounts that wait for the peers' answers. Requests for further ones are refused for now.
const QUESTIONS_MAX: usize = 4_096;

/// An account to ask the peers about, and the number for which a client wants a vote.
pub type Question = (AccountId, SequenceNumber);

/// Limits the votes of an authority with a gap in its memory. All its shards share it.
pub struct RollbackProtection {
    state: Mutex<State>,
    questions: mpsc::Sender<Question>,
}

struct State {
    floors: VoteFloors,
    asked: HashSet<AccountId>,
}

impl RollbackProtection {
    /// A protection with these floors, and the receiver of its questions for the peers.
    #[must_use]
    pub fn new(floors: VoteFloors) -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        (Self { state: Mutex::new(State { floors, asked: HashSet::new() }), questions }, asked)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number from which on this authority remembers all its votes for the account.
    #[must_use]
    pub fn floor(&self, account: &AccountId) -> VoteFloor {
        self.state().floors.votes_from(account).map_or(VoteFloor::Unknown, VoteFloor::From)
    }

    /// Asks the other authorities about an account whose floor is unknown, because a client wants a vote for this
    /// number.
    pub fn ask(&self, account: AccountId, sequence: SequenceNumber) {
        let mut state = self.state();
        if !state.asked.contains(&account) && self.questions.try_send((account, sequence)).is_ok() {
            state.asked.insert(account);
        }
    }

    /// Whether another authority that catches up can rely on this one's answer about the account: this authority has a
    /// certificate for every number whose vote it may have forgotten.
    #[must_use]
    pub fn is_reliable(&self, account: AccountId, state: &Account) -> bool {
        self.state().floors.votes_from(&account).is_some_and(|from| state.next_sequence() >= from)
    }

    /// Stores the answer to a question. Without an answer, the account's next order asks again.
    pub fn learn(&self, account: AccountId, votes_from: Option<SequenceNumber>) {
        let mut state = self.state();
        state.asked.remove(&account);
        if let Some(from) = votes_from {
            state.floors.learn(account, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(byte: u8) -> AccountId {
        AccountId([byte; 32])
    }

    #[test]
    fn the_floor_of_an_account_is_unknown_until_the_peers_were_asked_and_never_sinks() {
        let folder = tempfile::tempdir().unwrap();
        let (protection, mut questions) = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap());
        assert_eq!(protection.floor(&account(1)), VoteFloor::Unknown);
        for _ in 0..3 {
            protection.ask(account(1), SequenceNumber(4));
        }
        assert_eq!(questions.try_recv(), Ok((account(1), SequenceNumber(4))));
        assert!(questions.try_recv().is_err(), "it is asked about once");
        // Without an answer, the next order asks again.
        protection.learn(account(1), None);
        assert_eq!(protection.floor(&account(1)), VoteFloor::Unknown);
        protection.ask(account(1), SequenceNumber(4));
        assert!(questions.try_recv().is_ok());

        let state = Account::default();
        assert!(!protection.is_reliable(account(1), &state));
        protection.learn(account(1), Some(SequenceNumber(5)));
        assert_eq!(protection.floor(&account(1)), VoteFloor::From(SequenceNumber(5)));
        assert_eq!(protection.floor(&account(2)), VoteFloor::Unknown, "another account");
        assert!(!protection.is_reliable(account(1), &state), "its own certificates are not there yet");
        protection.learn(account(1), Some(SequenceNumber(0)));
        assert_eq!(protection.floor(&account(1)), VoteFloor::From(SequenceNumber(5)), "a floor never sinks");
        protection.learn(account(3), Some(SequenceNumber(0)));
        assert!(protection.is_reliable(account(3), &state));
    }

    #[test]
    fn more_questions_than_can_wait_are_told_to_come_again() {
        let folder = tempfile::tempdir().unwrap();
        let (protection, mut questions) = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap());
        let numbered = |number: usize| {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_be_bytes());
            AccountId(id)
        };
        for number in 0..=QUESTIONS_MAX {
            protection.ask(numbered(number), SequenceNumber(0));
        }
        while questions.try_recv().is_ok() {}
        protection.ask(numbered(QUESTIONS_MAX), SequenceNumber(0));
        assert_eq!(questions.try_recv(), Ok((numbered(QUESTIONS_MAX), SequenceNumber(0))));
    }
}

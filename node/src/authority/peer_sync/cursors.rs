//! How far each peer's logs were read, and which accounts the peer must be asked about again. They are on disk, so that
//! a restart does not read the logs anew.
//!
//! The file only saves time. It contains the ends of this authority's own journals. If the journals end before these,
//! the folder is an older copy that may lack certificates before the cursors, so the logs are read from the beginning.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastpay_core::{AuthorityName, JournalPosition};
use fastpay_program::files;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::missing::Heads;

/// The maximum number of accounts of one peer that wait to be asked about again, and of those that it is being asked about.
const LATER_MAX: usize = 1_000;
/// The minimum time between two writes of the file. Each costs two syncs, and a peer chooses the size of its pages.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// The file and its content.
pub(super) struct Cursors {
    file: PathBuf,
    state: Mutex<State>,
}

struct State {
    stored: Stored,
    /// When the file became older than `stored`. `None` if it is up to date.
    unwritten_since: Option<Instant>,
}

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    /// The ends of this authority's journals when this was written.
    own: Vec<u64>,
    peers: BTreeMap<String, Peer>,
}

#[derive(Default, Serialize, Deserialize)]
struct Peer {
    /// One for each shard, from the first.
    cursors: Vec<u64>,
    /// Accounts, each with the number below which the peer has certificates.
    later: Heads,
    /// Those that it is being asked about: they wait no longer only once it has answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Heads,
}

impl Cursors {
    /// Reads the file. Ignores it if it is missing or malformed, or if the journals end before the positions in it.
    pub(super) fn open(file: PathBuf, own: &[JournalPosition]) -> Self {
        let stored = files::read(&file).ok().flatten();
        let stored: Option<Stored> = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let fits = |stored: &Stored| {
            stored.own.len() == own.len() && stored.own.iter().zip(own).all(|(then, now)| *then <= now.0)
        };
        let mut stored = stored.filter(fits).unwrap_or_default();
        // An earlier release kept more: the logs of such a peer are read anew.
        stored.peers.retain(|_, peer| peer.later.len() <= LATER_MAX && peer.asked.len() <= LATER_MAX);
        Self { file, state: Mutex::new(State { stored, unwritten_since: None }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cursor in the log of a peer's shard.
    pub(super) fn get(&self, peer: AuthorityName, shard: usize) -> JournalPosition {
        let state = self.state();
        let cursor = state.stored.peers.get(&peer.to_string()).and_then(|peer| peer.cursors.get(shard).copied());
        JournalPosition(cursor.unwrap_or_default())
    }

    /// Moves a cursor. Everything before it is on disk in this authority's journals, which end at `own`.
    pub(super) fn set(&self, peer: AuthorityName, shard: usize, cursor: JournalPosition, own: Vec<JournalPosition>) {
        let mut state = self.state();
        let stored = &mut state.stored;
        let cursors = &mut stored.peers.entry(peer.to_string()).or_default().cursors;
        if cursors.len() <= shard {
            cursors.resize(shard.saturating_add(1), 0);
        }
        if let Some(place) = cursors.get_mut(shard) {
            *place = cursor.0;
        }
        stored.own = own.into_iter().map(|end| end.0).collect();
        let since = *state.unwritten_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= WRITE_INTERVAL {
            self.write(&mut state);
        }
    }

    /// Writes the file if it is out of date.
    pub(super) fn flush(&self) {
        let mut state = self.state();
        if state.unwritten_since.is_some() {
            self.write(&mut state);
        }
    }

    /// Accounts that the peer must be asked about again, which wait until [`Cursors::answered`]: whoever asks may be
    /// stopped before.
    pub(super) fn ask_later(&self, peer: AuthorityName) -> Heads {
        let mut state = self.state();
        let Some(Peer { later, asked, .. }) = state.stored.peers.get_mut(&peer.to_string()) else {
            return Heads::new();
        };
        let room = LATER_MAX.saturating_sub(asked.len()).min(later.len());
        asked.extend(later.drain(..room));
        asked.clone()
    }

    /// The peer has answered about those accounts. It must be asked again about some of them.
    pub(super) fn answered(&self, peer: AuthorityName, again: Heads) {
        let mut state = self.state();
        if let Some(peer) = state.stored.peers.get_mut(&peer.to_string()) {
            peer.asked = again;
        }
    }

    /// Adds accounts that the peer must be asked about again. They are written together with the cursor that moves past
    /// them. If these are too many, it changes nothing and returns false.
    pub(super) fn add_later(&self, peer: AuthorityName, heads: Heads) -> bool {
        if heads.is_empty() {
            return true;
        }
        let mut state = self.state();
        let later = &mut state.stored.peers.entry(peer.to_string()).or_default().later;
        if later.len().saturating_add(heads.len()) > LATER_MAX {
            return false;
        }
        later.extend(heads);
        true
    }

    fn write(&self, state: &mut State) {
        state.unwritten_since = None;
        let text = serde_json::to_vec(&state.stored).expect("numbers and names have a JSON form");
        if let Err(error) = files::replace(&self.file, &text) {
            tracing::warn!(file = %self.file.display(), %error, "how far the peers' logs were read is not stored; after a restart they are read again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{AccountId, SequenceNumber};

    const PEER: AuthorityName = AuthorityName([1; 32]);

    fn ends(end: u64) -> Vec<JournalPosition> {
        vec![JournalPosition(end)]
    }

    #[test]
    fn cursors_and_waiting_accounts_are_kept_unless_the_own_journals_are_behind_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("peers.json");
        let later = vec![(AccountId([7; 32]), SequenceNumber(3))];
        let cursors = Cursors::open(file.clone(), &ends(10));
        assert_eq!(cursors.get(PEER, 1), JournalPosition(0));
        assert!(cursors.add_later(PEER, later.clone()));
        cursors.set(PEER, 1, JournalPosition(70), ends(10));
        assert!(!file.exists(), "a page is no reason to write");
        cursors.flush();

        let again = Cursors::open(file.clone(), &ends(11));
        let known = [again.get(PEER, 0), again.get(PEER, 1), again.get(AuthorityName([2; 32]), 1)];
        assert_eq!(known, [JournalPosition(0), JournalPosition(70), JournalPosition(0)]);
        assert_eq!(again.ask_later(PEER), later);
        // Whoever asked was stopped before the answer.
        again.set(PEER, 0, JournalPosition(1), ends(11));
        again.flush();
        let again = Cursors::open(file.clone(), &ends(11));
        assert_eq!(again.ask_later(PEER), later);
        again.answered(PEER, later.clone());
        assert_eq!(again.ask_later(PEER), later);
        again.answered(PEER, Heads::new());
        assert_eq!(again.ask_later(PEER), vec![]);
        assert_eq!(Cursors::open(file.clone(), &ends(9)).get(PEER, 1), JournalPosition(0), "an older copy");
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(Cursors::open(file, &ends(11)).get(PEER, 1), JournalPosition(0), "not ours");
    }

    #[test]
    fn only_so_many_accounts_of_a_peer_wait() {
        let cursors = Cursors::open(tempfile::tempdir().unwrap().path().join("peers.json"), &ends(0));
        let heads = |count: usize| vec![(AccountId([7; 32]), SequenceNumber(1)); count];
        assert!(cursors.add_later(PEER, heads(LATER_MAX - 1)));
        assert!(!cursors.add_later(PEER, heads(2)));
        assert!(cursors.add_later(PEER, heads(1)));
        assert_eq!(cursors.ask_later(PEER).len(), LATER_MAX);
        // The peer answers nothing about them, and lists others.
        assert!(cursors.add_later(PEER, heads(LATER_MAX)));
        assert_eq!(cursors.ask_later(PEER).len(), LATER_MAX);
        assert!(!cursors.add_later(PEER, heads(1)));
        cursors.answered(PEER, heads(1));
        assert_eq!(cursors.ask_later(PEER).len(), LATER_MAX);
        assert!(cursors.add_later(PEER, heads(1)));
        // An earlier release kept more of a peer. None of these may be forgotten, so its logs are read anew.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("peers.json");
        let cursors = Cursors::open(file.clone(), &ends(10));
        cursors.set(PEER, 0, JournalPosition(70), ends(10));
        cursors.state().stored.peers.get_mut(&PEER.to_string()).unwrap().asked = heads(LATER_MAX + 1);
        cursors.set(AuthorityName([2; 32]), 0, JournalPosition(60), ends(10));
        let text = serde_json::to_vec(&cursors.state().stored).unwrap();
        std::fs::write(&file, text).unwrap();
        let again = Cursors::open(file, &ends(10));
        let known = [again.get(PEER, 0), again.get(AuthorityName([2; 32]), 0)];
        assert_eq!((known, again.ask_later(PEER).len()), ([JournalPosition(0), JournalPosition(60)], 0));
    }
}

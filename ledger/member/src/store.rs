//! What a member has on disk beside its votes and the engine's log.
//!
//! ```text
//!  decided     every decided height: header, payload, certificate      synced before it is acknowledged
//!  proposed    payloads of the height that is under way                synced before the member votes
//!  groups      compact decisions for other clusters and committees     synced before a checkpoint leaves them behind
//!  checkpoint  the state after a height, with header and certificate   replaced as a whole
//! ```
//!
//! The state is the checkpoint's, with what was decided after it executed again. Always true: a payload is stored only
//! beside a header whose `inputs` is its hash [LEDGER 5].

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::Digest;
use fastpay_ledger_state::State;
use fastpay_ledger_statement::{
    CompactDecision, Cursor, Header, QuorumCertificate, Receiver, StateKey, Wire, payload_digest,
};
use fastpay_program::files;

use crate::frames::{Frames, Place};

/// A checkpoint is written after so many heights: so many are executed again at a start.
pub const CHECKPOINT_INTERVAL: u64 = 512;
/// An answer to one request has at most so many bytes of groups, unless one alone is longer.
const ANSWER_BYTES_MAX: usize = 2 << 20;

/// A header with its payload, whose hash it names. Only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Proposed {
    header: Header,
    payload: Vec<u8>,
}

impl Proposed {
    /// `None` if the payload is another one than the header names.
    #[must_use]
    pub fn new(header: Header, payload: Vec<u8>) -> Option<Self> {
        (header.inputs == payload_digest(&payload)).then_some(Self { header, payload })
    }

    /// The inverse of its encoding.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, payload) = borsh::from_slice(bytes).ok()?;
        Self::new(header, payload)
    }

    /// The encoding, as sync sends it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("memory takes every write")
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// A decided height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The value.
    pub proposed: Proposed,
    /// Its certificate.
    pub certificate: QuorumCertificate,
}

impl Decided {
    fn encode(&self) -> Vec<u8> {
        borsh::to_vec(&(&self.proposed, &self.certificate)).expect("memory takes every write")
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, payload, certificate): (Header, Vec<u8>, QuorumCertificate) = borsh::from_slice(bytes).ok()?;
        Some(Self { proposed: Proposed::new(header, payload)?, certificate })
    }
}

/// A state with its certified header.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The header.
    pub header: Header,
    /// Its certificate.
    pub certificate: QuorumCertificate,
    /// The state after it.
    pub state: State,
}

#[derive(BorshDeserialize)]
struct StoredCheckpoint {
    header: Header,
    certificate: QuorumCertificate,
    entries: Vec<(StateKey, Vec<u8>)>,
}

impl Checkpoint {
    /// The encoding.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let entries: Vec<_> = self.state.entries().collect();
        borsh::to_vec(&(&self.header, &self.certificate, entries)).expect("memory takes every write")
    }

    /// The inverse of [`Checkpoint::encode`]. `None` if the state is not the one of the header, which a quorum must have
    /// certified.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let StoredCheckpoint { header, certificate, entries } = borsh::from_slice(bytes).ok()?;
        let state = State::of_entries(entries);
        (state.root() == header.state).then_some(Self { header, certificate, state })
    }
}

/// A member's folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    decided: Frames,
    heights: Vec<Place>,
    proposed: Frames,
    /// What is in `proposed`, the oldest first, by the header's id.
    under_way: Vec<(Digest, Place)>,
    groups: Frames,
    group_places: BTreeMap<(Receiver, u64), Place>,
}

impl Store {
    /// Opens the folder, and gives its checkpoint.
    ///
    /// # Errors
    /// Any of the file system. A damaged checkpoint counts as none.
    pub fn open(folder: &Path) -> io::Result<(Self, Option<Checkpoint>)> {
        let (decided, heights) = Frames::open(&folder.join("decided"))?;
        let (proposed, places) = Frames::open(&folder.join("proposed"))?;
        let (mut groups, group_list) = Frames::open(&folder.join("groups"))?;
        let mut under_way = Vec::new();
        for place in places {
            let read = proposed.read(place)?.and_then(|bytes| Proposed::decode(&bytes));
            under_way.extend(read.map(|proposed| (proposed.header.id(), place)));
        }
        let mut group_places = BTreeMap::new();
        for place in group_list {
            let Some(decision) = groups.read(place)?.and_then(|bytes| CompactDecision::decode(&bytes).ok()) else {
                groups.cut_at(place)?;
                break;
            };
            group_places.insert((decision.group.to, decision.group.number), place);
        }
        let checkpoint = files::read(&folder.join("checkpoint"))?.and_then(|bytes| Checkpoint::decode(&bytes));
        let folder = folder.to_path_buf();
        Ok((Self { folder, decided, heights, proposed, under_way, groups, group_places }, checkpoint))
    }

    /// The highest decided height on disk.
    #[must_use]
    pub fn height(&self) -> u64 {
        u64::try_from(self.heights.len()).unwrap_or(u64::MAX)
    }

    /// A decided height; `None` if it is not here, or damaged.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn decided(&self, height: u64) -> io::Result<Option<Decided>> {
        let Some(place) = index_of(height).and_then(|at| self.heights.get(at)) else { return Ok(None) };
        Ok(self.decided.read(*place)?.and_then(|bytes| Decided::decode(&bytes)))
    }

    /// Forgets a damaged height and all after it: peers have them.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn forget_from(&mut self, height: u64) -> io::Result<()> {
        let Some(at) = index_of(height) else { return Ok(()) };
        if let Some(place) = self.heights.get(at) {
            self.decided.cut_at(*place)?;
            self.decided.sync()?;
            self.heights.truncate(at);
        }
        Ok(())
    }

    /// Adds the next height; synced when this returns. What was under way before it is no longer kept.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn decide(&mut self, decided: &Decided) -> io::Result<()> {
        if decided.proposed.header.height.0 != self.height().saturating_add(1) {
            return Err(io::Error::other("heights are stored in order"));
        }
        let place = self.decided.append(&decided.encode())?;
        self.decided.sync()?;
        self.heights.push(place);
        self.under_way.clear();
        self.proposed.clear()
    }

    /// Keeps a payload that may be decided; synced when this returns.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn propose(&mut self, proposed: &Proposed) -> io::Result<()> {
        let id = proposed.header.id();
        if !self.under_way.iter().any(|(known, _)| *known == id) {
            let place = self.proposed.append(&proposed.encode())?;
            self.proposed.sync()?;
            self.under_way.push((id, place));
        }
        Ok(())
    }

    /// A payload of the height that is under way; `None` if it is not here, or damaged.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn under_way(&self, id: &Digest) -> io::Result<Option<Proposed>> {
        let Some((_, place)) = self.under_way.iter().find(|(known, _)| known == id) else { return Ok(None) };
        Ok(self.proposed.read(*place)?.and_then(|bytes| Proposed::decode(&bytes)))
    }

    /// How many payloads of the height that is under way are kept.
    #[must_use]
    pub fn under_way_count(&self) -> usize {
        self.under_way.len()
    }

    /// Drops payloads of the height that is under way, but the newest and those to `keep`.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn drop_proposed(&mut self, newest: usize, keep: impl Fn(&Digest) -> bool) -> io::Result<()> {
        let old = self.under_way.len().saturating_sub(newest);
        let kept: Vec<_> = self.under_way.iter().enumerate().filter(|(at, (id, _))| *at >= old || keep(id)).collect();
        let path = self.folder.join("proposed");
        let (mut frames, mut under_way) = (Frames::create(&path.with_extension("new"))?, Vec::new());
        for (_, (id, place)) in kept {
            if let Some(content) = self.proposed.read(*place)? {
                under_way.push((*id, frames.append(&content)?));
            }
        }
        frames.sync()?;
        files::rename(&path.with_extension("new"), &path)?;
        (self.proposed, self.under_way) = (frames, under_way);
        Ok(())
    }

    /// Adds a group for another cluster or a committee, unless it is here.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn send(&mut self, decision: &CompactDecision) -> io::Result<()> {
        let name = (decision.group.to, decision.group.number);
        if !self.group_places.contains_key(&name) {
            let place = self.groups.append(&decision.encode())?;
            self.group_places.insert(name, place);
        }
        Ok(())
    }

    /// Encoded groups for a receiver, in order from this number.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn groups(&self, to: Receiver, from: u64) -> io::Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        for number in from.. {
            let Some(place) = self.group_places.get(&(to, number)) else { break };
            let Some(group) = self.groups.read(*place)? else { break };
            bytes = bytes.saturating_add(group.len());
            if bytes > ANSWER_BYTES_MAX && !found.is_empty() {
                break;
            }
            found.push(group);
        }
        Ok(found)
    }

    /// A group that was sent in this state and is not here.
    #[must_use]
    pub fn missing_group(&self, state: &State) -> Option<(Receiver, u64)> {
        let sent = state.entries().filter_map(|(key, mut value)| match key {
            StateKey::Sent(to) if *to != Receiver::Clients => Some((*to, Cursor::deserialize(&mut value).ok()?.next)),
            _ => None,
        });
        let mut names = sent.flat_map(|(to, next)| (1..next).map(move |number| (to, number)));
        names.find(|name| !self.group_places.contains_key(name))
    }

    /// What replaces the checkpoint, on any thread. Groups of earlier heights, which are no longer executed at a start, are
    /// synced before.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn checkpoint(&self, checkpoint: Checkpoint) -> io::Result<impl FnOnce() -> io::Result<()> + use<>> {
        let (groups, path) = (self.groups.handle()?, self.folder.join("checkpoint"));
        Ok(move || {
            groups.sync_data()?;
            files::replace(&path, &checkpoint.encode())
        })
    }
}

/// Writes checkpoints beside the task that decides, one at a time.
#[derive(Debug, Default)]
pub struct Checkpoints(Option<mpsc::Receiver<io::Result<()>>>);

impl Checkpoints {
    /// Writes a checkpoint, unless the one before is still being written: then the next one is written.
    ///
    /// # Errors
    /// Any of the file system, of the one before.
    pub fn write(&mut self, store: &Store, checkpoint: Checkpoint) -> io::Result<()> {
        match self.0.as_ref().map(mpsc::Receiver::try_recv) {
            Some(Err(mpsc::TryRecvError::Empty)) => {
                tracing::warn!("the checkpoint before is still being written; this one is left out");
                return Ok(());
            }
            Some(Err(mpsc::TryRecvError::Disconnected)) => {
                return Err(io::Error::other("a checkpoint was not written"));
            }
            Some(Ok(written)) => written?,
            None => {}
        }
        let write = store.checkpoint(checkpoint)?;
        let (written, result) = mpsc::channel();
        // Where the member is being stopped, nobody waits for it.
        tokio::task::spawn_blocking(move || drop(written.send(write())));
        self.0 = Some(result);
        Ok(())
    }
}

fn index_of(height: u64) -> Option<usize> {
    usize::try_from(height.checked_sub(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{certify, chain, decide, write};
    use crate::host::restore;
    use fastpay_ledger_statement::ClusterId;

    #[test]
    fn a_payload_is_stored_under_its_own_header_alone() {
        let mut chain = chain();
        let first = decide(&mut chain, 0, Vec::new());
        let request = write(&chain, 0);
        let second = decide(&mut chain, 0, vec![request]);
        assert_eq!(Proposed::new(*first.header(), second.payload().to_vec()), None);
        let mixed = borsh::to_vec(&(first.header(), second.payload())).unwrap();
        assert_eq!(Proposed::decode(&mixed), None);
        assert_eq!(Proposed::decode(&second.encode()), Some(second));
    }

    #[test]
    fn what_is_decided_is_read_back_and_executed_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, none) = Store::open(folder.path()).unwrap();
        assert!(none.is_none());
        let mut chain = chain();
        for sequence in 0..6 {
            let request = write(&chain, sequence);
            let proposed = decide(&mut chain, 0, vec![request]);
            store.propose(&proposed).unwrap();
            let opened = Store::open(folder.path()).unwrap().0;
            assert_eq!(opened.under_way(&proposed.header().id()).unwrap().as_ref(), Some(&proposed));
            let certificate = certify(proposed.header());
            store.decide(&Decided { proposed, certificate }).unwrap();
            if sequence == 3 {
                store.checkpoint(chain.checkpoint().unwrap()).unwrap()().unwrap();
            }
        }
        for with_checkpoint in [true, false] {
            let (mut store, checkpoint) = Store::open(folder.path()).unwrap();
            let checkpoint = checkpoint.filter(|_| with_checkpoint);
            assert_eq!(checkpoint.is_some(), with_checkpoint);
            let restored = restore(crate::chain::testing::chain(), &mut store, checkpoint).unwrap();
            assert_eq!((restored.height(), restored.state().root()), (6, chain.state().root()));
        }
    }

    #[test]
    fn groups_of_before_the_checkpoint_that_are_missing_are_made_again() {
        use crate::chain::testing::{NOW, chain_of, decisions_of_coordinator, keys_of};
        use crate::pool::Inputs;
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(folder.path()).unwrap();
        let coordinator = || chain_of(ClusterId(2));
        let mut chain = coordinator();
        for sequence in 0..4 {
            let inputs = Inputs { groups: Vec::new(), requests: vec![write(&chain, sequence)] };
            let (proposed, judged) = chain.make(&keys_of(ClusterId(2))[0], NOW, inputs).unwrap();
            let certificate = certify(proposed.header());
            store.decide(&Decided { proposed, certificate: certificate.clone() }).unwrap();
            chain.advance(judged, certificate);
        }
        let decisions = decisions_of_coordinator(4);
        let expected: Vec<_> = decisions.iter().map(Wire::encode).collect();
        // All are here, one in the middle is damaged, and none is here.
        for damaged in [None, Some(1), Some(0)] {
            let path = folder.path().join("groups");
            std::fs::write(&path, []).unwrap();
            let (mut store, _) = Store::open(folder.path()).unwrap();
            decisions.iter().for_each(|decision| store.send(decision).unwrap());
            store.checkpoint(chain.checkpoint().unwrap()).unwrap()().unwrap();
            if let Some(at) = damaged {
                let mut content = std::fs::read(&path).unwrap();
                let place = content.len() / 4 * at + 100;
                content[place] ^= 1;
                std::fs::write(&path, content).unwrap();
            }
            let (mut store, checkpoint) = Store::open(folder.path()).unwrap();
            let found = store.groups(Receiver::Cluster(ClusterId(1)), 1).unwrap().len();
            assert_eq!(found, damaged.unwrap_or(4));
            let restored = restore(coordinator(), &mut store, checkpoint).unwrap();
            assert_eq!((restored.height(), restored.state().root()), (4, chain.state().root()));
            assert_eq!(store.groups(Receiver::Cluster(ClusterId(1)), 1).unwrap(), expected, "{damaged:?}");
        }
    }

    #[test]
    fn of_payloads_under_way_the_newest_and_those_that_are_wanted_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(folder.path()).unwrap();
        let proposed: Vec<Proposed> = (0..6)
            .map(|at| {
                let now = fastpay_ledger_statement::Time(1_000 + at);
                chain().make(&crate::chain::testing::keys()[0], now, crate::pool::Inputs::default()).unwrap().0
            })
            .collect();
        proposed.iter().for_each(|proposed| store.propose(proposed).unwrap());
        let wanted = proposed[1].header().id();
        store.drop_proposed(2, |id| *id == wanted).unwrap();
        let stay = |store: &Store| {
            let stays =
                |proposed: &Proposed| store.under_way(&proposed.header().id()).unwrap().as_ref() == Some(proposed);
            proposed.iter().map(stays).collect::<Vec<_>>()
        };
        let expected = [false, true, false, false, true, true];
        assert_eq!(stay(&store), expected);
        assert_eq!(stay(&Store::open(folder.path()).unwrap().0), expected);
        store.propose(&proposed[0]).unwrap();
        assert!(stay(&Store::open(folder.path()).unwrap().0)[0]);
    }

    #[test]
    fn heights_from_a_damaged_one_on_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(folder.path()).unwrap();
        let mut chain = chain();
        for _ in 0..4 {
            let proposed = decide(&mut chain, 0, Vec::new());
            let certificate = certify(proposed.header());
            store.decide(&Decided { proposed, certificate }).unwrap();
        }
        let path = folder.path().join("decided");
        let mut content = std::fs::read(&path).unwrap();
        let length = content.len();
        content[length * 5 / 8] ^= 1;
        std::fs::write(&path, content).unwrap();
        let (mut store, _) = Store::open(folder.path()).unwrap();
        let restored = restore(crate::chain::testing::chain(), &mut store, None).unwrap();
        assert_eq!((restored.height(), store.height()), (2, 2));
        assert_eq!(Store::open(folder.path()).unwrap().0.height(), 2);
    }
}

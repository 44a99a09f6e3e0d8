//! A cluster's state after a height.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Amount, Balance, Digest, Epoch};
use fastpay_ledger_statement::{ClusterId, CurrentEpoch, Cursor, Layout, StateKey, StateProof};

use crate::tree::Tree;

/// Everything that a cluster remembers. A copy costs nothing, and later changes to either leave the other as it is.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) tree: Tree,
}

impl State {
    /// Before the first height.
    #[must_use]
    pub fn genesis(layout: &Layout) -> Self {
        let mut state = Self { tree: Tree::default() };
        let genesis = layout.genesis();
        for issue in &genesis.issued {
            if layout.partition().of_reserve(&issue.owner) == layout.us() {
                state.add(StateKey::Reserve(issue.owner, issue.asset), issue.amount);
            }
        }
        if layout.is_settlement() {
            for (number, founded) in &genesis.committees {
                state.put(StateKey::Committee(*number, Epoch(0)), &founded.first);
                let current = CurrentEpoch { guardian: founded.guardian, ..CurrentEpoch::default() };
                state.put(StateKey::Epoch(*number), &current);
            }
        }
        state
    }

    /// The root over all entries, which the header has.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.tree.root()
    }

    /// The encoded value at a key.
    #[must_use]
    pub fn read(&self, key: &StateKey) -> Option<&[u8]> {
        self.tree.get(key)
    }

    /// The proof of what is at a key, or that nothing is.
    #[must_use]
    pub fn prove(&self, key: &StateKey) -> StateProof {
        self.tree.prove(key)
    }

    /// All entries, for a checkpoint.
    pub fn entries(&self) -> impl Iterator<Item = (&StateKey, &[u8])> {
        self.tree.iter()
    }

    /// The state of these entries. Its root tells whether they are those of a header; until then nothing may be read.
    #[must_use]
    pub fn of_entries(entries: impl IntoIterator<Item = (StateKey, Vec<u8>)>) -> Self {
        let mut tree = Tree::default();
        entries.into_iter().for_each(|(key, value)| tree.insert(key, value));
        Self { tree }
    }

    /// The group that is due from a cluster.
    #[must_use]
    pub fn due_from(&self, cluster: ClusterId) -> Cursor {
        self.get(&StateKey::Taken(cluster)).unwrap_or_default()
    }

    pub(crate) fn get<T: BorshDeserialize>(&self, key: &StateKey) -> Option<T> {
        self.tree.get(key).map(decode)
    }

    /// A balance; zero where there is no entry. None is negative.
    pub(crate) fn balance(&self, key: &StateKey) -> Balance {
        self.get(key).unwrap_or_default()
    }

    /// Adds to a balance or a total. One message is worth less than 2^127, so 256 bits hold the sum of all that are
    /// ever taken, whoever sends them.
    pub(crate) fn add(&mut self, key: StateKey, amount: Amount) {
        self.put(key.clone(), &self.balance(&key).credit(amount));
    }

    pub(crate) fn put(&mut self, key: StateKey, value: &impl BorshSerialize) {
        self.tree.insert(key, borsh::to_vec(value).expect("memory takes every write"));
    }

    /// Subtracts from a balance that covers the amount. Zero has no entry: an empty reserve is as one that never was.
    pub(crate) fn debit(&mut self, key: StateKey, amount: Amount) {
        let left = self.balance(&key).debit(amount);
        if left == Balance::ZERO {
            self.tree.remove(&key);
        } else {
            self.put(key, &left);
        }
    }
}

pub(crate) fn decode<T: BorshDeserialize>(value: &[u8]) -> T {
    borsh::from_slice(value).expect("an entry is encoded as its key demands")
}

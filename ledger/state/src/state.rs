//! A cluster's state after a height.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Amount, Asset, Balance, Digest, Epoch};
use fastpay_ledger_statement::{ClusterId, Cursor, StateKey, StateProof, Time};

use crate::genesis::Layout;
use crate::tree::Tree;

/// Everything that a cluster remembers. A copy costs nothing, and later changes to either leave the other as it is.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) tree: Tree,
}

/// The current epoch of a FastPay committee.
#[derive(Clone, Copy, Debug, Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct CurrentEpoch {
    pub(crate) epoch: Epoch,
    /// Until when redemption votes of the epoch before count; `None` if they do not.
    pub(crate) previous_counts_until: Option<Time>,
}

impl State {
    /// Before the first height.
    #[must_use]
    pub fn genesis(layout: &Layout) -> Self {
        let mut state = Self { tree: Tree::default() };
        let genesis = layout.genesis();
        for issue in &genesis.issued {
            if layout.partition().of_reserve(&issue.owner) == layout.us() {
                for key in [StateKey::Reserve(issue.owner, issue.asset), StateKey::Held(issue.asset)] {
                    let total = state.amount(&key).checked_add(issue.amount).expect("less than 2^127 is issued");
                    state.put_amount(key, total);
                }
            }
        }
        if layout.is_settlement() {
            for (number, committee) in &genesis.committees {
                state.put(StateKey::Committee(*number, Epoch(0)), committee);
                state.put(StateKey::Epoch(*number), &CurrentEpoch::default());
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

    /// The group that is due from a cluster.
    #[must_use]
    pub fn due_from(&self, cluster: ClusterId) -> Cursor {
        self.get(&StateKey::Taken(cluster)).unwrap_or_default()
    }

    /// What this cluster holds of each asset. Every entry is read: it is for audits.
    #[must_use]
    pub fn holdings(&self) -> BTreeMap<Asset, Holdings> {
        let mut all: BTreeMap<Asset, Holdings> = BTreeMap::new();
        for (key, value) in self.tree.iter() {
            let (asset, sum, value): (_, fn(&mut Holdings) -> &mut Balance, Balance) = match key {
                StateKey::Reserve(_, asset) => (asset, |of| &mut of.reserves, decode::<Amount>(value).into()),
                StateKey::Omnibus(_, asset) => (asset, |of| &mut of.omnibus, decode::<Amount>(value).into()),
                StateKey::SentTotal(_, asset) => (asset, |of| &mut of.sent, decode(value)),
                StateKey::TakenTotal(_, asset) => (asset, |of| &mut of.taken, decode(value)),
                _ => continue,
            };
            let sum = sum(all.entry(*asset).or_default());
            *sum = sum.plus(value);
        }
        all
    }

    pub(crate) fn get<T: BorshDeserialize>(&self, key: &StateKey) -> Option<T> {
        self.tree.get(key).map(decode)
    }

    /// An amount; zero where there is no entry.
    pub(crate) fn amount(&self, key: &StateKey) -> Amount {
        self.get(key).unwrap_or_default()
    }

    /// Adds to a total that only grows.
    pub(crate) fn count(&mut self, key: StateKey, amount: Amount) {
        let total: Balance = self.get(&key).unwrap_or_default();
        self.put(key, &total.credit(amount));
    }

    pub(crate) fn put(&mut self, key: StateKey, value: &impl BorshSerialize) {
        self.tree.insert(key, borsh::to_vec(value).expect("memory takes every write"));
    }

    /// Writes an amount. Zero has no entry: an empty reserve is as one that never was.
    pub(crate) fn put_amount(&mut self, key: StateKey, amount: Amount) {
        if amount == Amount::ZERO {
            self.tree.remove(&key);
        } else {
            self.put(key, &amount);
        }
    }
}

impl Holdings {
    /// Its part of what was issued. The parts of all clusters add up to that, when nothing is between them or not.
    #[must_use]
    pub fn share(&self) -> Balance {
        self.reserves.plus(self.omnibus).plus(self.sent).plus(self.taken.negated())
    }
}

/// What a cluster holds of an asset. Over all clusters, reserves + omnibus + sent − taken is what was issued, and none has
/// taken from another more than that has sent it ([`StateKey::TakenTotal`], [`StateKey::SentTotal`]): the two checks of an
/// audit [LEDGER 12].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// In reserves, open or not.
    pub reserves: Balance,
    /// For the accounts of FastPay committees.
    pub omnibus: Balance,
    /// Sent to other clusters, since the genesis.
    pub sent: Balance,
    /// Taken from other clusters, since the genesis.
    pub taken: Balance,
}

fn decode<T: BorshDeserialize>(value: &[u8]) -> T {
    borsh::from_slice(value).expect("an entry is encoded as its key demands")
}

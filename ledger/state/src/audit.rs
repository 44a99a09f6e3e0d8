//! The audit of all clusters [LEDGER 12]: what each holds, and whether it took more from another than that has sent.
//! Only a quorum of traitors makes money. No cluster sees that alone, and none must refuse an honest sender for it; the
//! audit names the cluster that did.

use std::collections::BTreeMap;

use fastpay_core::{Asset, Balance};
use fastpay_ledger_statement::{ClusterId, StateKey};

use crate::state::{State, decode};

/// What a cluster holds of an asset. Over all clusters, reserves + omnibus + bonds + sent − taken is what was issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// In reserves, open or not.
    pub reserves: Balance,
    /// For the accounts of FastPay committees.
    pub omnibus: Balance,
    /// For numbers of FastPay accounts that are to be unlocked.
    pub bonds: Balance,
    /// Sent to other clusters, since the genesis.
    pub sent: Balance,
    /// Taken from other clusters, since the genesis.
    pub taken: Balance,
}

impl Holdings {
    /// Its part of what was issued. The parts of all clusters add up to that, when nothing is between them or not.
    #[must_use]
    pub fn share(&self) -> Balance {
        self.reserves.plus(self.omnibus).plus(self.bonds).plus(self.sent).plus(self.taken.negated())
    }
}

/// More of an asset was taken from a cluster than it has sent: a quorum of it are traitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdraft {
    /// The cluster that made money.
    pub from: ClusterId,
    /// The cluster that took it.
    pub to: ClusterId,
    /// The asset.
    pub asset: Asset,
    /// How much it has made.
    pub excess: Balance,
}

impl State {
    /// What this cluster holds of each asset. Every entry is read.
    #[must_use]
    pub fn holdings(&self) -> BTreeMap<Asset, Holdings> {
        let mut all: BTreeMap<Asset, Holdings> = BTreeMap::new();
        for (key, value) in self.tree.iter() {
            let (asset, sum): (_, fn(&mut Holdings) -> &mut Balance) = match key {
                StateKey::Reserve(_, asset) => (asset, |of| &mut of.reserves),
                StateKey::Omnibus(_, asset) => (asset, |of| &mut of.omnibus),
                StateKey::Bonds(_, asset) => (asset, |of| &mut of.bonds),
                StateKey::SentTotal(_, asset) => (asset, |of| &mut of.sent),
                StateKey::TakenTotal(_, asset) => (asset, |of| &mut of.taken),
                _ => continue,
            };
            let sum = sum(all.entry(*asset).or_default());
            *sum = sum.plus(decode(value));
        }
        all
    }
}

/// All overdrafts between these clusters. Totals only grow, so no honest cluster is named if each state is at least as
/// new as every group that the others have taken from it.
#[must_use]
pub fn overdrafts(states: &BTreeMap<ClusterId, State>) -> Vec<Overdraft> {
    let mut found = Vec::new();
    for (to, receiver) in states {
        for (key, value) in receiver.tree.iter() {
            let StateKey::TakenTotal(from, asset) = *key else { continue };
            let Some(sender) = states.get(&from) else { continue };
            let sent = sender.balance(&StateKey::SentTotal(*to, asset));
            let excess = decode::<Balance>(value).plus(sent.negated());
            if excess > Balance::ZERO {
                found.push(Overdraft { from, to: *to, asset, excess });
            }
        }
    }
    found
}

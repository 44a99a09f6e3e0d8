//! One round of checks: what the requests of a batch demand and nobody knows yet.

use std::collections::HashMap;

use rand_core::CryptoRng;

use super::recent::Recent;
use crate::demand::{Demand, Proof};
use crate::signature::{BadSignature, Batch, Equation, KeyPoint};
use crate::statement::Domain;

/// Demands. Those of votes are in it once, however many requests need them: certificates of one batch share the
/// signatures on its roots.
#[derive(Default)]
pub(super) struct Round {
    items: Vec<Item>,
    /// Of the votes' demands.
    places: HashMap<Demand, usize>,
    /// The equations of the open items, in their order.
    batch: Batch,
}

struct Item {
    demand: Demand,
    state: State,
}

enum State {
    Met,
    Bad,
    /// Its equation, by the key with this encoding, is in the batch.
    Open {
        key: [u8; 32],
    },
}

impl Round {
    /// The place of a demand in this round. secp256k1 signatures are checked at once: they gain nothing from
    /// company.
    pub(super) fn place(&mut self, demand: Demand, domain: &Domain, keys: &mut Recent<[u8; 32], KeyPoint>) -> usize {
        let is_vote = demand.is_vote();
        if is_vote && let Some(place) = self.places.get(&demand) {
            return *place;
        }
        let state = match demand.proof(domain) {
            Proof::Ed25519 { key, digest, signature } => match Equation::new(key, signature, digest) {
                Some(equation) => {
                    self.batch.push(equation, keys.get(key));
                    State::Open { key: *key }
                }
                None => State::Bad,
            },
            proof @ Proof::Ecdsa { .. } if proof.holds() => State::Met,
            Proof::Ecdsa { .. } => State::Bad,
        };
        let place = self.items.len();
        if is_vote {
            self.places.insert(demand.clone(), place);
        }
        self.items.push(Item { demand, state });
        place
    }

    /// Checks the equations. The keys of those that hold are remembered.
    pub(super) fn judge(&mut self, keys: &mut Recent<[u8; 32], KeyPoint>, rng: &mut impl CryptoRng) {
        let verdicts = std::mem::take(&mut self.batch).verdicts(rng);
        let open = self.items.iter_mut().filter(|item| matches!(item.state, State::Open { .. }));
        for (item, verdict) in open.zip(verdicts) {
            let state = if verdict.holds { State::Met } else { State::Bad };
            if let (State::Open { key }, Some(point), true) =
                (std::mem::replace(&mut item.state, state), verdict.new_key, verdict.holds)
            {
                keys.insert(key, point);
            }
        }
    }

    /// Whether the demand at this place is known not to be met.
    pub(super) fn is_bad(&self, place: usize) -> bool {
        matches!(self.item(place).state, State::Bad)
    }

    /// The signature at this place where it was not found to be good.
    pub(super) fn bad(&self, place: usize) -> Option<BadSignature> {
        let Item { demand, state } = self.item(place);
        (!matches!(state, State::Met)).then(|| BadSignature(demand.by()))
    }

    /// The votes' demands that are met.
    pub(super) fn into_votes_met(self) -> impl Iterator<Item = Demand> {
        let Self { items, places, .. } = self;
        let met = move |place: usize| items.get(place).is_some_and(|item| matches!(item.state, State::Met));
        places.into_iter().filter(move |(_, place)| met(*place)).map(|(demand, _)| demand)
    }

    fn item(&self, place: usize) -> &Item {
        self.items.get(place).expect("places are given out by this round")
    }
}

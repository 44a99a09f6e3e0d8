//! One round of checks: what the requests of a batch demand and nobody knows yet.

use std::collections::HashMap;

use curve25519_dalek::edwards::EdwardsPoint;
use rand_core::CryptoRng;

use super::recent::Recent;
use crate::demand::{Demand, Proof};
use crate::signature::{BadSignature, Batch, Equation, decode_key};
use crate::statement::Domain;

/// Demands, each once, however many requests need it: certificates of one batch share the signatures on
/// its roots.
#[derive(Default)]
pub(super) struct Round {
    items: Vec<Item>,
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
    /// Its equation is in the batch. The point is that of its key.
    Open {
        key: [u8; 32],
        point: EdwardsPoint,
    },
}

impl Round {
    /// The place of a demand in this round. secp256k1 signatures are checked at once: they gain nothing from
    /// company.
    pub(super) fn place(
        &mut self,
        demand: Demand,
        domain: &Domain,
        keys: &mut Recent<[u8; 32], EdwardsPoint>,
    ) -> usize {
        if let Some(place) = self.places.get(&demand) {
            return *place;
        }
        let state = match demand.proof(domain) {
            Proof::Ed25519 { key, digest, signature } => {
                let point = keys.get(key).or_else(|| decode_key(key));
                let equation = point.and_then(|point| Equation::new(key, point, signature, digest));
                match (point, equation) {
                    (Some(point), Some(equation)) => {
                        self.batch.push(equation);
                        State::Open { key: *key, point }
                    }
                    _ => State::Bad,
                }
            }
            proof @ Proof::Ecdsa { .. } if proof.holds() => State::Met,
            Proof::Ecdsa { .. } => State::Bad,
        };
        let place = self.items.len();
        self.places.insert(demand.clone(), place);
        self.items.push(Item { demand, state });
        place
    }

    /// Checks the equations. The keys of those that hold are remembered.
    pub(super) fn judge(&mut self, keys: &mut Recent<[u8; 32], EdwardsPoint>, rng: &mut impl CryptoRng) {
        let verdicts = std::mem::take(&mut self.batch).verdicts(rng);
        let open = self.items.iter_mut().filter(|item| matches!(item.state, State::Open { .. }));
        for (item, holds) in open.zip(verdicts) {
            let State::Open { key, point } = item.state else { continue };
            item.state = if holds { State::Met } else { State::Bad };
            if holds {
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

    /// The demands that are met.
    pub(super) fn into_met(self) -> impl Iterator<Item = Demand> {
        self.items.into_iter().filter(|item| matches!(item.state, State::Met)).map(|item| item.demand)
    }

    fn item(&self, place: usize) -> &Item {
        self.items.get(place).expect("places are given out by this round")
    }
}

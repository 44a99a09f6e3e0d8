//! One round of signature checks: those of a batch's requests that are not known to be met.

use hashbrown::HashTable;
use rand_core::CryptoRng;

use super::recent::{KeyHash, Recent};
use super::work;
use crate::signature::{BadSignature, Batch, Equation, KeyPoint};
use crate::signature_check::{Proof, SignatureCheck};
use crate::statement::Domain;

/// Demands. Those of votes are in it once, however many requests need them: certificates of one batch share the
/// signatures on its roots.
#[derive(Default)]
pub(super) struct BatchRound {
    items: Vec<Entry>,
    /// The indices of the votes' checks in `items`.
    votes: HashTable<(KeyHash, usize)>,
    /// The equations of the open items, in their order.
    batch: Batch,
}

struct Entry {
    check: SignatureCheck,
    /// The hash of the key, for a vote.
    hash: Option<KeyHash>,
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

impl BatchRound {
    /// The place of a check in this round. A vote's comes with its hash. secp256k1 signatures are checked at once: a batch
    /// makes them no cheaper.
    pub(super) fn place(
        &mut self,
        check: SignatureCheck,
        hash: Option<KeyHash>,
        domain: &Domain,
        keys: &mut Recent<[u8; 32], KeyPoint>,
    ) -> usize {
        if let Some(known) = hash.and_then(|hash| self.vote_place(hash, &check)) {
            return known;
        }
        let state = match check.proof(domain) {
            Proof::Ed25519 { key, digest, signature } => match Equation::new(key, signature, digest) {
                Some(equation) => {
                    self.batch.push(equation, keys.get(keys.hash(key), key));
                    State::Open { key: *key }
                }
                None => State::Bad,
            },
            proof @ Proof::Ecdsa { .. } if proof.holds() => State::Met,
            Proof::Ecdsa { .. } => State::Bad,
        };
        let place = self.items.len();
        if let Some(hash) = hash {
            self.votes.insert_unique(hash.0, (hash, place), |(hash, _)| hash.0);
        }
        self.items.push(Entry { check, hash, state });
        place
    }

    /// The place of a vote's check with this hash, if it is in the round.
    fn vote_place(&self, hash: KeyHash, check: &SignatureCheck) -> Option<usize> {
        let is_same = |(_, place): &(KeyHash, usize)| {
            work::compared();
            self.item(*place).check == *check
        };
        self.votes.find(hash.0, is_same).map(|(_, place)| *place)
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
                keys.insert(keys.hash(&key), key, point);
            }
        }
    }

    /// Whether the check at this place is known not to be met.
    pub(super) fn is_bad(&self, place: usize) -> bool {
        matches!(self.item(place).state, State::Bad)
    }

    /// The signature at this place where it was not found to be good.
    pub(super) fn bad(&self, place: usize) -> Option<BadSignature> {
        let Entry { check, state, .. } = self.item(place);
        (!matches!(state, State::Met)).then(|| BadSignature(check.by()))
    }

    /// The votes' checks that are met.
    pub(super) fn into_votes_met(self) -> impl Iterator<Item = (KeyHash, SignatureCheck)> {
        let met = self.items.into_iter().filter(|item| matches!(item.state, State::Met));
        met.filter_map(|item| Some((item.hash?, item.check)))
    }

    fn item(&self, place: usize) -> &Entry {
        self.items.get(place).expect("places are given out by this round")
    }
}

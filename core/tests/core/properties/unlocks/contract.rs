//! The contract's rules about numbers, written down once more, and the chain that it lives on: blocks have times, and
//! what is final may stand still while blocks are made.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::{
    AccountId, Committee, ContractVote, Deposit, Digest, Domain, Epoch, SequenceNumber, TransactionIndex, Transfer,
};

/// A number of an account.
pub type Slot = (AccountId, u64);

/// How long a request is open before a quorum can void its number, in seconds.
pub const WINDOW: u64 = 1_000;

/// For so long after an installation not even all members void a number before its window has passed.
const VOTES_VALIDITY: u64 = 2 * WINDOW;

/// An event of the contract's one order.
#[derive(Clone, Debug)]
pub enum Event {
    Deposit(Deposit),
    /// With the bytes sent as the owner's signature.
    Requested(Slot, Vec<u8>),
    Upheld(Slot, Digest),
    Voided(Slot),
    Spent(Slot, Digest),
    /// The redemption that spent the number left the queue unpaid.
    Released(Slot, Digest),
    /// An epoch began, and from the second one on keys were out. The installation names a checkpoint.
    Installed(Epoch, Epoch, Digest),
}

impl Event {
    /// The affected account; `None` if all accounts are affected.
    pub fn account(&self) -> Option<AccountId> {
        match self {
            Self::Deposit(deposit) => Some(deposit.recipient),
            Self::Requested(slot, _) | Self::Upheld(slot, _) | Self::Voided(slot) => Some(slot.0),
            Self::Spent(slot, _) | Self::Released(slot, _) => Some(slot.0),
            Self::Installed(..) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Upheld(Digest),
    Voided,
}

/// See the [module](self).
pub struct Contract {
    domain: Domain,
    committee: Committee,
    /// The members and their keys stay the same.
    pub epoch: Epoch,
    /// When an epoch after the first began.
    installed_at: Option<u64>,
    /// Each event with the time of its block. The first has index 1.
    pub events: Vec<(u64, Event)>,
    /// The number of events in final blocks.
    pub is_final: usize,
    /// The time of the newest final block.
    pub final_time: u64,
    /// No block becomes final.
    pub is_stalled: bool,
    /// The time from which a quorum can void a requested number.
    pub voidable_from: BTreeMap<Slot, u64>,
    pub outcomes: BTreeMap<Slot, Outcome>,
    /// Numbers of redemptions that were paid, or wait in the queue, with their digests.
    pub paid: BTreeMap<Slot, Digest>,
    /// Those of them that left the queue, and whether they were paid.
    left: BTreeMap<Slot, bool>,
}

impl Contract {
    pub fn new(domain: Domain, committee: Committee) -> Self {
        Self {
            domain,
            committee,
            epoch: Epoch(0),
            installed_at: None,
            events: Vec::new(),
            is_final: 0,
            final_time: 0,
            is_stalled: false,
            voidable_from: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            paid: BTreeMap::new(),
            left: BTreeMap::new(),
        }
    }

    /// What a transfer is signed as.
    pub fn digest(&self, transfer: &Transfer) -> Digest {
        self.domain.transfer_digest(transfer)
    }

    /// All blocks up to now are final, unless finality stands still.
    pub fn finalize(&mut self, now: u64) {
        if !self.is_stalled {
            (self.is_final, self.final_time) = (self.events.len(), now);
        }
    }

    pub fn next_index(&self) -> TransactionIndex {
        TransactionIndex(self.events.len() as u64 + 1)
    }

    pub fn deposit(&mut self, now: u64, deposit: Deposit) {
        self.events.push((now, Event::Deposit(deposit)));
    }

    /// The owner of an account of the contract's own kind asks once. Anybody asks for any other account: authorities judge
    /// the signature.
    pub fn request(&mut self, now: u64, slot: Slot, authorization: Vec<u8>) {
        let is_again = self.voidable_from.contains_key(&slot) && slot.0.ethereum_address().is_some();
        if self.outcomes.contains_key(&slot) || is_again {
            return;
        }
        self.voidable_from.entry(slot).or_insert(now + WINDOW);
        self.events.push((now, Event::Requested(slot, authorization)));
    }

    pub fn uphold(&mut self, now: u64, slot: Slot, digest: Digest, votes: &[ContractVote]) -> bool {
        let vote = self.domain.certificate_vote_digest(self.epoch, slot.0, SequenceNumber(slot.1), digest);
        let is_open = self.voidable_from.contains_key(&slot) && !self.outcomes.contains_key(&slot);
        let is_upheld = is_open && self.voters(vote, votes) >= self.quorum();
        if is_upheld {
            self.outcomes.insert(slot, Outcome::Upheld(digest));
            self.events.push((now, Event::Upheld(slot, digest)));
        }
        is_upheld
    }

    pub fn void(&mut self, now: u64, slot: Slot, unanimous: bool, votes: &[ContractVote]) -> bool {
        let Some(voidable_from) = self.voidable_from.get(&slot) else { return false };
        let is_decided = self.outcomes.contains_key(&slot);
        let is_spent = self.paid.contains_key(&slot);
        if is_decided || is_spent {
            return false;
        }
        let digest = |unanimous| self.domain.void_vote_digest(self.epoch, slot.0, SequenceNumber(slot.1), unanimous);
        let voters = self.voters(digest(unanimous), votes);
        let is_voided = if unanimous {
            let is_early = self.installed_at.is_some_and(|at| now < at + VOTES_VALIDITY);
            !is_early && voters == self.committee.members().len()
        } else {
            now >= *voidable_from && voters >= self.quorum()
        };
        if is_voided {
            self.outcomes.insert(slot, Outcome::Voided);
            self.events.push((now, Event::Voided(slot)));
        }
        is_voided
    }

    /// A thief with a quorum's keys upholds any order, whether or not it exists.
    pub fn forge(&mut self, now: u64, slot: Slot, digest: Digest) -> bool {
        let is_open = self.voidable_from.contains_key(&slot) && !self.outcomes.contains_key(&slot);
        if is_open {
            self.outcomes.insert(slot, Outcome::Upheld(digest));
            self.events.push((now, Event::Upheld(slot, digest)));
        }
        is_open
    }

    /// The next epoch begins. If keys of all before were out, what they upheld is open again.
    pub fn install(&mut self, now: u64, were_keys_out: bool, checkpoint: Digest) {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.installed_at = Some(now);
        if were_keys_out {
            self.outcomes.retain(|_, outcome| *outcome == Outcome::Voided);
        }
        let since = if were_keys_out { Epoch(0) } else { self.epoch };
        self.events.push((now, Event::Installed(self.epoch, since, checkpoint)));
    }

    /// Pays a redemption, whose certificate was checked, once.
    pub fn redeem(&mut self, now: u64, slot: Slot, digest: Digest) -> bool {
        let is_void = self.outcomes.get(&slot) == Some(&Outcome::Voided);
        if is_void || self.paid.contains_key(&slot) {
            return false;
        }
        self.paid.insert(slot, digest);
        self.events.push((now, Event::Spent(slot, digest)));
        true
    }

    /// A redemption that was queued leaves the queue, paid or not.
    pub fn leave_queue(&mut self, now: u64, slot: Slot, is_paid: bool) {
        let Some(digest) = self.paid.get(&slot).copied() else { return };
        if let Entry::Vacant(left) = self.left.entry(slot) {
            left.insert(is_paid);
            let event = if is_paid { Event::Spent(slot, digest) } else { Event::Released(slot, digest) };
            self.events.push((now, event));
        }
    }

    /// Whether this order was paid. One of a number that another order took never is.
    pub fn is_paid(&self, slot: Slot, digest: Digest) -> bool {
        self.paid.get(&slot) == Some(&digest) && self.left.get(&slot) != Some(&false)
    }

    /// Whether this redemption is never paid, because another one took its number, or it was released.
    pub fn is_never_paid(&self, slot: Slot, digest: Digest) -> bool {
        self.paid.contains_key(&slot) && !self.is_paid(slot, digest)
    }

    /// What the first events spent each number on; nothing where the redemption left the queue unpaid.
    pub fn spent_by(&self, events: usize) -> BTreeMap<Slot, Option<Digest>> {
        let mut spent = BTreeMap::new();
        for (_, event) in &self.events[..events] {
            match event {
                Event::Spent(slot, digest) => drop(spent.insert(*slot, Some(*digest))),
                Event::Released(slot, _) => drop(spent.insert(*slot, None)),
                _ => {}
            }
        }
        spent
    }

    /// The number of members who signed this.
    fn voters(&self, digest: Digest, votes: &[ContractVote]) -> usize {
        let signed = votes.iter().filter(|vote| (*vote).clone().verify(&self.committee, digest).is_ok());
        signed.map(|vote| vote.authority).collect::<BTreeSet<_>>().len()
    }

    /// The number of votes of a quorum, computed independently.
    pub fn quorum(&self) -> usize {
        let size = self.committee.members().len();
        (size + (size - 1) / 3) / 2 + 1
    }
}

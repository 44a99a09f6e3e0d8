//! The accounts that submit votes to the contract: attackers who want a number void, and honest ones.

use fastpay_core::{
    AccountId, Asset, ContractVote, Digest, Epoch, PrimaryAddress, SequenceNumber, Transfer, UnlockVote, VoteFloor,
    is_unlock_authorized,
};
use fastpay_testkit::redemption;
use rand::prelude::*;

use super::contract::{Event, Outcome, Slot, WINDOW};
use super::world::{Certified, World};

/// Somebody honest acts so long after a request is final: later than anything can be executed that was not read of, and
/// before a quorum can void.
const ACTS_AFTER: u64 = WINDOW - 200;

impl World {
    pub fn is_authorized(&self, slot: Slot, authorization: &[u8]) -> bool {
        is_unlock_authorized(&self.committee.domain, slot.0, SequenceNumber(slot.1), authorization)
    }

    /// All blocks are final, or none is; whoever is honest hears of the requests.
    pub fn finalize(&mut self) {
        let before = self.contract.is_final;
        self.contract.finalize(self.now);
        for (_, event) in &self.contract.events[before..self.contract.is_final] {
            if let Event::Requested(slot, authorization) = event
                && is_unlock_authorized(&self.committee.domain, slot.0, SequenceNumber(slot.1), authorization)
            {
                self.acts_at.entry(*slot).or_insert(Some(self.now + ACTS_AFTER));
            }
        }
    }

    /// Time passes, and honest accounts act in time.
    pub fn pass(&mut self, time: u64) {
        let until = self.now + time;
        loop {
            self.finalize();
            let due = self.acts_at.iter().filter_map(|(slot, at)| Some(((*at)?, *slot)));
            let Some((at, slot)) = due.min().filter(|(at, _)| *at <= until) else { break };
            self.now = self.now.max(at);
            self.finalize();
            self.acts_at.insert(slot, None);
            self.act(slot);
        }
        self.now = until;
        self.finalize();
    }

    /// A certificate of the number that an authority executed or keeps.
    fn served(&self, slot: Slot) -> Option<usize> {
        let is_served = (0..self.nodes.len()).any(|at| self.known_by(at, slot).is_some());
        is_served.then(|| self.certified[&slot])
    }

    /// The order that an authority votes for where it has the certificate.
    pub fn known_by(&self, at: usize, slot: Slot) -> Option<Digest> {
        let executed = self.oracle.books[at].executed.get(&slot).copied();
        let executed = executed.filter(|_| {
            !self.is_pruned(at, slot) || self.unpaid(at, slot).is_some_and(|unpaid| unpaid.certificate.is_some())
        });
        let shard = &self.nodes[at].authority.shards[self.shard_of(at, slot.0)];
        let seen = || shard.ledger().unlocks.get(slot.0, SequenceNumber(slot.1))?.seen.clone();
        executed.or_else(|| Some(self.contract.digest(&seen()?.order.transfer)))
    }

    /// What somebody honest does: asks everybody for a certificate of the number, brings it to everybody, and to the
    /// contract. Whoever holds one that all keep already may be away.
    fn act(&mut self, slot: Slot) {
        let Some(index) = self.served(slot) else { return };
        let all_keep = (0..self.nodes.len()).all(|at| self.certificates[index].kept_by.contains(&at));
        // What is paid is never voided, and neither is what a checkpoint includes. Who has pruned it does not vote for it.
        let digest = self.certificates[index].certificate.digest();
        let is_decided = self.contract.outcomes.contains_key(&slot) || self.contract.is_paid(slot, digest);
        if is_decided || self.is_included(slot) || (all_keep && self.chance(50)) {
            return;
        }
        let mut following: Vec<_> = (0..self.nodes.len()).collect();
        following.shuffle(&mut self.rng);
        following.into_iter().skip(self.lagging_max).for_each(|at| self.follow_all(at));
        let is_stranded = self.catch_up();
        self.confirm_up_to(slot);
        let is_upheld = self.uphold(index);
        if is_stranded && !is_upheld {
            // On an old view of the chain nobody takes a checkpoint, and nobody votes to void.
            self.acts_at.insert(slot, Some(self.now + 100));
            return;
        }
        assert!(is_upheld, "a certificate of {} #{} is known and cannot be upheld", slot.0, slot.1);
    }

    /// Shows all nodes the certificates of the account up to a number.
    fn confirm_up_to(&mut self, slot: Slot) {
        let chain: Vec<_> = self.certified.range((slot.0, 0)..=slot).map(|(slot, index)| (*slot, *index)).collect();
        for (earlier, index) in chain {
            if self.served(earlier).is_some() {
                (0..self.nodes.len()).for_each(|at| self.show(index, at));
            }
        }
    }

    /// Collects votes for a certificate from honest authorities alone, and has the contract uphold its order.
    pub fn uphold(&mut self, index: usize) -> bool {
        let (slot, digest) = (self.certificates[index].slot, self.certificates[index].certificate.digest());
        let knowing = (0..self.nodes.len()).filter(|at| self.known_by(*at, slot) == Some(digest));
        let votes: Vec<_> = knowing.map(|at| self.vote(at, slot, UnlockVote::Certificate(digest))).collect();
        let is_upheld = self.contract.uphold(self.now, slot, digest, &votes);
        self.finalize();
        is_upheld
    }

    fn vote(&self, at: usize, (account, sequence): Slot, vote: UnlockVote) -> ContractVote {
        let epoch = self.epoch_of(at, account);
        vote.sign(&self.committee.keys[at], &self.committee.domain, epoch, account, SequenceNumber(sequence))
    }

    /// The epoch that an honest member has taken up; the newest one, for others.
    fn epoch_of(&self, at: usize, account: AccountId) -> Epoch {
        match self.nodes.get(at) {
            Some(node) => node.authority.shards[self.shard_of(at, account)].ledger().unlocks.epoch(),
            None => self.contract.epoch,
        }
    }

    /// One of the numbers that were asked for, mostly lately.
    pub fn requested(&mut self) -> Option<Slot> {
        let requests = self.contract.events.iter().rev().filter_map(|(_, event)| match event {
            Event::Requested(slot, _) => Some(*slot),
            _ => None,
        });
        let newest: Vec<_> = requests.take(5).collect();
        newest.choose(&mut self.rng).copied()
    }

    /// An attacker collects some authorities' votes to void a number, keeps them, and submits them to the contract.
    pub fn try_to_void(&mut self, slot: Slot, unanimous: bool) {
        self.some().into_iter().for_each(|at| self.ask_for_void(at, slot, unanimous));
        if self.chance(70) {
            self.void(slot, unanimous);
        }
    }

    pub fn ask_for_void(&mut self, at: usize, slot: Slot, unanimous: bool) {
        let floor = if self.nodes[at].is_restored { VoteFloor::Unknown } else { VoteFloor::Zero };
        let time = self.nodes[at].times[self.shard_of(at, slot.0)];
        let number = (slot.0, SequenceNumber(slot.1));
        let epoch = self.epoch_of(at, slot.0);
        let shard = self.nodes[at].authority.shard(&slot.0);
        let answer = shard.void_vote(number, unanimous, epoch, floor, time);
        self.observe(at);
        if answer.is_ok() {
            self.void_voters.insert((at, slot));
            let vote = self.vote(at, slot, UnlockVote::Void { unanimous });
            self.void_votes.entry((slot, unanimous)).or_default().push(vote);
        }
    }

    fn void(&mut self, slot: Slot, unanimous: bool) -> bool {
        let byzantine = self.nodes.len()..self.committee.keys.len();
        let signed = |at| [true, false].map(|unanimous| self.vote(at, slot, UnlockVote::Void { unanimous }));
        let mut votes: Vec<_> = byzantine.flat_map(signed).collect();
        // Whatever was ever signed is tried.
        votes.extend([true, false].iter().filter_map(|kind| self.void_votes.get(&(slot, *kind))).flatten().cloned());
        let is_voided =
            self.contract.void(self.now, slot, unanimous, &votes) || self.contract.void(self.now, slot, false, &votes);
        if is_voided {
            self.oracle.voided(slot);
        }
        self.finalize();
        is_voided
    }

    pub fn try_to_uphold(&mut self) {
        if let Some(index) = self.one_of_newest(self.certificates.len()) {
            self.some().into_iter().for_each(|at| self.show(index, at));
            self.uphold(index);
        }
    }

    /// Somebody brings the certificate of a redemption to the contract.
    pub fn redeem(&mut self, index: usize) {
        let Certified { certificate, slot, .. } = &self.certificates[index];
        if matches!(certificate.transfer(), Transfer::Redemption(_)) {
            self.contract.redeem(self.now, *slot, certificate.digest());
            self.finalize();
        }
    }

    /// The thief spends another account's number on a redemption of its own.
    pub fn steal(&mut self, slot: Slot) {
        let own = redemption(slot.0, PrimaryAddress::repeat_byte(9), 1, slot.1);
        let digest = self.contract.digest(&own.into());
        if self.has_thief && self.contract.redeem(self.now, slot, digest) {
            self.stolen.insert(slot);
            self.finalize();
        }
    }

    /// The thief has the contract uphold the number's certified order, or one that does not exist.
    pub fn forge(&mut self, slot: Slot) {
        let made_up = self.contract.digest(&redemption(slot.0, PrimaryAddress::repeat_byte(8), 2, slot.1).into());
        let certified = self.certified.get(&slot).map(|index| self.certificates[*index].certificate.digest());
        let digest = certified.filter(|_| self.chance(60)).unwrap_or(made_up);
        if self.has_thief && self.contract.forge(self.now, slot, digest) {
            self.finalize();
        }
    }

    /// The next epoch begins. If a thief had keys, they are worth nothing from then on, and whoever is honest acts again for
    /// each number that is open again.
    pub fn install(&mut self) {
        if self.contract.is_stalled {
            return;
        }
        let were_keys_out = std::mem::take(&mut self.has_thief);
        let before = self.contract.outcomes.clone();
        let named = self.newest_checkpoint();
        self.contract.install(self.now, were_keys_out, named);
        self.finalize();
        for (slot, at) in &mut self.acts_at {
            let was_upheld = matches!(before.get(slot), Some(Outcome::Upheld(_)));
            if were_keys_out && (was_upheld || self.contract.paid.contains_key(slot)) {
                *at = Some(self.now + ACTS_AFTER);
            }
        }
    }

    /// A queued redemption is paid or released, whoever ordered it.
    pub fn leave_queue(&mut self, slot: Slot) {
        let is_paid = self.chance(50);
        self.contract.leave_queue(self.now, slot, is_paid);
        self.finalize();
    }

    /// The chain goes on, clocks are right, and every owner gets what can be had: each number that was asked for is
    /// decided, each certificate executed or void, and all authorities have the same.
    pub fn settle(&mut self) {
        self.contract.is_stalled = false;
        if self.has_thief {
            self.overdraw();
            self.install();
            self.is_overdrawn_for_all();
        }
        self.nodes.iter_mut().for_each(|node| node.clock_error = 0);
        self.pass(1);
        if self.has_checkpoints {
            self.begin_from_the_newest();
        }
        // Only of what authorities keep, and then of everything that was kept from them.
        self.decide_all();
        for (slot, index) in self.certified.clone() {
            (0..self.nodes.len()).for_each(|at| self.show(index, at));
            if self.served(slot).is_some() {
                self.decide(slot);
            }
            self.follow_everywhere();
        }
        self.decide_all();
        for (slot, index) in &self.certified {
            for (at, books) in self.oracle.books.iter().enumerate() {
                let executed = books.executed.get(slot).copied();
                let is_void = self.contract.outcomes.get(slot) == Some(&Outcome::Voided);
                let expected = (!is_void).then(|| self.certificates[*index].certificate.digest());
                assert_eq!(executed, expected, "authority {at}, a certificate of {} #{}", slot.0, slot.1);
            }
        }
        self.oracle.balanced(&self.contract, &self.stolen, self.debtor(), self.deposited);
        self.is_overdrawn_for_all();
        for (at, node) in self.nodes.iter().enumerate() {
            for owner in &self.owners {
                let (account, books) = (node.authority.account(&owner.id()), &self.oracle.books[at]);
                let balance = books.balances.get(&owner.id()).copied().unwrap_or_default();
                assert_eq!(account.balance(Asset::ETHER).to_string(), balance.to_string(), "authority {at}");
            }
        }
    }

    /// Whoever is honest has each number decided that its owner asked for and that is next, and the next after it.
    fn decide_all(&mut self) {
        self.follow_everywhere();
        for slot in self.acts_at.keys().copied().collect::<Vec<_>>() {
            self.decide(slot);
            self.follow_everywhere();
        }
    }

    fn decide(&mut self, slot: Slot) {
        let is_requested = self.acts_at.contains_key(&slot);
        if let Some(index) = self.served(slot) {
            self.confirm_up_to(slot);
            // What was paid is executed at once, unless keys of that epoch were out.
            let is_executed = self.oracle.books.iter().all(|books| books.executed.contains_key(&slot));
            if !is_executed && is_requested && !self.contract.outcomes.contains_key(&slot) {
                assert!(self.uphold(index), "{} #{} is not upheld", slot.0, slot.1);
            }
            return;
        }
        let is_next =
            self.oracle.books.iter().all(|books| books.next.get(&slot.0).copied().unwrap_or_default() == slot.1);
        if !is_requested || !is_next || self.contract.paid.contains_key(&slot) {
            return;
        }
        if !self.contract.outcomes.contains_key(&slot) {
            self.pass(WINDOW + 1);
            self.follow_everywhere();
            (0..self.nodes.len()).for_each(|at| self.ask_for_void(at, slot, false));
            assert!(self.void(slot, false), "{} #{} is not voided", slot.0, slot.1);
        }
    }
}

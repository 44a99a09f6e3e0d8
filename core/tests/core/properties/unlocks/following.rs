//! How an honest authority comes to know the chain, and forgets: it follows events, crashes, and comes back with an older
//! copy of its folder.

use std::collections::HashMap;

use fastpay_core::{
    AccountId, ExecutedRedemption, Installation, PrimaryView, SequenceNumber, SynchronizationOrder, TransactionIndex,
    Transfer, UnlockEvent, UnlockEventKind, VoteFloor,
};
use fastpay_testkit::Outcome;
use rand::prelude::*;

use super::contract::{Event, WINDOW};
use super::world::{Node, VIEW_AGE_MAX, World};
use crate::properties::world::crash;

impl World {
    pub fn view(&self, at: usize, account: AccountId) -> PrimaryView {
        let node = &self.nodes[at];
        let time = node.times[self.shard_of(at, account)].cast_signed();
        if self.now.cast_signed() + node.clock_error - time <= VIEW_AGE_MAX {
            PrimaryView::Recent
        } else {
            PrimaryView::TooOld
        }
    }

    /// Recovers an authority restored from a copy from the others' answers, as its node does.
    pub fn floor(&mut self, at: usize, account: AccountId) -> VoteFloor {
        if !self.nodes[at].is_restored {
            return VoteFloor::Zero;
        }
        if let Some(floor) = self.nodes[at].floors.get(&account) {
            return VoteFloor::From(SequenceNumber(*floor));
        }
        // Byzantine members answer with nothing, so that the others must be a quorum with them.
        let others = (0..self.nodes.len()).filter(|other| *other != at);
        let answers = others.map(|other| {
            let state = self.nodes[other].authority.account(&account);
            state.next_sequence().0 + u64::from(state.pending.is_some())
        });
        let mut answers: Vec<_> = answers.collect();
        answers.shuffle(&mut self.rng);
        let byzantine = self.committee.keys.len() - self.nodes.len();
        let floor = answers[..self.contract.quorum() - byzantine].iter().max().copied().unwrap_or_default() + 1;
        self.nodes[at].floors.insert(account, floor);
        VoteFloor::From(SequenceNumber(floor))
    }

    pub fn follow_some(&mut self) {
        let at = self.rng.random_range(0..self.nodes.len());
        let shard = self.rng.random_range(0..self.nodes[at].times.len());
        let events = self.rng.random_range(1..4);
        self.follow(at, shard, events);
        // An event whose predecessors were not applied.
        let next = self.nodes[at].authority.shards[shard].ledger().synchronized.0 + 2;
        if let Some(event) =
            usize::try_from(next - 1).ok().and_then(|at| self.contract.events[..self.contract.is_final].get(at))
        {
            let event = event.1.clone();
            if self.concerns(at, shard, &event) {
                self.apply(at, shard, TransactionIndex(next - 1), TransactionIndex(next), &event);
            }
        }
    }

    pub fn follow_all(&mut self, at: usize) {
        (0..self.nodes[at].times.len()).for_each(|shard| self.follow(at, shard, usize::MAX));
    }

    /// A shard follows the chain over so many final events at most, and then knows of the time.
    pub fn follow(&mut self, at: usize, shard: usize, count: usize) {
        let synchronized = |world: &Self| world.nodes[at].authority.shards[shard].ledger().synchronized;
        let from = usize::try_from(synchronized(self).0).expect("few events");
        let up_to = self.contract.is_final.min(from.saturating_add(count));
        for index in from..up_to {
            let event = self.contract.events[index].1.clone();
            if self.concerns(at, shard, &event) {
                let after = synchronized(self);
                self.apply(at, shard, after, TransactionIndex(index as u64 + 1), &event);
            }
        }
        let up_to_index = TransactionIndex(up_to as u64);
        let (after, shard_state) = (synchronized(self), &mut self.nodes[at].authority.shards[shard]);
        if after < up_to_index {
            let over = SynchronizationOrder { after, up_to: up_to_index, deposit: None };
            assert_eq!(shard_state.synchronize(&over), Ok(Outcome::Committed));
        }
        let is_at_head = up_to == self.contract.is_final;
        let time = if is_at_head { self.contract.final_time } else { self.contract.events[up_to - 1].0 };
        self.nodes[at].times[shard] = time.max(self.nodes[at].times[shard]);
        self.observe(at);
    }

    fn concerns(&self, at: usize, shard: usize, event: &Event) -> bool {
        event.account().is_none_or(|account| self.shard_of(at, account) == shard)
    }

    /// Gives a shard one event of its own accounts, or of all.
    pub fn apply(&mut self, at: usize, shard: usize, after: TransactionIndex, index: TransactionIndex, event: &Event) {
        let voidable_at = self.contract.final_time + WINDOW;
        let (slot, kind) = match event {
            Event::Deposit(deposit) => {
                let order = SynchronizationOrder { after, up_to: index, deposit: Some(deposit.clone()) };
                let _ = self.nodes[at].authority.shards[shard].synchronize(&order);
                return self.observe(at);
            }
            Event::Requested(slot, authorization) if self.is_authorized(*slot, authorization) => {
                (*slot, UnlockEventKind::Requested(voidable_at))
            }
            Event::Requested(..) => return,
            Event::Installed(epoch, compromised_since, _) => {
                let (epoch, compromised_since) = (*epoch, *compromised_since);
                let installation = Installation { after, index, epoch, compromised_since, voidable_at };
                let _ = self.nodes[at].authority.shards[shard].follow_installation(&installation);
                return self.observe(at);
            }
            Event::Upheld(slot, digest) => (*slot, UnlockEventKind::Upheld(*digest)),
            Event::Voided(slot) => (*slot, UnlockEventKind::Voided),
            Event::Spent(slot, digest) => (*slot, UnlockEventKind::Spent(*digest)),
            Event::Released(slot, digest) => (*slot, UnlockEventKind::Released(*digest)),
        };
        // Of what is executed, its node says what a spent number means for it.
        let is_about_redemption = matches!(kind, UnlockEventKind::Spent(_) | UnlockEventKind::Released(_));
        let kind = match self.oracle.books[at].executed.get(&slot) {
            Some(digest) if is_about_redemption => {
                let Transfer::Redemption(executed) = self.certificates[self.certified[&slot]].certificate.transfer()
                else {
                    return;
                };
                // Of what is pruned, only an unpaid redemption can be paid or credited back.
                if self.is_pruned(at, slot) && self.unpaid(at, slot).is_none() {
                    return;
                }
                let executed = ExecutedRedemption { digest: *digest, asset: executed.asset, amount: executed.amount };
                let Some(kind) = kind.after(executed) else { return };
                kind
            }
            _ => kind,
        };
        let (account, sequence) = (slot.0, SequenceNumber(slot.1));
        let shard = &mut self.nodes[at].authority.shards[shard];
        if shard.follow_unlock(&UnlockEvent { after, index, account, sequence, kind }).is_ok() {
            self.advance(at, account);
        }
        self.observe(at);
    }

    /// Moves an account past the numbers that are decided.
    pub fn advance(&mut self, at: usize, account: AccountId) {
        let (view, domain, committee) =
            (self.view(at, account), self.committee.domain, self.committee.committee.clone());
        self.nodes[at]
            .authority
            .shard(&account)
            .advance(account, view, |certificate| certificate.verify(&domain, &committee).expect("it was verified"));
    }

    pub fn crash(&mut self) {
        let at = self.rng.random_range(0..self.nodes.len());
        let (accounts, from_checkpoint) = (self.rng.random_range(1..4), self.chance(60));
        let shard = self.rng.random_range(0..self.nodes[at].times.len());
        let shard = &mut self.nodes[at].authority.shards[shard];
        (0..accounts).for_each(|_| shard.take_part_of_checkpoint(accounts));
        crash(shard, from_checkpoint);
    }

    /// Somebody copies the folder of the first authority.
    pub fn copy(&mut self) {
        if self.is_restorable {
            self.nodes[0].copy = None;
            let copy = (self.nodes[0].clone(), self.oracle.books[0].clone());
            self.nodes[0].copy = Some(Box::new(copy));
        }
    }

    /// Somebody brings the copy back.
    pub fn restore(&mut self) {
        if let Some(copy) = self.nodes[0].copy.take() {
            let (node, books) = *copy;
            self.nodes[0] = Node { is_restored: true, floors: HashMap::new(), ..node };
            self.certificates.iter_mut().for_each(|certified| certified.kept_by.retain(|at| *at != 0));
            self.oracle.restored(0, books);
            self.void_voters.retain(|(at, _)| *at != 0);
            self.observe(0);
        }
    }

    pub fn follow_everywhere(&mut self) {
        for at in 0..self.nodes.len() {
            self.follow_all(at);
            self.nodes[at].authority.deliver_all();
            self.observe(at);
        }
    }
}

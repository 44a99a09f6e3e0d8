//! An authority is rebased onto the newest checkpoint, by the code of a node's command, whether it has executed more than
//! the checkpoint or less. The oracle draws up its books anew, without that code.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::Cut;
use fastpay_core::{Asset, SequenceNumber, ShardLayout, TransactionIndex, Transfer, Unpaid};
use fastpay_testkit::{Foundation, TestAccount};
use rand::prelude::*;

use super::contract::{Outcome, Slot, WINDOW};
use super::world::World;

/// What runs led to, so that they are known to lead to something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub decided: usize,
    pub certified: usize,
    pub rebased: usize,
    /// Rebased authorities that had not executed all of the checkpoint.
    pub behind: usize,
    /// Rebased authorities that had executed more.
    pub ahead: usize,
    pub restored: usize,
    /// Numbers that were frozen without outcome, with a certificate that is kept, or with a vote to void.
    pub frozen: usize,
    pub kept: usize,
    pub void_voted: usize,
    pub locked: usize,
    pub unpaid: usize,
}

impl World {
    pub fn certify_or_rebase(&mut self) {
        if self.chance(50) {
            return self.certify();
        }
        let newest = self.checkpoints.last().map(|newest| newest.state.cut().clone()).unwrap_or_default();
        let behind = (0..self.nodes.len()).find(|at| self.is_behind(*at, &newest));
        let anybody = self.rng.random_range(0..self.nodes.len());
        let at = behind.filter(|_| self.chance(70)).unwrap_or(anybody);
        self.rebase(at);
    }

    /// Whether a number is below the base of an authority's journals.
    pub fn is_pruned(&self, at: usize, slot: Slot) -> bool {
        slot.1 < self.nodes[at].base.1.next(&slot.0).0
    }

    /// What an authority kept of a redemption that was not paid at its base.
    pub fn unpaid(&self, at: usize, slot: Slot) -> Option<&Unpaid> {
        let shard = &self.nodes[at].authority.shards[self.shard_of(at, slot.0)];
        shard.ledger().base.as_ref()?.unpaid.get(&(slot.0, SequenceNumber(slot.1)))
    }

    /// Whether the authority now begins at the newest checkpoint, and did not before.
    pub fn rebase(&mut self, at: usize) -> bool {
        let number = self.checkpoints.len() - 1;
        let (base, before) = self.nodes[at].base.clone();
        if number == base || !self.sees_the_chain(at) || !self.counts(number) {
            return false;
        }
        let shards = if self.chance(70) { self.nodes[at].times.len() } else { self.rng.random_range(1..=3) };
        let layout = ShardLayout::new(u32::try_from(shards).ok().and_then(|count| count.try_into().ok()).unwrap());
        let newest = &self.checkpoints[number];
        let cut = newest.state.cut().clone();
        let (upto_base, upto_cut) = (index(before.up_to), index(cut.up_to));
        let events = self.final_events();
        let foundation = Foundation {
            checkpoint: newest.checkpoint,
            state: newest.state.clone(),
            before: &events[upto_base..upto_cut],
            after: events[upto_cut..].to_vec(),
            generation: number as u64,
            voidable_at: self.contract.final_time + WINDOW,
            layout,
            domain: self.committee.domain,
        };
        let applied = self.nodes[at].authority.shards.iter().map(|shard| shard.ledger().synchronized).max();
        let was_behind = self.is_behind(at, &cut);
        let held: Vec<_> = self.oracle.books[at].executed.keys().copied().collect();
        let held: Vec<_> = held.into_iter().filter(|slot| self.known_by(at, *slot).is_some()).collect();
        self.tally.rebased += 1;
        self.tally.restored += usize::from(self.nodes[at].is_restored);
        self.tally.behind += usize::from(was_behind);
        let is_ahead = |owner: &TestAccount| {
            self.oracle.books[at].next.get(&owner.id()).is_some_and(|next| *next > cut.next(&owner.id()).0)
        };
        self.tally.ahead += usize::from(self.owners.iter().any(is_ahead));
        match fastpay_testkit::rebase(&mut self.nodes[at].authority, foundation) {
            Ok(was_complete) => assert_eq!(was_complete, !was_behind, "authority {at} misjudges what it executed"),
            Err(error) => panic!("authority {at} cannot begin from checkpoint {number}: {error}"),
        }
        let node = &mut self.nodes[at];
        let time = node.times.iter().min().copied().unwrap_or_default();
        (node.times, node.base) = (vec![time; shards], (number, cut.clone()));
        let up_to = applied.unwrap_or_default().max(cut.up_to);
        self.draw_up(at, &cut, up_to);
        self.remembers(at, up_to, &held);
        // Its node does so when it starts.
        self.owners
            .iter()
            .map(TestAccount::id)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|owner| self.advance(at, owner));
        self.observe(at);
        true
    }

    /// The books of a rebased authority, which its accounts match.
    fn draw_up(&mut self, at: usize, cut: &Cut, up_to: TransactionIndex) {
        let certified = self.certificates.iter().map(|one| (one.slot, one.certificate.transfer().clone()));
        let overdrawn = self.overdrawn.iter().map(|one| one.transfer().clone());
        let overdrawn = overdrawn.map(|transfer| ((transfer.sender(), transfer.sequence().0), transfer));
        let orders: BTreeMap<Slot, Transfer> = certified.chain(overdrawn).collect();
        let is_void = |slot: &Slot| self.contract.outcomes.get(slot) == Some(&Outcome::Voided);
        let orders = orders.into_iter().filter(|(slot, _)| !is_void(slot)).collect();
        let next = cut.next.iter().map(|(account, next)| (*account, next.0)).collect();
        let shards = &self.nodes[at].authority.shards;
        self.oracle.rebased(at, (&orders, &next), index(up_to), (&self.contract, shards));
        let books = &self.oracle.books[at];
        for owner in &self.owners {
            let account = self.nodes[at].authority.account(&owner.id());
            let next = books.next.get(&owner.id()).copied().unwrap_or_default();
            assert_eq!(account.next_sequence().0, next, "authority {at} has another next number of {}", owner.id());
            let balance = books.balances.get(&owner.id()).copied().unwrap_or_default();
            let held = account.balance(Asset::ETHER).to_string();
            assert_eq!(held, balance.to_string(), "authority {at} has another balance of {}", owner.id());
        }
        for shard in &self.nodes[at].authority.shards {
            assert_eq!(shard.ledger().synchronized, up_to, "authority {at} reads events again, or steps over some");
        }
    }

    /// What an authority has said is on its disk, and so is what it has to say later: also certificates that it `held`.
    fn remembers(&mut self, at: usize, up_to: TransactionIndex, held: &[Slot]) {
        let mut tally = self.tally;
        let has_taken = |slot: Slot| self.oracle.books[at].next.get(&slot.0).is_some_and(|next| slot.1 < *next);
        let unlock = |slot: Slot| {
            let shard = &self.nodes[at].authority.shards[self.shard_of(at, slot.0)];
            shard.ledger().unlocks.get(slot.0, SequenceNumber(slot.1))
        };
        for (slot, digest) in self.oracle.votes_of(at).filter(|(slot, _)| !has_taken(*slot)) {
            let pending = self.nodes[at].authority.account(&slot.0).pending.map(|pending| pending.digest);
            let is_known = pending == Some(digest) || self.nodes[at].is_restored;
            assert!(is_known, "authority {at} forgets its vote for {} #{}", slot.0, slot.1);
            tally.locked += 1;
        }
        for (_, slot) in self.void_voters.iter().filter(|(by, slot)| *by == at && !has_taken(*slot)) {
            let is_known = unlock(*slot).is_some_and(|unlock| unlock.void_voted.is_some());
            assert!(is_known, "authority {at} forgets its vote to void {} #{}", slot.0, slot.1);
            tally.void_voted += 1;
        }
        for certified in self.certificates.iter().filter(|one| one.kept_by.contains(&at) && !has_taken(one.slot)) {
            let is_decided = self.contract.outcomes.contains_key(&certified.slot);
            let is_kept = unlock(certified.slot).is_some_and(|unlock| unlock.seen.is_some());
            let (account, sequence) = certified.slot;
            assert!(is_kept || is_decided, "authority {at} forgets a certificate of {account} #{sequence}");
            tally.kept += 1;
        }
        for slot in self.oracle.unpaid(at, &self.contract, index(up_to)) {
            let is_kept = !self.is_pruned(at, slot) || self.unpaid(at, slot).is_some();
            assert!(is_kept, "authority {at} forgets the unpaid redemption {} #{}", slot.0, slot.1);
            let is_held = !held.contains(&slot) || self.known_by(at, slot).is_some();
            assert!(is_held, "authority {at} cannot vote for the unpaid redemption {} #{}", slot.0, slot.1);
            tally.unpaid += 1;
        }
        let numbers = self.nodes[at].authority.shards.iter().flat_map(|shard| shard.ledger().unlocks.iter());
        tally.frozen += numbers.filter(|(.., unlock)| unlock.is_frozen() && unlock.outcome.is_none()).count();
        self.tally = tally;
    }

    /// Whoever lacks a number that another one has pruned begins from the newest checkpoint. Says whether somebody cannot,
    /// because the view of the chain is too old.
    pub fn catch_up(&mut self) -> bool {
        let bases: Vec<_> = self.nodes.iter().map(|node| node.base.1.clone()).collect();
        let mut is_stranded = false;
        for at in 0..self.nodes.len() {
            if bases.iter().any(|cut| self.is_behind(at, cut)) && !self.rebase(at) {
                is_stranded = true;
                assert!(
                    !self.sees_the_chain(at),
                    "authority {at} is behind what others pruned, and cannot begin there"
                );
            }
        }
        is_stranded
    }

    /// The newest checkpoint counts, whatever was installed meanwhile, and everybody can begin from it.
    pub fn begin_from_the_newest(&mut self) {
        self.follow_everywhere();
        self.certify();
        let number = self.checkpoints.len() - 1;
        assert!(self.counts(number), "checkpoint {number} counts no more");
        for at in 0..self.nodes.len() {
            let begins_there = self.rebase(at) || self.nodes[at].base.0 == number;
            assert!(begins_there, "authority {at} cannot begin from checkpoint {number}");
        }
        self.follow_everywhere();
    }
}

fn index(index: TransactionIndex) -> usize {
    usize::try_from(index.0).expect("few events")
}

//! Checkpoints of what a member has executed, or of a part of it, and rebases onto them by the code of a node's command.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::{CheckpointState, Cut, PrimaryEvent, PrimaryEventKind, Segment, SegmentError};
use fastpay_core::handover::Tenure;
use fastpay_core::private::Pool;
use fastpay_core::{AccountId, Amount, Asset, Balance, SequenceNumber, ShardLayout, TransactionIndex};
use fastpay_testkit::{Foundation, test_domain};
use rand::prelude::*;

use super::member::{Event, WINDOW};
use super::world::World;

/// Next numbers, what is held, numbers that are void or not, private orders, and locks.
type Standing = (
    BTreeMap<AccountId, SequenceNumber>,
    BTreeMap<AccountId, Balance>,
    Vec<(AccountId, SequenceNumber, bool)>,
    Pool,
    Tenure,
);

impl World {
    fn primary_events(&self) -> Vec<PrimaryEvent> {
        let kind = |event: &Event| match *event {
            Event::Deposit(amount) => {
                let (recipient, asset, amount) = (AccountId::PRIVATE_POOL, Asset::ETHER, Amount(amount));
                PrimaryEventKind::Deposit { recipient, asset, amount }
            }
            Event::Requested((account, sequence)) => {
                PrimaryEventKind::UnlockRequested { account, sequence, is_authorized: true }
            }
            Event::Upheld((account, sequence), digest) => PrimaryEventKind::Upheld { account, sequence, digest },
            Event::Voided((account, sequence)) => PrimaryEventKind::Voided { account, sequence },
            Event::Installed(epoch) => PrimaryEventKind::Installed(self.installed(epoch.0 as usize)),
        };
        let events = (1..).map(TransactionIndex).zip(&self.events);
        events.map(|(index, event)| PrimaryEvent { index, kind: kind(event) }).collect()
    }

    fn next_of(&self, operator: usize) -> BTreeMap<AccountId, SequenceNumber> {
        let accounts = self.operators[operator].shard().accounts();
        let next = accounts.into_iter().map(|(account, state)| (account, state.next_sequence()));
        next.filter(|(_, next)| next.0 > 0).collect()
    }

    /// Whether a member has all of the newest checkpoint.
    fn has_newest(&self, operator: usize) -> bool {
        let (_, state) = self.checkpoints.last().unwrap();
        let (next, applied) = (self.next_of(operator), self.operators[operator].shard().ledger().synchronized);
        let has = |(account, included)| next.get(account).is_some_and(|next| next >= included);
        applied >= state.cut().up_to && state.cut().next.iter().all(has)
    }

    fn segment(&self, operator: usize, from: &Cut, to: &Cut) -> Segment {
        let records = self.operators[operator].shard().journal().records();
        Segment::from_records(self.primary_events(), records.map(|(_, record)| record), from, to)
    }

    /// A member proposes a checkpoint of `all` that it has executed, or of a part, and who has all of it computes the same.
    pub fn certify(&mut self, operator: usize, all: bool) {
        if !self.has_newest(operator) {
            return;
        }
        let (last, base) = self.checkpoints.last().unwrap().clone();
        let from = base.cut().clone();
        let mut cut =
            Cut { up_to: self.operators[operator].shard().ledger().synchronized, next: self.next_of(operator) };
        if !all {
            for (account, next) in &mut cut.next {
                next.0 = self.rng.random_range(from.next(account).0..=next.0);
            }
        }
        let (state, segment, root) = loop {
            let segment = self.segment(operator, &from, &cut);
            let (account, next) = match base.clone().apply(segment.clone(), &test_domain(), &mut self.rng) {
                Ok((state, root)) => break (state, segment, root),
                Err(SegmentError::Empty) => return,
                Err(SegmentError::Frozen { account, sequence } | SegmentError::NotVoided { account, sequence }) => {
                    (account, sequence)
                }
                Err(error) => panic!("what was executed cannot be certified: {error}"),
            };
            cut.next.insert(account, next);
        };
        let epoch = state.installations().epoch();
        let checkpoint = last.next(&test_domain(), epoch, &state.summary(), root).unwrap();
        self.check_stored(&state);
        self.checkpoints.push((checkpoint, state));
        let (_, state) = self.checkpoints.last().unwrap();
        for other in self.honest() {
            let begins_before = self.operators[other].base + 1 < self.checkpoints.len();
            if begins_before && self.has_newest(other) && self.operators[other].base <= self.operators[operator].base {
                assert_eq!(self.segment(other, &from, state.cut()), segment, "member {other} has another segment");
            }
        }
    }

    fn check_stored(&self, state: &CheckpointState) {
        let mut bytes = Vec::new();
        state.write(&mut bytes).unwrap();
        assert_eq!(CheckpointState::read(&mut bytes.as_slice()).unwrap(), *state);
    }

    /// A member that has all of it begins from the newest checkpoint, and is what it was.
    pub fn rebase(&mut self, operator: usize) {
        let number = self.checkpoints.len() - 1;
        if self.operators[operator].base == number || !self.has_newest(operator) {
            return;
        }
        let (checkpoint, state) = self.checkpoints[number].clone();
        let (_, before) = &self.checkpoints[self.operators[operator].base];
        let [from, to] = [before, &state].map(|state| state.cut().up_to.0 as usize);
        let events = self.primary_events();
        let foundation = Foundation {
            checkpoint,
            state,
            before: &events[from..to],
            after: events[to..].to_vec(),
            generation: number as u64,
            voidable_at: self.now + WINDOW,
            layout: ShardLayout::new(1.try_into().unwrap()),
            domain: test_domain(),
        };
        let standing = self.standing(operator);
        let member = &mut self.operators[operator];
        let was_complete = fastpay_testkit::rebase(&mut member.authority, foundation).expect("it has all of it");
        assert!(was_complete);
        (member.noted, member.base) = (member.shard().journal_end(), number);
        let after = self.standing(operator);
        assert_eq!((&after.0, &after.1, &after.2), (&standing.0, &standing.1, &standing.2), "member {operator}");
        assert!((after.3, after.4) == (standing.3, standing.4), "member {operator} has other private orders or locks");
        self.tally.rebased += 1;
    }

    /// What a member knows, but for the places in its journal.
    fn standing(&self, operator: usize) -> Standing {
        let shard = self.operators[operator].shard();
        let held = shard.accounts().into_iter().map(|(id, state)| (id, state.balance(Asset::ETHER)));
        let held = held.filter(|(_, held)| *held != Balance::ZERO).collect();
        let unlocks: Vec<_> =
            shard.ledger().unlocks.iter().map(|(id, at, unlock)| (id, at, unlock.is_voided())).collect();
        (self.next_of(operator), held, unlocks, shard.ledger().pool.clone(), shard.ledger().tenure.clone())
    }

    /// The newest checkpoint's state of everything is what each member has.
    pub fn check_newest(&self) {
        let (_, state) = self.checkpoints.last().unwrap();
        for operator in self.honest() {
            let shard = self.operators[operator].shard();
            assert_eq!(state.cut().next, self.next_of(operator));
            for (account, known) in shard.accounts() {
                let held = state.balances().get(&(account, Asset::ETHER)).copied().unwrap_or_default();
                assert_eq!(known.balance(Asset::ETHER), held);
            }
        }
    }
}

use std::collections::{BTreeMap, BTreeSet};

use borsh::BorshDeserialize;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::amount::{Amount, Asset};

fn id(number: u64) -> AccountId {
    let mut id = [7; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    AccountId(id)
}

/// Loads an account, as a new one, and changes it.
fn change(table: &mut AccountTable, id: AccountId) {
    visit(table, id);
    let account = table.get_mut(&id).unwrap();
    account.balances.change(Asset::ETHER, |balance| balance.credit(Amount(1)));
}

/// Loads an account for a decision that holds it no longer.
fn visit(table: &mut AccountTable, id: AccountId) {
    table.load(id, Account::default());
    table.release();
}

/// All that a checkpoint takes, in slices.
fn take_all(table: &mut AccountTable) -> BTreeMap<AccountId, Vec<u8>> {
    let mut all = BTreeMap::new();
    while let Some(slice) = table.take(3) {
        for (id, bytes) in slice {
            assert!(all.insert(id, bytes).is_none(), "an account is taken once");
        }
    }
    all
}

fn store_all(table: &mut AccountTable) {
    table.begin_checkpoint();
    take_all(table);
    table.finish_checkpoint();
}

#[test]
fn accounts_at_work_stay_while_others_come_and_go() {
    let mut table = AccountTable::new(100);
    for round in 0..50 {
        for number in 0..20 {
            if round > 0 {
                assert!(table.get(&id(number)).is_some(), "{number} in round {round}");
            }
            change(&mut table, id(number));
        }
        for visitor in 0..30 {
            change(&mut table, id(1_000 + round * 30 + visitor));
        }
        store_all(&mut table);
        assert!(table.len() <= 100);
    }
}

#[test]
fn strangers_who_name_many_accounts_push_out_one_at_most() {
    let mut table = AccountTable::new(1_000);
    for number in 0..1_000 {
        change(&mut table, id(number));
        if number % 100 == 99 {
            store_all(&mut table);
        }
    }
    for stranger in 10_000..40_000 {
        visit(&mut table, id(stranger));
        table.unload(&id(stranger));
    }
    assert_eq!((0..1_000).filter(|number| table.get(&id(*number)).is_none()).count(), 1);
    assert_eq!(table.len(), 999);
}

#[test]
fn what_the_store_does_not_have_stays_and_then_there_is_no_room() {
    let mut table = AccountTable::new(10);
    let mut changed = 0;
    while table.has_room(2) {
        change(&mut table, id(changed));
        changed += 1;
    }
    assert_eq!(changed, 9);
    table.begin_checkpoint();
    assert!(!table.has_room(2), "begun is not stored");
    change(&mut table, id(0));
    take_all(&mut table);
    assert!(!table.has_room(2), "taken is not stored");
    table.unload(&id(1));
    table.finish_checkpoint();
    for visitor in 100..150 {
        visit(&mut table, id(visitor));
    }
    let kept: Vec<u64> = (0..changed).filter(|number| table.get(&id(*number)).is_some()).collect();
    assert_eq!(kept, [0], "only what changed after the checkpoint began must stay");
    assert_eq!(table.len(), 10);
    table.unload(&id(0));
    assert!(table.get(&id(0)).is_some(), "it is not in the store");
}

#[test]
fn the_accounts_of_one_record_find_room_together() {
    for turn in 0..10 {
        let mut table = AccountTable::new(10);
        // Two that may leave, wherever the hand stands, and eight that may not.
        for number in 0..10 {
            change(&mut table, id(number));
            store_all(&mut table);
        }
        (0..turn).for_each(|visitor| visit(&mut table, id(100 + visitor)));
        let here: Vec<u64> = (0..200).filter(|number| table.get(&id(*number)).is_some()).collect();
        here[2..].iter().for_each(|number| change(&mut table, id(*number)));
        let pair = [id(here[0]), id(1_000)];
        assert!(table.has_room(pair.len()));
        pair.iter().for_each(|id| table.load(*id, Account::default()));
        assert!(pair.iter().all(|id| table.get(id).is_some()));
        assert_eq!(table.len(), 10);
        assert!(here[2..].iter().all(|number| table.get(&id(*number)).is_some()));
    }
}

#[test]
fn a_sender_and_all_recipients_of_the_largest_payout_find_room_in_the_smallest_table() {
    let mut table = AccountTable::new(ACCOUNTS_MIN);
    for number in 0..3 {
        change(&mut table, id(number));
    }
    assert!(!table.has_room(ACCOUNTS_PER_RECORD_MAX), "what the store does not have must stay");
    store_all(&mut table);
    for payout in 0..3 {
        let accounts: Vec<_> = (0..ACCOUNTS_PER_RECORD_MAX as u64).map(|number| id(payout * 100 + number)).collect();
        assert!(table.has_room(accounts.len()));
        accounts.iter().for_each(|id| table.load(*id, Account::default()));
        assert!(accounts.iter().all(|id| table.get(id).is_some()), "each is held while the others are loaded");
        assert_eq!(table.len(), ACCOUNTS_PER_RECORD_MAX);
        accounts.iter().for_each(|id| assert!(table.get_mut(id).is_some()));
        table.release();
        assert!(!table.has_room(1));
        store_all(&mut table);
    }
    assert_eq!(table.len(), ACCOUNTS_PER_RECORD_MAX);
}

#[test]
fn what_a_decision_holds_does_not_leave() {
    let mut table = AccountTable::new(4);
    table.load(id(0), Account::default());
    table.unload(&id(0));
    for visitor in 1..50 {
        table.load(id(visitor), Account::default());
        if visitor >= 3 {
            assert!(table.get(&id(0)).is_some() && table.len() <= 50);
        }
    }
    assert!((0..50).all(|number| table.get(&id(number)).is_some()));
    table.release();
    table.unload(&id(0));
    assert!(table.get(&id(0)).is_none());
}

#[test]
#[should_panic(expected = "what was not taken is not stored")]
fn a_checkpoint_is_not_finished_before_all_is_taken() {
    let mut table = AccountTable::new(10);
    change(&mut table, id(0));
    table.begin_checkpoint();
    table.finish_checkpoint();
}

#[derive(Clone, Debug)]
enum Step {
    Change(u64),
    Look(u64),
    /// The next part of a checkpoint: its beginning, a slice, its end.
    Checkpoint(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..40_u64).prop_map(Step::Change),
        2 => (0..200_u64).prop_map(Step::Look),
        4 => (1..5_usize).prop_map(Step::Checkpoint),
    ]
}

/// A table, the store behind it, and what all accounts must be.
struct World {
    table: AccountTable,
    store: BTreeMap<AccountId, Vec<u8>>,
    taken: BTreeMap<AccountId, Vec<u8>>,
    truth: BTreeMap<AccountId, Vec<u8>>,
    /// The truth when the checkpoint under way began.
    at_begin: Option<BTreeMap<AccountId, Vec<u8>>>,
}

impl World {
    fn load(&mut self, id: AccountId) {
        self.table.release();
        while !self.table.has_room(2) {
            self.checkpoint(1);
        }
        let stored = self.store.get(&id).map(|bytes| Account::try_from_slice(bytes).unwrap());
        self.table.load(id, stored.unwrap_or_default());
    }

    fn checkpoint(&mut self, limit: usize) {
        let Some(at_begin) = &self.at_begin else {
            self.at_begin = Some(self.truth.clone());
            return self.table.begin_checkpoint();
        };
        match self.table.take(limit) {
            Some(slice) => {
                for (id, bytes) in slice {
                    assert!(self.taken.insert(id, bytes).is_none(), "an account is taken once");
                }
            }
            None => {
                self.store.append(&mut self.taken);
                assert_eq!(&self.store, at_begin, "the store is what all accounts were when it began");
                self.table.finish_checkpoint();
                self.at_begin = None;
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Change(number) => {
                self.load(id(*number));
                let account = self.table.get_mut(&id(*number)).unwrap();
                account.balances.change(Asset::ETHER, |balance| balance.credit(Amount(1)));
                self.truth.insert(id(*number), encode(account));
            }
            Step::Look(number) => {
                self.load(id(*number));
                let (found, truth) = (self.table.get(&id(*number)).unwrap(), self.truth.get(&id(*number)));
                assert_eq!(Some(&encode(found)), truth.or(Some(&encode(&Account::default()))));
                self.table.release();
                self.table.unload(&id(*number));
            }
            Step::Checkpoint(limit) => self.checkpoint(*limit),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_checkpoint_in_slices_is_the_state_when_it_began(accounts_max in 4..60_usize, steps in vec(step(), 1..400)) {
        let table = AccountTable::new(accounts_max);
        let (store, taken, truth) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut world = World { table, store, taken, truth, at_begin: None };
        for step in &steps {
            world.take(step);
            prop_assert!(world.table.len() <= accounts_max);
        }
        let everybody: BTreeSet<u64> = (0..40).collect();
        everybody.into_iter().for_each(|number| world.take(&Step::Look(number)));
    }
}

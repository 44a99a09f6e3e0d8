//! Private payments, whatever happens in whatever order: conflicting orders, hidden certificates, numbers that are unlocked,
//! committees that follow each other, and members that crash.

mod checkpoints;
mod member;
mod world;

use std::collections::BTreeMap;

use fastpay_core::private::*;
use fastpay_core::{AccountId, Amount, Balance, SequenceNumber};
use rand::prelude::*;

use self::member::versions;
use self::world::{Tally, World};
use super::seeds;
use crate::private_orders::{nullifier, transfer};

/// Money as its owners know it, who prove nothing false: accounts and coins by their nullifiers.
#[derive(Default)]
struct Owners {
    accounts: BTreeMap<u64, u128>,
    coins: BTreeMap<u64, u128>,
    nullifiers: u64,
    /// Of each order, what it pays privately.
    paid: Vec<u128>,
    /// How many of the executed orders are taken into account.
    settled: usize,
}

impl Owners {
    fn nullifier(&mut self) -> u64 {
        self.nullifiers += 1;
        self.nullifiers
    }

    fn deposit(&mut self, world: &mut World, amount: u128) {
        world.deposit(amount);
        let coin = self.nullifier();
        self.coins.insert(coin, amount);
    }

    /// An order of some account under the number that is free as far as the contract has said. It may conflict with others of
    /// the account, and of the coin.
    fn intend(&mut self, world: &mut World) -> usize {
        let account = match self.accounts.keys().copied().collect::<Vec<_>>().choose(&mut world.rng) {
            Some(account) if world.chance(80) => *account,
            _ => {
                let first = self.nullifier();
                self.accounts.insert(first, 0);
                first
            }
        };
        let coin = match self.coins.keys().copied().collect::<Vec<_>>().choose(&mut world.rng) {
            Some(coin) if world.chance(80) => *coin,
            _ => self.nullifier(),
        };
        let all = self.accounts[&account] + self.coins.get(&coin).copied().unwrap_or(0);
        let (paid, withdrawn) = match world.rng.random_range(0..3) {
            0 => (0, world.rng.random_range(0..=all)),
            1 => (world.rng.random_range(0..=all), 0),
            _ => (0, 0),
        };
        self.order(world, (account, coin), (paid, withdrawn))
    }

    fn order(&mut self, world: &mut World, (account, coin): (u64, u64), (paid, withdrawn): (u128, u128)) -> usize {
        let mut sequence = SequenceNumber(0);
        while world.decided.get(&(nullifier(account).account(), sequence)) == Some(&None) {
            sequence = sequence.next().unwrap();
        }
        // Two orders of the same amounts and nullifiers are two nevertheless: their commitments differ.
        let mut commitment = [0; 32];
        commitment[24..].copy_from_slice(&self.nullifier().to_be_bytes());
        let committee = versions(world.epoch()).committee;
        let transfer = transfer(account, coin, withdrawn);
        let transfer = PrivateTransfer { sequence, committee, account: commitment.into(), ..transfer };
        self.paid.push(paid);
        world.order(transfer)
    }

    /// Takes what was executed into account.
    fn settle(&mut self, world: &World) {
        for order in &world.executed[self.settled..] {
            let PrivateTransfer { account_spent, coin_spent, amount_out, .. } = *world.orders[*order].transfer();
            let number = |nullifier: Nullifier| u64::from_be_bytes(nullifier.0[24..].try_into().unwrap());
            let balance = self.accounts.remove(&number(account_spent)).expect("an account is spent once");
            let claimed = self.coins.remove(&number(coin_spent)).unwrap_or(0);
            let left = (balance + claimed).checked_sub(self.paid[*order] + amount_out.0).expect("an honest order");
            let (account, coin) = (self.nullifier(), self.nullifier());
            self.accounts.insert(account, left);
            self.coins.insert(coin, self.paid[*order]);
        }
        self.settled = world.executed.len();
    }

    fn hold(&self) -> u128 {
        self.accounts.values().chain(self.coins.values()).sum()
    }
}

/// One step of anybody.
fn step(world: &mut World, rotates: bool) {
    let (honest, term) = (world.honest(), world.terms.len() - 1);
    let operator = *honest.choose(&mut world.rng).unwrap();
    match world.rng.random_range(0..100) {
        0..50 if !world.orders.is_empty() => {
            // Often a new one. Of an earlier committee only the faulty member and whoever closes late still vote.
            let newest = world.orders.len() - 1;
            let from = if world.chance(70) { newest.saturating_sub(3) } else { 0 };
            let order = world.rng.random_range(from..=newest);
            let term = if world.chance(80) { term } else { world.rng.random_range(0..=term) };
            let member = world.rng.random_range(0..4);
            world.ask(term, member, order);
        }
        50..65 if !world.certificates.is_empty() => {
            let certificate = world.rng.random_range(0..world.certificates.len());
            if !world.is_hidden(certificate) {
                world.show(certificate, operator);
            }
        }
        65..75 => world.follow(operator),
        75..80 if !world.orders.is_empty() && world.chance(50) => {
            let order = world.rng.random_range(0..world.orders.len());
            let PrivateTransfer { account_spent, sequence, .. } = *world.orders[order].transfer();
            world.request(account_spent, sequence);
        }
        80..90 => {
            let Some(number) = world.requested.iter().copied().choose(&mut world.rng) else { return };
            let member = world.rng.random_range(0..4);
            world.vote_to_void(member, number);
        }
        90..96 => world.wait(),
        96..97 => world.operators[operator].restart(),
        97 if world.chance(50) => {
            let all = world.chance(50);
            world.certify(operator, all);
        }
        97 => world.rebase(operator),
        98.. if rotates && world.chance(60) && world.terms.len() < 5 => world.rotate(),
        _ => {}
    }
}

/// The owners of what is still locked have it unlocked, until nothing is.
fn unlock_all(world: &mut World, owners: &mut Owners) {
    world.settle();
    owners.settle(world);
    for operator in world.honest() {
        let pool = world.operators[operator].shard().ledger().pool.clone();
        for (lock, _) in pool.locks() {
            world.request(lock.transfer().account_spent, lock.transfer().sequence);
        }
        for seen in pool.waiting() {
            let PrivateTransfer { account_spent, sequence, .. } = seen.certificate.order.transfer;
            world.request(account_spent, sequence);
        }
    }
    (0..3).for_each(|_| world.settle());
    for _ in 0..5 {
        world.wait();
        world.settle();
    }
    for number in world.requested.clone() {
        (0..4).for_each(|member| world.vote_to_void(member, number));
    }
    world.settle();
    owners.settle(world);
    for operator in world.honest() {
        let pool = &world.operators[operator].shard().ledger().pool;
        assert!(pool.is_empty(), "something stays locked");
    }
}

/// With honest proofs the pool is what owners hold. A nullifier is spent once, over all epochs, and nothing stays locked: once
/// its owner has a number unlocked, it is executed, or a new order of the account is.
#[test]
fn the_pool_is_what_its_owners_hold_and_nothing_freezes() {
    let mut all = Tally::default();
    for seed in seeds(0..40, 10) {
        println!("seed {seed}");
        let (mut world, mut owners) = (World::new(seed), Owners::default());
        for _ in 0..400 {
            match world.rng.random_range(0..12) {
                0 => {
                    let amount = world.rng.random_range(1..100);
                    owners.deposit(&mut world, amount);
                }
                1 => drop(owners.intend(&mut world)),
                _ => step(&mut world, true),
            }
            owners.settle(&world);
        }
        unlock_all(&mut world, &mut owners);
        // What was hidden so far comes too late.
        for certificate in 0..world.certificates.len() {
            world.honest().into_iter().for_each(|operator| world.show(certificate, operator));
        }
        // Everything can be claimed and moved.
        let account = owners.nullifier();
        owners.accounts.insert(account, 0);
        for coin in owners.coins.keys().copied().collect::<Vec<_>>() {
            let account = *owners.accounts.keys().last().unwrap();
            execute(&mut world, &mut owners, (account, coin));
        }
        for account in owners.accounts.keys().copied().collect::<Vec<_>>() {
            let coin = owners.nullifier();
            execute(&mut world, &mut owners, (account, coin));
        }
        assert_eq!(world.deposited - world.withdrawn, owners.hold());
        for operator in world.honest() {
            let held = Balance::from(Amount(world.deposited)).debit(Amount(world.withdrawn));
            assert_eq!(world.operators[operator].held(), held);
            let paid = world.operators[operator].shard().account(&AccountId([0xaa; 32]));
            assert_eq!(paid.balance(fastpay_core::Asset::ETHER), Balance::from(Amount(world.withdrawn)));
        }
        world.certify(world.honest()[0], true);
        world.honest().into_iter().for_each(|operator| world.rebase(operator));
        world.check_newest();
        let Tally { certified, executed, voided, upheld, dead, joined, rebased, inherited, refused } = world.tally;
        all.certified += certified;
        all.executed += executed;
        all.voided += voided;
        all.upheld += upheld;
        all.dead += dead;
        all.joined += joined;
        all.rebased += rebased;
        all.inherited += inherited;
        all.refused += refused;
    }
    println!("{all:?}");
    let Tally { certified, executed, voided, upheld, dead, joined, rebased, inherited, refused } = all;
    let least = [certified / 40, executed / 40, voided, upheld, dead, joined, rebased, inherited, refused];
    let least = least.into_iter().min();
    assert!(least >= Some(10), "too little happened: {all:?}");
}

/// An account and a coin that nothing holds are spent at once by a new order.
fn execute(world: &mut World, owners: &mut Owners, numbers: (u64, u64)) {
    let (order, certified) = (owners.order(world, numbers, (0, 0)), world.certificates.len());
    world.ask_all(order);
    assert_eq!(world.certificates.len(), certified + 1, "{numbers:?} is free everywhere");
    world.honest().into_iter().for_each(|operator| world.show(certified, operator));
    owners.settle(world);
    assert_eq!(world.executed.last(), Some(&order));
}

/// With a broken circuit anybody proves anything. What is taken is bounded nevertheless, over all epochs.
#[test]
fn false_proofs_take_no_more_than_the_bound_over_all_epochs() {
    let mut most = 0.0_f64;
    for seed in seeds(0..40, 10) {
        println!("seed {seed}");
        let (mut world, mut nullifiers) = (World::new(seed), 0);
        let rotates = world.chance(70);
        let amount = world.rng.random_range(50..100);
        world.deposit(amount);
        world.honest().into_iter().for_each(|operator| world.follow(operator));
        for _ in 0..500 {
            if !world.chance(30) {
                step(&mut world, rotates);
                continue;
            }
            // A withdrawal of what two honest members have left, or of anything.
            let mut members: Vec<usize> = (0..4).collect();
            members.shuffle(&mut world.rng);
            let term = &world.terms[world.terms.len() - 1];
            let left = |member: &usize| {
                let member = &world.operators[term.members[*member]?];
                let reserved = member.shard().ledger().pool.reserved(fastpay_core::Asset::ETHER);
                Some(member.held().plus(reserved.negated()).spendable().0)
            };
            members.truncate(3);
            let most = members.iter().filter_map(left).min().unwrap();
            if most == 0 {
                continue;
            }
            let amount = world.rng.random_range(1..=most.min(40));
            nullifiers += 2;
            let (account, coin) = (nullifiers, if world.chance(90) { nullifiers + 1 } else { nullifiers - 1 });
            let committee = versions(world.epoch()).committee;
            let order = world.order(PrivateTransfer { committee, ..transfer(account, coin, amount) });
            let term = world.terms.len() - 1;
            for member in members {
                world.ask(term, member, order);
            }
        }
        for certificate in 0..world.certificates.len() {
            world.honest().into_iter().for_each(|operator| world.show(certificate, operator));
        }
        assert!(2 * world.withdrawn <= 3 * world.deposited, "{} of {}", world.withdrawn, world.deposited);
        most = most.max(world.withdrawn as f64 / world.deposited as f64);
    }
    println!("at most {most} times the pool");
    assert!(most > 1.2, "false proofs took at most {most} times the pool: too little for a test of the bound");
}

/// The bound is reached: of four members, three pairs of honest ones certify one half of the pool each.
#[test]
fn three_quorums_take_one_and_a_half_pools() {
    let mut world = World::new(0);
    world.deposit(100);
    world.honest().into_iter().for_each(|operator| world.follow(operator));
    let members: Vec<_> = (0..4).filter(|member| world.terms[0].members[*member].is_some()).collect();
    let faulty = (0..4).find(|member| world.terms[0].members[*member].is_none()).unwrap();
    let withdraw = |world: &mut World, number: u64, amount| {
        world.order(PrivateTransfer { committee: 0, ..transfer(2 * number, 2 * number + 1, amount) })
    };
    for (number, pair) in (1..).zip([[0, 1], [1, 2], [0, 2], [0, 1]]) {
        let order = withdraw(&mut world, number, 50);
        world.ask(0, faulty, order);
        for at in pair {
            world.ask(0, members[at], order);
        }
    }
    assert_eq!(world.certificates.len(), 3);
    for certificate in 0..3 {
        world.honest().into_iter().for_each(|operator| world.show(certificate, operator));
    }
    assert_eq!(world.withdrawn, 150);
    // Below zero, and no member votes for a withdrawal any more, however small.
    assert!(world.operators.iter().all(|member| !member.held().covers(Amount(0))));
    let (smallest, nothing) = (withdraw(&mut world, 50, 1), withdraw(&mut world, 60, 0));
    assert!(!members.iter().any(|member| world.ask(0, *member, smallest)));
    assert!(members.iter().all(|member| world.ask(0, *member, nothing)));
}

//! The pool of private payments, whatever happens in whatever order: members vote for conflicting orders, certificates
//! and deposits come late and repeated, members crash, and f of them vote for everything.

use std::collections::{BTreeMap, HashMap};

use fastpay_core::private::*;
use fastpay_core::{Amount, Asset, Balance, Digest, JournalPosition, PrimaryAddress, VerifiedVote};
use fastpay_testkit::TestCommittee;
use rand::prelude::*;
use rand::rngs::StdRng;
use rand::seq::index::sample;

use super::seeds;
use crate::private_orders::{VERSIONS, transfer, verified, votes};

/// What a member gets, in any order and more than once.
#[derive(Clone)]
enum Message {
    /// Credited to the pool by the ordinary rules, which drop repetitions by the number.
    Deposit {
        number: usize,
        asset: Asset,
        amount: u128,
    },
    Certificate(VerifiedPrivateCertificate),
}

/// An honest member: the pool, its account, and the records from which both can be made anew.
#[derive(Clone, Default)]
struct Member {
    pool: Pool,
    held: BTreeMap<Asset, Balance>,
    paid_out: BTreeMap<Asset, u128>,
    deposits: BTreeMap<usize, (Asset, u128)>,
    journal: Vec<PrivateRecord>,
}

impl Member {
    fn held(&self, asset: Asset) -> Balance {
        self.held.get(&asset).copied().unwrap_or_default()
    }

    /// What it would let out.
    fn left(&self, asset: Asset) -> Balance {
        self.held(asset).plus(self.pool.reserved(asset).negated())
    }

    fn deposit(&mut self, number: usize, asset: Asset, amount: u128) {
        if self.deposits.insert(number, (asset, amount)).is_none() {
            let held = self.held(asset).credit(Amount(amount));
            self.held.insert(asset, held);
        }
    }

    fn apply(&mut self, record: PrivateRecord) {
        let position = JournalPosition(self.journal.len() as u64 + 1);
        if let Some(Withdrawal { asset, amount, .. }) = self.pool.apply(&record, position) {
            let held = self.held(asset).debit(amount);
            self.held.insert(asset, held);
            *self.paid_out.entry(asset).or_default() += amount.0;
        }
        self.journal.push(record);
    }

    /// Whether it votes for the order.
    fn lock(&mut self, order: &VerifiedPrivateOrder) -> bool {
        let asset = order.transfer().asset;
        match self.pool.lock(order, &VERSIONS, self.held(asset)) {
            PoolDecision::Commit(record) => {
                self.apply(record);
                let amount = order.transfer().amount_out;
                let reserves_too_much = amount != Amount(0) && self.held(asset) < self.pool.reserved(asset);
                assert!(!reserves_too_much, "it reserves no more than there is");
                true
            }
            PoolDecision::Already => true,
            PoolDecision::Refuse(_) => false,
        }
    }

    fn receive(&mut self, message: &Message) {
        match message {
            Message::Deposit { number, asset, amount } => self.deposit(*number, *asset, *amount),
            Message::Certificate(certificate) => match self.pool.confirm(certificate) {
                PoolDecision::Commit(record) => self.apply(record),
                PoolDecision::Already => {}
                PoolDecision::Refuse(rejection) => panic!("a certificate is refused: {rejection}"),
            },
        }
    }

    /// From its deposits and its journal alone.
    fn recovered(&self) -> Self {
        let mut anew = Self::default();
        for (number, (asset, amount)) in &self.deposits {
            anew.deposit(*number, *asset, *amount);
        }
        self.journal.iter().for_each(|record| anew.apply(record.clone()));
        assert_eq!((&anew.pool, &anew.held), (&self.pool, &self.held));
        anew
    }
}

/// A committee whose last f members vote for everything.
struct Network {
    committee: TestCommittee,
    honest: Vec<Member>,
    /// For each honest member, what it did not get yet.
    waiting: Vec<Vec<Message>>,
    sent: Vec<Message>,
    deposited: BTreeMap<Asset, u128>,
    deposits: usize,
    votes: HashMap<Digest, Vec<VerifiedVote>>,
    /// Of each nullifier that a certificate spends, the digest: no second one may be there.
    spent: HashMap<Nullifier, Digest>,
    withdrawn: BTreeMap<Asset, u128>,
}

impl Network {
    fn new(members: usize) -> Self {
        let committee = TestCommittee::new(members);
        let honest = members - committee.committee.faults_tolerated();
        Self {
            committee,
            honest: vec![Member::default(); honest],
            waiting: vec![Vec::new(); honest],
            sent: Vec::new(),
            deposited: BTreeMap::new(),
            deposits: 0,
            votes: HashMap::new(),
            spent: HashMap::new(),
            withdrawn: BTreeMap::new(),
        }
    }

    /// The honest votes that a certificate needs beside those of the faulty members.
    fn honest_votes(&self) -> usize {
        self.committee.committee.quorum() - self.committee.committee.faults_tolerated()
    }

    fn order(&self, transfer: PrivateTransfer) -> VerifiedPrivateOrder {
        verified(&self.committee.domain, transfer)
    }

    fn send(&mut self, message: Message) {
        self.waiting.iter_mut().for_each(|waiting| waiting.push(message.clone()));
        self.sent.push(message);
    }

    fn deposit(&mut self, asset: Asset, amount: u128) {
        *self.deposited.entry(asset).or_default() += amount;
        self.deposits += 1;
        self.send(Message::Deposit { number: self.deposits, asset, amount });
    }

    /// Asks an honest member for its vote, and the faulty ones for theirs. Whether this certified the order.
    fn ask(&mut self, member: usize, order: &VerifiedPrivateOrder) -> bool {
        if !self.honest[member].lock(order) {
            return false;
        }
        let all = self.committee.keys.len();
        let mut voters: Vec<usize> = (self.honest.len()..all).collect();
        voters.push(member);
        let votes = votes(&self.committee, order, &voters);
        let known = self.votes.entry(order.digest()).or_default();
        known.extend(votes);
        let Some(certificate) = PrivateCertificate::from_votes(order, &self.committee.committee, known) else {
            return false;
        };
        let TestCommittee { domain, committee, .. } = &self.committee;
        let certificate = PrivateCertificate::clone(certificate.certificate()).verify(domain, committee).unwrap();
        let is_new = order.transfer().spent().map(|nullifier| self.spent.insert(nullifier, order.digest()));
        match is_new {
            [None, None] => {
                let PrivateTransfer { asset, amount_out, .. } = *order.transfer();
                *self.withdrawn.entry(asset).or_default() += amount_out.0;
                self.send(Message::Certificate(certificate));
                true
            }
            before => {
                assert_eq!(before, [Some(order.digest()); 2], "a nullifier has one digest");
                false
            }
        }
    }

    fn deliver(&mut self, random: &mut StdRng) {
        let member = random.random_range(0..self.honest.len());
        if self.waiting[member].is_empty() {
            return;
        }
        let at = random.random_range(0..self.waiting[member].len());
        let message = self.waiting[member].swap_remove(at);
        self.honest[member].receive(&message);
    }

    /// Gives a member something once more that it may have. It changes nothing that it had.
    fn repeat(&mut self, random: &mut StdRng) {
        let member = random.random_range(0..self.honest.len());
        let Some(message) = self.sent.choose(random).cloned() else { return };
        self.honest[member].receive(&message);
        let before = (self.honest[member].pool.clone(), self.honest[member].held.clone());
        self.honest[member].receive(&message);
        assert_eq!((self.honest[member].pool.clone(), self.honest[member].held.clone()), before);
    }

    /// Delivers everything, and audits: all have the same, and the pool is deposits less withdrawals.
    fn finish(&mut self) {
        for (member, waiting) in self.honest.iter_mut().zip(&mut self.waiting) {
            waiting.drain(..).for_each(|message| member.receive(&message));
            member.recovered();
        }
        for member in &self.honest {
            for (asset, deposited) in &self.deposited {
                let withdrawn = self.withdrawn.get(asset).copied().unwrap_or_default();
                assert_eq!(member.paid_out.get(asset).copied().unwrap_or_default(), withdrawn);
                assert_eq!(member.held(*asset), Balance::from(Amount(*deposited)).debit(Amount(withdrawn)));
            }
            for (nullifier, digest) in &self.spent {
                let Some(NullifierUse::Spent { digest: found, .. }) = member.pool.nullifier(nullifier) else {
                    panic!("a certificate spent {nullifier:?}");
                };
                assert_eq!(found, digest);
            }
        }
    }
}

const ASSETS: [Asset; 2] = [Asset::ETHER, Asset(PrimaryAddress::repeat_byte(7))];

/// Money as its owners know it, who prove nothing false: of each asset, accounts and coins by their nullifiers.
#[derive(Default)]
struct Owners {
    accounts: Vec<(Asset, u64, u128)>,
    coins: Vec<(Asset, u64, u128)>,
    nullifiers: u64,
}

/// What an honest order does once it is certified.
#[derive(Clone)]
struct Intent {
    order: VerifiedPrivateOrder,
    paid: u128,
}

impl Owners {
    fn nullifier(&mut self) -> u64 {
        self.nullifiers += 1;
        self.nullifiers
    }

    /// An order of some account, which may conflict with others of it that are under way.
    fn intend(&mut self, network: &Network, random: &mut StdRng) -> Intent {
        let (asset, account, balance) = match self.accounts.choose(random) {
            Some(account) if random.random_bool(0.8) => *account,
            _ => {
                let first = (*ASSETS.choose(random).unwrap(), self.nullifier(), 0);
                self.accounts.push(first);
                first
            }
        };
        let of_asset: Vec<_> = self.coins.iter().filter(|coin| coin.0 == asset).copied().collect();
        let (coin, claimed) = match of_asset.choose(random) {
            Some((_, coin, value)) if random.random_bool(0.8) => (*coin, *value),
            _ => (self.nullifier(), 0),
        };
        let all = balance + claimed;
        let (paid, withdrawn) = match random.random_range(0..3) {
            0 => (0, random.random_range(0..=all)),
            1 => (random.random_range(0..=all), 0),
            _ => (0, 0),
        };
        let transfer = PrivateTransfer { asset, ..transfer(account, coin, withdrawn) };
        // Two orders of the same amounts and nullifiers are two nevertheless: their commitments differ.
        let mut commitment = [0; 32];
        commitment[24..].copy_from_slice(&self.nullifier().to_be_bytes());
        Intent { order: network.order(PrivateTransfer { account: commitment.into(), ..transfer }), paid }
    }

    fn settle(&mut self, intent: &Intent) {
        let PrivateTransfer { asset, account_spent, coin_spent, amount_out, .. } = *intent.order.transfer();
        let mut take = |nullifier: Nullifier, from: fn(&mut Self) -> &mut Vec<(Asset, u64, u128)>| {
            let number = u64::from_be_bytes(nullifier.0[24..].try_into().unwrap());
            let all = from(self);
            let at = all.iter().position(|(_, known, _)| *known == number)?;
            Some(all.swap_remove(at).2)
        };
        let balance = take(account_spent, |owners| &mut owners.accounts).expect("an account is spent once");
        let claimed = take(coin_spent, |owners| &mut owners.coins).unwrap_or(0);
        let left = (balance + claimed).checked_sub(intent.paid + amount_out.0).expect("an honest order");
        let (account, coin) = (self.nullifier(), self.nullifier());
        self.accounts.push((asset, account, left));
        self.coins.push((asset, coin, intent.paid));
    }

    fn hold(&self, asset: Asset) -> u128 {
        self.accounts.iter().chain(&self.coins).filter(|one| one.0 == asset).map(|one| one.2).sum()
    }
}

/// With honest proofs the pool is what owners hold, and never negative once a member has everything.
#[test]
fn the_pool_is_what_its_owners_hold() {
    let (mut certified, mut conflicts) = (0, 0);
    for seed in seeds(0..30, 10) {
        println!("seed {seed}");
        let random = &mut StdRng::seed_from_u64(seed);
        let mut network = Network::new(*[4, 7].choose(random).unwrap());
        let (mut owners, mut intents) = (Owners::default(), Vec::<Intent>::new());
        for _ in 0..300 {
            match random.random_range(0..20) {
                0..2 => {
                    let (asset, amount) = (*ASSETS.choose(random).unwrap(), random.random_range(1..100));
                    network.deposit(asset, amount);
                    let coin = (asset, owners.nullifier(), amount);
                    owners.coins.push(coin);
                }
                2..4 => intents.push(owners.intend(&network, random)),
                4..14 => {
                    let Some(intent) = intents.choose(random).cloned() else { continue };
                    let member = random.random_range(0..network.honest.len());
                    if network.ask(member, &intent.order) {
                        owners.settle(&intent);
                        certified += 1;
                    }
                }
                14..18 => network.deliver(random),
                18 => network.repeat(random),
                _ => {
                    let member = random.random_range(0..network.honest.len());
                    network.honest[member] = network.honest[member].recovered();
                }
            }
        }
        network.finish();
        for asset in ASSETS {
            let [deposited, withdrawn] =
                [&network.deposited, &network.withdrawn].map(|of| of.get(&asset).copied().unwrap_or_default());
            assert_eq!(deposited.checked_sub(withdrawn), Some(owners.hold(asset)));
        }
        conflicts += network.votes.len() - network.spent.len() / 2;
    }
    assert!(certified > 100 && conflicts > 100, "{certified} certified, {conflicts} not");
}

/// With a broken circuit anybody proves anything. What is taken is bounded nevertheless.
#[test]
fn false_proofs_take_no_more_than_the_bound() {
    let mut most = 0.0_f64;
    for seed in seeds(0..30, 10) {
        println!("seed {seed}");
        let random = &mut StdRng::seed_from_u64(seed);
        let mut network = Network::new(*[4, 7].choose(random).unwrap());
        let (mut orders, mut nullifiers) = (Vec::new(), 0);
        let (unit, enough) = (random.random_range(1..40), network.honest_votes());
        network.deposit(Asset::ETHER, random.random_range(50..100));
        for _ in 0..400 {
            match random.random_range(0..40) {
                0 => network.deposit(Asset::ETHER, random.random_range(1..100)),
                // A withdrawal of what as few honest members as are needed have left.
                1..20 => {
                    let members: Vec<usize> = sample(random, network.honest.len(), enough).into_vec();
                    let left = members.iter().map(|member| network.honest[*member].left(Asset::ETHER)).min();
                    let most = left.map_or(0, |left| left.spendable().0);
                    if most > 0 {
                        nullifiers += 2;
                        let amount = random.random_range(1..=most.min(unit));
                        orders.push(network.order(transfer(nullifiers, nullifiers + 1, amount)));
                        for member in members {
                            network.ask(member, &orders[orders.len() - 1]);
                        }
                    }
                }
                // Anything by anybody, which wastes what is left.
                20 => {
                    let member = random.random_range(0..network.honest.len());
                    nullifiers += 2;
                    orders.push(network.order(transfer(nullifiers, nullifiers + 1, random.random_range(1..=unit))));
                    network.ask(member, orders.choose(random).unwrap());
                }
                21..38 => network.deliver(random),
                _ => network.repeat(random),
            }
        }
        network.finish();
        let (deposited, withdrawn) = (network.deposited[&Asset::ETHER], network.withdrawn.get(&Asset::ETHER));
        let withdrawn = withdrawn.copied().unwrap_or_default();
        assert!(withdrawn * enough as u128 <= network.honest.len() as u128 * deposited, "{withdrawn} of {deposited}");
        most = most.max(withdrawn as f64 / deposited as f64);
    }
    assert!(most > 1.0, "false proofs took at most {most} times the pool: too little for a test of the bound");
}

/// The bound is reached: of four members, three pairs of honest ones certify one half of the pool each.
#[test]
fn three_quorums_take_one_and_a_half_pools() {
    let mut network = Network::new(4);
    network.deposit(Asset::ETHER, 100);
    let deposit = network.sent[0].clone();
    network.honest.iter_mut().for_each(|member| member.receive(&deposit));
    let mut certified = 0;
    for (number, pair) in (1..).zip([[0, 1], [1, 2], [0, 2], [0, 1]]) {
        let order = network.order(transfer(2 * number, 2 * number + 1, 50));
        certified += pair.into_iter().filter(|member| network.ask(*member, &order)).count();
    }
    assert_eq!((certified, network.withdrawn[&Asset::ETHER]), (3, 150));
    network.finish();
    // Below zero, and no member votes for a withdrawal any more, however small.
    let smallest = network.order(transfer(100, 101, 1));
    assert!((0..3).all(|member| !network.honest[member].held(Asset::ETHER).covers(Amount(0))));
    assert!((0..3).all(|member| !network.ask(member, &smallest)));
    let nothing = network.order(transfer(102, 103, 0));
    assert!((0..3).any(|member| network.ask(member, &nothing)));
}

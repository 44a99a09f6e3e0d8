//! Operators whose committees follow each other, owners who sign two orders for a number, and members that vote for
//! everything. Nothing happens but what a step says; chance comes from the run's seed alone.
//!
//! In each epoch at most f members are faulty, other ones than before. A faulty member votes for everything and lies in its
//! Closing. Its operator is malicious; or its keys are out, and its folder is honest and comes back with new keys; or it
//! loses its folder, and comes back with an older copy, or with an empty one. A member that was honest may turn with the keys
//! that it had: then it votes for everything in the earlier epochs, too.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::{
    AccountId, Amount, Asset, Authority, Deposit, Digest, Epoch, Rejection, TransactionIndex, TransferOrder,
    VerifiedCertificate, VerifiedOrder,
};
use fastpay_testkit::{TestAccount, TestCommittee, authority_keys, payment, test_domain};
use rand::prelude::*;
use rand::rngs::StdRng;

use super::operator::{Event, Operator, Slot};

/// The last one signs only where it is certified apart.
pub const OWNERS: u64 = 7;
const SIZES: [usize; 5] = [4, 5, 6, 7, 7];

/// What runs led to, so that they are known to lead to something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub certificates: usize,
    /// Certificates of an order in a later epoch than that of its first vote.
    pub finished_later: usize,
    pub joined: usize,
    pub went_on: usize,
    pub rekeyed: usize,
    pub restored: usize,
    pub apart: usize,
    pub inherited: usize,
    pub contested: usize,
    pub unproven: usize,
    pub refused_after_closing: usize,
    pub resized: usize,
    /// Members that were honest and turned, with the keys that they had.
    pub turned: usize,
    /// Executed because members of the current epoch attest it.
    pub attested: usize,
    /// Certificates that retired keys made, and that were refused.
    pub forged: usize,
    /// Orders that were voted for again, because nobody executed them in time.
    pub anew: usize,
    /// Numbers that so remain without a certificate that counts.
    pub stuck: usize,
}

/// The committee of an epoch.
pub struct Term {
    pub committee: TestCommittee,
    /// Who is behind each member, in the committee's order.
    pub operators: Vec<usize>,
    /// Members that vote for everything.
    pub faulty: BTreeSet<usize>,
    /// Members that were honest in the epoch, and vote for everything in it later: they are faulty in a later epoch, in which
    /// they have the same keys. With the faulty ones they are f at most.
    pub late: BTreeSet<usize>,
}

pub struct Signed {
    pub order: TransferOrder,
    verified: VerifiedOrder,
    pub digest: Digest,
    pub slot: Slot,
    /// By epoch, the members that voted for it.
    pub votes: BTreeMap<u64, BTreeSet<usize>>,
}

/// See the module header.
pub struct World {
    pub rng: StdRng,
    pub owners: Vec<TestAccount>,
    pub operators: Vec<Operator>,
    pub terms: Vec<Term>,
    pub events: Vec<Event>,
    pub orders: Vec<Signed>,
    /// The newest certificate of each number.
    pub certified: BTreeMap<Slot, VerifiedCertificate>,
    pub now: u64,
    /// By epoch, for those that have ended: when they did.
    pub ended: Vec<u64>,
    pub tally: Tally,
    keys: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: StdRng::seed_from_u64(seed),
            owners: (0..OWNERS).map(TestAccount::numbered).collect(),
            operators: Vec::new(),
            terms: Vec::new(),
            events: Vec::new(),
            orders: Vec::new(),
            certified: BTreeMap::new(),
            now: 1_000,
            ended: Vec::new(),
            tally: Tally::default(),
            keys: 0,
        };
        for (index, owner) in (1..).zip(&world.owners) {
            let amount = Amount(1_000_000);
            let deposit =
                Deposit { index: TransactionIndex(index), recipient: owner.id(), asset: Asset::ETHER, amount };
            world.events.push(Event::Deposit(deposit));
        }
        let size = SIZES[world.rng.random_range(0..SIZES.len())];
        let operators: Vec<_> = (0..size).map(|_| world.newcomer()).collect();
        world.begin(Epoch(0), operators);
        for operator in &mut world.operators {
            operator.follow(&world.events);
            operator.begun.push(Epoch(0));
        }
        world
    }

    pub fn run(&mut self) {
        for _ in 0..self.rng.random_range(2..5) {
            self.steps();
            let other = self.certify_apart();
            self.rotate();
            (0..self.operators.len()).for_each(|operator| self.submit(other, operator));
        }
        self.steps();
        self.grow_old();
        self.settle();
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    pub fn epoch(&self) -> Epoch {
        Epoch(self.terms.len() as u64 - 1)
    }

    /// A new key that nobody had before.
    fn key(&mut self) -> u64 {
        self.keys += 1;
        self.keys
    }

    pub fn newcomer(&mut self) -> usize {
        let key = self.key();
        self.operators.push(Operator::new(key));
        self.operators.len() - 1
    }

    pub fn rekey(&mut self, operator: usize) {
        let key = self.key();
        self.operators[operator].keys = authority_keys(key);
    }

    /// The committee of these operators, of whom some are faulty.
    pub fn begin(&mut self, epoch: Epoch, operators: Vec<usize>) {
        let keys = operators.iter().map(|operator| self.operators[*operator].keys.clone()).collect();
        let committee = TestCommittee::of(keys, test_domain(), epoch);
        let behind = committee.keys.iter().map(|keys| {
            let is_behind = |operator: &&usize| self.operators[**operator].public() == keys.public();
            *operators.iter().find(is_behind).expect("each key is an operator's")
        });
        let operators: Vec<_> = behind.collect();
        let mut members: Vec<_> = (0..operators.len()).collect();
        members.shuffle(&mut self.rng);
        // Those who were honest turn first, if they may.
        members.sort_by_key(|member| self.honest_before(committee.keys[*member].public()).is_empty());
        // Often f at once. Where fewer are, others may turn later.
        let at_most = committee.committee.faults_tolerated();
        let count = if self.chance(50) { at_most } else { self.rng.random_range(0..=at_most) };
        let mut faulty = BTreeSet::new();
        for member in members {
            if faulty.len() < count && self.may_turn(committee.keys[member].public()) {
                self.turns(committee.keys[member].public());
                faulty.insert(member);
            }
        }
        self.terms.push(Term { committee, operators, faulty, late: BTreeSet::new() });
    }

    /// The members with these keys in earlier epochs, each with the epoch, in which they were honest.
    fn honest_before(&self, keys: Authority) -> Vec<(usize, usize)> {
        let member = |(epoch, term): (usize, &Term)| {
            let member = term.committee.keys.iter().position(|one| one.public() == keys)?;
            let was_honest = !term.faulty.contains(&member) && !term.late.contains(&member);
            was_honest.then_some((epoch, member))
        };
        self.terms.iter().enumerate().filter_map(member).collect()
    }

    /// Whether a member may be faulty: no earlier committee then has more than f that are, at once or later. Certificates of
    /// all of them count still.
    fn may_turn(&self, keys: Authority) -> bool {
        self.honest_before(keys).into_iter().all(|(epoch, _)| {
            let term = &self.terms[epoch];
            term.faulty.len() + term.late.len() < term.committee.committee.faults_tolerated()
        })
    }

    fn turns(&mut self, keys: Authority) {
        for (epoch, member) in self.honest_before(keys) {
            self.terms[epoch].late.insert(member);
            self.tally.turned += 1;
        }
    }

    pub fn steps(&mut self) {
        for _ in 0..self.rng.random_range(10..60) {
            self.step();
        }
    }

    /// Anything that may happen between two installations, and while one is followed.
    pub fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..20 => self.sign(),
            20..75 => {
                let newest = self.orders.len().min(if self.chance(30) { 40 } else { 8 });
                if newest > 0 {
                    let order = self.orders.len() - 1 - self.rng.random_range(0..newest);
                    let all = self.chance(25);
                    for operator in 0..self.operators.len() {
                        if all || self.chance(40) {
                            self.submit(order, operator);
                        }
                    }
                }
            }
            75..97 => {
                let certificates: Vec<_> = self.certified.keys().copied().collect();
                if let Some(slot) = certificates.choose(&mut self.rng).copied() {
                    let operator = self.rng.random_range(0..self.operators.len());
                    self.show(slot, operator);
                }
            }
            _ => {
                let operator = self.rng.random_range(0..self.operators.len());
                self.operators[operator].shard.evict();
                self.operators[operator].shard.restart();
                if self.chance(50) {
                    self.operators[operator].copy = Some(self.operators[operator].shard.clone());
                }
            }
        }
    }

    /// The number that comes after all that is certified.
    fn next(&self, owner: &TestAccount) -> u64 {
        let certified = self.certified.range((owner.id(), 0)..=(owner.id(), u64::MAX)).next_back();
        certified.map_or(0, |((_, sequence), _)| sequence + 1)
    }

    /// An order of the next number; seldom where there is another one, because two can lock an account for good.
    fn sign(&mut self) {
        let others = self.owners.len() - 1;
        let (from, to) = (self.rng.random_range(0..others), self.rng.random_range(0..others));
        let (owner, to) = (self.owners[from].clone(), self.owners[to].id());
        let slot = (owner.id(), self.next(&owner));
        if self.orders.iter().any(|signed| signed.slot == slot) && !self.chance(20) {
            return;
        }
        let newest = self.order(&owner, to, slot);
        self.certify(newest);
    }

    fn order(&mut self, owner: &TestAccount, to: AccountId, slot: Slot) -> usize {
        let order = owner.sign(&test_domain(), payment(owner.id(), to, self.rng.random_range(1..1_000), slot.1));
        let digest = test_domain().transfer_digest(&order.transfer);
        let verified = order.clone().verify(&test_domain()).expect("the owner signed it");
        self.orders.push(Signed { order, verified, digest, slot, votes: BTreeMap::new() });
        self.orders.len() - 1
    }

    /// An owner signs two orders for a number, and shows one of them to as few honest members as its certificate needs. All
    /// are shown the other one, which is returned, once the next epoch has begun.
    fn certify_apart(&mut self) -> usize {
        let (owner, to) = (self.owners[self.owners.len() - 1].clone(), self.owners[0].id());
        let slot = (owner.id(), self.next(&owner));
        let (one, other) = (self.order(&owner, to, slot), self.order(&owner, to, slot));
        let term = self.terms.last().expect("there is the first");
        let mut honest: Vec<_> = (0..term.operators.len()).filter(|member| !term.faulty.contains(member)).collect();
        let needed = term.committee.committee.quorum() - term.faulty.len();
        honest.shuffle(&mut self.rng);
        let voters: Vec<_> = honest.into_iter().take(needed).map(|member| term.operators[member]).collect();
        for operator in voters {
            (0..slot.1).for_each(|before| self.show((slot.0, before), operator));
            self.submit(one, operator);
        }
        self.tally.apart += usize::from(self.certified.contains_key(&slot));
        other
    }

    /// Asks an operator for its vote, under the epoch that its node signs in.
    pub fn submit(&mut self, order: usize, operator: usize) {
        let (signed, epoch) = (&self.orders[order], self.operators[operator].signs_in);
        let term = &self.terms[usize::try_from(epoch.0).expect("few epochs")];
        let Some(member) = term.operators.iter().position(|behind| *behind == operator) else { return };
        if !self.is_full(operator, epoch) {
            return;
        }
        let shard = &mut self.operators[operator].shard;
        match shard.lock_under(epoch, &signed.verified) {
            Ok(_) => {}
            Err(Rejection::EpochClosed { .. }) => {
                self.tally.refused_after_closing += 1;
                return;
            }
            Err(Rejection::OrderPending { .. }) => {
                let locks = shard.locks(&signed.slot.0);
                self.tally.contested += usize::from(locks.len() > 1);
                return;
            }
            Err(
                Rejection::AlreadyConfirmed { .. }
                | Rejection::SequenceTooHigh { .. }
                | Rejection::InsufficientBalance { .. },
            ) => return,
            Err(refusal) => panic!("an order is refused: {refusal}"),
        }
        self.orders[order].votes.entry(epoch.0).or_default().insert(member);
        self.certify(order);
    }

    /// Makes the order's certificate, hidden or not, if the votes of an epoch suffice. Faulty members vote whenever they
    /// are asked, also later.
    fn certify(&mut self, order: usize) {
        let signed = &self.orders[order];
        for (epoch, term) in self.terms.iter().enumerate() {
            let voted = signed.votes.get(&(epoch as u64)).into_iter().flatten().copied();
            let members: BTreeSet<usize> = voted.chain(term.faulty.union(&term.late).copied()).collect();
            let quorum = term.committee.committee.quorum();
            if members.len() < quorum {
                continue;
            }
            let is_known = |known: &VerifiedCertificate| {
                known.digest() == signed.digest && known.certificate().epoch.0 >= epoch as u64
            };
            if self.certified.get(&signed.slot).is_some_and(is_known) {
                continue;
            }
            let members: Vec<usize> = members.into_iter().take(quorum).collect();
            let certificate = term.committee.certificate_by(&signed.order, &members);
            let certificate = certificate.verify(&test_domain(), &term.committee.committee).expect("a quorum");
            let first_voted = signed.votes.keys().next().copied();
            let ((account, sequence), before) = (signed.slot, self.certified.insert(signed.slot, certificate));
            let is_other = before.as_ref().is_some_and(|before| before.digest() != signed.digest);
            assert!(!is_other, "two certificates of {account} #{sequence}");
            if before.is_none() {
                self.tally.certificates += 1;
                self.tally.finished_later += usize::from(first_voted.is_some_and(|first| first < epoch as u64));
            }
        }
    }

    /// Shows an operator a certificate.
    pub fn show(&mut self, slot: Slot, operator: usize) {
        let certificate = self.certified[&slot].clone();
        // A newcomer executes nothing before it has followed the chain to the certificate's epoch.
        if self.operators[operator].epoch() < certificate.certificate().epoch {
            return;
        }
        match self.confirm(operator, &certificate) {
            Ok(_) | Err(Rejection::MissingCertificate { .. } | Rejection::Unattested { .. }) => {}
            Err(refusal) => panic!("a certificate is refused: {refusal}"),
        }
    }

    /// What anybody has executed, all honest members of the last committee have; all of them, or none of them, have executed
    /// what is certified, and nothing else was executed anywhere. A certificate that nobody executed in time may be of no
    /// use, if a member that it did not reach has voted for another order.
    fn settle(&mut self) {
        let term = self.terms.last().expect("there is the first");
        let honest: Vec<_> = (0..term.operators.len()).filter(|member| !term.faulty.contains(member)).collect();
        let honest: Vec<_> = honest.into_iter().map(|member| term.operators[member]).collect();
        let all: Vec<_> = self.operators.iter().map(Operator::executed).collect();
        for (slot, certificate) in &self.certified {
            let is_executed = all.iter().any(|executed| executed.contains_key(slot));
            let (account, sequence) = *slot;
            if is_executed {
                for operator in &honest {
                    let digest = all[*operator].get(slot).map(digest_of);
                    assert_eq!(digest, Some(certificate.digest()), "{account} #{sequence} is not executed");
                }
                continue;
            }
            let is_bound = |operator: &usize| {
                let locks = self.operators[*operator].shard.locks(&account);
                locks.iter().any(|lock| lock.digest != certificate.digest())
            };
            assert!(honest.iter().any(is_bound), "{account} #{sequence} is certified, and nobody executes it");
            self.tally.stuck += 1;
        }
        for executed in &all {
            for (slot, order) in executed {
                let certified = self.certified.get(slot).map(VerifiedCertificate::digest);
                assert_eq!(certified, Some(digest_of(order)), "{} #{} is executed otherwise", slot.0, slot.1);
            }
        }
    }
}

pub fn digest_of(order: &TransferOrder) -> Digest {
    test_domain().transfer_digest(&order.transfer)
}

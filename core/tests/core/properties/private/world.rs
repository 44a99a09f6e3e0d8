//! Committees of four that follow each other, each with one faulty member; the contract; and whoever orders private
//! transfers. Nothing happens but what a step says; chance comes from the run's seed alone.
//!
//! The faulty member votes for everything, in the epochs in which it was a member, and lies in its Closing. Certificates
//! are shown to members one by one, or hidden until it suits. What the protocol assumes of time holds: once an honest
//! member has a certificate of a number that its owner asked to unlock, somebody has it upheld within a quarter of the
//! window.

use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::checkpoint::{Checkpoint, CheckpointState, Installations, InstalledCommittee};
use fastpay_core::handover::{Closing, Inheritance, ReportedEntry, VerifiedClosing};
use fastpay_core::private::*;
use fastpay_core::{
    AccountId, Digest, Epoch, PrimaryView, Record, Rejection, SequenceNumber, TransactionIndex, VoteFloor,
};
use fastpay_testkit::{Outcome, TestCommittee, authority_keys, test_domain};
use rand::prelude::*;
use rand::rngs::StdRng;

use super::member::{Event, Member, Number, WINDOW, sorted};
use crate::private_orders::{Bound, Owner, authorization, verified, votes};

/// The committee of an epoch. The faulty member has no shard.
pub struct Term {
    pub committee: TestCommittee,
    /// Who is behind each member; none is faulty.
    pub members: Vec<Option<usize>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub certified: usize,
    pub executed: usize,
    pub voided: usize,
    pub upheld: usize,
    /// Certificates of void numbers.
    pub dead: usize,
    pub joined: usize,
    pub rebased: usize,
    pub inherited: usize,
    pub refused: usize,
}

/// See the module header.
pub struct World {
    pub rng: StdRng,
    pub now: u64,
    pub operators: Vec<Member>,
    pub terms: Vec<Term>,
    pub events: Vec<Event>,
    pub orders: Vec<VerifiedPrivateOrder>,
    votes: HashMap<(usize, usize), BTreeSet<usize>>,
    pub certificates: Vec<(usize, VerifiedPrivateCertificate)>,
    /// Of each nullifier that an honest member took, the order: no second one may be there.
    pub taken: HashMap<AccountId, Digest>,
    /// The orders that honest members executed, in the order of the first execution.
    pub executed: Vec<usize>,
    /// What the contract decided.
    pub decided: HashMap<Number, Option<Digest>>,
    pub requested: BTreeSet<Number>,
    /// The committee's checkpoints by number, each with its state.
    pub checkpoints: Vec<(Checkpoint, CheckpointState)>,
    void_votes: HashMap<(Epoch, Number), BTreeSet<usize>>,
    pub deposited: u128,
    pub withdrawn: u128,
    pub tally: Tally,
    keys: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: StdRng::seed_from_u64(seed),
            now: 1,
            operators: Vec::new(),
            terms: Vec::new(),
            events: Vec::new(),
            orders: Vec::new(),
            votes: HashMap::new(),
            certificates: Vec::new(),
            taken: HashMap::new(),
            executed: Vec::new(),
            decided: HashMap::new(),
            requested: BTreeSet::new(),
            checkpoints: Vec::new(),
            void_votes: HashMap::new(),
            deposited: 0,
            withdrawn: 0,
            tally: Tally::default(),
            keys: 0,
        };
        let honest: Vec<_> = (0..3).map(|_| world.newcomer()).collect();
        world.begin(&honest);
        let state = CheckpointState::new(world.terms[0].committee.committee.clone()).unwrap();
        world.checkpoints.push((Checkpoint::first(&state.summary()), state));
        world
    }

    fn newcomer(&mut self) -> usize {
        self.keys += 1;
        self.operators.push(Member::new(self.keys));
        self.operators.len() - 1
    }

    /// The next committee: these, and a faulty member that nobody knew.
    fn begin(&mut self, honest: &[usize]) {
        self.keys += 1;
        let faulty = authority_keys(self.keys);
        let epoch = Epoch(self.terms.len() as u64);
        let keys = honest.iter().map(|operator| self.operators[*operator].keys.clone()).chain([faulty]).collect();
        let committee = TestCommittee::of(keys, test_domain(), epoch);
        let behind = |name| honest.iter().copied().find(|one| self.operators[*one].keys.public().name == name);
        let members = committee.keys.iter().map(|keys| behind(keys.public().name)).collect();
        self.terms.push(Term { committee, members });
    }

    pub fn epoch(&self) -> Epoch {
        Epoch(self.terms.len() as u64 - 1)
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    /// The honest members of the current committee.
    pub fn honest(&self) -> Vec<usize> {
        self.terms[self.terms.len() - 1].members.iter().flatten().copied().collect()
    }

    pub fn deposit(&mut self, amount: u128) {
        self.deposited += amount;
        self.events.push(Event::Deposit(amount));
    }

    /// Somebody orders a transfer: gives its number.
    pub fn order(&mut self, transfer: PrivateTransfer) -> usize {
        self.orders.push(verified(&test_domain(), transfer));
        self.orders.len() - 1
    }

    /// Asks a member of a committee for its vote. Certificates are made of any quorum's votes of one epoch.
    pub fn ask(&mut self, term: usize, member: usize, order: usize) -> bool {
        let signed = self.orders[order].clone();
        if let Some(operator) = self.terms[term].members[member] {
            match self.operators[operator].lock(&signed, Epoch(term as u64), self.now) {
                Ok(_) => {}
                Err(_) => {
                    self.tally.refused += 1;
                    return false;
                }
            }
            self.note(operator);
        }
        let known = self.votes.entry((term, order)).or_default();
        known.insert(member);
        let known: Vec<_> = known.iter().copied().collect();
        let TestCommittee { committee, .. } = &self.terms[term].committee;
        if known.len() != committee.quorum() {
            return true;
        }
        let verified = votes(&self.terms[term].committee, &signed, &known);
        let certificate = PrivateCertificate::from_votes(&signed, committee, &verified).unwrap();
        self.certificates.push((order, certificate));
        self.tally.certified += 1;
        true
    }

    /// All members of the current committee are asked; the faulty one says yes.
    pub fn ask_all(&mut self, order: usize) {
        let term = self.terms.len() - 1;
        for member in 0..4 {
            self.ask(term, member, order);
        }
    }

    /// Some certificates are shown to nobody before the contract has decided on their numbers.
    pub fn is_hidden(&self, certificate: usize) -> bool {
        let [number, _] = self.certificates[certificate].1.transfer().taken();
        certificate % 5 == 4 && !self.decided.contains_key(&number)
    }

    pub fn show(&mut self, certificate: usize, operator: usize) {
        let (_, certificate) = self.certificates[certificate].clone();
        match self.operators[operator].confirm(&certificate, self.now) {
            Ok(_)
            | Err(PrivateRejection::Rule(
                Rejection::Frozen { .. }
                | Rejection::Overruled { .. }
                | Rejection::PrimaryTooOld
                | Rejection::MissingCertificate { .. },
            )) => {}
            Err(PrivateRejection::Rule(Rejection::Voided { .. })) => {
                let [number, _] = certificate.transfer().taken();
                assert_eq!(self.decided.get(&number), Some(&None), "the contract voided it");
                self.tally.dead += 1;
            }
            Err(rejection) => panic!("a certificate is refused: {rejection}"),
        }
        self.note(operator);
    }

    pub fn follow(&mut self, operator: usize) {
        let terms = &self.terms;
        let verify = |certificate: PrivateCertificate| {
            let committee = &terms[certificate.epoch.0 as usize].committee.committee;
            certificate.verify(&test_domain(), committee).unwrap()
        };
        self.operators[operator].follow(&self.events, self.now, verify);
        self.note(operator);
    }

    /// Looks at what a member has written.
    fn note(&mut self, operator: usize) {
        let member = &mut self.operators[operator];
        let new: Vec<_> = member.shard().journal().records_from(member.noted).map(|(_, record)| record).collect();
        member.noted = member.shard().journal_end();
        for record in new {
            match record {
                Record::PrivateConfirmation(confirmation) => {
                    let transfer = &confirmation.certificate.order.transfer;
                    let [number, _] = transfer.taken();
                    let executed = (confirmation.certificate.clone(), confirmation.digest);
                    self.operators[operator].executed.insert(number, executed);
                    let before = transfer.taken().map(|(of, _)| self.taken.insert(of, confirmation.digest));
                    if before == [None, None] {
                        assert_ne!(self.decided.get(&number), Some(&None), "a void number is executed");
                        self.withdrawn += transfer.amount_out.0;
                        let is_it = |order: &VerifiedPrivateOrder| order.digest() == confirmation.digest;
                        self.executed.push(self.orders.iter().position(is_it).unwrap());
                        self.tally.executed += 1;
                    } else {
                        assert_eq!(before, [Some(confirmation.digest); 2], "a nullifier is spent once");
                    }
                }
                Record::PrivateInherited(_) => self.tally.inherited += 1,
                _ => {}
            }
        }
    }

    /// An owner asks the contract to unlock a number of an account nullifier.
    pub fn request(&mut self, nullifier: Nullifier, sequence: SequenceNumber) {
        let number = (nullifier.account(), sequence);
        let authorization = authorization(&test_domain(), nullifier, sequence);
        assert!(is_private_unlock_authorized(&test_domain(), number, &authorization, &Owner));
        if !self.decided.contains_key(&number) && self.requested.insert(number) {
            self.events.push(Event::Requested(number));
        }
    }

    /// Asks a member of the current committee to vote to void a number. With a quorum, the contract does.
    pub fn vote_to_void(&mut self, member: usize, number: Number) {
        let (epoch, term) = (self.epoch(), self.terms.len() - 1);
        if self.decided.contains_key(&number) || !self.requested.contains(&number) {
            return;
        }
        if let Some(operator) = self.terms[term].members[member] {
            let operator = &mut self.operators[operator];
            let chain_time = operator.viewed;
            let voted = operator.shard_mut().void_vote(number, false, epoch, VoteFloor::Zero, chain_time);
            if voted.is_err() {
                return;
            }
        }
        let known = self.void_votes.entry((epoch, number)).or_default();
        known.insert(member);
        if known.len() == 3 {
            self.decided.insert(number, None);
            self.events.push(Event::Voided(number));
            self.tally.voided += 1;
        }
    }

    /// Somebody brings the certificate that an honest member has to all, and has the order upheld.
    fn uphold(&mut self, number: Number) {
        let Some(digest) = self.operators.iter().find_map(|member| member.attests(number)) else { return };
        let certificate = self.certificates.iter().position(|(_, one)| one.digest() == digest).unwrap();
        for operator in self.honest() {
            self.follow(operator);
            self.show(certificate, operator);
        }
        let attests = |operator: &usize| self.operators[*operator].attests(number) == Some(digest);
        let attest = self.honest().into_iter().filter(attests);
        assert_eq!(attest.count(), 3, "every honest member attests what it was shown");
        if let Entry::Vacant(undecided) = self.decided.entry(number) {
            undecided.insert(Some(digest));
            self.events.push(Event::Upheld(number, digest));
            self.tally.upheld += 1;
        }
    }

    /// A quarter of the window passes.
    pub fn wait(&mut self) {
        for number in self.requested.clone() {
            if !self.decided.contains_key(&number) {
                self.uphold(number);
            }
        }
        self.now += WINDOW / 4;
    }

    pub fn installed(&self, epoch: usize) -> InstalledCommittee {
        let committee = self.terms[epoch].committee.committee.clone();
        InstalledCommittee { compromised_since: committee.epoch(), committee, checkpoint: Digest::ZERO }
    }

    fn installations(&self) -> Installations {
        let mut all = Installations::new(self.terms[0].committee.committee.clone()).unwrap();
        (1..self.terms.len()).for_each(|epoch| all.install(self.installed(epoch)).unwrap());
        all
    }

    fn publish(&self, member: usize, entries: Vec<ReportedEntry>) -> VerifiedClosing {
        let term = &self.terms[self.terms.len() - 2];
        let (closed, up_to) = (term.committee.committee.epoch(), TransactionIndex(self.events.len() as u64));
        let leaves = entries.iter().map(ReportedEntry::entry);
        let closing = Closing::new(closed, up_to, Digest::ZERO, leaves);
        let signed = closing.sign(&term.committee.keys[member], &test_domain());
        // As a file.
        let mut bytes = Vec::new();
        signed.write(entries.iter().map(Ok::<_, std::io::Error>), &mut bytes).unwrap();
        let (signed, entries) = fastpay_core::handover::SignedClosing::read(&mut bytes.as_slice(), 1 << 20).unwrap();
        let installations = self.installations();
        let rng = &mut StdRng::seed_from_u64(0);
        signed.verify(entries, (&test_domain(), closed), (&installations, up_to), &Bound, rng).unwrap()
    }

    /// Nothing, or locks of any orders: each has a proof.
    fn lie(&mut self) -> Vec<ReportedEntry> {
        let count = self.rng.random_range(0..4).min(self.orders.len());
        let orders: Vec<_> = self.orders.sample(&mut self.rng, count).collect();
        let lock = |order: &VerifiedPrivateOrder| {
            let evidence = PrivateEvidence::Proven(order.proven().clone());
            ReportedEntry::private_lock(&PrivateLock { evidence, digest: order.digest() })
        };
        sorted(orders.into_iter().map(lock).collect())
    }

    /// The next committee takes over. Some members go on, others join with the Closings of the faulty member and two honest
    /// ones: one of those that leave may close its epoch late.
    pub fn rotate(&mut self) {
        let before = self.terms.len() - 1;
        let closed = Epoch(before as u64);
        let mut next = self.honest();
        next.shuffle(&mut self.rng);
        let leaving = self.rng.random_range(0..=3);
        let left: Vec<_> = next.drain(..leaving).collect();
        let newcomers: Vec<_> = (0..leaving).map(|_| self.newcomer()).collect();
        next.extend(&newcomers);
        self.begin(&next);
        self.events.push(Event::Installed(Epoch(closed.0 + 1)));
        let late = left.first().copied().filter(|_| self.rng.random_ratio(1, 2));
        let mut closings = Vec::new();
        for member in 0..4 {
            let entries = match self.terms[before].members[member] {
                None => self.lie(),
                Some(operator) if Some(operator) == late => continue,
                Some(operator) => {
                    self.follow(operator);
                    assert_eq!(self.operators[operator].shard_mut().close(closed), Ok(Outcome::Committed));
                    self.operators[operator].report()
                }
            };
            closings.push(self.publish(member, entries));
        }
        let committee = self.terms[before].committee.committee.clone();
        let inheritance = Inheritance::new(&committee, closings, |_| true).unwrap();
        for operator in newcomers {
            self.follow(operator);
            // What Closings claim is to be shown first.
            let reported: BTreeMap<_, _> = inheritance.reported().collect();
            for certificate in 0..self.certificates.len() {
                let [(account, sequence), _] = self.certificates[certificate].1.transfer().taken();
                if reported.get(&account).is_some_and(|next| sequence < *next) {
                    self.show(certificate, operator);
                }
            }
            let joined = self.operators[operator].shard_mut().join(&inheritance, PrimaryView::Recent);
            assert_eq!(joined, Ok(Outcome::Committed));
            self.note(operator);
            self.tally.joined += 1;
        }
    }

    /// All honest members get everything that some honest member has executed, and all events.
    pub fn settle(&mut self) {
        for operator in self.honest() {
            self.follow(operator);
            for order in self.executed.clone() {
                let certificate = self.certificates.iter().position(|(of, _)| *of == order).unwrap();
                self.show(certificate, operator);
            }
            self.operators[operator].restart();
        }
    }
}

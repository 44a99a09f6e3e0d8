//! A rotation: members close the epoch that ends, and others join the next one, each at its own time.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::handover::{
    Closing, Inheritance, InheritanceError, JoinError, ReportedEntry, Term, VerifiedClosing, full_since,
};
use fastpay_core::private::NoProofs;
use fastpay_core::{
    AccountId, AuthorityName, Digest, Epoch, PendingOrder, PrimaryView, Record, SequenceNumber, TransactionIndex,
};
use fastpay_testkit::test_domain;
use rand::prelude::*;

use super::operator::{Event, Operator};
use super::world::{World, digest_of};

/// The Closings of an epoch, as far as they are published.
type Published = BTreeMap<usize, VerifiedClosing>;

impl World {
    /// The next epoch begins, and everybody who is to vote in it does so in the end.
    pub fn rotate(&mut self) {
        let (closed, epoch) = (self.epoch(), Epoch(self.epoch().0 + 1));
        let operators = self.choose_next();
        self.now += self.rng.random_range(1..100);
        self.ended.push(self.now);
        self.begin(epoch, operators);
        let sizes = self.terms.iter().rev().map(|term| term.operators.len()).take(2).collect::<Vec<_>>();
        self.tally.resized += usize::from(sizes[0] != sizes[1]);
        self.events.push(Event::Installed(epoch));
        let mut published = Published::new();
        let mut distrusted = BTreeMap::<usize, BTreeSet<AuthorityName>>::new();
        let members = self.terms[self.terms.len() - 1].operators.clone();
        self.tally.went_on += members.iter().filter(|operator| self.is_full(**operator, epoch)).count();
        while members.iter().any(|operator| !self.votes_in(*operator, epoch)) {
            self.advance(closed, &mut published, &mut distrusted);
            if self.chance(40) {
                self.step();
            }
        }
    }

    fn votes_in(&self, operator: usize, epoch: Epoch) -> bool {
        self.is_full(operator, epoch) && self.operators[operator].signs_in == epoch
    }

    /// Whether an operator's folder is full in an epoch, by the rule that nodes follow.
    pub fn is_full(&self, operator: usize, epoch: Epoch) -> bool {
        let terms = self.terms.iter().take_while(|term| term.committee.committee.epoch() <= epoch);
        let terms: Vec<_> = terms
            .map(|term| {
                let place = term.operators.iter().position(|behind| *behind == operator);
                Term { committee: &term.committee.committee, member: place.map(|at| term.committee.keys[at].public()) }
            })
            .collect();
        let Operator { begun, stale, .. } = &self.operators[operator];
        full_since(&terms, begun.iter().copied(), *stale).is_some()
    }

    /// Who stays, leaves, comes or gets new keys. Of those that were faulty, the malicious ones leave. Others get new keys,
    /// because theirs were out, or go on with an older copy of their folder or an empty one, which lack what they signed.
    fn choose_next(&mut self) -> Vec<usize> {
        let last = &self.terms[self.terms.len() - 1];
        let (before, faulty) = (last.operators.clone(), last.faulty.clone());
        // Often as small as can be: then those who stay may know nothing of what the larger one certified.
        let size = match self.rng.random_range(0..10) {
            0..5 => before.len(),
            5..8 => 4,
            _ => self.rng.random_range(5..=7),
        };
        let leaving = [10, 40, 90][self.rng.random_range(0..3)];
        let mut next = Vec::new();
        for (member, operator) in before.into_iter().enumerate() {
            let is_faulty = faulty.contains(&member);
            if self.chance(if is_faulty { 50 } else { leaving }) {
                continue;
            }
            if is_faulty && self.chance(50) {
                let epoch = self.epoch();
                self.operators[operator].lose_folder(epoch);
                self.tally.restored += 1;
            } else if is_faulty || self.chance(10) {
                self.rekey(operator);
                self.tally.rekeyed += 1;
            }
            next.push(operator);
        }
        next.shuffle(&mut self.rng);
        next.truncate(size);
        while next.len() < size {
            next.push(self.newcomer());
        }
        next
    }

    /// One operator does the next thing that it has to do.
    fn advance(
        &mut self,
        closed: Epoch,
        published: &mut Published,
        distrusted: &mut BTreeMap<usize, BTreeSet<AuthorityName>>,
    ) {
        let epoch = Epoch(closed.0 + 1);
        let [.., before, after] = &self.terms[..] else { unreachable!("there are two terms") };
        let everybody: Vec<_> = before.operators.iter().chain(&after.operators).copied().collect();
        let operator = *everybody.choose(&mut self.rng).expect("there are members");
        let member = self.terms[self.terms.len() - 2].operators.iter().position(|behind| *behind == operator);
        let has_followed = self.operators[operator].epoch() == epoch;
        match self.rng.random_range(0..5) {
            0 => self.operators[operator].follow(&self.events),
            1 if has_followed && member.is_some() => {
                self.operators[operator].shard.close(closed).expect("the installation is followed");
            }
            2 if has_followed => self.operators[operator].signs_in = epoch,
            3 => {
                let Some(member) = member else { return };
                let term = &self.terms[self.terms.len() - 2];
                let is_faulty = term.faulty.contains(&member) || term.late.contains(&member);
                let has_closed = self.operators[operator].shard.ledger().tenure.closed() >= Some(closed);
                if (is_faulty || has_closed) && !published.contains_key(&member) {
                    let lies = is_faulty && self.chance(80);
                    let entries = if lies { self.lie() } else { self.report(operator) };
                    published.insert(member, self.publish(member, entries));
                }
            }
            4 if has_followed && after.operators.contains(&operator) && !self.is_full(operator, epoch) => {
                self.join(operator, published, distrusted.entry(operator).or_default());
            }
            _ => {}
        }
    }

    /// What an operator's folder says.
    fn report(&self, operator: usize) -> Vec<ReportedEntry> {
        let operator = &self.operators[operator];
        let executed = operator.executed();
        let mut entries = Vec::new();
        for owner in &self.owners {
            let next = operator.shard.account(&owner.id()).next_sequence();
            if let Some(before) = next.0.checked_sub(1) {
                let order = executed[&(owner.id(), before)].clone();
                let digest = digest_of(&order);
                entries.push(ReportedEntry::account(owner.id(), next, Some((order, digest))));
            }
            entries.extend(operator.shard.locks(&owner.id()).iter().map(ReportedEntry::lock));
        }
        sorted(entries)
    }

    /// Nothing, locks that there are not, or executions that nobody has certified.
    fn lie(&mut self) -> Vec<ReportedEntry> {
        let (count, claims) = (self.rng.random_range(0..4), self.chance(40));
        let mut entries = BTreeMap::<(AccountId, bool), ReportedEntry>::new();
        for _ in 0..count {
            let Some(signed) = self.orders.choose(&mut self.rng) else { break };
            let (order, digest) = (signed.order.clone(), signed.digest);
            let entry = if claims {
                let next = SequenceNumber(signed.slot.1 + 1);
                ReportedEntry::account(signed.slot.0, next, Some((order, digest)))
            } else {
                ReportedEntry::lock(&PendingOrder { order: order.into(), digest })
            };
            entries.insert((signed.slot.0, claims), entry);
        }
        sorted(entries.into_values().collect())
    }

    fn installations(&self) -> Installations {
        let mut all = Installations::new(self.terms[0].committee.committee.clone()).expect("it begins with epoch 0");
        for term in &self.terms[1..] {
            let committee = term.committee.committee.clone();
            let compromised_since = committee.epoch();
            let installed = InstalledCommittee { committee, compromised_since, checkpoint: Digest::ZERO };
            all.install(installed).expect("epochs come one by one");
        }
        all
    }

    fn publish(&mut self, member: usize, entries: Vec<ReportedEntry>) -> VerifiedClosing {
        let (closed, up_to) = (Epoch(self.epoch().0 - 1), TransactionIndex(self.events.len() as u64));
        let keys = &self.terms[self.terms.len() - 2].committee.keys[member];
        let leaves = entries.iter().map(ReportedEntry::entry);
        let signed = Closing::new(closed, up_to, Digest::ZERO, leaves).sign(keys, &test_domain());
        let installations = self.installations();
        let verified =
            signed.verify(entries, (&test_domain(), closed), (&installations, up_to), &NoProofs, &mut self.rng);
        verified.expect("whatever it says, it is well formed")
    }

    /// An operator tries to join with some of the Closings, and brings what it lacks.
    fn join(&mut self, operator: usize, published: &Published, distrusted: &mut BTreeSet<AuthorityName>) {
        let mut closings: Vec<_> = published.values().filter(|one| !distrusted.contains(&one.authority())).collect();
        closings.shuffle(&mut self.rng);
        closings.truncate(self.rng.random_range(0..=closings.len()));
        let committee = self.terms[self.terms.len() - 2].committee.committee.clone();
        let inheritance = match Inheritance::new(&committee, closings.into_iter().cloned().collect(), |_| true) {
            Ok(inheritance) => inheritance,
            Err(InheritanceError::TooFew { .. }) => return,
            Err(error) => panic!("Closings cannot be used: {error}"),
        };
        let before = self.operators[operator].shard.journal_end();
        loop {
            match self.operators[operator].shard.join(&inheritance, PrimaryView::Recent) {
                Ok(_) => break,
                Err(JoinError::Unproven { authority, account, missing, .. }) => {
                    if !self.bring(account, missing, operator) {
                        self.tally.unproven += 1;
                        distrusted.insert(authority);
                        return;
                    }
                }
                Err(error) => panic!("operator {operator} cannot join: {error}"),
            }
        }
        self.operators[operator].begun.push(inheritance.joins());
        self.tally.joined += 1;
        let new = self.operators[operator].shard.journal().records_from(before);
        self.tally.inherited += new.filter(|(_, record)| matches!(record, Record::Inherited { .. })).count();
    }

    /// Brings an operator the certificate of a number from somebody honest who executed it. False if nobody did.
    fn bring(&mut self, account: AccountId, missing: SequenceNumber, operator: usize) -> bool {
        let slot = (account, missing.0);
        let is_held = self.operators.iter().any(|one| one.shard.account(&account).next_sequence() > missing);
        if is_held {
            self.show(slot, operator);
        }
        self.operators[operator].shard.account(&account).next_sequence() > missing
    }
}

fn sorted(mut entries: Vec<ReportedEntry>) -> Vec<ReportedEntry> {
    entries.sort_by_key(|entry| *entry.entry());
    entries
}

//! The committee is gone, and a part of its certificates is lost. What is rebuilt does not depend on the order of the
//! inputs, debits all that the Primary paid, makes no money, and gives nobody less for a certificate that is found.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointState, KnownFacts, PrimaryEvent, PrimaryEventKind, Recovered, Segment, SegmentEntry,
};
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Digest, Epoch, PrimaryAddress, Redemption, SequenceNumber, TransactionIndex,
    Transfer, VerifiedCertificate,
};
use fastpay_testkit::redemption;
use rand::prelude::*;
use rand::rngs::StdRng;

use super::history::{History, Slot};
use super::{alterations, oracle};
use crate::rules::recovery::queued_with;
use crate::streamed;

/// What the runs led to.
#[derive(Debug, Default)]
pub struct Tally {
    pub executed: usize,
    pub paid: usize,
    pub behind: usize,
    pub owing: usize,
    pub left_out: usize,
    pub found: usize,
    pub refused: usize,
    pub complete: usize,
}

struct Scene<'a> {
    base: &'a CheckpointState,
    history: &'a History,
    events: Vec<PrimaryEvent>,
    facts: KnownFacts,
}

pub fn is_rebuilt(
    base: &CheckpointState,
    checkpoint: &Checkpoint,
    history: &History,
    rng: &mut StdRng,
    tally: &mut Tally,
) {
    let epoch = history.events.iter().filter(|event| matches!(event, PrimaryEventKind::Installed(_))).count() as u64;
    let since = Epoch(rng.random_range(0..=epoch));
    let installed = PrimaryEventKind::Installed(history.installed(Epoch(epoch + 1), since));
    let installation = PrimaryEvent { index: TransactionIndex(history.events.len() as u64 + 1), kind: installed };
    let queued_with = queued_with(&history.events_from(1).collect::<Vec<_>>());
    let events = history.events_from(base.cut().up_to.0 + 1).chain([installation]).collect();
    let facts = KnownFacts { redemptions: redemptions(history), queued_with, ..KnownFacts::default() };
    let scene = Scene { base, history, events, facts };
    // Of the newest epoch, of which nobody says that keys were out.
    let committee = history.committee_of(Epoch(epoch));
    let certified = history.certificates.values().map(|known| committee.certified(&known.certificate().order));
    let all: Vec<_> = certified.collect();

    let share = *[0.3, 0.7, 0.9, 1.0].choose(rng).unwrap();
    let (known, lost): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|_| rng.random_bool(share));
    let recovered = scene.recover(&known, rng);
    let (state, root) = scene.apply(&recovered);
    scene.follows_from_its_entries(&recovered.segment, &state);
    scene.debits_what_was_paid(&recovered.segment, &state);
    tally.owing += scene.owes_what_was_paid_and_nothing_else(&recovered.segment, &state);
    super::survives_storage(&state, &recovered.segment);

    let certified = checkpoint.next(&history.committee.domain, Epoch(epoch + 1), &state.summary(), root).unwrap();
    let domain = &history.committee.domain;
    tally.refused += alterations::try_all(base, &recovered.segment, checkpoint, &certified, domain, rng);
    if let Some(found) = lost.choose(rng) {
        let more = scene.recover(&[&known[..], std::slice::from_ref(found)].concat(), rng);
        tally.found += usize::from(more.segment != recovered.segment);
        scene.harms_nobody(&recovered, &more);
    }
    tally.complete += usize::from(scene.is_ordinary_if_all_is_known(&all, rng));
    let is_behind = |paid: &&Redemption| paid.sequence > state.cut().next(&paid.sender);
    tally.behind += recovered.paid.iter().filter(is_behind).count();
    tally.paid += recovered.paid.len();
    tally.left_out += recovered.left_out.len();
    let executed = recovered.segment.entries.iter().filter(|entry| matches!(entry, SegmentEntry::Executed(_)));
    tally.executed += executed.count();
}

/// All redemptions of which the Primary says the digest.
fn redemptions(history: &History) -> BTreeMap<Digest, Redemption> {
    let certified = history.certificates.values().filter_map(|certificate| match certificate.transfer() {
        Transfer::Redemption(redemption) => Some(redemption.clone()),
        Transfer::Payment(_) | Transfer::Payout(_) => None,
    });
    let of_thieves = history.events.iter().filter_map(|event| match event {
        PrimaryEventKind::Redeemed { account, sequence, .. } | PrimaryEventKind::Queued { account, sequence, .. } => {
            Some(redemption(*account, PrimaryAddress::repeat_byte(9), 1, sequence.0))
        }
        _ => None,
    });
    let all = certified.chain(of_thieves);
    all.map(|redemption| (history.committee.domain.transfer_digest(&redemption.clone().into()), redemption)).collect()
}

/// The number that an entry takes, or takes later.
fn slot(entry: &SegmentEntry) -> Option<Slot> {
    match entry {
        SegmentEntry::Executed(order) => Some((order.transfer.sender(), order.transfer.sequence().0)),
        SegmentEntry::Void { account, sequence } => Some((*account, sequence.0)),
        SegmentEntry::Paid(redemption) => Some((redemption.sender, redemption.sequence.0)),
        SegmentEntry::Event(_) | SegmentEntry::Recovery | SegmentEntry::ExecutedPrivate(_) => None,
    }
}

impl Scene<'_> {
    /// In two orders.
    fn recover(&self, certificates: &[VerifiedCertificate], rng: &mut StdRng) -> Recovered {
        let mut recover = || {
            let mut certificates = certificates.to_vec();
            certificates.shuffle(rng);
            let domain = &self.history.committee.domain;
            self.base.clone().recover(self.events.clone(), certificates, &self.facts, domain).unwrap()
        };
        let recovered = recover();
        assert_eq!(recover(), recovered);
        recovered
    }

    fn apply(&self, recovered: &Recovered) -> (CheckpointState, Digest) {
        let rng = &mut StdRng::seed_from_u64(0);
        let applied = self.base.clone().apply(recovered.segment.clone(), &self.history.committee.domain, rng);
        streamed::compare(self.base, &recovered.segment, &applied, &self.history.committee.domain);
        applied.expect("a rebuilt history is valid")
    }

    fn end(&self) -> TransactionIndex {
        TransactionIndex(self.history.events.len() as u64)
    }

    /// What the Primary has paid under a number, or pays because a sound epoch queued it.
    fn paid(&self) -> BTreeMap<Slot, Digest> {
        let (mut paid, mut queued, mut epoch) = (BTreeMap::new(), BTreeMap::new(), Epoch(0));
        for kind in self.events_until_the_installation() {
            match kind {
                PrimaryEventKind::Redeemed { account, sequence, digest } => {
                    queued.remove(&(*account, sequence.0));
                    paid.insert((*account, sequence.0), *digest);
                }
                PrimaryEventKind::Queued { account, sequence, digest } => {
                    queued.insert((*account, sequence.0), (*digest, epoch));
                }
                PrimaryEventKind::Released { account, sequence, .. } => drop(queued.remove(&(*account, sequence.0))),
                PrimaryEventKind::Installed(installed) => {
                    queued.retain(|_, (_, queued_in)| *queued_in < installed.compromised_since);
                    epoch = installed.committee.epoch();
                }
                _ => {}
            }
        }
        paid.extend(queued.into_iter().map(|(slot, (digest, _))| (slot, digest)));
        paid
    }

    fn events_until_the_installation(&self) -> impl Iterator<Item = &PrimaryEventKind> {
        self.history.events.iter().chain(self.events.last().map(|event| &event.kind))
    }

    /// The balances are sums over the entries and what the state before says.
    fn follows_from_its_entries(&self, segment: &Segment, state: &CheckpointState) {
        let mut balances = self.base.balances().clone();
        let mut change = |account: AccountId, asset: Asset, by: &dyn Fn(Balance) -> Balance| {
            let balance = balances.entry((account, asset)).or_default();
            *balance = by(*balance);
        };
        let (base, end) = (self.base.cut().up_to, self.end());
        for ((account, number), unpaid) in self.base.unpaid() {
            let slot = (*account, number.0);
            let is_never_paid = |up_to| oracle::is_never_paid(self.history, slot, up_to);
            if is_never_paid(end) && !is_never_paid(base) {
                change(*account, unpaid.asset, &|balance| balance.credit(unpaid.amount));
            }
        }
        for entry in &segment.entries {
            match entry {
                SegmentEntry::Event(PrimaryEvent { kind, .. }) => {
                    if let PrimaryEventKind::Deposit { recipient, asset, amount } = kind {
                        change(*recipient, *asset, &|balance| balance.credit(*amount));
                    }
                }
                SegmentEntry::Executed(order) => {
                    let (transfer, slot) = (&order.transfer, slot(entry).unwrap());
                    if matches!(transfer, Transfer::Redemption(_)) && oracle::is_never_paid(self.history, slot, end) {
                        continue;
                    }
                    change(slot.0, transfer.asset(), &|balance| balance.debit(transfer.amount()));
                    for receipt in transfer.receipts() {
                        let amount = receipt.payment.amount;
                        change(receipt.payment.recipient, transfer.asset(), &|balance| balance.credit(amount));
                    }
                }
                SegmentEntry::Paid(paid) => change(paid.sender, paid.asset, &|balance| balance.debit(paid.amount)),
                SegmentEntry::Void { .. } | SegmentEntry::Recovery | SegmentEntry::ExecutedPrivate(_) => {}
            }
        }
        balances.retain(|_, balance| *balance != Balance::ZERO);
        assert_eq!(*state.balances(), balances);
    }

    /// Each number that the Primary spent is debited, and no order of it is executed later.
    fn debits_what_was_paid(&self, segment: &Segment, state: &CheckpointState) {
        let entries: BTreeMap<_, _> = segment.entries.iter().filter_map(|entry| Some((slot(entry)?, entry))).collect();
        let domain = &self.history.committee.domain;
        for (slot @ (account, number), digest) in self.paid() {
            if number < self.base.cut().next(&account).0 {
                continue;
            }
            let transfer = match entries.get(&slot) {
                Some(SegmentEntry::Executed(order)) => order.transfer.clone(),
                Some(SegmentEntry::Paid(paid)) => paid.clone().into(),
                other => panic!("{slot:?} is paid and {other:?}"),
            };
            assert_eq!(domain.transfer_digest(&transfer), digest, "{slot:?}");
            let said = state.numbers().get(&(account, SequenceNumber(number)));
            assert!(number < state.cut().next(&account).0 || said.is_some_and(|said| said.is_voided()), "{slot:?}");
        }
    }

    /// Says how many balances are below zero.
    fn owes_what_was_paid_and_nothing_else(&self, segment: &Segment, state: &CheckpointState) -> usize {
        let paid = self.paid();
        let domain = &self.history.committee.domain;
        let debtors = state.balances().iter().filter(|(_, balance)| **balance < Balance::ZERO);
        debtors
            .map(|((account, asset), balance)| {
                let mut owed = Balance::ZERO;
                for entry in &segment.entries {
                    let transfer: Transfer = match entry {
                        SegmentEntry::Executed(order) => order.transfer.clone(),
                        SegmentEntry::Paid(paid) => paid.clone().into(),
                        _ => continue,
                    };
                    let slot = slot(entry).unwrap();
                    if (slot.0, transfer.asset()) != (*account, *asset) {
                        continue;
                    }
                    let is_paid = paid.get(&slot) == Some(&domain.transfer_digest(&transfer));
                    let is_moot = matches!(transfer, Transfer::Redemption(_)) && !is_paid;
                    assert!(is_paid || is_moot && oracle::is_never_paid(self.history, slot, self.end()), "{slot:?}");
                    owed = if is_paid { owed.debit(transfer.amount()) } else { owed };
                }
                assert!(owed <= *balance, "{account} owes more than was paid");
            })
            .count()
    }

    /// With one more certificate no account takes fewer numbers, and none that takes the same ones holds less.
    fn harms_nobody(&self, before: &Recovered, after: &Recovered) {
        let (old, new) = (self.apply(before).0, self.apply(after).0);
        let own = |recovered: &Recovered, account: AccountId| -> Vec<_> {
            let entries = recovered.segment.entries.iter();
            entries.filter(|entry| slot(entry).is_some_and(|slot| slot.0 == account)).cloned().collect()
        };
        for (account, next) in &old.cut().next {
            assert!(new.cut().next(account) >= *next, "{account} takes fewer numbers");
        }
        for (account, asset) in self.history.balance_keys() {
            if own(before, account) == own(after, account) {
                let held = |state: &CheckpointState| state.balances().get(&(account, asset)).copied();
                assert!(held(&new).unwrap_or_default() >= held(&old).unwrap_or_default(), "{account} holds less");
            }
        }
    }

    /// If no certificate is lost and no thief was there, the state is the one that a committee would have certified,
    /// where it would have gone as far. Says whether it would.
    fn is_ordinary_if_all_is_known(&self, all: &[VerifiedCertificate], rng: &mut StdRng) -> bool {
        let recovered = self.recover(all, rng);
        if !recovered.paid.is_empty() || !recovered.left_out.is_empty() {
            return false;
        }
        let (state, _) = self.apply(&recovered);
        let cut = self.history.cut(self.base.cut(), true, rng);
        assert!(cut.next.iter().all(|(account, next)| state.cut().next(account) >= *next));
        // The committee made its last checkpoint, and then the installation came.
        let (ordinary, domain) = (self.history.segment(self.base.cut(), &cut), &self.history.committee.domain);
        let last = match ordinary.entries.is_empty() {
            true => self.base.clone(),
            false => self.base.clone().apply(ordinary, domain, rng).unwrap().0,
        };
        let installation = recovered.segment.entries.last().unwrap().clone();
        let ordinary = last.apply(Segment { entries: vec![installation] }, domain, rng).unwrap().0;
        let is_same = ordinary.cut() == state.cut();
        assert!(!is_same || ordinary == state);
        is_same
    }
}

/// Nothing is rebuilt of what nobody knows: what the Primary paid alone is debited.
#[test]
fn without_certificates_only_deposits_and_what_was_paid_are_left() {
    let mut rng = StdRng::seed_from_u64(1);
    let history = History::random(&mut rng);
    let base = CheckpointState::new(history.committee.committee.clone()).unwrap();
    let installed = PrimaryEventKind::Installed(history.installed(Epoch(9), Epoch(0)));
    let mut events: Vec<_> = history.events_from(1).collect();
    events.retain(|event| !matches!(event.kind, PrimaryEventKind::Installed(_)));
    (1..).zip(&mut events).for_each(|(index, event)| event.index = TransactionIndex(index));
    let PrimaryEventKind::Installed(mut first) = installed else { panic!("an installation") };
    first.committee = history.committee_of(Epoch(1)).committee;
    let index = TransactionIndex(events.len() as u64 + 1);
    events.push(PrimaryEvent { index, kind: PrimaryEventKind::Installed(first) });
    let domain = &history.committee.domain;
    let (redemptions, queued_with) = (redemptions(&history), queued_with(&events));
    let facts = KnownFacts { redemptions, queued_with, ..KnownFacts::default() };
    let recovered = base.clone().recover(events.clone(), [], &facts, domain).unwrap();
    let (state, _) = base.apply(recovered.segment, domain, &mut rng).unwrap();
    let deposited = events.iter().fold(Balance::ZERO, |sum, event| match event.kind {
        PrimaryEventKind::Deposit { amount, .. } => sum.credit(amount),
        _ => sum,
    });
    let paid: BTreeSet<_> = recovered.paid.iter().map(|paid| (paid.sender, paid.sequence)).collect();
    assert_eq!(paid.len(), recovered.paid.len());
    let left = state.balances().values().fold(Balance::ZERO, |sum, balance| sum.plus(*balance));
    let out = recovered.paid.iter().fold(Balance::ZERO, |sum, paid| sum.credit(paid.amount));
    assert!(out > Balance::from(Amount(0)));
    assert_eq!(left.plus(out), deposited);
}

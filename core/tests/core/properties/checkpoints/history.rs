//! A random history: what the Primary's order says, and the order, or void, that each number has. It is what one
//! authority of one shard does that follows the Primary as late as it likes, so every execution in it is possible.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::checkpoint::{
    Cut, Installations, InstalledCommittee, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry,
};
use fastpay_core::{
    AccountId, Amount, Asset, Digest, Epoch, Memo, Payment, Payout, PrimaryAddress, Redemption, SequenceNumber,
    TransactionIndex, Transfer, VerifiedCertificate,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption};
use rand::prelude::*;
use rand::rngs::StdRng;

use super::authority::Authority;
use super::oracle;
use crate::properties::world::ASSETS;

pub type Slot = (AccountId, u64);
const OWNERS: u64 = 5;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decided {
    Upheld,
    Voided,
}

pub struct History {
    pub committee: TestCommittee,
    pub owners: Vec<TestAccount>,
    /// The first has index 1.
    pub events: Vec<PrimaryEventKind>,
    /// Certified, whether or not it was executed.
    pub certificates: BTreeMap<Slot, VerifiedCertificate>,
    pub voids: BTreeSet<Slot>,
    /// The next number of each account when all was over.
    end: BTreeMap<AccountId, u64>,
    requested: BTreeSet<Slot>,
    decided: BTreeMap<Slot, Decided>,
    spent: BTreeMap<Slot, Digest>,
    queued: BTreeSet<Slot>,
}

impl History {
    pub fn random(rng: &mut StdRng) -> Self {
        let committee = TestCommittee::new(4);
        let mut reference = Authority::new(&committee, 1);
        let mut history = Self {
            committee,
            owners: (0..OWNERS).map(TestAccount::numbered).collect(),
            events: Vec::new(),
            certificates: BTreeMap::new(),
            voids: BTreeSet::new(),
            end: BTreeMap::new(),
            requested: BTreeSet::new(),
            decided: BTreeMap::new(),
            spent: BTreeMap::new(),
            queued: BTreeSet::new(),
        };
        for _ in 0..rng.random_range(80..220) {
            history.step(&mut reference, rng);
        }
        reference.follow_to(&history, TransactionIndex(history.events.len() as u64), None);
        let owners: Vec<_> = history.owners.iter().map(TestAccount::id).collect();
        for owner in owners {
            history.execute(&mut reference, owner);
            history.end.insert(owner, reference.next(&owner));
        }
        history
    }

    /// A committee with the keys that the committee of an epoch has here: always the same ones.
    pub fn committee_of(&self, epoch: Epoch) -> TestCommittee {
        TestCommittee::with(4, self.committee.domain, epoch)
    }

    pub fn installed(&self, epoch: Epoch, compromised_since: Epoch) -> InstalledCommittee {
        let committee = self.committee_of(epoch).committee;
        InstalledCommittee { committee, compromised_since, checkpoint: Digest::repeat_byte(3) }
    }

    /// The epochs up to this one, of which no keys were out.
    pub fn installations_from(&self, epoch: Epoch) -> Installations {
        let mut all = Installations::new(self.committee.committee.clone()).unwrap();
        (1..=epoch.0).for_each(|epoch| all.install(self.installed(Epoch(epoch), Epoch(epoch))).unwrap());
        all
    }

    fn digest(&self, transfer: &Transfer) -> Digest {
        self.committee.domain.transfer_digest(transfer)
    }

    fn step(&mut self, reference: &mut Authority, rng: &mut StdRng) {
        let owner = self.owners.choose(rng).unwrap().clone();
        let next = reference.next(&owner.id());
        let slot = (owner.id(), next);
        match rng.random_range(0..100) {
            0..14 => {
                let (asset, amount) = (*ASSETS.choose(rng).unwrap(), Amount(rng.random_range(1..100)));
                self.events.push(PrimaryEventKind::Deposit { recipient: owner.id(), asset, amount });
            }
            14..58 => {
                if !self.certificates.contains_key(&slot) && self.decided.get(&slot) != Some(&Decided::Voided) {
                    self.sign(&owner, reference, rng);
                }
                self.execute(reference, owner.id());
            }
            58..64 => {
                let number = rng.random_range(next.saturating_sub(2)..next + 2);
                self.request((owner.id(), if rng.random_bool(0.7) { next } else { number }), rng.random_bool(0.85));
            }
            64..68 => {
                let is_open = self.requested.contains(&slot) && !self.decided.contains_key(&slot);
                if is_open && !self.certificates.contains_key(&slot) && !self.spent.contains_key(&slot) {
                    self.decided.insert(slot, Decided::Voided);
                    self.voids.insert(slot);
                    let (account, sequence) = (slot.0, SequenceNumber(slot.1));
                    self.events.push(PrimaryEventKind::Voided { account, sequence });
                }
            }
            68..74 => self.uphold(slot, rng.random_bool(0.15)),
            74..84 => {
                let redemptions = self.certificates.iter().filter(|(slot, certificate)| {
                    matches!(certificate.transfer(), Transfer::Redemption(_)) && !self.spent.contains_key(slot)
                });
                let redemptions: Vec<_> = redemptions.map(|(slot, found)| (*slot, found.digest())).collect();
                if let Some((slot, digest)) = redemptions.choose(rng) {
                    self.spend(*slot, *digest, rng.random_bool(0.5));
                }
            }
            84..88 => {
                let queued: Vec<_> = self.queued.iter().copied().collect();
                if let Some(slot) = queued.choose(rng) {
                    self.leave_queue(*slot, rng.random_bool(0.5));
                }
            }
            88..90 => {
                let number = rng.random_range(next.saturating_sub(3)..next + 2);
                let own = redemption(slot.0, PrimaryAddress::repeat_byte(9), 1, number);
                self.spend((slot.0, number), self.digest(&own.into()), rng.random_bool(0.5));
            }
            90..92 => self.install(rng),
            _ => {
                let up_to = TransactionIndex(self.events.len() as u64);
                reference.follow_to(self, up_to, None);
                self.execute(reference, owner.id());
            }
        }
    }

    fn sign(&mut self, owner: &TestAccount, reference: &Authority, rng: &mut StdRng) {
        let asset = *ASSETS.choose(rng).unwrap();
        let (id, sequence, balance) =
            (owner.id(), reference.next(&owner.id()), reference.authority.account(&owner.id()).balance(asset));
        let Some(amount) = (balance.spendable().0 > 0).then(|| rng.random_range(1..=balance.spendable().0)) else {
            return;
        };
        let memo = Memo::repeat_byte(rng.random());
        let to: Vec<_> = (0..3).map(|_| self.owners.choose(rng).unwrap().id()).collect();
        let transfer: Transfer = match rng.random_range(0..10) {
            0..4 => Payment { asset, memo, ..payment(id, to[0], amount, sequence) }.into(),
            4..6 if amount >= 3 => {
                let outputs = [(to[0], 1), (to[1], amount - 2), (to[2], 1)];
                Payout { asset, memo, ..payout(id, &outputs, sequence) }.into()
            }
            _ => Redemption { asset, memo, ..redemption(id, PrimaryAddress::repeat_byte(7), amount, sequence) }.into(),
        };
        let certificate = self.committee.certified(&owner.sign(&self.committee.domain, transfer));
        self.certificates.insert((id, sequence), certificate);
    }

    /// The reference takes what it can of an account's numbers.
    fn execute(&mut self, reference: &mut Authority, account: AccountId) {
        reference.show_up_to(self, account, u64::MAX);
    }

    fn request(&mut self, slot: Slot, is_authorized: bool) {
        let (account, sequence) = (slot.0, SequenceNumber(slot.1));
        if !self.decided.contains_key(&slot) {
            self.events.push(PrimaryEventKind::UnlockRequested { account, sequence, is_authorized });
            if is_authorized {
                self.requested.insert(slot);
            }
        }
    }

    /// The certified order is upheld, or, by thieves, one that does not exist.
    fn uphold(&mut self, slot: Slot, is_forged: bool) {
        let certified = self.certificates.get(&slot).map(VerifiedCertificate::digest);
        let digest = if is_forged { Some(Digest::repeat_byte(8)) } else { certified };
        let is_open = self.requested.contains(&slot) && !self.decided.contains_key(&slot);
        if let Some(digest) = digest.filter(|_| is_open) {
            self.decided.insert(slot, Decided::Upheld);
            let (account, sequence) = (slot.0, SequenceNumber(slot.1));
            self.events.push(PrimaryEventKind::Upheld { account, sequence, digest });
        }
    }

    fn spend(&mut self, slot: Slot, digest: Digest, is_queued: bool) {
        if self.spent.contains_key(&slot) || self.decided.get(&slot) == Some(&Decided::Voided) {
            return;
        }
        self.spent.insert(slot, digest);
        let (account, sequence) = (slot.0, SequenceNumber(slot.1));
        if is_queued {
            self.queued.insert(slot);
            self.events.push(PrimaryEventKind::Queued { account, sequence, digest });
        } else {
            self.events.push(PrimaryEventKind::Redeemed { account, sequence, digest });
        }
    }

    fn leave_queue(&mut self, slot: Slot, is_paid: bool) {
        let (account, sequence, digest) = (slot.0, SequenceNumber(slot.1), self.spent[&slot]);
        self.queued.remove(&slot);
        self.events.push(if is_paid {
            PrimaryEventKind::Redeemed { account, sequence, digest }
        } else {
            PrimaryEventKind::Released { account, sequence, digest }
        });
    }

    fn install(&mut self, rng: &mut StdRng) {
        let installed = self.events.iter().filter(|event| matches!(event, PrimaryEventKind::Installed(_)));
        let epoch = installed.count() as u64 + 1;
        let since = if rng.random_bool(0.6) { rng.random_range(0..epoch) } else { epoch };
        if since < epoch {
            // Which of them were upheld before is not told apart: the contract takes what is certified anew.
            self.decided.retain(|_, decided| *decided == Decided::Voided);
        }
        self.events.push(PrimaryEventKind::Installed(self.installed(Epoch(epoch), Epoch(since))));
    }

    /// The event of an index, from 1.
    pub fn event(&self, index: TransactionIndex) -> &PrimaryEventKind {
        &self.events[usize::try_from(index.0 - 1).unwrap()]
    }

    /// All events from an index on.
    pub fn events_from(&self, first: u64) -> impl Iterator<Item = PrimaryEvent> {
        let indices = (first..=self.events.len() as u64).map(TransactionIndex);
        indices.map(|index| PrimaryEvent { index, kind: self.event(index).clone() })
    }

    /// A cut after `previous` that can be certified: it includes what decides and covers its numbers.
    pub fn cut(&self, previous: &Cut, is_last: bool, rng: &mut StdRng) -> Cut {
        let end = self.events.len() as u64;
        let up_to = TransactionIndex(if is_last { end } else { rng.random_range(previous.up_to.0..=end) });
        // It executes nothing, so it knows of each number what the Primary said of it.
        let mut follower = Authority::new(&self.committee, 1);
        follower.follow_only(self, up_to);
        let mut cut = Cut { up_to, next: BTreeMap::new() };
        for (account, end) in &self.end {
            let from = previous.next(account).0;
            let wanted = if is_last { *end } else { rng.random_range(from..=*end) };
            let is_closed = |number: &u64| follower.may_include((*account, *number), self);
            let next = (from..wanted).take_while(is_closed).count() as u64 + from;
            if next > 0 {
                cut.next.insert(*account, SequenceNumber(next));
            }
        }
        while let Some(debtor) = oracle::debtor(&cut, self) {
            let next = cut.next.get_mut(&debtor).expect("a debtor has paid");
            assert!(*next > previous.next(&debtor), "an account owes by what the cut before included");
            next.0 -= 1;
        }
        cut.next.retain(|_, next| next.0 > 0);
        cut
    }

    /// As far beyond a cut as an authority may be that executes what is not covered, and that nobody certifies.
    pub fn beyond(&self, cut: &Cut, rng: &mut StdRng) -> Cut {
        let up_to = TransactionIndex(rng.random_range(cut.up_to.0..=self.events.len() as u64));
        let next = self.end.iter().map(|(account, end)| {
            let from = cut.next(account).0;
            (*account, SequenceNumber(rng.random_range(from..=*end)))
        });
        Cut { up_to, next: next.collect() }
    }

    /// The cuts that include one more number of one account, and whether the Primary has decided of it by then.
    pub fn longer_cuts(&self, cut: &Cut) -> impl Iterator<Item = (Cut, bool)> {
        let mut follower = Authority::new(&self.committee, 1);
        follower.follow_only(self, cut.up_to);
        let accounts = self.end.iter().filter(|(account, end)| cut.next(account).0 < **end);
        accounts.map(move |(account, _)| {
            let (next, mut longer) = (cut.next(account).0, cut.clone());
            longer.next.insert(*account, SequenceNumber(next + 1));
            (longer, follower.may_include((*account, next), self))
        })
    }

    /// What is between two cuts.
    pub fn segment(&self, from: &Cut, to: &Cut) -> Segment {
        let events = self.events_from(from.up_to.0 + 1).take_while(|event| event.index <= to.up_to);
        let events = events.map(SegmentEntry::Event);
        let numbers = to.next.iter().flat_map(|(account, next)| {
            (from.next(account).0..next.0).map(|number| {
                let slot = (*account, number);
                if self.voids.contains(&slot) {
                    SegmentEntry::Void { account: *account, sequence: SequenceNumber(number) }
                } else {
                    SegmentEntry::Executed(self.certificates[&slot].certificate().order.clone())
                }
            })
        });
        Segment { entries: events.chain(numbers).collect() }
    }

    /// Other signatures by the same owners, where their kind of key has several.
    pub fn sign_again(&self, segment: &mut Segment) {
        for entry in &mut segment.entries {
            if let SegmentEntry::Executed(order) = entry {
                let digest = self.digest(&order.transfer);
                if let fastpay_core::Authorization::Ed25519 { key, signature } = &mut order.authorization {
                    let owner = self.owners.iter().find(|owner| owner.id() == AccountId::from_ed25519(key)).unwrap();
                    *signature = super::authority::another_signature(&owner.key.to_secret_bytes(), digest);
                }
            }
        }
    }

    pub fn balance_keys(&self) -> impl Iterator<Item = (AccountId, Asset)> {
        self.owners.iter().flat_map(|owner| ASSETS.map(|asset| (owner.id(), asset)))
    }
}

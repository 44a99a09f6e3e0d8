//! Chooses a cut that can be certified.
//!
//! ```text
//!  executed here ─► before what is frozen without outcome ─► at most so many orders ─► what covers each is included
//! ```
//! Balances are summed here once more, apart from the rules by which a checkpoint is computed. An error here makes a
//! cut that nobody certifies, and nothing worse.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::checkpoint::{CheckpointState, NumberState, SegmentEntry};
use fastpay_core::{AccountId, Asset, Balance, Domain, SequenceNumber, ShardId, Transfer};

/// So many outputs of a payout take as much memory as an order.
const OUTPUTS_PER_ORDER: usize = 8;

/// How much an entry weighs in a cut, in orders.
pub(super) fn weight(entry: &SegmentEntry) -> usize {
    match transfer_of(entry) {
        Some(Transfer::Payout(payout)) => 1_usize.saturating_add(payout.outputs.len() / OUTPUTS_PER_ORDER),
        Some(Transfer::Payment(_) | Transfer::Redemption(_)) | None => 1,
    }
}

fn transfer_of(entry: &SegmentEntry) -> Option<&Transfer> {
    match entry {
        SegmentEntry::Executed(order) => Some(&order.transfer),
        _ => None,
    }
}

/// A number that the cut includes as far as is known.
struct Taken {
    entry: SegmentEntry,
    /// Not of a void number, nor of a redemption that the contract never pays.
    moves_value: bool,
}

impl Taken {
    fn moved(&self) -> Option<&Transfer> {
        transfer_of(&self.entry).filter(|_| self.moves_value)
    }
}

/// Accounts' sums while the cut is chosen.
struct Balances {
    held: BTreeMap<(AccountId, Asset), Balance>,
    /// Those below zero.
    owing: BTreeSet<(AccountId, Asset)>,
}

impl Balances {
    /// The balances after all of the transfers.
    fn after<'a>(held: BTreeMap<(AccountId, Asset), Balance>, all: impl Iterator<Item = &'a Transfer>) -> Self {
        let mut balances = Self { held, owing: BTreeSet::new() };
        for transfer in all {
            let asset = transfer.asset();
            for receipt in transfer.receipts() {
                let amount = receipt.payment.amount;
                balances.change(receipt.payment.recipient, asset, |balance| balance.credit(amount));
            }
            balances.change(transfer.sender(), asset, |balance| balance.debit(transfer.amount()));
        }
        // Many owe for a while, and hardly any in the end.
        let owing = balances.held.iter().filter(|(_, balance)| **balance < Balance::ZERO);
        balances.owing = owing.map(|(of, _)| *of).collect();
        balances
    }

    fn change(&mut self, account: AccountId, asset: Asset, change: impl FnOnce(Balance) -> Balance) -> Balance {
        let balance = self.held.entry((account, asset)).or_default();
        *balance = change(*balance);
        *balance
    }

    fn change_and_judge(&mut self, account: AccountId, asset: Asset, change: impl FnOnce(Balance) -> Balance) {
        if self.change(account, asset, change) < Balance::ZERO {
            self.owing.insert((account, asset));
        } else {
            self.owing.remove(&(account, asset));
        }
    }

    fn exclude(&mut self, transfer: &Transfer) {
        let asset = transfer.asset();
        for receipt in transfer.receipts() {
            let amount = receipt.payment.amount;
            self.change_and_judge(receipt.payment.recipient, asset, |balance| balance.debit(amount));
        }
        self.change_and_judge(transfer.sender(), asset, |balance| balance.credit(transfer.amount()));
    }
}

/// An account that has taken numbers after a cut.
struct Candidate {
    /// The next number at that cut.
    next: SequenceNumber,
    /// The places of what it took among all that is taken.
    taken: Vec<usize>,
    /// No later number may be taken.
    has_ended: bool,
}

/// The numbers that a cut may include as far as accounts can pay.
pub(super) struct Candidates<'a> {
    accounts: BTreeMap<AccountId, Candidate>,
    taken: Vec<Taken>,
    weights: BTreeMap<ShardId, usize>,
    /// What each shard's numbers may weigh.
    quota: usize,
    /// What the contract said of the accounts' numbers up to the new cut.
    said: &'a BTreeMap<(AccountId, SequenceNumber), NumberState>,
    domain: &'a Domain,
}

impl<'a> Candidates<'a> {
    /// None yet, of the accounts that have taken numbers after a cut, each with its next one there. Of each of `shards`
    /// shards numbers are taken that weigh at most an equal part of `orders_max`.
    pub fn new(
        behind: &BTreeMap<AccountId, SequenceNumber>,
        said: &'a BTreeMap<(AccountId, SequenceNumber), NumberState>,
        domain: &'a Domain,
        (orders_max, shards): (usize, usize),
    ) -> Self {
        let none = |next| Candidate { next, taken: Vec::new(), has_ended: false };
        let accounts = behind.iter().map(|(account, next)| (*account, none(*next))).collect();
        let quota = orders_max / shards.max(1);
        Self { accounts, taken: Vec::new(), weights: BTreeMap::new(), quota, said, domain }
    }

    /// Takes the next number of an account after the cut, if a cut may include it.
    pub fn take(&mut self, shard: ShardId, entry: SegmentEntry) {
        let Some((account, sequence)) = entry.number() else { return };
        let Some(candidate) = self.accounts.get_mut(&account).filter(|candidate| !candidate.has_ended) else { return };
        let so_far = self.weights.entry(shard).or_default();
        let with_it = so_far.saturating_add(weight(&entry));
        let said = self.said.get(&(account, sequence));
        match moves_value(transfer_of(&entry), said, self.domain).filter(|_| with_it <= self.quota) {
            Some(moves_value) => {
                *so_far = with_it;
                candidate.taken.push(self.taken.len());
                self.taken.push(Taken { entry, moves_value });
            }
            None => candidate.has_ended = true,
        }
    }

    /// The accounts that they are of, and that they pay.
    pub fn accounts(&self) -> BTreeSet<AccountId> {
        let recipients = self.taken.iter().filter_map(Taken::moved).flat_map(Transfer::receipts);
        let takers = self.accounts.iter().filter(|(_, candidate)| !candidate.taken.is_empty());
        recipients.map(|receipt| receipt.payment.recipient).chain(takers.map(|(account, _)| *account)).collect()
    }

    /// Leaves out what is not covered. Returns the next number of each account of which numbers are left, and the entries
    /// about these, in any order. `followed` has the rows of all [`Self::accounts`] at the cut, after the events that the
    /// next one includes.
    pub fn cover(self, followed: &CheckpointState) -> (BTreeMap<AccountId, SequenceNumber>, Vec<SegmentEntry>) {
        let Self { mut accounts, taken, .. } = self;
        let mut balances = Balances::after(followed.balances().clone(), taken.iter().filter_map(Taken::moved));
        let mut left_out = BTreeSet::new();
        while let Some((debtor, asset)) = balances.owing.first().copied() {
            match accounts.get_mut(&debtor).and_then(|candidate| candidate.taken.pop()) {
                Some(last) => {
                    left_out.insert(last);
                    taken.get(last).and_then(Taken::moved).into_iter().for_each(|moved| balances.exclude(moved));
                }
                // Without its own orders no account owes. Were it so, the computation would refuse the cut.
                None => drop(balances.owing.remove(&(debtor, asset))),
            }
        }
        let next = |(account, Candidate { next, taken, .. }): (AccountId, Candidate)| {
            let next = next.0.saturating_add(taken.len() as u64);
            (!taken.is_empty()).then_some((account, SequenceNumber(next)))
        };
        let left = taken.into_iter().enumerate().filter(|(place, _)| !left_out.contains(place));
        (accounts.into_iter().filter_map(next).collect(), left.map(|(_, taken)| taken.entry).collect())
    }
}

/// Whether a number moves value in a cut that includes it; `None` if no cut may include it yet.
fn moves_value(transfer: Option<&Transfer>, said: Option<&NumberState>, domain: &Domain) -> Option<bool> {
    let Some(transfer) = transfer else { return said.is_some_and(NumberState::is_voided).then_some(false) };
    let Some(said) = said else { return Some(true) };
    let digest = domain.transfer_digest(transfer);
    let is_frozen = said.is_requested && said.upheld() != Some(digest);
    let is_displaced =
        matches!(transfer, Transfer::Redemption(_)) && said.spent.is_some_and(|spent| spent.digest != digest);
    (!said.is_voided() && !is_frozen).then_some(!is_displaced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::certification::compute::apply;
    use fastpay_core::checkpoint::{Cut, PrimaryEvent, PrimaryEventKind, Segment, StatePart};
    use fastpay_core::{Amount, PrimaryAddress, TransactionIndex};
    use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

    /// What an authority has executed: deposits of 10 for accounts 0 and 1, and orders of accounts, in this order.
    struct Scene {
        committee: TestCommittee,
        taken: Vec<(ShardId, SegmentEntry)>,
        events: Vec<PrimaryEventKind>,
    }

    fn id(number: u64) -> AccountId {
        TestAccount::numbered(number).id()
    }

    impl Scene {
        fn new() -> Self {
            let deposit =
                |number| PrimaryEventKind::Deposit { recipient: id(number), asset: Asset::ETHER, amount: Amount(10) };
            Self { committee: TestCommittee::new(4), taken: Vec::new(), events: vec![deposit(0), deposit(1)] }
        }

        fn execute(&mut self, shard: u32, owner: u64, transfer: impl Into<Transfer>) {
            let order = TestAccount::numbered(owner).sign(&self.committee.domain, transfer);
            self.taken.push((ShardId(shard), SegmentEntry::Executed(order)));
        }

        fn pay(&mut self, shard: u32, from: u64, to: u64, amount: u128, sequence: u64) {
            self.execute(shard, from, payment(id(from), id(to), amount, sequence));
        }

        /// The next numbers of accounts 0 to 3 in a cut, which the real computation takes.
        fn choose(&self, orders_max: usize, shards: usize) -> [u64; 4] {
            let first = CheckpointState::new(self.committee.committee.clone()).unwrap();
            let events = || (1..).map(TransactionIndex).zip(&self.events);
            let events = || events().map(|(index, kind)| PrimaryEvent { index, kind: kind.clone() });
            let segment = Segment { entries: events().map(SegmentEntry::Event).collect() };
            let (domain, mut stored) = (&self.committee.domain, Vec::new());
            first.write(&mut stored).unwrap();
            let followed = |accounts: BTreeSet<AccountId>| {
                let accounts = segment.accounts().into_iter().chain(accounts).collect();
                let part = StatePart::read(&mut stored.as_slice(), accounts).unwrap();
                part.change(|rows| apply(rows, &segment, domain, &mut |_| ())).unwrap().0
            };
            let behind = (0..4).map(|number| (id(number), SequenceNumber(0))).collect();
            let takers = followed((0..4).map(id).collect());
            let limits = (orders_max, shards);
            let mut candidates = Candidates::new(&behind, takers.rows().numbers(), domain, limits);
            self.taken.iter().for_each(|(shard, entry)| candidates.take(*shard, entry.clone()));
            let touched = followed(candidates.accounts());
            let (next, entries) = candidates.cover(touched.rows());
            let cut = Cut { up_to: TransactionIndex(self.events.len() as u64), next };
            let segment = Segment::sorted(events(), entries);
            assert_eq!(*apply(first, &segment, domain, &mut |_| ()).unwrap().0.cut(), cut);
            [0, 1, 2, 3].map(|number| cut.next(&id(number)).0)
        }
    }

    #[test]
    fn a_cut_has_at_most_so_many_orders_of_each_shard_and_covers_them() {
        let mut scene = Scene::new();
        for sequence in 0..3 {
            scene.pay(0, 0, 2, 1, sequence);
        }
        // Account 2 spends what comes last.
        scene.pay(1, 2, 3, 2, 0);
        scene.pay(1, 3, 0, 2, 0);
        scene.pay(1, 2, 3, 1, 1);
        assert_eq!(scene.choose(10, 2), [3, 0, 2, 1]);
        assert_eq!(scene.choose(4, 2), [2, 0, 1, 1], "two of each shard");
        // One payment does not cover two units, and then account 3 has nothing to spend.
        assert_eq!(scene.choose(2, 2), [1, 0, 0, 0]);
    }

    #[test]
    fn what_is_not_covered_takes_what_rests_on_it_with_it() {
        let mut scene = Scene::new();
        // Who pays account 2 is not in these journals yet.
        scene.pay(0, 2, 3, 5, 0);
        scene.pay(0, 3, 0, 5, 0);
        scene.pay(0, 0, 1, 12, 0);
        scene.pay(0, 1, 2, 1, 0);
        assert_eq!(scene.choose(10, 1), [0, 1, 0, 0]);
    }

    #[test]
    fn a_cut_ends_before_what_is_frozen_and_passes_what_is_decided() {
        let mut scene = Scene::new();
        for sequence in 0..3 {
            scene.pay(0, 0, 2, 1, sequence);
        }
        let (account, sequence) = (id(0), SequenceNumber(1));
        let request = |is_authorized| PrimaryEventKind::UnlockRequested { account, sequence, is_authorized };
        scene.events.push(request(false));
        assert_eq!(scene.choose(10, 1), [3, 0, 0, 0]);
        scene.events.push(request(true));
        assert_eq!(scene.choose(10, 1), [1, 0, 0, 0]);
        let digest = scene.committee.domain.transfer_digest(&payment(account, id(2), 1, 1).into());
        for (digest, next) in [(digest, 3), (fastpay_core::Digest::repeat_byte(1), 1)] {
            let mut scene = Scene { events: scene.events.clone(), taken: scene.taken.clone(), ..Scene::new() };
            scene.events.push(PrimaryEventKind::Upheld { account, sequence, digest });
            assert_eq!(scene.choose(10, 1), [next, 0, 0, 0]);
        }
        scene.events.push(PrimaryEventKind::Voided { account, sequence });
        assert_eq!(scene.choose(10, 1), [1, 0, 0, 0], "executed here: the node raises the alarm");
        scene.taken[1] = (ShardId(0), SegmentEntry::Void { account, sequence });
        assert_eq!(scene.choose(10, 1), [3, 0, 0, 0]);
        scene.events.pop();
        assert_eq!(scene.choose(10, 1), [1, 0, 0, 0], "voided after the cut");
    }

    #[test]
    fn a_redemption_that_the_contract_never_pays_covers_what_follows() {
        let mut scene = Scene::new();
        scene.execute(0, 0, redemption(id(0), PrimaryAddress::repeat_byte(7), 10, 0));
        scene.pay(0, 0, 2, 10, 1);
        assert_eq!(scene.choose(10, 1), [1, 0, 0, 0]);
        let digest = fastpay_core::Digest::repeat_byte(1);
        scene.events.push(PrimaryEventKind::Redeemed { account: id(0), sequence: SequenceNumber(0), digest });
        assert_eq!(scene.choose(10, 1), [2, 0, 0, 0]);
    }
}

//! Chooses a cut that can be certified.
//!
//! ```text
//!  executed here ─► before what is frozen without outcome ─► at most so many orders ─► what covers each is included
//! ```
//! Balances are summed here once more, apart from the rules by which a checkpoint is computed. An error here makes a
//! cut that nobody certifies, and nothing worse.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::checkpoint::{CheckpointState, NumberState, StatePart};
use fastpay_core::{AccountId, Amount, Asset, Balance, Domain, Record, SequenceNumber, ShardId, Transfer};

/// So many outputs of a payout take as much memory as an order.
const OUTPUTS_PER_ORDER: usize = 8;

/// How much a number weighs in a cut, in orders.
pub(super) fn weight(transfer: Option<&Transfer>) -> usize {
    match transfer {
        Some(Transfer::Payout(payout)) => 1_usize.saturating_add(payout.outputs.len() / OUTPUTS_PER_ORDER),
        Some(Transfer::Payment(_) | Transfer::Redemption(_)) | None => 1,
    }
}

/// A number that the cut includes as far as is known.
struct Taken {
    /// What it moves; nothing for a void number, or for a redemption that the contract never pays.
    transfer: Option<Transfer>,
}

/// Accounts' sums while the cut is chosen.
struct Balances {
    held: BTreeMap<(AccountId, Asset), Balance>,
    /// Those below zero.
    owing: BTreeSet<(AccountId, Asset)>,
}

impl Balances {
    fn change(&mut self, account: AccountId, asset: Asset, change: impl FnOnce(Balance) -> Balance) {
        let balance = self.held.entry((account, asset)).or_default();
        *balance = change(*balance);
        if *balance < Balance::ZERO {
            self.owing.insert((account, asset));
        } else {
            self.owing.remove(&(account, asset));
        }
    }

    fn include(&mut self, transfer: &Transfer) {
        self.move_value(transfer, Balance::debit, Balance::credit);
    }

    fn exclude(&mut self, transfer: &Transfer) {
        self.move_value(transfer, Balance::credit, Balance::debit);
    }

    fn move_value(
        &mut self,
        transfer: &Transfer,
        of_sender: fn(Balance, Amount) -> Balance,
        of_recipient: fn(Balance, Amount) -> Balance,
    ) {
        let asset = transfer.asset();
        for receipt in transfer.receipts() {
            let amount = receipt.payment.amount;
            self.change(receipt.payment.recipient, asset, |balance| of_recipient(balance, amount));
        }
        self.change(transfer.sender(), asset, |balance| of_sender(balance, transfer.amount()));
    }
}

/// The numbers that a cut may include as far as accounts can pay.
pub(super) struct Candidates(BTreeMap<AccountId, Vec<Taken>>);

/// Gathers the numbers after a cut. `followed` has the state at that cut after the events that the next one includes: at
/// least the rows of each account that has taken a number since. Of each of `shards` shards numbers are taken that weigh
/// at most an equal part of `orders_max`.
pub(super) fn gather(
    followed: &StatePart,
    records: &mut dyn Iterator<Item = (ShardId, Record)>,
    domain: &Domain,
    (orders_max, shards): (usize, usize),
) -> Candidates {
    let (mut taken, mut ended) = (BTreeMap::<AccountId, Vec<Taken>>::new(), BTreeSet::new());
    let (quota, mut weights) = (orders_max / shards.max(1), BTreeMap::<ShardId, usize>::new());
    for (shard, record) in records {
        let (account, sequence, transfer) = match record {
            Record::Confirmation { certificate, sent, .. } => {
                let transfer = certificate.order.transfer.clone();
                (transfer.sender(), SequenceNumber(sent.number), Some(transfer))
            }
            Record::Void { account, sent } => (account, SequenceNumber(sent.number), None),
            _ => continue,
        };
        let is_included = !followed.accounts().contains(&account) || sequence < followed.rows().cut().next(&account);
        if is_included || ended.contains(&account) {
            continue;
        }
        let so_far = weights.entry(shard).or_default();
        let with_it = so_far.saturating_add(weight(transfer.as_ref()));
        let said = followed.rows().numbers().get(&(account, sequence));
        let Some(effect) = effect(transfer, said, domain).filter(|_| with_it <= quota) else {
            ended.insert(account);
            continue;
        };
        *so_far = with_it;
        taken.entry(account).or_default().push(effect);
    }
    Candidates(taken)
}

impl Candidates {
    /// The accounts that they are of, and that they pay.
    pub fn accounts(&self) -> BTreeSet<AccountId> {
        let transfers = self.0.values().flatten().filter_map(|taken| taken.transfer.as_ref());
        let recipients = transfers.flat_map(Transfer::receipts).map(|receipt| receipt.payment.recipient);
        recipients.chain(self.0.keys().copied()).collect()
    }

    /// Leaves out what is not covered. Returns the next number of each account of which numbers are left. `followed` has
    /// the rows of all [`Self::accounts`], as in [`gather`].
    pub fn cover(self, followed: &CheckpointState) -> BTreeMap<AccountId, SequenceNumber> {
        let Self(mut taken) = self;
        let mut balances = Balances { held: followed.balances().clone(), owing: BTreeSet::new() };
        taken
            .values()
            .flatten()
            .filter_map(|taken| taken.transfer.as_ref())
            .for_each(|transfer| balances.include(transfer));
        while let Some((debtor, asset)) = balances.owing.first().copied() {
            match taken.get_mut(&debtor).and_then(Vec::pop) {
                Some(last) => last.transfer.iter().for_each(|transfer| balances.exclude(transfer)),
                // Without its own orders no account owes. Were it so, the computation would refuse the cut.
                None => drop(balances.owing.remove(&(debtor, asset))),
            }
        }
        let next = |(account, taken): (AccountId, Vec<Taken>)| {
            let next = followed.cut().next(&account).0.saturating_add(taken.len() as u64);
            (!taken.is_empty()).then_some((account, SequenceNumber(next)))
        };
        taken.into_iter().filter_map(next).collect()
    }
}

/// What a number does in a cut that includes it; `None` if no cut may include it yet.
fn effect(transfer: Option<Transfer>, said: Option<&NumberState>, domain: &Domain) -> Option<Taken> {
    let Some(transfer) = transfer else {
        return said.is_some_and(NumberState::is_voided).then_some(Taken { transfer: None });
    };
    let Some(said) = said else { return Some(Taken { transfer: Some(transfer) }) };
    let digest = domain.transfer_digest(&transfer);
    let is_frozen = said.is_requested && said.upheld() != Some(digest);
    let is_displaced =
        matches!(transfer, Transfer::Redemption(_)) && said.spent.is_some_and(|spent| spent.digest != digest);
    let transfer = Some(transfer).filter(|_| !is_displaced);
    (!said.is_voided() && !is_frozen).then_some(Taken { transfer })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::authority::certification::compute::apply;
    use fastpay_core::checkpoint::{Cut, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry};
    use fastpay_core::{Effect, Link, PrimaryAddress, TransactionIndex};
    use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

    /// What an authority has executed: deposits of 10 for accounts 0 and 1, and orders of accounts, in this order.
    struct Scene {
        committee: TestCommittee,
        records: Vec<(ShardId, Record)>,
        events: Vec<PrimaryEventKind>,
    }

    fn id(number: u64) -> AccountId {
        TestAccount::numbered(number).id()
    }

    impl Scene {
        fn new() -> Self {
            let deposit =
                |number| PrimaryEventKind::Deposit { recipient: id(number), asset: Asset::ETHER, amount: Amount(10) };
            Self { committee: TestCommittee::new(4), records: Vec::new(), events: vec![deposit(0), deposit(1)] }
        }

        fn execute(&mut self, shard: u32, owner: u64, transfer: impl Into<Transfer>) {
            let order = TestAccount::numbered(owner).sign(&self.committee.domain, transfer);
            let sent = Link { number: order.transfer.sequence().0, previous: None, skip: None };
            let certificate = Arc::new(self.committee.certificate(&order));
            let effect = Effect::Forwarded { to: ShardId(9), number: 1 };
            self.records.push((ShardId(shard), Record::Confirmation { certificate, sent, effect }));
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
            let takers = (0..4).map(id).collect();
            let mut records = self.records.iter().cloned();
            let candidates = gather(&followed(takers), &mut records, domain, (orders_max, shards));
            let next = candidates.cover(followed(candidates.accounts()).rows());
            let cut = Cut { up_to: TransactionIndex(self.events.len() as u64), next };
            let records = self.records.iter().cloned().map(|(_, record)| record);
            let segment = Segment::from_records(events(), records, &Cut::default(), &cut);
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
            let mut scene = Scene { events: scene.events.clone(), records: scene.records.clone(), ..Scene::new() };
            scene.events.push(PrimaryEventKind::Upheld { account, sequence, digest });
            assert_eq!(scene.choose(10, 1), [next, 0, 0, 0]);
        }
        scene.events.push(PrimaryEventKind::Voided { account, sequence });
        assert_eq!(scene.choose(10, 1), [1, 0, 0, 0], "executed here: the node raises the alarm");
        let sent = Link { number: 1, previous: None, skip: None };
        scene.records[1] = (ShardId(0), Record::Void { account, sent });
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

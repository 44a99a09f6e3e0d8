//! The requests that a shard refuses, executes once, and must never refuse.

use std::sync::Arc;

use fastpay_core::{
    AccountId, Amount, AppliedCredit, Asset, Balance, Chain, CrossShardCredit, Decision, Deposit, Effect, Epoch, Find,
    Forwarded, JournalPosition, Link, Payment, PrimaryAddress, PrimaryView, Record, Redemption, Rejection,
    SequenceNumber, Shard, ShardId, ShardLayout, ShardLedger, ShardOutputs, Standing, SynchronizationOrder,
    TransactionIndex, Transfer, TransferOrder, VoteFloor,
};
use fastpay_testkit::{Outcome, TestAccount, TestCommittee, TestShard, payment, payout, redemption};

/// The first of two shards, with one account that holds 1,000.
struct Setting {
    committee: TestCommittee,
    shard: TestShard,
    layout: ShardLayout,
    /// Owned by this shard.
    owner: TestAccount,
    /// Owned by this shard too.
    neighbour: TestAccount,
    /// Owned by the other shard.
    remote: TestAccount,
}

fn setting() -> Setting {
    let layout = ShardLayout::new(2.try_into().unwrap());
    let on = |shard: u32, skip: usize| {
        let mut accounts = (0..).map(TestAccount::numbered).filter(|a| layout.shard_of(&a.id()) == ShardId(shard));
        accounts.nth(skip).unwrap()
    };
    let mut setting = Setting {
        committee: TestCommittee::new(4),
        shard: TestShard::new(ShardId(0), layout, true),
        layout,
        owner: on(0, 0),
        neighbour: on(0, 1),
        remote: on(1, 0),
    };
    let owner = setting.owner.id();
    assert_eq!(setting.deposit(1, owner, 1_000), Ok(Outcome::Committed));
    setting
}

impl Setting {
    fn pay(&self, to: &TestAccount, amount: u128, sequence: u64) -> TransferOrder {
        self.owner.sign(&self.committee.domain, payment(self.owner.id(), to.id(), amount, sequence))
    }

    fn redeem(&self, amount: u128, sequence: u64) -> TransferOrder {
        let recipient = PrimaryAddress::repeat_byte(0xBE);
        self.owner.sign(&self.committee.domain, redemption(self.owner.id(), recipient, amount, sequence))
    }

    fn lock(&mut self, order: &TransferOrder) -> Result<Outcome, Rejection> {
        self.shard.lock(&self.committee.verified(order))
    }

    fn confirm(&mut self, order: &TransferOrder) -> Result<Outcome, Rejection> {
        self.shard.confirm(&self.committee.certified(order))
    }

    fn synchronize(&mut self, after: u64, up_to: u64, deposit: Option<Deposit>) -> Result<Outcome, Rejection> {
        let (after, up_to) = (TransactionIndex(after), TransactionIndex(up_to));
        self.shard.synchronize(&SynchronizationOrder { after, up_to, deposit })
    }

    fn deposit(&mut self, index: u64, recipient: AccountId, amount: u128) -> Result<Outcome, Rejection> {
        self.synchronize(index - 1, index, Some(deposit(index, recipient, amount)))
    }

    fn credit(&mut self, number: u64, amount: u128) -> Result<Outcome, Rejection> {
        let forwarded = Forwarded::Payment(payment(self.remote.id(), self.owner.id(), amount, number - 1));
        self.shard.credit(&CrossShardCredit { from: ShardId(1), number, forwarded })
    }

    fn balance(&self, of: &TestAccount) -> Balance {
        self.shard.account(&of.id()).balance(Asset::ETHER)
    }

    /// Runs something that must change nothing.
    #[track_caller]
    fn unchanged<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = (self.shard.accounts(), self.shard.ledger().clone(), self.shard.journal().end());
        let answer = run(self);
        assert_eq!((self.shard.accounts(), self.shard.ledger().clone(), self.shard.journal().end()), before);
        answer
    }

    #[track_caller]
    fn check_lock_refused(&mut self, order: &TransferOrder, expected: Rejection) {
        assert_eq!(self.unchanged(|setting| setting.lock(order)), Err(expected));
    }
}

fn deposit(index: u64, recipient: AccountId, amount: u128) -> Deposit {
    Deposit { index: TransactionIndex(index), recipient, asset: Asset::ETHER, amount: Amount(amount) }
}

fn held(amount: u128) -> Balance {
    Balance::from(Amount(amount))
}

#[test]
fn a_rule_asks_for_the_account_that_it_needs() {
    let Setting { committee, owner, neighbour, layout, .. } = setting();
    let mut shard = Shard::new(ShardId(0), layout, true, ShardLedger::default(), 100);
    let order = owner.sign(&committee.domain, payment(owner.id(), neighbour.id(), 1, 0));
    let certificate = committee.certified(&order);
    assert_eq!(
        shard.lock(&committee.verified(&order), Epoch(0), VoteFloor::Zero, PrimaryView::Recent),
        Decision::Load(vec![owner.id()])
    );
    assert_eq!(shard.confirm(&certificate, PrimaryView::Recent, Standing::Counts), Decision::Load(vec![owner.id()]));
    let forwarded = Forwarded::Payment(payment(owner.id(), owner.id(), 1, 0));
    let credit = CrossShardCredit { from: ShardId(1), number: 1, forwarded };
    assert_eq!(shard.credit(&credit), Decision::Load(vec![owner.id()]));
    let (after, up_to) = (TransactionIndex(0), TransactionIndex(1));
    let step = SynchronizationOrder { after, up_to, deposit: Some(deposit(1, owner.id(), 1)) };
    assert_eq!(shard.synchronize(&step), Decision::Load(vec![owner.id()]));
    shard.load(owner.id(), None);
    assert_eq!(
        shard.confirm(&certificate, PrimaryView::Recent, Standing::Counts),
        Decision::Load(vec![owner.id(), neighbour.id()])
    );
}

#[test]
fn a_stored_account_is_taken_as_it_is_and_not_over_one_in_memory() {
    let mut setting = setting();
    let order = setting.pay(&setting.neighbour.clone(), 10, 0);
    setting.lock(&order).unwrap();
    setting.shard.evict();
    assert_eq!(setting.shard.rules().accounts_in_memory(), 0);
    assert_eq!(setting.unchanged(|setting| setting.lock(&order)), Ok(Outcome::Already));

    let mut rules = setting.shard.rules().clone();
    let owner = setting.owner.id();
    rules.load(owner, None);
    assert!(rules.account(&owner).unwrap().pending.is_some());
}

#[test]
fn a_lock_is_recorded_once_and_voted_for_again() {
    let mut setting = setting();
    let order = setting.pay(&setting.remote.clone(), 1_000, 0);
    assert_eq!(setting.lock(&order), Ok(Outcome::Committed));
    assert!(matches!(setting.shard.newest_record(), Some(Record::Lock { order: recorded, .. }) if *recorded == order));
    assert_eq!(setting.balance(&setting.owner), held(1_000));
    assert_eq!(setting.unchanged(|setting| setting.lock(&order)), Ok(Outcome::Already));
}

#[test]
fn wrong_shard() {
    let mut setting = setting();
    let remote = setting.remote.clone();
    let wrong = Rejection::WrongShard { account: remote.id(), shard: ShardId(1) };
    let order = remote.sign(&setting.committee.domain, payment(remote.id(), setting.owner.id(), 1, 0));
    setting.check_lock_refused(&order, wrong.clone());
    assert_eq!(setting.unchanged(|setting| setting.confirm(&order)), Err(wrong.clone()));
    assert_eq!(setting.unchanged(|setting| setting.deposit(2, remote.id(), 1)), Err(wrong.clone()));
    let payment = payment(setting.owner.id(), remote.id(), 1, 0);
    let credit = CrossShardCredit { from: ShardId(1), number: 1, forwarded: Forwarded::Payment(payment) };
    assert_eq!(setting.unchanged(|setting| setting.shard.credit(&credit)), Err(wrong));
}

#[test]
fn order_pending() {
    let mut setting = setting();
    let [neighbour, remote] = [setting.neighbour.clone(), setting.remote.clone()];
    let first = setting.pay(&neighbour, 10, 0);
    setting.lock(&first).unwrap();
    // Whatever the other order is, the answer carries the one that is pending.
    let others = [
        setting.pay(&neighbour, 11, 0),
        setting.pay(&remote, 10, 0),
        setting.pay(&neighbour, 10, 1),
        setting.redeem(10, 0),
        setting.pay(&neighbour, 5_000, 0),
    ];
    for other in others {
        setting.check_lock_refused(&other, Rejection::OrderPending { pending: Arc::new(first.clone()) });
    }
}

#[test]
fn sequence_too_high() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    let expected = |sequence| Rejection::SequenceTooHigh { expected: SequenceNumber(sequence) };
    setting.check_lock_refused(&setting.pay(&neighbour, 1, 1), expected(0));
    setting.check_lock_refused(&setting.pay(&neighbour, 1, u64::MAX - 1), expected(0));
    setting.confirm(&setting.pay(&neighbour, 1, 0)).unwrap();
    setting.check_lock_refused(&setting.pay(&neighbour, 1, 2), expected(1));
}

#[test]
fn votes_forgotten() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    let (order, floor) = (setting.pay(&neighbour, 1, 0), VoteFloor::From(SequenceNumber(1)));
    let mut check = |floor, order: &TransferOrder, expected| {
        let order = setting.committee.verified(order);
        assert_eq!(setting.unchanged(|setting| setting.shard.lock_from(floor, &order)), Err(expected));
    };
    check(VoteFloor::Unknown, &order, Rejection::VotesForgotten { floor: None });
    check(floor, &order, Rejection::VotesForgotten { floor: Some(SequenceNumber(1)) });
    // What the rules refuse in any case is refused for that.
    let later = setting.pay(&neighbour, 1, 1);
    let too_high = Rejection::SequenceTooHigh { expected: SequenceNumber(0) };
    let verified = setting.committee.verified(&later);
    assert_eq!(setting.unchanged(|setting| setting.shard.lock_from(VoteFloor::Unknown, &verified)), Err(too_high));
    // From the floor on it votes, and a vote that it remembers is given again whatever the floor.
    setting.confirm(&order).unwrap();
    assert_eq!(setting.shard.lock_from(floor, &verified), Ok(Outcome::Committed));
    assert_eq!(setting.shard.lock_from(VoteFloor::Unknown, &verified), Ok(Outcome::Already));
}

#[test]
fn already_confirmed() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    let order = setting.pay(&neighbour, 1, 0);
    setting.confirm(&order).unwrap();
    let already = Rejection::AlreadyConfirmed { expected: SequenceNumber(1) };
    setting.check_lock_refused(&order, already.clone());
    setting.check_lock_refused(&setting.pay(&neighbour, 2, 0), already);
}

#[test]
fn insufficient_balance() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    let short = |balance, amount| Rejection::InsufficientBalance { balance: held(balance), amount: Amount(amount) };
    setting.check_lock_refused(&setting.pay(&neighbour, 1_001, 0), short(1_000, 1_001));
    setting.check_lock_refused(&setting.pay(&neighbour, u128::MAX, 0), short(1_000, u128::MAX));
    setting.check_lock_refused(&setting.redeem(1_001, 0), short(1_000, 1_001));
    let token = Asset(PrimaryAddress::repeat_byte(0x70));
    let owner = setting.owner.id();
    let of_token = Payment { asset: token, ..payment(owner, neighbour.id(), 1, 0) };
    setting.check_lock_refused(&setting.owner.sign(&setting.committee.domain, of_token), short(0, 1));
    assert_eq!(setting.lock(&setting.pay(&neighbour, 1_000, 0)), Ok(Outcome::Committed));
}

#[test]
fn no_primary() {
    let mut setting = setting();
    setting.shard = TestShard::new(ShardId(0), setting.layout, false);
    setting.deposit(1, setting.owner.id(), 1_000).unwrap();
    setting.check_lock_refused(&setting.redeem(10, 0), Rejection::NoPrimary);
    assert_eq!(setting.lock(&setting.pay(&setting.neighbour.clone(), 10, 0)), Ok(Outcome::Committed));
}

/// The money of such a payment would be nobody's. A certificate of one still counts, as any does.
#[test]
fn no_deposit_memo() {
    let mut setting = setting();
    let (owner, domain) = (setting.owner.clone(), setting.committee.domain);
    let pay = |memo: [u8; 32], sequence| {
        let payment = payment(owner.id(), AccountId::PRIVATE_POOL, 10, sequence);
        owner.sign(&domain, Payment { memo: memo.into(), ..payment })
    };
    // The order of the field, and one below it.
    let mut modulus = alloy_primitives::hex!("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");
    for memo in [[0; 32], [0xff; 32], modulus] {
        setting.check_lock_refused(&pay(memo, 0), Rejection::NoDepositMemo);
    }
    assert_eq!(setting.confirm(&pay([0; 32], 0)), Ok(Outcome::Committed));
    modulus[31] = 0;
    assert_eq!(setting.lock(&pay(modulus, 1)), Ok(Outcome::Committed));
}

#[test]
fn missing_certificate() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    let orders: Vec<_> = (0..3).map(|sequence| setting.pay(&neighbour, 1, sequence)).collect();
    let missing = |sequence| Err(Rejection::MissingCertificate { missing: SequenceNumber(sequence) });
    assert_eq!(setting.unchanged(|setting| setting.confirm(&orders[2])), missing(0));
    setting.confirm(&orders[0]).unwrap();
    assert_eq!(setting.unchanged(|setting| setting.confirm(&orders[2])), missing(1));
    setting.confirm(&orders[1]).unwrap();
    assert_eq!(setting.confirm(&orders[2]), Ok(Outcome::Committed));
}

#[test]
fn the_same_certificate_again_changes_nothing() {
    let mut setting = setting();
    let transfers = [setting.pay(&setting.neighbour, 1, 0), setting.pay(&setting.remote, 2, 1), setting.redeem(3, 2)];
    for order in &transfers {
        assert_eq!(setting.confirm(order), Ok(Outcome::Committed));
        assert_eq!(setting.unchanged(|setting| setting.confirm(order)), Ok(Outcome::Already));
    }
    for order in &transfers {
        assert_eq!(setting.unchanged(|setting| setting.confirm(order)), Ok(Outcome::Already));
    }
    // Nor does one with the votes of other authorities.
    let other = setting.committee.certificate_by(&transfers[0], &[1, 2, 3]);
    let other = other.verify(&setting.committee.domain, &setting.committee.committee).unwrap();
    assert_eq!(setting.unchanged(|setting| setting.shard.confirm(&other)), Ok(Outcome::Already));
    assert_eq!(setting.balance(&setting.owner), held(994));
}

#[test]
fn a_confirmation_moves_the_value_and_frees_the_account() {
    let mut setting = setting();
    let (neighbour, remote) = (setting.neighbour.clone(), setting.remote.clone());
    let order = setting.pay(&neighbour, 300, 0);
    setting.lock(&order).unwrap();
    setting.confirm(&order).unwrap();
    let account = setting.shard.account(&setting.owner.id());
    assert_eq!((account.pending, account.sent.count()), (None, 1));
    assert_eq!((setting.balance(&setting.owner), setting.balance(&neighbour)), (held(700), held(300)));
    assert_eq!(setting.shard.account(&neighbour.id()).received.count(), 1);

    // To an account elsewhere: into the outbox, numbered from 1.
    setting.confirm(&setting.pay(&remote, 200, 1)).unwrap();
    setting.confirm(&setting.pay(&remote, 100, 2)).unwrap();
    let outbox = &setting.shard.ledger().outboxes[&ShardId(1)];
    let waiting: Vec<_> = outbox
        .waiting
        .iter()
        .map(|credit| (credit.number, credit.receipts().map(|paid| paid.payment.amount).collect::<Vec<_>>()))
        .collect();
    assert_eq!((outbox.issued, waiting), (2, vec![(1, vec![Amount(200)]), (2, vec![Amount(100)])]));

    // Out: nobody is credited, and the certificate is in the redemption log.
    setting.confirm(&setting.redeem(400, 3)).unwrap();
    assert_eq!(setting.balance(&setting.owner), held(0));
    let Find::Found(position) = setting.shard.ledger().redemptions.find(0) else { panic!("the newest is known") };
    let record = setting.shard.journal().read(position);
    assert!(matches!(record, Record::Confirmation { effect: Effect::Redeemed { .. }, .. }));
}

#[test]
fn a_certificate_goes_before_the_order_that_the_account_is_locked_on() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    let (locked, certified) = (setting.pay(&neighbour, 10, 0), setting.pay(&neighbour, 20, 0));
    setting.lock(&locked).unwrap();
    assert_eq!(setting.confirm(&certified), Ok(Outcome::Committed));
    assert_eq!(setting.balance(&neighbour), held(20));
    setting.check_lock_refused(&locked, Rejection::AlreadyConfirmed { expected: SequenceNumber(1) });
    assert_eq!(setting.lock(&setting.pay(&neighbour, 1, 1)), Ok(Outcome::Committed));
}

#[test]
fn a_payment_to_oneself_changes_no_balance() {
    let mut setting = setting();
    let owner = setting.owner.clone();
    setting.confirm(&setting.pay(&owner, 600, 0)).unwrap();
    let account = setting.shard.account(&owner.id());
    assert_eq!((account.sent.count(), account.received.count()), (1, 1));
    assert_eq!(account.balance(Asset::ETHER), held(1_000));
}

#[test]
fn certificates_may_come_before_the_credits_that_cover_them() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    setting.confirm(&setting.pay(&neighbour, 1_500, 0)).unwrap();
    setting.confirm(&setting.redeem(u128::MAX, 1)).unwrap();
    let below = held(1_000).debit(Amount(1_500)).debit(Amount(u128::MAX));
    assert_eq!(setting.balance(&setting.owner), below);
    let expected = Rejection::InsufficientBalance { balance: below, amount: Amount(1) };
    setting.check_lock_refused(&setting.pay(&neighbour, 1, 2), expected);
    setting.credit(1, u128::MAX).unwrap();
    setting.deposit(2, setting.owner.id(), 501).unwrap();
    assert_eq!(setting.balance(&setting.owner), held(1));
    assert_eq!(setting.lock(&setting.pay(&neighbour, 1, 2)), Ok(Outcome::Committed));
}

#[test]
fn synchronization_gap() {
    let mut setting = setting();
    let owner = setting.owner.id();
    let gap = Err(Rejection::SynchronizationGap { synchronized: TransactionIndex(1) });
    assert_eq!(setting.unchanged(|setting| setting.deposit(3, owner, 5)), gap);
    assert_eq!(setting.unchanged(|setting| setting.synchronize(2, 9, None)), gap);
    // A deposit that is not the step's end would be skipped or repeated.
    let unfit = Some(deposit(2, owner, 5));
    assert_eq!(setting.unchanged(|setting| setting.synchronize(1, 3, unfit)), gap);
}

#[test]
fn deposits_are_credited_once() {
    let mut setting = setting();
    let owner = setting.owner.id();
    assert_eq!(setting.unchanged(|setting| setting.deposit(1, owner, 1_000)), Ok(Outcome::Already));
    assert_eq!(setting.synchronize(1, 6, None), Ok(Outcome::Committed));
    assert_eq!(setting.unchanged(|setting| setting.deposit(5, owner, 1_000)), Ok(Outcome::Already));
    assert_eq!(setting.unchanged(|setting| setting.synchronize(0, 6, None)), Ok(Outcome::Already));
    // A step that begins earlier than needed is as good.
    assert_eq!(setting.synchronize(2, 8, Some(deposit(8, owner, 7))), Ok(Outcome::Committed));
    assert_eq!(setting.shard.ledger().synchronized, TransactionIndex(8));
    assert_eq!(setting.balance(&setting.owner), held(1_007));
    assert_eq!(setting.shard.account(&owner).deposits.count(), 2);
}

#[test]
fn credit_gap() {
    let mut setting = setting();
    let gap = |expected| Err(Rejection::CreditGap { expected });
    assert_eq!(setting.unchanged(|setting| setting.credit(2, 5)), gap(1));
    setting.credit(1, 5).unwrap();
    assert_eq!(setting.unchanged(|setting| setting.credit(3, 5)), gap(2));
}

#[test]
fn credits_are_applied_once() {
    let mut setting = setting();
    for number in 1..=3 {
        assert_eq!(setting.credit(number, 5), Ok(Outcome::Committed));
        assert_eq!(setting.unchanged(|setting| setting.credit(number, 5)), Ok(Outcome::Already));
    }
    assert_eq!(setting.unchanged(|setting| setting.credit(1, 5)), Ok(Outcome::Already));
    assert_eq!(setting.balance(&setting.owner), held(1_015));
    assert_eq!(setting.shard.account(&setting.owner.id()).received.count(), 3);
    assert_eq!(setting.shard.ledger().inbox(ShardId(1)), 3);
}

#[test]
fn acknowledged_credits_are_forgotten_and_their_numbers_are_not_used_again() {
    let mut setting = setting();
    let remote = setting.remote.clone();
    for sequence in 0..3 {
        setting.confirm(&setting.pay(&remote, 1, sequence)).unwrap();
    }
    setting.shard.acknowledge(ShardId(1), 2);
    setting.shard.acknowledge(ShardId(1), 1);
    setting.shard.acknowledge(ShardId(7), 1);
    let numbers = |setting: &Setting| {
        let outbox = &setting.shard.ledger().outboxes[&ShardId(1)];
        outbox.waiting.iter().map(|credit| credit.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&setting), [3]);
    setting.shard.acknowledge(ShardId(1), 3);
    setting.confirm(&setting.pay(&remote, 1, 3)).unwrap();
    assert_eq!(numbers(&setting), [4]);
}

#[test]
fn every_certificate_of_an_account_is_found_by_its_number() {
    let mut setting = setting();
    let recipients = [setting.neighbour.clone(), setting.remote.clone(), setting.owner.clone()];
    let orders: Vec<_> = (0..40_u64)
        .map(|sequence| match sequence % 4 {
            3 => setting.redeem(1, sequence),
            other => setting.pay(&recipients[usize::try_from(other).unwrap()], 1, sequence),
        })
        .collect();
    for order in &orders {
        setting.confirm(order).unwrap();
    }
    let sent = setting.shard.account(&setting.owner.id()).sent;
    for order in &orders {
        let number = order.transfer.sequence().0;
        let mut step = sent.find(number);
        while let Find::Read(position, entry) = step {
            let record = setting.shard.journal().read(position);
            step = record.link(Chain::Sent, entry, position).unwrap().find(number);
        }
        let Find::Found(position) = step else { panic!("certificate {number} is absent") };
        let Record::Confirmation { certificate, .. } = setting.shard.journal().read(position) else {
            panic!("certificate {number} is another record")
        };
        assert_eq!(&certificate.order, order);
    }
}

#[test]
fn totals_follow_every_way_of_the_value() {
    let mut setting = setting();
    let transfers: Vec<Transfer> = [setting.pay(&setting.neighbour, 1, 0), setting.pay(&setting.remote, 20, 1)]
        .into_iter()
        .chain([setting.redeem(300, 2)])
        .map(|order| {
            setting.confirm(&order).unwrap();
            order.transfer
        })
        .collect();
    assert_eq!(transfers.len(), 3);
    setting.credit(1, 4_000).unwrap();
    let totals = setting.shard.ledger().totals[&Asset::ETHER];
    assert_eq!(totals.deposited, held(1_000));
    assert_eq!(totals.forwarded, held(20));
    assert_eq!(totals.redeemed, held(300));
    assert_eq!(totals.credited, held(4_000));
    assert_eq!(totals.accounts, held(1_000 - 20 - 300 + 4_000));
}

#[test]
fn a_redemption_debits_its_fee_within_the_amount() {
    let mut setting = setting();
    let all_fee = Redemption {
        fee: Amount(1_000),
        ..redemption(setting.owner.id(), PrimaryAddress::repeat_byte(0xBE), 1_000, 0)
    };
    let order = setting.owner.sign(&setting.committee.domain, all_fee);
    assert_eq!(setting.lock(&order), Ok(Outcome::Committed));
    assert_eq!(setting.confirm(&order), Ok(Outcome::Committed));
    assert_eq!(setting.balance(&setting.owner), Balance::ZERO);
}

impl Setting {
    fn pay_out(&self, outputs: &[(&TestAccount, u128)], sequence: u64) -> TransferOrder {
        let outputs: Vec<_> = outputs.iter().map(|(to, amount)| (to.id(), *amount)).collect();
        self.owner.sign(&self.committee.domain, payout(self.owner.id(), &outputs, sequence))
    }

    /// What stands under a number in what an account of this shard received.
    fn received(&self, of: &TestAccount, number: u64) -> (u128, Option<u16>) {
        let mut step = self.shard.account(&of.id()).received.find(number);
        loop {
            match step {
                Find::Found(position) => {
                    let record = self.shard.journal().read(position);
                    let receipt = record.received_by(of.id(), number).unwrap();
                    return (receipt.payment.amount.0, receipt.output);
                }
                Find::Read(position, entry) => {
                    let record = self.shard.journal().read(position);
                    step = record.link(Chain::Received(of.id()), entry, position).unwrap().find(number);
                }
                Find::Absent => panic!("entry {number} is lost"),
            }
        }
    }
}

#[test]
fn a_payout_is_locked_for_its_sum_and_executed_as_a_whole() {
    let mut setting = setting();
    let (neighbour, remote) = (setting.neighbour.clone(), setting.remote.clone());
    let too_much = setting.pay_out(&[(&neighbour, 600), (&remote, 401)], 0);
    let refusal = Rejection::InsufficientBalance { balance: held(1_000), amount: Amount(1_001) };
    setting.check_lock_refused(&too_much, refusal);
    let order = setting.pay_out(&[(&neighbour, 600), (&remote, 300), (&remote, 100)], 0);
    assert_eq!(setting.lock(&order), Ok(Outcome::Committed));
    assert_eq!(setting.unchanged(|setting| setting.lock(&order)), Ok(Outcome::Already));
    assert_eq!(setting.balance(&setting.owner), held(1_000));
    assert_eq!(setting.confirm(&order), Ok(Outcome::Committed));
    assert_eq!((setting.balance(&setting.owner), setting.balance(&neighbour)), (held(0), held(600)));
    assert!(setting.shard.account(&setting.owner.id()).pending.is_none());
    // One credit has all outputs for the other shard.
    let outbox = &setting.shard.ledger().outboxes[&ShardId(1)];
    assert_eq!((outbox.issued, outbox.waiting.len()), (1, 1));
    let paid: Vec<_> = outbox.waiting[0].receipts().collect();
    assert_eq!(
        paid.iter().map(|paid| (paid.output, paid.payment.amount.0)).collect::<Vec<_>>(),
        [(Some(1), 300), (Some(2), 100)]
    );
    assert!(paid.iter().all(|paid| paid.payment.recipient == remote.id()));
    assert_eq!(setting.unchanged(|setting| setting.confirm(&order)), Ok(Outcome::Already));
    let totals = setting.shard.ledger().totals[&Asset::ETHER];
    assert_eq!((totals.accounts, totals.forwarded), (held(600), held(400)));
}

#[test]
fn a_payout_without_cover_is_confirmed_all_the_same() {
    let mut setting = setting();
    let neighbour = setting.neighbour.clone();
    let order = setting.pay_out(&[(&neighbour, 600), (&neighbour, 601)], 0);
    assert_eq!(setting.confirm(&order), Ok(Outcome::Committed));
    assert_eq!(
        (setting.balance(&setting.owner), setting.balance(&neighbour)),
        (held(1_000).debit(Amount(1_201)), held(1_201))
    );
}

#[test]
fn a_recipient_of_several_outputs_of_a_payout_finds_each() {
    let mut setting = setting();
    let (owner, neighbour) = (setting.owner.clone(), setting.neighbour.clone());
    let before = setting.pay(&neighbour, 5, 0);
    setting.confirm(&before).unwrap();
    // The sender is among the recipients.
    let paid = [(&neighbour, 1), (&owner, 2), (&neighbour, 3), (&neighbour, 4), (&owner, 6), (&neighbour, 7)];
    let order = setting.pay_out(&paid, 1);
    setting.confirm(&order).unwrap();
    let after = setting.pay(&neighbour, 8, 2);
    setting.confirm(&after).unwrap();
    for _ in 0..2 {
        let received: Vec<_> = (0..6).map(|number| setting.received(&neighbour, number)).collect();
        assert_eq!(received, [(5, None), (1, Some(0)), (3, Some(2)), (4, Some(3)), (7, Some(5)), (8, None)]);
        assert_eq!([0, 1].map(|number| setting.received(&owner, number)), [(2, Some(1)), (6, Some(4))]);
        assert_eq!(setting.balance(&neighbour), held(5 + 1 + 3 + 4 + 7 + 8));
        setting.shard.restart_from_journal();
    }
}

#[test]
fn outputs_from_another_shard_are_credited_together_and_once() {
    let mut setting = setting();
    let (owner, neighbour, remote) = (setting.owner.clone(), setting.neighbour.clone(), setting.remote.clone());
    let outputs = |to: [&TestAccount; 3]| {
        let part = ShardOutputs {
            digest: Default::default(),
            sender: remote.id(),
            asset: Asset::ETHER,
            sequence: SequenceNumber(0),
            outputs: payout(remote.id(), &to.map(|to| (to.id(), 7)), 0)
                .outputs
                .numbered()
                .map(|(number, output)| (number * 2, output.clone()))
                .collect(),
        };
        CrossShardCredit { from: ShardId(1), number: 1, forwarded: Forwarded::Outputs(part.into()) }
    };
    let wrong = outputs([&owner, &neighbour, &remote]);
    let refused = setting.unchanged(|setting| setting.shard.credit(&wrong));
    assert_eq!(refused, Err(Rejection::WrongShard { account: remote.id(), shard: ShardId(1) }));
    let credit = outputs([&owner, &neighbour, &owner]);
    assert_eq!(setting.shard.credit(&credit), Ok(Outcome::Committed));
    assert_eq!(setting.unchanged(|setting| setting.shard.credit(&credit)), Ok(Outcome::Already));
    assert_eq!((setting.balance(&owner), setting.balance(&neighbour)), (held(1_014), held(7)));
    assert_eq!([0, 1].map(|number| setting.received(&owner, number)), [(7, Some(0)), (7, Some(4))]);
    assert_eq!(setting.received(&neighbour, 0), (7, Some(2)));
    assert_eq!(setting.shard.ledger().totals[&Asset::ETHER].credited, held(21));
    let gap = CrossShardCredit { number: 3, ..credit };
    assert_eq!(setting.unchanged(|setting| setting.shard.credit(&gap)), Err(Rejection::CreditGap { expected: 2 }));
}

#[test]
fn a_record_with_the_most_accounts_finds_room_in_the_smallest_memory() {
    let layout = ShardLayout::new(1.try_into().unwrap());
    let committee = TestCommittee::new(4);
    let mut shard = TestShard::new(ShardId(0), layout, true);
    let owner = TestAccount::numbered(0);
    let order = SynchronizationOrder {
        after: TransactionIndex(0),
        up_to: TransactionIndex(1),
        deposit: Some(deposit(1, owner.id(), 100_000)),
    };
    shard.synchronize(&order).unwrap();
    for sequence in 0..3 {
        let outputs: Vec<_> = (0..256_u64)
            .map(|number| (AccountId([(number + sequence * 100).to_be_bytes(); 4].concat().try_into().unwrap()), 1))
            .collect();
        // The zero account is nobody's.
        let outputs: Vec<_> = outputs.into_iter().filter(|(id, _)| *id != AccountId::ZERO).collect();
        let order = owner.sign(&committee.domain, payout(owner.id(), &outputs, sequence));
        assert_eq!(shard.lock(&committee.verified(&order)), Ok(Outcome::Committed));
        assert_eq!(shard.confirm(&committee.certified(&order)), Ok(Outcome::Committed));
    }
    let accounts = shard.accounts();
    shard.restart_from_journal();
    assert_eq!(shard.accounts(), accounts);
    assert_eq!(shard.account(&owner.id()).balance(Asset::ETHER), held(100_000 - 255 - 256 - 256));
}

/// The bytes on disk of before there were payouts are read as they were written.
#[test]
fn records_of_payments_have_the_bytes_that_they_always_had() {
    let setting = setting();
    let paid = payment(setting.remote.id(), setting.owner.id(), 7, 2);
    let credit = CrossShardCredit { from: ShardId(1), number: 9, forwarded: Forwarded::Payment(paid.clone()) };
    let link = Link { number: 3, previous: Some(JournalPosition(5)), skip: None };
    let record = Record::Credit(AppliedCredit { credit: credit.clone(), received: vec![link] });
    let bytes = [&[2][..], &borsh::to_vec(&(ShardId(1), 9_u64, &paid, link)).unwrap()].concat();
    assert_eq!(borsh::to_vec(&record).unwrap(), bytes);
    assert_eq!(borsh::from_slice::<Record>(&bytes).unwrap(), record);
    let order = setting.pay(&setting.remote, 1, 0);
    assert_eq!(borsh::to_vec(&order).unwrap()[0], 0, "a payment is the first kind of a transfer");
    let outbox = borsh::to_vec(&(1_u64, vec![(ShardId(1), 9_u64, &paid)])).unwrap();
    assert_eq!(borsh::from_slice::<fastpay_core::Outbox>(&outbox).unwrap().waiting, [credit]);
}

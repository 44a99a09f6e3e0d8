//! The shard that owns the pool: what it locks, executes, freezes and keeps of private transfers. Each test leaves out what
//! one rule of docs/PRIVATE.md ("A nullifier's life") asks for.

use fastpay_core::private::*;
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Chain, Decision, Deposit, Digest, Effect, Epoch, Installation, PrimaryAddress,
    PrimaryView, Record, Rejection, SequenceNumber, ShardId, ShardLayout, Standing, SynchronizationOrder,
    TransactionIndex, UnlockEvent, UnlockEventKind, VoteFloor,
};
use fastpay_testkit::{Outcome, TestCommittee, TestShard};

use crate::private_orders::*;

const VOIDABLE_AT: u64 = 1_000;
const RECIPIENT: AccountId = AccountId([0xaa; 32]);
const POOL: AccountId = AccountId::PRIVATE_POOL;
type Answer = Result<Outcome, PrivateRejection>;

/// The pool's shard of two, with 100 in the pool.
struct Setting {
    committee: TestCommittee,
    layout: ShardLayout,
    shard: TestShard,
    index: u64,
    versions: Versions,
    view: PrimaryView,
}

fn setting() -> Setting {
    of_shards(1)
}

fn of_shards(count: u32) -> Setting {
    let layout = ShardLayout::new(count.try_into().unwrap());
    let shard = TestShard::new(layout.shard_of(&POOL), layout, true);
    let committee = TestCommittee::new(4);
    let mut setting = Setting { committee, layout, shard, index: 0, versions: VERSIONS, view: PrimaryView::Recent };
    setting.deposit(Asset::ETHER, 100);
    setting
}

impl Setting {
    fn deposit(&mut self, asset: Asset, amount: u128) {
        let (after, up_to) = (TransactionIndex(self.index), TransactionIndex(self.index + 1));
        let deposit = Some(Deposit { index: up_to, recipient: POOL, asset, amount: Amount(amount) });
        assert_eq!(self.shard.synchronize(&SynchronizationOrder { after, up_to, deposit }), Ok(Outcome::Committed));
        self.index += 1;
    }

    fn follow(&mut self, (account, sequence): (AccountId, SequenceNumber), kind: UnlockEventKind) {
        let (after, index) = (TransactionIndex(self.index), TransactionIndex(self.index + 1));
        let event = UnlockEvent { after, index, account, sequence, kind };
        assert_eq!(self.shard.follow_unlock(&event), Ok(Outcome::Committed));
        assert_eq!(self.shard.follow_unlock(&event), Ok(Outcome::Already));
        self.index += 1;
        let TestCommittee { domain, committee, .. } = &self.committee;
        let verify = |certificate: PrivateCertificate| certificate.verify(domain, committee).unwrap();
        self.shard.advance_private(account, self.view, verify);
    }

    fn request(&mut self, number: (AccountId, SequenceNumber)) {
        self.follow(number, UnlockEventKind::Requested(VOIDABLE_AT));
    }

    fn install(&mut self, epoch: u64) {
        let (after, index) = (TransactionIndex(self.index), TransactionIndex(self.index + 1));
        let epoch = Epoch(epoch);
        let installation = Installation { after, index, epoch, compromised_since: epoch, voidable_at: VOIDABLE_AT };
        assert_eq!(self.shard.follow_installation(&installation), Ok(Outcome::Committed));
        self.index += 1;
    }

    fn vote_to_void(&mut self, number: (AccountId, SequenceNumber)) -> Result<Outcome, Rejection> {
        self.shard.void_vote(number, false, Epoch(0), VoteFloor::Zero, VOIDABLE_AT)
    }

    fn order(&self, transfer: PrivateTransfer) -> VerifiedPrivateOrder {
        verified(&self.committee.domain, transfer)
    }

    fn digest(&self, transfer: PrivateTransfer) -> Digest {
        self.order(transfer).digest()
    }

    fn lock(&mut self, transfer: PrivateTransfer) -> Answer {
        let order = self.order(transfer);
        let now = (Epoch(0), self.view);
        let before = self.shard.precheck_private(order.checked(), now, &self.versions);
        let answer = self.shard.lock_private(&order, now, VoteFloor::Zero, &self.versions);
        match (before, &answer) {
            (None, Ok(Outcome::Committed)) | (Some(Decision::Already), Ok(Outcome::Already)) => {}
            (Some(Decision::Refuse(before)), Err(after)) => assert_eq!(before, *after),
            other => panic!("the proof decided: {other:?}"),
        }
        answer
    }

    fn confirm(&mut self, transfer: PrivateTransfer) -> Answer {
        self.confirm_standing(transfer, Standing::Counts)
    }

    fn confirm_standing(&mut self, transfer: PrivateTransfer, standing: Standing) -> Answer {
        let certificate = certified(&self.committee, &self.order(transfer));
        let answer = self.shard.confirm_private(&certificate, self.view, standing);
        self.check_restart();
        answer
    }

    /// The journal alone makes the same state, and so does the store with the journal's end.
    fn check_restart(&mut self) {
        let state = |shard: &TestShard| (shard.accounts(), shard.ledger().clone());
        let before = state(&self.shard);
        self.shard.take_part_of_checkpoint(1);
        self.shard.restart();
        assert_eq!(state(&self.shard), before);
        self.shard.evict();
        self.shard.restart_from_journal();
        assert_eq!(state(&self.shard), before);
    }

    fn pool(&self) -> &Pool {
        &self.shard.ledger().pool
    }

    fn held(&self, account: AccountId) -> Balance {
        self.shard.account(&account).balance(Asset::ETHER)
    }

    fn reserved(&self) -> Balance {
        self.pool().reserved(Asset::ETHER)
    }

    fn next(&self, number: u64) -> u64 {
        self.shard.account(&nullifier(number).account()).next_sequence().0
    }
}

/// Number `sequence` of the nullifier with this number.
fn number(of: u64, sequence: u64) -> (AccountId, SequenceNumber) {
    (nullifier(of).account(), SequenceNumber(sequence))
}

fn numbered(sequence: u64, transfer: PrivateTransfer) -> PrivateTransfer {
    PrivateTransfer { sequence: SequenceNumber(sequence), ..transfer }
}

fn refused(rejection: Rejection) -> Answer {
    Err(rejection.into())
}

fn spent(of: u64, sequence: u64) -> Answer {
    let (account, sequence) = number(of, sequence);
    Err(PrivateRejection::Spent { account, sequence })
}

#[test]
fn locked() {
    let mut setting = setting();
    let first = transfer(1, 2, 30);
    assert_eq!(setting.lock(first), Ok(Outcome::Committed));
    for other in [transfer(1, 3, 0), transfer(3, 2, 0), transfer(2, 4, 0), transfer(1, 2, 29)] {
        let Err(PrivateRejection::Locked { pending }) = setting.lock(other) else { panic!("{other:?} is locked") };
        let PrivateEvidence::Proven(order) = &pending.evidence else { panic!("the proof is kept") };
        assert_eq!(**order, proven(&setting.committee.domain, first));
    }
    assert_eq!(setting.lock(transfer(5, 1, 0)), setting.lock(transfer(5, 2, 0)), "whichever of its numbers");
    // The same order gets its vote again, whatever became of the versions.
    setting.versions = Versions { committee: 4, oldest_rules: 9, newest_rules: 9 };
    assert_eq!(setting.lock(first), Ok(Outcome::Already));
    setting.check_restart();
    assert_eq!(setting.lock(first), Ok(Outcome::Already));
}

#[test]
fn spent_is_spent() {
    let mut setting = setting();
    assert_eq!(setting.confirm(transfer(1, 2, 30)), Ok(Outcome::Committed));
    let before = setting.shard.ledger().clone();
    for (other, by) in [(transfer(1, 2, 30), 1), (transfer(1, 3, 0), 1), (transfer(3, 2, 0), 2), (transfer(2, 4, 0), 2)]
    {
        assert_eq!(setting.lock(other), spent(by, 0));
    }
    // No later number, either: the account is another one from now on.
    assert_eq!(setting.lock(numbered(1, transfer(1, 3, 0))), spent(1, 0));
    // A certificate that spends one of them again takes more than f faulty members.
    assert_eq!(setting.confirm(transfer(3, 2, 0)), spent(2, 0));
    assert_eq!(setting.confirm(numbered(1, transfer(1, 3, 0))), spent(1, 0));
    assert_eq!(setting.confirm(transfer(1, 2, 30)), Ok(Outcome::Already));
    assert_eq!(*setting.shard.ledger(), before);
}

#[test]
fn another_shard() {
    let layout = ShardLayout::new(2.try_into().unwrap());
    let shard = layout.shard_of(&POOL);
    let mut setting = setting();
    setting.shard = TestShard::new(ShardId(1 - shard.0), layout, true);
    let wrong = refused(Rejection::WrongShard { account: nullifier(1).account(), shard });
    assert_eq!(setting.lock(transfer(1, 2, 0)), wrong);
    assert_eq!(setting.confirm(transfer(1, 2, 0)), wrong);
}

#[test]
fn unknown_and_stale_versions() {
    let mut setting = setting();
    let of = |committee, rules| PrivateTransfer { committee, rules, ..transfer(1, 2, 0) };
    let stale = Err(PrivateRejection::StaleVersion { committee: 3, oldest_rules: 5 });
    assert_eq!(setting.lock(of(4, 7)), Err(PrivateRejection::UnknownVersion));
    assert_eq!(setting.lock(of(3, 8)), Err(PrivateRejection::UnknownVersion));
    assert_eq!(setting.lock(of(2, 7)), stale);
    assert_eq!(setting.lock(of(3, 4)), stale);
    // What a vote needs is said before a proof is checked that only old keys could check.
    let old = proven(&setting.committee.domain, of(2, 7)).check(&setting.committee.domain).unwrap();
    let now = (Epoch(0), PrimaryView::Recent);
    let decision = setting.shard.precheck_private(&old, now, &VERSIONS);
    assert_eq!(decision, Some(Decision::Refuse(PrivateRejection::StaleVersion { committee: 3, oldest_rules: 5 })));
    assert_eq!(setting.lock(of(3, 5)), Ok(Outcome::Committed));
    // Certificates count under any.
    let old = PrivateTransfer { committee: 1, rules: 1, ..transfer(5, 6, 0) };
    assert_eq!(setting.confirm(old), Ok(Outcome::Committed));
}

#[test]
fn pool_short() {
    let mut setting = setting();
    let short = |available: u128, amount| {
        Err(PrivateRejection::PoolShort { available: Balance::from(Amount(available)), amount: Amount(amount) })
    };
    assert_eq!(setting.lock(transfer(1, 2, 101)), short(100, 101));
    setting.lock(transfer(1, 2, 70)).unwrap();
    assert_eq!(setting.lock(transfer(3, 4, 31)), short(30, 31));
    setting.lock(transfer(3, 4, 30)).unwrap();
    assert_eq!(setting.lock(transfer(5, 6, 1)), short(0, 1));
    // Another asset has a pool of its own.
    let token = Asset(PrimaryAddress::repeat_byte(7));
    let of_token = PrivateTransfer { asset: token, ..transfer(7, 8, 1) };
    assert_eq!(setting.lock(of_token), short(0, 1));
    setting.deposit(token, 1);
    assert_eq!(setting.lock(of_token), Ok(Outcome::Committed));
    // What withdraws nothing needs nothing, also where certificates took more than there was.
    setting.confirm(transfer(9, 10, u128::MAX)).unwrap();
    assert!(!setting.held(POOL).covers(Amount::ZERO));
    assert_eq!(setting.lock(transfer(11, 12, 0)), Ok(Outcome::Committed));
    assert!(matches!(setting.lock(transfer(13, 14, 1)), Err(PrivateRejection::PoolShort { .. })));
}

/// An owner shows one order to this member, and another one of the same number to the others. What the first reserves here
/// ends with the other's certificate, which a member asks its peers for by number.
#[test]
fn withheld_certificates_are_asked_for_by_number() {
    let mut setting = setting();
    setting.lock(transfer(1, 2, 20)).unwrap();
    setting.lock(transfer(3, 4, 80)).unwrap();
    setting.lock(transfer(5, 6, 0)).unwrap();
    assert!(matches!(setting.lock(transfer(7, 8, 1)), Err(PrivateRejection::PoolShort { .. })));
    assert_eq!(setting.pool().lacking(Asset::ETHER), [number(3, 0), number(1, 0)]);
    assert_eq!(setting.pool().lacking(Asset(PrimaryAddress::repeat_byte(7))), []);
    setting.confirm(transfer(3, 9, 0)).unwrap();
    assert_eq!(setting.pool().lacking(Asset::ETHER), [number(1, 0)]);
    assert_eq!(setting.lock(transfer(7, 8, 80)), Ok(Outcome::Committed));
}

#[test]
fn a_withdrawal_pays_its_recipient_once_and_ends_its_reservation() {
    let mut setting = setting();
    let withdrawal = PrivateTransfer { memo: [6; 32].into(), ..transfer(1, 2, 30) };
    setting.lock(withdrawal).unwrap();
    assert_eq!(setting.reserved(), Balance::from(Amount(30)));
    assert_eq!(setting.confirm(withdrawal), Ok(Outcome::Committed));
    assert_eq!(setting.reserved(), Balance::ZERO);
    assert_eq!([POOL, RECIPIENT].map(|of| setting.held(of)), [70, 30].map(|of| Balance::from(Amount(of))));
    let record = setting.shard.newest_record().unwrap();
    let received = record.received_by(RECIPIENT, 0).unwrap();
    let payment = received.payment;
    assert_eq!((payment.sender, payment.sequence, received.output), (number(1, 0).0, SequenceNumber(0), Some(0)));
    assert_eq!((payment.amount, payment.memo, payment.recipient), (Amount(30), withdrawal.memo, RECIPIENT));
    assert_eq!(record.payout_digest(), Some(setting.digest(withdrawal)));
    // Entry of three histories.
    let position = setting.shard.account(&RECIPIENT).received.newest().unwrap();
    for (of, chain) in [(1, Chain::Sent), (2, Chain::Sent), (1, Chain::Received(RECIPIENT))] {
        let sent = setting.shard.account(&nullifier(of).account()).sent.newest();
        assert_eq!((sent, record.link(chain, 0, position).unwrap().number), (Some(position), 0));
    }
    let totals = setting.shard.ledger().totals[&Asset::ETHER];
    assert_eq!((totals.accounts, totals.deposited), (Balance::from(Amount(100)), Balance::from(Amount(100))));
}

#[test]
fn a_withdrawal_to_another_shard_is_forwarded_and_credited_once() {
    let mut setting = of_shards(2);
    let here = setting.shard.rules().id();
    let recipient = (1..).map(|byte| AccountId([byte; 32])).find(|id| setting.layout.shard_of(id) != here).unwrap();
    let withdrawal = PrivateTransfer { recipient, ..transfer(1, 2, 30) };
    let to = setting.layout.shard_of(&recipient);
    setting.confirm(withdrawal).unwrap();
    let record = setting.shard.newest_record().unwrap();
    assert_eq!(record.forwarded(), [(to, 1)]);
    let Record::PrivateConfirmation(confirmation) = &record else { panic!("{record:?}") };
    assert_eq!(confirmation.effect, Some(Effect::Forwarded { to, number: 1 }));
    let credit = setting.shard.ledger().outboxes[&to].waiting[0].clone();
    let mut other = TestShard::new(to, setting.layout, true);
    assert_eq!(other.credit(&credit), Ok(Outcome::Committed));
    assert_eq!(other.credit(&credit), Ok(Outcome::Already));
    assert_eq!(other.account(&recipient).balance(Asset::ETHER), Balance::from(Amount(30)));
    let received = other.newest_record().unwrap();
    assert_eq!(received.payout_digest(), Some(setting.digest(withdrawal)));
    assert_eq!(received.received_by(recipient, 0), withdrawal.withdrawal());
    let totals = setting.shard.ledger().totals[&Asset::ETHER];
    assert_eq!((totals.accounts, totals.forwarded), (Balance::from(Amount(70)), Balance::from(Amount(30))));
}

/// A lock that can be certified no more holds neither its other nullifier nor a part of the pool.
#[test]
fn a_certificate_ends_locks_and_frees_what_they_held() {
    let mut setting = setting();
    setting.lock(transfer(1, 2, 60)).unwrap();
    setting.lock(transfer(3, 4, 40)).unwrap();
    setting.confirm(transfer(1, 4, 0)).unwrap();
    assert_eq!([1, 2, 3, 4].map(|of| setting.next(of)), [1, 0, 0, 1]);
    assert!(setting.pool().is_empty());
    assert_eq!(setting.lock(transfer(3, 2, 100)), Ok(Outcome::Committed));
}

#[test]
fn no_vote_in_a_closed_epoch_on_an_old_view_or_where_votes_may_be_forgotten() {
    let mut setting = setting();
    let order = setting.order(transfer(1, 2, 0));
    for floor in [VoteFloor::Unknown, VoteFloor::From(SequenceNumber(0))] {
        let answer = setting.shard.lock_private(&order, (Epoch(0), PrimaryView::Recent), floor, &VERSIONS);
        assert_eq!(answer, refused(Rejection::VotesForgotten { floor: None }));
    }
    setting.view = PrimaryView::TooOld;
    assert_eq!(setting.lock(transfer(1, 2, 0)), refused(Rejection::PrimaryTooOld));
    setting.view = PrimaryView::Recent;
    setting.lock(transfer(1, 2, 0)).unwrap();
    setting.install(1);
    setting.shard.close(Epoch(0)).unwrap();
    assert_eq!(setting.lock(transfer(1, 2, 0)), refused(Rejection::EpochClosed { epoch: Epoch(0) }));
    let next = (Epoch(1), PrimaryView::Recent);
    assert_eq!(setting.shard.lock_private(&order, next, VoteFloor::Unknown, &VERSIONS), Ok(Outcome::Already));
}

/// One order that fewer than a quorum locked froze the account: with its number void, both nullifiers are free.
#[test]
fn a_void_number_frees_both_nullifiers_under_the_next_one() {
    let mut setting = setting();
    let (stuck, next) = (transfer(1, 2, 60), numbered(1, transfer(1, 2, 60)));
    setting.lock(stuck).unwrap();
    setting.request(number(1, 0));
    let frozen = refused(Rejection::Frozen { sequence: SequenceNumber(0) });
    assert_eq!(setting.lock(stuck), frozen, "no vote, new or repeated");
    assert_eq!(setting.vote_to_void(number(1, 0)), Ok(Outcome::Committed));
    assert_eq!(setting.lock(transfer(3, 2, 0)), setting.lock(transfer(4, 2, 0)), "the coin is still locked");
    assert!(matches!(setting.lock(transfer(3, 2, 0)), Err(PrivateRejection::Locked { .. })));
    setting.follow(number(1, 0), UnlockEventKind::Voided);
    assert!(setting.pool().is_empty());
    assert_eq!((setting.next(1), setting.next(2)), (1, 0));
    let voided = refused(Rejection::Voided { expected: SequenceNumber(1) });
    assert_eq!(setting.lock(stuck), voided);
    assert_eq!(setting.confirm(stuck), voided, "a hidden certificate comes too late");
    let too_high = refused(Rejection::SequenceTooHigh { expected: SequenceNumber(1) });
    assert_eq!(setting.lock(numbered(2, transfer(1, 2, 60))), too_high);
    assert_eq!(setting.lock(next), Ok(Outcome::Committed));
    assert_eq!(setting.confirm(next), Ok(Outcome::Committed));
    assert_eq!([1, 2].map(|of| setting.next(of)), [2, 1]);
    assert_eq!(setting.confirm(stuck), refused(Rejection::Voided { expected: SequenceNumber(2) }));
    assert_eq!(setting.lock(numbered(2, transfer(1, 3, 0))), spent(1, 1));
    setting.check_restart();
}

/// The coin of a void order is free at once, also for another account of its owner.
#[test]
fn a_void_number_frees_the_coin_before_the_account_steps_over_it() {
    let mut setting = setting();
    setting.lock(transfer(1, 2, 0)).unwrap();
    setting.follow(number(1, 0), UnlockEventKind::Voided);
    assert_eq!(setting.lock(transfer(3, 2, 0)), Ok(Outcome::Committed));
}

/// What was certified is upheld, however late it is shown; and then it is executed, also if its epoch ended long ago.
#[test]
fn a_certificate_of_a_frozen_number_is_kept_attested_and_executed_once_it_is_upheld() {
    let mut setting = setting();
    let (shown, other) = (transfer(1, 2, 60), transfer(1, 3, 0));
    setting.lock(other).unwrap();
    setting.request(number(1, 0));
    let frozen = refused(Rejection::Frozen { sequence: SequenceNumber(0) });
    assert_eq!(setting.confirm(shown), frozen);
    assert!(matches!(setting.shard.newest_record(), Some(Record::PrivateSeen(_))));
    for (of, sequence) in [number(1, 0), number(2, 0)] {
        assert_eq!(setting.shard.rules().attests_private(of, sequence), Some(setting.digest(shown)));
    }
    assert_eq!(setting.confirm(shown), frozen, "kept once");
    assert_eq!(setting.vote_to_void(number(1, 0)), Err(Rejection::Frozen { sequence: SequenceNumber(0) }));
    assert_eq!(setting.held(RECIPIENT), Balance::ZERO);
    let upheld = setting.digest(shown);
    setting.follow(number(1, 0), UnlockEventKind::Upheld(upheld));
    assert_eq!([1, 2, 3].map(|of| setting.next(of)), [1, 1, 0]);
    assert_eq!(setting.held(RECIPIENT), Balance::from(Amount(60)));
    assert!(setting.pool().is_empty(), "and the lock of the other order ended");
    assert_eq!(setting.confirm_standing(shown, Standing::Ended), Ok(Outcome::Already));
}

#[test]
fn of_an_upheld_number_no_other_order_is_executed() {
    let mut setting = setting();
    let (holds, other) = (transfer(1, 2, 60), transfer(1, 3, 0));
    let upheld = setting.digest(holds);
    setting.request(number(1, 0));
    setting.follow(number(1, 0), UnlockEventKind::Upheld(upheld));
    assert_eq!(setting.confirm(other), refused(Rejection::Overruled { upheld }));
    assert_eq!(setting.lock(holds), refused(Rejection::Frozen { sequence: SequenceNumber(0) }));
    assert_eq!(setting.vote_to_void(number(1, 0)), Err(Rejection::Overruled { upheld }));
    assert_eq!(setting.confirm_standing(holds, Standing::Ended), Ok(Outcome::Committed), "the contract names it");
}

/// On an old view, a certificate may be void already. One of an ended epoch counts as far as that of an account does.
#[test]
fn a_certificate_that_may_not_count_is_kept_or_refused() {
    let mut setting = setting();
    setting.view = PrimaryView::TooOld;
    assert_eq!(setting.confirm(transfer(1, 2, 60)), refused(Rejection::PrimaryTooOld));
    assert!(setting.pool().seen(nullifier(2).account(), SequenceNumber(0)).is_some());
    setting.view = PrimaryView::Recent;
    assert_eq!(setting.confirm(transfer(1, 2, 60)), Ok(Outcome::Committed));
    let unattested = refused(Rejection::Unattested { epoch: Epoch(0) });
    for (of, standing) in [(3, Standing::Ended), (5, Standing::Unsure), (7, Standing::Kept)] {
        assert_eq!(setting.confirm_standing(transfer(of, of + 1, 0), standing), unattested);
        let (account, sequence) = number(of, 0);
        assert_eq!(setting.pool().seen(account, sequence).is_some(), standing == Standing::Kept);
    }
}

/// A later number of a nullifier whose void numbers are not known here yet.
#[test]
fn a_certificate_of_a_later_number_waits_for_the_contracts_events() {
    let mut setting = setting();
    let later = numbered(1, transfer(1, 2, 60));
    let missing = refused(Rejection::MissingCertificate { missing: SequenceNumber(0) });
    assert_eq!(setting.confirm(later), missing);
    assert!(setting.pool().is_empty());
    setting.request(number(1, 1));
    assert_eq!(setting.confirm(later), refused(Rejection::Frozen { sequence: SequenceNumber(1) }));
    assert!(setting.pool().seen(nullifier(1).account(), SequenceNumber(1)).is_some());
    setting.follow(number(1, 0), UnlockEventKind::Voided);
    let upheld = setting.digest(later);
    setting.follow(number(1, 1), UnlockEventKind::Upheld(upheld));
    assert_eq!(setting.next(1), 2);
    assert_eq!(setting.held(RECIPIENT), Balance::from(Amount(60)));
}

/// No wallet asks to unlock a coin. With a broken circuit somebody may, and the rules of all numbers hold.
#[test]
fn a_coins_number_is_frozen_and_void_as_any_other() {
    let mut setting = setting();
    setting.request(number(2, 0));
    assert_eq!(setting.lock(transfer(1, 2, 0)), refused(Rejection::Frozen { sequence: SequenceNumber(0) }));
    assert_eq!(setting.confirm(transfer(1, 2, 0)), refused(Rejection::Frozen { sequence: SequenceNumber(0) }));
    setting.follow(number(2, 0), UnlockEventKind::Voided);
    assert!(setting.pool().is_empty());
    let voided = refused(Rejection::Voided { expected: SequenceNumber(1) });
    assert_eq!(setting.lock(transfer(1, 2, 0)), voided);
    assert_eq!(setting.confirm(transfer(1, 2, 0)), voided);
    assert_eq!(setting.lock(transfer(1, 3, 0)), Ok(Outcome::Committed));
}

/// A ledger without private transfers has the bytes that it had before there were any.
#[test]
fn a_ledger_without_private_transfers_is_written_as_before() {
    let mut setting = setting();
    let without = borsh::to_vec(setting.shard.ledger()).unwrap();
    setting.lock(transfer(1, 2, 60)).unwrap();
    let with = borsh::to_vec(setting.shard.ledger()).unwrap();
    assert!(with.len() > without.len());
    setting.confirm(transfer(1, 2, 0)).unwrap();
    assert_eq!(borsh::to_vec(setting.shard.ledger()).unwrap(), without);
}

/// What a ledger cannot have is not read.
#[test]
fn a_pool_with_an_order_twice_is_refused() {
    let mut setting = setting();
    setting.lock(transfer(1, 2, 60)).unwrap();
    setting.request(number(3, 0));
    drop(setting.confirm(transfer(3, 4, 0)));
    let encoded = borsh::to_vec(setting.pool()).unwrap();
    assert_eq!(borsh::from_slice::<Pool>(&encoded).unwrap(), *setting.pool());
    let (mut held, mut waiting) = (setting.pool().locks(), setting.pool().waiting());
    let (lock, is_own) = held.next().unwrap();
    let (held, seen) = (borsh::to_vec(&(lock, is_own)).unwrap(), borsh::to_vec(waiting.next().unwrap()).unwrap());
    let pool = |of_held: u32, of_seen: u32| {
        let [locks, kept] = [(of_held, &held), (of_seen, &seen)]
            .map(|(count, one)| [&count.to_le_bytes()[..], &one.repeat(count as usize)].concat());
        borsh::from_slice::<Pool>(&[locks, kept].concat())
    };
    assert_eq!(borsh::to_vec(&pool(1, 1).unwrap()).unwrap(), encoded);
    assert!(pool(0, 0).is_ok_and(|pool| pool.is_empty()));
    assert!(pool(2, 1).is_err() && pool(1, 2).is_err());
}

//! A number that its owner asked to unlock: what is frozen, what an authority keeps and votes for, and how the account
//! goes on. Each test leaves out what one rule of the protocol asks for (docs/PROTOCOL.md, "Unlocking").

use fastpay_core::{
    AccountId, Amount, Asset, Balance, Base, BaseAccount, BaseLedger, Certificate, Chain, Decision, Digest, Epoch,
    ExecutedRedemption, Find, Installation, JournalPosition, PrimaryAddress, PrimaryView, Record, Rejection,
    SequenceNumber, Shard, ShardId, ShardLayout, ShardLedger, Standing, SynchronizationOrder, TransactionIndex,
    Transfer, TransferOrder, Unlock, UnlockEvent, UnlockEventKind, UnlockOutcome, UnlockVote, VoteFloor,
    is_unlock_authorized, is_unlock_signed,
};
use fastpay_testkit::{Outcome, TestAccount, TestCommittee, TestShard, payment, redemption};

/// When the window of the request ends, by the chain's clock.
const VOIDABLE_AT: u64 = 1_000;

/// When the window of a number ends that an installation opens again.
const REOPENED_VOIDABLE_AT: u64 = 5_000;

/// A shard with two accounts; the first holds 100, and its owner signed two orders for number 0.
struct Setting {
    committee: TestCommittee,
    shard: TestShard,
    owner: TestAccount,
    other: TestAccount,
    index: u64,
}

fn setting() -> Setting {
    let layout = ShardLayout::new(1.try_into().unwrap());
    let (owner, other) = (TestAccount::ed25519(0), TestAccount::ed25519(1));
    let shard = TestShard::new(ShardId(0), layout, true);
    let mut setting = Setting { committee: TestCommittee::new(4), shard, owner, other, index: 1 };
    let (recipient, index) = (setting.owner.id(), TransactionIndex(1));
    let deposit = fastpay_core::Deposit { index, recipient, asset: Asset::ETHER, amount: fastpay_core::Amount(100) };
    let order = SynchronizationOrder { after: TransactionIndex(0), up_to: index, deposit: Some(deposit) };
    setting.shard.synchronize(&order).unwrap();
    setting
}

impl Setting {
    fn pay(&self, amount: u128, sequence: u64) -> TransferOrder {
        self.owner.sign(&self.committee.domain, payment(self.owner.id(), self.other.id(), amount, sequence))
    }

    fn redeem(&self, amount: u128, sequence: u64) -> TransferOrder {
        let recipient = PrimaryAddress::repeat_byte(9);
        self.owner.sign(&self.committee.domain, redemption(self.owner.id(), recipient, amount, sequence))
    }

    fn digest(&self, order: &TransferOrder) -> Digest {
        self.committee.verified(order).digest()
    }

    fn lock(&mut self, order: &TransferOrder) -> Result<Outcome, Rejection> {
        self.shard.lock(&self.committee.verified(order))
    }

    fn confirm(&mut self, order: &TransferOrder) -> Result<Outcome, Rejection> {
        self.shard.confirm(&self.committee.certified(order))
    }

    fn follow(&mut self, sequence: u64, kind: UnlockEventKind) {
        let (after, index) = (TransactionIndex(self.index), TransactionIndex(self.index + 1));
        let event = UnlockEvent { after, index, account: self.owner.id(), sequence: SequenceNumber(sequence), kind };
        assert_eq!(self.shard.follow_unlock(&event), Ok(Outcome::Committed));
        // Told again, it changes nothing.
        assert_eq!(self.shard.follow_unlock(&event), Ok(Outcome::Already));
        self.index += 1;
    }

    fn request(&mut self, sequence: u64) {
        self.follow(sequence, UnlockEventKind::Requested(VOIDABLE_AT));
    }

    fn install(&mut self, epoch: u64, compromised_since: u64) {
        let (after, index) = (TransactionIndex(self.index), TransactionIndex(self.index + 1));
        let (epoch, compromised_since) = (Epoch(epoch), Epoch(compromised_since));
        let installation = Installation { after, index, epoch, compromised_since, voidable_at: REOPENED_VOIDABLE_AT };
        assert_eq!(self.shard.follow_installation(&installation), Ok(Outcome::Committed));
        // Told again, it changes nothing.
        assert_eq!(self.shard.follow_installation(&installation), Ok(Outcome::Already));
        self.index += 1;
    }

    fn vote_to_void(&mut self, sequence: u64, unanimous: bool, chain_time: u64) -> Result<Outcome, Rejection> {
        let number = (self.owner.id(), SequenceNumber(sequence));
        self.shard.void_vote(number, unanimous, Epoch(0), VoteFloor::Zero, chain_time)
    }

    fn next(&self) -> u64 {
        self.shard.account(&self.owner.id()).next_sequence().0
    }

    fn balance(&self) -> Balance {
        self.shard.account(&self.owner.id()).balance(Asset::ETHER)
    }

    /// Restarts from the journal and from a checkpoint, which must change nothing.
    fn restart(&mut self) {
        let (accounts, ledger) = (self.shard.accounts(), self.shard.ledger().clone());
        self.shard.restart_from_journal();
        assert_eq!((self.shard.accounts(), self.shard.ledger()), (accounts.clone(), &ledger));
        (0..9).for_each(|_| self.shard.take_part_of_checkpoint(9));
        self.shard.restart();
        assert_eq!((self.shard.accounts(), self.shard.ledger()), (accounts, &ledger));
    }
}

fn expected(number: u64) -> SequenceNumber {
    SequenceNumber(number)
}

#[test]
fn a_frozen_number_gets_no_vote_new_or_repeated() {
    let mut setting = setting();
    let (first, second) = (setting.pay(1, 0), setting.pay(2, 0));
    setting.lock(&first).unwrap();
    setting.request(0);
    let frozen = Err(Rejection::Frozen { sequence: expected(0) });
    for order in [&first, &second] {
        assert_eq!(setting.lock(order), frozen);
    }
    setting.restart();
    assert_eq!(setting.lock(&first), frozen);
    // The lock stays: others may need it to rebuild a certificate.
    assert!(setting.shard.account(&setting.owner.id()).pending.is_some());
}

#[test]
fn a_certificate_of_a_frozen_number_is_kept_and_not_executed() {
    let mut setting = setting();
    let (first, later) = (setting.pay(1, 0), setting.pay(2, 1));
    setting.request(0);
    setting.request(1);
    for order in [&first, &later] {
        let sequence = order.transfer.sequence();
        let frozen = Err(Rejection::Frozen { sequence });
        let before = setting.shard.journal().end();
        assert_eq!(setting.confirm(order), frozen);
        assert!(setting.shard.journal().end() > before, "it is kept");
        let end = setting.shard.journal().end();
        assert_eq!(setting.confirm(order), frozen);
        assert_eq!(setting.shard.journal().end(), end, "it is kept once");
    }
    setting.restart();
    assert_eq!((setting.next(), setting.balance()), (0, Balance::from(fastpay_core::Amount(100))));
    let seen = setting.shard.ledger().unlocks.get(setting.owner.id(), expected(0)).unwrap().seen.clone();
    assert_eq!(seen.unwrap().order, first);
}

#[test]
fn an_upheld_order_is_executed_and_no_other_one() {
    let mut setting = setting();
    let (first, second) = (setting.pay(1, 0), setting.pay(2, 0));
    setting.request(0);
    assert!(setting.confirm(&first).is_err());
    let upheld = setting.digest(&first);
    setting.follow(0, UnlockEventKind::Upheld(upheld));
    assert_eq!(setting.confirm(&second), Err(Rejection::Overruled { upheld }));
    let certificate = setting.shard.rules().executable(setting.owner.id());
    assert_eq!(certificate.unwrap().order, first, "what was kept can be executed");
    assert_eq!(setting.vote_to_void(0, true, VOIDABLE_AT), Err(Rejection::Overruled { upheld }));
    assert_eq!(setting.confirm(&first), Ok(Outcome::Committed));
    assert_eq!((setting.next(), setting.confirm(&first)), (1, Ok(Outcome::Already)));
    assert!(setting.shard.ledger().unlocks.iter().next().is_none(), "nothing is left to remember");
    setting.restart();
}

#[test]
fn a_void_number_is_stepped_over_once_and_answered_as_void() {
    let mut setting = setting();
    let (first, next) = (setting.pay(1, 0), setting.pay(2, 1));
    setting.lock(&first).unwrap();
    setting.request(0);
    setting.follow(0, UnlockEventKind::Voided);
    // The order of the next number steps over it.
    assert_eq!(setting.lock(&next), Ok(Outcome::Committed));
    let account = setting.shard.account(&setting.owner.id());
    assert_eq!(account.next_sequence(), expected(1));
    let Find::Found(position) = account.sent.find(0) else { panic!("the void has no place in the history") };
    let record = setting.shard.journal().read(position);
    assert!(matches!(record, Record::Void { .. }), "{record:?}");
    assert_eq!(record.link(Chain::Sent, 0, position).unwrap().number, 0);
    let voided = Err(Rejection::Voided { expected: expected(1) });
    assert_eq!(setting.confirm(&first), voided);
    assert_eq!(setting.confirm(&next), Ok(Outcome::Committed));
    let voided = Err(Rejection::Voided { expected: expected(2) });
    assert_eq!((setting.confirm(&first), setting.lock(&first)), (voided.clone(), voided));
    assert_eq!(setting.balance(), Balance::from(fastpay_core::Amount(98)));
    setting.restart();
}

#[test]
fn a_later_number_is_void_before_its_turn_comes() {
    let mut setting = setting();
    setting.request(1);
    setting.follow(1, UnlockEventKind::Voided);
    assert_eq!(setting.next(), 0);
    setting.confirm(&setting.pay(1, 0)).unwrap();
    assert_eq!(setting.confirm(&setting.pay(5, 1)), Err(Rejection::Voided { expected: expected(2) }));
    assert_eq!(setting.confirm(&setting.pay(2, 2)), Ok(Outcome::Committed));
    assert_eq!((setting.next(), setting.balance()), (3, Balance::from(fastpay_core::Amount(97))));
    setting.restart();
}

#[test]
fn void_votes_are_given_for_a_frozen_number_without_certificate_alone() {
    let mut setting = setting();
    let not_requested = Err(Rejection::NotRequested { sequence: expected(0) });
    assert_eq!(setting.vote_to_void(0, true, VOIDABLE_AT), not_requested);
    setting.request(0);
    setting.request(1);
    let too_high = Err(Rejection::SequenceTooHigh { expected: expected(0) });
    assert_eq!(setting.vote_to_void(1, true, VOIDABLE_AT), too_high);
    // Votes of all need no window, votes of a quorum do.
    let open = Err(Rejection::WindowOpen { voidable_at: VOIDABLE_AT });
    assert_eq!(setting.vote_to_void(0, false, VOIDABLE_AT - 1), open);
    assert_eq!(setting.vote_to_void(0, true, 0), Ok(Outcome::Committed));
    assert_eq!(setting.vote_to_void(0, true, 0), Ok(Outcome::Already));
    assert_eq!(setting.vote_to_void(0, false, VOIDABLE_AT), Ok(Outcome::Already));
    setting.restart();
    let voted = setting.shard.ledger().unlocks.get(setting.owner.id(), expected(0)).unwrap().void_voted;
    assert_eq!(voted, Some(Epoch(0)), "on disk before it is signed");
    // A certificate that comes later is kept, and from then on no vote is given.
    assert!(setting.confirm(&setting.pay(1, 0)).is_err());
    let known = setting.vote_to_void(0, true, VOIDABLE_AT);
    assert!(matches!(known, Err(Rejection::CertificateKnown { .. })), "{known:?}");
}

#[test]
fn an_authority_that_executed_the_number_or_lost_votes_does_not_vote_to_void_it() {
    let mut setting = setting();
    setting.confirm(&setting.pay(1, 0)).unwrap();
    setting.request(0);
    let executed = Err(Rejection::AlreadyConfirmed { expected: expected(1) });
    assert_eq!(setting.vote_to_void(0, true, VOIDABLE_AT), executed);
    assert!(setting.shard.ledger().unlocks.iter().next().is_none());
    setting.request(1);
    let number = (setting.owner.id(), expected(1));
    for floor in [VoteFloor::Unknown, VoteFloor::From(expected(0)), VoteFloor::From(expected(9))] {
        let refused = setting.shard.void_vote(number, true, Epoch(0), floor, VOIDABLE_AT);
        assert_eq!(refused, Err(Rejection::VotesForgotten { floor: None }));
    }
}

#[test]
fn an_authority_that_lost_memory_votes_for_nothing_right_after_a_void() {
    let mut setting = setting();
    setting.request(0);
    setting.follow(0, UnlockEventKind::Voided);
    let (next, after) = (setting.pay(1, 1), setting.pay(1, 2));
    let (verified, floor) = (setting.committee.verified(&next), VoteFloor::From(expected(1)));
    let forgotten = Err(Rejection::VotesForgotten { floor: Some(expected(2)) });
    assert_eq!(setting.shard.lock_from(floor, &verified), forgotten);
    setting.confirm(&next).unwrap();
    let verified = setting.committee.verified(&after);
    assert_eq!(setting.shard.lock_from(floor, &verified), Ok(Outcome::Committed));
}

#[test]
fn on_an_old_view_of_the_chain_nothing_is_voted_for_or_executed_and_certificates_are_kept() {
    let mut setting = setting();
    let order = setting.pay(1, 0);
    let (verified, certified) = (setting.committee.verified(&order), setting.committee.certified(&order));
    let too_old = Err(Rejection::PrimaryTooOld);
    setting.lock(&order).unwrap();
    assert_eq!(setting.shard.lock_late(&verified), too_old, "not even again");
    assert_eq!(setting.shard.confirm_late(&certified), too_old);
    let seen = setting.shard.ledger().unlocks.get(setting.owner.id(), expected(0)).unwrap().seen.clone();
    assert_eq!(seen.unwrap().order, order);
    setting.restart();
    // The request was made meanwhile: who keeps the certificate does not vote to void its number.
    setting.request(0);
    let known = setting.vote_to_void(0, true, VOIDABLE_AT);
    assert!(matches!(known, Err(Rejection::CertificateKnown { .. })), "{known:?}");
}

/// However many certificates a client brings: valid ones of each number, with votes of all kinds, and those of two orders,
/// which only more faulty authorities than are tolerated can make.
#[test]
fn one_certificate_of_a_number_is_kept_and_of_later_numbers_only_where_they_are_frozen() {
    let mut setting = setting();
    let (frozen, far) = (7, 1_000);
    setting.request(frozen);
    let orders: Vec<_> = (0..10).chain([far, u64::MAX - 1]).map(|sequence| setting.pay(1, sequence)).collect();
    let mut kept = setting.shard.journal_end();
    for round in 0..3 {
        for order in &orders {
            let members: [&[usize]; 3] = [&[0, 1, 2], &[1, 2, 3], &[0, 2, 3]];
            let certificate = setting.committee.certificate_by(order, members[round]);
            let certified = certificate.verify(&setting.committee.domain, &setting.committee.committee).unwrap();
            let refused = match order.transfer.sequence().0 {
                0 => Rejection::PrimaryTooOld,
                sequence if sequence == frozen => Rejection::Frozen { sequence: expected(frozen) },
                _ => Rejection::MissingCertificate { missing: expected(0) },
            };
            assert_eq!(setting.shard.confirm_late(&certified), Err(refused.clone()));
            // And on a young view, what is not the next number.
            if refused != Rejection::PrimaryTooOld {
                assert_eq!(setting.shard.confirm(&certified), Err(refused));
            }
        }
        let unlocks = setting.shard.ledger().unlocks.iter();
        let seen: Vec<_> =
            unlocks.filter(|(.., unlock)| unlock.seen.is_some()).map(|(_, number, _)| number.0).collect();
        assert_eq!(seen, [0, frozen]);
        // Nothing more is written after the first round either.
        let written = setting.shard.journal_end();
        assert!(round == 0 || written == kept, "{written:?} after {kept:?}");
        kept = written;
        let other = setting.pay(2, 0);
        let other = setting.committee.certified(&other);
        assert_eq!(setting.shard.confirm_late(&other), Err(Rejection::PrimaryTooOld));
        assert_eq!(setting.shard.journal_end(), kept);
    }
    setting.restart();
}

#[test]
fn what_was_kept_on_an_old_view_is_executed_on_a_young_one() {
    let mut setting = setting();
    let order = setting.pay(1, 0);
    let certified = setting.committee.certified(&order);
    assert_eq!(setting.shard.confirm_late(&certified), Err(Rejection::PrimaryTooOld));
    assert_eq!(setting.confirm(&order), Ok(Outcome::Committed));
    assert!(setting.shard.ledger().unlocks.iter().next().is_none());
    // What the contract upheld is executed on an old view, too.
    let next = setting.pay(1, 1);
    setting.request(1);
    setting.follow(1, UnlockEventKind::Upheld(setting.digest(&next)));
    let certified = setting.committee.certified(&next);
    assert_eq!(setting.shard.confirm_late(&certified), Ok(Outcome::Committed));
}

#[test]
fn a_number_that_the_contract_spent_has_one_redemption_and_is_not_voided() {
    let mut setting = setting();
    let (stolen, own) = (setting.redeem(10, 0), setting.redeem(20, 0));
    let spent = setting.digest(&stolen);
    setting.follow(0, UnlockEventKind::Spent(spent));
    // It is worth nothing on the contract, and no lock stays in the way.
    assert_eq!(setting.lock(&own), Ok(Outcome::Committed));
    setting.request(0);
    assert_eq!(setting.vote_to_void(0, true, VOIDABLE_AT), Err(Rejection::Overruled { upheld: spent }));
    assert_eq!(setting.confirm(&own), Err(Rejection::Overruled { upheld: spent }));
    // It is kept: the contract may uphold it although the number is spent.
    let kept = setting.shard.ledger().unlocks.get(setting.owner.id(), expected(0)).and_then(|of| of.seen.clone());
    assert_eq!(kept.unwrap().order, own);
    assert_eq!(setting.confirm(&stolen), Ok(Outcome::Committed), "paying counts as upholding");
    setting.restart();
}

#[test]
fn a_redemption_whose_number_was_spent_otherwise_is_credited_back_once() {
    use UnlockEventKind::{CreditedBack, Released, Spent};
    let back = || CreditedBack(Asset::ETHER, Amount(20));
    // What each event says where the own redemption is executed before it; then what the account has.
    let (stolen, own) = (setting().redeem(10, 0), setting().redeem(20, 0));
    let (thief, digest) = (setting().digest(&stolen), setting().digest(&own));
    let executed = ExecutedRedemption { digest, asset: Asset::ETHER, amount: Amount(20) };
    let meaning = |kind: UnlockEventKind| kind.after(executed);
    assert_eq!([Spent(digest), Released(thief)].map(meaning), [None, None], "its own payment; another one's release");
    assert_eq!([Spent(thief), Released(digest)].map(meaning), [Some(back()), Some(back())]);

    for (events, held) in [
        (&[Spent(digest)][..], 80),
        (&[Spent(thief)], 100),
        (&[Spent(thief), Spent(thief)], 100),
        (&[Spent(thief), Released(thief)], 100),
        (&[Spent(digest), Released(digest)], 100),
    ] {
        // Executed before each of the events, or after the last.
        for executed_at in 0..=events.len() {
            let mut setting = setting();
            for (at, event) in events.iter().enumerate() {
                if at == executed_at {
                    assert_eq!(setting.confirm(&own), Ok(Outcome::Committed));
                }
                match executed_at <= at {
                    false => setting.follow(0, *event),
                    true => drop(event.after(executed).map(|meaning| setting.follow(0, meaning))),
                }
            }
            if executed_at == events.len() {
                assert_eq!(setting.confirm(&own), Ok(Outcome::Committed));
            }
            setting.restart();
            let totals = setting.shard.ledger().totals[&Asset::ETHER];
            assert_eq!(setting.balance(), Balance::from(Amount(held)), "{events:?}, executed at {executed_at}");
            assert_eq!(totals.accounts, totals.deposited.plus(totals.redeemed.negated()), "{events:?} {executed_at}");
            assert_eq!(setting.confirm(&own), Ok(Outcome::Already));
            let all = setting.pay(held, 1);
            assert_eq!(setting.lock(&all), Ok(Outcome::Committed), "it can be spent");
        }
    }
}

/// A shard that begins from a recovery: the account holds 80 and has taken number 0, and 20 are debited because the
/// contract queued them under number 2, which is void.
fn recovered(setting: &Setting) -> Shard {
    let (layout, account) = (ShardLayout::new(1.try_into().unwrap()), setting.owner.id());
    let mut shard = Shard::new(ShardId(0), layout, true, ShardLedger::default(), 8);
    let TransferOrder { transfer: Transfer::Redemption(redemption), .. } = setting.redeem(20, 2) else { panic!() };
    let base = [
        Base::Checkpoint(BaseLedger {
            number: 1,
            checkpoint: Digest::ZERO,
            generation: 1,
            synchronized: TransactionIndex(1),
            epoch: Epoch(1),
            compromised: vec![(Epoch(0), Epoch(1))],
            redemptions: 0,
        }),
        Base::Account(BaseAccount {
            account,
            checkpoint: 1,
            next: SequenceNumber(1),
            received: 0,
            deposits: 1,
            balances: [(Asset::ETHER, Balance::from(Amount(80)))].into_iter().collect(),
        }),
        Base::Unpaid { redemption, logged: None },
        Base::Number {
            account,
            sequence: SequenceNumber(2),
            unlock: Unlock { outcome: Some(UnlockOutcome::Voided), ..Unlock::default() },
        },
    ];
    shard.load(account, None);
    for (position, base) in (0..).zip(base) {
        shard.apply(&Record::Base(Box::new(base)), JournalPosition(position));
    }
    shard
}

#[test]
fn what_a_recovery_debited_behind_a_gap_is_credited_back_once_and_its_number_is_stepped_over() {
    let setting = setting();
    let account = setting.owner.id();
    let credited = |shard: &mut Shard, index: u64, sequence: u64| {
        let kind = UnlockEventKind::CreditedBack(Asset::ETHER, Amount(20));
        let (after, index) = (TransactionIndex(index - 1), TransactionIndex(index));
        let event = UnlockEvent { after, index, account, sequence: SequenceNumber(sequence), kind };
        let Decision::Commit(record) = shard.follow_unlock(&event) else { panic!("{event:?}") };
        shard.apply(&record, JournalPosition(100 + index.0));
        shard.account(&account).unwrap().balance(Asset::ETHER)
    };
    let take_next = |shard: &mut Shard| {
        let certificate = setting.committee.certified(&setting.pay(30, 1));
        shard.load(setting.other.id(), None);
        let Decision::Commit(record) = shard.confirm(&certificate, PrimaryView::Recent, Standing::Counts) else {
            panic!("not executed")
        };
        shard.apply(&record, JournalPosition(50));
        // The void number is the next one now, and is stepped over before anything else.
        let next = setting.committee.certified(&setting.pay(1, 3));
        let Decision::CommitFirst(void) = shard.confirm(&next, PrimaryView::Recent, Standing::Counts) else {
            panic!("not stepped over")
        };
        shard.apply(&void, JournalPosition(60));
        assert_eq!(shard.account(&account).unwrap().next_sequence(), SequenceNumber(3));
    };
    let ether = |amount| Balance::from(Amount(amount));
    // Released before its number is reached, and after that. Stolen keys have upheld it.
    let mut shard = recovered(&setting);
    let (kind, index) = (UnlockEventKind::Upheld(Digest::repeat_byte(1)), TransactionIndex(2));
    let upheld = UnlockEvent { after: TransactionIndex(1), index, account, sequence: SequenceNumber(2), kind };
    let Decision::Commit(record) = shard.follow_unlock(&upheld) else { panic!("not followed") };
    shard.apply(&record, JournalPosition(99));
    assert_eq!(credited(&mut shard, 3, 4), ether(80), "nothing is debited under number 4");
    assert_eq!(credited(&mut shard, 4, 2), ether(100));
    assert_eq!(credited(&mut shard, 5, 2), ether(100), "once");
    take_next(&mut shard);
    assert_eq!(shard.account(&account).unwrap().balance(Asset::ETHER), ether(70));
    let mut shard = recovered(&setting);
    take_next(&mut shard);
    assert_eq!(credited(&mut shard, 2, 2), ether(70));
    assert_eq!(credited(&mut shard, 3, 2), ether(70), "once");
}

#[test]
fn what_a_compromised_epoch_spent_counts_as_upheld_no_longer_and_is_never_voided() {
    let mut setting = setting();
    let (stolen, own) = (setting.redeem(10, 0), setting.redeem(20, 0));
    let spent = setting.digest(&stolen);
    setting.follow(0, UnlockEventKind::Spent(spent));
    setting.request(0);
    assert_eq!(setting.vote_to_void(0, true, VOIDABLE_AT), Err(Rejection::Overruled { upheld: spent }));
    setting.install(1, 0);
    setting.restart();
    let frozen = Err(Rejection::Frozen { sequence: expected(0) });
    for (unanimous, chain_time) in [(true, VOIDABLE_AT), (false, REOPENED_VOIDABLE_AT)] {
        assert_eq!(setting.vote_to_void(0, unanimous, chain_time), frozen, "its number is spent");
    }
    assert_eq!(setting.confirm(&stolen), frozen);
    // Its owner's order is upheld in the next epoch, and the amount stays in the account.
    setting.follow(0, UnlockEventKind::Upheld(setting.digest(&own)));
    assert_eq!(setting.confirm(&own), Ok(Outcome::Committed));
    assert_eq!((setting.next(), setting.balance()), (1, Balance::from(Amount(100))));
    setting.restart();
}

#[test]
fn a_number_upheld_by_a_compromised_epoch_is_open_again_with_a_new_window() {
    let mut setting = setting();
    let made_up = Digest::repeat_byte(7);
    setting.request(0);
    setting.request(1);
    setting.follow(0, UnlockEventKind::Upheld(made_up));
    assert_eq!(setting.vote_to_void(0, true, VOIDABLE_AT), Err(Rejection::Overruled { upheld: made_up }));
    setting.install(1, 0);
    setting.restart();
    let open = Err(Rejection::WindowOpen { voidable_at: REOPENED_VOIDABLE_AT });
    assert_eq!(setting.vote_to_void(0, false, REOPENED_VOIDABLE_AT - 1), open);
    assert_eq!(setting.vote_to_void(0, false, REOPENED_VOIDABLE_AT), Ok(Outcome::Committed));
    // What the contract voided stays void. Of another number the window goes on.
    setting.follow(0, UnlockEventKind::Voided);
    setting.install(2, 0);
    assert_eq!(setting.confirm(&setting.pay(1, 0)), Err(Rejection::Voided { expected: expected(1) }));
    assert_eq!(setting.vote_to_void(1, false, VOIDABLE_AT), Ok(Outcome::Committed));
}

#[test]
fn what_a_sound_epoch_spent_or_upheld_stays_upheld() {
    let upheld = |setting: &Setting, sequence: u64| {
        setting.shard.ledger().unlocks.get(setting.owner.id(), expected(sequence)).and_then(|number| number.upheld())
    };
    let [paid, held, later] = [1, 2, 3].map(Digest::repeat_byte);
    let mut setting = setting();
    setting.follow(0, UnlockEventKind::Spent(paid));
    setting.request(1);
    setting.follow(1, UnlockEventKind::Upheld(held));
    setting.install(1, 1);
    setting.follow(2, UnlockEventKind::Spent(later));
    // What was queued in epoch 0 is paid with votes of epoch 1.
    setting.follow(0, UnlockEventKind::Spent(paid));
    setting.restart();
    assert_eq!([0, 1, 2].map(|sequence| upheld(&setting, sequence)), [Some(paid), Some(held), Some(later)]);
    // Keys of epoch 1 were out.
    setting.install(2, 1);
    assert_eq!([0, 1, 2].map(|sequence| upheld(&setting, sequence)), [None, Some(held), None]);
    setting.follow(0, UnlockEventKind::Spent(paid));
    setting.install(3, 3);
    assert_eq!([0, 1, 2].map(|sequence| upheld(&setting, sequence)), [Some(paid), Some(held), None]);
    // Those of epoch 0, too, as it turns out later.
    setting.install(4, 0);
    assert_eq!([0, 1, 2].map(|sequence| upheld(&setting, sequence)), [None, None, None]);
}

/// A redemption is paid under a number that was upheld before, and keys were out in one of the two epochs.
#[test]
fn of_what_was_upheld_and_spent_in_two_epochs_the_sound_one_stays() {
    let upheld = |setting: &Setting| {
        let unlocks = &setting.shard.ledger().unlocks;
        unlocks.get(setting.owner.id(), expected(0)).and_then(|number| number.upheld())
    };
    let (held, paid) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
    // A thief spends what a sound epoch upheld.
    let mut setting = setting();
    setting.request(0);
    setting.follow(0, UnlockEventKind::Upheld(held));
    setting.install(1, 1);
    setting.follow(0, UnlockEventKind::Spent(paid));
    setting.install(2, 1);
    setting.restart();
    assert_eq!(upheld(&setting), Some(held));
    // A thief upholds another order than the one that a sound epoch paid.
    let mut setting = self::setting();
    setting.request(0);
    setting.follow(0, UnlockEventKind::Spent(paid));
    setting.install(1, 1);
    setting.follow(0, UnlockEventKind::Upheld(held));
    assert_eq!(upheld(&setting), Some(held));
    setting.install(2, 1);
    setting.restart();
    assert_eq!(upheld(&setting), Some(paid));
}

#[test]
fn an_installation_takes_one_entry_however_many_epochs_it_names() {
    let mut setting = setting();
    let suspects = |setting: &Setting, current: u64| {
        let unlocks = &setting.shard.ledger().unlocks;
        [0, 1, 2, 3, 4].map(|epoch| unlocks.is_suspect(Epoch(epoch), Epoch(current)))
    };
    setting.install(1, 1);
    assert_eq!(suspects(&setting, 1), [false; 5]);
    assert_eq!(suspects(&setting, 2), [true, true, false, false, false], "epoch 2 began, and may name any before it");
    setting.install(2, 1);
    setting.install(3, 3);
    setting.install(4, 3);
    assert_eq!(suspects(&setting, 4), [false, true, false, true, false]);
    setting.install(5, 1);
    assert_eq!(suspects(&setting, 5), [false, true, true, true, true]);
    // Whatever an Ethereum node says.
    setting.install(u64::MAX, 0);
    setting.restart();
    assert_eq!(suspects(&setting, u64::MAX), [true; 5]);
    assert!(borsh::to_vec(&setting.shard.ledger().unlocks).unwrap().len() < 120);
}

#[test]
fn a_payment_under_a_number_that_a_thief_spent_is_no_redemption_and_is_debited() {
    let mut setting = setting();
    let stolen = setting.redeem(10, 0);
    let spent = setting.digest(&stolen);
    setting.follow(0, UnlockEventKind::Spent(spent));
    let paid = setting.pay(30, 0);
    assert_eq!(setting.lock(&paid), Ok(Outcome::Committed));
    assert_eq!(setting.confirm(&paid), Ok(Outcome::Committed));
    assert_eq!(setting.balance(), Balance::from(Amount(70)));
}

#[test]
fn the_order_executed_under_a_number_must_be_named() {
    let mut setting = setting();
    let redeemed = setting.redeem(20, 0);
    setting.confirm(&redeemed).unwrap();
    for kind in [UnlockEventKind::Spent(Digest::ZERO), UnlockEventKind::Released(Digest::ZERO)] {
        let (after, index, sequence) = (TransactionIndex(1), TransactionIndex(2), SequenceNumber(0));
        let event = UnlockEvent { after, index, account: setting.owner.id(), sequence, kind };
        let gap = Err(Rejection::SynchronizationGap { synchronized: after });
        assert_eq!(setting.shard.follow_unlock(&event), gap);
    }
}

#[test]
fn events_come_in_order() {
    let mut setting = setting();
    let event = |after, index, account| UnlockEvent {
        after: TransactionIndex(after),
        index: TransactionIndex(index),
        account,
        sequence: SequenceNumber(0),
        kind: UnlockEventKind::Voided,
    };
    let owner = setting.owner.id();
    let gap = Err(Rejection::SynchronizationGap { synchronized: TransactionIndex(1) });
    assert_eq!(setting.shard.follow_unlock(&event(2, 3, owner)), gap);
    assert_eq!(setting.shard.follow_unlock(&event(0, 1, owner)), Ok(Outcome::Already));
    assert_eq!(setting.shard.follow_unlock(&event(1, 4, owner)), Ok(Outcome::Committed), "over those of others");
    assert_eq!(setting.shard.ledger().synchronized, TransactionIndex(4));
    let installation = |after, index| Installation {
        after: TransactionIndex(after),
        index: TransactionIndex(index),
        epoch: Epoch(1),
        compromised_since: Epoch(0),
        voidable_at: 0,
    };
    let gap = Err(Rejection::SynchronizationGap { synchronized: TransactionIndex(4) });
    assert_eq!(setting.shard.follow_installation(&installation(5, 6)), gap);
    assert_eq!(setting.shard.follow_installation(&installation(2, 4)), Ok(Outcome::Already));
    assert_eq!(setting.shard.ledger().unlocks.epoch(), Epoch(0));
    assert_eq!(setting.shard.follow_installation(&installation(4, 6)), Ok(Outcome::Committed), "over those of others");
    assert_eq!(
        (setting.shard.ledger().synchronized, setting.shard.ledger().unlocks.epoch()),
        (TransactionIndex(6), Epoch(1))
    );
}

#[test]
fn a_second_request_does_not_restart_the_window() {
    let mut setting = setting();
    setting.request(0);
    setting.follow(0, UnlockEventKind::Requested(VOIDABLE_AT + 500));
    assert_eq!(setting.vote_to_void(0, false, VOIDABLE_AT), Ok(Outcome::Committed));
}

#[test]
fn a_void_of_what_is_executed_here_is_an_alarm() {
    let mut setting = setting();
    let event = |account, sequence| UnlockEvent {
        after: TransactionIndex(1),
        index: TransactionIndex(2),
        account,
        sequence: SequenceNumber(sequence),
        kind: UnlockEventKind::Voided,
    };
    setting.confirm(&setting.pay(1, 0)).unwrap();
    let owner = setting.owner.id();
    assert!(setting.shard.rules().contradicts(&event(owner, 0)));
    assert!(!setting.shard.rules().contradicts(&event(owner, 1)));
}

#[test]
fn the_owner_alone_asks() {
    let setting = setting();
    let (domain, account, sequence) = (setting.committee.domain, setting.owner.id(), SequenceNumber(7));
    let signed = |by: &TestAccount, sequence| by.key.sign_unlock_request(&domain, SequenceNumber(sequence));
    assert!(is_unlock_authorized(&domain, account, sequence, &signed(&setting.owner, 7)));
    for wrong in
        [signed(&setting.owner, 8), signed(&setting.other, 7), Vec::new(), vec![0; 95], vec![0; 97], vec![0; 512]]
    {
        assert!(!is_unlock_authorized(&domain, account, sequence, &wrong));
    }
    // The contract has checked the requests of Ethereum accounts. Who pays for one checks it first.
    let (ethereum, stranger) = (TestAccount::ethereum(0), TestAccount::ethereum(1));
    assert!(is_unlock_authorized(&domain, ethereum.id(), sequence, &[]));
    assert!(is_unlock_signed(&domain, ethereum.id(), sequence, &signed(&ethereum, 7)));
    for wrong in [signed(&ethereum, 8), signed(&stranger, 7), signed(&setting.owner, 7), Vec::new()] {
        assert!(!is_unlock_signed(&domain, ethereum.id(), sequence, &wrong));
    }
}

#[test]
fn a_vote_counts_for_its_statement_and_epoch_alone() {
    let setting = setting();
    let (committee, domain) = (&setting.committee.committee, setting.committee.domain);
    let (account, sequence, epoch) = (setting.owner.id(), SequenceNumber(3), Epoch(0));
    let votes = [
        UnlockVote::Certificate(Digest::repeat_byte(1)),
        UnlockVote::Certificate(Digest::repeat_byte(2)),
        UnlockVote::Void { unanimous: false },
        UnlockVote::Void { unanimous: true },
    ];
    let needed = votes.map(|vote| vote.needed(committee));
    assert_eq!(needed, [3, 3, 3, 4]);
    for vote in &votes {
        let signed = vote.sign(&setting.committee.keys[0], &domain, epoch, account, sequence);
        for other in &votes {
            let digest = other.digest(&domain, epoch, account, sequence);
            assert_eq!(signed.clone().verify(committee, digest).is_ok(), vote == other, "{vote:?} as {other:?}");
        }
        for (epoch, account, sequence) in
            [(Epoch(1), account, sequence), (epoch, AccountId([5; 32]), sequence), (epoch, account, SequenceNumber(4))]
        {
            let digest = vote.digest(&domain, epoch, account, sequence);
            assert!(signed.clone().verify(committee, digest).is_err());
        }
    }
}

#[test]
fn a_ledger_of_an_earlier_release_is_read_and_one_without_unlocks_is_written_the_same() {
    let mut setting = setting();
    let without = borsh::to_vec(setting.shard.ledger()).unwrap();
    let read: ShardLedger = borsh::from_slice(&without).unwrap();
    assert_eq!(&read, setting.shard.ledger());
    setting.request(0);
    let with = borsh::to_vec(setting.shard.ledger()).unwrap();
    assert!(with.len() > without.len());
    let read: ShardLedger = borsh::from_slice(&with).unwrap();
    assert_eq!(&read, setting.shard.ledger());
    for end in 1..with.len() - without.len() {
        assert!(borsh::from_slice::<ShardLedger>(&with[..without.len() + end]).is_err(), "torn after {end} bytes");
    }
    let outcome = read.unlocks.iter().next().unwrap().2.outcome;
    assert_eq!(outcome, None::<UnlockOutcome>);
}

/// It named no epochs, and stepped over installations.
#[test]
fn numbers_of_an_earlier_release_are_read_and_any_compromised_epoch_opens_them_again() {
    let setting = setting();
    let (without, owner) = (borsh::to_vec(setting.shard.ledger()).unwrap(), setting.owner.id());
    let (paid, held) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
    let earlier = |sequence: u64, spent: Option<Digest>, outcome: Option<UnlockOutcome>| {
        let number = (owner, expected(sequence), Some(VOIDABLE_AT), None::<Certificate>, Some(Epoch(3)));
        borsh::to_vec(&(number, spent, outcome)).unwrap()
    };
    let numbers = [
        earlier(0, Some(paid), None),
        earlier(1, None, Some(UnlockOutcome::Upheld(held))),
        earlier(2, None, Some(UnlockOutcome::Voided)),
        earlier(3, None, None),
    ];
    let count = u32::try_from(numbers.len()).unwrap().to_le_bytes().to_vec();
    let bytes = [vec![without, count], numbers.to_vec()].concat().concat();
    let ledger: ShardLedger = borsh::from_slice(&bytes).unwrap();
    let upheld = |ledger: &ShardLedger| {
        let numbers =
            ledger.unlocks.iter().map(|(_, _, number)| (number.voidable_at, number.void_voted, number.upheld()));
        numbers.collect::<Vec<_>>()
    };
    let kept = |digest| (Some(VOIDABLE_AT), Some(Epoch(3)), digest);
    assert_eq!(upheld(&ledger), [kept(Some(paid)), kept(Some(held)), kept(None), kept(None)]);
    assert!(ledger.unlocks.is_voided(owner, expected(2)));
    let again: ShardLedger = borsh::from_slice(&borsh::to_vec(&ledger).unwrap()).unwrap();
    assert_eq!(again, ledger);

    // Epochs 1 to 6 began unnoticed. It is not known in which of them the numbers were decided, and whether keys were out.
    let mut shard = Shard::new(ShardId(0), ShardLayout::new(1.try_into().unwrap()), true, ledger, 4);
    let mut install = |after: u64, epoch: u64, compromised_since: u64| {
        let (after, index, voidable_at) = (TransactionIndex(after), TransactionIndex(after + 1), REOPENED_VOIDABLE_AT);
        let (epoch, compromised_since) = (Epoch(epoch), Epoch(compromised_since));
        let installation = Installation { after, index, epoch, compromised_since, voidable_at };
        let Decision::Commit(record) = shard.follow_installation(&installation) else { panic!("it is due") };
        shard.apply(&record, JournalPosition::default());
        shard.ledger().clone()
    };
    let ledger = install(1, 7, 7);
    assert_eq!(upheld(&ledger), [kept(Some(paid)), kept(Some(held)), kept(None), kept(None)]);
    assert_eq!([0, 6, 7].map(|epoch| ledger.unlocks.is_suspect(Epoch(epoch), Epoch(7))), [true, true, false]);
    let ledger = install(2, 8, 6);
    let open = (Some(REOPENED_VOIDABLE_AT), Some(Epoch(3)), None);
    assert_eq!(upheld(&ledger), [open, open, kept(None), kept(None)]);
    assert!(ledger.unlocks.is_voided(owner, expected(2)));
}

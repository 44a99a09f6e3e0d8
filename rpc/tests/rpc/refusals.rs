//! Refusals over the wire.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{AccountId, Amount, Balance, Digest, Epoch, Rejection, SequenceNumber, ShardId};
use fastpay_rpc::{Refusal, proto};

use crate::values::some_order;

fn all() -> Vec<Refusal> {
    vec![
        Refusal::Malformed("field memo has 3 bytes".into()),
        Refusal::Invalid("the amount is zero".into()),
        Refusal::WrongShard(ShardId(u32::MAX)),
        Refusal::OrderPending(Box::new(some_order(9))),
        Refusal::SequenceTooHigh(SequenceNumber(u64::MAX)),
        Refusal::AlreadyConfirmed(SequenceNumber(3)),
        Refusal::InsufficientBalance(Balance::ZERO.debit(Amount(5))),
        Refusal::MissingCertificate(SequenceNumber(0)),
        Refusal::NoPrimary,
        Refusal::Busy(Duration::from_millis(75)),
        Refusal::Busy(Duration::ZERO),
        Refusal::Stopping,
        Refusal::NotVoting(Epoch(3)),
        Refusal::UnknownEpoch(Epoch(u64::MAX)),
        Refusal::EpochEnded(Epoch(1)),
        Refusal::Unattested(Epoch(2)),
        Refusal::CatchingUp(None),
        Refusal::CatchingUp(Some(SequenceNumber(1))),
        Refusal::DiskLow(Duration::from_secs(60)),
        Refusal::AccountBudget(Duration::from_millis(250)),
        Refusal::AddressBudget(Duration::ZERO),
        Refusal::Frozen(SequenceNumber(4)),
        Refusal::Overruled(Digest::repeat_byte(7)),
        Refusal::Voided(SequenceNumber(5)),
        Refusal::NotRequested(SequenceNumber(6)),
        Refusal::WindowOpen(1_900_000_000),
        Refusal::PrimaryTooOld,
    ]
}

#[test]
fn every_refusal_comes_back() {
    for refusal in all() {
        let wire = proto::Refused::from(&refusal);
        assert!(!wire.message.is_empty(), "people read it too");
        assert_eq!(Refusal::try_from(wire), Ok(refusal.clone()));
        let retryable = refusal.retry_after().is_some()
            || matches!(refusal, Refusal::Stopping | Refusal::UnknownEpoch(_) | Refusal::CatchingUp(None))
            || matches!(refusal, Refusal::NotRequested(_) | Refusal::PrimaryTooOld);
        assert_eq!(refusal.is_retryable(), retryable, "{refusal}");
    }
}

#[test]
fn refusals_that_say_nothing_are_malformed() {
    let refused = |code: i32| proto::Refused { code, ..proto::Refused::default() };
    for code in [0, 26, -1, i32::MAX] {
        assert!(Refusal::try_from(refused(code)).is_err(), "{code}");
    }
    // Without the order, the balance, and the digest.
    assert!(Refusal::try_from(refused(proto::refused::Code::OrderPending.into())).is_err());
    assert!(Refusal::try_from(refused(proto::refused::Code::InsufficientBalance.into())).is_err());
    assert!(Refusal::try_from(refused(proto::refused::Code::Overruled.into())).is_err());
}

#[test]
fn the_words_of_an_authority_are_cut_and_made_fit_for_a_terminal() {
    let message = format!("\u{1b}[31mred\u{7}\n{}", "é".repeat(10_000));
    let code = proto::refused::Code::Invalid.into();
    let refused = proto::Refused { code, message, ..proto::Refused::default() };
    let Ok(Refusal::Invalid(message)) = Refusal::try_from(refused) else { panic!("invalid") };
    assert!(message.starts_with("[31mredé"));
    assert!(message.chars().count() <= 300 && !message.chars().any(char::is_control));
}

#[test]
fn every_rejection_of_the_rules_has_a_refusal() {
    let (shard, expected, balance) = (ShardId(1), SequenceNumber(4), Balance::ZERO);
    let pending = some_order(4);
    for (rejection, refusal) in [
        (Rejection::WrongShard { account: AccountId::ZERO, shard }, Refusal::WrongShard(shard)),
        (Rejection::OrderPending { pending: Arc::new(pending.clone()) }, Refusal::OrderPending(Box::new(pending))),
        (Rejection::SequenceTooHigh { expected }, Refusal::SequenceTooHigh(expected)),
        (Rejection::AlreadyConfirmed { expected }, Refusal::AlreadyConfirmed(expected)),
        (Rejection::InsufficientBalance { balance, amount: Amount(1) }, Refusal::InsufficientBalance(balance)),
        (Rejection::MissingCertificate { missing: expected }, Refusal::MissingCertificate(expected)),
        (Rejection::VotesForgotten { floor: None }, Refusal::CatchingUp(None)),
        (Rejection::VotesForgotten { floor: Some(expected) }, Refusal::CatchingUp(Some(expected))),
        (Rejection::EpochClosed { epoch: Epoch(4) }, Refusal::UnknownEpoch(Epoch(5))),
        (Rejection::NoPrimary, Refusal::NoPrimary),
        (Rejection::Frozen { sequence: expected }, Refusal::Frozen(expected)),
        (Rejection::Overruled { upheld: Digest::ZERO }, Refusal::Overruled(Digest::ZERO)),
        (Rejection::Voided { expected }, Refusal::Voided(expected)),
        (Rejection::NotRequested { sequence: expected }, Refusal::NotRequested(expected)),
        (Rejection::WindowOpen { voidable_at: 9 }, Refusal::WindowOpen(9)),
        (Rejection::PrimaryTooOld, Refusal::PrimaryTooOld),
    ] {
        assert_eq!(Refusal::from(rejection), refusal);
    }
    for rejection in [Rejection::NoDepositMemo, Rejection::CreditGap { expected: 3 }] {
        assert_eq!(Refusal::from(rejection.clone()), Refusal::Invalid(rejection.to_string()));
    }
}

//! Paying many people: each once, whenever it is interrupted and however often it is repeated.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastpay_core::{
    AccountId, Amount, Asset, Digest, Memo, Output, Outputs, SequenceNumber, TransactionIndex, UnlockEvent,
    UnlockEventKind,
};
use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_testkit::{TestAccount, alice, bob, carol};
use fastpay_wallet::folder::OrderState;
use fastpay_wallet::{ErrorKind, PageStates, PayoutPage, Wallet, WalletError};

use crate::support::{Wallets, pay};

const NAME: Digest = Digest::repeat_byte(7);

fn person(number: u64) -> AccountId {
    TestAccount::numbered(1_000 + number).id()
}

/// So many pages of three outputs; person n gets n + 1, and Bob 1 in each page.
fn pages(count: u64) -> Vec<PayoutPage> {
    let page = |page: u64| {
        let people = (2 * page..2 * page + 2).map(|number| (person(number), u128::from(number) + 1));
        let outputs = people.chain([(bob().account(), 1)]).map(|(recipient, amount)| Output {
            recipient,
            amount: Amount(amount),
            memo: Memo::repeat_byte(u8::try_from(page).unwrap()),
        });
        PayoutPage { asset: Asset::ETHER, outputs: Outputs::new(outputs.collect()).unwrap() }
    };
    (0..count).map(page).collect()
}

async fn pay_all(wallet: &Wallet, count: u64) -> Result<PageStates, WalletError> {
    wallet.pay_many(&alice(), NAME, &pages(count), |_| {}).await
}

/// Everybody was paid once, at all authorities.
async fn expect_paid(committee: &FakeCommittee, count: u64) {
    committee.until(|authority| authority.balance(bob().account()) == i128::from(count)).await;
    for authority in &committee.authorities {
        for number in 0..2 * count {
            assert_eq!(authority.balance(person(number)), i128::from(number) + 1, "person {number}");
        }
    }
}

#[tokio::test]
async fn everybody_is_paid_once_however_often_it_is_repeated() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1_000, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let told = AtomicUsize::new(0);
    let paid = wallet
        .pay_many(&alice(), NAME, &pages(12), |_| {
            told.fetch_add(1, Ordering::Relaxed);
        })
        .await
        .unwrap();
    let numbers = paid.iter().map(|page| page.unwrap().sequence.0).collect::<Vec<_>>();
    assert_eq!(numbers, (0..12).collect::<Vec<_>>());
    assert!(paid.iter().all(|page| page.unwrap().state == OrderState::Settled));
    assert!(told.into_inner() >= 24, "each page is told of when it is certified and when it is settled");
    expect_paid(&committee, 12).await;
    // Again, and by a wallet that lost its folder: the certificates say what was paid.
    assert_eq!(pay_all(&wallet, 12).await.unwrap(), paid);
    let empty = tempfile::tempdir().unwrap();
    let again = pay_all(&committee.wallet(empty.path()), 12).await.unwrap();
    assert_eq!(
        again.iter().map(|page| page.unwrap().digest).collect::<Vec<_>>(),
        paid.iter().map(|page| page.unwrap().digest).collect::<Vec<_>>()
    );
    assert_eq!(committee.authorities[0].next_sequence(alice().account()), 12);
    expect_paid(&committee, 12).await;
}

/// The list is not paid, since it is unknown what number 0 paid; and no order is stored, without which none is sent.
async fn expect_refused(wallet: &Wallet) {
    let refused = pay_all(wallet, 3).await.unwrap_err();
    assert!(matches!(refused, WalletError::Unread { sequence: SequenceNumber(0), .. }), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::Unreachable);
    let entries = wallet.folder().orders(alice().account()).entries().unwrap();
    assert!(entries.iter().all(|entry| entry.order.is_none()));
}

#[tokio::test]
async fn nothing_is_signed_while_an_earlier_order_cannot_be_read() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1_000, &[0, 1, 2, 3]);
    let [home, empty] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let wallet = committee.wallet(home.path());
    pay_all(&wallet, 2).await.unwrap();
    expect_paid(&committee, 2).await;
    committee.prune(true);
    // No archive proves what is pruned.
    committee.authorities.iter().for_each(|authority| authority.play(Role::FalseArchive));
    let restored = committee.wallet(empty.path());
    for _ in 0..2 {
        expect_refused(&restored).await;
    }
    // The newest number has a certificate, and the two before it are still unknown.
    wallet.send(&alice(), &pay(carol().account(), 5)).await.unwrap();
    let next = |number| committee.until(move |authority| authority.next_sequence(alice().account()) == number);
    next(3).await;
    for _ in 0..2 {
        expect_refused(&restored).await;
    }
    // One payment does not depend on what was paid before.
    restored.send(&alice(), &pay(carol().account(), 6)).await.unwrap();
    next(4).await;
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    let paid = pay_all(&restored, 3).await.unwrap();
    assert_eq!(paid.iter().map(|page| page.unwrap().sequence.0).collect::<Vec<_>>(), [0, 1, 4]);
    expect_paid(&committee, 3).await;
}

#[tokio::test]
async fn a_list_that_was_begun_is_not_begun_differently() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let [alice, bob] = [alice(), bob()].map(|key| key.account());
    wallet.begin_job(NAME, alice, 100).unwrap();
    wallet.begin_job(NAME, alice, 100).unwrap();
    // Other pages would not be known as paid, and another account pays everybody again.
    for (account, outputs_max) in [(alice, 50), (bob, 100)] {
        let refused = wallet.begin_job(NAME, account, outputs_max).unwrap_err();
        let as_begun = matches!(refused, WalletError::OtherJob { account, outputs_max: 100 } if account == alice);
        assert!(as_begun && refused.kind() == ErrorKind::Busy, "{refused}");
    }
}

#[tokio::test]
async fn an_interruption_at_any_moment_costs_nothing() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 10_000, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let mut interrupted = 0;
    for millis in (0..).step_by(3) {
        let wallet = committee.wallet(home.path());
        match tokio::time::timeout(Duration::from_millis(millis), pay_all(&wallet, 20)).await {
            Ok(paid) => {
                assert!(paid.unwrap().iter().all(|page| page.unwrap().state == OrderState::Settled));
                break;
            }
            Err(_) => interrupted += 1,
        }
    }
    println!("interrupted {interrupted} times");
    assert!(interrupted > 0);
    expect_paid(&committee, 20).await;
    assert_eq!(committee.authorities[0].next_sequence(alice().account()), 20);
}

#[tokio::test]
async fn numbers_that_another_copy_takes_are_made_up_for() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1_000, &[0, 1, 2, 3]);
    let [home, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (wallet, copy) = (committee.wallet(home.path()), committee.wallet(other.path()));
    pay_all(&wallet, 2).await.unwrap();
    copy.send(&alice(), &pay(carol().account(), 5)).await.unwrap();
    let paid = pay_all(&wallet, 5).await.unwrap();
    let numbers = paid.iter().map(|page| page.unwrap().sequence.0).collect::<Vec<_>>();
    assert_eq!(numbers, [0, 1, 3, 4, 5]);
    expect_paid(&committee, 5).await;
}

#[tokio::test]
async fn nothing_is_signed_where_the_money_is_not_there_for_all() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 10, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    // 1 + 2 + 1 for the first page, 3 + 4 + 1 for the second.
    let refused = pay_all(&wallet, 2).await.unwrap_err();
    assert!(matches!(refused, WalletError::Funds { needed: Amount(12), .. }), "{refused}");
    assert!(wallet.folder().orders(alice().account()).entries().unwrap().is_empty());
    assert!(committee.authorities.iter().all(|authority| authority.orders_seen().is_empty()));
    pay_all(&wallet, 1).await.unwrap();
}

#[tokio::test]
async fn outputs_are_received_by_their_names() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1_000, &[0, 1, 2, 3]);
    let [home, bobs] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let wallet = committee.wallet(home.path());
    // Bob twice in one payout, and once in another.
    let twice = |amount| Output { recipient: bob().account(), amount: Amount(amount), memo: Memo::repeat_byte(9) };
    let mut pages = pages(2);
    pages[0].outputs = Outputs::new(vec![twice(4), twice(6)]).unwrap();
    wallet.pay_many(&alice(), NAME, &pages, |_| {}).await.unwrap();
    committee.until(|authority| authority.balance(bob().account()) == 11).await;
    let wallet = committee.wallet(bobs.path());
    let collected = wallet.collect(bob().account()).await.unwrap();
    let names = collected.new.iter().map(|received| {
        let name = received.name();
        (name.sender, name.sequence, name.output, received.payment.amount.0, received.payment.memo)
    });
    let sender = alice().account();
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            (sender, SequenceNumber(0), Some(0), 4, Memo::repeat_byte(9)),
            (sender, SequenceNumber(0), Some(1), 6, Memo::repeat_byte(9)),
            (sender, SequenceNumber(1), Some(2), 1, Memo::repeat_byte(1)),
        ]
    );
    assert!(wallet.collect(bob().account()).await.unwrap().new.is_empty());
    let inbox = wallet.folder().inbox(bob().account());
    assert_eq!(inbox.payments().unwrap().len(), 3);
    let certificate = inbox.certificate(&collected.new[0].name()).unwrap().unwrap();
    assert_eq!(certificate.order.transfer.sender(), sender);
    wallet.send(&bob(), &pay(carol().account(), 11)).await.unwrap();
}

#[tokio::test]
async fn a_page_whose_number_the_contract_voided_gets_another_one_and_is_paid_once() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1_000, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    // Written down and locked everywhere, and no vote for it counts.
    committee.authorities.iter().for_each(|authority| authority.play(Role::BadVote));
    assert!(matches!(pay_all(&wallet, 2).await, Err(WalletError::Quorum(_))));
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    let (account, sequence) = (alice().account(), SequenceNumber(0));
    let (after, index) = (TransactionIndex(1), TransactionIndex(2));
    let event = UnlockEvent { after, index, account, sequence, kind: UnlockEventKind::Voided };
    committee.authorities.iter().for_each(|authority| authority.follow_unlock(&event));
    wallet.folder().orders(account).lock(Duration::from_secs(1)).await.unwrap().void(sequence).unwrap();
    let paid = pay_all(&wallet, 2).await.unwrap();
    let numbers: Vec<_> = paid.iter().map(|page| page.unwrap().sequence.0).collect();
    assert_eq!(numbers, [1, 2]);
    expect_paid(&committee, 2).await;
    assert_eq!(pay_all(&wallet, 2).await.unwrap(), paid);
}

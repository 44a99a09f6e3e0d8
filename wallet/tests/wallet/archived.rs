//! What every authority has pruned is read from their archives: the wallet misses no payment, knows its next number, and
//! audits as before.

use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_testkit::{alice, bob};
use fastpay_wallet::folder::OrderState;
use fastpay_wallet::{LOCK_PATIENCE, Resumed, Wallet, WalletError};

use crate::support::{Wallets, pay};

async fn scene() -> FakeCommittee {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1_000, &[0, 1, 2, 3]);
    committee
}

/// Alice pays Bob these amounts from this number on, and all authorities have all of it.
fn receive(committee: &FakeCommittee, from: u64, amounts: &[u128]) {
    for (sequence, amount) in (from..).zip(amounts) {
        let order = committee.order(&alice(), &pay(bob().account(), *amount), sequence);
        let certificate = committee.committee.certificate(&order);
        committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    }
}

async fn collect(wallet: &Wallet) -> (Vec<u128>, bool) {
    let collected = wallet.collect(bob().account()).await.unwrap();
    (collected.new.iter().map(|received| received.payment.amount.0).collect(), collected.is_whole)
}

#[tokio::test]
async fn payments_that_were_pruned_before_they_were_read_are_taken_from_archives() {
    let committee = scene().await;
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bobs = committee.wallet(home.path());
    receive(&committee, 0, &[1, 2]);
    assert_eq!(collect(&bobs).await, (vec![1, 2], true));
    receive(&committee, 2, &[3, 4]);
    committee.prune(true);
    receive(&committee, 4, &[5]);
    // One lies about them, and one hides them.
    committee.authorities[0].play(Role::FalseArchive);
    committee.authorities[1].play(Role::HidesArchived);
    assert_eq!(collect(&bobs).await, (vec![3, 4, 5], true));
    assert_eq!(collect(&bobs).await, (vec![], true));
    let bobs = committee.wallet(other.path());
    assert_eq!(collect(&bobs).await, (vec![1, 2, 3, 4, 5], true));
    let inbox = bobs.folder().inbox(bob().account());
    for received in inbox.payments().unwrap() {
        let is_archived = received.payment.amount.0 < 5;
        assert_eq!(received.checkpoint(), is_archived.then_some(1));
        assert_eq!(inbox.certificate(&received.name()).unwrap().is_none(), is_archived);
        let order =
            committee.order(&alice(), &pay(bob().account(), received.payment.amount.0), received.payment.sequence.0);
        let digest = committee.committee.domain.transfer_digest(&order.transfer);
        assert_eq!(received.digest(&committee.committee.domain).unwrap(), digest);
    }
}

#[tokio::test]
async fn a_cursor_stays_before_what_no_archive_has_shown_yet() {
    let committee = scene().await;
    let home = tempfile::tempdir().unwrap();
    let bobs = committee.wallet(home.path());
    receive(&committee, 0, &[1, 2]);
    committee.prune(true);
    receive(&committee, 2, &[3]);
    committee.authorities.iter().for_each(|authority| authority.play(Role::FalseArchive));
    assert_eq!(collect(&bobs).await, (vec![3], false), "what is kept is taken in");
    assert_eq!(collect(&bobs).await, (vec![], false));
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    assert_eq!(collect(&bobs).await, (vec![1, 2], true));
    assert_eq!(collect(&bobs).await, (vec![], true));
}

#[tokio::test]
async fn a_cursor_stays_while_an_archive_ends_before_what_is_pruned() {
    let committee = scene().await;
    let home = tempfile::tempdir().unwrap();
    let bobs = committee.wallet(home.path());
    receive(&committee, 0, &[1, 2]);
    committee.prune(true);
    receive(&committee, 2, &[3]);
    committee.authorities.iter().for_each(|authority| authority.play(Role::LateArchive));
    assert_eq!(collect(&bobs).await, (vec![1, 2, 3], false), "what is shown is taken in");
    assert_eq!(collect(&bobs).await, (vec![], false));
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    assert_eq!(collect(&bobs).await, (vec![], true));
}

#[tokio::test]
async fn a_listed_payment_whose_certificate_is_pruned_is_proven_by_an_archive() {
    let committee = scene().await;
    let home = tempfile::tempdir().unwrap();
    receive(&committee, 0, &[1, 2]);
    committee.prune(false);
    assert_eq!(collect(&committee.wallet(home.path())).await, (vec![1, 2], true));
}

#[tokio::test]
async fn a_restored_wallet_goes_on_behind_numbers_that_were_pruned() {
    let committee = scene().await;
    receive(&committee, 0, &[1, 2, 3]);
    committee.prune(true);
    committee.authorities[0].play(Role::FalseArchive);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let receipt = wallet.send(&alice(), &pay(bob().account(), 4)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence().0, 3);
    let entries = wallet.folder().orders(alice().account()).entries().unwrap();
    let known: Vec<_> = entries
        .iter()
        .map(|entry| (entry.sequence.0, entry.state, entry.archived.as_ref().map(|archived| archived.checkpoint)))
        .collect();
    let archived = |sequence| (sequence, OrderState::Settled, Some(1));
    assert_eq!(known, [archived(0), archived(1), archived(2), (3, OrderState::Settled, None)]);
    assert!(wallet.folder().orders(alice().account()).unfinished().unwrap().is_empty());
    let amounts = entries.iter().map(|entry| entry.transfer().unwrap().amount().0);
    assert_eq!(amounts.collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn an_order_that_another_copy_finished_and_that_is_pruned_is_finished_here() {
    let committee = scene().await;
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (home, ours) in [(&home, 7), (&other, 8)] {
        let wallet = committee.wallet(home.path());
        let journal = wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
        let order = committee.order(&alice(), &pay(bob().account(), ours), 0);
        journal.create(&order.verify(&committee.committee.domain).unwrap()).unwrap();
    }
    receive(&committee, 0, &[7]);
    committee.prune(true);
    for (home, is_ours) in [(&home, true), (&other, false)] {
        let wallet = committee.wallet(home.path());
        let resumed = wallet.resume(alice().account()).await.unwrap();
        let [Resumed::Archived { order, settled, checkpoint: 1 }] = &resumed[..] else { panic!("{resumed:?}") };
        assert_eq!((order == settled, settled.amount().0), (is_ours, 7));
        let state = if is_ours { OrderState::Settled } else { OrderState::Superseded };
        assert_eq!(wallet.folder().orders(alice().account()).entries().unwrap()[0].state, state);
        assert!(wallet.resume(alice().account()).await.unwrap().is_empty());
    }
    // The same command again says that it is done, and pays nothing twice.
    let third = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(third.path());
    let journal = wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
    let order = committee.order(&alice(), &pay(bob().account(), 7), 0);
    journal.create(&order.verify(&committee.committee.domain).unwrap()).unwrap();
    drop(journal);
    let error = wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap_err();
    assert!(matches!(error, WalletError::SettledBefore { checkpoint: 1, .. }), "{error}");
}

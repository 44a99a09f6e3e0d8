//! Orders are driven to their certificates with any one authority of four silent, slow or lying, and
//! authorities that lag are brought up to date.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpay_client::{CommitteeClient, NoCertificates, QuorumError, QuorumOptions};
use fastpay_core::{SequenceNumber, UnlockVote};
use fastpay_testkit::fake::{FakeAuthority, FakeCommittee, LIES, REQUEST_TIMEOUT, Role, options};
use fastpay_testkit::{alice, bob, carol};
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{ErrorKind, Wallet, WalletError};

use crate::support::{Wallets, pay};

async fn pays_despite(role: Role) {
    pays_despite_with(role, REQUEST_TIMEOUT).await;
}

/// Two payments with one authority playing a role; the other three must end in the right state.
async fn pays_despite_with(role: Role, request_timeout: Duration) {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    committee.authorities[2].play(role);
    let home = tempfile::tempdir().unwrap();
    let wallet = Wallet::new(Folder::new(home.path()), committee.network_with(request_timeout), options());
    for (sequence, amount) in [(0, 30), (1, 20)] {
        let receipt = wallet.send(&alice(), &pay(bob().account(), amount)).await.unwrap();
        assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(sequence), "{role:?}");
        let certificate = receipt.certificate.certificate().clone();
        certificate.verify(&committee.committee.domain, &committee.committee.committee).unwrap();
    }
    for honest in [0, 1, 3] {
        let authority = committee.authorities[honest].clone();
        assert_eq!(authority.balance(alice().account()), 50, "{role:?}");
        assert_eq!(authority.balance(bob().account()), 50, "{role:?}");
    }
}

#[tokio::test]
async fn a_silent_authority_does_not_stop_a_payment() {
    pays_despite(Role::Silent).await;
}

#[tokio::test]
async fn a_stopped_authority_does_not_stop_a_payment() {
    pays_despite(Role::Down).await;
}

#[tokio::test]
async fn a_slow_authority_is_not_waited_for() {
    let start = Instant::now();
    let request_timeout = Duration::from_secs(60);
    pays_despite_with(Role::Slow(request_timeout * 10), request_timeout).await;
    // Reads wait a little for stragglers; orders and confirmations not at all.
    assert!(start.elapsed() < request_timeout, "{:?}", start.elapsed());
}

#[tokio::test]
async fn no_lie_stops_a_payment_or_changes_it() {
    for role in LIES {
        pays_despite(role).await;
    }
}

#[tokio::test]
async fn a_long_list_of_invented_payments_does_not_keep_a_payment() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let order = committee.order(&alice(), &pay(bob().account(), 30), 0);
    let certificate = committee.committee.certificate(&order);
    // Authority 1 is behind on what Bob received, its vote is needed, and the liar's list comes first.
    [0, 2, 3].iter().for_each(|index: &usize| committee.authorities[*index].confirm(&certificate));
    committee.authorities[0].play(Role::FalseReceipts(2_000));
    let home = tempfile::tempdir().unwrap();
    committee.wallet(home.path()).send(&bob(), &pay(carol().account(), 20)).await.unwrap();
    let asked: usize = committee.authorities.iter().map(FakeAuthority::certificates_asked).sum();
    assert!(asked < 100, "{asked} certificates were asked for");
    for honest in [1, 2, 3] {
        assert_eq!(committee.authorities[honest].balance(carol().account()), 20);
    }
}

#[tokio::test]
async fn a_list_that_comes_page_after_page_just_in_time_does_not_keep_a_payment() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let order = committee.order(&alice(), &pay(bob().account(), 30), 0);
    let certificate = committee.committee.certificate(&order);
    // As above. To wait for all of the list would take twenty times this, and longer than the payment may.
    [0, 2, 3].iter().for_each(|index: &usize| committee.authorities[*index].confirm(&certificate));
    committee.authorities[0].play(Role::SlowReceipts(REQUEST_TIMEOUT * 2 / 3));
    let home = tempfile::tempdir().unwrap();
    let options = QuorumOptions { deadline: 10 * REQUEST_TIMEOUT, ..options() };
    let wallet = Wallet::new(Folder::new(home.path()), committee.network(), options);
    wallet.send(&bob(), &pay(carol().account(), 20)).await.unwrap();
}

#[tokio::test]
async fn without_a_quorum_nothing_is_final_and_the_order_can_be_resumed() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let order = committee.order(&alice(), &pay(bob().account(), 7), 0);
    let order = committee.committee.verified(&order);
    wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap().create(&order).unwrap();
    committee.authorities[0].play(Role::Down);
    committee.authorities[1].play(Role::BadVote);
    let error = wallet.resume(alice().account()).await.unwrap_err();
    let WalletError::Quorum(QuorumError::NoQuorum { count: 2, quorum: 3, failures, .. }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(failures.len(), 2, "{error}");
    assert!(error.to_string().contains("fastpay resume"), "{error}");
    committee.authorities[0].play(Role::Honest);
    assert_eq!(wallet.resume(alice().account()).await.unwrap().len(), 1);
    assert_eq!(committee.authorities[3].balance(bob().account()), 7);
}

#[tokio::test]
async fn an_authority_that_was_away_gets_the_senders_earlier_certificates() {
    for with_store in [true, false] {
        let committee = FakeCommittee::start().await;
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let home = tempfile::tempdir().unwrap();
        let wallet = committee.wallet(home.path());
        committee.authorities[3].play(Role::Down);
        for _ in 0..5 {
            wallet.send(&alice(), &pay(bob().account(), 1)).await.unwrap().rest.abort();
        }
        assert_eq!(committee.authorities[3].next_sequence(alice().account()), 0);
        committee.authorities[3].play(Role::Honest);
        // Now its vote is needed.
        committee.authorities[0].play(Role::Silent);
        if with_store {
            wallet.send(&alice(), &pay(bob().account(), 1)).await.unwrap();
        } else {
            let client = CommitteeClient::new(committee.network(), Arc::new(NoCertificates), options());
            let order = committee.order(&alice(), &pay(bob().account(), 1), 5);
            let certificate = client.certify(&committee.committee.verified(&order)).await.unwrap();
            client.settle(&certificate).await.unwrap();
        }
        assert_eq!(committee.authorities[3].next_sequence(alice().account()), 6);
        assert_eq!(committee.authorities[3].balance(bob().account()), 6);
    }
}

#[tokio::test]
async fn an_authority_that_lacks_received_payments_gets_them_with_all_that_came_before() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, bobs_home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wallet = committee.wallet(home.path());
    committee.authorities[3].play(Role::Down);
    // Only the last one is to Bob: the two before it must be brought along.
    for recipient in [carol(), carol(), bob()] {
        wallet.send(&alice(), &pay(recipient.account(), 10)).await.unwrap().rest.abort();
    }
    committee.authorities[3].play(Role::Honest);
    committee.authorities[1].play(Role::Silent);
    let receipt = committee.wallet(bobs_home.path()).send(&bob(), &pay(carol().account(), 10)).await.unwrap();
    receipt.rest.abort();
    assert_eq!(committee.authorities[3].next_sequence(alice().account()), 3);
    assert_eq!(committee.authorities[3].balance(carol().account()), 30);
}

#[tokio::test]
async fn a_deposit_that_arrives_late_at_some_authorities_is_waited_for() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let fakes = committee.authorities.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let asset = fastpay_core::Asset::ETHER;
        let (index, amount) = (fastpay_core::TransactionIndex(1), fastpay_core::Amount(100));
        let deposit = fastpay_core::Deposit { index, recipient: alice().account(), asset, amount };
        fakes[2].deposit(&deposit);
    });
    // Two of four report the balance, so an honest one has it; a third must be brought up to date.
    wallet.send(&alice(), &pay(bob().account(), 60)).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_paid_is_not_signed() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let error = wallet.send(&alice(), &pay(bob().account(), 101)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Funds, "{error}");
    assert!(wallet.folder().orders(alice().account()).entries().unwrap().is_empty());
    assert!(committee.authorities.iter().all(|authority| authority.orders_seen().is_empty()));
    // One authority that makes up money changes nothing; a smaller payment goes through.
    wallet.send(&alice(), &pay(bob().account(), 100)).await.unwrap();
}

#[tokio::test]
async fn a_redemption_is_driven_like_a_payment() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    committee.authorities[0].play(Role::BadVote);
    let home = tempfile::tempdir().unwrap();
    let intent = fastpay_wallet::Intent::Redeem {
        recipient: fastpay_core::PrimaryAddress::repeat_byte(9),
        asset: fastpay_core::Asset::ETHER,
        amount: fastpay_core::Amount(40),
        fee: fastpay_core::Amount(1),
        memo: fastpay_core::Memo::ZERO,
    };
    let receipt = committee.wallet(home.path()).send(&alice(), &intent).await.unwrap();
    let committee = &committee.committee.committee;
    assert!(fastpay_core::encode_redemption_votes(committee, &receipt.certificate.certificate().votes).is_some());
}

#[tokio::test]
async fn an_authority_that_never_answers_does_not_keep_a_hidden_certificate_from_being_attested() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let transfer = pay(bob().account(), 30).transfer(alice().account(), SequenceNumber(0));
    let certificate = committee.committee.certificate(&alice().order(&committee.committee.domain, transfer));
    committee.authorities[0].confirm(&certificate);
    committee.authorities[3].play(Role::Silent);
    // Longer than the patience: it takes all of the first step's time.
    let network = committee.network_with(Duration::from_secs(60));
    let client = CommitteeClient::new(network, Arc::new(NoCertificates), options());
    let number = (alice().account(), SequenceNumber(0));
    let ballot = client.vote_unlock(number, true, Duration::from_secs(5)).await;
    let digest = committee.committee.domain.transfer_digest(&certificate.order.transfer);
    let vote = ballot.decision().map(|decision| decision.vote);
    assert_eq!(vote, Some(UnlockVote::Certificate(digest)), "{:?}", ballot.failures());
}

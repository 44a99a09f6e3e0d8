//! Retired keys of a replaced committee have certified another order of a number that is used. Its owner signed that order,
//! too, with a copy of the wallet. One authority shows the certificate, and all confirm it, because the number is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastpay_client::{CommitteeClient, NoCertificates, QuorumError, QuorumOptions};
use fastpay_core::{
    AccountId, Amount, Asset, Certificate, Digest, Memo, Output, Outputs, SequenceNumber, VerifiedCertificate,
};
use fastpay_testkit::fake::{FakeAuthority, FakeCommittee, Message, REQUEST_TIMEOUT, Role, options};
use fastpay_testkit::{alice, bob, carol};
use fastpay_wallet::folder::{Folder, OrderState};
use fastpay_wallet::{LOCK_PATIENCE, PayoutPage, Resumed, Wallet, WalletError};

use crate::support::{Wallets, pay};

const FIRST: SequenceNumber = SequenceNumber(0);

struct Scene {
    committee: FakeCommittee,
    home: tempfile::TempDir,
    wallet: Wallet,
    /// Of 7 to Bob, by the present committee. All have executed it.
    real: Certificate,
    /// Of 9 to Carol, by the keys of the committee before.
    forged: Certificate,
}

impl Scene {
    /// Alice's wallet wrote the payment to Bob down, and has no certificate.
    async fn new() -> Self {
        let committee = FakeCommittee::start().await;
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let home = tempfile::tempdir().unwrap();
        let wallet = committee.wallet(home.path());
        let order = committee.order(&alice(), &pay(bob().account(), 7), 0);
        let journal = wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
        journal.create(&committee.committee.verified(&order)).unwrap();
        let forged = committee.committee.certificate(&committee.order(&alice(), &pay(carol().account(), 9), 0));
        let real = committee.replace_long_ago(wallet.network()).certificate(&order);
        committee.authorities.iter().for_each(|authority| authority.confirm(&real));
        Self { committee, home, wallet, real, forged }
    }

    /// One authority shows the forged certificate, and the others are slower.
    fn lie(&self, lists: bool) {
        let (liar, others) = self.committee.authorities.split_first().unwrap();
        liar.show(&self.forged, lists);
        others.iter().for_each(|other| other.play(Role::SlowCertificates(Duration::from_millis(200))));
    }

    fn verified(&self, certificate: &Certificate) -> VerifiedCertificate {
        let network = self.wallet.network();
        network.verify_certificate(certificate.clone(), alice().account(), FIRST).unwrap()
    }

    fn client(&self, options: QuorumOptions) -> CommitteeClient {
        CommitteeClient::new(self.wallet.network().clone(), Arc::new(NoCertificates), options)
    }

    fn state(&self) -> OrderState {
        self.wallet.folder().orders(alice().account()).entry(FIRST).unwrap().unwrap().state
    }

    /// Another wallet of this committee, with nothing.
    fn other(&self) -> (tempfile::TempDir, Wallet) {
        let home = tempfile::tempdir().unwrap();
        let other = self.committee.wallet(home.path());
        other.network().adopt(self.wallet.network().committees(), self.wallet.network().names());
        (home, other)
    }
}

#[tokio::test]
async fn a_forged_certificate_that_all_confirm_makes_nobody_pay_twice() {
    let scene = Scene::new().await;
    scene.lie(false);
    let receipt = scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    assert_eq!((receipt.certificate.certificate(), receipt.resumed), (&scene.real, true));
    assert_eq!(scene.state(), OrderState::Settled);
    assert!(scene.wallet.resume(alice().account()).await.unwrap().is_empty());
    assert_eq!(scene.committee.authorities[1].balance(bob().account()), 7);
    assert_eq!(scene.committee.authorities[1].next_sequence(alice().account()), 1);
}

#[tokio::test]
async fn a_forged_certificate_that_all_confirm_is_no_income() {
    let scene = Scene::new().await;
    scene.lie(true);
    let (_home, carols) = scene.other();
    for _ in 0..2 {
        assert!(carols.collect(carol().account()).await.unwrap().new.is_empty());
    }
    assert_eq!(carols.folder().inbox(carol().account()).count().unwrap(), 0);
    let bobs = carols.collect(bob().account()).await.unwrap();
    assert_eq!((bobs.new.len(), bobs.is_whole), (1, true));
}

/// After each certificate that is refused, the liar shows one of another retired committee. Or it votes for the first one,
/// and nobody can tell whether the authority that has pruned the number executed that.
#[tokio::test]
async fn certificates_of_retired_committees_do_not_hide_what_an_archive_proves() {
    for role in [Role::BadVote, Role::Honest] {
        let committee = FakeCommittee::start().await;
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let home = tempfile::tempdir().unwrap();
        let brief = QuorumOptions { deadline: REQUEST_TIMEOUT * 2, ..options() };
        let wallet = Wallet::new(Folder::new(home.path()), committee.network(), brief);
        let order = |to: AccountId, amount| committee.order(&alice(), &pay(to, amount), 0);
        let (ours, other) = (order(bob().account(), 7), order(carol().account(), 9));
        let journal = wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
        journal.create(&committee.committee.verified(&ours)).unwrap();
        drop(journal);
        let mut forged = Vec::new();
        for _ in 0..40 {
            forged.push(committee.newest().certificate(&other));
            committee.replace_long_ago(wallet.network());
        }
        let real = committee.newest().certificate(&ours);
        committee.authorities.iter().for_each(|authority| authority.confirm(&real));
        committee.prune(false);
        // The last one alone has pruned it.
        for keeps in &committee.authorities[1..3] {
            keeps.show(&real, false);
            keeps.play(Role::SlowCertificates(Duration::from_millis(200)));
        }
        let liar = committee.authorities[0].clone();
        liar.play(role);
        liar.show(&forged[0], false);
        let shown = AtomicUsize::new(0);
        committee.observe(move |message| {
            let at = shown.load(Ordering::Relaxed);
            if matches!(message, Message::Certificate(refused) if role == Role::BadVote && *refused == forged[at]) {
                shown.store(at + 1, Ordering::Relaxed);
                liar.show(&forged[at + 1], false);
            }
        });
        let resumed = wallet.resume(alice().account()).await.unwrap();
        let [Resumed::Archived { settled, .. }] = &resumed[..] else { panic!("{resumed:?}") };
        assert_eq!(**settled, ours.transfer);
    }
}

/// The real one is of the epoch before as well. It is settled, and the forged one is not.
#[tokio::test]
async fn f_plus_1_members_decide_which_certificate_of_an_ended_epoch_was_executed() {
    let scene = Scene::new().await;
    scene.committee.replace_long_ago(scene.wallet.network());
    let client = scene.client(options());
    client.settle(&scene.verified(&scene.real)).await.unwrap();
    let error = client.settle(&scene.verified(&scene.forged)).await.unwrap_err();
    assert!(matches!(error, QuorumError::Outdated(_)), "{error:?}");
    // The client knows that now, so whoever answers first does not hide the real one.
    scene.lie(false);
    let found = scene.wallet.network().find_certificate(alice().account(), FIRST).await.unwrap();
    assert_eq!(found.certificate(), &scene.real);
    let until = tokio::time::Instant::now() + Duration::from_secs(5);
    let liar = scene.wallet.network().authorities()[0].name();
    let name = (alice().account(), FIRST);
    let found = scene.wallet.network().find_certificates([name], Some(liar), until).await;
    assert_eq!(found[&name].certificate(), &scene.real);
    scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    assert_eq!(scene.state(), OrderState::Settled);
}

#[tokio::test]
async fn members_that_do_not_say_what_they_executed_prove_nothing_either_way() {
    let scene = Scene::new().await;
    scene.committee.replace_long_ago(scene.wallet.network());
    let (brief, real) = (QuorumOptions { deadline: REQUEST_TIMEOUT * 2, ..options() }, scene.verified(&scene.real));
    let (first, others) = scene.committee.authorities.split_first().unwrap();
    others.iter().for_each(|other| other.play(Role::WithholdsUnlockVotes));
    for certificate in [&real, &scene.verified(&scene.forged)] {
        let error = scene.client(brief).settle(certificate).await.unwrap_err();
        assert!(matches!(error, QuorumError::NoQuorum { timed_out: true, .. }), "{error:?}");
        assert!(!error.is_unsettled(&scene.wallet.network().committee()));
    }
    // One more vote is enough.
    others[0].play(Role::Honest);
    scene.client(options()).settle(&real).await.unwrap();
    first.play(Role::BadVote);
    let error = scene.client(brief).settle(&real).await.unwrap_err();
    assert!(matches!(error, QuorumError::NoQuorum { .. }), "{error:?}");
}

/// All have pruned what they executed, so nobody attests it.
#[tokio::test]
async fn of_a_pruned_number_the_archive_says_what_was_executed() {
    // The wallet has the certificate, or the order alone while a liar shows the forged certificate.
    for is_stored in [true, false] {
        let scene = Scene::new().await;
        if is_stored {
            let journal = scene.wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
            journal.certify(&scene.verified(&scene.real)).unwrap();
        }
        scene.committee.replace_long_ago(scene.wallet.network());
        scene.committee.prune(true);
        if !is_stored {
            scene.lie(false);
        }
        let resumed = scene.wallet.resume(alice().account()).await.unwrap();
        let [Resumed::Archived { order, settled, .. }] = &resumed[..] else { panic!("{resumed:?}") };
        assert_eq!((order, &**settled), (settled, &scene.real.order.transfer));
        assert_eq!(scene.state(), OrderState::Settled);
        let error = scene.wallet.send(&alice(), &pay(bob().account(), 7)).await;
        assert_eq!(error.unwrap().certificate.transfer().sequence(), SequenceNumber(1), "it is another payment now");
        drop(scene.home);
    }
}

#[tokio::test]
async fn a_pruned_number_that_no_archive_shows_now_waits_for_one_and_is_not_ordered_again() {
    let scene = Scene::new().await;
    let journal = scene.wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
    journal.certify(&scene.verified(&scene.real)).unwrap();
    drop(journal);
    scene.committee.replace_long_ago(scene.wallet.network());
    scene.committee.prune(true);
    let all_play = |role: Role| scene.committee.authorities.iter().for_each(|authority| authority.play(role));
    let ordered = || scene.committee.authorities.iter().map(|authority| authority.orders_seen().len()).sum::<usize>();
    all_play(Role::HidesArchived);
    let before = ordered();
    let error = scene.wallet.resume(alice().account()).await.unwrap_err();
    assert!(matches!(&error, WalletError::Quorum(QuorumError::Pruned { .. })), "{error:?}");
    assert_eq!((ordered(), scene.state()), (before, OrderState::Certified));
    all_play(Role::Honest);
    let resumed = scene.wallet.resume(alice().account()).await.unwrap();
    assert!(matches!(&resumed[..], [Resumed::Archived { .. }]), "{resumed:?}");
}

/// As the command that was repeated finds it.
#[tokio::test]
async fn a_repeated_payment_of_a_pruned_number_is_not_made_again() {
    let scene = Scene::new().await;
    scene.committee.replace_long_ago(scene.wallet.network());
    scene.committee.prune(true);
    scene.lie(false);
    let error = scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap_err();
    assert!(matches!(error, WalletError::SettledBefore { sequence: FIRST, .. }), "{error:?}");
}

/// As a command that lost its folder does. The certificate that one authority shows hides the page that was paid.
#[tokio::test]
async fn a_forged_certificate_of_a_page_makes_a_restored_wallet_pay_it_no_second_time() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, restored) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (wallet, other) = (committee.wallet(home.path()), committee.wallet(restored.path()));
    let forged = committee.committee.certificate(&committee.order(&alice(), &pay(carol().account(), 9), 0));
    committee.replace_long_ago(wallet.network());
    other.network().adopt(wallet.network().committees(), wallet.network().names());
    let output = Output { recipient: bob().account(), amount: Amount(7), memo: Memo::ZERO };
    let pages = [PayoutPage { asset: Asset::ETHER, outputs: Outputs::new(vec![output]).unwrap() }];
    let job = Digest::repeat_byte(1);
    wallet.pay_many(&alice(), job, &pages, |_| ()).await.unwrap();
    wallet.send(&alice(), &pay(carol().account(), 1)).await.unwrap();
    let is_done = |authority: &FakeAuthority| authority.next_sequence(alice().account()) == 2;
    committee.until(is_done).await;
    committee.authorities[0].show(&forged, false);
    let states = other.pay_many(&alice(), job, &pages, |_| ()).await.unwrap();
    assert_eq!(states[0].unwrap().sequence, FIRST);
    assert!(committee.authorities.iter().all(is_done), "nothing is ordered again");
    let entry = other.folder().orders(alice().account()).entry(FIRST).unwrap().unwrap();
    assert_eq!((entry.state, entry.transfer().unwrap().amount()), (OrderState::Settled, Amount(7)));
}

/// What was executed before is settled by the votes of those who executed it, all at once.
#[tokio::test]
async fn what_a_restored_wallet_learns_of_an_earlier_epoch_is_settled() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, restored) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (wallet, other) = (committee.wallet(home.path()), committee.wallet(restored.path()));
    for amount in 1..=4 {
        wallet.send(&alice(), &pay(bob().account(), amount)).await.unwrap().rest.await.unwrap();
    }
    committee.replace_long_ago(wallet.network());
    other.network().adopt(wallet.network().committees(), wallet.network().names());
    let receipt = other.send(&alice(), &pay(bob().account(), 5)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(4));
    let entries = other.folder().orders(alice().account()).entries().unwrap();
    assert_eq!(entries.iter().map(|entry| entry.state).collect::<Vec<_>>(), [OrderState::Settled; 5]);
}

/// The certificate that all executed is older than the forged one, which an earlier command was shown and stored.
#[tokio::test]
async fn what_is_settled_takes_the_place_of_a_forged_certificate_of_a_later_epoch() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let order = committee.order(&alice(), &pay(bob().account(), 7), 0);
    let journal = wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
    journal.create(&committee.committee.verified(&order)).unwrap();
    drop(journal);
    let real = committee.committee.certificate(&order);
    committee.authorities.iter().for_each(|authority| authority.confirm(&real));
    let next = committee.replace_long_ago(wallet.network());
    let forged = next.certificate(&committee.order(&alice(), &pay(carol().account(), 9), 0));
    committee.replace_long_ago(wallet.network());
    let scene = Scene { committee, home, wallet, real, forged };
    let journal = scene.wallet.folder().orders(alice().account()).lock(LOCK_PATIENCE).await.unwrap();
    journal.certify(&scene.verified(&scene.forged)).unwrap();
    drop(journal);
    assert_eq!(scene.state(), OrderState::Superseded);
    let receipt = scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    assert_eq!((receipt.certificate.certificate(), receipt.resumed), (&scene.real, true));
    let entry = scene.wallet.folder().orders(alice().account()).entry(FIRST).unwrap().unwrap();
    assert_eq!((entry.state, entry.certificate), (OrderState::Settled, Some(scene.real.clone())));
    assert!(scene.wallet.resume(alice().account()).await.unwrap().is_empty());
}

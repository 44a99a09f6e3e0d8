//! After a recovery, certificates of earlier epochs count for nothing. A wallet that has one submits the same order again
//! under its number, unless the number was taken.

use std::sync::Arc;

use fastpay_client::{CommitteeClient, NoCertificates, QuorumError};
use fastpay_core::{Amount, Asset, Epoch, Memo, PrimaryAddress, Redemption, SequenceNumber, Transfer, TransferOrder};
use fastpay_testkit::fake::{FakeCommittee, Message, Role, options};
use fastpay_testkit::{TestCommittee, alice, bob, carol};
use fastpay_wallet::folder::OrderState;
use fastpay_wallet::{Intent, Resumed, Wallet, WalletError};

use crate::support::{Wallets, pay};

const ALL: [usize; 4] = [0, 1, 2, 3];

struct Scene {
    committee: FakeCommittee,
    _home: tempfile::TempDir,
    wallet: Wallet,
}

impl Scene {
    /// Alice has 100.
    async fn new() -> Self {
        let committee = FakeCommittee::start().await;
        committee.fund(1, alice().account(), 100, &ALL);
        let home = tempfile::tempdir().unwrap();
        let wallet = committee.wallet(home.path());
        Self { committee, _home: home, wallet }
    }

    /// Alice has a certificate of a payment of 7 to Bob that nobody has confirmed.
    async fn with_unsettled() -> Self {
        let scene = Self::new().await;
        scene.play(Role::RefusesCertificates);
        let error = scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap_err();
        let is_unsettled = |error: &WalletError| {
            matches!(error, WalletError::Quorum(QuorumError::NoQuorum { what: "confirmations", count: 0, .. }))
        };
        assert!(is_unsettled(&error), "{error:?}");
        scene.play(Role::Honest);
        scene
    }

    fn play(&self, role: Role) {
        self.committee.authorities.iter().for_each(|authority| authority.play(role));
    }

    /// Begins anew with the deposit alone.
    fn recover(&self) -> TestCommittee {
        let next = self.committee.recover(self.wallet.network());
        self.committee.fund(1, alice().account(), 100, &ALL);
        next
    }

    /// Alice's payment to Bob under her first number.
    fn order(&self, amount: u128) -> TransferOrder {
        self.committee.order(&alice(), &pay(bob().account(), amount), 0)
    }

    /// All authorities execute a certificate of the new committee.
    fn include(&self, next: &TestCommittee, amount: u128) {
        let certificate = next.certificate(&self.order(amount));
        self.committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    }

    fn state(&self, sequence: u64) -> (OrderState, Option<Epoch>) {
        let entry = self.wallet.folder().orders(alice().account()).entry(SequenceNumber(sequence)).unwrap().unwrap();
        (entry.state, entry.certificate.map(|certificate| certificate.epoch))
    }

    /// The files of ended certificates.
    fn ended(&self) -> Vec<String> {
        let folder = self.wallet.folder().home().join("orders").join(hex::encode(alice().account().0));
        let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut ended: Vec<_> = names.filter(|name| name.ends_with(".ended")).collect();
        ended.sort();
        ended
    }

    async fn holds(&self, amount: i128) {
        self.committee.until(|authority| authority.balance(bob().account()) == amount).await;
    }
}

#[tokio::test]
async fn an_order_whose_certificate_a_recovery_ended_is_submitted_again_and_nothing_new_is_signed() {
    let scene = Scene::with_unsettled().await;
    let order = scene.order(7);
    scene.recover();
    let ours = order.clone();
    scene.committee.observe(move |message| {
        if let Message::Order(order) = message {
            assert_eq!(*order, ours, "the very same order");
        }
    });
    let resumed = scene.wallet.resume(alice().account()).await.unwrap();
    let [Resumed::Settled(receipt)] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!(receipt.certificate.certificate().order, order);
    assert_eq!(receipt.certificate.certificate().epoch, Epoch(1));
    assert_eq!(scene.state(0), (OrderState::Settled, Some(Epoch(1))));
    scene.holds(7).await;
    assert!(scene.wallet.resume(alice().account()).await.unwrap().is_empty());
    // The ended one is kept beside it.
    assert_eq!(scene.ended(), ["00000000000000000000.0.ended"]);
    scene.committee.observe(|_| ());
    let receipt = scene.wallet.send(&alice(), &pay(bob().account(), 1)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(1));
    scene.holds(8).await;
}

#[tokio::test]
async fn the_same_payment_ordered_again_after_a_recovery_finishes_the_first_and_pays_once() {
    let scene = Scene::with_unsettled().await;
    scene.recover();
    let receipt = scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    assert!(receipt.resumed);
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(0));
    scene.holds(7).await;
}

#[tokio::test]
async fn an_order_that_the_recovery_included_is_settled() {
    // Its certificate is there, or pruned.
    for is_pruned in [false, true] {
        let scene = Scene::with_unsettled().await;
        let next = scene.recover();
        scene.include(&next, 7);
        if is_pruned {
            scene.committee.prune(true);
        }
        let resumed = scene.wallet.resume(alice().account()).await.unwrap();
        match &resumed[..] {
            [Resumed::Settled(receipt)] if !is_pruned => assert_eq!(receipt.certificate.transfer().amount().0, 7),
            [Resumed::Archived { order, settled, checkpoint: 1 }] if is_pruned => assert_eq!(order, settled),
            _ => panic!("{resumed:?}"),
        }
        let epoch = if is_pruned { Epoch(0) } else { Epoch(1) };
        assert_eq!(scene.state(0), (OrderState::Settled, Some(epoch)));
        assert!(scene.wallet.resume(alice().account()).await.unwrap().is_empty());
        scene.holds(7).await;
    }
}

#[tokio::test]
async fn another_order_that_took_the_number_in_a_recovery_is_named_and_ours_is_not_made() {
    for is_pruned in [false, true] {
        let scene = Scene::with_unsettled().await;
        let next = scene.recover();
        scene.include(&next, 9);
        if is_pruned {
            scene.committee.prune(true);
        }
        let resumed = scene.wallet.resume(alice().account()).await.unwrap();
        let (order, settled) = match &resumed[..] {
            [Resumed::Superseded { order, certificate }] if !is_pruned => (order, certificate.transfer().clone()),
            [Resumed::Archived { order, settled, .. }] if is_pruned => (order, (**settled).clone()),
            _ => panic!("{resumed:?}"),
        };
        assert_eq!((order.amount().0, settled.amount().0), (7, 9));
        assert_eq!(scene.state(0).0, OrderState::Superseded);
        let entry = scene.wallet.folder().orders(alice().account()).entry(SequenceNumber(0)).unwrap().unwrap();
        assert_eq!(entry.transfer(), Some(&settled), "what is shown is what happened");
        assert!(scene.wallet.resume(alice().account()).await.unwrap().is_empty());
        scene.holds(9).await;
    }
}

#[tokio::test]
async fn what_was_superseded_before_a_recovery_stays_so() {
    let scene = Scene::new().await;
    // Another copy's payment of 9 was certified; its owner knows that the one of 7 was not made.
    let journal = scene.wallet.folder().orders(alice().account()).lock(fastpay_wallet::LOCK_PATIENCE).await.unwrap();
    journal.create(&scene.committee.committee.verified(&scene.order(7))).unwrap();
    journal.certify(&scene.committee.committee.certified(&scene.order(9))).unwrap();
    drop(journal);
    assert_eq!(scene.state(0).0, OrderState::Superseded);
    scene.recover();
    let resumed = scene.wallet.resume(alice().account()).await.unwrap();
    let [Resumed::Superseded { order, certificate }] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!((order.amount().0, certificate.transfer().amount().0), (7, 9));
    assert_eq!(scene.state(0), (OrderState::Superseded, Some(Epoch(1))));
    scene.holds(9).await;
}

#[tokio::test]
async fn a_settled_order_that_a_recovery_left_out_is_made_again_before_the_next_one() {
    let scene = Scene::new().await;
    for amount in [7, 8] {
        scene.wallet.send(&alice(), &pay(bob().account(), amount)).await.unwrap();
    }
    scene.recover();
    // The next payment equals one that was left out, and is one more.
    let receipt = scene.wallet.send(&alice(), &pay(bob().account(), 8)).await.unwrap();
    assert!(!receipt.resumed);
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(2));
    scene.holds(23).await;
    for sequence in 0..3 {
        assert_eq!(scene.state(sequence), (OrderState::Settled, Some(Epoch(1))));
    }
    scene.recover();
    let resumed = scene.wallet.resume(alice().account()).await.unwrap();
    let made: Vec<_> = resumed
        .iter()
        .map(|resumed| match resumed {
            Resumed::Settled(receipt) => receipt.certificate.transfer().amount().0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(made, [7, 8, 8]);
    assert_eq!(scene.state(2), (OrderState::Settled, Some(Epoch(2))));
    scene.holds(23).await;
    // No certificate is lost: another recovery may count any of them.
    let names = ["0.0", "0.1", "1.0", "1.1", "2.1"].map(|name| format!("{name:0>22}.ended"));
    assert_eq!(scene.ended(), names);
}

#[tokio::test]
async fn an_ended_certificate_that_one_authority_returns_does_not_hide_what_took_the_number() {
    let scene = Scene::with_unsettled().await;
    let ended = scene.committee.committee.certificate(&scene.order(7));
    let next = scene.recover();
    scene.include(&next, 9);
    scene.committee.prune(true);
    scene.committee.authorities[0].show(&ended, false);
    let resumed = scene.wallet.resume(alice().account()).await.unwrap();
    let [Resumed::Archived { order, settled, .. }] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!((order.amount().0, settled.amount().0), (7, 9));
    // Another wallet that only has the order learns that the certificate has ended when it sends it.
    let home = tempfile::tempdir().unwrap();
    let other = scene.committee.wallet(home.path());
    other.network().adopt(scene.wallet.network().committees(), scene.wallet.network().names());
    let journal = other.folder().orders(alice().account()).lock(fastpay_wallet::LOCK_PATIENCE).await.unwrap();
    journal.create(&scene.committee.committee.verified(&scene.order(7))).unwrap();
    drop(journal);
    let resumed = other.resume(alice().account()).await.unwrap();
    let [Resumed::Archived { settled, .. }] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!(settled.amount().0, 9);
    assert_eq!(other.network().counting_since(), Epoch(1));
}

#[tokio::test]
async fn an_authority_that_lacks_an_earlier_order_gets_its_newer_certificate() {
    let scene = Scene::new().await;
    scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    let next = scene.recover();
    let newer = next.certificate(&scene.order(7));
    [1, 2].iter().for_each(|index: &usize| scene.committee.authorities[*index].confirm(&newer));
    // Without the last one there is no quorum, and the wallet has only the ended certificate.
    scene.committee.authorities[0].play(Role::Down);
    let receipt = scene.wallet.send(&alice(), &pay(bob().account(), 8)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(1));
    scene.committee.until_so_many(3, |authority| authority.balance(bob().account()) == 15).await;
}

#[tokio::test]
async fn an_unfinished_order_behind_one_that_a_recovery_left_out_waits_for_that() {
    // It is certified and not settled, or only stored.
    for is_certified in [true, false] {
        let scene = Scene::new().await;
        scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
        let order = scene.committee.order(&alice(), &pay(bob().account(), 8), 1);
        let journal =
            scene.wallet.folder().orders(alice().account()).lock(fastpay_wallet::LOCK_PATIENCE).await.unwrap();
        journal.create(&scene.committee.committee.verified(&order)).unwrap();
        if is_certified {
            journal.certify(&scene.committee.committee.certified(&order)).unwrap();
        }
        drop(journal);
        scene.recover();
        let resumed = scene.wallet.resume(alice().account()).await.unwrap();
        let [Resumed::Settled(before), Resumed::Settled(receipt)] = &resumed[..] else { panic!("{resumed:?}") };
        assert_eq!(before.certificate.certificate().order, scene.order(7));
        assert_eq!(receipt.certificate.certificate().order, order);
        scene.holds(15).await;
        for sequence in 0..2 {
            assert_eq!(scene.state(sequence), (OrderState::Settled, Some(Epoch(1))));
        }
    }
}

#[tokio::test]
async fn one_authority_alone_ends_no_epoch_and_two_do() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &ALL);
    let network = committee.network();
    let certificate =
        |sequence| committee.committee.certified(&committee.order(&alice(), &pay(carol().account(), 5), sequence));
    let client = CommitteeClient::new(network.clone(), Arc::new(NoCertificates), options());
    let next = committee.newest().rotated();
    committee.install(next.clone());
    committee.authorities.iter().for_each(|authority| authority.rotate());
    let mut committees = network.committees();
    committees.install(next.committee.clone()).unwrap();
    let names = committee.endpoints.authorities.iter().map(|listed| listed.name);
    network.adopt(committees, names.zip(next.keys.iter().map(|keys| keys.public().name)).collect());

    committee.authorities[2].play(Role::EndsEpochs);
    client.settle(&certificate(0)).await.unwrap();
    assert_eq!(network.counting_since(), Epoch(0));
    assert!(network.find_certificate(alice().account(), SequenceNumber(0)).await.is_some());
    committee.authorities[1].play(Role::Silent);
    let error = client.settle(&certificate(1)).await.unwrap_err();
    assert!(matches!(error, QuorumError::NoQuorum { count: 2, .. }), "{error:?}");
    assert!(!error.is_unsettled(&next.committee));
    committee.authorities[1].play(Role::EndsEpochs);
    let error = client.settle(&certificate(2)).await.unwrap_err();
    assert!(matches!(error, QuorumError::EpochEnded(Epoch(0))), "{error:?}");
    assert!(error.is_unsettled(&next.committee));
    // A certificate of that epoch proves nothing from now on.
    assert_eq!(network.counting_since(), Epoch(1));
    assert!(network.find_certificate(alice().account(), SequenceNumber(0)).await.is_none());
}

/// Alice's redemption of 7 under a number.
fn redemption(committee: &FakeCommittee, number: u64) -> Redemption {
    let (recipient, fee, memo) = (PrimaryAddress::repeat_byte(7), Amount(0), Memo::ZERO);
    let intent = Intent::Redeem { recipient, asset: Asset::ETHER, amount: Amount(7), fee, memo };
    match committee.order(&alice(), &intent, number).transfer {
        Transfer::Redemption(redemption) => redemption,
        other => panic!("{other:?}"),
    }
}

/// Stores the certificate of an order in a wallet.
async fn store(wallet: &Wallet, committee: &FakeCommittee, order: &TransferOrder) {
    let journal = wallet.folder().orders(alice().account()).lock(fastpay_wallet::LOCK_PATIENCE).await.unwrap();
    journal.create(&committee.committee.verified(order)).unwrap();
    journal.certify(&committee.committee.certified(order)).unwrap();
}

#[tokio::test]
async fn a_redemption_that_a_recovery_debited_without_its_certificate_is_proven_by_its_checkpoint() {
    let scene = Scene::new().await;
    let paid = redemption(&scene.committee, 0);
    store(&scene.wallet, &scene.committee, &alice().order(&scene.committee.committee.domain, paid.clone().into()))
        .await;
    scene.committee.recover_paid(scene.wallet.network(), &paid, 1, 93);
    let resumed = scene.wallet.resume(alice().account()).await.unwrap();
    let [Resumed::Archived { order, settled, checkpoint: 1 }] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!((&**order, order), (&paid.clone().into(), settled));
    assert_eq!(scene.state(0), (OrderState::Settled, Some(Epoch(0))));
    assert!(scene.wallet.resume(alice().account()).await.unwrap().is_empty());
    // The account pays again, from this folder and from one that knows nothing.
    let (home, mut number) = (tempfile::tempdir().unwrap(), 1);
    let other = scene.committee.wallet(home.path());
    other.network().adopt(scene.wallet.network().committees(), scene.wallet.network().names());
    for wallet in [&scene.wallet, &other] {
        let receipt = wallet.send(&alice(), &pay(bob().account(), 1)).await.unwrap();
        assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(number));
        number += 1;
    }
    scene.holds(2).await;
    let known = other.folder().orders(alice().account()).entry(SequenceNumber(0)).unwrap().unwrap();
    assert_eq!((known.state, known.transfer()), (OrderState::Settled, Some(&paid.into())));
}

#[tokio::test]
async fn what_a_recovery_debited_behind_a_gap_proves_no_next_number() {
    let scene = Scene::new().await;
    let paid = redemption(&scene.committee, 4);
    scene.committee.recover_paid(scene.wallet.network(), &paid, 0, 93);
    // One authority says that number 5 is next, and the checkpoint proves that number 4 was paid.
    scene.committee.authorities[0].play(Role::FalseGap);
    let receipt = scene.wallet.send(&alice(), &pay(bob().account(), 1)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(0));
}

#[tokio::test]
async fn the_number_to_unlock_is_the_first_one_that_a_recovery_left_out() {
    let scene = Scene::new().await;
    for amount in [7, 8] {
        scene.wallet.send(&alice(), &pay(bob().account(), amount)).await.unwrap();
    }
    let open = async || scene.wallet.first_open_number(alice().account()).await.unwrap();
    assert_eq!(open().await, SequenceNumber(2));
    let next = scene.committee.recover(scene.wallet.network());
    // Nothing covers them, and the second is left out, too.
    assert_eq!(open().await, SequenceNumber(0));
    scene.committee.fund(1, alice().account(), 100, &ALL);
    scene.include(&next, 7);
    assert_eq!(open().await, SequenceNumber(1));
    scene.wallet.resume(alice().account()).await.unwrap();
    assert_eq!(open().await, SequenceNumber(2));
}

//! An authority has left the committee, and the endpoints file still lists it. It lies, as one member does. Together they
//! are more than f, and have one voice.

use std::time::Duration;

use fastpay_client::Names;
use fastpay_core::{Amount, Asset, Digest, Memo, Output, Outputs, SequenceNumber};
use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_testkit::{TestCommittee, alice, bob};
use fastpay_wallet::{PayoutPage, Wallet, WalletError};
use tokio::time::Instant;

use crate::support::{Wallets, pay};

struct Scene {
    committee: FakeCommittee,
    _home: tempfile::TempDir,
    wallet: Wallet,
}

impl Scene {
    /// The last authority has left, and nobody knows where its successor is. With `named`, the wallet knows the names of
    /// the others, which have new keys.
    async fn new(named: bool) -> Self {
        let committee = FakeCommittee::start().await;
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let home = tempfile::tempdir().unwrap();
        let wallet = committee.wallet(home.path());
        let next = committee.committee.rotated();
        committee.install(next.clone());
        committee.authorities[..3].iter().for_each(|authority| authority.rotate());
        follow(&committee, &wallet, &next, if named { 3 } else { 0 });
        Self { committee, _home: home, wallet }
    }

    fn play(&self, role: Role, at: &[usize]) {
        at.iter().for_each(|at| self.committee.authorities[*at].play(role));
    }
}

/// The wallet knows the next committee, and the new names of the first `named` authorities.
fn follow(committee: &FakeCommittee, wallet: &Wallet, next: &TestCommittee, named: usize) {
    let mut committees = wallet.network().committees();
    committees.install(next.committee.clone()).unwrap();
    let listed = committee.endpoints.authorities.iter().map(|listed| listed.name);
    let names: Names = listed.zip(next.keys.iter().map(|keys| keys.public().name)).take(named).collect();
    wallet.network().adopt(committees, names);
}

#[tokio::test]
async fn who_left_does_not_make_up_a_quorum_of_answers() {
    let scene = Scene::new(true).await;
    scene.wallet.view(alice().account()).await.unwrap();
    scene.play(Role::Down, &[2]);
    let error = scene.wallet.view(alice().account()).await.unwrap_err();
    assert!(matches!(error, WalletError::TooFewAnswers { answered: 2, quorum: 3 }), "{error:?}");
    let error = scene.wallet.collect(alice().account()).await.unwrap_err();
    assert!(matches!(error, WalletError::TooFewAnswers { answered: 2, quorum: 3 }), "{error:?}");
    let error = scene.wallet.collect_deposits(alice().account()).await.unwrap_err();
    assert!(matches!(error, WalletError::TooFewAnswers { answered: 2, quorum: 3 }), "{error:?}");
}

/// A slow honest member is waited for: it may be the one that is locked on another copy's order.
#[tokio::test]
async fn a_read_ends_with_a_quorum_of_members() {
    let scene = Scene::new(true).await;
    scene.play(Role::Slow(Duration::from_millis(500)), &[1]);
    let network = scene.wallet.network();
    let answers = network.account(alice().account(), Instant::now() + Duration::from_secs(10)).await;
    assert_eq!((answers.len(), network.of_members(&answers).len()), (4, 3));
    // It may have the only certificate.
    let certificate =
        scene.committee.newest().certificate(&scene.committee.order(&alice(), &pay(bob().account(), 7), 0));
    scene.play(Role::SlowCertificates(Duration::from_millis(1_500)), &[1]);
    scene.committee.authorities[1].confirm(&certificate);
    let found = network.find_certificate(alice().account(), SequenceNumber(0)).await;
    assert_eq!(found.unwrap().certificate(), &certificate);
}

#[tokio::test]
async fn who_left_and_one_member_step_over_no_number_and_credit_no_deposit() {
    let scene = Scene::new(true).await;
    scene.play(Role::FalseHistory, &[0, 3]);
    scene.committee.fund(2, alice().account(), 1_000, &[0, 3]);
    scene.wallet.collect_deposits(alice().account()).await.unwrap();
    let inbox = scene.wallet.folder().inbox(alice().account());
    let deposits: Vec<_> = inbox.deposits().unwrap().iter().map(|deposit| deposit.amount.0).collect();
    assert_eq!(deposits, [100]);
    // With their numbers, no earlier order could be excluded.
    let output = Output { recipient: bob().account(), amount: Amount(7), memo: Memo::ZERO };
    let page = PayoutPage { asset: Asset::ETHER, outputs: Outputs::new(vec![output]).unwrap() };
    let states = scene.wallet.pay_many(&alice(), Digest::repeat_byte(1), &[page], |_| ()).await.unwrap();
    assert_eq!(states[0].unwrap().sequence, SequenceNumber(0));
}

/// Right after a rotation, no endpoint has a member's name before it is asked for it.
#[tokio::test]
async fn members_that_changed_their_keys_are_asked_for_their_names_and_count() {
    let scene = Scene::new(false).await;
    let view = scene.wallet.view(alice().account()).await.unwrap();
    assert_eq!(view.balances[0].agreeing, 3);
    let scene = Scene::new(false).await;
    let answers = scene.wallet.network().account(alice().account(), Instant::now() + Duration::from_secs(10)).await;
    assert_eq!(scene.wallet.network().of_members(&answers).len(), 3);
    let scene = Scene::new(false).await;
    scene.wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    scene.wallet.collect(bob().account()).await.unwrap();
}

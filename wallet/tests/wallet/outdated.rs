//! A certificate of an epoch that ended long ago counts with the votes of members that it exists. Where too few know it,
//! its order is certified again.

use fastpay_client::QuorumError;
use fastpay_core::{Certificate, Epoch, SequenceNumber};
use fastpay_testkit::fake::{FakeCommittee, Message, Role};
use fastpay_testkit::{alice, bob};
use fastpay_wallet::folder::OrderState;
use fastpay_wallet::{Resumed, Wallet, WalletError};

use crate::support::{Wallets, pay};

struct Scene {
    committee: FakeCommittee,
    _home: tempfile::TempDir,
    wallet: Wallet,
    certificate: Certificate,
}

impl Scene {
    /// Alice has a certificate of a payment of 7 to Bob, which these authorities alone executed, and whose epoch ended long
    /// ago.
    async fn new(executed: &[usize]) -> Self {
        let committee = FakeCommittee::start().await;
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let home = tempfile::tempdir().unwrap();
        let wallet = committee.wallet(home.path());
        committee.authorities.iter().for_each(|authority| authority.play(Role::RefusesCertificates));
        let error = wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap_err();
        assert!(matches!(error, WalletError::Quorum(QuorumError::NoQuorum { .. })), "{error:?}");
        committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
        let entry = wallet.folder().orders(alice().account()).entry(SequenceNumber(0)).unwrap().unwrap();
        let certificate = entry.certificate.unwrap();
        executed.iter().for_each(|at| committee.authorities[*at].confirm(&certificate));
        committee.replace_long_ago(wallet.network());
        Self { committee, _home: home, wallet, certificate }
    }

    /// Alice's order is settled with a certificate of this epoch, and executed by all.
    async fn is_settled(&self, epoch: u64) {
        let resumed = self.wallet.resume(alice().account()).await.unwrap();
        let [Resumed::Settled(receipt)] = &resumed[..] else { panic!("{resumed:?}") };
        let settled = receipt.certificate.certificate();
        assert_eq!((settled.epoch, &settled.order), (Epoch(epoch), &self.certificate.order));
        let entry = self.wallet.folder().orders(alice().account()).entry(SequenceNumber(0)).unwrap().unwrap();
        assert_eq!((entry.state, entry.certificate.unwrap().epoch), (OrderState::Settled, Epoch(epoch)));
        self.committee.until(|authority| authority.balance(bob().account()) == 7).await;
        assert!(self.wallet.resume(alice().account()).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_f_plus_1_authorities_executed_in_time_is_settled_with_their_votes() {
    let scene = Scene::new(&[1, 3]).await;
    scene.committee.observe(|message| assert!(matches!(message, Message::Certificate(_)), "nothing is ordered again"));
    scene.is_settled(0).await;
}

#[tokio::test]
async fn what_nobody_executed_in_time_is_certified_again_and_nothing_new_is_signed() {
    let scene = Scene::new(&[]).await;
    let ours = scene.certificate.order.clone();
    scene.committee.observe(move |message| {
        if let Message::Order(order) = message {
            assert_eq!(*order, ours, "the very same order");
        }
    });
    scene.is_settled(1).await;
}

/// The one that executed it gives no vote, and the others suffice.
#[tokio::test]
async fn what_one_authority_alone_executed_in_time_is_certified_again_by_the_others() {
    let scene = Scene::new(&[2]).await;
    scene.is_settled(1).await;
}

/// An authority that lies about what it knows attests nothing alone.
#[tokio::test]
async fn one_vote_is_not_enough_and_one_silent_authority_keeps_nobody_from_the_others_votes() {
    let scene = Scene::new(&[0, 2]).await;
    scene.committee.authorities[1].play(Role::Silent);
    scene.committee.authorities[3].play(Role::Honest);
    let resumed = scene.wallet.resume(alice().account()).await.unwrap();
    assert!(matches!(&resumed[..], [Resumed::Settled(_)]), "{resumed:?}");

    let scene = Scene::new(&[0, 2]).await;
    scene.committee.authorities[0].play(Role::BadVote);
    let certificate =
        scene.wallet.network().verify_certificate(scene.certificate.clone(), alice().account(), SequenceNumber(0));
    let client = fastpay_client::CommitteeClient::new(
        scene.wallet.network().clone(),
        std::sync::Arc::new(fastpay_client::NoCertificates),
        fastpay_testkit::fake::options(),
    );
    let error = client.settle(&certificate.unwrap()).await.unwrap_err();
    assert!(matches!(error, QuorumError::Outdated(Epoch(0))), "{error:?}");
    assert_eq!(scene.committee.authorities[1].balance(bob().account()), 0, "not executed with one good vote");
}

//! A certificate of an epoch that ended long ago counts with the votes of members that it exists. Where too few know it,
//! its order is certified again.

use std::sync::Arc;

use fastpay_client::{CertificateSource, CommitteeClient, NoCertificates, PeerFailure, QuorumError, QuorumOptions};
use fastpay_core::{AccountId, Certificate, Epoch, SequenceNumber, Transfer, VerifiedCertificate};
use fastpay_testkit::fake::{FakeCommittee, Message, REQUEST_TIMEOUT, Role, options};
use fastpay_testkit::{alice, bob, payment};
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

    fn verified(&self) -> VerifiedCertificate {
        self.wallet
            .network()
            .verify_certificate(self.certificate.clone(), alice().account(), SequenceNumber(0))
            .unwrap()
    }

    /// A client without files, on the wallet's network.
    fn client(&self) -> CommitteeClient {
        CommitteeClient::new(self.wallet.network().clone(), Arc::new(NoCertificates), options())
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

/// For what is never settled; longer than a silent authority is waited for.
fn brief() -> QuorumOptions {
    QuorumOptions { deadline: REQUEST_TIMEOUT * 2, ..options() }
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
    let error = scene.client().settle(&scene.verified()).await.unwrap_err();
    assert!(matches!(error, QuorumError::Outdated(Epoch(0))), "{error:?}");
    assert_eq!(scene.committee.authorities[1].balance(bob().account()), 0, "not executed with one good vote");
}

/// The silent ones may know it, and do: nothing is concluded from the others.
#[tokio::test]
async fn a_certificate_that_silent_authorities_may_know_is_not_given_up() {
    let scene = Scene::new(&[1, 3]).await;
    [1, 3].iter().for_each(|at| scene.committee.authorities[*at].play(Role::Silent));
    let client = CommitteeClient::new(scene.wallet.network().clone(), Arc::new(NoCertificates), brief());
    let error = client.settle(&scene.verified()).await.unwrap_err();
    assert!(matches!(error, QuorumError::NoQuorum { timed_out: true, .. }), "{error:?}");
    [1, 3].iter().for_each(|at| scene.committee.authorities[*at].play(Role::Honest));
    scene.is_settled(0).await;
}

#[tokio::test]
async fn a_certificate_that_was_given_up_counts_again_once_it_is_settled() {
    let scene = Scene::new(&[1, 3]).await;
    let (client, certificate) = (scene.client(), scene.verified());
    let order = certificate.certificate().order.clone().verify(client.network().domain()).unwrap();
    [1, 3].iter().for_each(|at| scene.committee.authorities[*at].play(Role::BadVote));
    let error = client.settle(&certificate).await.unwrap_err();
    assert!(matches!(error, QuorumError::Outdated(Epoch(0))), "{error:?}");
    [1, 3].iter().for_each(|at| scene.committee.authorities[*at].play(Role::Honest));
    client.settle(&certificate).await.unwrap().rest.await.unwrap();
    assert_eq!(client.certify(&order).await.unwrap().certificate(), &scene.certificate, "all have executed it");
}

#[tokio::test]
async fn whoever_votes_in_a_newer_epoch_denies_no_certificate() {
    let scene = Scene::new(&[1, 3]).await;
    let others = scene.committee.network();
    others.adopt(scene.wallet.network().committees(), scene.wallet.network().names());
    scene.committee.replace_long_ago(&others);
    [1, 3].iter().for_each(|at| scene.committee.authorities[*at].play(Role::RefusesCertificates));
    let error = scene.client().settle(&scene.verified()).await.unwrap_err();
    assert!(matches!(error, QuorumError::NewEpoch { epoch: Epoch(2), known: Epoch(1) }), "{error:?}");
}

/// A file of one certificate.
struct Stored(Certificate);

impl CertificateSource for Stored {
    fn certificate(&self, _: AccountId, sequence: SequenceNumber) -> Option<Certificate> {
        (sequence == SequenceNumber(0)).then(|| self.0.clone())
    }
}

#[tokio::test]
async fn an_outdated_certificate_of_an_earlier_number_says_nothing_of_the_next_one() {
    let scene = Scene::new(&[]).await;
    let stored = Arc::new(Stored(scene.certificate.clone()));
    let client = CommitteeClient::new(scene.wallet.network().clone(), stored, brief());
    let next = Transfer::Payment(payment(alice().account(), bob().account(), 1, 1));
    let next = alice().order(client.network().domain(), next);
    let next = scene.committee.newest().certified(&next);
    let QuorumError::NoQuorum { failures, .. } = client.settle(&next).await.unwrap_err() else { panic!() };
    assert_eq!(failures.len(), 4);
    let is_behind = |failure: &PeerFailure| *failure == PeerFailure::Behind(SequenceNumber(0));
    assert!(failures.iter().all(|(_, failure)| is_behind(failure)), "{failures:?}");
}

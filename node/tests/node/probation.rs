//! Probation of addresses that send useless requests.

use std::sync::Arc;

use fastpay_core::{Authorization, Request, TransferOrder};
use fastpay_node::authority::rollback::{RollbackProtection, VoteFloors};
use fastpay_node::authority::shard::{Answer, ClientReputation, ShardLimits};
use fastpay_rpc::Refusal;
use fastpay_testkit::{TestAccount, payment};

use crate::scene::{Shards, voter_status};

/// More than may be worthless of the requests by which an address is judged.
const MANY: u64 = 400;

struct Scene {
    _folder: tempfile::TempDir,
    shards: Shards,
    alice: TestAccount,
    bob: TestAccount,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shards = Shards::start(folder.path(), 1, ShardLimits::default());
        let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
        shards.deposit(&[(alice.id(), 1_000_000)]);
        Self { _folder: folder, shards, alice, bob }
    }

    fn order(&self, to: &TestAccount, sequence: u64) -> TransferOrder {
        self.alice.sign(&self.shards.committee.domain, payment(self.alice.id(), to.id(), 1, sequence))
    }

    /// An order and its certificate: two requests.
    fn pay(&self, peer: &Arc<ClientReputation>, to: &TestAccount, sequence: u64) {
        let order = self.order(to, sequence);
        let certificate = Request::Certificate(self.shards.committee.certificate(&order));
        let answers = self.shards.submit_as(peer, vec![Request::Order(order), certificate]);
        assert!(matches!(answers[..], [Answer::Vote(..), Answer::Confirmed(..)]), "{answers:?}");
    }

    fn forged(&self) -> Request {
        let mut order = self.order(&self.bob, 7);
        match &mut order.authorization {
            Authorization::Ed25519 { signature, .. } => signature.0[0] ^= 1,
            Authorization::Ethereum { signature } => signature.0[0] ^= 1,
        }
        Request::Order(order)
    }
}

#[test]
fn payments_to_oneself_are_of_no_use() {
    let scene = Scene::new();
    let (useful, useless) = (Arc::new(ClientReputation::default()), Arc::new(ClientReputation::default()));
    for sequence in 0..MANY {
        scene.pay(&useful, &scene.bob, sequence);
    }
    for sequence in MANY..2 * MANY {
        scene.pay(&useless, &scene.alice, sequence);
    }
    assert_eq!(useful.worthless(), 0);
    assert!(useless.is_on_probation());
    // Useful ones among them count.
    for sequence in 2 * MANY..3 * MANY {
        scene.pay(&useless, &scene.bob, sequence);
    }
    assert!(!useless.is_on_probation());
    assert!(scene.shards.stop().into_iter().all(|ended| ended.is_ok()));
}

#[test]
fn a_payment_among_eight_forged_requests_clears_no_name() {
    for to_oneself in [true, false] {
        let (scene, peer) = (Scene::new(), Arc::new(ClientReputation::default()));
        for sequence in 0..120 {
            scene.shards.submit_as(&peer, (0..8).map(|_| scene.forged()).collect());
            let to = if to_oneself { &scene.alice } else { &scene.bob };
            let order = Request::Order(scene.order(to, sequence));
            assert!(matches!(scene.shards.submit_as(&peer, vec![order.clone()])[..], [Answer::Vote(..)]));
            let certificate = scene.shards.committee.certificate(order.order());
            scene.shards.confirm(&certificate);
        }
        assert!(peer.is_on_probation(), "to oneself: {to_oneself}");
        assert!(scene.shards.stop().into_iter().all(|ended| ended.is_ok()));
    }
}

#[test]
fn an_authority_with_a_restored_folder_judges_as_any_other() {
    let scene = Scene::new();
    let floors = tempfile::tempdir().unwrap();
    let (protection, _questions) = RollbackProtection::new(VoteFloors::open(floors.path()).unwrap());
    let protected = voter_status(&[&scene.shards.committee]).with_rollback_protection(Some(Arc::new(protection)));
    scene.shards.voter_status.send_replace(Arc::new(protected));
    let (honest, flood) = (Arc::new(ClientReputation::default()), Arc::new(ClientReputation::default()));
    for sequence in 0..MANY {
        // It refuses the order and confirms the certificate: half of what an honest client sends is of use.
        let order = scene.order(&scene.bob, sequence);
        let certificate = Request::Certificate(scene.shards.committee.certificate(&order));
        let answers = scene.shards.submit_as(&honest, vec![Request::Order(order), certificate]);
        let expected = Answer::Refused(Refusal::CatchingUp(None));
        assert!(answers[0] == expected && matches!(answers[1], Answer::Confirmed(..)), "{answers:?}");
        scene.shards.submit_as(&flood, vec![scene.forged(), scene.forged()]);
    }
    assert!(!honest.is_on_probation());
    assert!(flood.is_on_probation());
    assert!(scene.shards.stop().into_iter().all(|ended| ended.is_ok()));
}

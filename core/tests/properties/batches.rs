//! A batch and single checks agree on every mix of good and bad.

use std::sync::LazyLock;

use fastpay_core::{
    AccountId, Authorization, Certificate, Deferred, Ed25519Signature, TransferOrder, VerifiedRequest, Vote,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, test_domain};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::config;

/// Six good orders, three with a changed signature, three by keys of small order.
static ORDERS: LazyLock<Vec<TransferOrder>> = LazyLock::new(|| {
    let recipient = TestAccount::numbered(9).id();
    let good = (0..6).map(|number| {
        let owner = TestAccount::numbered(number);
        owner.sign(&test_domain(), payment(owner.id(), recipient, 1, 0))
    });
    let changed = good.clone().filter_map(|mut order| match &mut order.authorization {
        Authorization::Ed25519 { signature, .. } => {
            signature.0[40] ^= 4;
            Some(order)
        }
        Authorization::Ethereum { .. } => None,
    });
    let mut identity = [0; 32];
    identity[0] = 1;
    let small_order = [([0; 32], identity), (identity, [0; 32]), (identity, identity)].map(|(key, r)| {
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&r);
        let authorization = Authorization::Ed25519 { key, signature: Ed25519Signature(signature) };
        TransferOrder { transfer: payment(AccountId::from_ed25519(&key), recipient, 1, 0).into(), authorization }
    });
    good.chain(changed).chain(small_order).collect()
});

/// For each order a certificate with good votes, and one in which a vote is another authority's.
static CERTIFICATES: LazyLock<Vec<Certificate>> = LazyLock::new(|| {
    let committee = TestCommittee::new(4);
    let spoil = |(at, order): (usize, &TransferOrder)| {
        let mut certificate = committee.certificate(order);
        let vote = &mut certificate.votes[at % 3];
        *vote = Vote { signature: committee.vote(3, order).signature, authority: vote.authority };
        certificate
    };
    let good = ORDERS.iter().map(|order| committee.certificate(order));
    good.chain(ORDERS.iter().enumerate().map(spoil)).collect()
});

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn a_batch_agrees_with_single_checks(picks in vec(any::<prop::sample::Index>(), 0..12), seed: u64) {
        let all: Vec<Deferred<VerifiedRequest>> = picks.iter().map(request).collect();
        let alone: Vec<_> = picks.iter().map(|pick| request(pick).check()).collect();
        prop_assert_eq!(Deferred::check_all(all, StdRng::seed_from_u64(seed)), alone);
    }
}

/// An order or a certificate of the pools.
fn request(pick: &prop::sample::Index) -> Deferred<VerifiedRequest> {
    let committee = TestCommittee::new(4);
    match pick.index(ORDERS.len() + CERTIFICATES.len()).checked_sub(ORDERS.len()) {
        None => pick.get(&ORDERS).clone().prepare(&committee.domain).unwrap().into(),
        Some(at) => CERTIFICATES[at].clone().prepare(&committee.domain, &committee.committee).unwrap().into(),
    }
}

#[test]
fn the_pools_hold_good_and_bad() {
    let committee = TestCommittee::new(4);
    let good_orders = ORDERS.iter().filter(|order| (*order).clone().verify(&test_domain()).is_ok()).count();
    assert_eq!((ORDERS.len(), good_orders), (12, 9));
    let verify = |certificate: &Certificate| certificate.clone().verify(&committee.domain, &committee.committee);
    let good_certificates = CERTIFICATES.iter().filter(|certificate| verify(certificate).is_ok()).count();
    assert_eq!((CERTIFICATES.len(), good_certificates), (24, 9));
}

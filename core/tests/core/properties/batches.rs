//! A batch and single checks agree on every mix of good and bad, whatever a verifier remembers.

use std::sync::LazyLock;

use fastpay_core::{
    AccountId, Authorization, Certificate, Committees, Ed25519Signature, Request, RequestError, TransferOrder,
    VerifiedRequest, Verifier, Vote, VoteSignature,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption, test_domain};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::config;

static COMMITTEE: LazyLock<TestCommittee> = LazyLock::new(|| TestCommittee::new(4));

/// Orders by both kinds of owner: good, with a changed signature, with another's authorization, and by keys of
/// small order.
static ORDERS: LazyLock<Vec<TransferOrder>> = LazyLock::new(|| {
    let recipient = TestAccount::numbered(9).id();
    let good: Vec<TransferOrder> = (0..8)
        .map(TestAccount::numbered)
        .enumerate()
        .map(|(number, owner)| match number {
            0..6 => owner.sign(&test_domain(), payment(owner.id(), recipient, 1, 0)),
            _ => owner.sign(&test_domain(), redemption(owner.id(), [0xBE; 20].into(), 1, 0)),
        })
        .collect();
    let changed = good.iter().cloned().map(|mut order| {
        match &mut order.authorization {
            Authorization::Ed25519 { signature, .. } => signature.0[40] ^= 4,
            Authorization::Ethereum { signature } => signature.0[40] ^= 4,
        }
        order
    });
    let swapped = good
        .iter()
        .zip(good.iter().skip(2))
        .map(|(order, other)| TransferOrder { transfer: order.transfer.clone(), authorization: other.authorization });
    let mut identity = [0; 32];
    identity[0] = 1;
    let small_order = [([0; 32], identity), (identity, [0; 32]), (identity, identity)].map(|(key, r)| {
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&r);
        let authorization = Authorization::Ed25519 { key, signature: Ed25519Signature(signature) };
        TransferOrder { transfer: payment(AccountId::from_ed25519(&key), recipient, 1, 0).into(), authorization }
    });
    good.iter().cloned().chain(changed).chain(swapped).chain(small_order).collect()
});

/// For each order a certificate with good votes, one in which a vote is another authority's, and one in which a
/// byte of a vote's signature is changed.
static CERTIFICATES: LazyLock<Vec<Certificate>> = LazyLock::new(|| {
    let with = |change: fn(&mut Vote, Vote)| {
        ORDERS.iter().enumerate().map(move |(at, order)| {
            let mut certificate = COMMITTEE.certificate(order);
            change(&mut certificate.votes[at % 3], COMMITTEE.vote(3, order));
            certificate
        })
    };
    let good = with(|_, _| {});
    let renamed = with(|vote, other| vote.signature = other.signature);
    let garbled = with(|vote, _| match &mut vote.signature {
        VoteSignature::Payment { signature, .. } => signature.0[33] ^= 1,
        VoteSignature::Redemption { signature } => signature.0[33] ^= 1,
    });
    good.chain(renamed).chain(garbled).collect()
});

static REQUESTS: LazyLock<Vec<Request>> = LazyLock::new(|| {
    let orders = ORDERS.iter().cloned().map(Request::Order);
    orders.chain(CERTIFICATES.iter().cloned().map(Request::Certificate)).collect()
});

/// The verdict of checking every signature individually.
fn alone(request: &Request) -> Result<VerifiedRequest, RequestError> {
    let TestCommittee { domain, committee, .. } = &*COMMITTEE;
    match request.clone() {
        Request::Order(order) => Ok(VerifiedRequest::Order(order.verify(domain)?)),
        Request::Certificate(certificate) => Ok(VerifiedRequest::Certificate(certificate.verify(domain, committee)?)),
        Request::Attested(_) => unreachable!("there is none among them"),
    }
}

proptest! {
    #![proptest_config(config(64))]

    /// Batch after batch, by verifiers that remember everything, a little, and almost nothing.
    #[test]
    fn a_batch_agrees_with_single_checks(
        batches in vec(vec(any::<prop::sample::Index>(), 0..12), 1..5),
        memory in prop::sample::select(vec![1, 2, 5, 1000]),
        seed: u64,
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut verifier = Verifier::with_memory(COMMITTEE.domain, memory, memory);
        let committees = Committees::new(COMMITTEE.committee.clone()).unwrap();
        for picks in batches {
            let requests: Vec<Request> = picks.iter().map(|pick| pick.get(&REQUESTS).clone()).collect();
            let expected: Vec<_> = requests.iter().map(alone).collect();
            prop_assert_eq!(verifier.verify(requests, &committees, &mut rng), expected);
        }
    }
}

#[test]
fn the_pools_hold_good_and_bad() {
    let good = REQUESTS.iter().map(|request| (matches!(request, Request::Order(_)), alone(request).is_ok()));
    let count = |wanted| good.clone().filter(|found| *found == wanted).count();
    assert_eq!((count((true, true)), count((true, false))), (11, 14));
    assert_eq!((count((false, true)), count((false, false))), (11, 64));
}

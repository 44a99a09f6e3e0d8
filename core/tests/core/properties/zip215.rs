//! Signatures on which implementations of Ed25519 are known to disagree: here a batch, a single check and the
//! library that defined the rules (ZIP-215) agree, in whatever company and place.

use std::sync::LazyLock;

use ed25519_zebra::{Signature, VerificationKey};
use fastpay_core::{AccountId, Authorization, Committees, Ed25519Signature, Request, TransferOrder, Verifier};
use fastpay_testkit::{TestAccount, TestCommittee, payment, test_domain};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::config;
use crate::vectors::curve;

/// An order and whether the reference takes its signature.
struct Case {
    order: TransferOrder,
    valid: bool,
}

impl Case {
    fn new(key: [u8; 32], sign: impl Fn(alloy_primitives::B256) -> Ed25519Signature) -> Self {
        let transfer = payment(AccountId::from_ed25519(&key), TestAccount::numbered(5).id(), 1, 0).into();
        let digest = test_domain().transfer_digest(&transfer);
        let signature = sign(digest);
        let reference = VerificationKey::try_from(key)
            .and_then(|key| key.verify(&Signature::from_bytes(&signature.0), digest.as_slice()));
        let authorization = Authorization::Ed25519 { key, signature };
        Self { order: TransferOrder { transfer, authorization }, valid: reference.is_ok() }
    }
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let encodings = curve::small_order_encodings();
    let mut cases = Vec::new();
    // The published ones: key and R of small order, in all encodings, with s = 0.
    for key in &encodings {
        cases.extend(encodings.iter().map(|r| Case::new(*key, |_| curve::with_parts(*r, [0; 32]))));
    }
    // Keys and nonces of mixed order, for which the equation holds only times the cofactor.
    for (torsion, nonce_torsion) in (0..8).flat_map(|key| (0..8).map(move |nonce| (key, nonce))) {
        let key = curve::MixedKey::new(12_345, torsion);
        cases.push(Case::new(key.public(), |digest| key.sign(678, nonce_torsion, digest)));
        cases.push(Case::new(key.public(), |digest| key.sign(678, nonce_torsion, !digest)));
        cases.push(Case::new(key.public(), |digest| curve::s_not_reduced(key.sign(678, nonce_torsion, digest))));
    }
    // So many keys that a batch is summed up another way.
    for secret in 1..=80 {
        let key = curve::MixedKey::new(secret, secret as usize % 8);
        cases.push(Case::new(key.public(), |digest| key.sign(678, 0, digest)));
    }
    for key in [encodings[0], curve::no_point(), curve::MixedKey::new(9, 0).public()] {
        cases.push(Case::new(key, |_| curve::with_parts(curve::no_point(), [0; 32])));
        cases.push(Case::new(key, |_| curve::with_parts(encodings[0], [0xFF; 32])));
        cases.push(Case::new(key, |_| curve::s_not_reduced(curve::with_parts(encodings[0], [0; 32]))));
        cases.push(Case::new(key, |digest| curve::MixedKey::new(9, 0).sign(10, 0, digest)));
    }
    cases
});

/// Verdicts of a verifier that has seen nothing before.
fn verdicts(cases: &[&Case], seed: u64) -> Vec<bool> {
    let committees = Committees::new(TestCommittee::new(4).committee).unwrap();
    let requests = cases.iter().map(|case| Request::Order(case.order.clone())).collect();
    let mut verifier = Verifier::new(test_domain());
    let verdicts = verifier.verify(requests, &committees, &mut StdRng::seed_from_u64(seed));
    verdicts.iter().map(Result::is_ok).collect()
}

/// All at once, more and more of them bad.
#[test]
fn large_batches_are_judged_as_by_the_reference() {
    for bad in [0, 1, 2, 40, 139] {
        let mut left = bad;
        let batch: Vec<&Case> = CASES
            .iter()
            .filter(|case| {
                let taken = case.valid || left > 0;
                left -= usize::from(!case.valid && taken);
                taken
            })
            .collect();
        let expected: Vec<bool> = batch.iter().map(|case| case.valid).collect();
        assert_eq!(verdicts(&batch, bad as u64), expected, "{bad} bad ones");
    }
}

#[test]
fn every_case_is_judged_as_by_the_reference_in_every_place() {
    let judged = |valid| CASES.iter().filter(|case| case.valid == valid).count();
    assert_eq!((judged(true), judged(false)), (196 + 64 + 80 + 1, 128 + 11));
    let (good, bad) = (CASES.iter().rfind(|case| case.valid), CASES.iter().rfind(|case| !case.valid));
    let (good, bad) = (good.unwrap(), bad.unwrap());
    for (number, case) in CASES.iter().enumerate() {
        assert_eq!(case.order.clone().verify(&test_domain()).is_ok(), case.valid, "case {number} alone");
        for size in [1, 2, 3, 5] {
            for place in 0..size {
                let mut batch: Vec<&Case> = [good, bad].into_iter().cycle().take(size).collect();
                batch[place] = case;
                let expected: Vec<bool> = batch.iter().map(|case| case.valid).collect();
                assert_eq!(verdicts(&batch, number as u64), expected, "case {number} at {place} of {size}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_batch_agrees_with_the_reference(
        picks in vec(any::<prop::sample::Index>(), 1..300),
        only_good: bool,
        seed: u64,
    ) {
        let batch: Vec<&Case> = picks.iter().map(|pick| pick.get(&CASES)).filter(|c| c.valid || !only_good).collect();
        let expected: Vec<bool> = batch.iter().map(|case| case.valid).collect();
        prop_assert_eq!(verdicts(&batch, seed), expected);
    }
}

//! The verifier's caches, and entries that it must not confuse.

use fastpay_core::{
    Authorization, BadSignature, Certificate, CertificateError, Committees, Digest, Epoch, OrderError, OwnSignature,
    Recovery, Request, RequestError, Signatory, Transfer, TransferOrder, VerifiedRequest, Verifier, Vote,
    VoteSignature, sign_payment_votes, sign_redemption_vote,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption, test_domain};
use rand::SeedableRng;
use rand::rngs::StdRng;

struct Setting {
    committee: TestCommittee,
    verifier: Verifier,
}

impl Setting {
    fn new() -> Self {
        Self { committee: TestCommittee::new(4), verifier: Verifier::new(test_domain()) }
    }

    fn verify<const N: usize>(&mut self, requests: [Request; N]) -> [Result<VerifiedRequest, RequestError>; N] {
        let committees = Committees::new(self.committee.committee.clone()).unwrap();
        let verdicts = self.verifier.verify(requests.into(), &committees, &mut StdRng::seed_from_u64(0));
        verdicts.try_into().unwrap()
    }

    #[track_caller]
    fn accept(&mut self, request: Request) {
        let [verdict] = self.verify([request]);
        verdict.unwrap();
    }

    #[track_caller]
    fn refuse(&mut self, request: Request, expected: impl Into<RequestError>) {
        assert_eq!(self.verify([request]), [Err(expected.into())]);
    }

    fn authority(&self, index: usize) -> BadSignature {
        BadSignature(Signatory::Authority(self.committee.keys[index].public().name))
    }

    /// The order, and the certificate of it in which all votes are from batches of five.
    fn certificate_in_batches(&self, order: &TransferOrder) -> Certificate {
        let mut digests = [Digest::repeat_byte(7); 5];
        digests[2] = test_domain().transfer_digest(&order.transfer);
        let vote = |index: usize| self.votes(index, &digests).0[2].clone();
        Certificate { order: order.clone(), epoch: Epoch(0), votes: vec![vote(0), vote(1), vote(2)] }
    }

    fn votes(&self, index: usize, digests: &[Digest]) -> (Vec<Vote>, OwnSignature) {
        sign_payment_votes(&self.committee.keys[index], &test_domain(), Epoch(0), digests).unwrap()
    }
}

/// One of each kind of owner and transfer.
fn orders() -> [TransferOrder; 4] {
    let [a, b] = [TestAccount::ed25519(0), TestAccount::ethereum(0)];
    let pay = |owner: &TestAccount| Transfer::from(payment(owner.id(), TestAccount::numbered(8).id(), 100, 3));
    let redeem = |owner: &TestAccount| Transfer::from(redemption(owner.id(), [0xBE; 20].into(), 100, 3));
    [(&a, pay(&a)), (&b, pay(&b)), (&a, redeem(&a)), (&b, redeem(&b))]
        .map(|(owner, transfer)| owner.sign(&test_domain(), transfer))
}

/// Turns one bit of the signature of a vote.
fn garble(vote: &mut Vote, byte: usize) {
    match &mut vote.signature {
        VoteSignature::Payment { signature, .. } => signature.0[byte] ^= 1,
        VoteSignature::Redemption { signature } => signature.0[byte] ^= 1,
    }
}

#[test]
fn a_garbage_signature_over_a_remembered_root_is_refused() {
    for order in orders() {
        let mut setting = Setting::new();
        let good = setting.certificate_in_batches(&order);
        let good = if matches!(order.transfer, Transfer::Payment(_) | Transfer::Payout(_)) {
            good
        } else {
            setting.committee.certificate(&order)
        };
        setting.accept(Request::Certificate(good.clone()));
        for index in 0..3 {
            for byte in 0..64 {
                let mut bad = good.clone();
                garble(&mut bad.votes[index], byte);
                let expected = CertificateError::Signature(setting.authority(index));
                setting.refuse(Request::Certificate(bad), expected);
            }
            // Another authority's good signature on the same root is not this one's.
            let mut renamed = good.clone();
            renamed.votes[index].signature = good.votes[(index + 1) % 3].signature.clone();
            let expected = CertificateError::Signature(setting.authority(index));
            setting.refuse(Request::Certificate(renamed), expected);
        }
        setting.accept(Request::Certificate(good));
    }
}

#[test]
fn a_remembered_signature_of_a_sender_with_other_bytes_is_refused() {
    for order in orders() {
        let mut setting = Setting::new();
        setting.accept(Request::Order(order.clone()));
        let bad = BadSignature(Signatory::Sender(order.transfer.sender()));
        for byte in 0..64 {
            let mut changed = order.clone();
            match &mut changed.authorization {
                Authorization::Ed25519 { signature, .. } => signature.0[byte] ^= 1,
                Authorization::Ethereum { signature } => signature.0[byte] ^= 1,
            }
            setting.refuse(Request::Order(changed.clone()), OrderError::Signature(bad));
            let certificate = setting.committee.certificate(&changed);
            setting.refuse(Request::Certificate(certificate), CertificateError::Signature(bad));
        }
        if let Authorization::Ed25519 { key, signature } = order.authorization {
            for byte in 0..32 {
                let mut key = key;
                key[byte] ^= 1;
                let changed =
                    TransferOrder { authorization: Authorization::Ed25519 { key, signature }, ..order.clone() };
                setting.refuse(Request::Order(changed), OrderError::WrongKey { sender: order.transfer.sender() });
            }
        }
        // The same signature under another order.
        let another = match order.transfer.clone() {
            Transfer::Payment(payment) => fastpay_core::Payment { memo: Digest::repeat_byte(1), ..payment }.into(),
            Transfer::Redemption(redeem) => fastpay_core::Redemption { memo: Digest::repeat_byte(1), ..redeem }.into(),
            Transfer::Payout(payout) => fastpay_core::Payout { memo: Digest::repeat_byte(1), ..payout }.into(),
        };
        let moved = TransferOrder { transfer: another, ..order };
        setting.refuse(Request::Order(moved), OrderError::Signature(bad));
    }
}

#[test]
fn an_own_vote_counts_only_as_it_was_signed() {
    for order in orders() {
        let mut setting = Setting::new();
        let digest = test_domain().transfer_digest(&order.transfer);
        let mut certificate = setting.committee.certificate(&order);
        let (votes, own) = match &order.transfer {
            Transfer::Payment(_) | Transfer::Payout(_) => setting.votes(1, &[Digest::ZERO, digest]),
            Transfer::Redemption(redemption) => {
                let (vote, own) =
                    sign_redemption_vote(&setting.committee.keys[1], &test_domain(), Epoch(0), redemption);
                (vec![vote], own)
            }
        };
        setting.verifier.remember(own);
        certificate.votes[1] = votes.last().unwrap().clone();
        let mut garbled = certificate.clone();
        garble(&mut garbled.votes[1], 20);
        let expected = CertificateError::Signature(setting.authority(1));
        setting.refuse(Request::Certificate(garbled), expected);
        setting.accept(Request::Certificate(certificate.clone()));
        // A vote that it does not remember, such as one from before a restart, is checked.
        setting.verifier = Verifier::new(test_domain());
        setting.accept(Request::Certificate(certificate));
    }
}

#[test]
fn a_bad_request_is_refused_alone_and_names_its_culprit() {
    let mut setting = Setting::new();
    let [order, ..] = orders();
    let good = setting.committee.certificate(&order);
    let mut bad_vote = good.clone();
    garble(&mut bad_vote.votes[1], 3);
    let mut both_bad = bad_vote.clone();
    let Authorization::Ed25519 { signature, .. } = &mut both_bad.order.authorization else { panic!("Ed25519") };
    signature.0[40] ^= 1;
    let requests = [good.clone(), bad_vote, both_bad, good].map(Request::Certificate);
    let [first, second, third, last] = setting.verify(requests);
    assert!(first.is_ok() && last.is_ok());
    assert_eq!(second, Err(CertificateError::Signature(setting.authority(1)).into()));
    let sender = BadSignature(Signatory::Sender(order.transfer.sender()));
    assert_eq!(third, Err(CertificateError::Signature(sender).into()));
    assert_eq!(setting.verify([]), []);
}

#[test]
fn each_certificate_is_checked_against_the_committee_of_its_own_epoch() {
    let first = TestCommittee::new(4);
    let next = TestCommittee::with(7, test_domain(), Epoch(1));
    let [order, ..] = orders();
    let requests = || vec![first.certificate(&order), next.certificate(&order)].into_iter().map(Request::Certificate);
    let mut verifier = Verifier::new(test_domain());
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    let mut verify = |committees: &Committees, requests: Vec<Request>| {
        let verdicts = verifier.verify(requests, committees, &mut StdRng::seed_from_u64(0));
        verdicts.into_iter().map(|verdict| verdict.map(drop)).collect::<Vec<_>>()
    };
    assert_eq!(verify(&committees, requests().collect()), [Ok(()), Err(RequestError::UnknownEpoch(Epoch(1)))]);
    committees.install(next.committee.clone()).unwrap();
    assert_eq!(verify(&committees, requests().collect()), [Ok(()), Ok(())]);
    // Remembered votes are of their own epoch: under the label of another they are none.
    let relabelled = Certificate { epoch: Epoch(1), ..first.certificate(&order) };
    let expected = CertificateError::VoteCount { expected: 5, found: 3 };
    assert_eq!(verify(&committees, vec![Request::Certificate(relabelled)]), [Err(expected.into())]);
    let mut relabelled = next.certificate(&order);
    relabelled.epoch = Epoch(0);
    relabelled.votes.truncate(3);
    assert!(verify(&committees, vec![Request::Certificate(relabelled)])[0].is_err());
    // A recovery ends what was certified before, also what is remembered as valid.
    committees.recover(Recovery { epoch: Epoch(1), adopted: None }).unwrap();
    let ended = RequestError::EpochEnded { epoch: Epoch(0), since: Epoch(1) };
    assert_eq!(verify(&committees, requests().collect()), [Err(ended), Ok(())]);
    assert_eq!(verify(&committees, vec![Request::Order(order)]), [Ok(())]);
}

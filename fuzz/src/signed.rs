//! Everything that was ever signed in the world of the fuzzer. Anything else that is valid must be forged.

use std::collections::HashSet;
use std::sync::LazyLock;

use fastpay_core::{Certificate, Digest, TransferOrder, sign_payment_votes};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

/// The committee, and the orders and certificates that were signed under it.
pub struct Signed {
    /// Four authorities.
    pub committee: TestCommittee,
    /// Orders that their owners signed.
    pub orders: Vec<TransferOrder>,
    /// Certificates that quorums signed.
    pub certificates: Vec<Certificate>,
    ordered: HashSet<Digest>,
    certified: HashSet<Digest>,
}

/// The signed values, the same in every run.
pub static SIGNED: LazyLock<Signed> = LazyLock::new(|| {
    let committee = TestCommittee::new(4);
    let owners = [TestAccount::ed25519(0), TestAccount::ethereum(1)];
    let mut orders = Vec::new();
    for owner in &owners {
        orders.push(owner.sign(&committee.domain, payment(owner.id(), TestAccount::ed25519(7).id(), 9, 0)));
        orders.push(owner.sign(&committee.domain, redemption(owner.id(), [0xBE; 20].into(), 9, 1)));
    }
    let mut certificates: Vec<Certificate> = orders.iter().map(|order| committee.certificate(order)).collect();
    certificates.push(in_a_batch(&committee, &orders[0]));
    let digest = |order: &TransferOrder| committee.domain.transfer_digest(&order.transfer);
    let ordered = orders.iter().map(digest).collect();
    let certified = certificates.iter().map(|certificate| digest(&certificate.order)).collect();
    Signed { ordered, certified, committee, orders, certificates }
});

/// A certificate whose votes were signed together with those for 20 other payments.
fn in_a_batch(committee: &TestCommittee, order: &TransferOrder) -> Certificate {
    let digest = committee.domain.transfer_digest(&order.transfer);
    let digests: Vec<Digest> = (0..20).map(Digest::repeat_byte).chain([digest]).collect();
    let epoch = committee.committee.epoch();
    let votes = committee.keys.iter().take(committee.committee.quorum()).map(|keys| {
        let (mut votes, _) = sign_payment_votes(keys, &committee.domain, epoch, &digests).unwrap();
        votes.pop().unwrap()
    });
    Certificate { order: order.clone(), epoch, votes: votes.collect() }
}

impl Signed {
    /// Panics if the order is valid although its owner did not sign it.
    pub fn check_order(&self, order: TransferOrder) {
        if let Ok(verified) = order.verify(&self.committee.domain) {
            assert!(self.ordered.contains(&verified.digest()), "a forged order is valid: {verified:?}");
        }
    }

    /// Panics if the certificate is valid although no quorum signed it.
    pub fn check_certificate(&self, certificate: Certificate) {
        if let Ok(verified) = certificate.verify(&self.committee.domain, &self.committee.committee) {
            assert!(self.certified.contains(&verified.digest()), "a forged certificate is valid: {verified:?}");
        }
    }
}

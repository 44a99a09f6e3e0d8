//! One order with its certificate and a vote, for tests that do not look into them.

use fastpay_core::{Certificate, TransferOrder, Vote};
use fastpay_testkit::{TestAccount, TestCommittee, payment};

/// An order with this number.
pub fn some_order(sequence: u64) -> TransferOrder {
    let (sender, recipient) = (TestAccount::numbered(0), TestAccount::numbered(1));
    sender.sign(&fastpay_testkit::test_domain(), payment(sender.id(), recipient.id(), 7, sequence))
}

/// Its certificate.
pub fn some_certificate(sequence: u64) -> Certificate {
    TestCommittee::new(4).certificate(&some_order(sequence))
}

/// The vote of one authority for the first.
pub fn some_vote() -> Vote {
    TestCommittee::new(4).vote(0, &some_order(0))
}

//! Histories over hundreds of entries, read from the journal along their links.

use fastpay_core::{Asset, Certificate, Chain, Destination, Effect, JournalPosition, Link, Record};
use fastpay_node::authority::shard::ShardLimits;
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout};

use crate::scene::{FORGETFUL, Shards};

const PAYMENTS: u64 = 333;

#[test]
fn every_entry_and_every_page_is_found_before_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ShardLimits { checkpoint_journal_bytes: 20_000, ..FORGETFUL };
    let mut shards = Shards::start(folder.path(), 2, limits);
    let domain = shards.committee.domain;
    let (alice, bob, carol) = (shards.account_in(0, 0), shards.account_in(0, 1), shards.account_in(1, 0));
    let deposits: Vec<_> = (0..PAYMENTS).map(|n| (bob.id(), u128::from(n) + 1)).collect();
    shards.deposit(&deposits);
    let pending: Vec<_> = (0..PAYMENTS)
        .map(|sequence| {
            // Every other one leaves for the other shard: two histories interleave in one journal.
            let to = if sequence % 2 == 0 { bob.id() } else { carol.id() };
            let order = alice.sign(&domain, payment(alice.id(), to, u128::from(sequence) + 1, sequence));
            shards.send_certificate(&shards.committee.certificate(&order))
        })
        .collect();
    for pending in pending {
        pending.wait().unwrap();
    }
    shards.settle();

    for restart in 0..2 {
        let (payer, payee) = (shards.account(&alice.id()), shards.account(&bob.id()));
        assert_eq!((payer.sent.count(), payee.received.count()), (PAYMENTS, PAYMENTS.div_ceil(2)));
        let history = shards.history_of(&alice.id());
        for sequence in 0..PAYMENTS {
            let entry = history.entry(&payer.sent, sequence, Chain::Sent).unwrap();
            let Some(Record::Confirmation { certificate, .. }) = entry else { panic!("restart {restart}") };
            assert_eq!(certificate.order.transfer.sequence().0, sequence);
        }
        assert_eq!(history.entry(&payer.sent, PAYMENTS, Chain::Sent).unwrap(), None);
        assert_eq!(history.entry(&payer.sent, u64::MAX, Chain::Sent).unwrap(), None);

        for (start, limit, expected) in [
            (0, 100, 0..100),
            (66, 50, 66..116),
            (PAYMENTS / 2, 100, PAYMENTS / 2..PAYMENTS.div_ceil(2)),
            (PAYMENTS, 100, 0..0),
            (u64::MAX, u32::MAX, 0..0),
            (5, 0, 0..0),
            (0, u32::MAX, 0..PAYMENTS.div_ceil(2)),
        ] {
            let page = history.page(&payee.received, start, limit, Chain::Received(bob.id())).unwrap();
            assert_eq!(page.iter().map(|(number, _)| *number).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            for (number, record) in page {
                assert_eq!(record.received_by(bob.id(), number).unwrap().payment.amount.0, u128::from(number) * 2 + 1);
            }
        }
        let page = history.page(&payee.deposits, 200, 100, Chain::Deposits).unwrap();
        for (number, record) in &page {
            let Record::Synchronization { order, .. } = record else { panic!("not a deposit") };
            assert_eq!(order.deposit.as_ref().unwrap().amount.0, u128::from(*number) + 1);
        }
        assert_eq!(page.len(), 100);

        let received = shards.account(&carol.id()).received;
        let page = shards.history_of(&carol.id()).page(&received, 0, 1_000, Chain::Received(carol.id())).unwrap();
        assert_eq!(page.len() as u64, PAYMENTS / 2);
        assert!(page.iter().all(|(number, record)| {
            record.received_by(carol.id(), *number).unwrap().payment.amount.0 == u128::from(*number) * 2 + 2
        }));

        // A history of another kind of link is refused, not followed.
        assert!(history.entry(&payee.received, 3, Chain::Deposits).is_err());
        assert!(shards.account(&alice.id()).balance(Asset::ETHER).to_string().starts_with('-'));
        shards.stop();
        shards = Shards::start(folder.path(), 2, FORGETFUL);
    }
    shards.stop();
}

/// A payout for accounts of both shards, among them the same ones again and again, over restarts.
#[test]
fn outputs_are_found_in_the_histories_of_their_recipients() {
    let folder = tempfile::tempdir().unwrap();
    let mut shards = Shards::start(folder.path(), 2, FORGETFUL);
    let domain = shards.committee.domain;
    let (alice, bob, carol) = (shards.account_in(0, 0), shards.account_in(0, 1), shards.account_in(1, 0));
    for sequence in 0..5 {
        let outputs: Vec<_> =
            (1..=90_u128).map(|amount| (if amount % 3 == 0 { carol.id() } else { bob.id() }, amount)).collect();
        let order = alice.sign(&domain, payout(alice.id(), &outputs, sequence));
        shards.send_certificate(&shards.committee.certificate(&order)).wait().unwrap();
    }
    shards.settle();
    for _ in 0..2 {
        for (account, expected) in [(&bob, 60), (&carol, 30)] {
            let received = shards.account(&account.id()).received;
            assert_eq!(received.count(), 5 * expected);
            let history = shards.history_of(&account.id());
            for start in [0, 7, 5 * expected - 3] {
                let page = history.page(&received, start, 100, Chain::Received(account.id())).unwrap();
                assert_eq!(page.len() as u64, 100.min(5 * expected - start));
                for (number, record) in page {
                    let receipt = record.received_by(account.id(), number).unwrap();
                    assert_eq!(u128::from(receipt.output.unwrap()) + 1, receipt.payment.amount.0);
                    assert_eq!(receipt.payment.sequence.0, number / expected);
                }
            }
        }
        shards.stop();
        shards = Shards::start(folder.path(), 2, FORGETFUL);
    }
    shards.stop();
}

#[test]
fn the_largest_payout_fits_into_a_record() {
    let committee = TestCommittee::new(100);
    let owner = TestAccount::ed25519(0);
    let order = owner.sign(&committee.domain, payout(owner.id(), &[(owner.id(), 1); 256], 0));
    let digest = committee.domain.transfer_digest(&order.transfer);
    let mut digests = vec![digest; fastpay_core::MERKLE_LEAVES_MAX];
    digests[0] = Default::default();
    let votes = committee.keys.iter().take(committee.committee.quorum()).map(|keys| {
        let epoch = committee.committee.epoch();
        fastpay_core::sign_payment_votes(keys, &committee.domain, epoch, &digests).unwrap().0.pop().unwrap()
    });
    let certificate = Certificate { votes: votes.collect(), ..committee.certificate(&order) };
    let link = Link { number: u64::MAX, previous: Some(JournalPosition(u64::MAX)), skip: Some(JournalPosition(0)) };
    let effect = Effect::PaidOut { digest, outputs: vec![Destination::Credited { received: link }; 256] };
    let record = Record::Confirmation { certificate: certificate.into(), sent: link, effect };
    let bytes = borsh::to_vec(&record).unwrap().len();
    assert!(bytes * 4 < fastpay_node::authority::storage::RECORD_BYTES_MAX, "{bytes}");
}

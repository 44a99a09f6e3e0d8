//! Histories over hundreds of entries, read from the journal along their links.

use fastpay_core::{Asset, Record};
use fastpay_node::shard::ShardLimits;
use fastpay_testkit::payment;

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
            let entry = history.entry(&payer.sent, sequence, Record::sent_link).unwrap();
            let Some(Record::Confirmation { certificate, .. }) = entry else { panic!("restart {restart}") };
            assert_eq!(certificate.order.transfer.sequence().0, sequence);
        }
        assert_eq!(history.entry(&payer.sent, PAYMENTS, Record::sent_link).unwrap(), None);
        assert_eq!(history.entry(&payer.sent, u64::MAX, Record::sent_link).unwrap(), None);

        for (start, limit, expected) in [
            (0, 100, 0..100),
            (66, 50, 66..116),
            (PAYMENTS / 2, 100, PAYMENTS / 2..PAYMENTS.div_ceil(2)),
            (PAYMENTS, 100, 0..0),
            (u64::MAX, u32::MAX, 0..0),
            (5, 0, 0..0),
            (0, u32::MAX, 0..PAYMENTS.div_ceil(2)),
        ] {
            let page = history.page(&payee.received, start, limit, Record::received_link).unwrap();
            assert_eq!(page.iter().map(|(number, _)| *number).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            for (number, record) in page {
                assert_eq!(record.received_payment().unwrap().amount.0, u128::from(number) * 2 + 1);
            }
        }
        let page = history.page(&payee.deposits, 200, 100, Record::deposit_link).unwrap();
        for (number, record) in &page {
            let Record::Synchronization { order, .. } = record else { panic!("not a deposit") };
            assert_eq!(order.deposit.as_ref().unwrap().amount.0, u128::from(*number) + 1);
        }
        assert_eq!(page.len(), 100);

        let received = shards.account(&carol.id()).received;
        let page = shards.history_of(&carol.id()).page(&received, 0, 1_000, Record::received_link).unwrap();
        assert_eq!(page.len() as u64, PAYMENTS / 2);
        assert!(page.iter().all(|(number, r)| r.received_payment().unwrap().amount.0 == u128::from(*number) * 2 + 2));

        // A history of another kind of link is refused, not followed.
        assert!(history.entry(&payee.received, 3, Record::deposit_link).is_err());
        assert!(shards.account(&alice.id()).balance(Asset::ETHER).to_string().starts_with('-'));
        shards.stop();
        shards = Shards::start(folder.path(), 2, FORGETFUL);
    }
    shards.stop();
}

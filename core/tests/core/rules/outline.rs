//! What records of a journal mean for a checkpoint: the same, whether or not all of them is decoded.

use std::sync::Arc;

use fastpay_core::checkpoint::{Cut, Outline, Segment, SegmentEntry};
use fastpay_core::{
    AppliedCredit, CrossShardCredit, Effect, Epoch, Forwarded, Link, Record, SequenceNumber, ShardId,
    SynchronizationOrder, TransactionIndex, Transfer,
};
use fastpay_testkit::{TestCommittee, payment, payout, redemption};

use super::checkpoint::{id, owner};

const LINK: Link = Link { number: 7, previous: None, skip: None };

fn transfers() -> [Transfer; 3] {
    let redemption = redemption(id(0), fastpay_core::PrimaryAddress::repeat_byte(7), 10, 7);
    [payment(id(0), id(1), 1, 7).into(), payout(id(0), &[(id(1), 1), (id(2), 2)], 7).into(), redemption.into()]
}

#[test]
fn a_confirmation_means_its_order_whatever_follows_it_in_the_record() {
    let committee = TestCommittee::new(4);
    for transfer in transfers() {
        let order = owner(0).sign(&committee.domain, transfer);
        let certificate = Arc::new(committee.certificate(&order));
        let effect = Effect::Forwarded { to: ShardId(1), number: 3 };
        let record = Record::Confirmation { certificate, sent: LINK, effect };
        let bytes = borsh::to_vec(&record).unwrap();
        let expected = SegmentEntry::Executed(order.clone());
        assert_eq!(Outline::decode(&bytes).unwrap(), Some(Outline::Taken(expected.clone())));
        let cut = Cut { next: [(id(0), SequenceNumber(8))].into(), ..Cut::default() };
        let from = Cut { next: [(id(0), SequenceNumber(7))].into(), ..Cut::default() };
        assert_eq!(Segment::from_records([], [record], &from, &cut).entries, [expected]);
        assert!(Outline::decode(&bytes[..100]).is_err(), "cut off within the order");

        let lock = Record::Lock { digest: committee.domain.transfer_digest(&order.transfer), order: Arc::new(order) };
        assert_eq!(Outline::decode(&borsh::to_vec(&lock).unwrap()).unwrap(), None);
    }
    let forwarded = Forwarded::Payment(payment(id(0), id(1), 1, 7));
    let credit = CrossShardCredit { from: ShardId(1), number: 1, forwarded };
    let credit = Record::Credit(AppliedCredit { credit, received: vec![LINK] });
    assert_eq!(Outline::decode(&borsh::to_vec(&credit).unwrap()).unwrap(), None);
}

#[test]
fn a_void_number_is_taken_and_other_records_are_whole() {
    let void = Record::Void { account: id(0), sent: LINK };
    let entry = SegmentEntry::Void { account: id(0), sequence: SequenceNumber(7) };
    assert_eq!(Outline::decode(&borsh::to_vec(&void).unwrap()).unwrap(), Some(Outline::Taken(entry)));
    let (after, up_to) = (TransactionIndex(3), TransactionIndex(5));
    let order = SynchronizationOrder { after, up_to, deposit: None };
    for record in [Record::Synchronization { order, deposits: None }, Record::Closed { epoch: Epoch(1) }] {
        assert_eq!(Outline::decode(&borsh::to_vec(&record).unwrap()).unwrap(), Some(Outline::Other(record)));
    }
    for bytes in [&b""[..], b"a vote", &[12]] {
        assert!(Outline::decode(bytes).is_err());
    }
}

#[test]
fn a_segment_is_sorted_and_has_the_last_of_several_entries_about_a_number() {
    let order = |account: u64, number| {
        SegmentEntry::Executed(
            owner(account).sign(&TestCommittee::new(4).domain, payment(id(account), id(9), 1, number)),
        )
    };
    let void = SegmentEntry::Void { account: id(0), sequence: SequenceNumber(1) };
    let sorted = Segment::sorted([], vec![order(0, 2), order(1, 0), order(0, 1), order(0, 0), void.clone()]).entries;
    let mut expected = [[order(0, 0), void, order(0, 2)].to_vec(), vec![order(1, 0)]];
    expected.sort_by_key(|entries| entries[0].number());
    assert_eq!(sorted, expected.concat());
}

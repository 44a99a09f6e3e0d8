//! Archives without shards behind them: bounds of a page, and reasons for none.

use super::super::Store;
use super::*;
use fastpay_core::checkpoint::{Segment, SegmentEntry};
use fastpay_core::{Digest, Epoch, PrimaryAddress, TransactionIndex};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use std::fs::File;

/// An archive of so many checkpoints, in each of which account 0 pays account 1 with 4 payments, or large payouts.
fn archive(folder: &std::path::Path, checkpoints: u64, large: bool) -> (Archive, TestCommittee) {
    let (committee, archive) = (TestCommittee::new(4), Archive::new(folder));
    let (payer, payee) = (TestAccount::numbered(0), TestAccount::numbered(1).id());
    let mut previous = Digest::ZERO;
    for number in 1..=checkpoints {
        let orders = ((number - 1) * 4..number * 4).map(|sequence| {
            let order = match large {
                true => payer.sign(&committee.domain, payout(payer.id(), &[(payee, 1); 256], sequence)),
                false => payer.sign(&committee.domain, payment(payer.id(), payee, 1, sequence)),
            };
            SegmentEntry::Executed(order)
        });
        previous = complete(&archive, &committee, (number, previous), Segment { entries: orders.collect() });
    }
    (archive, committee)
}

/// Archives a segment with a certificate, and gives its checkpoint's digest.
fn complete(
    archive: &Archive,
    committee: &TestCommittee,
    (number, previous): (u64, Digest),
    segment: Segment,
) -> Digest {
    segment.write(&mut File::create(archive.segment_path(number)).unwrap()).unwrap();
    let leaf = segment.entries[0].leaf();
    let checkpoint = Checkpoint {
        epoch: Epoch(0),
        number,
        previous,
        up_to: TransactionIndex(0),
        cut: Digest::ZERO,
        state: Digest::ZERO,
        segment: leaf.root(&segment.path(&leaf).unwrap()).unwrap(),
    };
    let votes = committee.keys.iter().map(|keys| checkpoint.sign(keys, &committee.domain)).collect();
    let certificate = CheckpointCertificate::from_votes(checkpoint, &committee.domain, &committee.committee, votes);
    archive.complete(&certificate.unwrap()).unwrap();
    committee.domain.checkpoint_digest(&checkpoint)
}

fn sent(from: u64) -> ArchivedRequest {
    let list = ArchivedList::Sent(SequenceNumber(from));
    ArchivedRequest { account: TestAccount::numbered(0).id(), list, limit: 0, with_paid: false }
}

fn received(checkpoint: u64, entry: u32) -> ArchivedRequest {
    let list = ArchivedList::Received(ArchiveCursor { checkpoint, entry });
    ArchivedRequest { account: TestAccount::numbered(1).id(), list, limit: 0, with_paid: false }
}

#[tokio::test]
async fn what_is_too_old_for_one_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, committee) = archive(folder.path(), 4, false);
    let reads = ArchivedReads(Some(Arc::new(Shared::new(archive, committee.domain, 2))));
    // Checkpoints 3 and 4 are shown: numbers from 8 on.
    assert_eq!(reads.read(sent(7)).await, Err(NotArchived::TooOld(3)));
    assert_eq!(reads.read(received(0, 0)).await, Err(NotArchived::TooOld(3)));
    assert_eq!(reads.read(received(2, 9)).await, Err(NotArchived::TooOld(3)));
    for (request, count) in [(sent(8), 8), (sent(15), 1), (sent(16), 0), (received(3, 0), 8), (received(4, 3), 1)] {
        let page = reads.read(request).await.unwrap();
        assert_eq!((page.entries.len(), page.next), (count, None), "{request:?}");
        page.verify(&committee.domain, &[&committee.committee], request.account, request.list).unwrap();
    }
}

#[tokio::test]
async fn a_list_of_sent_transfers_begins_after_what_a_recovery_debited_without_an_order() {
    let folder = tempfile::tempdir().unwrap();
    let (committee, archive) = (TestCommittee::new(4), Archive::new(folder.path()));
    let (payer, payee) = (TestAccount::numbered(0), TestAccount::numbered(1).id());
    let pays = |number| SegmentEntry::Executed(payer.sign(&committee.domain, payment(payer.id(), payee, 1, number)));
    let paid = |number| SegmentEntry::Paid(redemption(payer.id(), PrimaryAddress::repeat_byte(7), 1, number));
    let void = SegmentEntry::Void { account: payer.id(), sequence: SequenceNumber(6) };
    // The contract paid number 3, and number 6, which is behind a gap and void later.
    let segments = [
        vec![pays(0), pays(1)],
        vec![SegmentEntry::Recovery, pays(2), paid(3), pays(4), paid(6)],
        vec![pays(5), void, pays(7)],
    ];
    let mut previous = Digest::ZERO;
    for (number, entries) in (1..).zip(segments) {
        previous = complete(&archive, &committee, (number, previous), Segment { entries });
    }
    let reads = ArchivedReads::new(Some(archive), committee.domain);
    for from in 0..=6 {
        assert_eq!(reads.read(sent(from)).await, Err(NotArchived::Recovered(2, SequenceNumber(6))), "from {from}");
    }
    for (request, count) in [(sent(7), 1), (sent(8), 0), (received(0, 0), 6)] {
        let page = reads.read(request).await.unwrap();
        assert_eq!((page.entries.len(), page.next), (count, None), "{request:?}");
        page.verify(&committee.domain, &[&committee.committee], request.account, request.list).unwrap();
    }
    // To who understands it, it is shown in its place; and behind a gap only if nothing is asked for before it.
    let known = |from| ArchivedRequest { with_paid: true, ..sent(from) };
    let debited = |number| (number, true, true);
    let executed = |number| (number, true, false);
    let void = (6, false, false);
    for (from, expected) in [
        (1, vec![executed(1), executed(2), debited(3), executed(4), executed(5), void, executed(7)]),
        (3, vec![debited(3), executed(4), executed(5), void, executed(7)]),
        (5, vec![executed(5), void, executed(7)]),
        (6, vec![debited(6), executed(7)]),
        (7, vec![executed(7)]),
    ] {
        let request = known(from);
        let page = reads.read(request).await.unwrap();
        let proven = page.verify(&committee.domain, &[&committee.committee], request.account, request.list).unwrap();
        let shown = proven.into_entries();
        let shown: Vec<_> =
            shown.iter().map(|entry| (entry.sequence.0, entry.transfer.is_some(), entry.is_paid)).collect();
        assert_eq!(shown, expected, "from {from}");
    }
}

#[tokio::test]
async fn a_page_ends_before_it_is_too_long_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, committee) = archive(folder.path(), 5, true);
    let reads = ArchivedReads::new(Some(archive), committee.domain);
    for first in [sent(0), received(0, 0)] {
        let (mut request, mut pages, mut entries) = (first, 0, 0);
        loop {
            let page = reads.read(request).await.unwrap();
            let bytes: usize = page.entries.iter().map(|entry| entry.leaf.encoded().len()).sum();
            assert!(!page.entries.is_empty() && bytes < ARCHIVED_BYTES_MAX + (32 << 10), "{bytes}");
            (pages, entries) = (pages + 1, entries + page.entries.len());
            let next = page.next;
            page.verify(&committee.domain, &[&committee.committee], request.account, request.list).unwrap();
            match (next, first.list) {
                (None, _) => break,
                (Some(_), ArchivedList::Sent(_)) => request = sent(entries as u64),
                (Some(next), ArchivedList::Received(_)) => request = received(next.checkpoint, next.entry),
            }
        }
        assert_eq!((entries, pages), (20, 2), "{first:?}");
    }
}

#[test]
fn a_page_scans_a_bounded_part_and_at_least_one_run() {
    let mut page = PageBuilder::new(9);
    assert!(page.has_room(SCANNED_BYTES_MAX * 2), "the first entry always fits");
    assert!(!page.has_room(1));
    let mut page = PageBuilder::new(u32::MAX);
    assert!(page.has_room(SCANNED_BYTES_MAX) && page.has_room(0) && !page.has_room(1));
    assert_eq!(page.limit, PAGE_ENTRIES_MAX as usize);
    let mut page = PageBuilder { until: Instant::now(), ..PageBuilder::new(9) };
    assert!(page.has_room(1) && page.has_room(0) && !page.has_room(1), "no second run after its time");
}

#[tokio::test(start_paused = true)]
async fn who_asks_while_too_many_read_is_told_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, committee) = archive(folder.path(), 1, false);
    let reads = ArchivedReads::new(Some(archive), committee.domain);
    let slots = reads.0.as_ref().unwrap().slots.clone();
    let held = slots.acquire_many_owned(READS_AT_ONCE as u32).await.unwrap();
    assert_eq!(reads.read(sent(0)).await, Err(NotArchived::Busy));
    drop(held);
    let indexing = reads.0.as_ref().unwrap().indexing.clone().lock_owned().await;
    assert_eq!(reads.read(sent(0)).await, Err(NotArchived::Busy), "indices are being built");
    drop(indexing);
    assert_eq!(reads.read(sent(0)).await.unwrap().entries.len(), 4);
}

#[tokio::test]
async fn few_read_from_the_store_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, committee) = archive(folder.path(), 1, false);
    let objects = Arc::new(InMemory::new());
    let store = Store::over(objects.clone(), "alice".into(), "memory:/alice".into());
    archive.store = Some(store.clone());
    archive.index(&archive.checkpoint(1).unwrap()).unwrap();
    let segment = std::fs::read(archive.segment_path(1)).unwrap();
    objects.put(&"alice/0000000001.segment".into(), segment.into()).await.unwrap();
    std::fs::remove_file(archive.segment_path(1)).unwrap();
    let reads = ArchivedReads::new(Some(archive), committee.domain);
    let turns = [store.client_read().unwrap(), store.client_read().unwrap()];
    assert_eq!(reads.read(sent(0)).await, Err(NotArchived::Busy));
    drop(turns);
    assert_eq!(reads.read(sent(0)).await.unwrap().entries.len(), 4);
}

#[tokio::test]
async fn certificates_that_do_not_follow_each_other_prove_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, committee) = archive(folder.path(), 3, false);
    std::fs::copy(archive.certificate_path(1), archive.certificate_path(2)).unwrap();
    let reads = ArchivedReads::new(Some(archive), committee.domain);
    assert_eq!(reads.read(sent(0)).await, Err(NotArchived::Unreadable));
}

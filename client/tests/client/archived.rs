//! Archived entries, of authorities that show others, hide them, or do not answer. `vectors/archive.json` has each lie.

use fastpay_client::{ArchiveFault, ClientError, Network};
use fastpay_core::checkpoint::{ArchiveCursor, ArchivedError, ArchivedList, ProvenEntry};
use fastpay_core::{Epoch, SequenceNumber};
use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_testkit::{TestAccount, TestCommittee, payment};
use std::time::Duration;
use tokio::time::Instant;

const BEGIN: ArchiveCursor = ArchiveCursor { checkpoint: 0, entry: 0 };

/// Alice has paid Bob so many times, and every authority has pruned it.
async fn scene(count: u64) -> (FakeCommittee, Network, TestAccount, TestAccount) {
    let committee = FakeCommittee::start().await;
    let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
    committee.fund(1, alice.id(), 10_000, &[0, 1, 2, 3]);
    for number in 0..count {
        let order = alice.sign(&committee.committee.domain, payment(alice.id(), bob.id(), 1, number));
        let certificate = committee.committee.certificate(&order);
        committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    }
    committee.prune(true);
    let network = committee.network();
    (committee, network, alice, bob)
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn numbers(entries: &[ProvenEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.sequence.0).collect()
}

#[tokio::test]
async fn an_authority_whose_archive_proves_nothing_is_left_and_another_one_is_asked() {
    let (committee, network, alice, bob) = scene(130).await;
    let lies = [Role::FalseArchive, Role::HidesArchived, Role::Silent];
    for (authority, lie) in committee.authorities.iter().zip(lies) {
        authority.play(lie);
    }
    let all = (0..130).collect::<Vec<_>>();
    let found = network.archived_sent(alice.id(), SequenceNumber(0), SequenceNumber(130), deadline()).await;
    assert_eq!(numbers(&found), all, "over several pages");
    let one = network.archived_number(alice.id(), SequenceNumber(129), deadline()).await.unwrap();
    assert_eq!(one.transfer, Some(payment(alice.id(), bob.id(), 1, 129).into()));
    // Nobody has more, and that is said without waiting for the deadline but for the silent one.
    let beyond = network.archived_sent(alice.id(), SequenceNumber(128), SequenceNumber(140), deadline()).await;
    assert_eq!(numbers(&beyond), [128, 129]);
    committee.authorities[3].play(Role::FalseArchive);
    let (until, begun) = (Instant::now() + Duration::from_secs(2), Instant::now());
    let none = network.archived_sent(alice.id(), SequenceNumber(0), SequenceNumber(1), until).await;
    assert!(none.is_empty() && begun.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn received_payments_are_read_at_one_authority_and_go_on_where_they_ended() {
    let (committee, network, _, bob) = scene(130).await;
    let authorities = network.authorities();
    let read = async |from, pages| network.archived_received(&authorities[0], bob.id(), from, pages, deadline()).await;
    let first = read(BEGIN, 1).await;
    assert_eq!((first.entries.len(), first.is_whole), (100, false));
    let rest = read(first.next, 9).await;
    assert_eq!((rest.entries.len(), rest.is_whole), (30, true));
    assert_eq!(numbers(&[first.entries, rest.entries].concat()), (0..130).collect::<Vec<_>>());
    // The newest checkpoint is read again: it may be replaced.
    assert_eq!(rest.next, ArchiveCursor { checkpoint: 1, entry: 0 });

    committee.authorities[0].play(Role::FalseArchive);
    let page = network.archived_page(&authorities[0], bob.id(), ArchivedList::Received(BEGIN)).await.unwrap_err();
    assert_eq!(page, ArchiveFault::Unproven(ArchivedError::NotProven(1)));
    let lied = read(BEGIN, 9).await;
    assert!(lied.entries.is_empty() && !lied.is_whole && lied.next == BEGIN);
    committee.authorities[0].play(Role::Down);
    let lost = read(BEGIN, 9).await;
    assert!(lost.entries.is_empty() && !lost.is_whole);
}

#[tokio::test]
async fn votes_of_another_committee_and_an_authority_without_archive_prove_nothing() {
    let (committee, network, alice, _) = scene(1).await;
    let list = ArchivedList::Sent(SequenceNumber(0));
    let mut committees = network.committees();
    committees.install(TestCommittee::new(4).rotated().committee).unwrap();
    let network = committee.network();
    network.adopt(committees, network.names());
    let authority = network.authorities()[0].clone();
    let error = network.archived_page(&authority, alice.id(), list).await.unwrap_err();
    assert!(matches!(error, ArchiveFault::Unproven(ArchivedError::Certificate(_))), "{error}");
    // Of the one before it proves all, once it is known that its keys were not out; and nothing after another rotation.
    for other in [Epoch(1), Epoch(2)] {
        network.count_closing(other);
        network.archived_page(&authority, alice.id(), list).await.unwrap_err();
    }
    network.count_closing(Epoch(0));
    let page = network.archived_page(&authority, alice.id(), list).await.unwrap();
    assert_eq!(numbers(&page.into_entries()), [0]);
    let mut later = network.committees();
    later.install(TestCommittee::new(4).rotated().rotated().committee).unwrap();
    network.adopt(later, network.names());
    let error = network.archived_page(&authority, alice.id(), list).await.unwrap_err();
    assert!(matches!(error, ArchiveFault::Unproven(ArchivedError::Certificate(_))), "{error}");
    let fresh = FakeCommittee::start().await;
    let network = fresh.network();
    let none = network.archived_page(&network.authorities()[0], alice.id(), list).await.unwrap_err();
    assert_eq!(none, ArchiveFault::Client(ClientError::NotFound));
}

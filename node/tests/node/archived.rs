//! Reads of what a rebase pruned, from the archives of real authorities, with their proof.

use std::fs;

use fastpay_client::{ArchiveFault, ClientError, Network};
use fastpay_core::checkpoint::{ArchiveCursor, ArchivedList, Checkpoint, CheckpointCertificate, ProvenEntry};
use fastpay_core::{AccountId, Committees, SequenceNumber, Transfer};
use fastpay_node::authority::config::ArchiveSettings;
use fastpay_node::operator::rebase::rebase;
use fastpay_rpc::ArchivedRequest;
use fastpay_rpc::json::ArchivedPage;
use fastpay_testkit::{TestAccount, payment};
use tokio::time::Instant;

use crate::authority::get;
use crate::checkpoint::{Member, Scene};
use crate::scene::PATIENCE;

const BEGIN: ArchiveCursor = ArchiveCursor { checkpoint: 0, entry: 0 };

pub fn id(number: u64) -> AccountId {
    TestAccount::numbered(number).id()
}

/// Has all members begin where their archives end, and serve these.
async fn prune(scene: &mut Scene) {
    scene.stop().await;
    for member in &mut scene.members {
        rebase(&member.config, &member.archive, None, None, &mut |_| ()).await.unwrap();
        let folder = member.archive.clone();
        member.config.archive = Some(ArchiveSettings {
            folder,
            store: None,
            every_seconds: 604_800,
            idle: false,
            orders_max: 1_000_000,
            times: Default::default(),
            pruning: Default::default(),
        });
    }
    scene.start().await;
}

fn network(scene: &Scene) -> Network {
    let clients = scene.members.iter().map(|member| member.running.as_ref().unwrap().client.clone());
    let committees = Committees::new(scene.committee.committee.clone()).unwrap();
    Network::of(scene.committee.domain, committees, clients.collect())
}

fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

fn payments(entries: &[ProvenEntry]) -> Vec<(u64, AccountId, u64, Transfer)> {
    let shown =
        |entry: &ProvenEntry| (entry.checkpoint, entry.account, entry.sequence.0, entry.transfer.clone().unwrap());
    entries.iter().map(shown).collect()
}

fn paid(checkpoint: u64, from: u64, to: u64, sequence: u64) -> (u64, AccountId, u64, Transfer) {
    (checkpoint, id(from), sequence, payment(id(from), id(to), 1, sequence).into())
}

pub async fn http(member: &Member, path: &str) -> (u16, String) {
    get(member.config.http, &format!("/v1/accounts/{}/archived/{path}", id(0))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_rebase_prunes_is_read_from_the_archive_with_its_proof() {
    let mut scene = Scene::certified(4).await;
    prune(&mut scene).await;
    let sent = async |account, from: u64, until: u64| {
        let (from, until) = (SequenceNumber(from), SequenceNumber(until));
        payments(&network(&scene).archived_sent(id(account), from, until, deadline()).await)
    };
    let expected: Vec<_> = (0..4).map(|number| paid(1, 0, 1, number)).collect();
    assert_eq!(sent(0, 0, 4).await, expected);
    assert_eq!(sent(0, 2, 9).await, expected[2..]);
    assert_eq!(sent(0, 4, 5).await, [], "it is not executed");
    assert_eq!(sent(7, 0, 1).await, [], "it sent nothing");
    for member in &scene.members {
        let client = &member.running.as_ref().unwrap().client;
        let read = network(&scene).archived_received(client, id(1), BEGIN, 9, deadline()).await;
        assert_eq!((payments(&read.entries), read.is_whole), (expected.clone(), true));
        assert_eq!(read.next, ArchiveCursor { checkpoint: 1, entry: 0 });

        let (code, body) = http(member, "sent?from=1&limit=2").await;
        let page: ArchivedPage = serde_json::from_str(&body).unwrap();
        assert_eq!((code, page.entries.len(), page.headers.len(), page.votes.len()), (200, 2, 1, 3));
        assert!(page.next.is_some() && page.entries[0].checkpoint.0 == 1, "{body}");
        // A list without what a recovery debited is the same for clients that know of it.
        assert_eq!(http(member, "sent?from=1&limit=2&paid=true").await, (200, body));
        for unknown in ["sent?paid=1", "received?paid=true"] {
            let (code, body) = http(member, unknown).await;
            assert!(code == 400 && body.contains("malformed"), "{body}");
        }
        let (code, body) = http(member, "received?cursor=1.x").await;
        assert!(code == 400 && body.contains("malformed"), "{body}");
    }

    // Entries of two checkpoints are proven by the newest.
    for owner in 0..3 {
        scene.pay(&[0, 1, 2], owner, owner + 1, 4).await;
        scene.pay(&[0, 1, 2], 3, owner, owner).await;
    }
    scene.checkpoint().await;
    prune(&mut scene).await;
    let all: Vec<_> = expected.iter().cloned().chain([paid(2, 0, 1, 4)]).collect();
    let network = network(&scene);
    let found = network.archived_sent(id(0), SequenceNumber(0), SequenceNumber(5), deadline()).await;
    assert_eq!(payments(&found), all);
    let client = &scene.members[2].running.as_ref().unwrap().client;
    let mut from_second = ArchiveCursor { checkpoint: 2, entry: 0 };
    let read = network.archived_received(client, id(1), from_second, 9, deadline()).await;
    let mut expected = vec![paid(2, 0, 1, 4), paid(2, 3, 1, 1)];
    expected.sort_by_key(|(_, account, sequence, _)| (*account, *sequence));
    assert_eq!(payments(&read.entries), expected);
    // Page by page, each payment comes once.
    let (mut entries, mut pages) = (Vec::new(), 0);
    from_second = BEGIN;
    loop {
        let list = ArchivedList::Received(from_second);
        let page = client.shards()[0]
            .archived(ArchivedRequest { account: id(1), list, limit: 1, with_paid: false })
            .await
            .unwrap();
        let page = page.verify(&scene.committee.domain, &[&scene.committee.committee], id(1), list).unwrap();
        let next = page.next();
        (entries, pages) = ([entries, page.into_entries()].concat(), pages + 1);
        match next {
            Some(next) => from_second = next,
            None => break,
        }
    }
    assert_eq!((entries.len(), pages), (6, 6));
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_a_cache_and_an_archive_without_entries_says_so() {
    let mut scene = Scene::certified(2).await;
    let client = scene.members[0].running.as_ref().unwrap().client.clone();
    let list = ArchivedList::Sent(SequenceNumber(0));
    let none = network(&scene).archived_page(&client, id(0), list).await.unwrap_err();
    assert_eq!(none, ArchiveFault::Client(ClientError::NotFound));
    let (code, body) = http(&scene.members[0], "sent").await;
    assert!(code == 404 && body.contains("not-archived") && body.contains("keeps no archive"), "{body}");
    prune(&mut scene).await;

    let (network, member) = (network(&scene), &scene.members[0]);
    let client = &member.running.as_ref().unwrap().client;
    let read = async || network.archived_page(client, id(0), list).await.map(|page| payments(&page.into_entries()));
    let expected = vec![paid(1, 0, 1, 0), paid(1, 0, 1, 1)];
    let index = member.archive.join("0000000001.index");
    assert_eq!(read().await.unwrap(), expected);
    let whole = fs::read(&index).unwrap();
    // Removed, cut off, or of another segment, it is built again.
    fs::remove_file(&index).unwrap();
    assert_eq!((read().await.unwrap(), fs::read(&index).unwrap()), (expected.clone(), whole.clone()));
    fs::write(&index, &whole[..whole.len() - 1]).unwrap();
    assert_eq!((read().await.unwrap(), fs::read(&index).unwrap()), (expected.clone(), whole.clone()));
    // Altered where only a proof shows it, it is found wrong, and built again at the next request.
    let mut altered = whole.clone();
    // The place of the first run.
    altered[91] ^= 1;
    fs::write(&index, &altered).unwrap();
    assert!(matches!(read().await, Err(ArchiveFault::Client(ClientError::Unreadable(_)))));
    assert_eq!((read().await.unwrap(), fs::read(&index).unwrap()), (expected.clone(), whole.clone()));

    // A damaged segment is never shown.
    let segment = member.archive.join("0000000001.segment");
    let mut damaged = fs::read(&segment).unwrap();
    let at = damaged.len() - 1;
    damaged[at - 200] ^= 1;
    fs::write(&segment, &damaged).unwrap();
    fs::remove_file(&index).unwrap();
    assert!(matches!(read().await, Err(ArchiveFault::Client(ClientError::Unreadable(_)))));
    assert!(!index.exists());
    // The others have it.
    let found = network.archived_sent(id(0), SequenceNumber(0), SequenceNumber(2), deadline()).await;
    assert_eq!(payments(&found), expected);

    // Nothing is certified yet.
    for number in ["certificate.json", "segment"] {
        fs::remove_file(member.archive.join(format!("0000000001.{number}"))).unwrap();
    }
    let (code, body) = http(member, "sent").await;
    assert!(code == 404 && body.contains("no certified checkpoint yet"), "{body}");
    scene.stop().await;
}

/// The newest checkpoint of an archive may be replaced, and with it one that was newer before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_proves_entries_is_the_archive_as_it_is_now() {
    let mut scene = Scene::certified(2).await;
    scene.pay(&[0, 1, 2], 0, 1, 2).await;
    scene.checkpoint().await;
    prune(&mut scene).await;
    let (network, member) = (network(&scene), &scene.members[0]);
    let client = &member.running.as_ref().unwrap().client;
    let (list, from) = (ArchivedList::Sent(SequenceNumber(2)), SequenceNumber(2));
    let newest = async || {
        let request = ArchivedRequest { account: id(0), list, limit: 0, with_paid: false };
        client.shards()[0].archived(request).await.unwrap().headers.last().copied().unwrap()
    };
    let second = newest().await;
    assert_eq!(second.number, 2);
    // A rival of number 2 with the same segment, on the same number 1.
    let rival = Checkpoint { state: second.previous, ..second };
    let votes = scene.committee.keys.iter().map(|keys| rival.sign(keys, &scene.committee.domain)).collect();
    let committee = &scene.committee.committee;
    let certificate = CheckpointCertificate::from_votes(rival, &scene.committee.domain, committee, votes).unwrap();
    let path = member.archive.join("0000000002.certificate.json");
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    file["checkpoint"]["state"] = serde_json::to_value(rival.state).unwrap();
    for (vote, signed) in file["votes"].as_array_mut().unwrap().iter_mut().zip(&certificate.votes) {
        vote["authority"] = serde_json::to_value(signed.authority.to_string()).unwrap();
        vote["signature"] = serde_json::to_value(fastpay_rpc::json::Hex(signed.signature.0)).unwrap();
    }
    fs::write(&path, file.to_string()).unwrap();
    assert_eq!(newest().await, rival);
    let page = network.archived_page(client, id(0), list).await.unwrap();
    assert_eq!(page.into_entries()[0].sequence, from);
    // Withdrawn, number 1 is the newest.
    fs::remove_file(&path).unwrap();
    let page = network.archived_page(client, id(0), list).await.unwrap();
    assert_eq!((page.newest(), page.into_entries()), (1, vec![]));
    scene.stop().await;
}

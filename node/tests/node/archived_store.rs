//! Reads of entries whose number has left the folder for the store: with their proof, or with the reason why not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use fastpay_client::ClientError;
use fastpay_core::SequenceNumber;
use fastpay_core::checkpoint::{ArchiveCursor, ArchivedList};
use fastpay_rpc::json::ArchivedPage;
use fastpay_rpc::{ArchivedRequest, Refusal};
use url::Url;

use crate::archive_store::{archive_settings, four_numbers, held};
use crate::archived::{http, id};
use crate::certification::{configure, metric, start};
use crate::checkpoint::{Member, Scene};
use crate::scene::eventually_async;

const SENT: ArchivedList = ArchivedList::Sent(SequenceNumber(0));
const RECEIVED: ArchivedList = ArchivedList::Received(ArchiveCursor { checkpoint: 0, entry: 0 });

/// Where the entries of a verified page are: checkpoint and number.
async fn read(scene: &Scene, list: ArchivedList) -> Result<Vec<(u64, u64)>, ClientError> {
    let account = id(if matches!(list, ArchivedList::Sent(_)) { 0 } else { 1 });
    let client = &scene.members[0].running.as_ref().unwrap().client;
    let page = client.shards()[0].archived(ArchivedRequest { account, list, limit: 0, with_paid: false }).await?;
    let page = page.verify(&scene.committee.domain, &[&scene.committee.committee], account, list).unwrap();
    Ok(page.into_entries().iter().map(|entry| (entry.checkpoint, entry.sequence.0)).collect())
}

async fn until_readable(scene: &Scene) {
    let is_read = async || read(scene, SENT).await.is_ok_and(|entries| entries.len() == 4);
    eventually_async("the number in the store is read", is_read).await;
}

/// Member 0 alone runs, with numbers 2 to 4 in its folder and number 1 in its store.
async fn with_store(scene: &mut Scene) -> PathBuf {
    scene.stop().await;
    configure(scene, 604_800);
    let member = &mut scene.members[0];
    let store = member.archive.with_file_name("store");
    fs::create_dir(&store).unwrap();
    member.config.archive = Some(archive_settings(&member.archive, Url::from_file_path(&store).unwrap()));
    start(member).await;
    let folder = &scene.members[0].archive;
    eventually_async("number 1 is in the store alone", async || {
        held(folder).iter().map(|(number, _)| *number).eq(2..=4)
    })
    .await;
    let newest = folder.join("0000000004.index");
    eventually_async("the newest number is indexed before anybody asks", async || newest.exists()).await;
    store
}

fn is_busy(read: &Result<Vec<(u64, u64)>, ClientError>) -> bool {
    matches!(read, Err(ClientError::Refused(Refusal::Busy(_))))
}

async fn says(member: &Member, path: &str, expected: u16, what: &str) {
    let (code, body) = http(member, path).await;
    assert!(code == expected && body.contains(what), "{code}: {body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_in_the_store_are_read_with_their_proof_and_never_altered() {
    let mut scene = four_numbers().await;
    let store = with_store(&mut scene).await;
    let member = &scene.members[0];
    let all = vec![(1, 0), (2, 1), (3, 2), (4, 3)];
    assert_eq!((read(&scene, SENT).await.unwrap(), read(&scene, RECEIVED).await.unwrap()), (all.clone(), all.clone()));
    let (code, body) = http(member, "sent").await;
    let page: ArchivedPage = serde_json::from_str(&body).unwrap();
    assert_eq!((code, page.entries.len(), page.headers.len()), (200, 4, 4));

    // The store fails: clients come again, and what the folder has is read.
    let segment = store.join("0000000001.segment");
    let whole = fs::read(&segment).unwrap();
    fs::remove_file(&segment).unwrap();
    symlink(&segment, &segment).unwrap();
    for list in [SENT, RECEIVED] {
        let failed = read(&scene, list).await;
        assert!(is_busy(&failed), "{failed:?}");
    }
    says(member, "sent", 503, "\"busy\"").await;
    let newer = read(&scene, ArchivedList::Sent(SequenceNumber(1))).await;
    assert_eq!(newer.unwrap(), all[1..]);
    fs::remove_file(&segment).unwrap();

    // Gone, altered or cut off, it is not shown, and the index stays.
    let index = member.archive.join("0000000001.index");
    let kept = fs::read(&index).unwrap();
    let altered = |at: usize| {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        altered
    };
    let (middle, end) = (whole.len() / 2, whole.len());
    let lies = [None, Some(altered(middle)), Some(altered(end - 200)), Some(whole[..middle].to_vec()), Some(vec![])];
    for lie in lies {
        if let Some(lie) = lie {
            fs::write(&segment, lie).unwrap();
        }
        for list in [SENT, RECEIVED] {
            let refused = read(&scene, list).await;
            assert!(matches!(&refused, Err(ClientError::Unreadable(_))), "{refused:?}");
        }
        says(member, "sent", 500, "history-unreadable").await;
        assert_eq!(fs::read(&index).unwrap(), kept);
    }
    fs::write(&segment, &whole).unwrap();
    assert_eq!(read(&scene, SENT).await.unwrap(), all);

    // Header and index of a folder that was restored are made anew, but not of an altered segment.
    let failures = async || metric(member, "fastpay_archive_store_failures").await;
    assert_eq!(failures().await, 0.0);
    fs::write(&segment, altered(middle)).unwrap();
    let header = member.archive.join("0000000001.stored.json");
    fs::remove_file(&header).unwrap();
    fs::remove_file(&index).unwrap();
    eventually_async("the altered segment is noticed", async || failures().await > 0.0).await;
    let refused = read(&scene, SENT).await;
    assert!(is_busy(&refused), "{refused:?}");
    assert!(header.exists() && !index.exists());
    fs::write(&segment, &whole).unwrap();
    until_readable(&scene).await;
    assert_eq!((read(&scene, SENT).await.unwrap(), fs::read(&index).unwrap()), (all, kept.clone()));
    // A broken one, too.
    fs::write(&index, &kept[1..]).unwrap();
    until_readable(&scene).await;
    assert_eq!(fs::read(&index).unwrap(), kept);
    scene.stop().await;
}

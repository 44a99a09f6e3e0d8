//! Clusters of processes: what is promised against crashes, damaged disks and one liar per cluster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod censorship;
mod committee;
mod crashes;
mod floods;
mod liars;
mod program;
mod store;
mod transfers;

use std::path::Path;
use std::time::{Duration, Instant};

use fastpay_core::AccountKey;
use fastpay_ledger_client::{Client, ClientError, MemberStatus};
use fastpay_ledger_member::localnet::{Localnet, Shape};
use fastpay_ledger_statement::{
    Action, ClusterId, Condition, Entry, Get, Key, Namespace, Outcome, Request, StateKey, Value, Version,
};

/// A namespace's writer, who also has a reserve of 1,000.
fn writer() -> AccountKey {
    AccountKey::ed25519([7; 32])
}

fn prices() -> Namespace {
    Namespace::new("prices".to_owned()).unwrap()
}

fn key(name: &str) -> Key {
    Key::new(name.as_bytes().to_vec()).unwrap()
}

fn value(text: &str) -> Value {
    Value::new(text.as_bytes().to_vec()).unwrap()
}

/// A ledger with these clusters, none started.
fn ledger(coordinators: &[u32], shards: &[u32]) -> (tempfile::TempDir, Localnet) {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape {
        coordinators: coordinators.to_vec(),
        shards: shards.to_vec(),
        namespaces: vec![("prices".to_owned(), writer().account())],
        issued: vec![(writer().account(), 1_000)],
        authorities: Vec::new(),
    };
    let net = Localnet::new(Path::new(env!("CARGO_BIN_EXE_fastpay-ledger")), folder.path(), &shape).unwrap();
    (folder, net)
}

/// One cluster that runs.
async fn one_cluster() -> (tempfile::TempDir, Localnet) {
    let (folder, mut net) = ledger(&[], &[1]);
    net.start_and_wait().await.unwrap();
    (folder, net)
}

/// Writes as the namespace's writer, in one round, or through a coordinator.
async fn put(
    client: &Client,
    via: Option<u32>,
    name: &str,
    text: &str,
    condition: Condition,
) -> Result<Outcome, ClientError> {
    let action = Action::Write { namespace: prices(), key: key(name), condition, value: Some(value(text)) };
    let shard = client.partition().of_value(&prices(), &key(name));
    client.instruct(&writer(), shard, via.map(ClusterId), &action).await
}

/// A read with a round.
fn get(name: &str) -> Request {
    Request::Get(Get { namespace: prices(), key: key(name), nonce: rand::random() })
}

/// Reads with a round, so that it is the newest.
async fn newest(client: &Client, via: Option<u32>, name: &str) -> Option<(Version, Value)> {
    let shard = client.partition().of_value(&prices(), &key(name));
    let answer = client.submit(via.map_or(shard, ClusterId), &get(name)).await.unwrap();
    match answer.result.unwrap() {
        Outcome::Found { version, value } => Some((version, value)),
        Outcome::Missing => None,
        other => panic!("{other:?}"),
    }
}

/// What is stored in the newest state of whichever member answers.
async fn stored(client: &Client, name: &str) -> Option<Entry> {
    client.entry(&StateKey::Stored(prices(), key(name))).await.unwrap()
}

/// What `attempt` gives, as soon as it gives something. It is asked again for `seconds`: a busy machine is slow.
async fn until<T>(seconds: u64, what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(found) = attempt().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {seconds} s");
        pause(100).await;
    }
}

/// What the members of cluster 1 say about themselves; `None` for those that do not answer.
async fn statuses(net: &Localnet) -> Vec<Option<MemberStatus>> {
    let all = net.client().status(ClusterId(1)).await.unwrap();
    all.into_iter().map(|(_, status)| status).collect()
}

/// What a running member of cluster 1 says about itself.
async fn status_of(net: &Localnet, member: usize) -> MemberStatus {
    until(30, "a member's status", async || statuses(net).await[member].clone()).await
}

/// The highest height that a member of cluster 1 has decided.
async fn highest(net: &Localnet) -> u64 {
    let highest = async || statuses(net).await.into_iter().flatten().map(|status| status.height).max();
    until(30, "the status of any member", highest).await
}

/// Writes until member 0 leads cluster 1.
async fn until_member_0_leads(net: &Localnet) {
    for at in 0..400 {
        if status_of(net, 1).await.leader == 0 {
            return;
        }
        put(&net.client(), None, "turn", &at.to_string(), Condition::Always).await.unwrap();
    }
    panic!("member 0 does not lead within 400 heights");
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

//! Clusters of processes: what is promised against crashes, damaged disks and one liar per cluster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod censorship;
mod crashes;
mod liars;
mod program;
mod store;
mod transfers;

use std::path::Path;
use std::time::Duration;

use fastpay_core::AccountKey;
use fastpay_ledger_member::client::{Client, ClientError};
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

/// Reads with a round, so that it is the newest.
async fn newest(client: &Client, via: Option<u32>, name: &str) -> Option<(Version, Value)> {
    let get = Get { namespace: prices(), key: key(name), nonce: rand::random() };
    let shard = client.partition().of_value(&prices(), &key(name));
    let answer = client.submit(via.map_or(shard, ClusterId), &Request::Get(get)).await.unwrap();
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

/// The decided heights of a cluster's members; `None` for those that do not answer.
async fn heights(net: &Localnet, cluster: u32) -> Vec<Option<u64>> {
    let all = net.client().status(ClusterId(cluster)).await.unwrap();
    all.into_iter().map(|(_, status)| status.map(|status| status.height)).collect()
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

//! Peers that violate the protocol. Other clients are served meanwhile.

use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::AccountKey;
use fastpay_e2e::{Network, PATIENCE, wait_for, within};
use fastpay_rpc::proto::shard_client::ShardClient as Grpc;
use fastpay_rpc::proto::submit_request::Request;
use fastpay_rpc::proto::{self, SubmitRequest};
use fastpay_rpc::{MESSAGE_BYTES_MAX, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::Endpoint;

use crate::scene::{key, payment, standalone};

struct Scene {
    network: Network,
    client: AuthorityClient,
    sender: AccountKey,
}

async fn scene(name: &str) -> Scene {
    let sender = key(8);
    let mut network = standalone(name, &[sender.account()]);
    let authority = network.authority(0).unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
    let client = authority.client().unwrap();
    Scene { network, client, sender }
}

impl Scene {
    fn address(&self) -> String {
        let endpoints = self.network.authorities[0].endpoints().unwrap();
        endpoints.shards[0].clone()
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address().trim_start_matches("http://")).await.unwrap()
    }

    /// Checks that an honest client gets its vote, possibly after the requested delay.
    async fn assert_serves(&self) {
        let order = self.sender.order(self.network.domain(), payment(&self.sender, key(9).account(), 1, 0));
        let voted =
            wait_for(PATIENCE, async || match self.client.shard_of(&self.sender.account()).order(&order).await {
                Err(busy @ ClientError::Refused(Refusal::Busy(_))) => Err(busy.to_string()),
                answer => Ok(answer.map(drop)),
            });
        voted.await.unwrap().unwrap();
    }

    /// The node's memory in MiB, if the system reports it.
    fn memory_mib(&mut self) -> Option<u64> {
        let id = self.network.authority(0).unwrap().program().unwrap().id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
    }
}

/// Waits until the node has closed the connection.
async fn read_to_end(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(1..) = stream.read(&mut bytes).await {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_and_silence_are_cut_off() {
    let scene = scene("garbage").await;
    let silent = scene.connect().await;
    let mut garbage = Vec::new();
    for seed in 0_u8..8 {
        let mut stream = scene.connect().await;
        let bytes: Vec<u8> = (0_u32..50_000).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8 ^ seed).collect();
        // The node may close while we still write.
        let _ = stream.write_all(&bytes).await;
        garbage.push(stream);
    }
    // A valid beginning, and then garbage.
    let mut half = scene.connect().await;
    half.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let _ = half.write_all(&[0xff; 10_000]).await;
    garbage.push(half);
    scene.assert_serves().await;
    for stream in garbage {
        within(PATIENCE, "garbage keeps its connection", read_to_end(stream)).await.unwrap();
    }
    within(PATIENCE, "a peer that says nothing keeps its connection", read_to_end(silent)).await.unwrap();
    scene.assert_serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_too_long_is_refused() {
    let scene = scene("long").await;
    let mut grpc = Grpc::connect(scene.address()).await.unwrap();
    let request = proto::AccountRequest { account: vec![7; 2 * MESSAGE_BYTES_MAX].into(), ..Default::default() };
    let status = grpc.get_account(request).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    let request = proto::AccountRequest { account: vec![7; 33].into(), ..Default::default() };
    assert_eq!(grpc.get_account(request).await.unwrap_err().code(), Code::InvalidArgument);

    // The same on a stream of orders: the stream ends, and others continue.
    let order = proto::TransferOrder::default();
    let small = SubmitRequest { id: 1, request: Some(Request::Order(order)) };
    let votes = vec![proto::Vote { authority: vec![1; 2 * MESSAGE_BYTES_MAX].into(), ..Default::default() }];
    let huge = proto::Certificate { votes, ..Default::default() };
    let huge = SubmitRequest { id: 2, request: Some(Request::Certificate(huge)) };
    let mut answers = grpc.submit(tokio_stream::iter([small, huge])).await.unwrap().into_inner();
    let first = answers.message().await.unwrap().unwrap();
    assert!(first.id == 1 && format!("{:?}", first.response).contains("Refused"), "{first:?}");
    let rest = within(PATIENCE, "the stream goes on", answers.message()).await.unwrap();
    assert!(!matches!(rest, Ok(Some(_))), "{rest:?}");
    scene.assert_serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_reads_is_not_read_either() {
    let mut scene = scene("never-reads").await;
    scene.assert_serves().await;
    let before = scene.memory_mib();
    // Valid orders, each answered with a vote, are sent until the node reads no more.
    let order = scene.sender.order(scene.network.domain(), payment(&scene.sender, key(9).account(), 1, 0));
    let order: proto::TransferOrder = (&order).into();
    let mut streams = Vec::new();
    let mut stalled = 0;
    // Few answers fit into a window as small as this, so the node soon has nowhere to put the next one.
    let endpoint = Endpoint::from_shared(scene.address()).unwrap().initial_stream_window_size(1_024);
    for _ in 0..4 {
        let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
        let (requests, outgoing) = tokio::sync::mpsc::channel(16);
        let answers = grpc.submit(tokio_stream::wrappers::ReceiverStream::new(outgoing)).await.unwrap().into_inner();
        for id in 0..60_000 {
            let request = SubmitRequest { id, request: Some(Request::Order(order.clone())) };
            let sent = tokio::time::timeout(Duration::from_secs(1), requests.send(request)).await;
            if sent.is_err() {
                stalled += 1;
                break;
            }
        }
        streams.push((requests, answers));
    }
    assert_eq!(stalled, 4, "the node reads on though nobody reads its answers");
    scene.assert_serves().await;
    if let (Some(before), Some(after)) = (before, scene.memory_mib()) {
        assert!(after < before + 64, "the node grew from {before} to {after} MiB");
    }
    drop(streams);
    scene.assert_serves().await;
}

//! Peers that violate the protocol. Other clients are served meanwhile.

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::AccountKey;
use fastpay_e2e::{Network, PATIENCE, wait_for, within};
use fastpay_rpc::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::scene::{key, payment, standalone};

struct Scene {
    network: Network,
    client: AuthorityClient,
    sender: AccountKey,
}

async fn scene() -> Scene {
    let sender = key(8);
    let mut network = standalone("garbage", &[sender.account()]);
    let authority = network.authority(0).unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
    let client = authority.client().unwrap();
    Scene { network, client, sender }
}

impl Scene {
    async fn connect(&self) -> TcpStream {
        let endpoints = self.network.authorities[0].endpoints().unwrap();
        TcpStream::connect(endpoints.shards[0].trim_start_matches("http://")).await.unwrap()
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
}

/// Waits until the node has closed the connection.
async fn read_to_end(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(1..) = stream.read(&mut bytes).await {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_and_silence_are_cut_off() {
    let scene = scene().await;
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

//! The resources of the HTTP port that one peer can use, and for how long.

use std::net::SocketAddr;
use std::time::Duration;

use fastpay_node::authority::http::HttpLimits;
use fastpay_node::authority::shard::ShardLimits;
use fastpay_rpc::json;
use fastpay_testkit::{TestAccount, payment};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::http_scene::{HttpServed, Said, ask};
use crate::scene::{FORGETFUL, eventually_async};

/// Room for one connection of an address.
const ONE: HttpLimits = HttpLimits {
    connections_max: 2,
    streams_max: 2,
    history_reads_max: 1,
    head_timeout: Duration::from_millis(100),
    body_timeout: Duration::from_millis(100),
    write_timeout: Duration::from_millis(100),
};

/// Whether a connection from this address is taken and answered.
async fn is_served(to: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(to).await else { return false };
    let asked = stream.write_all(b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    let mut answer = String::new();
    asked.is_ok() && stream.read_to_string(&mut answer).await.is_ok() && answer.contains("200 OK")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_or_slow_connection_is_closed_in_time() {
    let patient = HttpLimits { head_timeout: Duration::from_secs(600), ..ONE };
    let served = HttpServed::with(1, patient, FORGETFUL, true).await;
    let silent = TcpStream::connect(served.address).await.unwrap();
    eventually_async("the address has its share", || async { !is_served(served.address).await }).await;
    assert!(served.shards.metrics.network.connections_refused.get() > 0);
    drop(silent);
    eventually_async("room is given back", || async { is_served(served.address).await }).await;
    served.end().await;

    let served = HttpServed::with(1, ONE, FORGETFUL, true).await;
    let address = served.address;
    for words in ["", "GET /health HTTP/1.1\r\nx-slow: "] {
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(words.as_bytes()).await.unwrap();
        // Closed by the node, which may first say why.
        let mut rest = Vec::new();
        let _ = slow.read_to_end(&mut rest).await;
        eventually_async("room is given back", || async { is_served(address).await }).await;
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_takes_no_answers_is_left() {
    let served = HttpServed::with(1, ONE, FORGETFUL, true).await;
    let deaf = TcpStream::connect(served.address).await.unwrap();
    // Answers beyond what the system holds for a peer, of which none is read.
    let asks = b"GET /v1/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(64);
    eventually_async("the node gives it up", || {
        let written = deaf.try_write(&asks);
        async move { written.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock) }
    })
    .await;
    eventually_async("room is given back", || async { is_served(served.address).await }).await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_and_bodies_beyond_any_use_are_refused() {
    let served = HttpServed::start(1).await;
    let long = "x".repeat(64 << 10);
    let said = ask(served.address, "GET", "/health", &[("x-long", &long)], b"").await;
    assert_eq!(said.status, 431);
    let many: Vec<(&str, &str)> = (0..100).map(|_| ("x-many", "1")).collect();
    assert_eq!(ask(served.address, "GET", "/health", &many, b"").await.status, 431);
    served.get("/v1/status").await.good::<json::Status>();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn useless_requests_get_little_room_over_any_number_of_connections() {
    // Nobody takes anything out of the queue.
    let limits = ShardLimits { queue_requests_max: 10_000, ..FORGETFUL };
    let served = HttpServed::with(1, HttpLimits::default(), limits, false).await;
    let json_type = [("content-type", "application/json")];
    let long = vec![b' '; 256 << 10];
    for _ in 0..450 {
        ask(served.address, "POST", "/v1/orders", &json_type, b"{}").await.problem("malformed");
        ask(served.address, "POST", "/v1/orders", &[], b"{}").await.problem("unsupported-media-type");
        ask(served.address, "POST", "/v1/orders", &json_type, &long).await.problem("too-large");
    }
    let alice = TestAccount::ethereum(0);
    let mut asked = JoinSet::new();
    for sequence in 0..40 {
        let pay =
            alice.sign(&served.shards.committee.domain, payment(alice.id(), TestAccount::ed25519(1).id(), 1, sequence));
        let (to, body) = (served.address, serde_json::to_vec(&json::TransferOrder::from(&pay)).unwrap());
        asked.spawn(async move { ask(to, "POST", "/v1/orders", &json_type, &body).await });
    }
    // 32 wait in the queue, of the 10,000 for which it has room; the others are told at once.
    for _ in 0..8 {
        let said: Said = asked.join_next().await.unwrap().unwrap();
        said.problem("busy");
    }
    assert_eq!(asked.len(), 32);
    asked.shutdown().await;
    served.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_refused_as_busy_is_throttled_on_its_own_connection() {
    // Nobody takes anything out of the queue, which has room for one. The clock stands still but where all wait for it.
    let tight = ShardLimits { queue_requests_max: 1, ..FORGETFUL };
    let served = HttpServed::with(1, HttpLimits::default(), tight, false).await;
    let alice = TestAccount::ethereum(0);
    let pay = alice.sign(&served.shards.committee.domain, payment(alice.id(), TestAccount::ed25519(1).id(), 1, 0));
    let _waiting = served.shards.ask_account(&alice.id());
    let before = tokio::time::Instant::now();
    let problem = served.post("/v1/orders", &json::TransferOrder::from(&pay)).await.problem("busy");
    let told = Duration::from_millis(problem.retry_after_ms.unwrap());
    assert!(before.elapsed() >= (told / 2).min(Duration::from_millis(50)), "{:?} of {told:?}", before.elapsed());
    served.end().await;
}

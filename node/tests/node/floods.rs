//! Floods against the node as a process: what strangers' connections, bytes and questions cost it in memory, and that
//! an honest client is served meanwhile. The figures are printed: `cargo test -p fastpay-node floods -- --nocapture`.

use std::net::SocketAddr;

use fastpay_core::AccountId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::authority::get;
use crate::process::{Operator, Process};
use crate::scene::eventually_async;

/// The first words of an HTTP/2 client, with an empty SETTINGS frame.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Of a connection that has greeted, and says nothing more. Half of it is what HTTP/2 sets aside to write.
const BYTES_PER_IDLE_CONNECTION_MAX: usize = 64 << 10;
/// Held by the node for each byte of a request that is not complete: what arrived, and the room that it arrives in.
const BYTES_PER_BYTE_MAX: usize = 6;

/// A connection from another address of this machine.
pub async fn connect_from(address: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((address, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// The process's memory, in bytes. `None` if the system does not report it.
fn resident(process: &Process) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.0.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
}

/// One of the node's counters.
async fn counter(operator: &Operator, name: &str) -> usize {
    let (_, text) = get(operator.http, "/metrics").await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no counter {name} in {text}"))
}

async fn still_serves(operator: &Operator) {
    for shard in operator.client().shards() {
        shard.status().await.unwrap();
    }
}

fn shard_port(operator: &Operator) -> SocketAddr {
    operator.endpoints.shards[0].trim_start_matches("http://").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_takes_half_of_the_connections_at_most_and_little_memory_for_each() {
    let operator = Operator::new();
    let process = operator.run().await;
    still_serves(&operator).await;
    let before = resident(&process);
    let mut held = Vec::new();
    for _ in 0..600 {
        let mut stream = connect_from([127, 0, 0, 2], shard_port(&operator)).await;
        // The node may have closed it already.
        let _ = stream.write_all(GREETING).await;
        held.push(stream);
    }
    eventually_async("all connections are judged", || async {
        counter(&operator, "fastpay_connections_refused_total").await >= 600 - 512
    })
    .await;
    still_serves(&operator).await;
    if let (Some(before), Some(after)) = (before, resident(&process)) {
        let each = after.saturating_sub(before) / 512;
        println!("an idle connection takes {each} bytes of the node's memory");
        assert!(each <= BYTES_PER_IDLE_CONNECTION_MAX, "{each} bytes");
    }
    drop(held);
    eventually_async("room is given back", || async { counter(&operator, "fastpay_connections").await < 10 }).await;
}

/// HTTP/2: a frame of a kind with flags.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Waits until the node has answered to all that was sent.
async fn ping(stream: &mut TcpStream) {
    stream.write_all(&frame(6, 0, 0, b"all read")).await.unwrap();
    let mut heard = Vec::new();
    while !heard.windows(8).any(|words| words == b"all read") {
        let mut words = [0; 4096];
        let count = stream.read(&mut words).await.unwrap();
        assert!(count > 0, "the node closed a connection that is within its bounds");
        heard.extend_from_slice(&words[..count]);
    }
}

/// The headers of a stream of requests: POST and http by their numbers in HPACK's table, the others spelled out.
fn submit_headers() -> Vec<u8> {
    let mut headers = vec![0x83, 0x86];
    for (name, value) in [
        (":path", "/fastpay.v1.Shard/Submit"),
        (":authority", "authority"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        headers.push(0);
        for text in [name, value] {
            headers.push(u8::try_from(text.len()).unwrap());
            headers.extend(text.as_bytes());
        }
    }
    headers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_requests_that_never_end_are_held_about_once() {
    let operator = Operator::new();
    let process = operator.run().await;
    still_serves(&operator).await;
    let before = resident(&process);
    let (connections, streams, part) = (24_usize, 32_u32, 12_000_usize);
    let mut held = Vec::new();
    for _ in 0..connections {
        let mut stream = connect_from([127, 0, 0, 2], shard_port(&operator)).await;
        // The node's windows are open once it has answered.
        stream.write_all(&[GREETING, &frame(4, 1, 0, &[])].concat()).await.unwrap();
        ping(&mut stream).await;
        let mut bytes = Vec::new();
        for number in (0..streams).map(|number| number * 2 + 1) {
            bytes.extend(frame(1, 4, number, &submit_headers()));
            // A message is said to have 12,288 bytes, and the last ones never come.
            let message = [&[0][..], &12_288_u32.to_be_bytes(), &vec![7; part]].concat();
            bytes.extend(frame(0, 0, number, &message));
        }
        stream.write_all(&bytes).await.unwrap();
        held.push(stream);
    }
    // Once the node has answered a ping behind it all, it has read it all.
    for stream in &mut held {
        ping(stream).await;
    }
    still_serves(&operator).await;
    if let (Some(before), Some(after)) = (before, resident(&process)) {
        let (sent, held) = (connections * streams as usize * part, after.saturating_sub(before));
        println!("{sent} bytes of requests that never end take {held} bytes of the node's memory");
        assert!(held <= sent * BYTES_PER_BYTE_MAX, "{held} bytes for {sent}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_that_nobody_has_leave_nothing_behind() {
    let count: u64 = std::env::var("UNKNOWN_ACCOUNTS").map_or(2_000, |count| count.parse().unwrap());
    let operator = Operator::new();
    let process = operator.run().await;
    let client = operator.client();
    let mut before = None;
    // The first round fills what is filled once.
    for round in 0..2 {
        let mut asking = JoinSet::new();
        for worker in 0..50_u64 {
            let client = client.clone();
            asking.spawn(async move {
                for number in (worker..count).step_by(50) {
                    let mut account = AccountId([round; 32]);
                    account.0[..8].copy_from_slice(&number.to_be_bytes());
                    // More calls at once than a connection may have are refused, to be made again.
                    let state = loop {
                        match client.shard_of(&account).account(account).await {
                            Err(error) if error.is_retryable() => tokio::task::yield_now().await,
                            state => break state.unwrap(),
                        }
                    };
                    assert!(state.holdings.is_empty() && state.next_sequence.0 == 0);
                }
            });
        }
        asking.join_all().await;
        if round == 0 {
            before = resident(&process);
        }
    }
    if let (Some(before), Some(after)) = (before, resident(&process)) {
        let grown = after.saturating_sub(before);
        println!("{count} unknown accounts asked for: the node grew by {grown} bytes");
        assert!(grown < 8 << 20, "{grown} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_words_on_the_operators_port_leave_room_for_the_operator() {
    let operator = Operator::new();
    let _process = operator.run().await;
    let mut held = Vec::new();
    for _ in 0..200 {
        let mut stream = connect_from([127, 0, 0, 2], operator.http).await;
        let _ = stream.write_all(b"GET /ready HTTP/1.1\r\nhost: ").await;
        held.push(stream);
    }
    eventually_async("the operator gets an answer", || async {
        get(operator.http, "/ready").await.is_some_and(|(code, _)| code == 200)
    })
    .await;
    drop(held);
}

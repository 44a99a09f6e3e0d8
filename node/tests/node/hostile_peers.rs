//! Malicious and broken peers: they lose their connection, and affect nobody else.

use std::time::Duration;

use fastpay_client::{ClientError, ShardClient};
use fastpay_core::TransferOrder;
use fastpay_node::authority::network::NetworkLimits;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::{Refusal, STREAM_REQUESTS_IN_FLIGHT_MAX};
use fastpay_testkit::{TestAccount, payment};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Endpoint, Identity};

use crate::floods::connect_from;
use crate::network::{Served, ask, client_options};
use crate::scene::{PATIENCE, eventually_async};

const HTTP2_GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Impatient, so that the tests are quick.
fn impatient() -> NetworkLimits {
    NetworkLimits {
        first_byte_timeout: Duration::from_secs(2),
        keepalive_interval: Duration::from_millis(100),
        // Long enough for a pong on a machine that is busy with other things.
        keepalive_timeout: Duration::from_secs(10),
        ..NetworkLimits::default()
    }
}

/// Waits until the other side closes the connection.
async fn closed(mut stream: TcpStream) {
    let mut heard = Vec::new();
    // A reset is an end too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await.expect("it is closed in time");
}

async fn still_serves(served: &Served) {
    assert_eq!(served.client(0).status().await.unwrap().shard.0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_that_stall_are_closed_in_time() {
    let served = Served::with(1, impatient(), None).await;
    let greeted_only = HTTP2_GREETING;
    let greeted_well = [HTTP2_GREETING, SETTINGS].concat();
    // Nothing at all, a part of the greeting, and silence ever after it.
    let mut stalled = tokio::task::JoinSet::new();
    for first_words in [&b""[..], b"P", &HTTP2_GREETING[..23], greeted_only, &greeted_well] {
        let mut stream = TcpStream::connect(served.addresses[0]).await.unwrap();
        stream.write_all(first_words).await.unwrap();
        stalled.spawn(closed(stream));
    }
    // A client that is idle and alive is not closed, though all the others' deadlines pass.
    let client = served.client(0);
    client.status().await.unwrap();
    stalled.join_all().await;
    tokio::time::sleep(impatient().keepalive_timeout * 2 + Duration::from_millis(500)).await;
    let connections = &served.shards.metrics.network.connections;
    eventually_async("only the living one is left", || async { connections.get() == 1 }).await;
    client.status().await.unwrap();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_closes_its_own_connection_alone() {
    let served = Served::with(1, impatient(), None).await;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    for round in 0..30 {
        let mut garbage = vec![0; 1 << (round % 14)];
        random.fill_bytes(&mut garbage);
        let mut bytes = if round % 2 == 0 { [HTTP2_GREETING, SETTINGS].concat() } else { Vec::new() };
        bytes.extend(garbage);
        let mut stream = TcpStream::connect(served.addresses[0]).await.unwrap();
        let _ = stream.write_all(&bytes).await;
        closed(stream).await;
    }
    let mut http1 = TcpStream::connect(served.addresses[0]).await.unwrap();
    http1.write_all(b"GET / HTTP/1.1\r\nhost: authority\r\n\r\n").await.unwrap();
    closed(http1).await;
    still_serves(&served).await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_above_an_addresses_share_are_closed_and_room_is_given_back() {
    let limits = NetworkLimits { connections_max: 3, ..NetworkLimits::default() };
    let served = Served::with(1, limits, None).await;
    let metrics = served.shards.metrics.network.clone();
    let first = TcpStream::connect(served.addresses[0]).await.unwrap();
    let second = TcpStream::connect(served.addresses[0]).await.unwrap();
    eventually_async("both are counted", || async { metrics.connections.get() == 2 }).await;
    closed(TcpStream::connect(served.addresses[0]).await.unwrap()).await;
    assert_eq!(metrics.connections_refused.get(), 1);
    let refused = served.client(0).status().await.unwrap_err();
    assert!(matches!(refused, ClientError::Unreachable(_)) && refused.is_retryable(), "{refused:?}");
    // Another address has a share of its own, and then all are taken.
    let other = connect_from([127, 0, 0, 2], served.addresses[0]).await;
    eventually_async("the other address is let in", || async { metrics.connections.get() == 3 }).await;
    closed(connect_from([127, 0, 0, 3], served.addresses[0]).await).await;
    drop(first);
    drop(other);
    eventually_async("room is given back", || async { served.client(0).status().await.is_ok() }).await;
    drop(second);
    served.end().await;
}

/// Asks for a vote, again where the shard is busy.
async fn vote(client: &ShardClient, order: &TransferOrder) {
    loop {
        match client.order(order).await {
            Err(ClientError::Refused(Refusal::Busy(after))) => tokio::time::sleep(after).await,
            answer => return assert!(answer.is_ok(), "{answer:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_reads_is_read_no_further_and_stops_nobody_else() {
    let served = Served::start(1).await;
    let domain = served.shards.committee.domain;
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    served.deposit(&[(alice.id(), 10), (bob.id(), 10)]).await;
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0));
    let votes = &served.shards.metrics.shards[0].votes;

    let window = 1_024;
    let channel = Endpoint::from_shared(format!("http://{}", served.addresses[0]))
        .unwrap()
        .initial_stream_window_size(window)
        .connect()
        .await
        .unwrap();
    let (requests, outgoing) = mpsc::channel(1);
    let mut grpc = fastpay_rpc::proto::shard_client::ShardClient::new(channel);
    let unread = grpc.submit(ReceiverStream::new(outgoing)).await.unwrap().into_inner();
    let writer = tokio::spawn(async move {
        let mut id = 0;
        while requests.send(ask(id, &order)).await.is_ok() {
            id += 1;
        }
    });
    let bound = STREAM_REQUESTS_IN_FLIGHT_MAX as u64;
    // Its repeated order puts it on probation: then some are refused as busy.
    let busy = &served.shards.metrics.network.busy;
    eventually_async("its requests are taken up to the bound", || async { votes.get() + busy.get() >= bound }).await;

    // Others go on meanwhile.
    let client = served.client(0);
    let other = bob.sign(&domain, payment(bob.id(), alice.id(), 1, 0));
    let others = 200;
    for _ in 0..others {
        vote(&client, &other).await;
    }
    // Besides the answers that wait for it: what fits into its window, and one message that was begun.
    let sent_at_most = u64::from(window) / 100 + 1_000;
    assert!(votes.get() <= bound + others + sent_at_most, "{} votes", votes.get());
    let taken = votes.get();
    vote(&client, &other).await;
    assert_eq!(votes.get(), taken + 1, "it is read no further");

    // It reads at last: all goes on from where it stood.
    let reader = tokio::spawn(crate::network::answers(unread));
    eventually_async("it is read again", || async { votes.get() > taken + 2_000 }).await;
    writer.abort();
    reader.await.unwrap().1.unwrap();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_leaves_with_answers_outstanding_is_forgotten() {
    let served = Served::start(1).await;
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    served.deposit(&[(alice.id(), 10)]).await;
    let order = alice.sign(&served.shards.committee.domain, payment(alice.id(), bob.id(), 1, 0));
    for _ in 0..20 {
        drop(served.stream(vec![ask(1, &order); 50]).await);
    }
    eventually_async("no connection is left", || async { served.shards.metrics.network.connections.get() == 0 }).await;
    still_serves(&served).await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_worthless_requests_keeps_nobody_out() {
    let served = Served::start(1).await;
    let domain = served.shards.committee.domain;
    let owners: Vec<_> = (0..400).map(|number| TestAccount::ed25519(2 * number)).collect();
    served.deposit(&owners.iter().map(|owner| (owner.id(), 10)).collect::<Vec<_>>()).await;

    // From an address of its own, on many streams: orders that are well signed and not covered.
    let poor = TestAccount::ethereum(1);
    let worthless = ask(0, &poor.sign(&domain, payment(poor.id(), owners[0].id(), 1, 0)));
    let mut floods = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let endpoint = Endpoint::from_shared(format!("http://{}", served.addresses[0])).unwrap();
        let channel = endpoint.local_address(Some([127, 0, 0, 2].into())).connect().await.unwrap();
        for _ in 0..8 {
            let mut grpc = fastpay_rpc::proto::shard_client::ShardClient::new(channel.clone());
            let worthless = worthless.clone();
            floods.spawn(async move {
                let (requests, outgoing) = mpsc::channel(512);
                (0..512).for_each(|_| requests.try_send(worthless.clone()).unwrap());
                let mut answers = grpc.submit(ReceiverStream::new(outgoing)).await.unwrap().into_inner();
                while let Ok(Some(_)) = answers.message().await {
                    let _ = requests.send(worthless.clone()).await;
                }
            });
        }
    }
    let refused = &served.shards.metrics.shards[0].refused;
    eventually_async("the flood is known for what it is", || async { refused.get() > 3_000 }).await;

    // All that is waiting by then is a small part of the queue: whoever comes is let in at once, as far as a stream may.
    let orders =
        owners.iter().zip(1..).map(|(owner, id)| ask(id, &owner.sign(&domain, payment(owner.id(), poor.id(), 1, 0))));
    let (answers, end) = crate::network::answers(served.stream(orders.collect()).await).await;
    end.unwrap();
    let votes = answers.iter().filter(|(_, answer)| matches!(answer, Response::Vote(_))).count();
    assert_eq!(votes, owners.len(), "an honest client was turned away");
    floods.abort_all();
    served.end().await;
}

fn tls() -> (Identity, String) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let pem = certified.cert.pem();
    (Identity::from_pem(&pem, certified.signing_key.serialize_pem()), pem)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_serves_clients_that_trust_the_certificate_and_closes_silent_connections() {
    let (identity, ca) = tls();
    let served = Served::with(1, impatient(), Some(identity)).await;
    let address = |scheme: &str| format!("{scheme}://localhost:{}", served.addresses[0].port());
    let trusting = ShardClient::new(&address("https"), Some(&ca), client_options()).unwrap();
    assert_eq!(trusting.status().await.unwrap().shard_count, 1);
    let other_ca = tls().1;
    let distrusting = ShardClient::new(&address("https"), Some(&other_ca), client_options()).unwrap();
    assert!(matches!(distrusting.status().await, Err(ClientError::Unreachable(_))));
    let plain = ShardClient::new(&address("http"), None, client_options()).unwrap();
    assert!(matches!(plain.status().await, Err(ClientError::Unreachable(_))));
    assert!(matches!(ShardClient::new(&address("https"), None, client_options()), Err(ClientError::Address { .. })));
    // The beginning of a handshake record, and nothing more.
    for first_words in [&b""[..], &[22, 3, 1, 2, 0], &[22; 40]] {
        let mut stream = TcpStream::connect(served.addresses[0]).await.unwrap();
        stream.write_all(first_words).await.unwrap();
        closed(stream).await;
    }
    trusting.status().await.unwrap();
    served.end().await;
}

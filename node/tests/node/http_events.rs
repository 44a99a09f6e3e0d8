//! Streams of an account's events: what is said, taken up again, and how many there may be.

use std::net::SocketAddr;

use fastpay_core::{AccountId, Certificate, TransactionIndex};
use fastpay_node::authority::http::HttpLimits;
use fastpay_node::authority::shard::Command;
use fastpay_rpc::http::Retry;
use fastpay_rpc::json;
use fastpay_testkit::{TestAccount, payment};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::floods::connect_from;
use crate::http_scene::{HttpServed, Said};
use crate::scene::{FORGETFUL, PATIENCE, deposits_after, eventually_async};

/// A stream that is open.
struct Follow {
    lines: BufReader<TcpStream>,
    pub head: Said,
}

/// One event: its name, its cursor, its entry.
type Event = (String, String, Value);

impl Follow {
    async fn open(to: SocketAddr, path: &str, headers: &str) -> Self {
        Self::on(TcpStream::connect(to).await.unwrap(), path, headers).await
    }

    async fn on(mut stream: TcpStream, path: &str, headers: &str) -> Self {
        let request = format!("GET {path} HTTP/1.1\r\nhost: authority\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).await.unwrap() > 0, "{head}");
        }
        Self { lines, head: Said::parse(&head) }
    }

    /// The start of the stream: the id that comes before all events.
    async fn start(&mut self) -> String {
        let (mut id, mut is_begun) = (String::new(), false);
        loop {
            let line = self.line().await.expect("the stream goes on");
            assert!(!line.starts_with("event: ") && !line.starts_with("data: "), "{line}");
            line.strip_prefix("id: ").into_iter().for_each(|text| id = text.into());
            is_begun |= line.starts_with("retry: ");
            if is_begun && line.is_empty() {
                return id;
            }
        }
    }

    /// The next event. Lines that only frame chunks, comments, and an id without an event are passed over.
    async fn next(&mut self) -> Event {
        let (mut name, mut id) = (String::new(), String::new());
        loop {
            let line = self.line().await.expect("the stream goes on");
            if line.is_empty() {
                (name, id) = (String::new(), String::new());
            } else if let Some(text) = line.strip_prefix("event: ") {
                name = text.into();
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = text.into();
            } else if let Some(text) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(text).unwrap();
                // The order of the fields is the library's.
                while id.is_empty() || name.is_empty() {
                    let line = self.line().await.unwrap();
                    line.strip_prefix("event: ").into_iter().for_each(|text| name = text.into());
                    line.strip_prefix("id: ").into_iter().for_each(|text| id = text.into());
                }
                return (name, id, data);
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = tokio::time::timeout(PATIENCE, self.lines.read_line(&mut line)).await.expect("it goes on").unwrap();
        (count > 0).then(|| line.trim_end().to_owned())
    }
}

async fn deposit(served: &HttpServed, after: u64, deposits: &[(AccountId, u128)]) {
    let deposits = deposits_after(TransactionIndex(after), deposits);
    let up_to = deposits.last().unwrap().index;
    assert!(served.shards.deposit_sink().apply(TransactionIndex(after), &deposits, up_to).await);
}

async fn pay(served: &HttpServed, from: &TestAccount, to: AccountId, sequence: u64) -> Certificate {
    let order = from.sign(&served.shards.committee.domain, payment(from.id(), to, 1, sequence));
    let certificate = served.shards.committee.certificate(&order);
    let confirmed = served.post("/v1/certificates", &json::Certificate::from(&certificate)).await;
    confirmed.good::<json::Confirmed>();
    certificate
}

fn events(account: &TestAccount) -> String {
    format!("/v1/accounts/{}/events", account.id())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_an_account_are_streamed_as_they_happen() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = HttpServed::start(2).await;
    deposit(&served, 0, &[(alice.id(), 10)]).await;
    let mut follow = Follow::open(served.address, &events(&alice), "").await;
    assert_eq!((follow.head.status, follow.head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(follow.head.header("access-control-allow-origin"), Some("*"));
    // Nothing of before.
    let certificate = pay(&served, &alice, bob.id(), 0).await;
    let (name, cursor, data) = follow.next().await;
    assert_eq!((name.as_str(), cursor.as_str()), ("confirmed", "1.0.1"));
    let expected = json::SentTransfer::new(&served.shards.committee.domain, &certificate.order.transfer);
    assert_eq!(serde_json::from_value::<json::SentTransfer>(data).unwrap(), expected);
    pay(&served, &bob, alice.id(), 0).await;
    let (name, cursor, data) = follow.next().await;
    assert_eq!((name.as_str(), cursor.as_str(), &data["number"]), ("received", "1.1.1", &"0".into()));
    deposit(&served, 1, &[(bob.id(), 1), (alice.id(), 7)]).await;
    let (name, cursor, data) = follow.next().await;
    assert_eq!((name.as_str(), cursor.as_str(), &data["amount"]), ("deposited", "1.1.2", &"7".into()));
    // Who has gone is waited for no longer.
    drop(follow);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_before_its_first_event_is_taken_up_where_it_began() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = HttpServed::start(1).await;
    deposit(&served, 0, &[(alice.id(), 10)]).await;
    pay(&served, &alice, bob.id(), 0).await;
    let mut follow = Follow::open(served.address, &events(&alice), "").await;
    let start = follow.start().await;
    assert_eq!(start, "1.0.1");
    drop(follow);
    pay(&served, &alice, bob.id(), 1).await;
    let mut follow = Follow::open(served.address, &events(&alice), &format!("last-event-id: {start}\r\n")).await;
    assert_eq!(follow.start().await, start);
    let (name, cursor, data) = follow.next().await;
    assert_eq!((name.as_str(), cursor.as_str(), &data["sequence"]), ("confirmed", "2.0.1", &"1".into()));
    drop(follow);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_taken_up_where_it_broke() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = HttpServed::start(1).await;
    deposit(&served, 0, &[(alice.id(), 1_000)]).await;
    for sequence in 0..130 {
        pay(&served, &alice, bob.id(), sequence).await;
    }
    // From the beginning: more than one page.
    let mut follow = Follow::open(served.address, &format!("{}?cursor=0.0.0", events(&bob)), "").await;
    for number in 0_u64..40 {
        let (name, cursor, data) = follow.next().await;
        assert_eq!((name.as_str(), cursor), ("received", format!("0.{}.0", number + 1)));
        assert_eq!(data["number"], number.to_string());
    }
    drop(follow);
    // The header, which a browser sends, comes before what the address said.
    let again = "last-event-id: 0.40.0\r\n";
    let mut follow = Follow::open(served.address, &format!("{}?cursor=0.0.0", events(&bob)), again).await;
    for number in 40_u64..130 {
        assert_eq!(follow.next().await.2["number"], number.to_string(), "none is left out, none comes twice");
    }
    pay(&served, &alice, bob.id(), 130).await;
    assert_eq!(follow.next().await.1, "0.131.0");
    // One that is ahead is of another authority, or of this one before it was restored: what comes would be left out.
    for ahead in ["0.132.0", "1.0.0", "0.0.1", "0.18446744073709551615.0"] {
        let problem = served.get(&format!("{}?cursor={ahead}", events(&bob))).await.problem("cursor-ahead");
        assert_eq!(problem.retry, Retry::AfterChange);
    }
    for wrong in ["", "0", "0.0", "0.0.0.0", "0.-1.0", "0.0.x", "00.0.0", "18446744073709551616.0.0"] {
        served.get(&format!("{}?cursor={wrong}", events(&bob))).await.problem("malformed");
    }
    served.get(&format!("{}?since=0", events(&bob))).await.problem("malformed");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_few_and_an_address_leaves_half_of_them() {
    let limits = HttpLimits { streams_max: 4, ..HttpLimits::default() };
    let served = HttpServed::with(1, limits, FORGETFUL, true).await;
    let path = events(&TestAccount::ethereum(0));
    let first = Follow::open(served.address, &path, "").await;
    let second = Follow::open(served.address, &path, "").await;
    assert_eq!((first.head.status, second.head.status), (200, 200));
    let problem = served.get(&path).await.problem("too-many-streams");
    assert!(problem.retry_after_ms.is_some());
    let stream = connect_from([127, 0, 0, 2], served.address).await;
    let other = Follow::on(stream, &path, "").await;
    assert_eq!(other.head.status, 200);
    // Other questions are answered all the while, and a place comes back with who leaves.
    served.get("/v1/status").await.good::<json::Status>();
    drop(first);
    eventually_async("a place is free", || async { Follow::open(served.address, &path, "").await.head.status == 200 })
        .await;
    drop((second, other));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_with_the_authority() {
    let served = HttpServed::start(1).await;
    let mut follow = Follow::open(served.address, &events(&TestAccount::ethereum(0)), "").await;
    served.stop.send_replace(true);
    while follow.line().await.is_some() {}
    // And where the shard has ended, nothing is promised.
    let served_again = HttpServed::start(1).await;
    served_again.shards.handles.values().for_each(|handle| handle.try_send(Command::Stop).unwrap());
    eventually_async("the shard ends", || async {
        Follow::open(served_again.address, &events(&TestAccount::ethereum(0)), "").await.head.status == 503
    })
    .await;
    served.end().await;
    served_again.end().await;
}

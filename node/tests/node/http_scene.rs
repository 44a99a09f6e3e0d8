//! The HTTP port of an authority in the test's process, and a client that sends exact bytes.

use std::net::SocketAddr;
use std::sync::Arc;

use fastpay_node::authority::certification::ArchivedReads;
use fastpay_node::authority::follower::Progress;
use fastpay_node::authority::http::{self, HttpContext, HttpLimits};
use fastpay_node::authority::index::{Index, Indexer};
use fastpay_node::authority::peer_book::PeerBook;
use fastpay_node::authority::shard::{ChainTime, ShardLimits};
use fastpay_program::Clock;
use fastpay_rpc::http::ProblemKind;
use fastpay_rpc::json::WaitingRedemptions;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::scene::{FORGETFUL, PATIENCE, Shards};

/// Shards with one HTTP port.
pub struct HttpServed {
    pub shards: Shards,
    pub address: SocketAddr,
    pub progress: watch::Sender<Progress>,
    pub waiting: watch::Sender<Option<Arc<WaitingRedemptions>>>,
    pub stop: watch::Sender<bool>,
    /// Taken away, nobody keeps the index any more.
    pub indexer: Option<Indexer>,
    server: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl HttpServed {
    pub async fn start(shards: u32) -> Self {
        Self::with(shards, HttpLimits::default(), FORGETFUL, true).await
    }

    /// With bounds of the port and of the shards, of which the threads run or not.
    pub async fn with(shards: u32, limits: HttpLimits, shard_limits: ShardLimits, running: bool) -> Self {
        Self::begin(shards, limits, shard_limits, running, true).await
    }

    pub async fn without_index(shards: u32) -> Self {
        Self::begin(shards, HttpLimits::default(), FORGETFUL, true, false).await
    }

    async fn begin(
        shards: u32,
        limits: HttpLimits,
        shard_limits: ShardLimits,
        running: bool,
        with_index: bool,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut shards = Shards::prepare(folder.path(), shards, shard_limits);
        shards.chain = Some((ChainTime { block_time: 1_000, unlock_window: 7 * 86_400 }, Clock::at(0)));
        if running {
            shards = shards.run();
        }
        let (stop, stopped) = watch::channel(false);
        let (progress, progress_seen) = watch::channel(Progress::AtHead);
        let (waiting, waiting_seen) = watch::channel(None);
        let listener = fastpay_node::authority::network::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let start = || Index::start(folder.path().join("index"), shards.committee.domain, shards.histories.clone());
        let (index, indexer) = with_index.then(|| start().unwrap()).unzip();
        let all = shards.handles.values().cloned().zip(shards.histories.iter().cloned()).collect();
        let context = HttpContext {
            domain: shards.committee.domain,
            with_primary: true,
            voter_status: shards.voter_status.subscribe(),
            shards: Arc::new(all),
            index,
            peers: PeerBook::new(shards.committee.domain, None, &[]),
            archived: ArchivedReads::default(),
            progress: progress_seen,
            waiting: Some(waiting_seen),
            metrics: shards.metrics.clone(),
        };
        let server = tokio::spawn(async move { http::serve(listener, context, limits, None, stopped).await.unwrap() });
        Self { shards, address, progress, waiting, stop, indexer, server, _folder: folder }
    }

    pub async fn get(&self, path: &str) -> Said {
        ask(self.address, "GET", path, &[], b"").await
    }

    pub async fn post(&self, path: &str, body: &impl serde::Serialize) -> Said {
        let body = serde_json::to_vec(body).unwrap();
        ask(self.address, "POST", path, &[("content-type", "application/json")], &body).await
    }

    /// Stops everything, off the runtime's own thread.
    pub async fn end(self) {
        self.stop.send_replace(true);
        tokio::time::timeout(PATIENCE, self.server).await.expect("the server stops").unwrap();
        let (shards, indexer) = (self.shards, self.indexer);
        tokio::task::spawn_blocking(|| (drop(indexer), shards.stop())).await.unwrap();
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Said {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Said {
    /// One that came as bytes, with its connection closed behind it.
    pub fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("not an answer: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Self { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a good answer.
    #[track_caller]
    pub fn good<T: serde::de::DeserializeOwned>(&self) -> T {
        assert_eq!((self.status, self.header("content-type")), (200, Some("application/json")), "{}", self.body);
        assert_eq!(self.header("access-control-allow-origin"), Some("*"));
        serde_json::from_value(self.json()).unwrap()
    }

    /// The problem, which must be of this code and whole.
    #[track_caller]
    pub fn problem(&self, code: &str) -> fastpay_rpc::json::Problem {
        let json = self.json();
        assert_eq!(json["code"], code, "{json}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(self.header("access-control-allow-origin"), Some("*"));
        let problem: fastpay_rpc::json::Problem = serde_json::from_value(json).unwrap();
        assert_eq!((problem.status, problem.r#type), (self.status, format!("urn:fastpay:problem:{code}")));
        assert_eq!((problem.title.as_str(), problem.action.as_str()), (problem.code.title(), problem.code.action()));
        assert_eq!(problem.retry_after_ms.is_some(), self.header("retry-after").is_some());
        serde_json::from_value(self.json()).unwrap()
    }
}

/// Asks on a connection of its own.
pub async fn ask(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Said {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: authority\r\nconnection: close\r\n");
    headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    if !body.is_empty() {
        head += &format!("content-length: {}\r\n", body.len());
    }
    stream.write_all((head + "\r\n").as_bytes()).await.unwrap();
    // A server that refuses a body by its head may close before it is sent.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it answers");
    assert!(read.is_ok() || !answer.is_empty(), "{read:?}");
    Said::parse(&String::from_utf8(answer).unwrap())
}

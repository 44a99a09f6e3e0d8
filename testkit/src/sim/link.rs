//! Carries calls between a client and a shard through the simulated network, as the bytes of a real connection.
//!
//! A unary call is lost, delayed or duplicated as a whole; on a stream, each message separately. A stream breaks when
//! its server crashes, or at random.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use fastpay_client::Carrier;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, StdError, http};

use super::observer::{self, StreamObserver};
use super::weather::Fate;
use super::world::{Server, World};

/// An idle connection is closed after this time, as keep-alive does.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(30);
/// The header of a message in a gRPC body: one byte of flags, four bytes of length.
const MESSAGE_HEADER_BYTES: usize = 5;

/// The connection of one client to one shard of one authority.
pub struct Link {
    /// The world.
    pub world: Arc<World>,
    /// The client's number.
    pub client: usize,
    /// The authority's.
    pub authority: usize,
    /// The shard's.
    pub shard: u32,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "c{}-a{}.{}", self.client, self.authority, self.shard)
    }
}

impl Carrier for Link {
    fn carry(&self, call: http::Request<Body>) -> BoxFuture<http::Response<Body>, StdError> {
        let Self { world, client, authority, shard } = self;
        let way = Way { world: world.clone(), client: *client, authority: *authority, shard: *shard };
        Box::pin(async move {
            if call.uri().path().ends_with("/Submit") { way.stream(call).await } else { way.unary(call).await }
        })
    }
}

/// A link for one call.
#[derive(Clone)]
struct Way {
    world: Arc<World>,
    client: usize,
    authority: usize,
    shard: u32,
}

fn broken() -> Status {
    Status::unavailable("the connection broke")
}

impl Way {
    fn fate(&self) -> Fate {
        self.world.weather().fate(self.client, self.authority, &self.world.dice)
    }

    /// Waits until a message arrives. Returns the delay of its duplicate, if there is one.
    async fn pass(&self) -> Result<Option<Duration>, Status> {
        let (delay, again) = match self.fate() {
            Fate::Lost => {
                self.world.trace.note("lost", format_args!("{self}"));
                tokio::time::sleep(CONNECTION_PATIENCE).await;
                return Err(broken());
            }
            Fate::Arrives(delay) => (delay, None),
            Fate::ArrivesTwice(delay, again) => (delay, Some(again)),
        };
        tokio::time::sleep(delay).await;
        Ok(again)
    }

    fn server(&self) -> Result<Server, Status> {
        self.world.server(self.authority, self.shard).ok_or_else(|| Status::unavailable("nobody listens there"))
    }

    async fn unary(self, call: http::Request<Body>) -> Result<http::Response<Body>, StdError> {
        let (parts, body) = call.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let again = self.pass().await?;
        let call = move || http::Request::from_parts(parts.clone(), Body::new(Full::new(bytes.clone())));
        if let Some(delay) = again {
            let (way, call) = (self.clone(), call());
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                if let Ok(server) = way.server() {
                    way.world.trace.note("doubled", format_args!("{way}"));
                    drop(server.answer(call).await);
                }
            });
        }
        let (parts, body) = self.server()?.answer(call()).await.ok_or_else(broken)?.into_parts();
        self.pass().await?;
        Ok(http::Response::from_parts(parts, Body::new(body)))
    }

    async fn stream(self, call: http::Request<Body>) -> Result<http::Response<Body>, StdError> {
        self.pass().await?;
        let server = self.server()?;
        let (parts, body) = call.into_parts();
        let (requests, arriving) = mpsc::unbounded_channel();
        let observer = Arc::new(StreamObserver::new(self.world.clone(), self.authority));
        tokio::spawn(self.clone().forward_requests(body, requests));
        let arriving = Arriving { channel: arriving, ends_well: true, observer: Some(observer.clone()) };
        let call = http::Request::from_parts(parts, Body::new(StreamBody::new(arriving)));
        let (answers, arriving) = mpsc::unbounded_channel();
        let parts = server.stream(call, move |body| self.forward_answers(body, answers, observer)).await;
        let parts = parts.ok_or_else(broken)?;
        let arriving = Arriving { channel: arriving, ends_well: false, observer: None };
        Ok(http::Response::from_parts(parts, Body::new(StreamBody::new(arriving))))
    }

    /// Carries a client's messages to the server, each with its own delay.
    async fn forward_requests(self, mut body: Body, to: mpsc::UnboundedSender<Frame<Bytes>>) {
        loop {
            // No reader at the other end: the connection is closed.
            let frame = tokio::select! {
                biased;
                () = to.closed() => return,
                frame = body.frame() => frame,
            };
            let Some(Ok(frame)) = frame else { return };
            for message in frame.into_data().into_iter().flat_map(messages) {
                if self.client < self.world.plan.clients {
                    observer::leaves_a_wallet(&self.world, self.client, &message);
                }
                self.send("request", message, &to);
            }
        }
    }

    /// Carries a server's messages to the client, each with its own delay, followed by the trailers.
    async fn forward_answers(
        self,
        mut body: Body,
        to: mpsc::UnboundedSender<Frame<Bytes>>,
        observer: Arc<StreamObserver>,
    ) {
        loop {
            let frame = tokio::select! {
                biased;
                () = to.closed() => return,
                frame = body.frame() => frame,
            };
            let Some(Ok(frame)) = frame else { return };
            match frame.into_data() {
                Ok(data) => {
                    for message in messages(data) {
                        observer.leaves(&message);
                        if self.world.weather().breaks(&self.world.dice) {
                            self.world.trace.note("broken", format_args!("{self}"));
                            return;
                        }
                        self.send("answer", message, &to);
                    }
                }
                Err(last) => {
                    let _ = to.send(last);
                    return;
                }
            }
        }
    }

    fn send(&self, kind: &'static str, message: Bytes, to: &mpsc::UnboundedSender<Frame<Bytes>>) {
        let (first, second) = match self.fate() {
            Fate::Lost => (None, None),
            Fate::Arrives(delay) => (Some(delay), None),
            Fate::ArrivesTwice(delay, again) => (Some(delay), Some(again)),
        };
        self.world.trace.note(kind, format_args!("{self} {} bytes {first:?} {second:?}", message.len()));
        for delay in first.into_iter().chain(second) {
            let (to, message) = (to.clone(), message.clone());
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let _ = to.send(Frame::data(message));
            });
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "c{}-a{}.{}", self.client, self.authority, self.shard)
    }
}

/// The messages of a chunk of a gRPC body: tonic puts several whole ones into one chunk.
fn messages(mut data: Bytes) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while let Some(header) = data.get(1..MESSAGE_HEADER_BYTES) {
        let length = u32::from_be_bytes(header.try_into().expect("four bytes")) as usize;
        messages.push(data.split_to((MESSAGE_HEADER_BYTES + length).min(data.remaining())));
    }
    messages
}

/// The payload of a message.
pub(super) fn payload(message: &Bytes) -> &[u8] {
    message.get(MESSAGE_HEADER_BYTES..).unwrap_or_default()
}

/// Messages that arrive at one end of a stream.
struct Arriving {
    channel: mpsc::UnboundedReceiver<Frame<Bytes>>,
    /// Whether the stream may end here without an error. An answer must end with trailers.
    ends_well: bool,
    /// Observes requests.
    observer: Option<Arc<StreamObserver>>,
}

impl Stream for Arriving {
    type Item = Result<Frame<Bytes>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match ready!(self.channel.poll_recv(cx)) {
            Some(frame) => {
                if let (Some(observer), Some(message)) = (&self.observer, frame.data_ref()) {
                    observer.arrives(message);
                }
                self.ends_well |= frame.is_trailers();
                Poll::Ready(Some(Ok(frame)))
            }
            None if std::mem::replace(&mut self.ends_well, true) => Poll::Ready(None),
            None => Poll::Ready(Some(Err(broken()))),
        }
    }
}

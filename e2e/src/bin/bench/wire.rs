//! Streams to a shard that carry pre-encoded requests, so that the generator spends its core on reading and writing.
//! The ordinary client of `fastpay-rpc` encodes each request and wakes a task for each answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};
use fastpay_e2e::Failure;
use fastpay_rpc::proto::SubmitResponse;
use fastpay_rpc::proto::submit_response::Response;
use prost::Message;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic::{Status, Streaming};

/// The bytes that precede a gRPC message.
pub const MESSAGE_HEADER_BYTES: usize = 5;
/// A client sends no order on a stream with this many unread requests; the order then counts as offered only.
const UNSENT_MAX: usize = 64;
/// The flow-control window. Answers are read at once, so the server never waits for the bench.
const WINDOW_BYTES: u32 = 4 << 20;

/// An answer as received.
#[derive(Debug)]
pub struct Answer {
    pub id: u64,
    pub response: Response,
    pub at: Instant,
    /// Its size on the wire, including the message's header.
    pub bytes: usize,
}

/// The answers of all streams. If a stream breaks, a failure comes instead of an answer.
pub type Answers = UnboundedReceiver<Result<Answer, Failure>>;

/// Many streams, each on its own connection.
pub struct Streams {
    /// The streams of each shard.
    shards: Vec<Vec<Stream>>,
}

/// The sending end of a stream, and the number of requests that the stream has not taken.
struct Stream {
    requests: UnboundedSender<Bytes>,
    unsent: Arc<AtomicUsize>,
}

impl Streams {
    /// Opens this many connections to each shard.
    pub async fn open(addresses: &[String], connections: usize) -> Result<(Self, Answers), Failure> {
        let (sender, answers) = unbounded_channel();
        let mut shards = Vec::new();
        for address in addresses {
            let mut streams = Vec::new();
            for _ in 0..connections.max(1) {
                streams.push(open(address, sender.clone()).await?);
            }
            shards.push(streams);
        }
        Ok((Self { shards }, answers))
    }

    /// Whether the stream takes another order now.
    pub fn has_room(&self, shard: u32, turn: u32) -> bool {
        self.stream(shard, turn).is_some_and(|stream| stream.unsent.load(Ordering::Relaxed) < UNSENT_MAX)
    }

    /// Sends a request to a shard. `turn` selects one of its connections.
    pub fn send(&self, shard: u32, turn: u32, request: Bytes) {
        if let Some(stream) = self.stream(shard, turn) {
            stream.unsent.fetch_add(1, Ordering::Relaxed);
            // If the stream is broken, its reader has reported that.
            let _ = stream.requests.send(request);
        }
    }

    fn stream(&self, shard: u32, turn: u32) -> Option<&Stream> {
        let streams = self.shards.get(shard as usize).filter(|streams| !streams.is_empty())?;
        streams.get(turn as usize % streams.len())
    }
}

async fn open(address: &str, answers: UnboundedSender<Result<Answer, Failure>>) -> Result<Stream, Failure> {
    let (requests, outgoing) = unbounded_channel();
    let unsent = Arc::new(AtomicUsize::new(0));
    let taken = unsent.clone();
    let outgoing = UnboundedReceiverStream::new(outgoing).map(move |request: Bytes| {
        taken.fetch_sub(1, Ordering::Relaxed);
        request
    });
    let mut incoming = connect(address, None, outgoing).await?;
    tokio::spawn(async move {
        while let Some(answer) = incoming.next().await {
            let answer = answer.map_err(|status| Failure::Wrong(format!("a stream broke: {status}")));
            if answers.send(answer).is_err() {
                return;
            }
        }
        let _ = answers.send(Err(Failure::wrong("the node ended a stream")));
    });
    Ok(Stream { requests, unsent })
}

/// Opens a stream on its own connection, from a given address of this machine if there is one.
pub async fn connect(
    address: &str,
    from: Option<IpAddr>,
    requests: impl tokio_stream::Stream<Item = Bytes> + Send + 'static,
) -> Result<Streaming<Answer>, Failure> {
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(Failure::wrong)?.local_address(from);
    let endpoint = endpoint.tcp_nodelay(true).initial_stream_window_size(WINDOW_BYTES);
    let channel = endpoint.initial_connection_window_size(WINDOW_BYTES).connect().await.map_err(Failure::wrong)?;
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(Failure::wrong)?;
    let path = PathAndQuery::from_static("/fastpay.v1.Shard/Submit");
    Ok(grpc.streaming(tonic::Request::new(requests), path, Encoded).await.map_err(Failure::wrong)?.into_inner())
}

/// A codec that sends encoded requests unchanged.
#[derive(Clone, Copy, Debug)]
struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = Answer;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, request: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(request);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Answer;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Answer>, Status> {
        let bytes = buffer.remaining() + MESSAGE_HEADER_BYTES;
        let answer = SubmitResponse::decode(buffer).map_err(|error| Status::internal(error.to_string()))?;
        let response = answer.response.ok_or_else(|| Status::internal("an answer without content"))?;
        Ok(Some(Answer { id: answer.id, response, at: Instant::now(), bytes }))
    }
}

//! The network layer: decodes clients' bytes into requests for a shard, and encodes the answers.
//!
//! ```text
//!  TCP ─► bounded connections ─► gRPC ─► is there room? ─► convert (lengths) ─► shard's queue
//!  TCP ◄──────────────────────── gRPC ◄──── busy ◄┘ ◄───── convert ◄─────────── answers
//! ```
//!
//! Each shard has a port and a server of its own. Invariants: nothing here waits for a shard. Bounds limit each peer's
//! work: connections (in total and by address), streams and requests in flight, message size, and the time until the
//! preface. Requests beyond a bound are refused or left unread, never buffered.

mod answers;
mod batch_vote;
mod certificates;
mod connection_quota;
mod incoming;
mod reads;
mod service;
mod submit;
mod unlock_vote;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fastpay_core::{Domain, ShardLayout};
use fastpay_rpc::proto::shard_server::ShardServer;
use fastpay_rpc::{MESSAGE_BYTES_MAX, request_bytes_max};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::{Identity, Server, ServerTlsConfig};

use crate::authority::certification::{Archive, ArchivedReads};
use crate::authority::handover::Closings;
use crate::authority::metrics::{HandoverMetrics, NetworkMetrics};
use crate::authority::peer_book::PeerBook;
use crate::authority::shard::{ClientReputation, HistoryReader, ShardHandle};
use crate::authority::voter_status::VoterStatusWatch;
pub(crate) use answers::{deposit, received};
pub(crate) use batch_vote::{NoVote, vote_for_redemptions};
pub(crate) use certificates::read_certificates;
pub(crate) use connection_quota::{ConnectionQuota, ConnectionSlot};
use incoming::Incoming;
pub(crate) use reads::{Range, ReadError, Reads, ask};
use service::ShardService;
pub(crate) use submit::{submit_all, submit_one};
pub(crate) use unlock_vote::{NoUnlockVote, vote_for_unlock};

/// How many unread bytes a client may send on one stream: enough for 25,000 orders a second over a round trip of 20
/// milliseconds. This much waits on a stream that is left unread for a while.
const STREAM_WINDOW_BYTES: u32 = 128 << 10;
/// The same limit over all streams of one connection: it bounds the memory that a stalling peer occupies.
const CONNECTION_WINDOW_BYTES: u32 = 512 << 10;

/// The path of the call in the schema.
const SUBMIT_PATH: &str = "/fastpay.v1.Shard/Submit";

/// Bounds of one shard's server.
#[derive(Clone, Copy, Debug)]
pub struct NetworkLimits {
    /// The maximum number of connections. One address may have as many as are free. Further ones are closed at once.
    pub connections_max: usize,
    /// The maximum number of simultaneous streams and calls on one connection.
    pub streams_per_connection_max: u32,
    /// The maximum number of simultaneous history reads: each holds a blocking thread.
    pub history_reads_max: usize,
    /// A connection is closed if the peer does not send its preface within this time.
    pub first_byte_timeout: Duration,
    /// A silent peer is pinged after this time.
    pub keepalive_interval: Duration,
    /// The connection is closed if the peer does not answer the ping within this time.
    pub keepalive_timeout: Duration,
}

impl Default for NetworkLimits {
    fn default() -> Self {
        Self {
            connections_max: 1_024,
            streams_per_connection_max: 32,
            history_reads_max: 16,
            first_byte_timeout: Duration::from_secs(10),
            keepalive_interval: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(10),
        }
    }
}

/// The parts of the authority that a shard's server uses.
#[derive(Clone)]
pub struct ShardContext {
    /// The deployment.
    pub domain: Domain,
    /// The committees, and this authority's place in them.
    pub voter_status: VoterStatusWatch,
    /// This shard's number.
    pub shard: fastpay_core::ShardId,
    /// The handle of the shard's queue.
    pub handle: ShardHandle,
    /// The shard's journal.
    pub history: HistoryReader,
    /// The handles and journals of all shards of this authority, from the first.
    pub shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
    /// The Closings that are served to other authorities.
    pub closings: Closings,
    /// Where members are, as they say themselves.
    pub peers: PeerBook,
    /// The archive of certified checkpoints that is served to other authorities, if one is configured.
    pub archive: Option<Archive>,
    /// The same for clients, who are shown entries with their proof.
    pub archived: ArchivedReads,
    /// What a join waits for.
    pub handover: Arc<HandoverMetrics>,
    /// Counters.
    pub metrics: Arc<NetworkMetrics>,
}

/// The layout of an authority with these shards.
pub(crate) fn layout_of<T>(shards: &[T]) -> ShardLayout {
    ShardLayout::new(u32::try_from(shards.len()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN))
}

/// The shard's service, with the message bound that is current when each request comes: the quorum of a new epoch may
/// be larger.
#[derive(Clone)]
struct Bounded {
    service: Arc<ShardService>,
    voter_status: VoterStatusWatch,
}

impl NamedService for Bounded {
    const NAME: &'static str = <ShardServer<ShardService> as NamedService>::NAME;
}

impl<B> Service<http::Request<B>> for Bounded
where
    B: Send + 'static,
    ShardServer<ShardService>: Service<http::Request<B>, Future: Send, Response: 'static, Error: 'static>,
{
    type Response = <ShardServer<ShardService> as Service<http::Request<B>>>::Response;
    type Error = <ShardServer<ShardService> as Service<http::Request<B>>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let request_bytes_max = request_bytes_max(self.voter_status.borrow().quorum_max());
        let mut server = ShardServer::from_arc(self.service.clone())
            .max_decoding_message_size(request_bytes_max)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        // The stream of requests has its own bounds.
        let reads = request.uri().path() != SUBMIT_PATH;
        let peer = request.extensions().get::<Arc<ClientReputation>>().filter(|_| reads).cloned();
        Box::pin(async move {
            let _turn = match peer {
                Some(peer) => peer.read().await,
                None => None,
            };
            server.call(request).await
        })
    }
}

/// The service of one shard, for calls over a connection or another transport.
pub fn service(
    context: ShardContext,
    limits: NetworkLimits,
    stop: watch::Receiver<bool>,
) -> impl Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future: Send + 'static>
+ NamedService
+ Clone
+ Send
+ Sync
+ 'static {
    let voter_status = context.voter_status.clone();
    Bounded { service: Arc::new(ShardService::new(context, limits, stop)), voter_status }
}

/// Serves one shard until `stop` turns true; then finishes what is in flight.
///
/// # Errors
/// If the server fails as a whole.
pub async fn serve(
    listener: TcpListener,
    context: ShardContext,
    limits: NetworkLimits,
    tls: Option<Identity>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), tonic::transport::Error> {
    let incoming = Incoming::new(listener, limits, context.metrics.clone());
    let service = service(context, limits, stop.clone());
    let mut server = Server::builder()
        .max_concurrent_streams(limits.streams_per_connection_max)
        .http2_keepalive_interval(Some(limits.keepalive_interval))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
        .http2_max_pending_accept_reset_streams(Some(32))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    if let Some(identity) = tls {
        // Fails if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        server = server.tls_config(ServerTlsConfig::new().identity(identity).timeout(limits.first_byte_timeout))?;
    }
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    server.add_service(service).serve_with_incoming_shutdown(incoming, stopped).await
}

/// Opens a port.
///
/// # Errors
/// If the port is taken, or this process may not open it.
pub async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

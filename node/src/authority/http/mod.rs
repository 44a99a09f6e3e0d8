//! The port for people and programs: the JSON API (docs/API.md), health, readiness, metrics, and a page for operators.
//!
//! ```text
//!  TCP ─► bounded connections ─► head and body in time ─► JSON ─► the shard that owns the account ─► JSON, or a problem
//! ```
//! One port serves all shards of the authority, with the same bounds as the shards' own ports: room in the shard's
//! queue, probation of an address that sends mostly worthless requests, reads in turn. Invariants: nothing here waits
//! for a shard; the OpenAPI document, which is made from the code, describes every answer.

mod about;
mod accounts;
mod archived;
mod connections;
mod dashboard;
mod events;
mod extract;
mod ledger;
mod openapi;
mod orders;
mod problem;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use fastpay_core::{AccountId, Domain, ShardLayout};
use fastpay_program::http::ConnectionLimits;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower_http::cors::{Any, CorsLayer};

use crate::authority::certification::ArchivedReads;
use crate::authority::follower::Progress;
use crate::authority::index::Index;
use crate::authority::metrics::Metrics;
use crate::authority::network::{ConnectionQuota, Reads, layout_of};
use crate::authority::payouts::WaitingSeen;
use crate::authority::peer_book::PeerBook;
use crate::authority::shard::{HistoryReader, ShardHandle};
use crate::authority::voter_status::VoterStatusWatch;
use connections::Caller;

/// Bounds of the HTTP server.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The maximum number of connections. One address may have as many as are free. Further ones are closed at once, so
    /// that a flood here does not take the file descriptors that the shards' ports need.
    pub connections_max: usize,
    /// The maximum number of event streams. One address may have as many as are free.
    pub streams_max: usize,
    /// The maximum number of simultaneous history reads: each holds a blocking thread.
    pub history_reads_max: usize,
    /// A connection that sends no whole request head for this long is closed.
    pub head_timeout: Duration,
    /// The maximum time from a request's head to the end of its body.
    pub body_timeout: Duration,
    /// A connection whose peer reads nothing of an answer for this long is closed.
    pub write_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections_max: 512,
            streams_max: 256,
            history_reads_max: 16,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
        }
    }
}

/// The sources of the API's answers.
#[derive(Clone)]
pub struct HttpContext {
    /// The deployment.
    pub domain: Domain,
    /// Whether there is a Primary.
    pub with_primary: bool,
    /// The committees, and this authority's place in them.
    pub voter_status: VoterStatusWatch,
    /// All shards of this authority, from the first.
    pub shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
    /// Finds transfers by digest, and deposits by index; `None` if the index is switched off.
    pub index: Option<Index>,
    /// Where members are, as they say themselves.
    pub peers: PeerBook,
    /// Entries of the archive.
    pub archived: ArchivedReads,
    /// The follower's progress.
    pub progress: watch::Receiver<Progress>,
    /// The redemptions that wait for the contract; `None` without a contract.
    pub waiting: Option<WaitingSeen>,
    /// All counters.
    pub metrics: Arc<Metrics>,
}

/// The node's state for the handlers.
struct Node {
    context: HttpContext,
    limits: HttpLimits,
    layout: ShardLayout,
    shards: Vec<Reads>,
    streams: Arc<ConnectionQuota>,
    stop: watch::Receiver<bool>,
}

type SharedNode = State<Arc<Node>>;

impl Node {
    fn new(context: HttpContext, limits: HttpLimits, stop: watch::Receiver<bool>) -> Self {
        let history_reads = Arc::new(Semaphore::new(limits.history_reads_max));
        let reads = |(handle, history): &(ShardHandle, HistoryReader)| {
            Reads::new(handle.clone(), history.clone(), history_reads.clone())
        };
        let shards: Vec<_> = context.shards.iter().map(reads).collect();
        Self {
            layout: layout_of(&shards),
            streams: ConnectionQuota::new(limits.streams_max),
            context,
            limits,
            shards,
            stop,
        }
    }

    /// The shard that owns an account.
    fn shard_of(&self, account: &AccountId) -> &Reads {
        let index = self.layout.shard_of(account).0 as usize;
        self.shards.get(index).expect("the layout has as many shards as the list")
    }

    /// The reads of the first shard, for reads of several shards at once: all shards share one bound.
    fn reads(&self) -> &Reads {
        self.shards.first().expect("there is at least one shard")
    }
}

/// Serves until `stop` turns true.
///
/// # Errors
/// If the server fails as a whole.
pub async fn serve(
    listener: TcpListener,
    context: HttpContext,
    limits: HttpLimits,
    tls: Option<Arc<rustls::ServerConfig>>,
    stop: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let network = context.metrics.network.clone();
    let router = router(Arc::new(Node::new(context, limits, stop.clone())));
    let patience = ConnectionLimits { head_timeout: limits.head_timeout, write_timeout: limits.write_timeout };
    let admit = connections::admit(limits.connections_max, network);
    fastpay_program::http::serve(listener, router, patience, tls.map(TlsAcceptor::from), admit, stop).await;
    Ok(())
}

fn router(node: Arc<Node>) -> Router {
    // The API uses neither cookies nor credentials, so it can answer pages of any origin.
    let cors = CorsLayer::new().allow_origin(Any).allow_methods(Any).allow_headers(Any).expose_headers(Any);
    let (api, document) = openapi::parts();
    api.route("/v1/openapi.json", get(async || document))
        .route("/", get(dashboard::page))
        .route("/dashboard.js", get(dashboard::script))
        .route("/health", get(about::health))
        .route("/ready", get(about::ready))
        .route("/metrics", get(about::metrics).route_layer(from_fn(in_turn)))
        .fallback(problem::no_such_path)
        .method_not_allowed_fallback(problem::no_such_method)
        .layer(cors)
        .with_state(node)
}

/// Serves the reads of one address in turn, as on the shards' own ports.
async fn in_turn(caller: Caller, request: Request, next: Next) -> Response {
    let _turn = caller.peer.read().await;
    next.run(request).await
}

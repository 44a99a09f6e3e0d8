//! The port for people and programs: health, readiness, metrics.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

use crate::follower::Progress;
use crate::metrics::Metrics;
use crate::network::{Share, Shares};
use crate::standing::StandingSeen;

/// What the answers are made of.
#[derive(Clone)]
pub struct HttpContext {
    /// All counters.
    pub metrics: Arc<Metrics>,
    /// Where the follower has come to.
    pub progress: watch::Receiver<Progress>,
    /// Who the authority is.
    pub standing: StandingSeen,
}

/// Serves until `stop` turns true.
///
/// # Errors
/// Where the server fails as a whole.
pub async fn serve(
    listener: TcpListener,
    context: HttpContext,
    mut stop: watch::Receiver<bool>,
) -> Result<(), std::io::Error> {
    let router = Router::new()
        .route("/health", get(async || Json(json!({"status": "up"}))))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(context);
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    axum::serve(Bounded::new(listener), router).with_graceful_shutdown(stopped).await
}

/// At most so many connections at a time, and from one address as many as are free: a flood here must not take the
/// files that shards' ports need.
const CONNECTIONS_MAX: usize = 64;
/// A connection on which nothing arrives for this long is closed.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// And any connection after this long: whoever sends a byte now and then does not keep others out for ever.
const AGE_MAX: Duration = Duration::from_secs(300);

/// A port that closes further connections at once.
struct Bounded {
    listener: TcpListener,
    shares: Arc<Shares>,
}

impl Bounded {
    fn new(listener: TcpListener) -> Self {
        Self { listener, shares: Shares::new(CONNECTIONS_MAX) }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Bound;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = axum::serve::Listener::accept(&mut self.listener).await;
            if let Some(share) = self.shares.take(address.ip()) {
                let end = Instant::now() + AGE_MAX;
                return (Bound { stream, deadline: Box::pin(sleep(SILENCE_MAX)), end, _share: share }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that fails where its peer is silent for too long, or stays too long.
struct Bound {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    end: Instant,
    _share: Share,
}

impl AsyncRead for Bound {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let now = Instant::now();
        if now < self.end {
            let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
            if read.is_ready() {
                let next = (now + SILENCE_MAX).min(self.end);
                self.deadline.as_mut().reset(next);
                return read;
            }
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Bound {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Ready: votes, and credits deposits. A node whose follower has stopped still votes, but an operator
/// must know.
async fn ready(State(context): State<HttpContext>) -> impl IntoResponse {
    let progress = context.progress.borrow().clone();
    let (code, state, reason) = match progress {
        Progress::AtHead => (StatusCode::OK, "ready", None),
        Progress::CatchingUp => (StatusCode::SERVICE_UNAVAILABLE, "catching up with the Primary", None),
        Progress::Stopped(reason) => (StatusCode::SERVICE_UNAVAILABLE, "follower stopped", Some(reason)),
    };
    let standing = context.standing.borrow();
    let (authority, epoch, votes) = (standing.public().name, standing.epoch(), standing.voter().is_some());
    let restored = standing.guard().is_some();
    let body = json!({
        "status": state, "reason": reason, "authority": authority, "epoch": epoch, "votes": votes, "restored": restored,
    });
    (code, Json(body))
}

async fn metrics(State(context): State<HttpContext>) -> impl IntoResponse {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", content_type)], context.metrics.text())
}

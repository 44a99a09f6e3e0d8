//! Accepts connections, within bounds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

use super::NetworkLimits;
use super::connection_quota::{ConnectionQuota, ConnectionSlot};
use crate::authority::metrics::NetworkMetrics;
use crate::authority::shard::ClientReputation;

/// The length of the preface that every HTTP/2 client sends. Before it, the server's own keepalive does not run. A TLS
/// client sends more than that at once.
const GREETING_BYTES: usize = 24;

/// Accepted connections: a bounded number at a time, with a slot for each in the quota of its address.
pub(super) struct Incoming {
    listener: TcpListener,
    limits: NetworkLimits,
    quota: Arc<ConnectionQuota>,
    metrics: Arc<NetworkMetrics>,
    /// Set after the system refused to accept (too many open files): the time of the next attempt.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    pub(super) fn new(listener: TcpListener, limits: NetworkLimits, metrics: Arc<NetworkMetrics>) -> Self {
        Self { listener, limits, quota: ConnectionQuota::new(limits.connections_max), metrics, pause: None }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match ready!(self.listener.poll_accept(cx)) {
                Ok((stream, peer)) => {
                    let Some(slot) = self.quota.take(peer.ip()) else {
                        self.metrics.connections_refused.inc();
                        continue;
                    };
                    let _ = stream.set_nodelay(true);
                    self.metrics.connections.inc();
                    let open = Open { slot, metrics: self.metrics.clone() };
                    return Poll::Ready(Some(Ok(Connection::new(stream, &self.limits, open))));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    self.pause = Some(Box::pin(sleep(Duration::from_millis(100))));
                }
            }
        }
    }
}

/// Counts a connection while it lives.
struct Open {
    slot: ConnectionSlot,
    metrics: Arc<NetworkMetrics>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}

/// A connection with deadlines. It fails if its peer is too slow to send its preface, or later is silent for too long.
///
/// HTTP/2 pings a silent peer only after both have sent their prefaces. Before that, and during a TLS handshake,
/// nothing else would close a stalled connection.
pub(super) struct Connection {
    stream: TcpStream,
    /// The number of bytes of the preface that are still missing.
    greeting: usize,
    heard_at: Instant,
    silence_max: Duration,
    deadline: Pin<Box<Sleep>>,
    open: Open,
}

impl Connection {
    fn new(stream: TcpStream, limits: &NetworkLimits, open: Open) -> Self {
        let now = Instant::now();
        Self {
            stream,
            greeting: GREETING_BYTES,
            heard_at: now,
            // A live peer answers the keepalive; twice that time leaves room for a slow machine.
            silence_max: limits.keepalive_interval.saturating_add(limits.keepalive_timeout).saturating_mul(2),
            deadline: Box::pin(sleep_until(now + limits.first_byte_timeout)),
            open,
        }
    }

    /// Counts received bytes. The deadline moves with each read after the preface, and is checked only when it passes.
    fn received(&mut self, bytes: usize) {
        self.heard_at = Instant::now();
        self.greeting = self.greeting.saturating_sub(bytes);
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.deadline.as_mut().poll(cx));
            let quiet_until = self.heard_at + self.silence_max;
            if self.greeting > 0 || quiet_until <= Instant::now() {
                return Poll::Ready(());
            }
            self.deadline.as_mut().reset(quiet_until);
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Arc<ClientReputation>;

    fn connect_info(&self) -> Arc<ClientReputation> {
        self.open.slot.peer().clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.received(buffer.filled().len().saturating_sub(before));
            return read;
        }
        ready!(self.poll_deadline(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }
}

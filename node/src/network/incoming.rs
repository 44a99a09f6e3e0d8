//! Accepting connections, within bounds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::NetworkLimits;
use crate::metrics::NetworkMetrics;

/// Accepted connections, at most so many at a time.
pub(super) struct Incoming {
    listener: TcpListener,
    limits: NetworkLimits,
    free: Arc<Semaphore>,
    metrics: Arc<NetworkMetrics>,
    /// Set after the system refused to accept (too many open files): try again then.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    pub(super) fn new(listener: TcpListener, limits: NetworkLimits, metrics: Arc<NetworkMetrics>) -> Self {
        let free = Arc::new(Semaphore::new(limits.connections_max));
        Self { listener, limits, free, metrics, pause: None }
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
                Ok((stream, _)) => {
                    let Ok(permit) = self.free.clone().try_acquire_owned() else {
                        self.metrics.connections_refused.inc();
                        continue;
                    };
                    let _ = stream.set_nodelay(true);
                    self.metrics.connections.inc();
                    let deadline = Some(Box::pin(sleep(self.limits.first_byte_timeout)));
                    let open = Open { _permit: permit, metrics: self.metrics.clone() };
                    return Poll::Ready(Some(Ok(Connection { stream, deadline, _open: open })));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    self.pause = Some(Box::pin(sleep(std::time::Duration::from_millis(100))));
                }
            }
        }
    }
}

/// Counts a connection as long as it lives.
struct Open {
    _permit: OwnedSemaphorePermit,
    metrics: Arc<NetworkMetrics>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}

/// A connection that fails where its peer says nothing at first.
pub(super) struct Connection {
    stream: TcpStream,
    deadline: Option<Pin<Box<Sleep>>>,
    _open: Open,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.deadline = None;
        } else if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
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

//! Accepts a bounded number of connections and ends them.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// The maximum size of a request head. It bounds the memory of a connection before its request is known.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// The maximum number of headers.
const HEADERS_MAX: usize = 64;

/// How long a peer may leave a connection idle.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// A connection on which no whole request head arrives for this long is closed.
    pub head_timeout: Duration,
    /// A connection is closed if its peer reads nothing of an answer for this long.
    pub write_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { head_timeout: Duration::from_secs(30), write_timeout: Duration::from_secs(30) }
    }
}

/// Serves until `stop` turns true, then completes the requests in flight.
///
/// For each new connection, `admit` takes its address and returns a caller, which each of its requests carries as an
/// extension, and a room, which is held until the connection ends. If it returns `None`, the connection is closed.
pub async fn serve<Caller, Room>(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    tls: Option<TlsAcceptor>,
    admit: impl Fn(IpAddr) -> Option<(Caller, Room)>,
    mut stop: watch::Receiver<bool>,
) where
    Caller: Clone + Send + Sync + 'static,
    Room: Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let (ending, mut open) = (GracefulShutdown::new(), JoinSet::new());
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        while open.try_join_next().is_some() {}
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; trying again");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some((caller, room)) = admit(address.ip()) else { continue };
        let _ = stream.set_nodelay(true);
        let (service, tls, watcher) = (service.clone(), tls.clone(), ending.watcher());
        open.spawn(async move {
            let _room = room;
            let stream = Impatient::new(stream, limits.write_timeout);
            match tls {
                None => converse(stream, service, caller, limits, watcher).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(limits.head_timeout, tls.accept(stream)).await {
                        converse(stream, service, caller, limits, watcher).await;
                    }
                }
            }
        });
    }
    drop(listener);
    ending.shutdown().await;
}

/// Answers the requests of one connection.
async fn converse<Caller: Clone + Send + Sync + 'static>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: TowerToHyperService<Router>,
    caller: Caller,
    limits: ConnectionLimits,
    watcher: Watcher,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let answer = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(caller.clone());
        service.call(request)
    });
    // The client of a broken connection cannot receive an answer, and nobody else needs to know.
    let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), answer)).await;
}

/// A connection that fails if its peer reads nothing for the write timeout.
struct Impatient {
    stream: TcpStream,
    patience: Duration,
    /// The deadline of the write in progress, if there is one.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, deadline: None }
    }

    fn judge(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let end = Instant::now() + self.patience;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep_until(end)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.judge(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

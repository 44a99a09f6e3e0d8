//! The connections of a server, of which a bounded number is open at once, and of each address. Any more are closed when
//! they come.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::places::{Place, Places};

/// So many connections of strangers to a service are open at once.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Of these, so many from one address.
pub const CONNECTIONS_OF_ADDRESS_MAX: usize = 128;

/// The connections that a listener accepts.
#[derive(Debug)]
pub struct Incoming {
    listener: TcpListener,
    room: Places,
}

impl Incoming {
    /// As many at once as there is room for.
    #[must_use]
    pub fn new(listener: TcpListener, room: Places) -> Self {
        Self { listener, room }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let (stream, address) = match ready!(self.listener.poll_accept(context)) {
                Ok(accepted) => accepted,
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            if let Some(room) = self.room.take(Some(address.ip())) {
                let connection = stream.set_nodelay(true).map(|()| Connection { stream, _room: room });
                return Poll::Ready(Some(connection));
            }
        }
    }
}

/// A connection, which has its place until it is closed.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    _room: Place,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;
    use tokio_stream::StreamExt;

    #[tokio::test]
    async fn one_more_connection_than_there_is_room_for_is_closed() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut incoming = Incoming::new(listener, Places::new(1, 1, std::sync::Arc::default()));
        let _first = TcpStream::connect(address).await.unwrap();
        let first = incoming.next().await.unwrap().unwrap();
        let second = TcpStream::connect(address).await.unwrap();
        assert!(timeout(Duration::from_millis(300), incoming.next()).await.is_err(), "there is no room");
        second.readable().await.unwrap();
        assert_eq!(second.try_read(&mut [0]).unwrap(), 0, "it is closed");
        drop(first);
        let _third = TcpStream::connect(address).await.unwrap();
        incoming.next().await.unwrap().unwrap();
    }
}

//! The port for wallets: the relayer's fees, and owners' requests to unlock their accounts.

use std::sync::Arc;

use fastpay_program::http::ConnectionLimits;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::quote::{self, QuoteReader};
use crate::unlock::{self, UnlockDesk};

/// The maximum number of connections; further ones are closed at once.
const CONNECTIONS_MAX: usize = 256;

/// Serves until `stop` turns true. Without a desk, it takes no requests to unlock.
pub async fn serve(listener: TcpListener, quotes: QuoteReader, desk: Option<UnlockDesk>, stop: watch::Receiver<bool>) {
    let mut router = quote::router(quotes);
    if let Some(desk) = desk {
        router = router.merge(unlock::router(desk));
    }
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let admit = move |address| Some((address, room.clone().try_acquire_owned().ok()?));
    fastpay_program::http::serve(listener, router, ConnectionLimits::default(), None, admit, stop).await;
}

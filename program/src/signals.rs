//! The signals that ask a program to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A value that turns true at SIGTERM or Ctrl-C. Needs a runtime.
///
/// # Errors
/// The system refuses to register the signals.
pub fn stop_signal() -> io::Result<watch::Receiver<bool>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        stop.send_replace(true);
    });
    Ok(stopped)
}

/// Does `work` until it ends, `stop` turns true, or nobody can turn it any more.
pub async fn until_stopped(mut stop: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => {}
        () = work => {}
    }
}

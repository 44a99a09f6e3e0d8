//! What can go wrong while parts are started, and waiting with a limit.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Why a network does not stand, or does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file of the set-up is not there.
    #[error("{0} is missing; run `make setup`, and `make build` for the programs")]
    Missing(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot use {path}: {error}")]
    Io {
        /// Which one.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// No ports are free.
    #[error("no free block of ports was found")]
    Ports,
    /// A command ended with an error.
    #[error("`{command}` failed ({status}): {output}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// What it said.
        output: String,
    },
    /// A process that should run has ended.
    #[error("{name} ended ({status}); the end of its log:\n{log}")]
    Ended {
        /// Which one.
        name: String,
        /// How.
        status: String,
        /// Its last words.
        log: String,
    },
    /// Something did not happen in time.
    #[error("after {patience:?} still: {last}")]
    TooLate {
        /// How long was waited.
        patience: Duration,
        /// What was found last.
        last: String,
    },
    /// An answer was not what it must be.
    #[error("{0}")]
    Wrong(String),
}

impl Failure {
    /// An answer that cannot be, or an error of a library, with what was tried.
    pub fn wrong(what: impl Display) -> Self {
        Self::Wrong(what.to_string())
    }
}

/// Asks `probe` until it has a value, and says what it last found where it never has.
///
/// # Errors
/// [`Failure::TooLate`].
pub async fn wait_for<T, P, F>(patience: Duration, mut probe: P) -> Result<T, Failure>
where
    P: FnMut() -> F,
    F: Future<Output = Result<T, String>>,
{
    let until = Instant::now() + patience;
    let mut pause = Duration::from_millis(10);
    loop {
        match probe().await {
            Ok(value) => return Ok(value),
            Err(last) if Instant::now() >= until => return Err(Failure::TooLate { patience, last }),
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// The outcome of `work`, or a failure after `patience`.
///
/// # Errors
/// [`Failure::TooLate`].
pub async fn within<T>(patience: Duration, what: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
    let late = |_| Failure::TooLate { patience, last: what.to_owned() };
    tokio::time::timeout(patience, work).await.map_err(late)
}

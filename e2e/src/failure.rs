//! Errors of starting and watching programs, and waiting with a time limit.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fastpay_testkit::NoPort;

/// Why a network cannot be started, or fails.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file of the set-up is missing.
    #[error("{0} is missing; run `make setup`, and `make build` for the programs")]
    Missing(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// No ports are free.
    #[error(transparent)]
    Ports(#[from] NoPort),
    /// A command ended with an error.
    #[error("`{command}` failed ({status}): {output}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status.
        status: String,
        /// Its output.
        output: String,
    },
    /// A process that should run has ended.
    #[error("{name} ended ({status}); the end of its log:\n{log}")]
    Ended {
        /// The name of the process.
        name: String,
        /// Its exit status.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// Something did not happen in time.
    #[error("after {patience:?} still: {last}")]
    TooLate {
        /// The time limit.
        patience: Duration,
        /// The last state found.
        last: String,
    },
    /// An unexpected answer.
    #[error("{0}")]
    Wrong(String),
}

impl Failure {
    /// An unexpected answer, or an error of a library.
    pub fn wrong(what: impl Display) -> Self {
        Self::Wrong(what.to_string())
    }
}

/// Nothing that a test waits for takes this long, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Retries `probe` until it returns a value. The error contains the last reason.
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

/// The result of `work`, or an error after `patience`.
///
/// # Errors
/// [`Failure::TooLate`].
pub async fn within<T>(patience: Duration, what: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
    let late = |_| Failure::TooLate { patience, last: what.to_owned() };
    tokio::time::timeout(patience, work).await.map_err(late)
}

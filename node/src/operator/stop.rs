//! Stops the node of a member that has left, for good (`fastpay-node leave --stop`).
//!
//! ```text
//!  nobody needs the node any more ─► `left.json` on disk ─► the node sees it, and ends ─► its folder is free: stopped
//! ```
//! The file remains, with the report of why the node may end. While it is there, the node ends with exit code 0 right
//! after each start, so no supervisor brings it back. Both the command and the node can be killed at any time: the
//! command is repeated.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_program::files;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::leave::{LeaveError, LeaveReport};
use crate::authority::storage::{DataFolder, StorageError};

/// The file in the data folder.
const FILE: &str = "left.json";
/// The interval at which a node looks for the file.
const LOOK: Duration = Duration::from_secs(1);
/// A node has this long to finish what it has begun, as under systemd (`TimeoutStopSec`).
const END_MAX: Duration = Duration::from_secs(120);

fn path(data: &Path) -> PathBuf {
    data.join(FILE)
}

/// Why the node was to be stopped, if it was.
pub(super) fn told(data: &Path) -> Result<Option<LeaveReport>, LeaveError> {
    let read = files::read(&path(data)).and_then(|found| match found {
        None => Ok(None),
        Some(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
    });
    read.map_err(|error| LeaveError::Mark { path: path(data), error })
}

/// Tells the node that it is to end. Returns once that is on disk.
pub(super) fn tell(data: &Path, report: &LeaveReport) -> Result<(), LeaveError> {
    let bytes = serde_json::to_vec_pretty(report).map_err(io::Error::from);
    let written = bytes.and_then(|bytes| files::replace(&path(data), &bytes));
    written.map_err(|error| LeaveError::Mark { path: path(data), error })
}

/// Waits until the node that was told so has ended. Returns whether it has.
pub(super) async fn wait_for_end(data: &Path) -> Result<bool, LeaveError> {
    let end = Instant::now() + END_MAX;
    loop {
        match DataFolder::hold(data) {
            Ok(_) => return Ok(true),
            Err(StorageError::InUse { .. }) if Instant::now() >= end => return Ok(false),
            Err(StorageError::InUse { .. }) => tokio::time::sleep(LOOK).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Turns true when `stop` does, or once the operator has had the node end for good.
pub(super) fn or_left(data: PathBuf, mut stop: watch::Receiver<bool>) -> watch::Receiver<bool> {
    let (ends, ended) = watch::channel(false);
    tokio::spawn(async move {
        while !has_left(&data) && timeout(LOOK, stop.wait_for(|stop| *stop)).await.is_err() {}
        ends.send_replace(true);
    });
    ended
}

/// Whether the node with this data folder is to end.
pub(super) fn is_told(data: &Path) -> bool {
    path(data).exists()
}

/// The same. Says so in the log.
#[must_use]
pub fn has_left(data: &Path) -> bool {
    let is_there = is_told(data);
    if is_there {
        tracing::warn!(file = %path(data).display(), "this authority has left the committee, and nobody needs its node: it ends, and does not start again while this file is there");
    }
    is_there
}

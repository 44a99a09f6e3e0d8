//! Locks of folders, by which at most one program at a time changes what is in them. The system releases a lock when its
//! process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::files;

/// The lock file of a folder, which is never removed.
pub const LOCK_FILE: &str = "lock";
const POLL: Duration = Duration::from_millis(20);

/// A lock, held while it lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a folder cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another program holds the lock.
    #[error("another program is using {0}; wait until it has finished and try again")]
    Busy(PathBuf),
    /// The file system failed.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl Lock {
    /// Takes the lock of `folder`, which it creates if missing. Waits up to `patience` for another holder.
    ///
    /// # Errors
    /// [`LockError::Busy`] if another program holds it all that time.
    pub async fn acquire(folder: &Path, patience: Duration) -> Result<Self, LockError> {
        let failed = |error| LockError::Io { path: folder.into(), error };
        files::create_folder(folder).map_err(failed)?;
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(failed)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => {
                    // The last holder may have been killed before it synced what this one relies on.
                    files::sync_folder(folder).map_err(failed)?;
                    return Ok(Self { _file: file });
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => sleep(POLL).await,
                Err(TryLockError::WouldBlock) => return Err(LockError::Busy(path)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_holder_waits_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("account");
        let first = Lock::acquire(&path, Duration::ZERO).await.unwrap();
        assert!(matches!(Lock::acquire(&path, Duration::ZERO).await, Err(LockError::Busy(_))));
        let waiting = tokio::spawn({
            let path = path.clone();
            async move { Lock::acquire(&path, Duration::from_secs(20)).await.is_ok() }
        });
        sleep(Duration::from_millis(60)).await;
        drop(first);
        assert!(waiting.await.unwrap());
    }
}

//! Locks by which at most one command at a time changes one account's orders, one key's transactions or the wallet's
//! own files. The system releases a lock when its process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use fastpay_program::files;
use tokio::time::{Instant, sleep};

use super::error::FolderError;

/// The lock file of a folder, which is never removed.
pub(crate) const FILE: &str = "lock";
const POLL: Duration = Duration::from_millis(20);

/// A lock, held while it lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `folder`, which it creates if missing. Waits up to `patience` for another holder.
    ///
    /// # Errors
    /// [`FolderError::Busy`] if another command holds it all that time.
    pub async fn acquire(folder: &Path, patience: Duration) -> Result<Self, FolderError> {
        let failed = |error| FolderError::io(folder, error);
        files::create_folder(folder).map_err(failed)?;
        let path = folder.join(FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(failed)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => {
                    // The last holder may have been killed before it synced what this command relies on.
                    files::sync_folder(folder).map_err(failed)?;
                    return Ok(Self { _file: file });
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => sleep(POLL).await,
                Err(TryLockError::WouldBlock) => return Err(FolderError::Busy { path }),
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
        assert!(matches!(Lock::acquire(&path, Duration::ZERO).await, Err(FolderError::Busy { .. })));
        let waiting = tokio::spawn({
            let path = path.clone();
            async move { Lock::acquire(&path, Duration::from_secs(20)).await.is_ok() }
        });
        sleep(Duration::from_millis(60)).await;
        drop(first);
        assert!(waiting.await.unwrap());
    }
}

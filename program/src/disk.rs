//! The file operations of a journal, as a trait: production uses [`RealDisk`]; tests use a disk that fills up, fails to
//! sync and loses power.
//!
//! Invariant: data survives a power cut once [`files::replace`] or [`SegmentFile::sync`] has returned for it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::files;

/// The file operations that a journal uses.
pub trait Disk: Send + Sync {
    /// The names of all entries of a folder, in any order.
    ///
    /// # Errors
    /// Any of the file system, here and below.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Opens an existing file to read and write.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn SegmentFile>>;

    /// Creates or replaces a whole small file; see [`files::replace`].
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// The number of bytes that are free for this process on the folder's file system.
    fn free_bytes(&self, folder: &Path) -> io::Result<u64>;

    /// Whether a read may take long. Such a read runs on a separate thread.
    fn is_slow(&self) -> bool {
        true
    }
}

/// One open file, read and written at given offsets (in bytes) by any thread.
pub trait SegmentFile: Send + Sync {
    /// The file's length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` from `offset`, or fails.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, extending the file as needed. Not durable before `sync`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file to `length` bytes. Not durable before `sync`.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes all writes so far durable, with the file's length.
    fn sync(&self) -> io::Result<()>;
}

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(folder)?
            // A name that is not UTF-8 is not one of ours; the lossy form cannot become one.
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn SegmentFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        files::replace(path, bytes)
    }

    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(folder)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

impl SegmentFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_disk_says_how_much_of_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        assert!(RealDisk.free_bytes(folder.path()).unwrap() > 0);
        assert!(RealDisk.free_bytes(&folder.path().join("nowhere")).is_err());
    }
}

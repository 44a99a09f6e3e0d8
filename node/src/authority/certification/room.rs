//! Leaves the disk reserve to the journals. An archive on their disk writes segments, states and cuts only into what is
//! free beyond the reserve; votes and certificates are small, and are always written. On a disk of its own it may fill it.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fastpay_program::disk::{Disk, RealDisk};

use super::archive::{Archive, ArchiveError};
use crate::authority::config::Config;

/// The journals beside which an archive may be.
#[derive(Clone, Debug)]
pub(super) struct JournalsDisk {
    data: PathBuf,
    reserve: u64,
}

impl Archive {
    /// The same archive, which leaves the reserve to this authority's journals.
    pub(super) fn beside(self, config: &Config) -> Self {
        let (data, reserve) = (config.data.clone(), config.limits.disk_reserve_bytes);
        Self { journals: Some(JournalsDisk { data, reserve }), ..self }
    }

    /// How many bytes may be written; None if there is no limit but the disk's own.
    ///
    /// # Errors
    /// If the disk does not say.
    pub(super) fn room(&self) -> Result<Option<u64>, ArchiveError> {
        let Some(JournalsDisk { data, reserve }) = &self.journals else { return Ok(None) };
        let failed = |error| ArchiveError::Io { path: self.folder.clone(), error };
        if device(&self.folder).map_err(failed)? != device(data).map_err(failed)? {
            return Ok(None);
        }
        let free = RealDisk.free_bytes(&self.folder).map_err(failed)?;
        Ok(Some(free.saturating_sub(*reserve)))
    }

    /// About as much as the next number needs, by what this one has: its state, and its segment twice, once as a peer
    /// shows it.
    pub(super) fn needed_after(&self, number: u64) -> u64 {
        let length = |path: PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let segment = length(self.segment_path(number)).saturating_mul(2);
        length(self.state_path(number)).saturating_add(segment)
    }

    /// Checks that so many bytes may be written.
    ///
    /// # Errors
    /// [`ArchiveError::NoRoom`].
    pub(super) fn check_room(&self, needed: u64) -> Result<(), ArchiveError> {
        match self.room()? {
            Some(room) if room < needed => Err(self.no_room(needed.saturating_sub(room))),
            _ => Ok(()),
        }
    }

    pub(super) fn no_room(&self, lacking: u64) -> ArchiveError {
        let reserve = self.journals.as_ref().map_or(0, |journals| journals.reserve);
        ArchiveError::NoRoom { folder: self.folder.clone(), reserve, lacking }
    }
}

fn device(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.dev())
}

/// Passes on at most so many bytes.
pub(super) struct Limited<'a> {
    pub inner: &'a mut dyn Write,
    pub left: u64,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let written = self.inner.write(bytes.get(..most).unwrap_or_default())?;
        self.left = self.left.saturating_sub(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_a_byte_more_is_written_than_there_is_room() {
        for (left, fits) in [(0, false), (4, false), (5, true)] {
            let mut inner = Vec::new();
            let written = Limited { inner: &mut inner, left }.write_all(b"12345");
            match written {
                Ok(()) => assert!(fits),
                Err(error) => assert!(!fits && error.kind() == io::ErrorKind::StorageFull),
            }
            assert_eq!(inner.len() as u64, left);
        }
        Limited { inner: &mut Vec::new(), left: 0 }.write_all(b"").unwrap();
    }

    #[test]
    fn an_archive_on_another_disk_than_the_journals_may_fill_it() {
        // The kernel's file systems are others than that of temporary files.
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), PathBuf::from("/proc"));
        let archive = |data: &Path, reserve| Archive {
            journals: Some(JournalsDisk { data: data.to_owned(), reserve }),
            ..Archive::new(folder.path())
        };
        assert_eq!(Archive::new(folder.path()).room().unwrap(), None);
        assert_eq!(archive(&elsewhere, u64::MAX).room().unwrap(), None);
        assert!(archive(folder.path(), 0).room().unwrap().unwrap() > 0);
        let full = archive(folder.path(), u64::MAX);
        assert_eq!(full.room().unwrap(), Some(0));
        full.check_room(0).unwrap();
        let error = full.check_room(7).unwrap_err();
        assert!(matches!(error, ArchiveError::NoRoom { reserve: u64::MAX, lacking: 7, .. }), "{error}");
    }
}

//! The folder of Closings: of the newest epochs that ended, this authority's own and those of the other members.
//!
//! A file is there as a whole or not at all, and is on disk before it is served. It is named by its epoch and its member.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fastpay_core::handover::{CLOSING_ENTRIES_MAX, ReportedEntry, SignedClosing};
use fastpay_core::{AuthorityName, Epoch};
use fastpay_program::disk::{Disk, RealDisk};
use fastpay_program::files;
use fastpay_rpc::{ARCHIVE_PART_BYTES, ArchivePart};

const SUFFIX: &str = ".closing";
/// Those of so many epochs are kept: a member that was away while two began still joins the first, and closes it.
const EPOCHS_KEPT: u64 = 2;

/// A Closing's epoch and member.
pub(super) type Author = (Epoch, AuthorityName);

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Closings {
    folder: PathBuf,
    /// The bytes that stay free on the disk, for the journals.
    reserve: u64,
}

impl Closings {
    /// The Closings in a data folder, on whose disk `reserve` bytes stay free.
    #[must_use]
    pub fn of(data: &Path, reserve: u64) -> Self {
        Self { folder: data.join("closings"), reserve }
    }

    /// The file of a Closing, whether or not it is there.
    #[must_use]
    pub fn path(&self, (epoch, authority): (Epoch, AuthorityName)) -> PathBuf {
        self.folder.join(format!("{epoch}-{authority}{SUFFIX}"))
    }

    pub(super) fn has(&self, author: Author) -> bool {
        self.path(author).is_file()
    }

    /// Makes the folder, and removes what was being written to it when its program ended. It has one writer.
    pub(super) fn create(&self) -> io::Result<()> {
        files::create_folder(&self.folder)?;
        files::remove_temporary(&self.folder)
    }

    /// How many bytes a Closing may take: it leaves the reserve free.
    pub(super) fn room(&self) -> io::Result<u64> {
        Ok(RealDisk.free_bytes(&self.folder)?.saturating_sub(self.reserve))
    }

    /// A file without a name on the folder's disk.
    pub(super) fn nameless(&self) -> io::Result<File> {
        files::nameless(&self.folder)
    }

    /// Keeps a Closing. Returns once it is on disk; before, nobody sees any of it.
    pub(super) fn keep(&self, author: Author, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        files::replace_with(&self.path(author), write)
    }

    /// Reads a Closing's statement, and no more of it.
    pub(super) fn statement(&self, author: Author) -> io::Result<SignedClosing> {
        SignedClosing::read_statement(&mut BufReader::new(File::open(self.path(author))?))
    }

    /// Reads a Closing with its entries. Nothing of it is checked.
    pub(super) fn read(&self, author: Author) -> io::Result<(SignedClosing, Vec<ReportedEntry>)> {
        SignedClosing::read(&mut BufReader::new(File::open(self.path(author))?), CLOSING_ENTRIES_MAX)
    }

    /// Removes a Closing that the disk has damaged: it is fetched again.
    pub(super) fn drop(&self, author: Author) -> io::Result<()> {
        files::remove(&self.path(author))
    }

    /// Removes those of epochs that are too old for anybody, before `current`.
    pub(super) fn forget(&self, current: Epoch) -> io::Result<()> {
        let oldest = current.0.saturating_sub(EPOCHS_KEPT);
        for name in files::names(&self.folder)? {
            let epoch = name.strip_suffix(SUFFIX).and_then(|name| name.split_once('-'));
            if epoch.and_then(|(epoch, _)| epoch.parse().ok()).is_some_and(|epoch: u64| epoch < oldest) {
                files::remove(&self.folder.join(name))?;
            }
        }
        Ok(())
    }

    /// A part of a Closing, from an offset on; `None` if it is not there.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read_part(&self, author: (Epoch, AuthorityName), offset: u64) -> io::Result<Option<ArchivePart>> {
        let mut file = match File::open(self.path(author)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let (length, mut bytes) = (file.metadata()?.len(), Vec::new());
        // A file system knows no place far beyond the end.
        file.seek(SeekFrom::Start(offset.min(length)))?;
        file.take(ARCHIVE_PART_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(Some(ArchivePart { bytes: bytes.into(), length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_is_kept_as_a_whole_and_those_of_two_epochs_are() {
        let folder = tempfile::tempdir().unwrap();
        let closings = Closings::of(folder.path(), 0);
        closings.create().unwrap();
        let author = |epoch| (Epoch(epoch), AuthorityName([7; 32]));
        let failing = closings.keep(author(0), |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(failing.is_err() && !closings.has(author(0)));
        // A program that was killed meanwhile left a file.
        let left = closings.folder.join(".tmp-left");
        std::fs::write(&left, "half").unwrap();
        closings.create().unwrap();
        assert!(!left.exists());
        assert_eq!(Closings { reserve: u64::MAX, ..closings.clone() }.room().unwrap(), 0);
        assert_eq!(closings.read_part(author(0), 0).unwrap(), None);
        for epoch in 0..12 {
            closings.keep(author(epoch), |file| file.write_all(b"whole")).unwrap();
        }
        let part = |offset| closings.read_part(author(11), offset).unwrap().unwrap();
        assert_eq!((&part(0).bytes[..], part(0).length), (&b"whole"[..], 5));
        assert_eq!((&part(3).bytes[..], &part(u64::MAX).bytes[..]), (&b"le"[..], &b""[..]));
        closings.forget(Epoch(12)).unwrap();
        let kept: Vec<u64> = (0..12).filter(|epoch| closings.has(author(*epoch))).collect();
        assert_eq!(kept, [10, 11]);
        closings.forget(Epoch(0)).unwrap();
        assert!(closings.has(author(10)));
    }
}

//! What the folder keeps of a number that is in the store alone: its header and its index, so that clients' reads need
//! only the runs that they show from the store.
//!
//! ```text
//!  index built ─► certificate.json renamed to stored.json ─► segment, state, cut removed
//!                 the number has left the folder              after a kill they are compared, and go later
//! ```
//! The header is the certificate under another name: a number is complete in the folder where its `certificate.json`
//! is, and only there, at each moment. Header or index may be missing, as in a folder that was restored: then they are
//! made anew from the store, one number at a time, by the thread that uploads, and never for a client's request. A
//! header of the store is kept only if the next one names its digest, and an index only if it was built of the
//! certified segment.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use fastpay_core::Domain;
use fastpay_core::checkpoint::{ARCHIVED_HEADERS_MAX, Checkpoint};
use fastpay_program::files;
use tempfile::NamedTempFile;

use super::CertificateFile;
use super::archive::{Archive, ArchiveError, CERTIFICATE, Defect, SEGMENT, number_of, read_json, remove, unreadable};
use super::index::SegmentIndex;
use super::store::{Store, StoreError};

const STORED: &str = "stored.json";
const INDEX: &str = "index";

impl Archive {
    pub(super) fn index_path(&self, number: u64) -> PathBuf {
        self.path(number, INDEX)
    }

    /// Builds the index of a segment of the folder. Returns whether there was none.
    ///
    /// # Errors
    /// If the segment is not the checkpoint's, or a file cannot be read or written.
    pub fn index(&self, checkpoint: &Checkpoint) -> Result<bool, ArchiveError> {
        let (index, segment) = (self.index_path(checkpoint.number), self.segment_path(checkpoint.number));
        match SegmentIndex::open(&index, checkpoint.segment) {
            Ok(Some(_)) => Ok(false),
            Ok(None) => {
                let built = SegmentIndex::build(&index, &segment, checkpoint.segment);
                built.map(|()| true).map_err(|error| unreadable(&segment, error))
            }
            Err(error) => Err(ArchiveError::Io { path: index, error }),
        }
    }

    /// Removes an index that is wrong.
    pub(super) fn drop_index(&self, number: u64) -> Result<(), ArchiveError> {
        remove(self.index_path(number))
    }

    /// Makes a number, whose index is there, one that is in the store alone. Its other files may go then.
    pub(super) fn leave(&self, number: u64) -> Result<(), ArchiveError> {
        let path = self.certificate_path(number);
        let renamed = fs::rename(&path, self.path(number, STORED)).and_then(|()| files::sync_folder(&self.folder));
        match renamed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ArchiveError::Io { path, error }),
            _ => Ok(()),
        }
    }

    /// The certified checkpoint of a number, which may be skipped or in the store alone. It is not checked again.
    pub(crate) fn checkpoint(&self, number: u64) -> Result<Checkpoint, ArchiveError> {
        match self.certificate(number) {
            Err(ArchiveError::Skipped { .. }) => Ok(self.skipped_certificate(number)?.checkpoint),
            Err(missing @ ArchiveError::Missing(_)) => match self.header(number) {
                Err(ArchiveError::Missing(_)) => Err(missing),
                header => header,
            },
            certificate => Ok(certificate?.checkpoint),
        }
    }

    fn header(&self, number: u64) -> Result<Checkpoint, ArchiveError> {
        Ok(read_json::<CertificateFile>(&self.path(number, STORED))?.checkpoint)
    }

    /// The numbers that clients may read and of which header or index is missing, newest first. Those with a
    /// certificate have all in the folder; those from the first skipped one on are not in the store yet.
    pub(super) fn lacking_past(&self) -> Result<Vec<u64>, ArchiveError> {
        let failed = |error| ArchiveError::Io { path: self.folder.clone(), error };
        let names = files::names(&self.folder).map_err(failed)?;
        let numbers = |kind| names.iter().filter_map(move |name| number_of(name, kind));
        let first_skipped = self.skipped()?.first().copied().unwrap_or(u64::MAX);
        let certified: BTreeSet<u64> = numbers(CERTIFICATE).filter(|number| *number < first_skipped).collect();
        let Some(newest) = certified.last() else { return Ok(Vec::new()) };
        let indexed: BTreeSet<u64> = numbers(INDEX).collect();
        let past: BTreeSet<u64> = numbers(STORED).filter(|number| indexed.contains(number)).collect();
        let lowest = newest.saturating_add(1).saturating_sub(ARCHIVED_HEADERS_MAX as u64).max(1);
        Ok((lowest..*newest).rev().filter(|number| !certified.contains(number) && !past.contains(number)).collect())
    }

    /// Makes the headers and indices that are missing anew from the store. One whose segment is wrong there leaves the
    /// others to be made.
    pub(super) async fn restore_past(&self, store: &Store, domain: &Domain) -> Result<(), ArchiveError> {
        let mut wrong = None;
        for number in self.lacking_past()? {
            let checkpoint = match self.header(number) {
                Err(ArchiveError::Missing(_)) => self.restore_header(number, store, domain).await?,
                header => header?,
            };
            match self.restore_index(&checkpoint, store).await {
                Ok(()) => tracing::info!(number, %store, "indexed a segment of the archive's store"),
                Err(error @ (ArchiveError::WrongInStore { .. } | ArchiveError::Store(StoreError::Missing(_)))) => {
                    tracing::error!(%error, "the archive's store cannot be indexed");
                    wrong.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    async fn restore_header(&self, number: u64, store: &Store, domain: &Domain) -> Result<Checkpoint, ArchiveError> {
        let next = self.checkpoint(number.saturating_add(1))?;
        let (path, bytes) = (self.path(number, STORED), store.certificate(number).await?);
        let wrong = |defect| ArchiveError::WrongInStore { object: store.object(number, CERTIFICATE), defect };
        let file: CertificateFile =
            serde_json::from_slice(&bytes).map_err(|error| wrong(Defect::Damaged(error.to_string())))?;
        if domain.checkpoint_digest(&file.checkpoint) != next.previous {
            return Err(wrong(Defect::OtherCheckpoint));
        }
        files::replace(&path, &bytes).map_err(|error| ArchiveError::Io { path, error })?;
        Ok(file.checkpoint)
    }

    async fn restore_index(&self, checkpoint: &Checkpoint, store: &Store) -> Result<(), ArchiveError> {
        let (number, path) = (checkpoint.number, self.index_path(checkpoint.number));
        let failed = |error| ArchiveError::Io { path: path.clone(), error };
        let mut segment = NamedTempFile::new_in(&self.folder).map_err(failed)?;
        let mut writer = BufWriter::new(&mut segment);
        store.download(number, SEGMENT, &mut writer).await?.map_err(failed)?;
        writer.flush().map_err(failed)?;
        drop(writer);
        SegmentIndex::build(&path, segment.path(), checkpoint.segment).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                let (object, defect) = (store.object(number, SEGMENT), Defect::Damaged(error.to_string()));
                ArchiveError::WrongInStore { object, defect }
            }
            _ => failed(error),
        })
    }
}

//! Copies a journal, also while its owner writes to it.
//!
//! A journal only grows: bytes of complete frames never change, and a segment that is followed by another one is
//! complete. So the bytes up to a measured length are the same whenever they are read. The last frame may be
//! incomplete; opening the copy cuts it off, as after a crash.

use super::error::JournalError;
use super::format::{SEGMENT_HEADER_BYTES, segment_name};
use super::{io_error, recovery};
use fastpay_core::JournalPosition;
use fastpay_program::disk::RealDisk;
use fastpay_program::files;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const OWNER_ONLY: u32 = 0o600;

/// The files of a journal, with their lengths at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalExtent {
    folder: PathBuf,
    /// Each segment's start and its file's length in bytes, ascending. Never empty.
    segments: Vec<(u64, u64)>,
}

impl JournalExtent {
    /// Measures the journal in a folder.
    ///
    /// # Errors
    /// `NotFound`, `SegmentName`, `Io`.
    pub fn measure(folder: &Path) -> Result<Self, JournalError> {
        let starts = recovery::list_segments(&RealDisk, folder)?;
        if starts.is_empty() {
            return Err(JournalError::NotFound { folder: folder.to_owned() });
        }
        let measured = starts.into_iter().map(|start| {
            let path = folder.join(segment_name(start));
            let length = path.metadata().map_err(|source| io_error("read the length of", &path, source))?.len();
            Ok((start, length))
        });
        Ok(Self { folder: folder.to_owned(), segments: measured.collect::<Result<_, JournalError>>()? })
    }

    /// The number of segments.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The length of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|(_, length)| length).sum()
    }

    /// The start of the last segment.
    #[must_use]
    pub fn last_segment(&self) -> JournalPosition {
        JournalPosition(self.last().0)
    }

    /// The position after the last byte, which may be inside an incomplete frame.
    #[must_use]
    pub fn end(&self) -> JournalPosition {
        let (start, length) = self.last();
        JournalPosition(start + length.saturating_sub(SEGMENT_HEADER_BYTES as u64))
    }

    fn last(&self) -> (u64, u64) {
        self.segments.last().copied().unwrap_or_default()
    }

    /// Copies the files up to the measured lengths into the existing folder `to`, durably.
    ///
    /// # Errors
    /// `Io`.
    pub fn copy(&self, to: &Path) -> Result<(), JournalError> {
        for (start, length) in &self.segments {
            let (from, to) = (self.folder.join(segment_name(*start)), to.join(segment_name(*start)));
            let source = File::open(&from).map_err(|source| io_error("open the segment", &from, source))?;
            // Sync the original before copying. Otherwise a power cut could lose a vote that the copy has, and the
            // authority could vote for another order.
            source.sync_data().map_err(|source| io_error("sync the segment", &from, source))?;
            let target = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(&to);
            let copied = target.and_then(|mut target| {
                io::copy(&mut source.take(*length), &mut target)?;
                target.sync_all()
            });
            copied.map_err(|source| io_error("write the segment", &to, source))?;
        }
        files::sync_folder(to).map_err(|source| io_error("sync the folder", to, source))
    }

    /// Removes everything from `end` on, durably. A frame must start there, or the journal end. Nobody may use it.
    ///
    /// # Errors
    /// `Io`.
    pub fn cut(&self, end: JournalPosition) -> Result<(), JournalError> {
        let failed = |path: &Path, source| io_error("cut the segment", path, source);
        for (start, length) in self.segments.iter().rev() {
            let path = self.folder.join(segment_name(*start));
            if *start > end.0 {
                fs::remove_file(&path).map_err(|source| failed(&path, source))?;
                continue;
            }
            let kept = SEGMENT_HEADER_BYTES as u64 + (end.0 - start);
            if kept < *length {
                let file = OpenOptions::new().write(true).open(&path);
                let cut = file.and_then(|file| file.set_len(kept).and_then(|()| file.sync_all()));
                cut.map_err(|source| failed(&path, source))?;
            }
            break;
        }
        files::sync_folder(&self.folder).map_err(|source| io_error("sync the folder", &self.folder, source))
    }
}

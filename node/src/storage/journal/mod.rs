//! A shard's journal: an append-only log of records in segment files.
//!
//! Flow: [`JournalWrite::append`] puts a record into the batch in memory and tells its position at
//! once; [`JournalWrite::commit`] writes the batch as one frame with one write and one sync. Readers
//! are cheap clones for other threads and see committed records only. [`Journal::open`] finds the
//! end, cuts off a batch that a crash tore, and refuses anything else that is wrong.
//!
//! Invariants:
//! - A frame is written only after the one before it was synced. So at most the last frame can be
//!   torn, and damage before another frame is never the mark of a crash.
//! - A segment is created, durably, only after the one before it was synced and closed for ever.
//! - After a failed write or sync nothing is accepted any more: the kernel may show bytes that the
//!   disk does not have. For the same reason `open` writes the last frame again before it trusts it.
//! - Nothing that a position from outside can do panics or allocates more than one record.

mod error;
mod format;
mod reader;
mod recovery;
#[cfg(test)]
mod tests;

pub use error::{Damage, JournalError};
pub use format::{BATCH_BYTES_MAX, RECORD_BYTES_MAX};
pub use reader::{JournalReader, RecordStream};
pub use recovery::Recovery;

use super::disk::{Disk, RealDisk, SegmentFile};
use fastpay_core::JournalPosition;
use format::{
    FRAME_HEADER_BYTES, FrameHeader, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader,
    segment_name,
};
use reader::Shared;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a batch's buffer keeps allocated between commits, in bytes.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// The side that owns a journal: one per shard.
pub trait JournalWrite {
    /// Adds a record to the batch, in memory only, and says where it will be once committed.
    ///
    /// # Errors
    /// `RecordTooLarge`, `BatchFull` (commit, then append again), `Poisoned`.
    fn append(&mut self, payload: &[u8]) -> Result<JournalPosition, JournalError>;

    /// Makes all records appended since the last commit durable, all or none. Without any it does
    /// nothing.
    ///
    /// # Errors
    /// `Io`, and from then on `Poisoned`: the batch may or may not be found at the next open, so
    /// nothing of it may be told, and the process should stop.
    fn commit(&mut self) -> Result<(), JournalError>;

    /// The first position after the last committed record: what a checkpoint of all of them states.
    fn end(&self) -> JournalPosition;
}

/// The side that reads committed records, from any thread.
pub trait JournalRead: Send + Sync {
    /// The payload of the record at a position.
    ///
    /// # Errors
    /// `OutOfRange` at or after the end, `BadRecord` if no intact record starts there, `Io`.
    fn read_at(&self, position: JournalPosition) -> Result<Vec<u8>, JournalError>;

    /// The records from a position on, to the end as it is now, each with its own position. The
    /// position is that of a record, or an end that [`JournalWrite::end`] has told earlier. The
    /// stream holds about one record in memory and stops after its first error.
    fn read_from(&self, position: JournalPosition) -> RecordStream;

    /// The first position after the last committed record.
    fn end(&self) -> JournalPosition;
}

/// Sizes that an operator may choose.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// A segment that would grow above so many bytes is followed by another one. A batch is never
    /// split, so a segment with a single large batch can be larger.
    pub segment_bytes_max: u64,
    /// How many segment files the readers of one journal keep open together.
    pub open_files_max: usize,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { segment_bytes_max: 256 << 20, open_files_max: 16 }
    }
}

/// The only writer of a shard's journal.
pub struct Journal {
    options: JournalOptions,
    shared: Arc<Shared>,
    segment: OpenSegment,
    /// One frame in the making: room for its header, then records. Empty without records.
    batch: Vec<u8>,
    batch_records: u32,
    /// The position after the last committed frame.
    end: u64,
    poisoned: bool,
    recovery: Recovery,
}

/// The segment that is written to.
struct OpenSegment {
    start: u64,
    path: PathBuf,
    file: Arc<dyn SegmentFile>,
}

impl Journal {
    /// Creates an empty journal in an existing folder, durably.
    ///
    /// # Errors
    /// `AlreadyExists`, `Io`.
    pub fn create(folder: &Path, options: JournalOptions) -> Result<Self, JournalError> {
        Self::create_on(Arc::new(RealDisk), folder, options)
    }

    /// As [`Journal::create`], on a disk of the caller's choice.
    ///
    /// # Errors
    /// As [`Journal::create`].
    pub fn create_on(disk: Arc<dyn Disk>, folder: &Path, options: JournalOptions) -> Result<Self, JournalError> {
        if !recovery::list_segments(&*disk, folder)?.is_empty() {
            let folder = folder.to_owned();
            return Err(JournalError::AlreadyExists { folder });
        }
        create_segment(&*disk, folder, 0, rand::random())?;
        Self::open_on(disk, folder, options, JournalPosition::default())
    }

    /// Opens a journal. It is read and validated from the segment that holds `validate_from` on, and
    /// must reach there: recovery passes its checkpoint's position, or zero to validate everything.
    /// A torn batch at the very end is cut off, which [`Journal::recovery`] tells.
    ///
    /// # Errors
    /// `NotFound`, `BehindCheckpoint`, `Corrupt`, `SegmentMissing`, `SegmentName`, `ForeignSegment`,
    /// `UnsupportedVersion`: nothing was changed, a person has to decide. `Io`.
    pub fn open(folder: &Path, options: JournalOptions, validate_from: JournalPosition) -> Result<Self, JournalError> {
        Self::open_on(Arc::new(RealDisk), folder, options, validate_from)
    }

    /// As [`Journal::open`], on a disk of the caller's choice.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        folder: &Path,
        options: JournalOptions,
        validate_from: JournalPosition,
    ) -> Result<Self, JournalError> {
        let found = recovery::recover(&*disk, folder, validate_from)?;
        let path = folder.join(segment_name(found.last_start));
        let file = disk.open(&path).map_err(|source| io_error("open the segment", &path, source))?;
        let end = found.recovery.end.0;
        let shared = Shared::new(disk, folder.to_owned(), found.salt, found.starts, end, options.open_files_max);
        Ok(Self {
            options,
            shared: Arc::new(shared),
            segment: OpenSegment { start: found.last_start, path, file },
            batch: Vec::new(),
            batch_records: 0,
            end,
            poisoned: false,
            recovery: found.recovery,
        })
    }

    /// What opening found.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// A handle for other threads.
    pub fn reader(&self) -> JournalReader {
        JournalReader::new(Arc::clone(&self.shared))
    }

    /// Writes the batch as one frame and syncs it.
    fn write_batch(&mut self) -> Result<(), JournalError> {
        let seed = self.shared.seed();
        let Some((head, body)) = self.batch.split_first_chunk_mut::<FRAME_HEADER_BYTES>() else {
            return Ok(());
        };
        *head = FrameHeader::new(seed, self.end, self.batch_records, body).to_bytes();
        let batch_bytes = self.batch.len() as u64;

        let segment_bytes = self.end - self.segment.start;
        if segment_bytes > 0 && segment_bytes + batch_bytes > self.options.segment_bytes_max {
            self.start_segment()?;
        }
        let segment = &self.segment;
        let offset = SEGMENT_HEADER_BYTES as u64 + (self.end - segment.start);
        segment
            .file
            .write_all_at(&self.batch, offset)
            .map_err(|source| io_error("write the segment", &segment.path, source))?;
        segment.file.sync().map_err(|source| io_error("sync the segment", &segment.path, source))?;
        self.end += batch_bytes;
        Ok(())
    }

    /// Follows the current segment by a new one that starts at the end.
    fn start_segment(&mut self) -> Result<(), JournalError> {
        let disk = self.shared.disk();
        let (path, file) = create_segment(disk, self.shared.folder(), self.end, self.shared.salt())?;
        self.shared.add_segment(self.end);
        self.segment = OpenSegment { start: self.end, path, file };
        Ok(())
    }
}

impl JournalWrite for Journal {
    fn append(&mut self, payload: &[u8]) -> Result<JournalPosition, JournalError> {
        if self.poisoned {
            return Err(JournalError::Poisoned);
        }
        if payload.len() > RECORD_BYTES_MAX {
            return Err(JournalError::RecordTooLarge { bytes: payload.len(), bytes_max: RECORD_BYTES_MAX });
        }
        let used = self.batch.len().max(FRAME_HEADER_BYTES);
        if used + RECORD_HEADER_BYTES + payload.len() > BATCH_BYTES_MAX {
            return Err(JournalError::BatchFull { bytes_max: BATCH_BYTES_MAX });
        }
        // Makes room for the frame's header if this is the first record, else does nothing.
        self.batch.resize(used, 0);
        let position = self.end + used as u64;
        let header = RecordHeader::encode(self.shared.seed(), position, payload);
        self.batch.extend_from_slice(&header);
        self.batch.extend_from_slice(payload);
        self.batch_records += 1;
        Ok(JournalPosition(position))
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        if self.poisoned {
            return Err(JournalError::Poisoned);
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        self.write_batch().inspect_err(|_| self.poisoned = true)?;
        self.shared.publish(self.end);
        self.batch.clear();
        self.batch.shrink_to(BUFFER_BYTES_KEPT);
        self.batch_records = 0;
        Ok(())
    }

    fn end(&self) -> JournalPosition {
        JournalPosition(self.end)
    }
}

/// Creates a segment's file with its header, durably, and opens it.
fn create_segment(
    disk: &dyn Disk,
    folder: &Path,
    start: u64,
    salt: u64,
) -> Result<(PathBuf, Arc<dyn SegmentFile>), JournalError> {
    let path = folder.join(segment_name(start));
    let created = disk.replace(&path, &SegmentHeader::new(start, salt).to_bytes()).and_then(|()| disk.open(&path));
    match created {
        Ok(file) => Ok((path, file)),
        Err(source) => Err(io_error("create the segment", &path, source)),
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { action, path: path.to_owned(), source }
}

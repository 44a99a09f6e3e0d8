//! A shard's journal: an append-only log of records in segment files.
//!
//! Flow: [`JournalWrite::append`] puts a record into the batch in memory and returns its position at once;
//! [`JournalWrite::seal`] closes the batch, and [`SealedBatch::commit`] writes it as one frame with one write and one
//! sync, on any thread, while the next batch is being filled. Readers are cheap clones for other threads and see
//! committed records only. [`Journal::open`] finds the end, cuts off a batch that a crash tore, and refuses all other
//! damage.
//!
//! Invariants:
//! - Frames are written in the order in which they were sealed, and none is left out.
//! - A frame is written only after the one before it was synced. So at most the last frame can be
//!   torn, and damage before another frame is never the mark of a crash.
//! - A segment is created, durably, only after the one before it was synced and closed for ever.
//! - After a failed write or sync nothing is accepted any more: the kernel may show bytes that the
//!   disk does not have. For the same reason `open` writes the last frame again before it trusts it.
//! - No position from outside can cause a panic or an allocation of more than one record.

mod copy;
mod error;
mod format;
mod reader;
mod recovery;
#[cfg(test)]
mod tests;
mod writer;

pub use copy::JournalExtent;
pub use error::{Damage, JournalError};
pub use format::{BATCH_BYTES_MAX, RECORD_BYTES_MAX};
pub use reader::{JournalReader, RecordStream};
pub use recovery::Recovery;
pub use writer::Frame;

use fastpay_core::JournalPosition;
use fastpay_program::disk::{Disk, RealDisk};
use format::{FRAME_HEADER_BYTES, RECORD_HEADER_BYTES, RecordHeader, segment_name};
use reader::Shared;
use std::io;
use std::path::Path;
use std::sync::Arc;
use writer::Writer;

/// The owner's side of a journal. There is one owner per shard.
pub trait JournalWrite {
    /// A batch of records that becomes durable together.
    type Batch: SealedBatch;

    /// Adds a record to the batch, in memory only, and returns its position once committed.
    ///
    /// # Errors
    /// `RecordTooLarge`, `BatchFull` (seal, then append again), `Poisoned`.
    fn append(&mut self, payload: &[u8]) -> Result<JournalPosition, JournalError>;

    /// Closes the batch of all records appended since the last one; `None` if there are none. The next record begins
    /// another batch at once.
    ///
    /// # Errors
    /// `Poisoned`.
    fn seal(&mut self) -> Result<Option<Self::Batch>, JournalError>;

    /// Seals the batch and commits it.
    ///
    /// # Errors
    /// As [`SealedBatch::commit`].
    fn commit(&mut self) -> Result<(), JournalError> {
        self.seal()?.map_or(Ok(()), SealedBatch::commit)
    }

    /// The first position after the last sealed batch: the position for a checkpoint that includes all of these
    /// batches, once they are committed.
    fn end(&self) -> JournalPosition;
}

/// A batch that is complete and not yet durable.
pub trait SealedBatch: Send {
    /// Makes the records durable, all or none. Commit batches in the order in which they were sealed.
    ///
    /// # Errors
    /// `Io`, and from then on `Poisoned`: the next open may or may not find the batch, so nothing of it may be
    /// published, and the process should stop. `Poisoned` also if an earlier batch was not committed.
    fn commit(self) -> Result<(), JournalError>;
}

/// The readers' side of a journal: committed records, from any thread.
pub trait JournalRead: Send + Sync {
    /// The payload of the record at a position.
    ///
    /// # Errors
    /// `OutOfRange` at or after the end, `BadRecord` if no intact record starts there, `Io`.
    fn read_at(&self, position: JournalPosition) -> Result<Vec<u8>, JournalError>;

    /// The records from a position on, up to the present end, each with its own position. The position must be that of
    /// a record, or one that [`JournalWrite::end`] returned earlier. The stream holds about one record in memory and
    /// stops after its first error.
    fn read_from(&self, position: JournalPosition) -> RecordStream;

    /// The first position after the last committed record.
    fn end(&self) -> JournalPosition;
}

/// Sizes that an operator may choose.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// A segment that would grow above this many bytes is followed by another one. A batch is never split, so a segment
    /// with a single large batch can be larger.
    pub segment_bytes_max: u64,
    /// The maximum number of segment files that the readers of one journal keep open together.
    pub open_files_max: usize,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { segment_bytes_max: 256 << 20, open_files_max: 16 }
    }
}

/// The only writer of a shard's journal.
pub struct Journal {
    shared: Arc<Shared>,
    writer: Arc<Writer>,
    /// The frame being filled: room for its header, then records. Empty without records.
    batch: Vec<u8>,
    batch_records: u32,
    /// The position after the last sealed frame.
    end: u64,
    recovery: Recovery,
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
        writer::create_segment(&*disk, folder, 0, rand::random())?;
        Self::open_on(disk, folder, options, JournalPosition::default())
    }

    /// Opens a journal. It reads and validates the journal from the segment that contains `validate_from` on, and fails
    /// if the journal ends before: recovery passes its checkpoint's position, or zero to validate everything. It cuts
    /// off a torn batch at the very end, which [`Journal::recovery`] reports.
    ///
    /// # Errors
    /// `NotFound`, `BehindCheckpoint`, `Corrupt`, `SegmentMissing`, `SegmentName`, `ForeignSegment`,
    /// `UnsupportedVersion`: nothing was changed, and an operator has to decide. `Io`.
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
        let shared = Arc::new(shared);
        let segment = writer::OpenSegment { start: found.last_start, path, file };
        let writer = Arc::new(Writer::new(Arc::clone(&shared), options, segment, end));
        Ok(Self { shared, writer, batch: Vec::new(), batch_records: 0, end, recovery: found.recovery })
    }

    /// The result of opening the journal.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The number of free bytes on the journal's disk.
    ///
    /// # Errors
    /// The error of the disk.
    pub fn disk_free(&self) -> io::Result<u64> {
        self.shared.disk().free_bytes(self.shared.folder())
    }

    /// A reader for other threads.
    pub fn reader(&self) -> JournalReader {
        JournalReader::new(Arc::clone(&self.shared))
    }
}

impl JournalWrite for Journal {
    type Batch = Frame;

    fn append(&mut self, payload: &[u8]) -> Result<JournalPosition, JournalError> {
        if self.writer.is_poisoned() {
            return Err(JournalError::Poisoned);
        }
        if payload.len() > RECORD_BYTES_MAX {
            return Err(JournalError::RecordTooLarge { bytes: payload.len(), bytes_max: RECORD_BYTES_MAX });
        }
        let used = self.batch.len().max(FRAME_HEADER_BYTES);
        if used + RECORD_HEADER_BYTES + payload.len() > BATCH_BYTES_MAX {
            return Err(JournalError::BatchFull { bytes_max: BATCH_BYTES_MAX });
        }
        if self.batch.is_empty() {
            self.batch = self.writer.take_buffer();
            self.batch.resize(FRAME_HEADER_BYTES, 0);
        }
        let position = self.end + used as u64;
        let header = RecordHeader::encode(self.shared.seed(), position, payload);
        self.batch.extend_from_slice(&header);
        self.batch.extend_from_slice(payload);
        self.batch_records += 1;
        Ok(JournalPosition(position))
    }

    fn seal(&mut self) -> Result<Option<Frame>, JournalError> {
        if self.writer.is_poisoned() {
            return Err(JournalError::Poisoned);
        }
        if self.batch.is_empty() {
            return Ok(None);
        }
        let (bytes, records) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.batch_records));
        let start = self.end;
        self.end += bytes.len() as u64;
        Ok(Some(Frame::new(Arc::clone(&self.writer), start, records, bytes)))
    }

    fn end(&self) -> JournalPosition {
        JournalPosition(self.end)
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { action, path: path.to_owned(), source }
}

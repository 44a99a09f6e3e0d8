//! Writes sealed batches, one after the other, on whichever thread commits them.

use super::error::JournalError;
use super::format::{FRAME_HEADER_BYTES, FrameHeader, SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::reader::Shared;
use super::{JournalOptions, SealedBatch, io_error};
use fastpay_program::disk::{Disk, SegmentFile};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest buffer that is kept for a later batch, in bytes.
const BUFFER_BYTES_KEPT: usize = 4 << 20;
/// The number of kept buffers: one is filled while another one is written, and one may wait between them.
const BUFFERS_KEPT: usize = 3;

/// A sealed batch: one write and one sync.
pub struct Frame {
    writer: Arc<Writer>,
    /// The position of the frame.
    start: u64,
    records: u32,
    /// Room for the frame's header, then its records.
    bytes: Vec<u8>,
}

/// The shared parts with which all frames of a journal are written.
pub(super) struct Writer {
    shared: Arc<Shared>,
    options: JournalOptions,
    /// Held while a frame is written.
    tail: Mutex<Tail>,
    /// Set after a failed write or sync.
    poisoned: AtomicBool,
    /// Empty buffers with their capacity. The lock is never held during a write.
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// The end of what is written.
struct Tail {
    segment: OpenSegment,
    /// The position after the last committed frame.
    end: u64,
}

/// The segment that is being written.
pub(super) struct OpenSegment {
    pub start: u64,
    pub path: PathBuf,
    pub file: Arc<dyn SegmentFile>,
}

impl Frame {
    pub(super) fn new(writer: Arc<Writer>, start: u64, records: u32, bytes: Vec<u8>) -> Self {
        Self { writer, start, records, bytes }
    }

    /// The number of records in the batch.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }
}

impl SealedBatch for Frame {
    fn commit(mut self) -> Result<(), JournalError> {
        let writer = self.writer;
        let mut tail = lock(&writer.tail);
        // A missing frame would leave a hole, at which the next start would fail.
        if writer.is_poisoned() || tail.end != self.start {
            writer.poisoned.store(true, Ordering::Release);
            return Err(JournalError::Poisoned);
        }
        let written = tail.write(&writer, self.records, &mut self.bytes);
        written.inspect_err(|_| writer.poisoned.store(true, Ordering::Release))?;
        writer.shared.publish(tail.end);
        writer.keep_buffer(self.bytes);
        Ok(())
    }
}

impl Writer {
    pub fn new(shared: Arc<Shared>, options: JournalOptions, segment: OpenSegment, end: u64) -> Self {
        let tail = Mutex::new(Tail { segment, end });
        Self { shared, options, tail, poisoned: AtomicBool::new(false), buffers: Mutex::default() }
    }

    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// An empty buffer, with the capacity of an earlier batch's if there is one.
    pub fn take_buffer(&self) -> Vec<u8> {
        lock(&self.buffers).pop().unwrap_or_default()
    }

    fn keep_buffer(&self, mut buffer: Vec<u8>) {
        let mut buffers = lock(&self.buffers);
        if buffers.len() < BUFFERS_KEPT && buffer.capacity() <= BUFFER_BYTES_KEPT {
            buffer.clear();
            buffers.push(buffer);
        }
    }
}

impl Tail {
    /// Writes a frame and syncs it.
    fn write(&mut self, writer: &Writer, records: u32, bytes: &mut [u8]) -> Result<(), JournalError> {
        let Some((head, body)) = bytes.split_first_chunk_mut::<FRAME_HEADER_BYTES>() else { return Ok(()) };
        *head = FrameHeader::new(writer.shared.seed(), self.end, records, body).to_bytes();
        let frame_bytes = bytes.len() as u64;

        let segment_bytes = self.end - self.segment.start;
        if segment_bytes > 0 && segment_bytes + frame_bytes > writer.options.segment_bytes_max {
            self.start_segment(&writer.shared)?;
        }
        let segment = &self.segment;
        let offset = SEGMENT_HEADER_BYTES as u64 + (self.end - segment.start);
        segment
            .file
            .write_all_at(bytes, offset)
            .map_err(|source| io_error("write the segment", &segment.path, source))?;
        segment.file.sync().map_err(|source| io_error("sync the segment", &segment.path, source))?;
        self.end += frame_bytes;
        Ok(())
    }

    /// Starts a new segment at the end of the present one.
    fn start_segment(&mut self, shared: &Shared) -> Result<(), JournalError> {
        let (path, file) = create_segment(shared.disk(), shared.folder(), self.end, shared.salt())?;
        shared.add_segment(self.end);
        self.segment = OpenSegment { start: self.end, path, file };
        Ok(())
    }
}

/// Creates a segment's file with its header, durably, and opens it.
pub(super) fn create_segment(
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

/// Data behind a lock whose holder panicked is consistent, because each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

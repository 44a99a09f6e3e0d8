//! Reads committed records, from any thread, while the owner writes.
//!
//! Invariant: a reader reads only below the published end and inside one segment at a time, and uses no bytes before it
//! has verified their checksum.

use super::error::JournalError;
use super::format::{
    FRAME_HEADER_BYTES, FRAME_MAGIC, FrameHeader, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, Seed,
    segment_name,
};
use super::recovery::{self, Committed};
use super::{JournalOptions, JournalRead, io_error};
use fastpay_core::JournalPosition;
use fastpay_program::disk::{Disk, RealDisk, SegmentFile};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// How many bytes a stream reads at once; more if a record is larger.
const WINDOW_BYTES: usize = 256 << 10;

/// Reads committed records. Clones share their open files.
#[derive(Clone)]
pub struct JournalReader {
    shared: Arc<Shared>,
}

/// The state that the owner and its readers share.
pub(super) struct Shared {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    salt: u64,
    seed: Seed,
    /// The start of each segment, ascending. Starts are only added, each before `end` passes it.
    starts: RwLock<Vec<u64>>,
    end: AtomicU64,
    /// The open files, the most recently used last.
    open_files: Mutex<Vec<(u64, Arc<dyn SegmentFile>)>>,
    open_files_max: usize,
}

/// A position inside a segment.
struct Place {
    path: PathBuf,
    file: Arc<dyn SegmentFile>,
    /// The offset in the file.
    offset: u64,
    /// The bytes from here to the segment's or the journal's end.
    available: u64,
}

impl Shared {
    pub fn new(
        disk: Arc<dyn Disk>,
        folder: PathBuf,
        salt: u64,
        starts: Vec<u64>,
        end: u64,
        open_files_max: usize,
    ) -> Self {
        Self {
            disk,
            folder,
            salt,
            seed: Seed::new(salt),
            starts: RwLock::new(starts),
            end: AtomicU64::new(end),
            open_files: Mutex::default(),
            open_files_max: open_files_max.max(1),
        }
    }

    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn salt(&self) -> u64 {
        self.salt
    }

    pub fn seed(&self) -> Seed {
        self.seed
    }

    pub fn add_segment(&self, start: u64) {
        let mut starts = self.starts.write().unwrap_or_else(PoisonError::into_inner);
        starts.push(start);
    }

    /// Publishes everything before `end` to the readers.
    pub fn publish(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    fn locate(&self, position: u64) -> Result<Place, JournalError> {
        let end = self.end();
        if position >= end {
            return Err(JournalError::OutOfRange { position: JournalPosition(position), end: JournalPosition(end) });
        }
        let (start, limit) = {
            let starts = self.starts.read().unwrap_or_else(PoisonError::into_inner);
            let next = starts.partition_point(|start| *start <= position);
            // The first segment starts at zero, so one is always found.
            let start = next.checked_sub(1).and_then(|index| starts.get(index));
            let limit = starts.get(next).copied().unwrap_or(end).min(end);
            (start.copied().unwrap_or_default(), limit)
        };
        let path = self.folder.join(segment_name(start));
        let file = self.open(start, &path)?;
        Ok(Place { path, file, offset: SEGMENT_HEADER_BYTES as u64 + (position - start), available: limit - position })
    }

    fn open(&self, start: u64, path: &Path) -> Result<Arc<dyn SegmentFile>, JournalError> {
        let mut open_files = self.open_files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open_files.iter().position(|(other, _)| *other == start);
        let entry = match known {
            Some(index) => open_files.remove(index),
            None => {
                let file = self.disk.open(path).map_err(|source| io_error("open the segment", path, source))?;
                if open_files.len() >= self.open_files_max {
                    open_files.remove(0);
                }
                (start, file)
            }
        };
        let file = Arc::clone(&entry.1);
        open_files.push(entry);
        Ok(file)
    }
}

impl Place {
    /// Fills `bytes` from `skip` bytes after the place.
    fn read(&self, skip: u64, bytes: &mut [u8]) -> Result<(), JournalError> {
        self.file
            .read_exact_at(bytes, self.offset + skip)
            .map_err(|source| io_error("read the segment", &self.path, source))
    }
}

impl JournalReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Reads a journal that another process may be writing, up to its present end. All that it reads is durable.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `SegmentMissing`, `SegmentName`, `ForeignSegment`, `UnsupportedVersion`, `Io`.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let Committed { salt, starts, end } = recovery::committed(&*disk, folder)?;
        let open_files_max = JournalOptions::default().open_files_max;
        Ok(Self::new(Arc::new(Shared::new(disk, folder.to_owned(), salt, starts, end, open_files_max))))
    }

    /// Whether a read may take a while; see [`Disk::is_slow`].
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.shared.disk.is_slow()
    }
}

impl JournalRead for JournalReader {
    fn read_at(&self, position: JournalPosition) -> Result<Vec<u8>, JournalError> {
        const HEADER: u64 = RECORD_HEADER_BYTES as u64;
        let bad = || JournalError::BadRecord { position };

        let place = self.shared.locate(position.0)?;
        let payload_room = place.available.checked_sub(HEADER).ok_or_else(bad)?;
        let mut header = [0; RECORD_HEADER_BYTES];
        place.read(0, &mut header)?;
        let header = RecordHeader::parse(&header).ok_or_else(bad)?;
        if header.payload_bytes as u64 > payload_room {
            return Err(bad());
        }
        let mut payload = vec![0; header.payload_bytes];
        place.read(HEADER, &mut payload)?;
        if header.fits(self.shared.seed, position.0, &payload) { Ok(payload) } else { Err(bad()) }
    }

    fn read_from(&self, position: JournalPosition) -> RecordStream {
        RecordStream {
            end: self.shared.end(),
            shared: Arc::clone(&self.shared),
            position: position.0,
            window: Vec::new(),
            window_start: 0,
            stopped: false,
        }
    }

    fn end(&self) -> JournalPosition {
        JournalPosition(self.shared.end())
    }
}

/// Records in order, each with its position; see [`JournalRead::read_from`].
pub struct RecordStream {
    shared: Arc<Shared>,
    position: u64,
    end: u64,
    /// Bytes of the journal from `window_start` on, all of one segment.
    window: Vec<u8>,
    window_start: u64,
    stopped: bool,
}

impl Iterator for RecordStream {
    type Item = Result<(JournalPosition, Vec<u8>), JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stopped {
            return None;
        }
        let next = self.read_next().transpose();
        self.stopped = !matches!(next, Some(Ok(_)));
        next
    }
}

impl RecordStream {
    /// The position after the last record that was read. The next record starts there, or a frame that begins with it.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        JournalPosition(self.position)
    }

    fn read_next(&mut self) -> Result<Option<(JournalPosition, Vec<u8>)>, JournalError> {
        let seed = self.shared.seed;
        if self.position > self.end {
            return Err(JournalError::OutOfRange {
                position: JournalPosition(self.position),
                end: JournalPosition(self.end),
            });
        }
        while self.position < self.end {
            let position = self.position;
            let bad = self.bad_record();
            if self.bytes(FRAME_MAGIC.len())? == FRAME_MAGIC {
                let bytes = self.bytes(FRAME_HEADER_BYTES)?.first_chunk();
                if bytes.is_none_or(|bytes| FrameHeader::parse(seed, position, bytes).is_none()) {
                    return Err(bad);
                }
                self.position += FRAME_HEADER_BYTES as u64;
                continue;
            }
            let bytes = self.bytes(RECORD_HEADER_BYTES)?.first_chunk();
            let Some(header) = bytes.and_then(RecordHeader::parse) else {
                return Err(bad);
            };
            let record_bytes = RECORD_HEADER_BYTES + header.payload_bytes;
            let record = self.bytes(record_bytes)?;
            let payload = record.get(RECORD_HEADER_BYTES..).unwrap_or_default();
            if !header.fits(seed, position, payload) {
                return Err(bad);
            }
            let payload = payload.to_vec();
            self.position += record_bytes as u64;
            return Ok(Some((JournalPosition(position), payload)));
        }
        Ok(None)
    }

    /// The next `wanted` bytes: from the window, or from the file if they are not all in it.
    fn bytes(&mut self, wanted: usize) -> Result<&[u8], JournalError> {
        let skip = self.position.checked_sub(self.window_start);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        let held = skip.and_then(|from| Some(from..from.checked_add(wanted)?));
        let held = held.filter(|range| range.end <= self.window.len());
        let range = match held {
            Some(range) => range,
            None => {
                self.fill(wanted)?;
                0..wanted
            }
        };
        Ok(self.window.get(range).unwrap_or_default())
    }

    fn bad_record(&self) -> JournalError {
        JournalError::BadRecord { position: JournalPosition(self.position) }
    }

    /// Moves the window to the position, with at least `wanted` bytes.
    fn fill(&mut self, wanted: usize) -> Result<(), JournalError> {
        let place = self.shared.locate(self.position)?;
        let available = usize::try_from(place.available).unwrap_or(usize::MAX);
        if available < wanted {
            return Err(self.bad_record());
        }
        self.window.resize(available.min(WINDOW_BYTES).max(wanted), 0);
        self.window_start = self.position;
        place.read(0, &mut self.window)
    }
}

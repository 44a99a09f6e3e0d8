//! Finds the end of a journal after any crash or damage.
//!
//! Flow: list the segments and check that they meet → walk the frames of the segments to be validated → judge the first
//! damage: before the last segment, or before another frame, it is corruption; otherwise a crash tore the last frame,
//! which is cut off → make the rest durable.
//!
//! Invariant: nothing is changed before everything has been judged.

use super::error::{Damage, JournalError};
use super::format::{
    BATCH_BYTES_MAX, FORMAT_VERSION, FRAME_HEADER_BYTES, FrameHeader, SEGMENT_HEADER_BYTES, Seed, SegmentHeader,
    parse_segment_name, segment_name,
};
use super::io_error;
use fastpay_core::JournalPosition;
use fastpay_program::disk::{Disk, SegmentFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many bytes of a file are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// The result of opening a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The first position after the last committed record.
    pub end: JournalPosition,
    /// The position from which every byte was validated.
    pub validated_from: JournalPosition,
    /// How many records were validated.
    pub records: u64,
    /// How many bytes of a torn batch were cut off at the end.
    pub bytes_cut: u64,
}

/// The state from which a journal continues.
pub(super) struct Found {
    pub salt: u64,
    /// The start of every segment, ascending.
    pub starts: Vec<u64>,
    pub last_start: u64,
    pub recovery: Recovery,
}

/// What a reader needs of a journal that belongs to another process.
pub(super) struct Committed {
    pub salt: u64,
    /// The start of every segment, ascending.
    pub starts: Vec<u64>,
    /// The position after the last complete frame.
    pub end: u64,
}

/// One segment file.
struct Segment {
    start: u64,
    /// The position after its last byte.
    end: u64,
    path: PathBuf,
    file: Arc<dyn SegmentFile>,
}

/// How far the frames of one segment are intact.
struct Walk {
    end: u64,
    last_frame: Option<u64>,
    records: u64,
}

pub(super) fn recover(disk: &dyn Disk, folder: &Path, validate_from: JournalPosition) -> Result<Found, JournalError> {
    let starts = list_segments(disk, folder)?;
    let (salt, last_start, end) = survey(disk, folder, &starts)?;
    let seed = Seed::new(salt);
    let behind = |end| JournalError::BehindCheckpoint { journal_end: JournalPosition(end), checkpoint: validate_from };
    if end < validate_from.0 {
        return Err(behind(end));
    }

    let first = starts.partition_point(|start| *start <= validate_from.0);
    let to_validate = starts.get(first.saturating_sub(1)..).unwrap_or_default();
    let mut records = 0;
    let mut tail = None;
    for start in to_validate {
        let segment = Segment::open(disk, folder, *start)?;
        let walk = segment.walk(seed)?;
        records += walk.records;
        if walk.end < segment.end && *start != last_start {
            // A segment is followed by another one only after it was synced.
            let follower = JournalPosition(segment.end);
            return Err(segment.corrupt(walk.end, Damage::BatchBeforeAnother { follower }));
        }
        tail = Some((segment, walk));
    }
    // The last segment starts before the end, so it is always among those to validate.
    let Some((segment, walk)) = tail else {
        return Err(behind(end));
    };
    if let Some(follower) = segment.find_frame_after(seed, walk.end)? {
        let follower = JournalPosition(follower);
        return Err(segment.corrupt(walk.end, Damage::BatchBeforeAnother { follower }));
    }
    if walk.end < validate_from.0 {
        return Err(behind(walk.end));
    }

    segment.settle(&walk)?;
    Ok(Found {
        salt,
        recovery: Recovery {
            end: JournalPosition(walk.end),
            validated_from: JournalPosition(to_validate.first().copied().unwrap_or_default()),
            records,
            bytes_cut: segment.end - walk.end,
        },
        starts,
        last_start,
    })
}

/// Finds the end of a journal to which another process may append, and changes nothing. Everything before that end is
/// durable. A frame that is still being written is not part of it. Only the last segment is validated here.
pub(super) fn committed(disk: &dyn Disk, folder: &Path) -> Result<Committed, JournalError> {
    let starts = list_segments(disk, folder)?;
    let (salt, last_start, _) = survey(disk, folder, &starts)?;
    let (seed, segment) = (Seed::new(salt), Segment::open(disk, folder, last_start)?);
    // A segment is followed by another one only after it was synced, so the others are durable.
    segment.file.sync().map_err(|source| io_error("sync the segment", &segment.path, source))?;
    let walk = segment.walk(seed)?;
    // The owner writes frames one after the other: a later one means that this one was complete.
    if let Some(follower) = segment.find_frame_after(seed, walk.end)? {
        let follower = JournalPosition(follower);
        return Err(segment.corrupt(walk.end, Damage::BatchBeforeAnother { follower }));
    }
    Ok(Committed { salt, starts, end: walk.end })
}

/// The starts of all segments in a folder, ascending.
pub(super) fn list_segments(disk: &dyn Disk, folder: &Path) -> Result<Vec<u64>, JournalError> {
    let names = disk.list(folder).map_err(|source| io_error("list the folder", folder, source))?;
    let mut starts = Vec::new();
    for name in names {
        match parse_segment_name(&name) {
            Some(Ok(start)) => starts.push(start.0),
            Some(Err(())) => {
                let path = folder.join(name);
                return Err(JournalError::SegmentName { path });
            }
            None => {}
        }
    }
    starts.sort_unstable();
    Ok(starts)
}

/// Checks that all segments belong to one journal and meet. Returns their salt, the last one's start, and the position
/// after the last byte of all.
fn survey(disk: &dyn Disk, folder: &Path, starts: &[u64]) -> Result<(u64, u64, u64), JournalError> {
    let mut salt_of_all = None;
    let mut last_start = 0;
    let mut end = 0;
    for start in starts {
        if *start != end {
            return Err(JournalError::SegmentMissing {
                expected: JournalPosition(end),
                found: JournalPosition(*start),
            });
        }
        let segment = Segment::open(disk, folder, *start)?;
        let salt = segment.check_header()?;
        if *salt_of_all.get_or_insert(salt) != salt {
            let path = segment.path;
            return Err(JournalError::ForeignSegment { path });
        }
        last_start = *start;
        end = segment.end;
    }
    match salt_of_all {
        Some(salt) => Ok((salt, last_start, end)),
        None => Err(JournalError::NotFound { folder: folder.to_owned() }),
    }
}

impl Segment {
    fn open(disk: &dyn Disk, folder: &Path, start: u64) -> Result<Self, JournalError> {
        let path = folder.join(segment_name(start));
        let failed = |source| io_error("open the segment", &path, source);
        let file = disk.open(&path).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let end = length
            .checked_sub(SEGMENT_HEADER_BYTES as u64)
            .and_then(|bytes| start.checked_add(bytes))
            .ok_or_else(|| JournalError::Corrupt {
                position: JournalPosition(start),
                path: path.clone(),
                damage: Damage::SegmentHeader,
            })?;
        Ok(Self { start, end, path, file })
    }

    /// Checks the file's header; returns its salt.
    fn check_header(&self) -> Result<u64, JournalError> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        self.file.read_exact_at(&mut bytes, 0).map_err(|source| io_error("read the segment", &self.path, source))?;
        let header = SegmentHeader::parse(&bytes).ok_or_else(|| self.corrupt(self.start, Damage::SegmentHeader))?;
        self.check_version(self.start, header.version)?;
        if header.start != self.start {
            let path = self.path.clone();
            return Err(JournalError::SegmentName { path });
        }
        Ok(header.salt)
    }

    /// Reads frame after frame, from the segment's start to its end or to the first damaged frame.
    fn walk(&self, seed: Seed) -> Result<Walk, JournalError> {
        let mut walk = Walk { end: self.start, last_frame: None, records: 0 };
        let mut chunk = Vec::new();
        while let Some(header) = self.frame_header(seed, walk.end)? {
            let body = walk.end + FRAME_HEADER_BYTES as u64;
            let body_end = body + u64::from(header.body_bytes);
            if header.body_bytes as usize > BATCH_BYTES_MAX || body_end > self.end {
                break;
            }
            let mut checksum = 0;
            self.read_chunks(body, body_end, &mut chunk, |_, bytes| {
                checksum = crc32c::crc32c_append(checksum, bytes);
                Ok(())
            })?;
            if checksum != header.body_checksum {
                break;
            }
            walk.last_frame = Some(walk.end);
            walk.records += u64::from(header.records);
            walk.end = body_end;
        }
        Ok(walk)
    }

    /// The intact frame header at a position, if there is one.
    fn frame_header(&self, seed: Seed, position: u64) -> Result<Option<FrameHeader>, JournalError> {
        if self.end - position < FRAME_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut bytes = [0; FRAME_HEADER_BYTES];
        self.read(position, &mut bytes)?;
        let Some(header) = FrameHeader::parse(seed, position, &bytes) else {
            return Ok(None);
        };
        self.check_version(position, header.version)?;
        Ok(Some(header))
    }

    /// Searches for an intact frame header anywhere after a damaged position. Such a header alone proves that the frame
    /// before it was synced, whatever the state of its own body.
    fn find_frame_after(&self, seed: Seed, damaged: u64) -> Result<Option<u64>, JournalError> {
        let mut window = vec![0; CHUNK_BYTES];
        let mut position = damaged + 1;
        while position < self.end {
            let wanted = usize::try_from(self.end - position).unwrap_or(usize::MAX);
            window.resize(wanted.min(CHUNK_BYTES), 0);
            self.read(position, &mut window)?;
            for bytes in window.windows(FRAME_HEADER_BYTES) {
                let header = bytes.first_chunk();
                if header.is_some_and(|header| FrameHeader::parse(seed, position, header).is_some()) {
                    return Ok(Some(position));
                }
                position += 1;
            }
            // The last window: what remains is too short for a header.
            if wanted <= CHUNK_BYTES {
                break;
            }
        }
        Ok(None)
    }

    /// Makes the intact frames durable, and cuts off the rest.
    fn settle(&self, walk: &Walk) -> Result<(), JournalError> {
        let failed = |source| io_error("settle the segment", &self.path, source);
        if walk.end < self.end {
            let length = SEGMENT_HEADER_BYTES as u64 + (walk.end - self.start);
            self.file.truncate(length).map_err(failed)?;
        }
        if let Some(frame) = walk.last_frame {
            // The process before this one may have failed to sync this frame. After such a failure the kernel still
            // returns its bytes, without intending to store them, so the frame is written again.
            let mut chunk = Vec::new();
            self.read_chunks(frame, walk.end, &mut chunk, |offset, bytes| {
                self.file.write_all_at(bytes, offset).map_err(failed)
            })?;
        }
        self.file.sync().map_err(failed)
    }

    /// Passes the bytes between two positions to `take`, in order, with their offset in the file.
    fn read_chunks(
        &self,
        from: u64,
        to: u64,
        chunk: &mut Vec<u8>,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let mut position = from;
        while position < to {
            let wanted = usize::try_from(to - position).unwrap_or(usize::MAX);
            chunk.resize(wanted.min(CHUNK_BYTES), 0);
            self.read(position, chunk)?;
            take(self.offset(position), chunk)?;
            position += chunk.len() as u64;
        }
        Ok(())
    }

    fn read(&self, position: u64, bytes: &mut [u8]) -> Result<(), JournalError> {
        self.file
            .read_exact_at(bytes, self.offset(position))
            .map_err(|source| io_error("read the segment", &self.path, source))
    }

    fn offset(&self, position: u64) -> u64 {
        SEGMENT_HEADER_BYTES as u64 + (position - self.start)
    }

    fn check_version(&self, position: u64, found: u16) -> Result<(), JournalError> {
        if found <= FORMAT_VERSION {
            return Ok(());
        }
        Err(JournalError::UnsupportedVersion {
            path: self.path.clone(),
            position: JournalPosition(position),
            found,
            supported: FORMAT_VERSION,
        })
    }

    fn corrupt(&self, position: u64, damage: Damage) -> JournalError {
        JournalError::Corrupt { position: JournalPosition(position), path: self.path.clone(), damage }
    }
}

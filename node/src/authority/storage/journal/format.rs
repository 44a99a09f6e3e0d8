//! The journal's bytes. All integers are little-endian, all checksums CRC-32C.
//!
//! ```text
//! segment file  = segment header · frame · frame · …
//! frame         = frame header · record · record · …        one commit: the unit that can tear
//! record        = length u32 · checksum u32 · payload
//! ```
//! A position counts the bytes of frames over all segments, without the segments' own headers. So it is known at append
//! time, before it is decided whether the commit will start a new segment.
//!
//! Every checksum is seeded with the journal's salt, a random number that no answer reveals, and covers the position of
//! what it protects. So bytes that a user chose (a memo inside a record) cannot pass for a frame or record, and neither
//! can a shifted, stale or foreign piece.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::JournalPosition;

/// The newest format that is read, and the one that is written.
pub(super) const FORMAT_VERSION: u16 = 1;

/// The largest record, in bytes of payload. A certificate of 100 authorities is about 10 KB. A reader may have to
/// allocate this much for one damaged length.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// The largest batch, in bytes with all headers: a commit may have to hold this much in memory.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

pub(super) const SEGMENT_HEADER_BYTES: usize = 32;
pub(super) const FRAME_HEADER_BYTES: usize = 32;
pub(super) const RECORD_HEADER_BYTES: usize = 8;
pub(super) const FRAME_MAGIC: [u8; 4] = *b"FPfr";
const SEGMENT_MAGIC: [u8; 4] = *b"FPsg";

const SEGMENT_SUFFIX: &str = ".journal";
/// As many digits as the largest position has, so that names sort like positions.
const SEGMENT_DIGITS: usize = 20;

// A reader between two records tells a frame header from a record by its first word.
const _: () = assert!(u32::from_le_bytes(FRAME_MAGIC) as usize > RECORD_BYTES_MAX);

/// The initial value of all checksums of one journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u32);

impl Seed {
    pub fn new(salt: u64) -> Self {
        Self(crc32c::crc32c(&salt.to_le_bytes()))
    }

    /// The checksum's seed for one position.
    fn at(self, position: u64) -> u32 {
        crc32c::crc32c_append(self.0, &position.to_le_bytes())
    }

    /// The checksum of a record's length and payload.
    fn record_checksum(self, position: u64, payload: &[u8]) -> u32 {
        let length = (payload.len() as u64).to_le_bytes();
        crc32c::crc32c_append(crc32c::crc32c_append(self.at(position), &length), payload)
    }
}

/// Starts each segment file.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(super) struct SegmentHeader {
    magic: [u8; 4],
    pub version: u16,
    reserved: u16,
    /// The position of the segment's first frame.
    pub start: u64,
    /// A random number, equal in all segments of a journal and different in every other journal.
    pub salt: u64,
    reserved_too: u32,
    checksum: u32,
}

impl SegmentHeader {
    pub fn new(start: u64, salt: u64) -> Self {
        Self::with_version(start, salt, FORMAT_VERSION)
    }

    pub fn with_version(start: u64, salt: u64, version: u16) -> Self {
        let mut header = Self { magic: SEGMENT_MAGIC, version, reserved: 0, start, salt, reserved_too: 0, checksum: 0 };
        header.checksum = crc32c::crc32c(without_checksum(&header.to_bytes()));
        header
    }

    pub fn to_bytes(self) -> [u8; SEGMENT_HEADER_BYTES] {
        encode(&self)
    }

    /// Parses a header. `None` if it is damaged; an intact one may still have a newer version.
    pub fn parse(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Option<Self> {
        let header: Self = borsh::from_slice(bytes).ok()?;
        let intact = header.magic == SEGMENT_MAGIC && header.checksum == crc32c::crc32c(without_checksum(bytes));
        intact.then_some(header)
    }
}

/// Starts each frame.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(super) struct FrameHeader {
    magic: [u8; 4],
    pub version: u16,
    reserved: u16,
    position: u64,
    /// The size of all records, including their headers.
    pub body_bytes: u32,
    /// The number of records.
    pub records: u32,
    /// Over the body alone; the header's own checksum covers it.
    pub body_checksum: u32,
    checksum: u32,
}

impl FrameHeader {
    pub fn new(seed: Seed, position: u64, records: u32, body: &[u8]) -> Self {
        Self::with_version(seed, position, records, body, FORMAT_VERSION)
    }

    pub fn with_version(seed: Seed, position: u64, records: u32, body: &[u8], version: u16) -> Self {
        let mut header = Self {
            magic: FRAME_MAGIC,
            version,
            reserved: 0,
            position,
            // The batch's bound is far below 2^32.
            body_bytes: u32::try_from(body.len()).unwrap_or(u32::MAX),
            records,
            body_checksum: crc32c::crc32c(body),
            checksum: 0,
        };
        header.checksum = header_checksum(seed, position, &header.to_bytes());
        header
    }

    pub fn to_bytes(self) -> [u8; FRAME_HEADER_BYTES] {
        encode(&self)
    }

    /// Parses a header of this journal for `position`. `None` if it is not intact; an intact one may still have a newer
    /// version. The magic and the position decide fast in a search over many positions.
    pub fn parse(seed: Seed, position: u64, bytes: &[u8; FRAME_HEADER_BYTES]) -> Option<FrameHeader> {
        if !bytes.starts_with(&FRAME_MAGIC) {
            return None;
        }
        let header: Self = borsh::from_slice(bytes).ok()?;
        let intact = header.position == position && header.checksum == header_checksum(seed, position, bytes);
        intact.then_some(header)
    }
}

/// The place of a record's payload, and its checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHeader {
    pub payload_bytes: usize,
    checksum: u32,
}

impl RecordHeader {
    pub fn encode(seed: Seed, position: u64, payload: &[u8]) -> [u8; RECORD_HEADER_BYTES] {
        // The record's bound is far below 2^32.
        let payload_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let checksum = seed.record_checksum(position, payload);
        encode(&(payload_bytes, checksum))
    }

    /// Parses a header. `None` if no record has this length.
    pub fn parse(bytes: &[u8; RECORD_HEADER_BYTES]) -> Option<Self> {
        let (payload_bytes, checksum) = borsh::from_slice::<(u32, u32)>(bytes).ok()?;
        let payload_bytes = usize::try_from(payload_bytes).ok()?;
        (payload_bytes <= RECORD_BYTES_MAX).then_some(Self { payload_bytes, checksum })
    }

    pub fn fits(&self, seed: Seed, position: u64, payload: &[u8]) -> bool {
        self.checksum == seed.record_checksum(position, payload)
    }
}

/// The file name of the segment that starts at a position.
pub(super) fn segment_name(start: u64) -> String {
    format!("{start:0SEGMENT_DIGITS$}{SEGMENT_SUFFIX}")
}

/// The start position in a segment's file name: `None` for files that are no segments, `Some(Err)` for malformed names
/// of segments.
pub(super) fn parse_segment_name(name: &str) -> Option<Result<JournalPosition, ()>> {
    // Dot files are the leftovers of a crash while a segment was created.
    let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
    let start = digits.parse().map_err(|_| ());
    Some(start.and_then(|start| {
        let canonical = segment_name(start) == name;
        canonical.then_some(JournalPosition(start)).ok_or(())
    }))
}

fn header_checksum(seed: Seed, position: u64, bytes: &[u8; FRAME_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(seed.at(position), without_checksum(bytes))
}

/// A header without its last field.
fn without_checksum(bytes: &[u8]) -> &[u8] {
    bytes.split_last_chunk::<4>().map_or(bytes, |(head, _)| head)
}

/// Encodes a value of fixed size.
fn encode<const SIZE: usize>(value: &impl BorshSerialize) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    borsh::to_writer(bytes.as_mut_slice(), value).expect("the size is the header's own");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout is on disks, so this test may change only together with the format version.
    #[test]
    fn the_layout_is_pinned() {
        let segment = SegmentHeader::new(0x0102, 0x0304).to_bytes();
        assert_eq!(hex::encode(segment), "46507367010000000201000000000000040300000000000000000000e9d880f7");
        let seed = Seed::new(0x0304);
        let frame = FrameHeader::new(seed, 0x0102, 1, b"body").to_bytes();
        assert_eq!(hex::encode(frame), "46506672010000000201000000000000040000000100000050c93f2614703aea");
        let record = RecordHeader::encode(seed, 0x0102, b"payload");
        assert_eq!(hex::encode(record), "07000000bac3440c");
    }

    #[test]
    fn a_header_is_refused_elsewhere_and_in_another_journal() {
        let seed = Seed::new(1);
        let bytes = FrameHeader::new(seed, 7, 1, b"body").to_bytes();
        assert!(FrameHeader::parse(seed, 7, &bytes).is_some());
        assert!(FrameHeader::parse(seed, 8, &bytes).is_none());
        assert!(FrameHeader::parse(Seed::new(2), 7, &bytes).is_none());
    }

    #[test]
    fn segment_names_sort_like_positions_and_have_one_form() {
        assert_eq!(segment_name(10), "00000000000000000010.journal");
        assert!(segment_name(9) < segment_name(10));
        assert!(segment_name(u64::MAX - 1) < segment_name(u64::MAX));
        let parsed = parse_segment_name(&segment_name(u64::MAX));
        assert_eq!(parsed, Some(Ok(JournalPosition(u64::MAX))));
        for other in ["meta.json", "", ".journal.tmp"] {
            assert_eq!(parse_segment_name(other), None, "{other}");
        }
        for wrong in ["7.journal", "x.journal", "+0000000000000000007.journal"] {
            assert_eq!(parse_segment_name(wrong), Some(Err(())), "{wrong}");
        }
    }
}

//! Format 2 of a journal's frame: the bytes of a stream's message, and the same bytes in a segment.
//!
//! ```text
//! frame  = header (100 bytes) · body · tag (32 bytes)
//! header = "FPf2" · version u16 · kind u8 · new segment u8 · body's bytes u32 · number u64 · term u64 · position u64
//!          · start [32] · previous frame's tag [32]                                     integers are little-endian
//! body   = first: the start; records: a frame of format 1; takeover: the machine; empty and seal: nothing
//! tag    = keyed BLAKE3 of all bytes before it
//! ```
//! The tag is authentication, checksum and link of the chain in one pass over the bytes. The checksums of format 1 stay
//! inside the body, because readers of single records need them.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::JournalPosition;
use thiserror::Error;

use crate::identity::{MachineId, Number, Start, StartId, Tag, Term};
use crate::key::FrameKey;

const MAGIC: [u8; 4] = *b"FPf2";
const VERSION: u16 = 2;
const TAG_BYTES: usize = 32;

/// The bytes before a frame's body.
pub const FRAME_HEADER_BYTES: usize = 100;
/// The bytes of a frame beside its body.
pub const FRAME_OVERHEAD_BYTES: usize = FRAME_HEADER_BYTES + TAG_BYTES;
/// The largest body: a batch that a server with `max_payload` of 8 MiB takes, and three of which fit in memory.
pub const RECORDS_BYTES_MAX: usize = 4 << 20;
/// The largest frame.
pub const FRAME_BYTES_MAX: usize = RECORDS_BYTES_MAX + FRAME_OVERHEAD_BYTES;

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The first frame of a stream.
    First(Start),
    /// A batch: a frame of format 1 with its header. Never empty.
    Records(Vec<u8>),
    /// Nothing: its acknowledgement shows that its owner was not replaced before.
    Empty,
    /// From here on, this machine owns the journal.
    Takeover(MachineId),
    /// The stream ends. Its owner goes on alone.
    Seal,
}

/// What a frame is, without the bytes of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As [`Body::First`].
    First(Box<Start>),
    /// As [`Body::Records`]; see [`Frame::records`].
    Records,
    /// As [`Body::Empty`].
    Empty,
    /// As [`Body::Takeover`].
    Takeover(MachineId),
    /// As [`Body::Seal`].
    Seal,
}

/// Where a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its place in the stream.
    pub number: Number,
    /// Its owner's term.
    pub term: Term,
    /// Its first byte in the journal.
    pub position: JournalPosition,
    /// The frame before it in the chain; the first frame has the journal's tail.
    pub previous: Tag,
    /// Whether it begins a segment. The owner decides, so that segments are the same on all machines.
    pub new_segment: bool,
}

/// An authentic frame: its tag was computed here, or verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    placement: Placement,
    kind: Kind,
    tag: Tag,
    bytes: Arc<[u8]>,
}

/// Why bytes are not a frame of this journal. Ask another machine for the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Too few bytes, or more than the largest frame.
    #[error("{bytes} bytes are no frame")]
    Size {
        /// How many there are.
        bytes: usize,
    },
    /// The first bytes are not those of a frame.
    #[error("the bytes do not begin like a frame")]
    Magic,
    /// Another version of the format.
    #[error("the frame has format {0}, this program reads format {VERSION}: use a newer program")]
    Version(u16),
    /// The body's length does not fit the number of bytes.
    #[error("the frame names a body of {body_bytes} bytes and has {bytes} bytes")]
    Length {
        /// The named length.
        body_bytes: u32,
        /// The bytes of the whole.
        bytes: usize,
    },
    /// The frame of another stream or shard.
    #[error("the frame belongs to start {0:?}")]
    ForeignStart(StartId),
    /// The tag is wrong: the bytes were altered or forged.
    #[error("the frame's tag is wrong")]
    Altered,
    /// The tag is right and the content is none: the writer has an error.
    #[error("the frame is authentic and malformed")]
    Malformed,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct Header {
    magic: [u8; 4],
    version: u16,
    kind: u8,
    new_segment: bool,
    body_bytes: u32,
    number: Number,
    term: Term,
    position: JournalPosition,
    start: StartId,
    previous: Tag,
}

impl Frame {
    /// Writes a frame.
    ///
    /// # Panics
    /// If records are empty or above [`RECORDS_BYTES_MAX`]: [`Replica::append`](crate::Replica::append) refuses those.
    #[must_use]
    pub fn seal(key: &FrameKey, placement: Placement, body: &Body) -> Self {
        let encoded;
        let (kind, code, body): (_, _, &[u8]) = match body {
            Body::First(start) => {
                encoded = encode(start);
                (Kind::First(Box::new(start.clone())), 0, &encoded)
            }
            Body::Records(records) => (Kind::Records, 1, records),
            Body::Empty => (Kind::Empty, 2, &[]),
            Body::Takeover(machine) => (Kind::Takeover(*machine), 3, &machine.0),
            Body::Seal => (Kind::Seal, 4, &[]),
        };
        assert!((kind != Kind::Records || !body.is_empty()) && body.len() <= RECORDS_BYTES_MAX, "the batch is bounded");
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            kind: code,
            new_segment: placement.new_segment,
            body_bytes: u32::try_from(body.len()).unwrap_or(u32::MAX),
            number: placement.number,
            term: placement.term,
            position: placement.position,
            start: key.start(),
            previous: placement.previous,
        };
        let mut bytes = Vec::with_capacity(FRAME_OVERHEAD_BYTES + body.len());
        bytes.extend_from_slice(&encode(&header));
        bytes.extend_from_slice(body);
        let tag = key.tag(&bytes);
        bytes.extend_from_slice(&tag.0);
        Self { placement, kind, tag, bytes: bytes.into() }
    }

    /// Reads and verifies a frame. Whether it follows on another one is [`ChainEnd::follow`](crate::ChainEnd::follow)'s
    /// question.
    ///
    /// # Errors
    /// See [`FrameError`].
    pub fn open(key: &FrameKey, bytes: Arc<[u8]>) -> Result<Self, FrameError> {
        let size = FrameError::Size { bytes: bytes.len() };
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(size);
        }
        let (signed, tag) = bytes.split_last_chunk::<TAG_BYTES>().ok_or(size)?;
        let (head, body) = signed.split_first_chunk::<FRAME_HEADER_BYTES>().ok_or(size)?;
        if !head.starts_with(&MAGIC) {
            return Err(FrameError::Magic);
        }
        let [_, _, _, _, low, high, ..] = *head;
        let version = u16::from_le_bytes([low, high]);
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        // A boolean that is neither 0 nor 1: nobody who knows the key writes one.
        let header: Header = borsh::from_slice(head).map_err(|_| FrameError::Altered)?;
        if header.body_bytes as usize != body.len() {
            return Err(FrameError::Length { body_bytes: header.body_bytes, bytes: bytes.len() });
        }
        if header.start != key.start() {
            return Err(FrameError::ForeignStart(header.start));
        }
        let tag = Tag(*tag);
        if !key.holds(signed, tag) {
            return Err(FrameError::Altered);
        }
        let kind = kind(header.kind, body).ok_or(FrameError::Malformed)?;
        let Header { new_segment, number, term, position, previous, .. } = header;
        let placement = Placement { number, term, position, previous, new_segment };
        Ok(Self { placement, kind, tag, bytes })
    }

    /// Where it stands.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> Number {
        self.placement.number
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its tag.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// All its bytes, for the stream and for the segment.
    #[must_use]
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// The batch of format 1, for a frame of that kind.
    #[must_use]
    pub fn records(&self) -> Option<&[u8]> {
        let body = self.bytes.get(FRAME_HEADER_BYTES..self.bytes.len().saturating_sub(TAG_BYTES));
        body.filter(|_| self.kind == Kind::Records)
    }

    /// The same content at another place.
    pub(crate) fn moved(&self, key: &FrameKey, placement: Placement) -> Self {
        let body = match &self.kind {
            Kind::First(start) => Body::First((**start).clone()),
            Kind::Records => Body::Records(self.records().unwrap_or_default().to_vec()),
            Kind::Empty => Body::Empty,
            Kind::Takeover(machine) => Body::Takeover(*machine),
            Kind::Seal => Body::Seal,
        };
        Self::seal(key, placement, &body)
    }
}

fn kind(code: u8, body: &[u8]) -> Option<Kind> {
    match (code, body) {
        (0, body) => borsh::from_slice(body).ok().map(|start| Kind::First(Box::new(start))),
        (1, [_, ..]) => Some(Kind::Records),
        (2, []) => Some(Kind::Empty),
        (3, body) => borsh::from_slice(body).ok().map(Kind::Takeover),
        (4, []) => Some(Kind::Seal),
        _ => None,
    }
}

fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}

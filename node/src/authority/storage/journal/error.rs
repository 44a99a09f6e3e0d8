//! Errors of a journal, and what to do about each.

use fastpay_core::JournalPosition;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the journal cannot do what is asked. Positions are byte offsets over all segments.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The file system failed. If that was in a commit, the journal is poisoned.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The failed action: a verb with the article of its object.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },

    /// An earlier write or sync failed, so the content of the disk is unknown.
    #[error(
        "the journal takes no more records since an earlier write failed: \
         free or replace the disk, then restart"
    )]
    Poisoned,

    /// The record is larger than [`super::RECORD_BYTES_MAX`]. Nothing was appended.
    #[error("a record of {bytes} bytes is above the {bytes_max} bytes that the journal takes")]
    RecordTooLarge {
        /// The size of the refused record.
        bytes: usize,
        /// The largest allowed size.
        bytes_max: usize,
    },

    /// The batch has no room for the record: commit first, then append again. Nothing was appended.
    #[error("the batch would grow above {bytes_max} bytes: commit it before appending more")]
    BatchFull {
        /// The largest size of a batch.
        bytes_max: usize,
    },

    /// There is no committed record at or after the position.
    #[error("position {position} is not before the journal's end at {end}")]
    OutOfRange {
        /// The position asked for.
        position: JournalPosition,
        /// The first position after the last committed record.
        end: JournalPosition,
    },

    /// No intact record starts at the position: it points into the middle of a record or frame, or the record was
    /// damaged on disk. If a client sent the position, refuse it; if it comes from the caller's own state, stop.
    #[error("no intact record starts at position {position}")]
    BadRecord {
        /// The requested position.
        position: JournalPosition,
    },

    /// Committed bytes are damaged or missing. Nothing was changed.
    #[error(
        "the journal is damaged at position {position} ({path}): {damage}; \
         restore this file from a copy, and do not start the authority without it"
    )]
    Corrupt {
        /// The first position that cannot be read.
        position: JournalPosition,
        /// The segment that holds it.
        path: PathBuf,
        /// The evidence of the damage.
        damage: Damage,
    },

    /// The folder holds no journal.
    #[error(
        "{folder} holds no journal: check the path, or restore the folder from a copy; \
         an authority that starts without its journal forgets what it has signed"
    )]
    NotFound {
        /// The folder.
        folder: PathBuf,
    },

    /// A journal cannot be created where one is.
    #[error("{folder} already holds a journal")]
    AlreadyExists {
        /// The folder.
        folder: PathBuf,
    },

    /// A file looks like a segment, but its name is not the position of its first frame.
    #[error("{path} is not named by the position where it starts: restore its name")]
    SegmentName {
        /// The file.
        path: PathBuf,
    },

    /// Two neighbouring segments do not meet, or the first one is missing.
    #[error(
        "the journal's segment from position {expected} on is missing or has the wrong length: \
         the next one starts at {found}; restore it from a copy"
    )]
    SegmentMissing {
        /// The position at which a segment should start, or up to which it should reach.
        expected: JournalPosition,
        /// The start of the next segment found.
        found: JournalPosition,
    },

    /// The segment belongs to another journal.
    #[error("{path} belongs to another journal: put the segments back where they came from")]
    ForeignSegment {
        /// The file.
        path: PathBuf,
    },

    /// The file was written by newer software.
    #[error(
        "{path} has format version {found} at position {position}, this program reads up to \
         {supported}: use a newer program"
    )]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// The position of the version.
        position: JournalPosition,
        /// The version found.
        found: u16,
        /// The newest version that this program reads.
        supported: u16,
    },

    /// The checkpoint includes records that the journal does not have. Nothing was changed.
    #[error(
        "the checkpoint includes the journal up to {checkpoint}, but the journal ends at \
         {journal_end}: records are missing; restore the journal from a copy"
    )]
    BehindCheckpoint {
        /// The end of the intact journal.
        journal_end: JournalPosition,
        /// The position that the checkpoint includes.
        checkpoint: JournalPosition,
    },
}

/// The evidence of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// The header of the segment's file is not intact.
    #[error("the segment's header is damaged")]
    SegmentHeader,

    /// A batch is damaged, although a later one was written. That happens only after a sync.
    #[error("this batch was synced, since another one follows at position {follower}")]
    BatchBeforeAnother {
        /// The start of the later batch.
        follower: JournalPosition,
    },
}

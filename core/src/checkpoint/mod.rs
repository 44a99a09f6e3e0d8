//! Checkpoints of the committee [LIFE §4]: from the state at a cut, which a quorum certifies, everything older can be
//! archived and pruned. This is the pure part: what a checkpoint is, and how a state follows from the one before.
//! docs/PROTOCOL.md, "Checkpoints", has the formats, and what differs from the draft (LIFE).
//!
//! ```text
//!  S_(k−1) ──┐                                        ┌─► cut, state  ─┐
//!            ├─► apply: signatures, gaps, balances ───┤                ├─► Checkpoint k ─► votes ─► certificate
//!  segment ──┘   (from the segment alone)             └─► segment root ┘
//! ```
//! Invariant: cut, state and segment root depend only on the history and the cut, not on the order of execution, on an
//! authority's number of shards, or on which of several authorizations of an order it has.
//!
//! Not to be confused with a shard's local checkpoint of its changed accounts ([`crate::Shard::begin_checkpoint`]).

mod application;
mod archived;
mod certificate;
mod installations;
mod leaf;
mod outline;
mod own;
mod recover;
mod recovery;
mod runs;
mod segment;
mod state;
mod stored;
pub(crate) mod stream;
mod transition;
mod tree;

pub(crate) use application::order_verdict;
pub use application::{Application, SegmentError};
pub use archived::{
    ARCHIVED_HEADERS_MAX, ArchiveCursor, ArchivedEntry, ArchivedError, ArchivedList, ArchivedPage, ProvenEntry,
    VerifiedArchivedPage,
};
pub use certificate::{
    Checkpoint, CheckpointCertificate, CheckpointError, CheckpointMismatch, CheckpointVote, VerifiedCheckpoint,
};
pub use installations::{Installations, InstalledCommittee};
pub use leaf::Leaf;
pub use outline::Outline;
pub use own::OwnState;
pub use recover::{KnownFacts, LeftOut, LeftOutReason, Recovered, RecoveryError};
pub use runs::{RUN_LEAVES, SEGMENT_HEADER_BYTES, TreeLevels};
pub use segment::{PrimaryEvent, PrimaryEventKind, SEGMENT_ENTRIES_MAX, Segment, SegmentEntry};
pub use state::{CheckpointState, Cut, NumberState, Outcome, Spent};
pub use stored::{AccountRow, StatePart, StateReader, StateSummary};
pub use tree::{LEAF_PATH_LENGTH_MAX, LeafPath};
pub(crate) use tree::{RootBuilder, leaves_root};

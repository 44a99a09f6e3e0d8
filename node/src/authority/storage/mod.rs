//! An authority's data on disk: one journal and one checkpoint store per shard, in one locked folder.
//!
//! Flow: a shard appends the records of its outcomes to its [`Journal`] and commits them with one
//! sync; only then it applies and answers them. In the background it writes changed accounts to its
//! [`CheckpointStore`], each time with the journal position that they include. Recovery takes the
//! newest checkpoint, opens the journal from there, and replays what follows.
//!
//! Invariants:
//! - The journal is the truth; a checkpoint only saves time. It may be lost, but it may never be
//!   ahead of its journal: that means records are missing, and [`JournalError::BehindCheckpoint`]
//!   stops the shard.
//! - Nothing here is created by the way: [`DataFolder::create`] and [`Journal::create`] make, `open`
//!   refuses what is not there. A path mistyped at start must not give an authority without memory.
//! - After a failed write or sync nothing more is accepted until the folder is opened again.
//! - Everything is bytes here: what a record or an account means is the shard's business.
//!
//! | file | what it holds |
//! |---|---|
//! | `data_folder` | the folder with its lock and `meta.json`, and where each shard keeps what |
//! | `journal/` | the append-only log of records |
//! | `checkpoint` | accounts at a journal position, in fjall |

mod checkpoint;
mod data_folder;
mod journal;

pub use checkpoint::{Checkpoint, CheckpointError, CheckpointOptions, CheckpointStore, Checkpoints, StoreKey};
pub use data_folder::{DataFolder, FolderIdentity, ShardFolders, StorageError};
pub(crate) use data_folder::{LOCK_FILE, META_FILE, NEW_FILE, shard_folders};
pub use fastpay_core::JournalPosition;
pub use journal::{
    BATCH_BYTES_MAX, Damage, Frame, Journal, JournalError, JournalExtent, JournalOptions, JournalRead, JournalReader,
    JournalWrite, RECORD_BYTES_MAX, RecordStream, Recovery, SealedBatch,
};

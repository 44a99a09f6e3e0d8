//! An authority's data on disk: one journal and one checkpoint store per shard, in one locked folder.
//!
//! Flow: a shard appends the records of its outcomes to its [`Journal`] and commits them with one
//! sync; only then it applies and answers them. In the background it writes changed accounts to its
//! [`CheckpointStore`], each time with the journal position that they include. Recovery takes the
//! newest checkpoint, opens the journal from there, and replays what follows.
//!
//! Invariants:
//! - The journal is the truth; a checkpoint only saves time. It may be lost, but it may never be
//!   ahead of its journal: then records are missing, and [`JournalError::BehindCheckpoint`]
//!   stops the shard.
//! - Only [`DataFolder::create`] and [`Journal::create`] create; `open` refuses a missing folder or
//!   journal. A path mistyped at a start must not yield an authority without memory.
//! - After a failed write or sync nothing more is accepted until the folder is opened again.
//! - Everything here is bytes: the shard interprets records and accounts.
//!
//! | file | what it holds |
//! |---|---|
//! | `data_folder` | the folder with its lock and `meta.json`, and the paths of each shard |
//! | `journal/` | the append-only log of records |
//! | `checkpoint` | accounts at a journal position, in fjall |

mod checkpoint;
mod data_folder;
mod journal;

pub use checkpoint::{Checkpoint, CheckpointError, CheckpointOptions, CheckpointStore, Checkpoints, StoreKey};
pub use data_folder::{DataFolder, FolderIdentity, Fullness, ShardFolders, StorageError, Switch};
pub(crate) use data_folder::{
    Generation, INDEX_FOLDER, LOCK_FILE, META_FILE, NEW_FILE, PAYOUTS_FILE, PEERS_FILE, generation_folder,
    generation_in, names_in, remove_older_generations, shard_folders,
};
pub use fastpay_core::JournalPosition;
pub use journal::{
    BATCH_BYTES_MAX, Damage, Frame, Journal, JournalError, JournalExtent, JournalOptions, JournalRead, JournalReader,
    JournalWrite, RECORD_BYTES_MAX, RecordStream, Recovery, SealedBatch,
};

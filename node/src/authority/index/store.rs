//! The index on disk, in a fjall keyspace of its own.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{AccountId, Digest, JournalPosition, SequenceNumber, ShardId, TransactionIndex};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch};

const KEYSPACE: &str = "index";
const POSITION_PREFIX: u8 = 0;
const TRANSFER_PREFIX: u8 = 1;
const DEPOSIT_PREFIX: u8 = 2;
const NEWEST_PREFIX: u8 = 3;
/// Bounds on memory and threads, which the shards need more.
const CACHE_BYTES: u64 = 8 << 20;
const WRITE_BUFFER_BYTES_MAX: u64 = 16 << 20;
const WORKER_THREADS: usize = 1;
const OPEN_FILES_MAX: usize = 32;
/// The minimum that fjall accepts.
const STORE_LOG_BYTES_MAX: u64 = 64 << 20;

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The embedded store failed.
    #[error("the index {folder} failed: {source}; free or replace the disk, or remove this folder to have it rebuilt")]
    Store {
        /// The index's folder.
        folder: PathBuf,
        /// The error of the store.
        source: fjall::Error,
    },
    /// A stale index cannot be removed.
    #[error("the index {folder} does not fit the journals and cannot be removed: {source}")]
    Stale {
        /// The index's folder.
        folder: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Place {
    /// The shard.
    pub shard: ShardId,
    /// The position in its journal.
    pub position: JournalPosition,
}

/// A confirmed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct IndexedTransfer {
    /// The sender.
    pub sender: AccountId,
    /// Its number.
    pub sequence: SequenceNumber,
    /// Its digest.
    pub digest: Digest,
}

/// The open index.
pub(super) struct Store {
    folder: PathBuf,
    database: Database,
    entries: Keyspace,
}

impl Store {
    /// Opens the index, or creates it anew if it is missing, cannot be opened, or is ahead of a shard's journal: then
    /// index and journals are of different times.
    pub(super) fn open(folder: &Path, ends: &[JournalPosition]) -> Result<Self, IndexError> {
        match Self::open_as_it_is(folder) {
            Ok(store) => match store.fits(ends) {
                Ok(true) => return Ok(store),
                Ok(false) => tracing::info!("the index is ahead of the journals; rebuilding it"),
                Err(error) => tracing::warn!(%error, "rebuilding the index"),
            },
            Err(error) => tracing::warn!(%error, "rebuilding the index"),
        }
        std::fs::remove_dir_all(folder).map_err(|source| IndexError::Stale { folder: folder.into(), source })?;
        Self::open_as_it_is(folder)
    }

    fn open_as_it_is(folder: &Path) -> Result<Self, IndexError> {
        let failed = |source| IndexError::Store { folder: folder.into(), source };
        let database = Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .worker_threads(WORKER_THREADS)
            .max_cached_files(Some(OPEN_FILES_MAX))
            .max_journaling_size(STORE_LOG_BYTES_MAX)
            .open()
            .map_err(failed)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(WRITE_BUFFER_BYTES_MAX);
        let entries = database.keyspace(KEYSPACE, options).map_err(failed)?;
        Ok(Self { folder: folder.into(), database, entries })
    }

    fn fits(&self, ends: &[JournalPosition]) -> Result<bool, IndexError> {
        for (shard, end) in (0..).map(ShardId).zip(ends) {
            if self.position(shard)?.is_some_and(|position| position >= *end) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The position of the newest indexed record of a shard.
    pub(super) fn position(&self, shard: ShardId) -> Result<Option<JournalPosition>, IndexError> {
        self.get(&position_key(shard))
    }

    /// The position of a transfer's confirmation.
    pub(super) fn transfer(&self, digest: &Digest) -> Result<Option<Place>, IndexError> {
        self.get(&transfer_key(digest))
    }

    /// The position of a deposit's credit.
    pub(super) fn deposit(&self, index: TransactionIndex) -> Result<Option<Place>, IndexError> {
        self.get(&deposit_key(index))
    }

    /// The newest transfers, oldest first. None in an index of an earlier release.
    pub(super) fn newest(&self) -> Result<Vec<IndexedTransfer>, IndexError> {
        Ok(self.get(&[NEWEST_PREFIX])?.unwrap_or_default())
    }

    fn get<T: BorshDeserialize>(&self, key: &[u8]) -> Result<Option<T>, IndexError> {
        let value = self.entries.get(key).map_err(|source| self.failed(source))?;
        // Ignore a malformed entry: the caller verifies each entry against the journal anyway.
        Ok(value.and_then(|bytes| T::try_from_slice(&bytes).ok()))
    }

    fn failed(&self, source: fjall::Error) -> IndexError {
        IndexError::Store { folder: self.folder.clone(), source }
    }

    /// New entries for a shard's records.
    pub(super) fn entries(&self, shard: ShardId) -> Entries<'_> {
        Entries { store: self, shard, batch: self.database.batch() }
    }
}

/// Entries that are written together.
pub(super) struct Entries<'a> {
    store: &'a Store,
    shard: ShardId,
    batch: OwnedWriteBatch,
}

impl Entries<'_> {
    /// Adds a transfer that is confirmed at a position.
    pub(super) fn transfer(&mut self, digest: &Digest, position: JournalPosition) {
        self.insert(transfer_key(digest), position);
    }

    /// Adds a deposit that is credited at a position.
    pub(super) fn deposit(&mut self, index: TransactionIndex, position: JournalPosition) {
        self.insert(deposit_key(index), position);
    }

    fn insert(&mut self, key: Vec<u8>, position: JournalPosition) {
        self.batch.insert(&self.store.entries, key, encode(&Place { shard: self.shard, position }));
    }

    /// Writes the entries, with the position of their newest record and the newest transfers of all shards.
    pub(super) fn write(
        mut self,
        position: JournalPosition,
        newest: &VecDeque<IndexedTransfer>,
    ) -> Result<(), IndexError> {
        self.batch.insert(&self.store.entries, position_key(self.shard), encode(&position));
        self.batch.insert(&self.store.entries, [NEWEST_PREFIX], encode(newest));
        self.batch.commit().map_err(|source| self.store.failed(source))
    }
}

fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory does not fail")
}

fn position_key(shard: ShardId) -> Vec<u8> {
    [&[POSITION_PREFIX], &shard.0.to_be_bytes()[..]].concat()
}

fn transfer_key(digest: &Digest) -> Vec<u8> {
    [&[TRANSFER_PREFIX], digest.as_slice()].concat()
}

fn deposit_key(index: TransactionIndex) -> Vec<u8> {
    [&[DEPOSIT_PREFIX], &index.0.to_be_bytes()[..]].concat()
}

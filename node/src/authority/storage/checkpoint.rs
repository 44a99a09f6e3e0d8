//! A shard's accounts as of one journal position, in an embedded store (fjall).
//!
//! Flow: the shard hands over the accounts that changed since its last checkpoint, with the journal position that they
//! include; one atomic, synced batch adds them. Recovery reads the newest checkpoint and replays the journal from its
//! position. Accounts that are not in memory are read one by one.
//!
//! Invariants:
//! - The position, the header and all accounts of one write appear together or not at all.
//! - Positions never go back. If the store loses its newest writes in a crash or by damage, it shows
//!   an older checkpoint as a whole, and the journal has the rest.
//! - Everything is in one fjall keyspace under two prefixes, so that its write-ahead log can be
//!   released when that one keyspace is flushed.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::JournalPosition;
use fjall::config::PinningPolicy;
use fjall::{Database, Guard, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An account's key in the store: its address.
pub type StoreKey = [u8; 32];

const FORMAT_VERSION: u16 = 1;
const KEYSPACE: &str = "shard";
const CHECKPOINT_KEY: [u8; 1] = [0];
const ACCOUNT_PREFIX: u8 = 1;
/// Flushing and compacting accounts is background work; more threads would only take cores from the shards.
const WORKER_THREADS: usize = 1;
/// fjall refuses less than 10. Its default of 900 is meant for one store per process.
const OPEN_FILES_MAX: usize = 64;
/// The file that fjall writes last when it creates a store, and its length at least.
const CREATED: (&str, u64) = ("version", 4);
/// The minimum that fjall accepts.
const STORE_LOG_BYTES_MAX: u64 = 64 << 20;

/// The header of the newest checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Replay the journal from here: all records before it are included.
    pub position: JournalPosition,
    /// Further data of the shard, in its own format.
    pub header: Vec<u8>,
}

/// The memory of one store. There is one store for each shard.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointOptions {
    /// Blocks of accounts kept in memory, in bytes.
    pub cache_bytes: u64,
    /// Written accounts that are kept in memory until they are flushed to sorted files, in bytes.
    pub write_buffer_bytes_max: u64,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self { cache_bytes: 64 << 20, write_buffer_bytes_max: 64 << 20 }
    }
}

/// Why the store cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The embedded store failed. The checkpoints can be rebuilt from the journal.
    #[error(
        "the checkpoint store {folder} failed: {source}; free or replace the disk and restart, or \
         move this folder away: it is then rebuilt from the journal"
    )]
    Store {
        /// The store's folder.
        folder: PathBuf,
        /// The error of the store.
        source: fjall::Error,
    },

    /// The stored checkpoint does not parse.
    #[error(
        "the checkpoint store {folder} holds something else than a checkpoint: move this folder \
         away, it is then rebuilt from the journal"
    )]
    Malformed {
        /// The store's folder.
        folder: PathBuf,
    },

    /// The store was written by newer software.
    #[error(
        "the checkpoint store {folder} has format version {found}, this program reads up to \
         {supported}: use a newer program"
    )]
    UnsupportedVersion {
        /// The store's folder.
        folder: PathBuf,
        /// The version found.
        found: u16,
        /// The newest version that this program reads.
        supported: u16,
    },

    /// The write would replace a newer checkpoint by an older one. Nothing was written.
    #[error("a checkpoint at {given} would replace the newer one at {stored}")]
    Backwards {
        /// The position of the newest checkpoint.
        stored: JournalPosition,
        /// The position of the refused one.
        given: JournalPosition,
    },
}

/// The value under [`CHECKPOINT_KEY`], after the format version.
#[derive(BorshSerialize, BorshDeserialize)]
struct StoredCheckpoint {
    position: u64,
    header: Vec<u8>,
}

/// The checkpoints of one shard, readable from any thread; only one thread writes.
pub trait Checkpoints: Send + Sync {
    /// The newest checkpoint, if there is one. Pass its position to [`super::Journal::open`], which reports both
    /// positions if the journal ends before it.
    ///
    /// # Errors
    /// `Store`, `Malformed`, `UnsupportedVersion`.
    fn latest(&self) -> Result<Option<Checkpoint>, CheckpointError>;

    /// The stored bytes of an account, if any checkpoint contains it.
    ///
    /// # Errors
    /// `Store`.
    fn account(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, CheckpointError>;

    /// Writes a checkpoint: `accounts` replace what is stored under their keys, and all others stay. It is durable when
    /// this returns. All of it is in memory at once, so the caller bounds how many accounts it passes; several writes
    /// can share one position.
    ///
    /// # Errors
    /// `Backwards`: nothing was written. `Store`: the next open may find all of the write, or nothing of it.
    fn write(
        &self,
        position: JournalPosition,
        header: Vec<u8>,
        accounts: Vec<(StoreKey, Vec<u8>)>,
    ) -> Result<(), CheckpointError>;

    /// Whether a write may take long. It then runs on a thread for which nothing else waits.
    fn is_slow(&self) -> bool {
        true
    }
}

/// Checkpoints in a folder, stored by fjall. Clones are handles to the same store.
#[derive(Clone)]
pub struct CheckpointStore {
    folder: PathBuf,
    database: Database,
    entries: Keyspace,
}

impl CheckpointStore {
    /// Opens the store, or creates an empty one: losing it costs time, never safety.
    ///
    /// # Errors
    /// `Store`, `Malformed`, `UnsupportedVersion`.
    pub fn open(folder: &Path, options: CheckpointOptions) -> Result<Self, CheckpointError> {
        let failed = |source| store_error(folder, source);
        remove_unfinished(folder).map_err(|error| failed(error.into()))?;
        let database = Database::builder(folder)
            .cache_size(options.cache_bytes)
            .worker_threads(WORKER_THREADS)
            .max_cached_files(Some(OPEN_FILES_MAX))
            .max_journaling_size(STORE_LOG_BYTES_MAX)
            .open()
            .map_err(failed)?;
        // Indices and filters of all levels stay in memory, about 3 bytes for each account: otherwise every read of an
        // account would first read and check them.
        let in_memory = || PinningPolicy::all(true);
        let in_one = || PinningPolicy::all(false);
        let keyspace = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(options.write_buffer_bytes_max)
                .index_block_pinning_policy(in_memory())
                .filter_block_pinning_policy(in_memory())
                .index_block_partitioning_policy(in_one())
                .filter_block_partitioning_policy(in_one())
        };
        let entries = database.keyspace(KEYSPACE, keyspace).map_err(failed)?;
        let store = Self { folder: folder.to_owned(), database, entries };
        store.latest()?;
        Ok(store)
    }

    /// All accounts from a key on, in key order, as of the newest checkpoint at the call. The iterator keeps that state
    /// on disk while later checkpoints are written, so do not hold it for long: end it after a page, and start the next
    /// one after its last key.
    pub fn accounts(
        &self,
        from: &StoreKey,
    ) -> impl Iterator<Item = Result<(StoreKey, Vec<u8>), CheckpointError>> + Send + use<> {
        let folder = self.folder.clone();
        let range = account_entry(from)..=account_entry(&[u8::MAX; 32]);
        // The keyspace's own `range` would show later writes, and parts of a write under way.
        self.database.snapshot().range(&self.entries, range).map(move |entry| read_account(&folder, entry))
    }

    /// Reads from a snapshot, because the keyspace's own `get` sees entries of a write that is under way.
    fn get(&self, key: &[u8]) -> fjall::Result<Option<fjall::UserValue>> {
        self.database.snapshot().get(&self.entries, key)
    }

    fn failed(&self) -> impl Fn(fjall::Error) -> CheckpointError + '_ {
        |source| store_error(&self.folder, source)
    }
}

impl Checkpoints for CheckpointStore {
    fn latest(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        let Some(bytes) = self.get(&CHECKPOINT_KEY).map_err(self.failed())? else {
            return Ok(None);
        };
        let malformed = || CheckpointError::Malformed { folder: self.folder.clone() };
        let (version, stored) = bytes.split_first_chunk::<2>().ok_or_else(malformed)?;
        let version = u16::from_le_bytes(*version);
        if version > FORMAT_VERSION {
            return Err(CheckpointError::UnsupportedVersion {
                folder: self.folder.clone(),
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        let stored: StoredCheckpoint = borsh::from_slice(stored).map_err(|_| malformed())?;
        Ok(Some(Checkpoint { position: JournalPosition(stored.position), header: stored.header }))
    }

    fn account(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, CheckpointError> {
        let value = self.get(&account_entry(key));
        Ok(value.map_err(self.failed())?.map(|bytes| bytes.to_vec()))
    }

    fn write(
        &self,
        position: JournalPosition,
        header: Vec<u8>,
        mut accounts: Vec<(StoreKey, Vec<u8>)>,
    ) -> Result<(), CheckpointError> {
        if let Some(stored) = self.latest()?
            && stored.position > position
        {
            return Err(CheckpointError::Backwards { stored: stored.position, given: position });
        }
        // Sorted entries cost the store less than half.
        accounts.sort_unstable_by_key(|(key, _)| *key);
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, bytes) in accounts {
            batch.insert(&self.entries, account_entry(&key), bytes);
        }
        let mut value = FORMAT_VERSION.to_le_bytes().to_vec();
        let stored = StoredCheckpoint { position: position.0, header };
        borsh::to_writer(&mut value, &stored).map_err(|source| store_error(&self.folder, source.into()))?;
        batch.insert(&self.entries, CHECKPOINT_KEY, value);
        batch.commit().map_err(self.failed())
    }
}

/// Removes what a process left that was killed while it created the store: fjall neither completes nor opens that.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    let (file, length) = CREATED;
    match std::fs::metadata(folder.join(file)) {
        Ok(file) if file.len() >= length => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match std::fs::read_dir(folder).map(|mut files| files.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            tracing::warn!(folder = %folder.display(), "the creation of this store was interrupted; creating it anew");
            std::fs::remove_dir_all(folder)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn store_error(folder: &Path, source: fjall::Error) -> CheckpointError {
    CheckpointError::Store { folder: folder.to_owned(), source }
}

fn account_entry(key: &StoreKey) -> [u8; 33] {
    let mut entry = [ACCOUNT_PREFIX; 33];
    if let Some((_, rest)) = entry.split_first_mut() {
        rest.copy_from_slice(key);
    }
    entry
}

fn read_account(folder: &Path, entry: Guard) -> Result<(StoreKey, Vec<u8>), CheckpointError> {
    let (key, value) = entry.into_inner().map_err(|source| store_error(folder, source))?;
    let account = key.split_first().and_then(|(_, rest)| rest.try_into().ok());
    match account {
        Some(account) => Ok((account, value.to_vec())),
        None => Err(CheckpointError::Malformed { folder: folder.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> CheckpointStore {
        CheckpointStore::open(folder, CheckpointOptions::default()).unwrap()
    }

    fn key(number: u8) -> StoreKey {
        let mut key = [7; 32];
        key[0] = number;
        key
    }

    #[test]
    fn a_new_store_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        assert_eq!(store.latest().unwrap(), None);
        assert_eq!(store.account(&key(1)).unwrap(), None);
        assert_eq!(store.accounts(&[0; 32]).count(), 0);
    }

    #[test]
    fn checkpoints_add_up_and_are_there_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let first = [(key(3), vec![3]), (key(255), vec![]), (key(0), vec![0])];
        store.write(JournalPosition(10), b"h1".to_vec(), first.into()).unwrap();
        let second = [(key(3), vec![33])];
        store.clone().write(JournalPosition(20), b"h2".to_vec(), second.into()).unwrap();
        drop(store);

        let store = open(folder.path());
        let checkpoint = Checkpoint { position: JournalPosition(20), header: b"h2".to_vec() };
        assert_eq!(store.latest().unwrap(), Some(checkpoint));
        assert_eq!(store.account(&key(3)).unwrap(), Some(vec![33]));
        assert_eq!(store.account(&key(4)).unwrap(), None);
        let all: Vec<_> = store.accounts(&[0; 32]).map(Result::unwrap).collect();
        let expected = [(key(0), vec![0]), (key(3), vec![33]), (key(255), vec![])];
        assert_eq!(all, expected);
        let page: Vec<_> = store.accounts(&key(3)).map(|a| a.unwrap().0).collect();
        assert_eq!(page, [key(3), key(255)]);
    }

    #[test]
    fn the_same_position_may_be_written_again_but_none_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        store.write(JournalPosition(10), vec![], vec![]).unwrap();
        store.write(JournalPosition(10), vec![], vec![(key(1), vec![1])]).unwrap();
        let refused = store.write(JournalPosition(9), vec![], vec![(key(1), vec![2])]);
        let Err(CheckpointError::Backwards { stored, given }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((stored, given), (JournalPosition(10), JournalPosition(9)));
        assert_eq!(store.account(&key(1)).unwrap(), Some(vec![1]));
    }

    #[test]
    fn an_iterator_shows_one_state_while_another_checkpoint_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let accounts = [(key(1), vec![1]), (key(2), vec![1])];
        store.write(JournalPosition(1), vec![], accounts.into()).unwrap();
        let before = store.accounts(&[0; 32]);
        let accounts = [(key(2), vec![2]), (key(3), vec![2])];
        store.write(JournalPosition(2), vec![], accounts.into()).unwrap();
        let values: Vec<_> = before.map(|account| account.unwrap().1).collect();
        assert_eq!(values, [[1], [1]]);
    }

    #[test]
    fn a_newer_format_and_a_malformed_checkpoint_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        store.entries.insert(CHECKPOINT_KEY, [2, 0, 9]).unwrap();
        let refused = store.latest();
        assert!(matches!(refused, Err(CheckpointError::UnsupportedVersion { found: 2, .. })), "{refused:?}");
        store.entries.insert(CHECKPOINT_KEY, [1, 0, 9]).unwrap();
        drop(store);
        let refused = CheckpointStore::open(folder.path(), CheckpointOptions::default());
        assert!(matches!(refused, Err(CheckpointError::Malformed { .. })));
    }

    /// A process can be killed after each file that fjall creates, and before the file has its content.
    #[test]
    fn a_store_whose_creation_was_interrupted_is_created_anew() {
        let whole = tempfile::tempdir().unwrap();
        drop(open(whole.path()));
        let length = std::fs::metadata(whole.path().join(CREATED.0)).unwrap().len();
        assert_eq!(length, CREATED.1, "fjall writes another file last");
        for written in [&["lock"][..], &["lock", "0.jnl"], &["lock", "0.jnl", CREATED.0]] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("keyspaces")).unwrap();
            for file in written {
                std::fs::write(folder.path().join(file), []).unwrap();
            }
            let store = open(folder.path());
            store.write(JournalPosition(1), vec![], vec![(key(1), vec![1])]).unwrap();
            drop(store);
            assert_eq!(open(folder.path()).account(&key(1)).unwrap(), Some(vec![1]), "{written:?}");
        }
    }

    #[test]
    fn a_second_opener_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _store = open(folder.path());
        let refused = CheckpointStore::open(folder.path(), CheckpointOptions::default());
        assert!(matches!(refused, Err(CheckpointError::Store { .. })));
    }

    /// fjall promises that a torn tail of its log costs whole batches only; the store relies on it.
    #[test]
    fn a_torn_store_shows_an_older_checkpoint_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        for position in 1..=5u8 {
            let accounts = (0..4).map(|number| (key(number), vec![position; 50]));
            let position = JournalPosition(u64::from(position));
            store.write(position, vec![], accounts.collect()).unwrap();
        }
        drop(store);
        let log = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|suffix| suffix == "jnl"))
            .unwrap();
        let bytes = std::fs::read(&log).unwrap();
        let written = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for length in (written / 2..written).step_by(61) {
            std::fs::write(&log, &bytes[..length]).unwrap();
            let store = open(folder.path());
            let position = store.latest().unwrap().unwrap().position.0;
            assert!(position < 5);
            for number in 0..4 {
                let value = store.account(&key(number)).unwrap().unwrap();
                assert_eq!(value, vec![position as u8; 50]);
            }
        }
    }
}

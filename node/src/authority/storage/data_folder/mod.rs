//! An authority's data folder: its lock, its identity, and the paths in it.
//!
//! ```text
//! data/
//!   unjudged                 exists until it is known whether the authority has voted before
//!   lock                     held by the process that uses the folder
//!   meta.json                the folder's identity; written last by `create`
//!   shard-000/journal/       see `journal`
//!   shard-000/checkpoint/    see `checkpoint`
//!   generation-0001/         the same folders of shards, made by the first rebase; and so on
//! ```
//! Invariants: one *generation* of journals counts, which `meta.json` names: the folders of shards beside it are
//! generation 0. What belongs to no generation stays where it is when the next one takes over. only one process at a time uses a folder. A folder is either complete or has no `meta.json`. It never
//! serves another authority, contract or number of shards than the one that it was made for. Other users of the machine
//! cannot access it.

mod error;
mod identity;

use super::journal::{Journal, JournalError, JournalOptions, JournalWrite};
use error::io_error;
use fastpay_core::{Digest, JournalPosition};
use fastpay_program::files;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::StorageError;
pub use identity::{FolderIdentity, Fullness, Switch};
pub(crate) use identity::{Generation, META_FILE};

/// Created with the folder and never replaced.
pub(crate) const LOCK_FILE: &str = "lock";
/// Created with the folder, and removed once the authority's memory was judged (`crate::authority::rollback`).
pub(crate) const NEW_FILE: &str = "unjudged";
const OWNER_ONLY: u32 = 0o700;
/// A process that has just been killed may hold the lock for a moment, and so may a program that the process before
/// started and that has not replaced its copy of that process yet.
const LOCK_TRIES: u32 = 50;
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// The folders of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardFolders {
    /// For [`super::Journal::open`].
    pub journal: PathBuf,
    /// For [`super::CheckpointStore::open`].
    pub checkpoint: PathBuf,
}

impl ShardFolders {
    /// The folders of a shard, counted from zero, in a generation of a data folder.
    pub(crate) fn of(data: &Path, generation: u64, shard: u32) -> Self {
        let folder = generation_folder(data, generation).join(format!("shard-{shard:03}"));
        Self { journal: folder.join("journal"), checkpoint: folder.join("checkpoint") }
    }
}

const GENERATION_PREFIX: &str = "generation-";
const SHARD_PREFIX: &str = "shard-";
/// What refers to positions in a generation's journals, beside the folders of its shards.
pub(crate) const INDEX_FOLDER: &str = "index";
pub(crate) const PEERS_FILE: &str = "peers.json";
pub(crate) const PAYOUTS_FILE: &str = "payouts.json";

/// The folder of a generation of journals. That of the first is the data folder itself.
pub(crate) fn generation_folder(data: &Path, generation: u64) -> PathBuf {
    if generation == 0 { data.to_owned() } else { data.join(format!("{GENERATION_PREFIX}{generation:04}")) }
}

/// The folders of all shards of a data folder, which another process may be using, and the generation that they are of.
///
/// # Errors
/// `Malformed`, `UnsupportedVersion`, `Io`.
pub(crate) fn shard_folders(data: &Path) -> Result<(Vec<ShardFolders>, u64), StorageError> {
    let (identity, Generation { number, .. }) = FolderIdentity::read(data)?;
    Ok(((0..identity.shards).map(|shard| ShardFolders::of(data, number, shard)).collect(), number))
}

/// The generation of journals that counts in a data folder, which another process may be using.
///
/// # Errors
/// `Malformed`, `UnsupportedVersion`, `Io`.
pub(crate) fn generation_in(data: &Path) -> Result<Generation, StorageError> {
    Ok(FolderIdentity::read(data)?.1)
}

/// The names under which the authority of a data folder has voted, which another process may be using: first the one that
/// the folder was made for.
///
/// # Errors
/// `Malformed`, `UnsupportedVersion`, `Io`.
pub(crate) fn names_in(data: &Path) -> Result<Vec<String>, StorageError> {
    Ok(FolderIdentity::read(data)?.0.names)
}

/// Removes the generations of journals before `generation`, which counts, while the folder may be in use: what uses it
/// reads none of them. Returns what was removed.
///
/// # Errors
/// `Io`; what was not removed can be removed by another call.
pub(crate) fn remove_older_generations(data: &Path, generation: u64) -> Result<Vec<PathBuf>, StorageError> {
    let failed = |source| io_error("read the folder", data, source);
    let mut removed = Vec::new();
    for entry in fs::read_dir(data).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let of = match name.strip_prefix(GENERATION_PREFIX) {
            Some(number) => number.parse().ok(),
            None => {
                let is_beside = [INDEX_FOLDER, PEERS_FILE, PAYOUTS_FILE].contains(&name);
                (is_beside || name.starts_with(SHARD_PREFIX)).then_some(0)
            }
        };
        if of.is_some_and(|of: u64| of < generation) {
            if path.is_dir() {
                remove_folder(&path)?;
            } else {
                fs::remove_file(&path).map_err(|source| io_error("remove the file", &path, source))?;
            }
            removed.push(path);
        }
    }
    removed.sort();
    Ok(removed)
}

/// A data folder that only this process may use while the value lives.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    shards: u32,
    generation: u64,
    /// Unlocked when dropped, or by the kernel when the process dies in any way.
    _lock: File,
}

impl DataFolder {
    /// Creates a data folder with an empty journal for each shard, durably. It completes a folder that an earlier
    /// attempt left unfinished.
    ///
    /// # Errors
    /// `AlreadyCreated`, `InUse`, `Journal`, `Io`.
    pub fn create(path: &Path, identity: &FolderIdentity) -> Result<Self, StorageError> {
        create_folder(path)?;
        let folder = Self::lock(path, identity.shards)?;
        let meta_path = path.join(META_FILE);
        if meta_path.exists() {
            let path = path.to_owned();
            return Err(StorageError::AlreadyCreated { path });
        }
        for shard in 0..identity.shards {
            let Some(folders) = folder.shard(shard) else {
                continue;
            };
            create_folder(&folders.journal)?;
            folder.create_journal(&folders.journal)?;
        }
        // Before the folder can be opened: without this file, a new folder would count as whole.
        let new = path.join(NEW_FILE);
        files::replace(&new, b"").map_err(|source| io_error("write the file", &new, source))?;
        identity.write(path, Generation { fullness: Some(Fullness::default()), ..Generation::default() })?;
        Ok(folder)
    }

    /// Locks an authority's folder and checks that it has this identity.
    ///
    /// # Errors
    /// `NotCreated`, `InUse`, `Malformed`, `UnsupportedVersion`, `Mismatch`, `Io`.
    pub fn open(path: &Path, identity: &FolderIdentity) -> Result<Self, StorageError> {
        // Check before locking, so that a mistyped path gets no lock file.
        let meta_path = path.join(META_FILE);
        if !meta_path.exists() {
            let path = path.to_owned();
            return Err(StorageError::NotCreated { path });
        }
        let mut folder = Self::lock(path, identity.shards)?;
        let (stored, generation) = FolderIdentity::read(path)?;
        if !identity.names.iter().any(|name| stored.names.contains(name)) {
            return Err(StorageError::Mismatch {
                path: path.to_owned(),
                what: "authority",
                stored: stored.names.join(" or "),
                configured: identity.names.join(" or "),
            });
        }
        expect(path, "number of shards", &stored.shards, &identity.shards)?;
        expect(path, "chain id", &stored.chain_id, &identity.chain_id)?;
        expect(path, "contract", &stored.contract, &identity.contract)?;
        folder.generation = generation.number;
        Ok(folder)
    }

    /// Locks the folder of any authority of a deployment, for a command that replaces its journals.
    ///
    /// # Errors
    /// As [`DataFolder::open`].
    pub fn open_of_deployment(path: &Path, chain_id: u64, contract: &str) -> Result<Self, StorageError> {
        let mut folder = Self::hold(path)?;
        let (stored, _) = FolderIdentity::read(path)?;
        expect(path, "chain id", &stored.chain_id, &chain_id)?;
        expect(path, "contract", stored.contract.as_str(), contract)?;
        folder.shards = stored.shards;
        Ok(folder)
    }

    /// Locks a folder of any identity, for an operator's command while no node runs on it.
    ///
    /// # Errors
    /// `NotCreated`, `InUse`, `Malformed`, `UnsupportedVersion`, `Io`.
    pub fn hold(path: &Path) -> Result<Self, StorageError> {
        if !path.join(META_FILE).exists() {
            let path = path.to_owned();
            return Err(StorageError::NotCreated { path });
        }
        let mut folder = Self::lock(path, 0)?;
        folder.generation = generation_in(path)?.number;
        Ok(folder)
    }

    /// The authority's names: the one that the folder was made for, and those added later.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`.
    pub fn names(&self) -> Result<Vec<String>, StorageError> {
        Ok(FolderIdentity::read(&self.path)?.0.names)
    }

    /// Notes durably that this folder's authority votes under another name from now on, so that a key of that name
    /// opens the folder, too. A known name changes nothing.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`.
    pub fn add_name(&self, name: &str) -> Result<(), StorageError> {
        let (mut identity, generation) = FolderIdentity::read(&self.path)?;
        if identity.names.iter().any(|known| known == name) {
            return Ok(());
        }
        identity.names.push(name.to_owned());
        identity.write(&self.path, generation)
    }

    /// What the folder says of the votes that it has; none if no node of this release was started on it.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`.
    pub fn fullness(&self) -> Result<Option<Fullness>, StorageError> {
        Ok(generation_in(&self.path)?.fullness)
    }

    /// Notes durably what the folder says of the votes that it has. Nothing is written if it says so already.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`.
    pub fn note_fullness(&self, fullness: Fullness) -> Result<(), StorageError> {
        let (identity, generation) = FolderIdentity::read(&self.path)?;
        if generation.fullness == Some(fullness) {
            return Ok(());
        }
        identity.write(&self.path, Generation { fullness: Some(fullness), ..generation })
    }

    /// The generation of journals that counts.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of shards of that generation; 0 if the folder was only held.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// Creates empty journals of the next generation, durably, in place of what an earlier attempt left. Nothing reads
    /// them before [`DataFolder::switch`].
    ///
    /// # Errors
    /// `Journal`, `Io`.
    pub fn create_next(&self, shards: u32) -> Result<Vec<Journal>, StorageError> {
        let generation = self.generation.saturating_add(1);
        let folder = generation_folder(&self.path, generation);
        remove_folder(&folder)?;
        (0..shards)
            .map(|shard| {
                let folders = ShardFolders::of(&self.path, generation, shard);
                create_folder(&folders.journal)?;
                Ok(Journal::create(&folders.journal, JournalOptions::default())?)
            })
            .collect()
    }

    /// Removes what an attempt to make the next generation left. Says whether there was anything.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove_next(&self) -> Result<Option<PathBuf>, StorageError> {
        let folder = generation_folder(&self.path, self.generation.saturating_add(1));
        let existed = folder.exists();
        remove_folder(&folder)?;
        Ok(existed.then_some(folder))
    }

    /// The checkpoint, adopted after a recovery, from which the present generation or one before it begins.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`.
    pub fn adopted(&self) -> Result<Option<Digest>, StorageError> {
        Ok(generation_in(&self.path)?.adopted)
    }

    /// Lets the next generation, with this number of shards, count from now on: durably, at once for all shards. If there
    /// was a recovery, it begins from the checkpoint `adopted` or one that follows it.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`; the present generation counts then.
    pub fn switch(&mut self, shards: u32, switch: Switch, adopted: Option<Digest>) -> Result<(), StorageError> {
        let (identity, generation) = FolderIdentity::read(&self.path)?;
        let next = generation.number.saturating_add(1);
        let generation = Generation { number: next, switch: Some(switch), adopted, fullness: generation.fullness };
        FolderIdentity { shards, ..identity }.write(&self.path, generation)?;
        (self.generation, self.shards) = (next, shards);
        Ok(())
    }

    /// The folder's path, for other files of the authority. Write them with [`fastpay_program::files::replace`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folders of a shard, counted from zero; `None` if the authority has no such shard.
    pub fn shard(&self, shard: u32) -> Option<ShardFolders> {
        (shard < self.shards).then(|| ShardFolders::of(&self.path, self.generation, shard))
    }

    fn create_journal(&self, folder: &Path) -> Result<(), StorageError> {
        let options = JournalOptions::default();
        let journal = match Journal::create(folder, options) {
            Err(JournalError::AlreadyExists { .. }) => Journal::open(folder, options, JournalPosition::default()),
            created => created,
        }?;
        // An attempt that did not get as far as `meta.json` leaves an empty journal. If the journal has records, the
        // folder was in use and has lost its `meta.json`.
        if journal.end() == JournalPosition::default() {
            return Ok(());
        }
        Err(StorageError::AlreadyCreated { path: self.path.clone() })
    }

    fn lock(path: &Path, shards: u32) -> Result<Self, StorageError> {
        let lock_path = path.join(LOCK_FILE);
        let failed = |source| io_error("lock the file", &lock_path, source);
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock_path).map_err(failed)?;
        let path = path.to_owned();
        let mut tries = 1..LOCK_TRIES;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if tries.next().is_some() => std::thread::sleep(LOCK_WAIT),
                Err(TryLockError::WouldBlock) => return Err(StorageError::InUse { path }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        fs::set_permissions(&path, Permissions::from_mode(OWNER_ONLY))
            .map_err(|source| io_error("close to other users the folder", &path, source))?;
        Ok(Self { path, shards, generation: 0, _lock: lock })
    }
}

fn expect<T: PartialEq + ToString + ?Sized>(
    path: &Path,
    what: &'static str,
    stored: &T,
    configured: &T,
) -> Result<(), StorageError> {
    if stored == configured {
        return Ok(());
    }
    Err(StorageError::Mismatch {
        path: path.to_owned(),
        what,
        stored: stored.to_string(),
        configured: configured.to_string(),
    })
}

fn remove_folder(path: &Path) -> Result<(), StorageError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(io_error("remove the folder", path, source))
        }
        _ => Ok(()),
    }
}

/// Creates a folder and its missing parents, durably and closed to other users.
fn create_folder(path: &Path) -> Result<(), StorageError> {
    let failed = |source| io_error("create the folder", path, source);
    let missing: Vec<_> = path.ancestors().take_while(|path| !path.exists()).collect();
    DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path).map_err(failed)?;
    for folder in missing.iter().rev() {
        if let Some(parent) = folder.parent() {
            files::sync_folder(parent).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! Detects a data folder that may be older than its authority's last votes.
//!
//! The *high-water mark* is a small file outside of the data folder, so that a restored copy of the folder does not
//! restore it. It names the folder in use by the birth of its lock file, which differs in every copy, and holds the
//! generation of its journals and the committed end of each. A rebase begins a generation whose journals have other
//! ends, so these are compared within a generation; before it, a rebase judges the one that it ends. Until a node was
//! started on a generation, `meta.json` has the ends of its journals, and those of the generation that it was made of:
//! if that one was used further, the new one lacks votes. The mark is rewritten every few seconds after changes, always
//! after the journals, so after a crash it is behind the journals and never ahead.
//!
//! A folder is *new* until its first verdict: a file in it marks it so before it can be used. That verdict also
//! considers whether the deployment was in use before (`first_start`). The file also records if the folder is the
//! *first* of its keys: then no vote can be forgotten.
//!
//! The *mark* is a file in the data folder: while it exists, the authority does not rely on its memory. It is written
//! when the high-water mark contradicts the folder, or by the operator's command. A running node adds up to which epoch
//! votes may be missing, and removes the mark once the authority has joined a later one. Nobody's word removes it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use fastpay_core::{AuthorityName, Epoch, JournalPosition, ShardId, TransactionIndex};
use fastpay_program::files;
use serde::{Deserialize, Serialize};

use super::vote_floors::FLOORS_FILE;
use crate::authority::storage::{DataFolder, Generation, LOCK_FILE, NEW_FILE, StorageError, Switch, generation_in};

const MARK_FILE: &str = "restored.json";
/// The content of the new folder's file if the folder is the first of its keys.
const FIRST: &[u8] = b"first";

/// Why a folder counts as older than its authority's last votes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StaleReason {
    /// There is no high-water mark: the folder is on another machine, or the file was removed.
    #[error("its high-water mark {0} is missing")]
    NoHighWaterMark(PathBuf),
    /// The high-water mark is damaged.
    #[error("its high-water mark {0} cannot be read: {1}")]
    Unreadable(PathBuf, String),
    /// Another folder was in use: this one is a copy of it.
    #[error("it is a copy of the folder that was last in use")]
    Copy,
    /// Records are missing at the end of a shard's journal.
    #[error("the journal of shard {shard} ends at {end}, and had been committed up to {committed}")]
    Shorter {
        /// The shard.
        shard: ShardId,
        /// The end of its journal now.
        end: JournalPosition,
        /// The lowest end of its journal by the high-water mark.
        committed: JournalPosition,
    },
    /// A later generation of journals was in use.
    #[error("it is in generation {found}, and generation {used} was in use")]
    OlderGeneration {
        /// The generation of the folder.
        found: u64,
        /// The generation that the high-water mark names.
        used: u64,
    },
    /// An older generation was used after this one was made of it.
    #[error("generation {used} of its journals was used further after generation {found} was made of it")]
    UsedFurther {
        /// The generation of the folder.
        found: u64,
        /// The generation that the high-water mark names.
        used: u64,
    },
    /// A shard has lost credits that it had sent to another one, or that it had acknowledged.
    #[error("a shard's journal has lost credits at its end")]
    Cut,
    /// The folder is new, and the deployment has changed its committee.
    #[error(
        "it is new, and the deployment is in use: it is in epoch {0}; this authority may have voted with a lost folder"
    )]
    LaterEpoch(Epoch),
    /// The folder is new, and the contract has events already.
    #[error(
        "it is new, and the deployment is in use: the contract has {0} events; this authority may have voted with a lost \
         folder (docs/OPERATIONS.md, After a lost disk)"
    )]
    Events(TransactionIndex),
    /// The folder is new, and a peer has served requests already.
    #[error(
        "it is new, and the deployment is in use at authority {0}; this authority may have voted with a lost folder \
         (docs/OPERATIONS.md, After a lost disk)"
    )]
    Peer(AuthorityName),
    /// The folder is a backup.
    #[error("it was made from a backup")]
    Backup,
    /// The operator has marked it.
    #[error("its operator says so")]
    Operator,
}

/// Why the memory cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum DetectionError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file of the rollback protection cannot be read or written.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// There is a high-water mark of another folder beside a new folder.
    #[error(
        "{0} is the high-water mark of a data folder that was here: an authority that has voted must not begin with an empty \
         memory. Restore its folder; or remove the high-water mark, if those keys have never voted"
    )]
    HighWaterMarkExists(PathBuf),
    /// The operator says that a folder is complete of which that is not so.
    #[error(
        "the data folder may lack votes ({0}), and no command makes it complete: its node joins the next epoch after those in \
         which it may have voted, and votes for everything from then on (docs/OPERATIONS.md, Backup and restore)"
    )]
    Incomplete(String),
}

/// Whether the data folder contains every vote of its authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It contains every vote, as far as can be known.
    Whole,
    /// It may lack votes.
    Older {
        /// When this was detected, in seconds since 1970.
        since: u64,
        /// The reason.
        why: String,
        /// The newest epoch of which it may lack votes, once that is known.
        up_to: Option<Epoch>,
    },
}

#[derive(Serialize, Deserialize)]
struct Mark {
    since: u64,
    why: String,
    /// Earlier releases did not write it.
    #[serde(default)]
    up_to: Option<Epoch>,
}

#[derive(Serialize, Deserialize)]
struct HighWaterMarkFile {
    born: String,
    /// Of the journals.
    #[serde(default)]
    generation: u64,
    /// The end of each shard's journal, in bytes. `None` while unknown.
    journal_ends: Option<Vec<u64>>,
}

/// The default path of a data folder's high-water mark: beside the folder.
#[must_use]
pub fn default_high_water_mark(data: &Path) -> PathBuf {
    let mut name = data.file_name().unwrap_or_default().to_owned();
    name.push(".witness");
    data.with_file_name(name)
}

/// The high-water mark of one data folder.
#[derive(Debug)]
pub struct HighWaterMark {
    path: PathBuf,
    born: String,
    generation: Generation,
    noted: Mutex<Vec<u64>>,
}

impl HighWaterMark {
    /// The high-water mark at `path` of an existing data folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn of(data: &Path, path: PathBuf) -> Result<Self, DetectionError> {
        let lock = data.join(LOCK_FILE);
        let born = files::birth(&lock).map_err(|error| DetectionError::Io { path: lock, error })?;
        let generation = generation_in(data)?;
        Ok(Self { path, born, generation, noted: Mutex::default() })
    }

    /// Writes the high-water mark of a new data folder.
    ///
    /// # Errors
    /// [`DetectionError::HighWaterMarkExists`] if there is a high-water mark already; if it cannot be written.
    pub fn create(data: &Path, path: PathBuf) -> Result<(), DetectionError> {
        let high_water_mark = Self::of(data, path)?;
        if high_water_mark.path.exists() {
            return Err(DetectionError::HighWaterMarkExists(high_water_mark.path));
        }
        high_water_mark.write(None)
    }

    /// Judges whether the memory of a folder whose journals end at `ends` is whole. If not, marks the folder durably
    /// and removes what was learned before. Then rewrites the high-water mark for this folder. `in_use` is why a new
    /// folder's deployment counts as in use. A folder is no longer new once its verdict is on disk.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn judge(
        &self,
        folder: &DataFolder,
        ends: &[JournalPosition],
        in_use: Option<StaleReason>,
    ) -> Result<Memory, DetectionError> {
        if let Some(stale_reason) = in_use.or_else(|| self.stale_reason(ends)) {
            mark(folder.path(), &stale_reason)?;
        }
        self.write(Some(positions(ends)))?;
        remove(folder.path(), NEW_FILE)?;
        marked(folder.path())
    }

    /// Why a folder whose journals end at `ends` would be marked; `None` if the high-water mark fits it.
    pub(crate) fn stale_reason(&self, ends: &[JournalPosition]) -> Option<StaleReason> {
        let file = match self.read() {
            Ok(file) => file,
            Err(stale_reason) => return Some(stale_reason),
        };
        let (found, used) = (self.generation.number, file.generation);
        if found < used {
            return Some(StaleReason::OlderGeneration { found, used });
        }
        let committed = file.journal_ends.unwrap_or_default();
        if used == found {
            return shorter(ends, &committed);
        }
        let is_made_of_it = |switch: &&Switch| {
            let within = committed.iter().zip(&switch.from_ends).all(|(committed, end)| committed <= end);
            used == switch.from_generation && within
        };
        match self.generation.switch.as_ref().filter(is_made_of_it) {
            None => Some(StaleReason::UsedFurther { found, used }),
            Some(switch) => shorter(ends, &switch.ends),
        }
    }

    /// Reads the high-water mark, if it is of this folder.
    fn read(&self) -> Result<HighWaterMarkFile, StaleReason> {
        let file = self.read_of_any()?;
        if file.born == self.born { Ok(file) } else { Err(StaleReason::Copy) }
    }

    /// Reads the high-water mark, also if it is of a folder that this one is a copy of.
    fn read_of_any(&self) -> Result<HighWaterMarkFile, StaleReason> {
        let unreadable = |error: &dyn ToString| StaleReason::Unreadable(self.path.clone(), error.to_string());
        let bytes = fs::read(&self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StaleReason::NoHighWaterMark(self.path.clone()),
            _ => unreadable(&error),
        })?;
        serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))
    }

    /// What a switch to the next generation, whose journals end at `next`, notes in `meta.json`. The present ones end
    /// at `ends`. If no node was started on these, the high-water mark still is of what they were made of.
    #[must_use]
    pub fn switch_to(&self, next: &[JournalPosition], ends: &[JournalPosition]) -> Switch {
        let (from_generation, from_ends) = match (&self.generation.switch, self.read()) {
            (Some(before), Ok(file)) if file.generation < self.generation.number => {
                (before.from_generation, before.from_ends.clone())
            }
            _ => (self.generation.number, positions(ends)),
        };
        Switch { ends: positions(next), from_generation, from_ends }
    }

    /// Judges a folder whose journals end at `ends` before they are replaced by the next generation. If its memory is not
    /// whole, marks it durably. Whether it is new is for its next start to judge.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn judge_before_rebase(&self, folder: &DataFolder, ends: &[JournalPosition]) -> Result<Memory, DetectionError> {
        if let Some(stale_reason) = self.stale_reason(ends) {
            mark(folder.path(), &stale_reason)?;
        }
        marked(folder.path())
    }

    /// The folder's generation of journals, and whether a node was started on it.
    #[must_use]
    pub fn generation(&self) -> (u64, bool) {
        let is_started =
            |file: HighWaterMarkFile| file.generation == self.generation.number && file.journal_ends.is_some();
        (self.generation.number, self.read().is_ok_and(is_started))
    }

    /// Notes the committed ends of the journals in the high-water mark.
    pub fn note(&self, ends: &[JournalPosition]) {
        let ends = positions(ends);
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if *noted == ends {
            return;
        }
        match self.write(Some(ends.clone())) {
            Ok(()) => *noted = ends,
            Err(error) => {
                tracing::error!(%error, "the high-water mark cannot be written; without it an older copy of the data folder may not be noticed")
            }
        }
    }

    fn write(&self, journal_ends: Option<Vec<u64>>) -> Result<(), DetectionError> {
        let file = HighWaterMarkFile { born: self.born.clone(), generation: self.generation.number, journal_ends };
        write(&self.path, &file)
    }
}

/// The first shard whose journal ends before what had been committed.
fn shorter(ends: &[JournalPosition], committed: &[u64]) -> Option<StaleReason> {
    let mut shards = (0..).map(ShardId).zip(ends).zip(committed.iter().copied().map(JournalPosition));
    let found = shards.find(|((_, end), committed)| *end < committed);
    found.map(|((shard, end), committed)| StaleReason::Shorter { shard, end: *end, committed })
}

fn positions(ends: &[JournalPosition]) -> Vec<u64> {
    ends.iter().map(|end| end.0).collect()
}

/// Reads the mark of a folder; without one, the memory is whole.
pub(crate) fn marked(folder: &Path) -> Result<Memory, DetectionError> {
    let path = folder.join(MARK_FILE);
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Memory::Whole),
        Err(error) => Err(DetectionError::Io { path, error }),
        // The mark counts by its existence; its content may be damaged.
        Ok(bytes) => Ok(match serde_json::from_slice(&bytes) {
            Ok(Mark { since, why, up_to }) => Memory::Older { since, why, up_to },
            Err(error) => Memory::Older { since: 0, why: error.to_string(), up_to: None },
        }),
    }
}

fn mark(folder: &Path, why: &StaleReason) -> Result<(), DetectionError> {
    // First remove what was learned earlier: it does not cover votes given since the peers answered.
    remove(folder, FLOORS_FILE)?;
    #[expect(clippy::disallowed_methods, reason = "it is shown to the operator, and nothing else")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
    // Whatever an earlier mark says of epochs does not cover votes given since.
    write(&folder.join(MARK_FILE), &Mark { since, why: why.to_string(), up_to: None })
}

/// Notes durably up to which epoch a marked folder may lack votes, if that is not known yet.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn note_up_to(folder: &Path, epoch: Epoch) -> Result<(), DetectionError> {
    let Memory::Older { since, why, up_to: None } = marked(folder)? else { return Ok(()) };
    write(&folder.join(MARK_FILE), &Mark { since, why, up_to: Some(epoch) })
}

/// Removes the mark of a folder that has joined an epoch after those of which it lacks votes.
///
/// # Errors
/// If a file cannot be removed.
pub(crate) fn unmark(folder: &Path) -> Result<(), DetectionError> {
    remove(folder, FLOORS_FILE)?;
    remove(folder, MARK_FILE)
}

fn remove(folder: &Path, name: &str) -> Result<(), DetectionError> {
    let path = folder.join(name);
    let removed = match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => files::sync_folder(folder),
    };
    removed.map_err(|error| DetectionError::Io { path, error })
}

fn write(path: &Path, content: &impl Serialize) -> Result<(), DetectionError> {
    let bytes = serde_json::to_vec(content).map_err(io::Error::from);
    let written = bytes.and_then(|bytes| files::replace(path, &bytes));
    written.map_err(|error| DetectionError::Io { path: path.to_owned(), error })
}

/// Marks the folder as an older copy, by the operator's command.
///
/// # Errors
/// If it is in use, or cannot be written.
pub fn mark_stale(data: &Path) -> Result<(), DetectionError> {
    mark(DataFolder::hold(data)?.path(), &StaleReason::Operator)
}

/// Marks a copy of a data folder, before anybody can use it.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn mark_as_copy(copy: &Path) -> Result<(), DetectionError> {
    mark(copy, &StaleReason::Backup)
}

/// Marks a data folder in which a shard's journal has lost its end.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn mark_as_cut(folder: &DataFolder) -> Result<(), DetectionError> {
    mark(folder.path(), &StaleReason::Cut)
}

/// Takes the folder for the one that the high-water mark is of, by the operator's command: it was moved as a whole while the
/// node was stopped. The next start compares its journals with the high-water mark, as always.
///
/// # Errors
/// [`DetectionError::Incomplete`] if it is marked, or was never judged, or has no high-water mark; if it is in use, or the
/// high-water mark cannot be written.
pub fn trust_data(data: &Path, high_water_mark: PathBuf) -> Result<(), DetectionError> {
    let folder = DataFolder::hold(data)?;
    if let Memory::Older { why, .. } = marked(folder.path())? {
        return Err(DetectionError::Incomplete(why));
    }
    if age(&folder)? != Age::Judged {
        return Err(DetectionError::Incomplete("it is new: its first start decides".into()));
    }
    let mark = HighWaterMark::of(data, high_water_mark)?;
    let file = mark.read_of_any().map_err(|stale_reason| DetectionError::Incomplete(stale_reason.to_string()))?;
    write(&mark.path, &HighWaterMarkFile { born: mark.born, ..file })
}

/// The age of a data folder before its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// An earlier start judged it.
    Judged,
    /// It was never judged, and its authority may have had another folder.
    New,
    /// It was never judged, and it is the first folder of its keys.
    First,
}

/// Reads a folder's age.
///
/// # Errors
/// If the file cannot be read.
pub fn age(folder: &DataFolder) -> Result<Age, DetectionError> {
    let path = folder.path().join(NEW_FILE);
    match fs::read(&path) {
        Ok(said) if said == FIRST => Ok(Age::First),
        Ok(_) => Ok(Age::New),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Age::Judged),
        Err(error) => Err(DetectionError::Io { path, error }),
    }
}

/// Notes that a new folder is the first of its keys, so nobody can have voted with them.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn note_first(folder: &DataFolder) -> Result<(), DetectionError> {
    let path = folder.path().join(NEW_FILE);
    files::replace(&path, FIRST).map_err(|error| DetectionError::Io { path, error })
}

#[cfg(test)]
mod tests;

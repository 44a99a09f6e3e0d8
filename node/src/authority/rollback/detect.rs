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
//! when the high-water mark contradicts the folder, or by the operator's command. Only the operator's command removes
//! it.

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
         folder. If it never ran anywhere, stop it and run `fastpay-node trust-data`; otherwise see docs/OPERATIONS.md, After a \
         lost disk"
    )]
    Events(TransactionIndex),
    /// The folder is new, and a peer has served requests already.
    #[error(
        "it is new, and the deployment is in use at authority {0}; this authority may have voted with a lost folder. If it \
         never ran anywhere, stop it and run `fastpay-node trust-data`; otherwise see docs/OPERATIONS.md, After a lost disk"
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
    },
}

#[derive(Serialize, Deserialize)]
struct Mark {
    since: u64,
    why: String,
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
        let unreadable = |error: &dyn ToString| StaleReason::Unreadable(self.path.clone(), error.to_string());
        let bytes = fs::read(&self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StaleReason::NoHighWaterMark(self.path.clone()),
            _ => unreadable(&error),
        })?;
        let file: HighWaterMarkFile = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
        if file.born == self.born { Ok(file) } else { Err(StaleReason::Copy) }
    }

    /// What a switch to the next generation, whose journals end at `next`, notes in `meta.json`. The present ones end
    /// at `ends`. If no node was started on these, the high-water mark still is of what they were made of.
    pub(crate) fn switch_to(&self, next: &[JournalPosition], ends: &[JournalPosition]) -> Switch {
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

    /// The folder's generation of journals, and whether a node was started on it. The operator's command that declares
    /// the folder complete is no start.
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
            Ok(Mark { since, why }) => Memory::Older { since, why },
            Err(error) => Memory::Older { since: 0, why: error.to_string() },
        }),
    }
}

fn mark(folder: &Path, why: &StaleReason) -> Result<(), DetectionError> {
    // First remove what was learned earlier: it does not cover votes given since the peers answered.
    remove(folder, FLOORS_FILE)?;
    #[expect(clippy::disallowed_methods, reason = "it is shown to the operator, and nothing else")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
    write(&folder.join(MARK_FILE), &Mark { since, why: why.to_string() })
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

/// Declares the folder complete, by the operator's command: it was moved as a whole while the node was stopped, or
/// everything in progress when it was copied has long finished.
///
/// # Errors
/// If it is in use, or cannot be written.
pub fn trust_data(data: &Path, high_water_mark: PathBuf) -> Result<(), DetectionError> {
    let folder = DataFolder::hold(data)?;
    // First clear the high-water mark. Otherwise the next start would mark the folder again.
    HighWaterMark::of(data, high_water_mark)?.write(None)?;
    remove(folder.path(), FLOORS_FILE)?;
    remove(folder.path(), MARK_FILE)?;
    remove(folder.path(), NEW_FILE)
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
mod tests {
    use super::*;
    use crate::authority::storage::FolderIdentity;

    struct Scene {
        parent: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let parent = tempfile::tempdir().unwrap();
            let scene = Self { parent };
            let identity = FolderIdentity { names: vec!["aa".into()], shards: 2, chain_id: 1, contract: "0x01".into() };
            drop(DataFolder::create(&scene.data(), &identity).unwrap());
            HighWaterMark::create(&scene.data(), scene.high_water_mark()).unwrap();
            scene
        }

        fn data(&self) -> PathBuf {
            self.parent.path().join("data")
        }

        fn high_water_mark(&self) -> PathBuf {
            default_high_water_mark(&self.data())
        }

        /// Judges the folder as at a start with these journals.
        fn judge(&self, ends: [u64; 2]) -> Memory {
            let folder = DataFolder::hold(&self.data()).unwrap();
            HighWaterMark::of(&self.data(), self.high_water_mark())
                .unwrap()
                .judge(&folder, &ends.map(JournalPosition), None)
                .unwrap()
        }

        fn why(&self, ends: [u64; 2]) -> String {
            match self.judge(ends) {
                Memory::Older { why, .. } => why,
                Memory::Whole => panic!("nothing was noticed"),
            }
        }

        /// Copies without starting a process: a starting process holds the locks of other tests for a moment.
        fn copy(&self, from: &Path, to: &Path) {
            if from.is_file() {
                fs::copy(from, to).unwrap();
                return;
            }
            fs::create_dir(to).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let name = entry.unwrap().file_name();
                self.copy(&from.join(&name), &to.join(&name));
            }
        }
    }

    #[test]
    fn a_folder_that_goes_on_is_whole() {
        let scene = Scene::new();
        assert_eq!(scene.judge([0, 0]), Memory::Whole);
        let high_water_mark = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap();
        high_water_mark.note(&[JournalPosition(50), JournalPosition(60)]);
        // A high-water mark behind its journals is consistent with them.
        assert_eq!(scene.judge([50, 90]), Memory::Whole);
        assert_eq!(scene.judge([50, 90]), Memory::Whole);
        // A folder keeps its birth when it is moved.
        let elsewhere = scene.parent.path().join("elsewhere");
        fs::rename(scene.data(), &elsewhere).unwrap();
        fs::rename(&elsewhere, scene.data()).unwrap();
        assert_eq!(scene.judge([50, 90]), Memory::Whole);
    }

    #[test]
    fn a_journal_that_lost_its_end_is_noticed_and_stays_noticed() {
        for (ends, shard) in [([99, 200], 0), ([100, 199], 1), ([0, 0], 0)] {
            let scene = Scene::new();
            assert_eq!(scene.judge([100, 200]), Memory::Whole);
            let why = scene.why(ends);
            assert!(why.contains(&format!("shard {shard} ")) && why.contains(&ends[shard].to_string()), "{why}");
            // The mark stays when the journals are longer again.
            assert_eq!(scene.why([500, 500]), why);
        }
    }

    #[test]
    fn what_was_noted_with_a_switch_counts_until_the_first_start() {
        let switched = |scene: &Scene, ends: [u64; 2], next: [u64; 2]| {
            let mark = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap();
            let switch = mark.switch_to(&next.map(JournalPosition), &ends.map(JournalPosition));
            let mut folder = DataFolder::open_of_deployment(&scene.data(), 1, "0x01").unwrap();
            folder.switch(2, switch).unwrap();
        };
        let rebased = || {
            let scene = Scene::new();
            assert_eq!(scene.judge([100, 200]), Memory::Whole);
            switched(&scene, [150, 200], [30, 40]);
            scene
        };
        let meta = |scene: &Scene| scene.data().join("meta.json");
        // Its journals are compared with what was written.
        assert!(rebased().why([30, 39]).contains("shard 1 ends at 39, and had been committed up to 40"));
        let scene = rebased();
        assert_eq!(scene.judge([30, 40]), Memory::Whole);
        assert!(scene.why([30, 39]).contains("shard 1"), "the high-water mark has the ends from then on");
        // The old generation comes back before the new one was started, with a vote more, and goes again.
        for is_rebased_twice in [false, true] {
            let scene = Scene::new();
            let old = fs::read(meta(&scene)).unwrap();
            assert_eq!(scene.judge([100, 200]), Memory::Whole);
            switched(&scene, [150, 200], [30, 40]);
            if is_rebased_twice {
                switched(&scene, [30, 40], [500, 500]);
            }
            let new = fs::read(meta(&scene)).unwrap();
            fs::write(meta(&scene), old).unwrap();
            assert_eq!(scene.judge([151, 200]), Memory::Whole);
            fs::write(meta(&scene), &new).unwrap();
            assert!(scene.why([500, 500]).contains("generation 0 of its journals was used further"));
        }
        let scene = rebased();
        switched(&scene, [30, 40], [500, 500]);
        assert_eq!(scene.judge([500, 500]), Memory::Whole, "a generation without a start is replaced");
    }

    #[test]
    fn a_copy_is_detected_even_with_its_high_water_mark_and_with_whole_journals() {
        let scene = Scene::new();
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        let (backup, kept) = (scene.parent.path().join("backup"), scene.parent.path().join("kept"));
        scene.copy(&scene.data(), &backup);
        scene.copy(&scene.high_water_mark(), &kept);
        fs::remove_dir_all(scene.data()).unwrap();
        fs::remove_file(scene.high_water_mark()).unwrap();
        scene.copy(&backup, &scene.data());
        scene.copy(&kept, &scene.high_water_mark());
        assert!(scene.why([100, 200]).contains("copy"));
        fs::remove_file(scene.data().join(MARK_FILE)).unwrap();
        fs::remove_file(scene.high_water_mark()).unwrap();
        assert!(scene.why([100, 200]).contains("missing"));
        fs::remove_file(scene.data().join(MARK_FILE)).unwrap();
        fs::write(scene.high_water_mark(), b"{").unwrap();
        assert!(scene.why([100, 200]).contains("cannot be read"));
        fs::write(scene.data().join(MARK_FILE), b"").unwrap();
        assert!(matches!(scene.judge([100, 200]), Memory::Older { since: 0, .. }), "a damaged mark is one, too");
    }

    #[test]
    fn what_was_learned_before_a_copy_came_back_is_forgotten() {
        let scene = Scene::new();
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        let floors = scene.data().join(FLOORS_FILE);
        fs::write(&floors, b"learned").unwrap();
        scene.why([99, 200]);
        assert!(!floors.exists());
        // A start that detects nothing new keeps the floors.
        fs::write(&floors, b"learned").unwrap();
        scene.why([99, 200]);
        assert!(floors.exists());
        scene.why([98, 200]);
        assert!(!floors.exists());
    }

    #[test]
    fn a_mark_that_cannot_be_written_leaves_the_folder_suspect() {
        let scene = Scene::new();
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        let (floors, unwritten) = (scene.data().join(FLOORS_FILE), scene.data().join(MARK_FILE));
        // A folder at the mark's path makes writing the mark fail.
        fs::create_dir(&unwritten).unwrap();
        let folder = DataFolder::hold(&scene.data()).unwrap();
        let high_water_mark = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap();
        high_water_mark.judge(&folder, &[99, 200].map(JournalPosition), None).unwrap_err();
        drop(folder);
        // The floors are removed before there is a mark that makes them count …
        fs::write(&floors, b"learned").unwrap();
        mark_stale(&scene.data()).unwrap_err();
        assert!(!floors.exists());
        fs::remove_dir(&unwritten).unwrap();
        // … and the high-water mark is rewritten only after the mark exists.
        assert!(scene.why([99, 200]).contains("shard 0"));
    }

    #[test]
    fn a_new_folder_is_judged_once_by_whether_its_deployment_is_in_use() {
        let judge = |scene: &Scene, in_use| {
            let folder = DataFolder::hold(&scene.data()).unwrap();
            let memory =
                HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap().judge(&folder, &[], in_use).unwrap();
            assert_eq!(age(&folder).unwrap(), Age::Judged);
            memory
        };
        let is_new_in = |scene: &Scene| age(&DataFolder::hold(&scene.data()).unwrap()).unwrap() == Age::New;
        let scene = Scene::new();
        assert!(is_new_in(&scene));
        assert_eq!(judge(&scene, None), Memory::Whole);
        for in_use in [
            StaleReason::LaterEpoch(Epoch(3)),
            StaleReason::Events(TransactionIndex(7)),
            StaleReason::Peer(AuthorityName([1; 32])),
        ] {
            let scene = Scene::new();
            let Memory::Older { why, .. } = judge(&scene, Some(in_use.clone())) else { panic!("{in_use}") };
            assert_eq!(why, in_use.to_string());
            assert!(matches!(judge(&scene, None), Memory::Older { .. }), "the verdict stays");
            // The operator overrides the verdict.
            trust_data(&scene.data(), scene.high_water_mark()).unwrap();
            assert_eq!(judge(&scene, None), Memory::Whole);
        }
        // By the operator's command the folder is not new any more, either: no peer is asked.
        let scene = Scene::new();
        trust_data(&scene.data(), scene.high_water_mark()).unwrap();
        assert!(!is_new_in(&scene));
    }

    #[test]
    fn a_verdict_on_a_new_folder_that_cannot_be_written_leaves_it_new() {
        let scene = Scene::new();
        let judge = || {
            let folder = DataFolder::hold(&scene.data()).unwrap();
            let in_use = Some(StaleReason::Events(TransactionIndex(7)));
            let judged = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap().judge(&folder, &[], in_use);
            (judged, age(&folder).unwrap() != Age::Judged)
        };
        // A folder stands at the path of the mark, then of the high-water mark.
        let aside = scene.parent.path().join("aside");
        for unwritten in [scene.data().join(MARK_FILE), scene.high_water_mark()] {
            let is_aside = fs::rename(&unwritten, &aside).is_ok();
            fs::create_dir(&unwritten).unwrap();
            assert!(matches!(judge(), (Err(_), true)), "{}", unwritten.display());
            fs::remove_dir(&unwritten).unwrap();
            assert!(!is_aside || fs::rename(&aside, &unwritten).is_ok());
        }
        assert!(matches!(judge(), (Ok(Memory::Older { .. }), false)));
    }

    #[test]
    fn the_operators_word_counts_while_nothing_runs() {
        let scene = Scene::new();
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        let running = DataFolder::hold(&scene.data()).unwrap();
        for refused in [mark_stale(&scene.data()), trust_data(&scene.data(), scene.high_water_mark())] {
            assert!(matches!(refused, Err(DetectionError::Storage(StorageError::InUse { .. }))), "{refused:?}");
        }
        drop(running);
        mark_stale(&scene.data()).unwrap();
        assert!(scene.why([100, 200]).contains("operator"));
        // Moved to another disk, with everything in it.
        let backup = scene.parent.path().join("backup");
        scene.copy(&scene.data(), &backup);
        fs::remove_dir_all(scene.data()).unwrap();
        scene.copy(&backup, &scene.data());
        fs::write(scene.data().join(FLOORS_FILE), b"learned").unwrap();
        trust_data(&scene.data(), scene.high_water_mark()).unwrap();
        assert!(!scene.data().join(FLOORS_FILE).exists());
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        // From then on it is compared with the high-water mark as before.
        assert!(scene.why([100, 100]).contains("shard 1"));
        let nowhere = scene.parent.path().join("nowhere");
        for refused in [mark_stale(&nowhere), trust_data(&nowhere, scene.high_water_mark())] {
            assert!(matches!(refused, Err(DetectionError::Storage(StorageError::NotCreated { .. }))), "{refused:?}");
        }
    }

    #[test]
    fn no_second_folder_is_made_beside_the_high_water_mark_of_the_first() {
        let scene = Scene::new();
        let refused = HighWaterMark::create(&scene.data(), scene.high_water_mark()).unwrap_err();
        assert!(
            matches!(&refused, DetectionError::HighWaterMarkExists(path) if *path == scene.high_water_mark()),
            "{refused}"
        );
        assert!(refused.to_string().contains("must not begin with an empty memory"));
    }
}

//! Copies of a data folder that cannot be mistaken for the folder itself.
//!
//! A copy is older than the votes that its authority gives after it, so a restored copy has forgotten votes. A backup
//! therefore carries the mark of the rollback protection as soon as it is complete. An authority on a restored backup,
//! by [`restore`] or by hand, asks the others before it votes.
//!
//! A backup contains the journals, which are the truth, and small files, but no checkpoint and no index: a start
//! rebuilds them from the journals. It can be made while the node runs, because journals only grow (`journals`) and
//! each small file is replaced as a whole. Files are copied in an order that keeps each no newer than what it refers
//! to. The follower's cursor comes before the journals, because a start resumes from it. The committees come after
//! them, because records may depend on the newest committee.
//!
//! Invariants: `meta.json` comes last, so an incomplete copy is no data folder; no folder is ever overwritten.

mod journals;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fastpay_core::ShardId;
use fastpay_program::files;

use crate::authority::known_committees::COMMITTEES_FILE;
use crate::authority::rollback::{self, DetectionError};
use crate::authority::storage::{
    DataFolder, INDEX_FOLDER, JournalError, LOCK_FILE, META_FILE, StorageError, shard_folders,
};
use crate::authority::stored_record::UndecodableRecord;

const OWNER_ONLY: u32 = 0o700;

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The data folder is in use, or does not exist.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A journal cannot be copied.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record cannot be decoded by this program.
    #[error(transparent)]
    Record(#[from] UndecodableRecord),
    /// The journals lack credits between each other, whatever is left out at their ends.
    #[error(
        "shard {to} has applied {applied} credits of shard {from}, which has issued {issued}: a journal of this folder has \
         lost its end, and no authority would start on a backup of it. See \"Lost credits\" in docs/OPERATIONS.md"
    )]
    Torn {
        /// The shard that sent the credits.
        from: ShardId,
        /// The shard that applied them.
        to: ShardId,
        /// The newest credit that `from` has issued.
        issued: u64,
        /// The newest credit that `to` has applied.
        applied: u64,
    },
    /// The folder was rebased while it was copied.
    #[error("the data folder was rebased while it was copied; remove {0}, and back up again")]
    Rebased(PathBuf),
    /// The copy cannot be marked.
    #[error(transparent)]
    Mark(#[from] DetectionError),
    /// The target exists already.
    #[error("{0} already exists; name a new folder, or move that one away once its node will never run again")]
    Exists(PathBuf),
    /// The target is inside the source.
    #[error("{0} is inside the folder to copy; name another place")]
    Inside(PathBuf),
    /// The folder to copy is inside the folder for incomplete copies, which is removed first.
    #[error(
        "{from} is in {unfinished}, the rest of an interrupted attempt, which is removed first; move it elsewhere and \
         name that place"
    )]
    Unfinished {
        /// The folder to copy.
        from: PathBuf,
        /// The folder for incomplete copies.
        unfinished: PathBuf,
    },
    /// The file system failed.
    #[error("cannot copy {path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// The summary of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The number of files.
    pub files: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

/// Copies a data folder into the new folder `to`, durably. A node may run on it, but none can start on it meanwhile.
///
/// # Errors
/// If there is no data folder or it is damaged, `to` exists, or the file system fails.
pub fn back_up(data: &Path, to: &Path) -> Result<Copied, BackupError> {
    let _held = match DataFolder::hold(data) {
        Err(StorageError::InUse { .. }) => None,
        held => Some(held?),
    };
    check_outside(data, to)?;
    let mut copied = Copied::default();
    new_folder(to)?;
    for entry in fs::read_dir(data).map_err(failed(data))? {
        let entry = entry.map_err(failed(data))?;
        let name = entry.file_name();
        let comes_later = [COMMITTEES_FILE, META_FILE].iter().any(|later| name == *later);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || comes_later || name == LOCK_FILE || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        copy_if_there(&entry.path(), &to.join(name), &mut copied)?;
    }
    let generation = journals::copy(data, to, &mut copied)?;
    copy_if_there(&data.join(COMMITTEES_FILE), &to.join(COMMITTEES_FILE), &mut copied)?;
    complete(data, to, &mut copied)?;
    check_generation(to, generation)?;
    sync_parent(to)?;
    Ok(copied)
}

/// A copy whose `meta.json` names another generation than that of its journals is no data folder.
fn check_generation(copy: &Path, generation: u64) -> Result<(), BackupError> {
    if shard_folders(copy)?.1 == generation {
        return Ok(());
    }
    let meta = copy.join(META_FILE);
    fs::remove_file(&meta).map_err(failed(&meta))?;
    Err(BackupError::Rebased(copy.to_owned()))
}

/// Creates the data folder `data` from a backup, or from another copy of one. `data` must not exist.
///
/// # Errors
/// If a node runs on the copy, `data` exists, or the file system fails.
pub fn restore(from: &Path, data: &Path) -> Result<Copied, BackupError> {
    // A backup has no lock file. A folder copied by hand has one, and so has a folder in use.
    let held = if from.join(LOCK_FILE).exists() { Some(DataFolder::hold(from)?) } else { None };
    if !from.join(META_FILE).exists() {
        return Err(StorageError::NotCreated { path: from.to_owned() }.into());
    }
    if data.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(data.to_owned()));
    }
    let mut name = data.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    let unfinished = data.with_file_name(name);
    check_outside(from, data)?;
    if let Ok(removed) = unfinished.canonicalize()
        && from.canonicalize().map_err(failed(from))?.starts_with(removed)
    {
        return Err(BackupError::Unfinished { from: from.to_owned(), unfinished });
    }
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&unfinished)(error)),
        _ => {}
    }
    let copied = copy_folder(from, &unfinished)?;
    drop(held);
    fs::rename(&unfinished, data).map_err(failed(data))?;
    sync_parent(data)?;
    Ok(copied)
}

fn check_outside(from: &Path, to: &Path) -> Result<(), BackupError> {
    let place = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = place.canonicalize().map_err(failed(place))?;
    if place.starts_with(from.canonicalize().map_err(failed(from))?) {
        return Err(BackupError::Inside(to.to_owned()));
    }
    Ok(())
}

/// Copies a folder that no node uses.
fn copy_folder(from: &Path, to: &Path) -> Result<Copied, BackupError> {
    let mut copied = Copied::default();
    // The index is rebuilt from the journals.
    copy_all(from, to, true, &mut copied)?;
    complete(from, to, &mut copied)?;
    Ok(copied)
}

/// Marks a copy, and completes it as a data folder.
fn complete(from: &Path, to: &Path, copied: &mut Copied) -> Result<(), BackupError> {
    rollback::mark_as_copy(to)?;
    copy_file(&from.join(META_FILE), &to.join(META_FILE), copied)?;
    files::sync_folder(to).map_err(failed(to))
}

fn new_folder(path: &Path) -> Result<(), BackupError> {
    match DirBuilder::new().mode(OWNER_ONLY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(BackupError::Exists(path.to_owned())),
        created => created.map_err(failed(path)),
    }
}

/// Copies a folder. At the top, files that must not be copied are left out.
fn copy_all(from: &Path, to: &Path, top: bool, copied: &mut Copied) -> Result<(), BackupError> {
    new_folder(to)?;
    for entry in fs::read_dir(from).map_err(failed(from))? {
        let entry = entry.map_err(failed(from))?;
        let (path, name) = (entry.path(), entry.file_name());
        if top && [LOCK_FILE, META_FILE, INDEX_FOLDER].iter().any(|left_out| name == *left_out) {
            continue;
        }
        if entry.file_type().map_err(failed(&path))?.is_dir() {
            copy_all(&path, &to.join(name), false, copied)?;
        } else {
            copy_file(&path, &to.join(name), copied)?;
        }
    }
    files::sync_folder(to).map_err(failed(to))
}

/// Copies a file that a running node may replace or remove. The copy is the whole old file or the whole new one.
fn copy_if_there(from: &Path, to: &Path, copied: &mut Copied) -> Result<(), BackupError> {
    match copy_file(from, to, copied) {
        Err(BackupError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied,
    }
}

fn copy_file(from: &Path, to: &Path, copied: &mut Copied) -> Result<(), BackupError> {
    let bytes = fs::copy(from, to).map_err(failed(from))?;
    File::open(to).and_then(|file| file.sync_all()).map_err(failed(to))?;
    copied.files = copied.files.saturating_add(1);
    copied.bytes = copied.bytes.saturating_add(bytes);
    Ok(())
}

fn sync_parent(path: &Path) -> Result<(), BackupError> {
    path.parent().map_or(Ok(()), files::sync_folder).map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |error| BackupError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::rollback::{HighWaterMark, Memory, default_high_water_mark};
    use crate::authority::storage::{FolderIdentity, Journal, JournalOptions, JournalPosition, JournalWrite};
    use fastpay_core::{AccountId, Epoch, Record, SequenceNumber};

    struct Scene(tempfile::TempDir);

    impl Scene {
        /// A data folder with one record.
        fn new() -> Self {
            let scene = Self(tempfile::tempdir().unwrap());
            let data = scene.path("data");
            let folder = DataFolder::create(&data, &identity()).unwrap();
            let journal = folder.shard(0).unwrap().journal;
            let mut journal = Journal::open(&journal, JournalOptions::default(), JournalPosition::default()).unwrap();
            journal.append(&borsh::to_vec(&vote()).unwrap()).unwrap();
            journal.commit().unwrap();
            drop(folder);
            HighWaterMark::create(&data, default_high_water_mark(&data)).unwrap();
            fs::create_dir(data.join("index")).unwrap();
            fs::write(data.join("floors"), b"what others said").unwrap();
            scene
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }
    }

    fn identity() -> FolderIdentity {
        FolderIdentity { names: vec!["aa".into()], shards: 1, chain_id: 1, contract: "0x01".into() }
    }

    fn vote() -> Record {
        Record::VoidVoted { account: AccountId([1; 32]), sequence: SequenceNumber(0), epoch: Epoch(0) }
    }

    fn memory(data: &Path, high_water_mark: PathBuf) -> Memory {
        let folder = DataFolder::open(data, &identity()).unwrap();
        HighWaterMark::of(data, high_water_mark).unwrap().judge(&folder, &[JournalPosition(0)], None).unwrap()
    }

    #[test]
    fn a_backup_that_is_put_back_is_known_as_one_wherever_and_however() {
        let scene = Scene::new();
        let (data, backup) = (scene.path("data"), scene.path("backup"));
        assert_eq!(memory(&data, default_high_water_mark(&data)), Memory::Whole);
        let copied = back_up(&data, &backup).unwrap();
        assert!(copied.files >= 2 && copied.bytes > 0, "{copied:?}");
        assert!([LOCK_FILE, "index", "floors"].iter().all(|left_out| !backup.join(left_out).exists()));
        assert_eq!(memory(&data, default_high_water_mark(&data)), Memory::Whole, "the folder itself is what it was");

        // In the place of the lost folder, whose high-water mark still exists.
        fs::remove_dir_all(&data).unwrap();
        assert!(restore(&backup, &data).unwrap().bytes > 0);
        assert!(matches!(memory(&data, default_high_water_mark(&data)), Memory::Older { .. }));
        let mut journal =
            Journal::open(&data.join("shard-000/journal"), JournalOptions::default(), JournalPosition::default());
        assert!(journal.as_mut().unwrap().end() > JournalPosition::default(), "the record is there");

        // By hand, with a high-water mark made for it: the mark came with the copy.
        let by_hand = scene.path("by-hand");
        fs::rename(&backup, &by_hand).unwrap();
        drop(DataFolder::hold(&by_hand).unwrap());
        HighWaterMark::create(&by_hand, default_high_water_mark(&by_hand)).unwrap();
        assert!(matches!(memory(&by_hand, default_high_water_mark(&by_hand)), Memory::Older { .. }));
    }

    #[test]
    fn a_folder_in_use_is_backed_up_but_not_restored_from() {
        let scene = Scene::new();
        let (data, backup) = (scene.path("data"), scene.path("backup"));
        let running = DataFolder::open(&data, &identity()).unwrap();
        back_up(&data, &backup).unwrap();
        let refused = restore(&data, &scene.path("second")).unwrap_err();
        let in_use = matches!(refused, BackupError::Storage(StorageError::InUse { .. }));
        assert!(in_use && !scene.path("second").exists(), "that would be two nodes of one key");
        drop(running);
        restore(&backup, &scene.path("second")).unwrap();
        assert!(matches!(memory(&scene.path("second"), scene.path("none")), Memory::Older { .. }));
    }

    #[test]
    fn a_backup_has_the_length_of_what_was_written_and_leaves_out_what_a_crash_tore() {
        let scene = Scene::new();
        let (data, backup) = (scene.path("data"), scene.path("backup"));
        let segment = "shard-000/journal/00000000000000000000.journal";
        let whole = fs::read(data.join(segment)).unwrap();
        // A store of checkpoints reserves much space.
        let checkpoint = data.join("shard-000/checkpoint");
        fs::create_dir(&checkpoint).unwrap();
        File::create(checkpoint.join("0.jnl")).unwrap().set_len(64 << 20).unwrap();
        // A frame that is being written.
        fs::write(data.join(segment), [&whole[..], &whole[32..60]].concat()).unwrap();
        let copied = back_up(&data, &backup).unwrap();
        assert_eq!(fs::read(backup.join(segment)).unwrap(), whole);
        assert!(!backup.join("shard-000/checkpoint").exists() && copied.bytes < 1_000, "{copied:?}");
    }

    #[test]
    fn a_record_that_cannot_be_decoded_is_not_backed_up() {
        let scene = Scene::new();
        let (data, backup) = (scene.path("data"), scene.path("backup"));
        let journal = data.join("shard-000/journal");
        let mut journal = Journal::open(&journal, JournalOptions::default(), JournalPosition::default()).unwrap();
        let at = journal.append(b"a vote").unwrap();
        journal.commit().unwrap();
        let refused = back_up(&data, &backup).unwrap_err();
        assert!(matches!(refused, BackupError::Record(record) if record.position == at), "{refused}");
        assert!(restore(&backup, &scene.path("second")).is_err());
    }

    #[test]
    fn nothing_is_overwritten() {
        let scene = Scene::new();
        let (data, backup) = (scene.path("data"), scene.path("backup"));
        assert!(matches!(back_up(&data, &data.join("backup")), Err(BackupError::Inside(_))));
        back_up(&data, &backup).unwrap();
        assert!(matches!(back_up(&data, &backup), Err(BackupError::Exists(_))));
        assert!(matches!(restore(&backup, &data), Err(BackupError::Exists(_))));
        let nowhere = restore(&scene.path("nowhere"), &scene.path("second")).unwrap_err();
        assert!(matches!(nowhere, BackupError::Storage(StorageError::NotCreated { .. })));
    }

    #[test]
    fn a_copy_that_was_cut_short_is_no_data_folder() {
        let scene = Scene::new();
        let (data, backup) = (scene.path("data"), scene.path("backup"));
        back_up(&data, &backup).unwrap();
        fs::remove_file(backup.join(META_FILE)).unwrap();
        let refused = restore(&backup, &scene.path("second")).unwrap_err();
        assert!(matches!(refused, BackupError::Storage(StorageError::NotCreated { .. })));
        // The remains of an earlier attempt are no obstacle.
        fs::copy(data.join(META_FILE), backup.join(META_FILE)).unwrap();
        fs::create_dir(scene.path("second.restoring")).unwrap();
        restore(&backup, &scene.path("second")).unwrap();
    }

    #[test]
    fn a_copy_that_could_not_be_marked_is_no_data_folder() {
        let scene = Scene::new();
        let (data, second) = (scene.path("data"), scene.path("second"));
        // Marking first removes the floors. Here they are a folder, which it cannot remove.
        fs::remove_file(data.join("floors")).unwrap();
        fs::create_dir(data.join("floors")).unwrap();
        assert!(matches!(restore(&data, &second), Err(BackupError::Mark(_))));
        let unfinished = scene.path("second.restoring");
        assert!(!second.exists() && unfinished.exists() && !unfinished.join(META_FILE).exists());
    }

    #[test]
    fn a_copy_of_a_folder_that_is_rebased_meanwhile_is_no_data_folder() {
        let scene = Scene::new();
        let (data, backup) = (scene.path("data"), scene.path("backup"));
        back_up(&data, &backup).unwrap();
        check_generation(&backup, 0).unwrap();
        let refused = check_generation(&backup, 1).unwrap_err();
        assert!(matches!(&refused, BackupError::Rebased(copy) if *copy == backup), "{refused}");
        assert!(!backup.join(META_FILE).exists());
    }

    #[test]
    fn what_is_to_be_restored_is_never_removed() {
        let scene = Scene::new();
        let (data, unfinished) = (scene.path("data"), scene.path("lost.restoring"));
        let whole = |folder: &Path| folder.join(META_FILE).exists() && folder.join("shard-000").exists();
        // A copy that was interrupted after it was complete and before it was renamed; also by another path to it.
        back_up(&data, &unfinished).unwrap();
        std::os::unix::fs::symlink(&unfinished, scene.path("link")).unwrap();
        for from in [unfinished.clone(), scene.path("link"), scene.path("data/../lost.restoring")] {
            let refused = restore(&from, &scene.path("lost"));
            assert!(matches!(refused, Err(BackupError::Unfinished { .. })), "{refused:?}");
            assert!(whole(&unfinished) && !scene.path("lost").exists());
        }
        let inside = scene.path("second.restoring");
        fs::create_dir(&inside).unwrap();
        fs::rename(&unfinished, inside.join("backup")).unwrap();
        let refused = restore(&inside.join("backup"), &scene.path("second"));
        assert!(matches!(refused, Err(BackupError::Unfinished { .. })) && whole(&inside.join("backup")), "{refused:?}");
        // Nothing is removed inside the folder that is to be copied, either.
        let within = data.join("new.restoring");
        fs::create_dir(&within).unwrap();
        let refused = restore(&data, &data.join("new"));
        assert!(matches!(refused, Err(BackupError::Inside(_))) && within.exists(), "{refused:?}");
        // Under another name it can be restored.
        fs::rename(inside.join("backup"), scene.path("backup")).unwrap();
        restore(&scene.path("backup"), &scene.path("second")).unwrap();
    }
}

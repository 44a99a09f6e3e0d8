//! Writes files so that a crash leaves a complete file or none: under a temporary name, synced, renamed, and the folder
//! synced. Only their owner can read them, unless a function states otherwise.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use tempfile::{Builder, NamedTempFile};

/// The prefix of temporary names, by which files that a crash left behind are recognised.
const TEMPORARY_PREFIX: &str = ".tmp-";
const OWNER: u32 = 0o600;
const EVERYBODY: u32 = 0o644;

/// Creates a folder that only its owner can read, and its missing parents.
///
/// # Errors
/// Any of the file system.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() || path.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        // Another command created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(folder_of(path)),
    }
}

/// Writes a new file. If a file of this name exists, it stays unchanged and the result is false. Its writer may have
/// been killed before it synced the folder, so the folder is synced in both cases.
///
/// # Errors
/// Any of the file system.
pub fn create(path: &Path, content: &[u8]) -> io::Result<bool> {
    create_with(path, content, OWNER)
}

/// Writes a new file without secrets, which others may read; otherwise as [`create`].
///
/// # Errors
/// Any of the file system.
pub fn create_public(path: &Path, content: &[u8]) -> io::Result<bool> {
    create_with(path, content, EVERYBODY)
}

fn create_with(path: &Path, content: &[u8], mode: u32) -> io::Result<bool> {
    let file = write_temporary(path, content, mode)?;
    step(Step::Name);
    let is_new = match file.persist_noclobber(path) {
        Ok(_) => true,
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error.error),
    };
    sync_folder(folder_of(path)).map(|()| is_new)
}

/// Writes a file and replaces an existing one. After a crash at any instant the path has all of the old content or all
/// of the new; once this has returned, it has the new content.
///
/// # Errors
/// Any of the file system. The path then has either the old file or the new one.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(content))
}

/// As [`replace`], with content that `write` gives, which need not fit into memory at once.
///
/// # Errors
/// Any of the file system, or of `write`. The old file is then still there, or the new one is.
pub fn replace_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let file = write_temporary_with(path, OWNER, write)?;
    step(Step::Name);
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder_of(path))
}

/// Gives a synced file another name, in the place of what has it.
///
/// # Errors
/// Any of the file system. The name then is the old file's, or the new one's.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    step(Step::Name);
    fs::rename(from, to)?;
    sync_folder(folder_of(to))
}

/// Removes a file.
///
/// # Errors
/// Any of the file system.
pub fn remove(path: &Path) -> io::Result<()> {
    step(Step::Name);
    fs::remove_file(path)?;
    sync_folder(folder_of(path))
}

/// A new file without a name, on the disk of `folder`. It is gone when it is closed, or its program is killed.
///
/// # Errors
/// Any of the file system.
pub fn nameless(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// Reads a file; `None` if it does not exist.
///
/// # Errors
/// Any other error of the file system.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names of the files in a folder, without temporary files that a crash left; `None` if the folder does not exist.
///
/// # Errors
/// Any other error of the file system.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Removes the temporary files that programs left in a folder when they were killed. Nobody may be writing there.
///
/// # Errors
/// Any of the file system.
pub fn remove_temporary(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes the entries of a folder durable: files created, renamed and removed in it.
///
/// # Errors
/// Any of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // `Path::parent` of a bare file name is the empty path.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = File::open(folder)?;
    step(Step::Folder);
    folder.sync_all()
}

/// A step of the disk, for tests. After a power cut, a name may lead to content that was not synced before the rename,
/// and a folder may lack a name until it is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Syncs the content of a file.
    Content,
    /// Adds or removes the name of a file.
    Name,
    /// Syncs the names in a folder.
    Folder,
}

/// Only tests record the steps.
#[cfg(not(test))]
fn step(_: Step) {}
#[cfg(test)]
use tests::step;

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_temporary(path: &Path, content: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    write_temporary_with(path, mode, |file| file.write_all(content))
}

fn write_temporary_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} does not name a file", path.display())));
    }
    let permissions = Permissions::from_mode(mode);
    let mut file = Builder::new().prefix(TEMPORARY_PREFIX).permissions(permissions).tempfile_in(folder_of(path))?;
    let mut writer = BufWriter::new(file.as_file_mut());
    write(&mut writer)?;
    writer.flush()?;
    drop(writer);
    step(Step::Content);
    file.as_file().sync_all()?;
    Ok(file)
}

/// Distinguishes a file from its copies: its creation time, which no program can set, or its inode number where the
/// file system keeps no creation time.
///
/// # Errors
/// Any of the file system.
pub fn birth(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Ok(match born {
        Some(born) => format!("{}.{:09}", born.as_secs(), born.subsec_nanos()),
        None => format!("inode {}", metadata.ino()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local!(static STEPS: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) });

    pub(super) fn step(step: Step) {
        STEPS.with_borrow_mut(|steps| steps.push(step));
    }

    fn steps_of(work: impl FnOnce()) -> Vec<Step> {
        STEPS.take();
        work();
        STEPS.take()
    }

    #[test]
    fn content_is_synced_before_its_name_is_and_the_folder_after_it() {
        use Step::{Content, Folder, Name};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("order");
        // The second call finds a name that the writer may not have synced.
        for is_new in [true, false] {
            let steps = steps_of(|| assert_eq!(create(&path, b"first").unwrap(), is_new));
            assert_eq!(steps, [Content, Name, Folder]);
        }
        assert_eq!(steps_of(|| replace(&path, b"second").unwrap()), [Content, Name, Folder]);
        assert_eq!(steps_of(|| remove(&path).unwrap()), [Name, Folder]);
        // Each new folder is synced into its parent before anything is written in it.
        assert_eq!(steps_of(|| create_folder(&folder.path().join("a/b")).unwrap()), [Folder, Folder]);
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_created_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/order");
        create_folder(path.parent().unwrap()).unwrap();
        assert!(create(&path, b"first").unwrap());
        assert!(!create(&path, b"second").unwrap());
        assert_eq!(read(&path).unwrap().unwrap(), b"first");
        replace(&path, b"third").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"third");
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
        assert_eq!(names(path.parent().unwrap()).unwrap(), ["order"]);
        assert_eq!(names(&folder.path().join("absent")).unwrap(), [""; 0]);
        nameless(path.parent().unwrap()).unwrap().write_all(b"fourth").unwrap();
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a file without a name is in no folder");
        let public = folder.path().join("public");
        assert!(create_public(&public, b"all").unwrap());
        assert_eq!(mode(&public) & 0o600, 0o600);
        remove(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }

    #[test]
    fn what_a_crash_leaves_behind_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("order");
        write_temporary(&path, b"half", OWNER).unwrap().keep().unwrap();
        assert_eq!(names(folder.path()).unwrap(), [""; 0]);
        assert_eq!(read(&path).unwrap(), None);
        assert!(create(&path, b"whole").unwrap());
    }

    #[test]
    fn what_names_no_file_is_refused() {
        assert_eq!(replace(Path::new("/"), b"").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

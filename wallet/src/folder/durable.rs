//! Files that are either there in full after a crash or not there at all: written under a temporary
//! name, synced, given their name, and the folder synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Temporary names start so; what a crash leaves behind is recognised by it.
const TEMPORARY_PREFIX: &str = ".tmp-";

/// Makes a folder that its owner alone can read, and those above it that are missing.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() || path.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        // Another command came first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_parent(path),
    }
}

/// Writes a new file. False where there is one of this name already: that one stays as it is. Its writer may have been
/// killed before it synced the folder, so the folder is synced in both cases.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<bool> {
    let temporary = write_temporary(path, content)?;
    // A link, unlike a rename, never replaces.
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Ok(()) => sync_parent(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => sync_parent(path).map(|()| false),
        Err(error) => Err(error),
    }
}

/// Writes a file, in place of the one of this name.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, content)?;
    fs::rename(&temporary, path)?;
    sync_parent(path)
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    sync_parent(path)
}

/// Reads a file; none where there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names of the files in a folder, without what a crash left behind; none where there is no folder.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<String>> {
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

fn write_temporary(path: &Path, content: &[u8]) -> io::Result<std::path::PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let unique: u64 = rand::random();
    let temporary = path.with_file_name(format!("{TEMPORARY_PREFIX}{unique:016x}-{name}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    Ok(temporary)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_folder(parent.unwrap_or(Path::new(".")))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(names(path.parent().unwrap()).unwrap(), ["order"]);
        assert_eq!(names(&folder.path().join("absent")).unwrap(), [""; 0]);
    }

    #[test]
    fn what_a_crash_leaves_behind_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        write_temporary(&folder.path().join("order"), b"half").unwrap();
        assert_eq!(names(folder.path()).unwrap(), [""; 0]);
        assert_eq!(read(&folder.path().join("order")).unwrap(), None);
        assert!(create(&folder.path().join("order"), b"whole").unwrap());
    }
}

//! Replacing a file so that a crash leaves the old one or the new one, whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file of a folder: under a temporary name, synced, renamed, and the folder synced. A crash may leave the
/// temporary file, which the next call replaces.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = folder.join(format!(".{name}.new"));
    // Whoever passed the folder on may have put a link there: nothing is written through it.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&temporary)?;
    file.write_all(bytes)?;
    step(Step::Content);
    file.sync_all()?;
    step(Step::Name);
    fs::rename(&temporary, folder.join(name))?;
    sync_folder(folder)
}

/// Creates a folder durably, with those above it.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(path)?;
    for above in missing.into_iter().filter_map(Path::parent) {
        sync_folder(if above.as_os_str().is_empty() { Path::new(".") } else { above })?;
    }
    Ok(())
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    step(Step::Folder);
    File::open(folder)?.sync_all()
}

/// A step of the disk, for tests. After a power cut, a name may lead to content that was not synced before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Content,
    Name,
    Folder,
}

/// Only tests record the steps.
#[cfg(not(test))]
fn step(_: Step) {}
#[cfg(test)]
use tests::step;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local!(static STEPS: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) });

    pub(super) fn step(step: Step) {
        STEPS.with_borrow_mut(|steps| steps.push(step));
    }

    #[test]
    fn content_is_synced_before_its_name_is_and_the_folder_after_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".powers.new"), [0; 100]).unwrap();
        replace(folder.path(), "powers", b"new").unwrap();
        assert_eq!(STEPS.take(), [Step::Content, Step::Name, Step::Folder]);
        assert_eq!(fs::read(folder.path().join("powers")).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        fs::write(&elsewhere, b"mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(".powers.new")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("powers")).unwrap();
        replace(folder.path(), "powers", b"new").unwrap();
        assert_eq!(fs::read(folder.path().join("powers")).unwrap(), b"new");
        assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
    }

    #[test]
    fn each_new_folder_is_synced_in_the_one_above_it() {
        let folder = tempfile::tempdir().unwrap();
        create_folder(&folder.path().join("a/b")).unwrap();
        assert_eq!(STEPS.take(), [Step::Folder, Step::Folder]);
        create_folder(&folder.path().join("a/b")).unwrap();
        assert_eq!(STEPS.take(), []);
        assert!(folder.path().join("a/b").is_dir());
    }
}

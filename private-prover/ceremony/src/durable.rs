//! Replacing a file so that a crash leaves the old one or the new one, whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file of a folder: under a temporary name, synced, renamed, and the folder synced. A crash may leave the
/// temporary file, which the next call replaces.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = folder.join(format!(".{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    step(Step::Content);
    file.sync_all()?;
    step(Step::Name);
    fs::rename(&temporary, folder.join(name))?;
    sync_folder(folder)
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
}

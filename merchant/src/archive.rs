//! What ended long ago, as CSV: a file for each time that the journal was written anew without it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::book::Compacted;
use crate::export::{Place, to_csv};

/// The archive cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct ArchiveError {
    path: PathBuf,
    error: io::Error,
}

/// Where the archive is, and what goes there.
#[derive(Debug)]
pub(crate) struct Archive {
    pub folder: PathBuf,
    /// What ended longer ago.
    pub keep: Duration,
}

impl Archive {
    /// Writes down what is forgotten, before it is. One that a crash left behind is written again under the same name.
    pub(crate) fn add(&self, compacted: &Compacted, looked_at_ms: u64) -> Result<(), ArchiveError> {
        let Some(page) = to_csv(&compacted.forgotten, looked_at_ms, &Place::Start, usize::MAX) else { return Ok(()) };
        if page.rows == 0 {
            return Ok(());
        }
        let path = self.folder.join(format!("{:06}.csv", compacted.generation));
        write(&self.folder, &path, &page.table).map_err(|error| ArchiveError { path, error })
    }
}

fn write(folder: &Path, path: &Path, table: &[u8]) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(table)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

//! Numbers of an archive that its folder lacks and its store has: each is fetched into a temporary folder while it is
//! verified, and removed again.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastpay_rpc::{ArchiveFile, ArchivePart};

use super::CheckpointError;
use super::archive::{Archive, ArchiveError, CERTIFICATE, FILES, file_name};
use super::store::Store;
use crate::authority::config::Config;
use crate::authority::deployment::Reader;

/// The files of a number that were fetched. They are removed with it, unless they are kept with the archive.
pub(crate) struct Brought<'a> {
    store: Option<&'a Store>,
    number: u64,
    /// With their kinds.
    files: Vec<(PathBuf, &'static str)>,
}

impl Brought<'_> {
    /// The same error, of the object if its file was fetched.
    pub(super) fn explain(&self, error: ArchiveError) -> ArchiveError {
        let ArchiveError::Wrong { path, defect } = error else { return error };
        match (self.store, self.files.iter().find(|(fetched, _)| *fetched == path)) {
            (Some(store), Some((_, kind))) => {
                ArchiveError::WrongInStore { object: store.object(self.number, kind), defect }
            }
            _ => ArchiveError::Wrong { path, defect },
        }
    }

    /// Keeps the files as long as the archive: a base reads its state from its file.
    pub(crate) fn keep(mut self) {
        self.files.clear();
    }

    /// As `explain`.
    pub(crate) fn explain_checkpoint(&self, error: CheckpointError) -> CheckpointError {
        match error {
            CheckpointError::Archive(error) => self.explain(error).into(),
            error => error,
        }
    }
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        for (file, _) in &self.files {
            if let Err(error) = fs::remove_file(file) {
                tracing::warn!(%error, file = %file.display(), "a fetched file of the archive cannot be removed");
            }
        }
    }
}

impl Archive {
    /// The archive of a running node in a folder, of which a store has what the folder lacks.
    #[must_use]
    pub fn with_store(folder: &Path, store: Option<Store>) -> Self {
        Self { store, ..Self::new(folder) }
    }

    /// The archive at a place that an operator names: a folder, or the URL of a store. The folder of the configuration's
    /// `[archive]` is completed by its store. What is fetched is among the system's temporary files (`TMPDIR`).
    pub(crate) fn at<'a>(place: &Path, reader: impl Into<Reader<'a>>) -> Result<Self, ArchiveError> {
        let temporary = || match tempfile::Builder::new().prefix("fastpay-archive-").tempdir() {
            Ok(folder) => Ok(Arc::new(folder)),
            Err(error) => Err(ArchiveError::Io { path: std::env::temp_dir(), error }),
        };
        if let Some(url) = Store::url_of(place) {
            let (store, fetched) = (Store::open(&url)?, temporary()?);
            return Ok(Self { fetched: Some(fetched.clone()), ..Self::with_store(fetched.path(), Some(store)) });
        }
        let is_same =
            |folder: &Path| matches!((fs::canonicalize(folder), fs::canonicalize(place)), (Ok(a), Ok(b)) if a == b);
        let configured = match reader.into() {
            Reader::Authority(Config { archive, .. }) => archive.as_ref(),
            Reader::Anybody(_) => None,
        };
        let settings = configured.filter(|archive| is_same(&archive.folder));
        let Some(url) = settings.and_then(|archive| archive.store.as_ref()) else { return Ok(Self::new(place)) };
        let (store, fetched) = (Store::open(url)?, temporary()?);
        Ok(Self { fetched: Some(fetched), ..Self::with_store(place, Some(store)) })
    }

    /// The number of the newest certified checkpoint in the folder or the store; 0 if there is none.
    pub(crate) async fn newest_anywhere(&self) -> Result<u64, ArchiveError> {
        let held = self.newest_number()?;
        let Some(store) = &self.store else { return Ok(held) };
        Ok(store.numbers().await?.last().copied().unwrap_or(0).max(held))
    }

    /// A part of a file that the folder lacks, from the store, for a peer; `None` if it cannot be there.
    pub(crate) async fn read_stored_part(
        &self,
        number: u64,
        file: ArchiveFile,
        offset: u64,
    ) -> Result<Option<ArchivePart>, ArchiveError> {
        // The newest numbers are in the folder: peers ask each minute whether there is a next one.
        match &self.store {
            Some(store) if number > 0 && number < self.newest_number()? && file != ArchiveFile::Vote => {
                Ok(store.part_for_peer(number, file, offset).await?)
            }
            _ => Ok(None),
        }
    }

    /// Fetches the files of a certified number that the folder lacks.
    pub(crate) async fn bring(&self, number: u64) -> Result<Brought<'_>, ArchiveError> {
        let mut brought = Brought { store: self.store.as_ref(), number, files: Vec::new() };
        let (Some(store), Some(folder), 1..) = (&self.store, &self.fetched, number) else { return Ok(brought) };
        for kind in FILES.into_iter().filter(|kind| !self.path(number, kind).exists()) {
            let path = folder.path().join(file_name(number, kind));
            let failed = |error| ArchiveError::Io { path: path.clone(), error };
            let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
            brought.files.push((path.clone(), kind));
            match kind {
                CERTIFICATE => file.write_all(&store.certificate(number).await?).map_err(failed)?,
                _ => store.download(number, kind, &mut file).await?.map_err(failed)?,
            }
            file.into_inner().map_err(|error| failed(error.into_error()))?;
        }
        Ok(brought)
    }
}

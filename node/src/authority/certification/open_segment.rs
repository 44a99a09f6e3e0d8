//! A certified segment of which a read shows entries: in the archive's folder, or in its store.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use fastpay_core::checkpoint::{Checkpoint, Leaf, LeafPath, RUN_LEAVES, Segment, TreeLevels};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::archive::{Archive, SEGMENT};
use super::archived::SCANNED_BYTES_MAX;
use super::index::{Runs, SegmentIndex};
use super::store::{ClientRead, Store, StoreError};

/// The longest wait for a run of the store: it has about 50 kB, and at most 8 MiB.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// Why an entry of a segment cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SegmentFault {
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("an entry of segment {0} is not proven by its checkpoint; its index is built again")]
    Unproven(u64),
    #[error(
        "an entry of {object} is not proven by its checkpoint ({reason}). Restore the object's earlier version, or \
         copy it from another authority's archive; if `archive verify` finds it right, remove {index}",
        index = index.display()
    )]
    UnprovenInStore { object: String, reason: String, index: PathBuf },
    #[error("{0}")]
    StoreAway(String),
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for SegmentFault {
    fn from(error: StoreError) -> Self {
        match error {
            error @ StoreError::Access { .. } => Self::StoreAway(error.to_string()),
            error => Self::Store(error),
        }
    }
}

/// Where the entries are.
enum Source<'a> {
    Folder(File),
    Store { store: &'a Store, turn: ClientRead, length: Option<u64> },
}

/// A segment of which entries are read, on a blocking thread of the runtime.
pub(super) struct OpenSegment<'a> {
    archive: &'a Archive,
    checkpoint: Checkpoint,
    index: SegmentIndex,
    /// Once an entry is read.
    read: Option<(Source<'a>, Runs)>,
    /// The run that was read last.
    run: Option<(usize, Vec<Leaf>, TreeLevels)>,
}

impl<'a> OpenSegment<'a> {
    /// `None` if it has no index.
    pub fn open(archive: &'a Archive, checkpoint: &Checkpoint) -> Result<Option<Self>, SegmentFault> {
        let path = archive.index_path(checkpoint.number);
        let index = SegmentIndex::open(&path, checkpoint.segment).map_err(|error| SegmentFault::Io { path, error })?;
        Ok(index.map(|index| Self { archive, checkpoint: *checkpoint, index, read: None, run: None }))
    }

    /// What the index says.
    pub fn index<T>(&self, find: impl FnOnce(&SegmentIndex) -> io::Result<T>) -> Result<T, SegmentFault> {
        let path = || self.archive.index_path(self.checkpoint.number);
        find(&self.index).map_err(|error| SegmentFault::Io { path: path(), error })
    }

    fn source(&self) -> Result<Source<'a>, SegmentFault> {
        let path = self.archive.segment_path(self.checkpoint.number);
        match (File::open(&path), &self.archive.store) {
            (Err(error), Some(store)) if error.kind() == io::ErrorKind::NotFound => {
                let busy = || SegmentFault::StoreAway("too many read from the store".into());
                Ok(Source::Store { store, turn: store.client_read().ok_or_else(busy)?, length: None })
            }
            (file, _) => file.map(Source::Folder).map_err(|error| SegmentFault::Io { path, error }),
        }
    }

    /// Where a run begins and ends.
    fn bounds(&mut self, run: usize) -> Result<(u64, u64), SegmentFault> {
        if self.read.is_none() {
            self.read = Some((self.source()?, self.index(SegmentIndex::runs)?));
        }
        let Some((source, Runs { offsets, .. })) = &mut self.read else { return Ok((0, 0)) };
        let begin = offsets.get(run).copied().unwrap_or(u64::MAX);
        let end = match (offsets.get(run.saturating_add(1)), source) {
            (Some(end), _) => *end,
            (None, Source::Folder(file)) => file.metadata().map_or(u64::MAX, |metadata| metadata.len()),
            (None, Source::Store { length: Some(length), .. }) => *length,
            (None, Source::Store { store, turn, length }) => {
                *length.insert(wait(store.length(turn, self.checkpoint.number, SEGMENT))?)
            }
        };
        Ok((begin, end))
    }

    /// How many bytes are scanned for an entry.
    pub fn cost(&mut self, entry: u32) -> Result<u64, SegmentFault> {
        let run = entry as usize / RUN_LEAVES;
        if self.run.as_ref().is_some_and(|(open, ..)| *open == run) {
            return Ok(0);
        }
        let (begin, end) = self.bounds(run)?;
        Ok(end.saturating_sub(begin))
    }

    /// An entry's leaf and path, which lead to the checkpoint.
    pub fn entry(&mut self, entry: u32) -> Result<(Leaf, LeafPath), SegmentFault> {
        let (run, at) = (entry as usize / RUN_LEAVES, entry as usize % RUN_LEAVES);
        if self.run.as_ref().is_none_or(|(open, ..)| *open != run) {
            let leaves = self.leaves(run)?.map_err(|error| self.unproven(&error))?;
            self.run = TreeLevels::of_leaves(&leaves).map(|levels| (run, leaves, levels));
        }
        let found = self.run.as_ref().and_then(|(_, leaves, levels)| {
            let (leaf, mut path) = (leaves.get(at)?, LeafPath::default());
            levels.extend(&mut path, at);
            Some((leaf.clone(), path))
        });
        let Some((leaf, mut path)) = found else { return Err(self.unproven(&"the run is shorter")) };
        if let Some((_, runs)) = &self.read {
            runs.roots.extend(&mut path, run);
        }
        if leaf.root(&path) != Some(self.checkpoint.segment) {
            return Err(self.unproven(&"the path leads elsewhere"));
        }
        Ok((leaf, path))
    }

    /// The leaves of a run. The inner error is of the bytes.
    fn leaves(&mut self, run: usize) -> Result<io::Result<Vec<Leaf>>, SegmentFault> {
        let (begin, end) = self.bounds(run)?;
        let length = end.saturating_sub(begin);
        match &mut self.read {
            Some((Source::Folder(file), _)) => Ok(file
                .seek(SeekFrom::Start(begin))
                .and_then(|_| Segment::read_run(&mut BufReader::new(file).take(length)))),
            Some((Source::Store { store, turn, .. }, _)) if (1..=SCANNED_BYTES_MAX).contains(&length) => {
                let bytes: Bytes = wait(store.range(turn, self.checkpoint.number, SEGMENT, begin..end))?;
                Ok(Segment::read_run(&mut bytes.as_ref()))
            }
            _ => Ok(Err(io::Error::new(io::ErrorKind::InvalidData, format!("the run has {length} bytes")))),
        }
    }

    /// In the folder, removes the index, which is wrong; or the segment is, and cannot be indexed again. The index of a
    /// segment in the store stays: it was built of the certified segment, and costs the operator a download.
    fn unproven(&self, reason: &dyn Display) -> SegmentFault {
        let (number, index) = (self.checkpoint.number, self.archive.index_path(self.checkpoint.number));
        if let Some((Source::Store { store, .. }, _)) = &self.read {
            return SegmentFault::UnprovenInStore {
                object: store.object(number, SEGMENT),
                reason: reason.to_string(),
                index,
            };
        }
        tracing::warn!(path = %index.display(), error = %reason, "an index does not fit to its segment");
        if let Err(error) = self.archive.drop_index(number) {
            tracing::error!(path = %index.display(), %error, "a wrong index cannot be removed");
        }
        SegmentFault::Unproven(number)
    }
}

/// Waits for the store, not for long.
fn wait<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, SegmentFault> {
    match Handle::current().block_on(async { timeout(STORE_PATIENCE, answer).await }) {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(SegmentFault::StoreAway("the archive's store did not answer in time".into())),
    }
}

//! Entries of the archive, with their proof, for clients: what the journals no longer have.
//!
//! ```text
//!  request ─► a slot ─► index of each number (`index`) ─► runs of the segment ─► entries, paths ─┐
//!             few at once, on a blocking thread            headers up to the newest, its votes ──┴─► page
//! ```
//! The work for a request is bounded: it looks an account up in at most [`ARCHIVED_HEADERS_MAX`] indices, and scans runs
//! of at most [`SCANNED_BYTES_MAX`]. Indices that are missing are built first, one after another; requests do not wait
//! long for that, and come again. An entry is checked against its checkpoint before it is shown: a damaged index is
//! removed, and built again at the next request.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastpay_core::checkpoint::{
    ARCHIVED_HEADERS_MAX, ArchiveCursor, ArchivedEntry, ArchivedList, ArchivedPage, Checkpoint, CheckpointCertificate,
    Leaf, LeafPath, RUN_LEAVES, Segment, TreeLevels,
};
use fastpay_core::{AccountId, Domain, SequenceNumber};
use fastpay_program::files;
use fastpay_rpc::{ARCHIVED_BYTES_MAX, ArchivedRequest, PAGE_ENTRIES_MAX};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::archive::{Archive, ArchiveError};
use super::index::{Runs, SegmentIndex, number_of, pays};

/// Reads at once, for all clients: each holds a blocking thread.
const READS_AT_ONCE: usize = 4;
/// The longest wait for a slot, and for indices.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of a segment that are scanned for one page, which has at least one entry.
const SCANNED_BYTES_MAX: u64 = 8 << 20;

/// Why no archived entries are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotArchived {
    /// There is no archive.
    #[error("this authority keeps no archive; ask another one")]
    NoArchive,
    /// Nothing is certified yet.
    #[error("this authority's archive has no certified checkpoint yet; ask another one, or later")]
    Empty,
    /// What is asked for is too old.
    #[error(
        "the entries asked for are older than checkpoint {0}, the oldest one that can be proven in one answer; read the \
         archive's files"
    )]
    TooOld(u64),
    /// A recovery debited numbers of the list without their owner's order.
    #[error(
        "checkpoint {0} was rebuilt after a recovery: it debits number {1} of the account because the contract paid it, \
         without an order; the list begins after it. Read the archive's files for what is before"
    )]
    Recovered(u64, SequenceNumber),
    /// Too many reads, or indices are being built.
    #[error("busy with the archive; ask again later")]
    Busy,
    /// The disk failed, or a file is damaged.
    #[error("this authority cannot read its archive; ask another one")]
    Unreadable,
}

/// Why a read fails, as the log tells it.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    NotArchived(#[from] NotArchived),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("the certificates of the archive do not follow each other; run `fastpay-node archive verify`")]
    Unlinked,
    #[error("an entry of segment {0} is not proven by its checkpoint; its index is built again")]
    Unproven(u64),
    #[error("an index is missing")]
    NoIndex,
}

/// The checkpoints that entries are proven by.
#[derive(Clone, Debug, Default)]
struct Chain {
    /// Without a gap, up to the newest.
    checkpoints: BTreeMap<u64, Checkpoint>,
    /// Of the newest.
    certificate: Option<CheckpointCertificate>,
}

#[derive(Debug)]
struct Shared {
    archive: Archive,
    domain: Domain,
    slots: Arc<Semaphore>,
    indexing: Arc<tokio::sync::Mutex<()>>,
    chain: Mutex<Arc<Chain>>,
    headers_max: u64,
}

/// Reads of the archive by clients. All ports share one.
#[derive(Clone, Debug, Default)]
pub struct ArchivedReads(Option<Arc<Shared>>);

impl ArchivedReads {
    /// Reads of an archive, if there is one.
    #[must_use]
    pub fn new(archive: Option<Archive>, domain: Domain) -> Self {
        Self(archive.map(|archive| Arc::new(Shared::new(archive, domain, ARCHIVED_HEADERS_MAX as u64))))
    }

    /// A part of a list of an account's entries.
    pub(crate) async fn read(&self, request: ArchivedRequest) -> Result<ArchivedPage, NotArchived> {
        let shared = self.0.as_ref().ok_or(NotArchived::NoArchive)?;
        let mut page = shared.clone().read_once(request).await;
        if matches!(page, Err(ReadError::NoIndex)) {
            page = match shared.clone().index_missing().await {
                Ok(()) => shared.clone().read_once(request).await,
                Err(error) => Err(error),
            };
        }
        page.map_err(|error| match error {
            ReadError::NotArchived(reason) => reason,
            // A number was certified meanwhile.
            ReadError::NoIndex => NotArchived::Busy,
            error => {
                tracing::error!(%error, "archived entries cannot be read");
                NotArchived::Unreadable
            }
        })
    }
}

impl Shared {
    fn new(archive: Archive, domain: Domain, headers_max: u64) -> Self {
        let (slots, indexing) = (Arc::new(Semaphore::new(READS_AT_ONCE)), Arc::default());
        Self { archive, domain, slots, indexing, chain: Mutex::default(), headers_max }
    }

    async fn read_once(self: Arc<Self>, request: ArchivedRequest) -> Result<ArchivedPage, ReadError> {
        let Ok(Ok(slot)) = timeout(PATIENCE, self.slots.clone().acquire_owned()).await else {
            return Err(NotArchived::Busy.into());
        };
        let read = move || {
            let _slot = slot;
            self.page(&request)
        };
        tokio::task::spawn_blocking(read).await.unwrap_or(Err(NotArchived::Unreadable.into()))
    }

    /// Builds the indices that are missing. It goes on if the caller waits no longer.
    async fn index_missing(self: Arc<Self>) -> Result<(), ReadError> {
        let indexing = async {
            let turn = self.indexing.clone().lock_owned().await;
            let shared = self.clone();
            let build = move || {
                let _turn = turn;
                let built = shared.build_missing();
                if let Err(error) = &built {
                    tracing::error!(%error, "the archive cannot be indexed");
                }
                built
            };
            tokio::task::spawn_blocking(build).await.unwrap_or(Err(NotArchived::Unreadable.into()))
        };
        timeout(PATIENCE, indexing).await.unwrap_or(Err(NotArchived::Busy.into()))
    }

    fn build_missing(&self) -> Result<(), ReadError> {
        for (number, checkpoint) in &self.chain()?.checkpoints {
            let (index, segment) = (self.archive.index_path(*number), self.archive.segment_path(*number));
            let failed = |error| ReadError::Io { path: segment.clone(), error };
            if SegmentIndex::open(&index, checkpoint.segment).map_err(failed)?.is_none() {
                SegmentIndex::build(&index, &segment, checkpoint.segment).map_err(failed)?;
                tracing::info!(number, "indexed a segment of the archive");
            }
        }
        Ok(())
    }

    /// The certified checkpoints, the newest [`ARCHIVED_HEADERS_MAX`] of them. Certificates are read once; only the newest
    /// can be replaced, or one below it with it.
    fn chain(&self) -> Result<Arc<Chain>, ReadError> {
        let newest = self.archive.newest_number()?;
        if newest == 0 {
            return Err(NotArchived::Empty.into());
        }
        let certificate = self.archive.certificate(newest)?;
        let known = self.chain.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.certificate.as_ref() == Some(&certificate) {
            return Ok(known);
        }
        for known in [&known, &Chain::default()] {
            let lowest = newest.saturating_add(1).saturating_sub(self.headers_max).max(1);
            let mut checkpoints = BTreeMap::from([(newest, certificate.checkpoint)]);
            for number in lowest..newest {
                let checkpoint = match known.checkpoints.get(&number) {
                    Some(checkpoint) => *checkpoint,
                    None => self.archive.certificate(number)?.checkpoint,
                };
                checkpoints.insert(number, checkpoint);
            }
            let is_linked = |(before, after): (&Checkpoint, &Checkpoint)| {
                after.previous == self.domain.checkpoint_digest(before)
                    && after.number == before.number.saturating_add(1)
            };
            if checkpoints.values().zip(checkpoints.values().skip(1)).all(is_linked) {
                let chain = Arc::new(Chain { checkpoints, certificate: Some(certificate) });
                *self.chain.lock().unwrap_or_else(PoisonError::into_inner) = chain.clone();
                return Ok(chain);
            }
        }
        Err(ReadError::Unlinked)
    }

    fn page(&self, request: &ArchivedRequest) -> Result<ArchivedPage, ReadError> {
        let chain = self.chain()?;
        let mut page = PageBuilder::new(request.limit);
        match request.list {
            ArchivedList::Sent(from) => self.sent(&chain, request.account, from, &mut page)?,
            ArchivedList::Received(from) => self.received(&chain, request.account, from, &mut page)?,
        }
        let lowest = page.entries.first().map_or(u64::MAX, |entry| entry.checkpoint);
        let newest = chain.checkpoints.last_key_value().map_or(0, |(newest, _)| *newest);
        let headers = chain.checkpoints.range(lowest.min(newest)..).map(|(_, checkpoint)| *checkpoint).collect();
        let votes = chain.certificate.as_ref().map(|certificate| certificate.votes.clone()).unwrap_or_default();
        Ok(ArchivedPage { entries: page.entries, headers, votes, next: page.next })
    }

    fn sent(
        &self,
        chain: &Chain,
        account: AccountId,
        from: SequenceNumber,
        page: &mut PageBuilder,
    ) -> Result<(), ReadError> {
        let oldest = chain.checkpoints.first_key_value().map_or(0, |(oldest, _)| *oldest);
        let mut number = from.0;
        for checkpoint in chain.checkpoints.values() {
            let mut segment = self.open(checkpoint)?;
            let senders = segment.index(|index| index.senders(&account))?;
            for paid in senders.iter().filter(|paid| paid.count == 0 && number <= paid.first.0) {
                // Unless it is of another account with the same key.
                if number_of(&segment.entry(paid.entry)?.0) == Some((account, paid.first)) {
                    return Err(NotArchived::Recovered(checkpoint.number, paid.first).into());
                }
            }
            for sender in senders {
                if page.entries.is_empty() && number < sender.first.0 && oldest > 1 {
                    return Err(NotArchived::TooOld(oldest).into());
                }
                let behind = number.checked_sub(sender.first.0).and_then(|behind| u32::try_from(behind).ok());
                let Some(behind) = behind.filter(|behind| *behind < sender.count) else { continue };
                for entry in
                    (sender.entry.saturating_add(behind)..).take((sender.count.saturating_sub(behind)) as usize)
                {
                    if !page.has_room(segment.cost(entry)?) {
                        page.next = Some(ArchiveCursor { checkpoint: checkpoint.number, entry });
                        return Ok(());
                    }
                    let (leaf, path) = segment.entry(entry)?;
                    if number_of(&leaf) != Some((account, SequenceNumber(number))) {
                        break;
                    }
                    page.push(checkpoint.number, leaf, path);
                    number = number.saturating_add(1);
                }
            }
        }
        Ok(())
    }

    fn received(
        &self,
        chain: &Chain,
        account: AccountId,
        from: ArchiveCursor,
        page: &mut PageBuilder,
    ) -> Result<(), ReadError> {
        let oldest = chain.checkpoints.first_key_value().map_or(0, |(oldest, _)| *oldest);
        if from.checkpoint < oldest && oldest > 1 {
            return Err(NotArchived::TooOld(oldest).into());
        }
        for checkpoint in chain.checkpoints.range(from.checkpoint..).map(|(_, checkpoint)| checkpoint) {
            let mut first = if checkpoint.number == from.checkpoint { from.entry } else { 0 };
            let mut segment = self.open(checkpoint)?;
            // One at a time: few are of another account, and a page has few.
            while let Some(entry) = segment.index(|index| index.receipt(&account, first))? {
                if !page.has_room(segment.cost(entry)?) {
                    page.next = Some(ArchiveCursor { checkpoint: checkpoint.number, entry });
                    return Ok(());
                }
                let (leaf, path) = segment.entry(entry)?;
                if pays(&leaf, &account) {
                    page.push(checkpoint.number, leaf, path);
                }
                first = entry.saturating_add(1);
            }
        }
        Ok(())
    }

    fn open(&self, checkpoint: &Checkpoint) -> Result<OpenSegment, ReadError> {
        let (path, index_path) =
            (self.archive.segment_path(checkpoint.number), self.archive.index_path(checkpoint.number));
        let failed = |error| ReadError::Io { path: index_path.clone(), error };
        let index = SegmentIndex::open(&index_path, checkpoint.segment).map_err(failed)?.ok_or(ReadError::NoIndex)?;
        Ok(OpenSegment { checkpoint: *checkpoint, index, path, index_path, read: None, run: None })
    }
}

/// A segment of which entries are read.
struct OpenSegment {
    checkpoint: Checkpoint,
    index: SegmentIndex,
    path: PathBuf,
    index_path: PathBuf,
    /// Once an entry is read.
    read: Option<(File, Runs)>,
    /// The run that was read last.
    run: Option<(usize, Vec<Leaf>, TreeLevels)>,
}

impl OpenSegment {
    fn index<T>(&self, find: impl FnOnce(&SegmentIndex) -> io::Result<T>) -> Result<T, ReadError> {
        find(&self.index).map_err(|error| ReadError::Io { path: self.index_path.clone(), error })
    }

    fn runs(&mut self) -> Result<&mut (File, Runs), ReadError> {
        let read = match self.read.take() {
            Some(read) => read,
            None => {
                let file = File::open(&self.path).map_err(|error| ReadError::Io { path: self.path.clone(), error })?;
                (file, self.index(SegmentIndex::runs)?)
            }
        };
        Ok(self.read.insert(read))
    }

    /// How many bytes are scanned for an entry.
    fn cost(&mut self, entry: u32) -> Result<u64, ReadError> {
        let run = entry as usize / RUN_LEAVES;
        if self.run.as_ref().is_some_and(|(open, ..)| *open == run) {
            return Ok(0);
        }
        let (file, Runs { offsets, .. }) = self.runs()?;
        let length = file.metadata().map_or(u64::MAX, |metadata| metadata.len());
        let begin = offsets.get(run).copied().unwrap_or(length);
        Ok(offsets.get(run.saturating_add(1)).copied().unwrap_or(length).saturating_sub(begin))
    }

    /// An entry's leaf and path, which lead to the checkpoint.
    fn entry(&mut self, entry: u32) -> Result<(Leaf, LeafPath), ReadError> {
        let (run, at) = (entry as usize / RUN_LEAVES, entry as usize % RUN_LEAVES);
        if self.run.as_ref().is_none_or(|(open, ..)| *open != run) {
            let bytes = self.cost(entry)?;
            let (file, Runs { offsets, .. }) = self.runs()?;
            let begin = offsets.get(run).copied().unwrap_or(u64::MAX);
            let read = file
                .seek(SeekFrom::Start(begin))
                .and_then(|_| Segment::read_run(&mut BufReader::new(file).take(bytes)));
            let leaves = read.map_err(|error| self.unproven(&error))?;
            self.run = TreeLevels::of_leaves(&leaves).map(|levels| (run, leaves, levels));
        }
        let found = self.run.as_ref().and_then(|(_, leaves, levels)| {
            let (leaf, mut path) = (leaves.get(at)?, LeafPath::default());
            levels.extend(&mut path, at);
            Some((leaf.clone(), path))
        });
        let Some((leaf, mut path)) = found else { return Err(self.unproven(&"the run is shorter")) };
        self.runs()?.1.roots.extend(&mut path, run);
        if leaf.root(&path) != Some(self.checkpoint.segment) {
            return Err(self.unproven(&"the path leads elsewhere"));
        }
        Ok((leaf, path))
    }

    /// Removes the index, which is wrong; or the segment is, and cannot be indexed again.
    fn unproven(&self, error: &dyn std::fmt::Display) -> ReadError {
        tracing::warn!(path = %self.path.display(), %error, "an index does not fit to its segment");
        if let Err(error) = files::remove(&self.index_path) {
            tracing::error!(path = %self.index_path.display(), %error, "a wrong index cannot be removed");
        }
        ReadError::Unproven(self.checkpoint.number)
    }
}

/// Gathers entries up to the bounds of a page.
struct PageBuilder {
    entries: Vec<ArchivedEntry>,
    next: Option<ArchiveCursor>,
    limit: usize,
    bytes: usize,
    scanned: u64,
}

impl PageBuilder {
    fn new(limit: u32) -> Self {
        let limit = if limit == 0 { PAGE_ENTRIES_MAX } else { limit.min(PAGE_ENTRIES_MAX) };
        Self { entries: Vec::new(), next: None, limit: limit as usize, bytes: 0, scanned: 0 }
    }

    /// Whether another entry fits for which so many bytes are scanned. The first one always does.
    fn has_room(&mut self, scanned: u64) -> bool {
        let is_first = self.scanned == 0;
        self.scanned = self.scanned.saturating_add(scanned);
        let is_within = self.bytes < ARCHIVED_BYTES_MAX && self.scanned <= SCANNED_BYTES_MAX;
        self.entries.len() < self.limit && (is_first || is_within)
    }

    fn push(&mut self, checkpoint: u64, leaf: Leaf, path: LeafPath) {
        let bytes = leaf.encoded().len().saturating_add(path.siblings.len().saturating_mul(32));
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries.push(ArchivedEntry { leaf, checkpoint, path });
    }
}

#[cfg(test)]
mod tests;

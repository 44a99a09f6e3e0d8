//! Entries of the archive, with their proof, for clients: what the journals no longer have.
//!
//! ```text
//!  request ─► a slot ─► index of each number (`index`) ─► runs of the segment ─► entries, paths ─┐
//!             few at once, on a blocking thread            headers up to the newest, its votes ──┴─► page
//! ```
//! The work for a request is bounded: it looks an account up in at most [`ARCHIVED_HEADERS_MAX`] indices, and scans
//! runs of at most [`SCANNED_BYTES_MAX`], for about [`PAGE_TIME`]. Missing indices are built first, one by one;
//! requests do not wait long for that, and come again. An entry is checked against its checkpoint before it is shown: a
//! damaged index is removed, and built again at the next request.
//!
//! A number that is in the archive's store alone has its header and its index in the folder (`past`), and its runs are
//! read from the store (`open_segment`). While the store is away, `past` is being completed, or a number was skipped
//! and is not fetched yet, clients come again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastpay_core::checkpoint::{
    ARCHIVED_HEADERS_MAX, ArchiveCursor, ArchivedEntry, ArchivedList, ArchivedPage, Checkpoint, CheckpointCertificate,
    Leaf, LeafPath,
};
use fastpay_core::{AccountId, Domain, SequenceNumber};
use fastpay_rpc::{ARCHIVED_BYTES_MAX, ArchivedRequest, PAGE_ENTRIES_MAX};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::archive::{Archive, ArchiveError};
use super::index::{number_of, pays};
use super::open_segment::{OpenSegment, SegmentFault};

/// Reads at once, for all clients: each holds a blocking thread.
const READS_AT_ONCE: usize = 4;
/// The longest wait for a slot, and for indices.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of a segment that are scanned for one page, which has at least one entry.
pub(super) const SCANNED_BYTES_MAX: u64 = 8 << 20;
/// After this time a page begins no other run. From a store, each run is a request of its own.
const PAGE_TIME: Duration = Duration::from_secs(3);

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
    /// Too many reads, or indices are being built, or the archive's store is away, or a number is still to be fetched.
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
    #[error(transparent)]
    Segment(#[from] SegmentFault),
    #[error("the certificates of the archive do not follow each other; run `fastpay-node archive verify`")]
    Unlinked,
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
            ReadError::Segment(SegmentFault::StoreAway(error)) => {
                tracing::warn!(%error, "archived entries cannot be read from the store now");
                NotArchived::Busy
            }
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
        let mut is_lacking = false;
        let skipped = self.archive.skipped()?;
        for (number, checkpoint) in &self.chain()?.checkpoints {
            // It may have the files of another checkpoint.
            if skipped.contains(number) {
                is_lacking = true;
                continue;
            }
            match self.archive.index(checkpoint) {
                Ok(true) => tracing::info!(number, "indexed a segment of the archive"),
                // It is in the store alone: `past` reads it.
                Err(ArchiveError::Missing(_)) if self.archive.store.is_some() => {
                    self.archive.drop_index(*number)?;
                    is_lacking = true;
                }
                indexed => drop(indexed?),
            }
        }
        if is_lacking { Err(NotArchived::Busy.into()) } else { Ok(()) }
    }

    /// The certified checkpoints, the newest [`ARCHIVED_HEADERS_MAX`] of them. Certificates are read once; only the
    /// newest can be replaced, or one below it with it.
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
                    None => match self.archive.checkpoint(number) {
                        Err(ArchiveError::Missing(_)) if self.archive.store.is_some() => {
                            return Err(NotArchived::Busy.into());
                        }
                        checkpoint => checkpoint?,
                    },
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
            ArchivedList::Sent(from) => self.sent(&chain, request, from, &mut page)?,
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
        &ArchivedRequest { account, with_paid, .. }: &ArchivedRequest,
        from: SequenceNumber,
        page: &mut PageBuilder,
    ) -> Result<(), ReadError> {
        let oldest = chain.checkpoints.first_key_value().map_or(0, |(oldest, _)| *oldest);
        let mut number = from.0;
        for checkpoint in chain.checkpoints.values() {
            let mut segment = self.open(checkpoint)?;
            let senders = segment.index(|index| index.senders(&account))?;
            // The last number that a recovery debited, unless it is of another account with the same key.
            let mut paid = None;
            for sender in senders.iter().filter(|sender| sender.count == 0 && number <= sender.first.0) {
                let (leaf, path) = segment.entry(sender.entry)?;
                if number_of(&leaf) == Some((account, sender.first)) {
                    paid = Some((sender.first, sender.entry, leaf, path));
                }
            }
            if let Some((last, ..)) = &paid
                && !with_paid
            {
                return Err(NotArchived::Recovered(checkpoint.number, *last).into());
            }
            for sender in senders.into_iter().filter(|sender| sender.count > 0) {
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
            // Behind a gap it is shown to whoever asks for exactly this number.
            if let Some((last, entry, leaf, path)) = paid
                && (last.0, page.entries.is_empty()) == (number, true)
                && page.has_room(segment.cost(entry)?)
            {
                page.push(checkpoint.number, leaf, path);
                number = number.saturating_add(1);
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

    fn open(&self, checkpoint: &Checkpoint) -> Result<OpenSegment<'_>, ReadError> {
        OpenSegment::open(&self.archive, checkpoint)?.ok_or(ReadError::NoIndex)
    }
}

/// Gathers entries up to the bounds of a page.
struct PageBuilder {
    entries: Vec<ArchivedEntry>,
    next: Option<ArchiveCursor>,
    limit: usize,
    bytes: usize,
    scanned: u64,
    until: Instant,
}

impl PageBuilder {
    fn new(limit: u32) -> Self {
        let limit = if limit == 0 { PAGE_ENTRIES_MAX } else { limit.min(PAGE_ENTRIES_MAX) };
        let until = Instant::now().checked_add(PAGE_TIME).unwrap_or_else(Instant::now);
        Self { entries: Vec::new(), next: None, limit: limit as usize, bytes: 0, scanned: 0, until }
    }

    /// Whether another entry fits for which so many bytes are scanned. The first one always does.
    fn has_room(&mut self, scanned: u64) -> bool {
        let is_first = self.scanned == 0;
        self.scanned = self.scanned.saturating_add(scanned);
        let is_in_time = scanned == 0 || Instant::now() < self.until;
        let is_within = self.bytes < ARCHIVED_BYTES_MAX && self.scanned <= SCANNED_BYTES_MAX && is_in_time;
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

//! An index of the journals: the positions of transfers by digest, and of deposits by index, and the newest transfers.
//!
//! ```text
//!  journals ──(behind the commits)──► a thread of the lowest priority ──► digest or index → shard, position ──► readers
//! ```
//! Payments never wait for the index, and losing it costs time only. Its entries are verified against the journal when
//! they are read. Entries and progress are written together, so the index continues after a restart; if it contradicts
//! the journals, it is rebuilt.

mod store;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fastpay_core::{Digest, Domain, JournalPosition, Record, ShardId, TransactionIndex};

use crate::authority::priority::lowest_priority;
use crate::authority::shard::{HistoryError, HistoryReader};
use store::Store;
pub use store::{IndexError, IndexedTransfer, Place};

/// Interval between checks of the journals. A check reads one number for each shard.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of records read before their entries are written. It bounds memory.
const RECORDS_PER_WRITE_MAX: usize = 4_096;
/// The number of newest transfers that are listed: as many as a page shows.
pub const NEWEST_TRANSFERS: usize = 20;

/// A reader of the index. Cheap to clone.
#[derive(Clone)]
pub struct Index {
    shared: Arc<Shared>,
}

struct Shared {
    /// Empty until the thread has opened the store, and if it cannot be opened.
    store: OnceLock<Store>,
    histories: Vec<HistoryReader>,
    /// The position of each shard's journal up to which it is indexed.
    indexed: Vec<AtomicU64>,
    /// The newest transfers of all shards in the order in which the thread read them, oldest first.
    newest: Mutex<VecDeque<IndexedTransfer>>,
    /// Its thread has ended, so no more entries will come.
    failed: AtomicBool,
}

/// The thread that keeps the index. Dropping this ends it.
pub struct Indexer {
    /// Dropped to stop the thread.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Index {
    /// Starts the thread that keeps the index of these shards' journals in a folder.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(
        folder: PathBuf,
        domain: Domain,
        histories: Vec<HistoryReader>,
    ) -> Result<(Self, Indexer), std::io::Error> {
        let indexed = histories.iter().map(|_| AtomicU64::new(0)).collect();
        let (store, newest, failed) = (OnceLock::new(), Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { store, histories, indexed, newest, failed });
        let (stop, stopped) = sync_channel(0);
        let keeper = Keeper { shared: shared.clone(), domain, stopped };
        let run = move || {
            // Open the store on this thread, so that the store's own threads have the lowest priority, too.
            lowest_priority();
            let mut end = End { shared: keeper.shared.clone(), was_told: false };
            match keeper.run(folder) {
                Ok(()) => end.was_told = true,
                Err(error) => {
                    tracing::error!(%error, "transfers are no longer found by their digest, nor deposits by their index");
                }
            }
        };
        let thread = std::thread::Builder::new().name("index".into()).spawn(run)?;
        Ok((Self { shared }, Indexer { stop: Some(stop), thread: Some(thread) }))
    }

    /// The position of a transfer's confirmation, if it is indexed.
    ///
    /// # Errors
    /// If the store fails.
    pub fn transfer(&self, digest: &Digest) -> Result<Option<Place>, IndexError> {
        self.shared.store.get().map_or(Ok(None), |store| store.transfer(digest))
    }

    /// The position of a deposit's synchronization, if it is indexed.
    ///
    /// # Errors
    /// If the store fails.
    pub fn deposit(&self, index: TransactionIndex) -> Result<Option<Place>, IndexError> {
        self.shared.store.get().map_or(Ok(None), |store| store.deposit(index))
    }

    /// The newest indexed transfers, newest first. Those of different shards are in the order in which the index read
    /// them.
    #[must_use]
    pub fn newest(&self) -> Vec<IndexedTransfer> {
        let newest = self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.iter().rev().copied().collect()
    }

    /// How many bytes of the journals are not in the index yet.
    #[must_use]
    pub fn bytes_behind(&self) -> u64 {
        let shards = self.shared.histories.iter().zip(&self.shared.indexed);
        shards.map(|(history, indexed)| history.end().0.saturating_sub(indexed.load(Ordering::Relaxed))).sum()
    }

    /// Whether the index no longer follows the journals, because its store or a journal failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }
}

/// Reports that the index has failed if its thread ends without being stopped.
struct End {
    shared: Arc<Shared>,
    was_told: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.was_told {
            self.shared.failed.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that keeps the index ended by a defect; see the log above");
        }
    }
}

struct Keeper {
    shared: Arc<Shared>,
    domain: Domain,
    stopped: Receiver<()>,
}

/// Why the thread ends by itself.
#[derive(Debug, thiserror::Error)]
enum KeeperError {
    #[error(transparent)]
    Store(#[from] IndexError),
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl Keeper {
    fn run(self, folder: PathBuf) -> Result<(), KeeperError> {
        let ends: Vec<JournalPosition> = self.shared.histories.iter().map(HistoryReader::end).collect();
        let store = Store::open(&folder, &ends)?;
        let mut newest = VecDeque::from(store.newest()?);
        let store = self.shared.store.get_or_init(|| store);
        loop {
            self.publish(&newest);
            for (shard, history) in (0..).map(ShardId).zip(&self.shared.histories) {
                self.follow(store, shard, history, &mut newest)?;
            }
            match self.stopped.recv_timeout(LOOK_INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Publishes the newest transfers.
    fn publish(&self, newest: &VecDeque<IndexedTransfer>) {
        self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner).clone_from(newest);
    }

    /// Adds the records of a journal that the index does not have yet.
    fn follow(
        &self,
        store: &Store,
        shard: ShardId,
        history: &HistoryReader,
        newest: &mut VecDeque<IndexedTransfer>,
    ) -> Result<(), KeeperError> {
        let Some(indexed) = self.shared.indexed.get(shard.0 as usize) else { return Ok(()) };
        while self.goes_on() {
            let end = history.end();
            if end.0 <= indexed.load(Ordering::Relaxed) {
                return Ok(());
            }
            // Read the newest indexed record again: the next one begins after its end.
            let indexed_to = store.position(shard)?;
            let from = indexed_to.unwrap_or_default();
            let (mut entries, mut last, mut count) = (store.entries(shard), from, 0_usize);
            for record in history.records(from).take(RECORDS_PER_WRITE_MAX) {
                let (position, record) = record?;
                (last, count) = (position, count.saturating_add(1));
                match &record {
                    Record::Confirmation { certificate, .. } => {
                        let digest = record.payout_digest();
                        let transfer = &certificate.order.transfer;
                        let digest = digest.unwrap_or_else(|| self.domain.transfer_digest(transfer));
                        entries.transfer(&digest, position);
                        if indexed_to.is_none_or(|indexed_to| position > indexed_to) {
                            let (sender, sequence) = (transfer.sender(), transfer.sequence());
                            newest.push_back(IndexedTransfer { sender, sequence, digest });
                            drop(newest.drain(..newest.len().saturating_sub(NEWEST_TRANSFERS)));
                        }
                    }
                    Record::Synchronization { order, .. } => {
                        order.deposit.iter().for_each(|deposit| entries.deposit(deposit.index, position));
                    }
                    _ => {}
                }
            }
            entries.write(last, newest)?;
            let all = count < RECORDS_PER_WRITE_MAX;
            indexed.store(if all { end.0 } else { last.0 }, Ordering::Relaxed);
        }
        Ok(())
    }

    /// False once the thread must stop.
    fn goes_on(&self) -> bool {
        matches!(self.stopped.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }
}

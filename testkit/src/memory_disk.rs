//! An in-memory disk with the faults of real disks: it can fill up, hang, fail to sync and lose power.
//!
//! Each file has two images: what a reader sees (the page cache) and what would survive a power cut.
//! A write changes the first and marks pages dirty; a sync copies dirty pages to the second. As on
//! Linux, a *failed* sync leaves its pages readable and forgets that they were never stored.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fastpay_program::disk::{Disk, SegmentFile};

/// The size of a page: small, so that short test files span several pages, each of which a power cut keeps or loses.
const PAGE_BYTES: usize = 64;

/// A disk for tests and simulations. Clones are the same disk.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a sync begins to wait, and when syncs may go on.
    syncing: Condvar,
}

#[derive(Default)]
struct State {
    files: BTreeMap<PathBuf, Images>,
    bytes_free: Option<usize>,
    failing_syncs: bool,
    syncs_held: bool,
    syncs_waiting: usize,
    syncs: u64,
}

#[derive(Default)]
struct Images {
    seen: Vec<u8>,
    stored: Vec<u8>,
    dirty_pages: BTreeSet<usize>,
    length_is_dirty: bool,
}

impl MemoryDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on only this many more bytes fit; `None` removes the limit.
    pub fn set_bytes_free(&self, bytes_free: Option<usize>) {
        self.state().bytes_free = bytes_free;
    }

    /// Makes syncs fail, or succeed again.
    pub fn set_failing_syncs(&self, failing: bool) {
        self.state().failing_syncs = failing;
    }

    /// Makes syncs of files hang, or lets them go on, including those that hang.
    pub fn set_held_syncs(&self, held: bool) {
        self.state().syncs_held = held;
        self.0.syncing.notify_all();
    }

    /// Waits until a sync hangs.
    pub fn wait_for_held_sync(&self) {
        let waiting = self.0.syncing.wait_while(self.state(), |state| state.syncs_waiting == 0);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// The number of syncs of files that have succeeded.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Cuts the power: each page and each change of length that was not synced survives only if `survives` returns
    /// true.
    pub fn lose_power(&self, mut survives: impl FnMut() -> bool) {
        for images in self.state().files.values_mut() {
            if images.length_is_dirty && survives() {
                images.stored.resize(images.seen.len(), 0);
            }
            for page in std::mem::take(&mut images.dirty_pages) {
                if survives() {
                    images.store_page(page);
                }
            }
            images.length_is_dirty = false;
            images.seen = images.stored.clone();
        }
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().files.keys().cloned().collect()
    }

    /// The bytes of a file, or none if the file does not exist.
    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.files.get(path).map(|images| images.seen.clone()).unwrap_or_default()
    }

    /// Writes a whole file, durable at once, so that a test can damage a file as a failing disk or a person would.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        let images = Images { stored: bytes.clone(), seen: bytes, ..Images::default() };
        self.state().files.insert(path.to_owned(), images);
    }

    /// Removes a file.
    pub fn remove(&self, path: &Path) {
        self.state().files.remove(path);
    }

    /// An independent disk with the same bytes, all of them durable, and no faults.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        for path in self.paths() {
            copy.put(&path, self.bytes(&path));
        }
        copy
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reserves room for up to `wanted` bytes and returns how many fit.
    fn take_room(&mut self, wanted: usize) -> usize {
        let Some(bytes_free) = &mut self.bytes_free else {
            return wanted;
        };
        let taken = wanted.min(*bytes_free);
        *bytes_free -= taken;
        taken
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut Images> {
        self.files.get_mut(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Images {
    fn store_page(&mut self, page: usize) {
        let from = page * PAGE_BYTES;
        let to = (from + PAGE_BYTES).min(self.seen.len());
        let Some(bytes) = self.seen.get(from..to) else {
            return;
        };
        if self.stored.len() < to {
            self.stored.resize(to, 0);
        }
        if let Some(target) = self.stored.get_mut(from..to) {
            target.copy_from_slice(bytes);
        }
    }
}

impl Disk for MemoryDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let inside = state.files.keys().filter(|p| p.parent() == Some(folder));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn SegmentFile>> {
        self.state().file(path)?;
        Ok(Arc::new(MemoryFile { disk: self.clone(), path: path.to_owned() }))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if state.take_room(bytes.len()) < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if state.failing_syncs {
            return Err(io::Error::other("sync failed"));
        }
        state.syncs += 1;
        drop(state);
        self.put(path, bytes.to_vec());
        Ok(())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.state().bytes_free.map_or(u64::MAX, |bytes| bytes as u64))
    }

    fn is_slow(&self) -> bool {
        false
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    path: PathBuf,
}

impl SegmentFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().file(&self.path)?.seen.len() as u64)
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let mut state = self.disk.state();
        let seen = &state.file(&self.path)?.seen;
        let source =
            from.checked_add(bytes.len()).and_then(|to| seen.get(from..to)).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(source);
        Ok(())
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let mut state = self.disk.state();
        let length = state.file(&self.path)?.seen.len();
        let overwritten = length.saturating_sub(from).min(bytes.len());
        let fits = overwritten + state.take_room(bytes.len() - overwritten);

        let images = state.file(&self.path)?;
        let to = from + fits;
        if images.seen.len() < to {
            images.seen.resize(to, 0);
            images.length_is_dirty = true;
        }
        if let (Some(target), Some(source)) = (images.seen.get_mut(from..to), bytes.get(..fits)) {
            target.copy_from_slice(source);
        }
        if fits > 0 {
            let pages = from / PAGE_BYTES..=(to - 1) / PAGE_BYTES;
            images.dirty_pages.extend(pages);
        }
        if fits < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let mut state = self.disk.state();
        let images = state.file(&self.path)?;
        images.seen.resize(length, 0);
        images.length_is_dirty = true;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.syncs_waiting += 1;
        self.disk.0.syncing.notify_all();
        let held = self.disk.0.syncing.wait_while(state, |state| state.syncs_held);
        state = held.unwrap_or_else(PoisonError::into_inner);
        state.syncs_waiting -= 1;
        let failing = state.failing_syncs;
        let images = state.file(&self.path)?;
        let dirty_pages = std::mem::take(&mut images.dirty_pages);
        if failing {
            return Err(io::Error::other("sync failed"));
        }
        for page in dirty_pages {
            images.store_page(page);
        }
        images.stored.resize(images.seen.len(), 0);
        images.length_is_dirty = false;
        state.syncs += 1;
        Ok(())
    }
}

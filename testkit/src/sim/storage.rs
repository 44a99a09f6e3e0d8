//! Disks and checkpoint stores that lose power at any operation.
//!
//! Each process has one [`Power`]. Once it is cut, every operation fails; the operation during which it is cut either
//! has no effect or its full effect. So a process dies before a write, between a write and its sync, or between a sync
//! and the message after it. Unsynced data is then kept or lost page by page.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastpay_core::JournalPosition;
use fastpay_node::authority::storage::{Checkpoint, CheckpointError, Checkpoints, StoreKey};
use fastpay_program::disk::{Disk, SegmentFile};

use super::dice::Dice;
use crate::MemoryDisk;

/// The power supply of one process.
#[derive(Clone, Debug, Default)]
pub struct Power(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_off: bool,
    cut: Option<Cut>,
}

/// A scheduled power cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The number of operations before it.
    pub operations: usize,
    /// Whether only writes of checkpoints count, so that it happens during one.
    pub of_checkpoints: bool,
    /// Whether the operation during which it happens still takes effect. Its caller gets an error in both cases.
    pub is_done: bool,
}

/// Whether an operation takes effect, and whether its caller is told so.
#[derive(PartialEq, Eq)]
enum Turn {
    Done,
    DoneUnheard,
    NotDone,
}

impl Power {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches the power on.
    pub fn restore(&self) {
        *self.state() = State::default();
    }

    /// Cuts the power at once.
    pub fn off(&self) {
        *self.state() = State { is_off: true, cut: None };
    }

    /// Whether it is off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Schedules a cut at a later operation.
    pub fn cut_at(&self, cut: Cut) {
        self.state().cut = Some(cut);
    }

    fn turn(&self, is_checkpoint: bool) -> Turn {
        let mut state = self.state();
        if state.is_off {
            return Turn::NotDone;
        }
        let Some(cut) = &mut state.cut else { return Turn::Done };
        if cut.of_checkpoints && !is_checkpoint {
            return Turn::Done;
        }
        if cut.operations > 0 {
            cut.operations -= 1;
            return Turn::Done;
        }
        let is_done = cut.is_done;
        *state = State { is_off: true, cut: None };
        if is_done { Turn::DoneUnheard } else { Turn::NotDone }
    }

    fn work<T>(&self, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.turn(false) {
            Turn::Done => operation(),
            Turn::DoneUnheard => operation().and_then(|_| Err(io::Error::other("the power went off"))),
            Turn::NotDone => Err(io::Error::other("there is no power")),
        }
    }
}

/// An in-memory disk on a power supply.
#[derive(Clone)]
pub struct PoweredDisk {
    disk: MemoryDisk,
    power: Power,
}

impl PoweredDisk {
    /// An empty disk.
    #[must_use]
    pub fn new(power: Power) -> Self {
        Self { disk: MemoryDisk::new(), power }
    }

    /// Another disk on the same supply, with the same bytes.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { disk: self.disk.copy(), power: self.power.clone() }
    }

    /// Applies a power cut: unsynced data survives at random.
    pub fn lose_power(&self, dice: &Dice) {
        // All of it, nothing, or page by page.
        let per_mille = *dice.pick(&[0, 500, 500, 1_000]);
        self.disk.lose_power(|| dice.chance(per_mille));
    }
}

impl Disk for PoweredDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn SegmentFile>> {
        Ok(Arc::new(PoweredFile { file: self.disk.open(path)?, power: self.power.clone() }))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.power.work(|| self.disk.replace(path, bytes))
    }

    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        self.disk.free_bytes(folder)
    }

    fn is_slow(&self) -> bool {
        false
    }
}

struct PoweredFile {
    file: Arc<dyn SegmentFile>,
    power: Power,
}

impl SegmentFile for PoweredFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.power.work(|| self.file.write_all_at(bytes, offset))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.power.work(|| self.file.truncate(length))
    }

    fn sync(&self) -> io::Result<()> {
        self.power.work(|| self.file.sync())
    }
}

/// In-memory checkpoints on a power supply. Each is visible as a whole or not at all.
#[derive(Clone)]
pub struct PoweredCheckpoints {
    power: Power,
    written: Arc<Mutex<Vec<Written>>>,
}

#[derive(Clone)]
struct Written {
    checkpoint: Checkpoint,
    accounts: BTreeMap<StoreKey, Vec<u8>>,
}

impl PoweredCheckpoints {
    /// An empty store.
    #[must_use]
    pub fn new(power: Power) -> Self {
        Self { power, written: Arc::default() }
    }

    /// Another store on the same supply, with the same checkpoints.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { power: self.power.clone(), written: Arc::new(Mutex::new(self.written().clone())) }
    }

    fn written(&self) -> MutexGuard<'_, Vec<Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a power cut: the store may return to an older checkpoint, or be lost.
    pub fn lose_power(&self, dice: &Dice) {
        let mut written = self.written();
        if dice.chance(200) {
            let kept = dice.below(written.len() + 1);
            written.truncate(kept);
        }
    }

    fn fail(&self) -> CheckpointError {
        // The kind of error does not matter: the store cannot be written, and the process ends.
        CheckpointError::Malformed { folder: "a store without power".into() }
    }
}

impl Checkpoints for PoweredCheckpoints {
    fn latest(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        Ok(self.written().last().map(|written| written.checkpoint.clone()))
    }

    fn account(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, CheckpointError> {
        Ok(self.written().iter().rev().find_map(|written| written.accounts.get(key).cloned()))
    }

    fn write(
        &self,
        position: JournalPosition,
        header: Vec<u8>,
        accounts: Vec<(StoreKey, Vec<u8>)>,
    ) -> Result<(), CheckpointError> {
        let turn = self.power.turn(true);
        if turn == Turn::NotDone {
            return Err(self.fail());
        }
        let mut written = self.written();
        if let Some(stored) = written.last().map(|last| last.checkpoint.position)
            && stored > position
        {
            return Err(CheckpointError::Backwards { stored, given: position });
        }
        let checkpoint = Checkpoint { position, header };
        written.push(Written { checkpoint, accounts: accounts.into_iter().collect() });
        if turn == Turn::DoneUnheard { Err(self.fail()) } else { Ok(()) }
    }

    fn is_slow(&self) -> bool {
        false
    }
}

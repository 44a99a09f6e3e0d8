//! Full disks, failing syncs and power cuts, in any order.

use super::*;
use proptest::prelude::*;

#[test]
fn a_full_disk_poisons_and_costs_only_the_failed_batch() {
    for bytes_free in 0..120 {
        let disk = MemoryDisk::new();
        let mut journal = create(&disk);
        commit(&mut journal, &payloads(4));
        disk.set_bytes_free(Some(bytes_free));
        journal.append(&[1; 80]).unwrap();
        let failed = journal.commit();
        assert!(matches!(failed, Err(JournalError::Io { .. })), "{failed:?}");
        // Room again, but nobody knows what was written.
        disk.set_bytes_free(None);
        assert!(matches!(journal.append(b"more"), Err(JournalError::Poisoned)));
        assert!(matches!(journal.commit(), Err(JournalError::Poisoned)));
        assert_eq!(all(&journal.reader()), payloads(4), "reading goes on");

        let mut journal = open(&disk, START).unwrap();
        assert_eq!(all(&journal.reader()), payloads(4));
        commit(&mut journal, &payloads(5));
        let expected = [payloads(4), payloads(5)].concat();
        assert_eq!(all(&open(&disk, START).unwrap().reader()), expected);
    }
}

#[test]
fn a_new_segment_that_does_not_fit_poisons() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    commit(&mut journal, &[vec![0; 150]]);
    disk.set_bytes_free(Some(SEGMENT_HEADER_BYTES - 1));
    journal.append(&[1; 80]).unwrap();
    let failed = journal.commit();
    assert!(matches!(failed, Err(JournalError::Io { .. })), "{failed:?}");
    assert!(matches!(journal.commit(), Err(JournalError::Poisoned)));
}

/// The trap of a failed sync: the kernel shows the bytes to the next process and never stores them.
#[test]
fn what_a_failed_sync_left_readable_is_stored_before_it_is_believed() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    commit(&mut journal, &payloads(4));
    journal.append(&[1; 60]).unwrap();
    disk.set_failing_syncs(true);
    let failed = journal.commit();
    assert!(matches!(failed, Err(JournalError::Io { .. })), "{failed:?}");
    assert!(matches!(journal.append(b""), Err(JournalError::Poisoned)));
    disk.set_failing_syncs(false);

    let mut journal = open(&disk, START).unwrap();
    let believed = all(&journal.reader());
    assert_eq!(believed.len(), payloads(4).len() + 1);
    commit(&mut journal, &payloads(2));
    let believed = [believed, payloads(2)].concat();
    disk.lose_power(|| false);
    assert_eq!(all(&open(&disk, START).unwrap().reader()), believed);
}

#[test]
fn a_sync_that_fails_at_open_refuses_to_open() {
    let disk = MemoryDisk::new();
    commit(&mut create(&disk), &payloads(4));
    disk.set_failing_syncs(true);
    let refused = open(&disk, START).err();
    assert!(matches!(refused, Some(JournalError::Io { .. })));
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Vec<u8>>),
    /// The batch fails for want of room after so many bytes.
    FillUp(Vec<Vec<u8>>, usize),
    FailSync(Vec<Vec<u8>>),
    /// The process dies; its uncommitted records with it.
    Kill(Vec<Vec<u8>>),
    /// Power fails during or between commits; of what was not synced, this says what survives.
    LosePower(Vec<bool>),
    /// Power fails in the middle of opening, after what was written there.
    LosePowerTwice(Vec<bool>),
}

fn batch() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let payload = prop::collection::vec(any::<u8>(), 0..120);
    prop::collection::vec(payload, 1..5)
}

fn survivors() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(any::<bool>(), 1..8)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => batch().prop_map(Step::Commit),
        1 => (batch(), 0..300usize).prop_map(|(batch, free)| Step::FillUp(batch, free)),
        1 => batch().prop_map(Step::FailSync),
        1 => batch().prop_map(Step::Kill),
        1 => survivors().prop_map(Step::LosePower),
        1 => survivors().prop_map(Step::LosePowerTwice),
    ]
}

/// A disk with a journal, and what the journal owes.
struct Model {
    disk: MemoryDisk,
    journal: Journal,
    committed: Vec<Vec<u8>>,
    /// The batch that a failed commit left in doubt: it may be there as a whole.
    doubtful: Option<Vec<Vec<u8>>>,
    /// A position that a checkpoint could have taken.
    checkpoint: JournalPosition,
}

impl Model {
    fn new() -> Self {
        let disk = MemoryDisk::new();
        Self { journal: create(&disk), disk, committed: Vec::new(), doubtful: None, checkpoint: START }
    }

    fn append(&mut self, batch: &[Vec<u8>]) {
        for payload in batch {
            self.journal.append(payload).unwrap();
        }
    }

    fn fail(&mut self, batch: Vec<Vec<u8>>) {
        self.append(&batch);
        match self.journal.commit() {
            Ok(()) => self.committed.extend(batch),
            Err(_) => {
                assert!(matches!(self.journal.append(b""), Err(JournalError::Poisoned)));
                self.doubtful = Some(batch);
            }
        }
        self.disk.set_bytes_free(None);
        self.disk.set_failing_syncs(false);
    }

    fn reopen(&mut self) {
        self.journal = open(&self.disk, self.checkpoint).unwrap();
        let found = all(&self.journal.reader());
        if found != self.committed
            && let Some(batch) = self.doubtful.take()
        {
            // Whole or not at all; and once it was seen, it has to stay.
            self.committed.extend(batch);
        }
        assert_eq!(found, self.committed);
        self.doubtful = None;
    }

    fn lose_power(&self, survivors: &[bool]) {
        let mut survivors = survivors.iter().cycle();
        self.disk.lose_power(|| *survivors.next().unwrap());
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Commit(batch) => {
                self.append(&batch);
                self.journal.commit().unwrap();
                self.committed.extend(batch);
                if self.committed.len().is_multiple_of(3) {
                    self.checkpoint = self.journal.end();
                }
            }
            Step::FillUp(batch, bytes_free) => {
                self.disk.set_bytes_free(Some(bytes_free));
                self.fail(batch);
                self.reopen();
            }
            Step::FailSync(batch) => {
                self.disk.set_failing_syncs(true);
                self.fail(batch);
                self.reopen();
            }
            Step::Kill(batch) => {
                self.append(&batch);
                self.reopen();
            }
            Step::LosePower(survivors) => {
                // A batch that was written and not yet synced.
                let batch = vec![vec![3; 150]];
                self.disk.set_failing_syncs(true);
                self.fail(batch);
                self.lose_power(&survivors);
                self.reopen();
            }
            Step::LosePowerTwice(survivors) => {
                self.disk.set_bytes_free(Some(90));
                self.fail(vec![vec![4; 150]]);
                self.disk.set_failing_syncs(true);
                assert!(open(&self.disk, self.checkpoint).is_err());
                self.disk.set_failing_syncs(false);
                self.lose_power(&survivors);
                self.reopen();
            }
        }
    }
}

proptest! {
    /// Whatever happens to the disk, what was committed is there, in order, and nothing else but
    /// perhaps one whole batch that was being committed.
    #[test]
    fn committed_records_survive_everything(steps in prop::collection::vec(step(), 1..25)) {
        let mut model = Model::new();
        for step in steps {
            model.step(step);
        }
        model.lose_power(&[false]);
        model.reopen();
    }
}

#[test]
fn sealed_batches_are_committed_in_their_order_while_others_are_filled() {
    let disk = MemoryDisk::new();
    let mut journal = create(&disk);
    let reader = journal.reader();
    let mut positions = Vec::new();
    let mut sealed = Vec::new();
    for number in 0..6_u8 {
        positions.push(journal.append(&[number; 50]).unwrap());
        sealed.push(journal.seal().unwrap().unwrap());
    }
    assert!(journal.seal().unwrap().is_none());
    journal.append(b"in the making").unwrap();
    for (number, batch) in sealed.into_iter().enumerate() {
        assert!(reader.read_at(positions[number]).is_err(), "not yet committed");
        batch.commit().unwrap();
        assert_eq!(reader.read_at(positions[number]).unwrap(), [number as u8; 50]);
    }
    assert_eq!(reader.end(), journal.end());
    journal.commit().unwrap();
    drop(journal);
    assert_eq!(open(&disk, START).unwrap().recovery().records, 7);
}

#[test]
fn a_batch_left_out_poisons_all_that_follow() {
    for leave_out_by_dropping in [true, false] {
        let disk = MemoryDisk::new();
        let mut journal = create(&disk);
        journal.append(b"first").unwrap();
        let first = journal.seal().unwrap();
        journal.append(b"second").unwrap();
        let second = journal.seal().unwrap().unwrap();
        let first = if leave_out_by_dropping { None } else { first };
        assert!(matches!(second.commit(), Err(JournalError::Poisoned)));
        assert!(matches!(journal.append(b"third"), Err(JournalError::Poisoned)));
        if let Some(first) = first {
            assert!(matches!(first.commit(), Err(JournalError::Poisoned)));
        }
        drop(journal);
        assert_eq!(open(&disk, START).unwrap().recovery().records, 0);
    }
}

//! The index of an archived segment: who took numbers in it, who was paid in it, and the roots of its runs. So a read of
//! an account's entries scans a run of the segment for each, and not the segment. A cache: it may be removed, and is
//! built again when it is needed.
//!
//! ```text
//!  0000000001.index = magic ‖ segment's root ‖ counts ‖ runs ‖ senders, by key ‖ receipts, by key and entry
//!    run     = root (32) ‖ offset of its first entry (8)
//!    sender  = key (8) ‖ its first number (8) ‖ the position of that entry (4) ‖ how many follow each other (4)
//!    receipt = key (8) ‖ the position of the entry (4)
//! ```
//! A sender of no entries is the last number of an account that a recovery debited without its order; it stands beside
//! the account's other record. The key of an account is the last 8 bytes of its identifier, which is a hash. Keys of
//! two accounts can be equal, so the leaf is compared. Numbers are big-endian, so records are sorted as bytes. It is
//! built in one pass over the segment if its records are few enough for memory, or else in several.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use fastpay_core::checkpoint::{Leaf, RUN_LEAVES, SEGMENT_HEADER_BYTES, Segment, TreeLevels};
use fastpay_core::{AccountId, Digest, SequenceNumber};
use fastpay_program::files;

const MAGIC: &[u8; 8] = b"FPINDX\0\x01";
/// The magic, the segment's root, and three counts.
const HEAD_BYTES: u64 = 8 + 32 + 3 * 4;
const RUN_BYTES: usize = 40;
const SENDER_BYTES: usize = 24;
const RECEIPT_BYTES: usize = 12;
/// The records that are sorted at a time: 24 MB.
const RECORDS_PER_PASS: u32 = 1 << 20;
/// The most senders with one key that are looked at.
const EQUAL_KEYS_MAX: usize = 16;

/// The account whose number a leaf takes, and the number; `None` for an event.
pub(super) fn number_of(leaf: &Leaf) -> Option<(AccountId, SequenceNumber)> {
    match leaf {
        Leaf::Executed(transfer) => Some((transfer.sender(), transfer.sequence())),
        Leaf::Void(account, sequence) => Some((*account, *sequence)),
        Leaf::Paid(redemption) => Some((redemption.sender, redemption.sequence)),
        _ => None,
    }
}

/// Whether a leaf pays an account.
pub(super) fn pays(leaf: &Leaf, account: &AccountId) -> bool {
    let Leaf::Executed(transfer) = leaf else { return false };
    transfer.receipts().any(|receipt| receipt.payment.recipient == *account)
}

fn key(account: &AccountId) -> [u8; 8] {
    account.0.last_chunk().copied().unwrap_or_default()
}

/// Consecutive entries of an account in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    /// The first number.
    pub first: SequenceNumber,
    /// The position of its entry in the segment.
    pub entry: u32,
    /// How many there are; none for the last number that a recovery debited without an order.
    pub count: u32,
}

/// Where the runs of a segment are.
pub(super) struct Runs {
    /// The tree over their roots.
    pub roots: TreeLevels,
    /// Where each begins in the segment's file.
    pub offsets: Vec<u64>,
}

/// An index that is open.
pub(super) struct SegmentIndex {
    file: File,
    runs: u32,
    senders: u32,
    receipts: u32,
}

impl SegmentIndex {
    /// Opens the index of the segment with this root. `None` if there is none, or it is of another segment.
    pub fn open(path: &Path, segment: Digest) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut head = [0; HEAD_BYTES as usize];
        if file.read_exact_at(&mut head, 0).is_err() {
            return Ok(None);
        }
        let (expected, counts) = ([MAGIC, segment.as_slice()].concat(), head.as_chunks::<4>().0);
        let [.., runs, senders, receipts] = counts else { return Ok(None) };
        let [runs, senders, receipts] = [runs, senders, receipts].map(|count| u32::from_be_bytes(*count));
        let index = Self { file, runs, senders, receipts };
        let is_whole = head.starts_with(&expected) && index.file.metadata()?.len() == index.end();
        Ok(is_whole.then_some(index))
    }

    fn senders_at(&self) -> u64 {
        HEAD_BYTES.saturating_add(section(self.runs, RUN_BYTES))
    }

    fn receipts_at(&self) -> u64 {
        self.senders_at().saturating_add(section(self.senders, SENDER_BYTES))
    }

    fn end(&self) -> u64 {
        self.receipts_at().saturating_add(section(self.receipts, RECEIPT_BYTES))
    }

    /// The roots and places of all runs.
    pub fn runs(&self) -> io::Result<Runs> {
        let mut bytes = vec![0; usize::try_from(section(self.runs, RUN_BYTES)).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, HEAD_BYTES)?;
        let (mut roots, mut offsets) = (Vec::new(), Vec::new());
        for run in bytes.as_chunks::<RUN_BYTES>().0 {
            roots.push(Digest::from_slice(run.first_chunk::<32>().unwrap_or(&[0; 32])));
            offsets.push(u64::from_be_bytes(run.last_chunk().copied().unwrap_or_default()));
        }
        let roots = TreeLevels::of_roots(roots).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Runs { roots, offsets })
    }

    /// The numbers that an account took, or another one with the same key.
    pub fn senders(&self, account: &AccountId) -> io::Result<Vec<Sender>> {
        let key = key(account);
        let found = self.find::<SENDER_BYTES>(self.senders_at(), self.senders, &key, &key, EQUAL_KEYS_MAX)?;
        let sender = |record: &[u8; SENDER_BYTES]| {
            let (first, rest) = record.split_at(8).1.split_at(8);
            let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            let (entry, count) = rest.split_at(4);
            let small = |bytes| u32::try_from(number(bytes)).unwrap_or(u32::MAX);
            Sender { first: SequenceNumber(number(first)), entry: small(entry), count: small(count) }
        };
        Ok(found.iter().map(sender).collect())
    }

    /// The position of the first entry, from `entry` on, that pays an account, or another one with the same key.
    pub fn receipt(&self, account: &AccountId, entry: u32) -> io::Result<Option<u32>> {
        let key = key(account);
        let from = [&key[..], &entry.to_be_bytes()].concat();
        let found = self.find::<RECEIPT_BYTES>(self.receipts_at(), self.receipts, &from, &key, 1)?;
        Ok(found.first().map(|record| u32::from_be_bytes(record.last_chunk().copied().unwrap_or_default())))
    }

    /// Up to `max` records of a section, from the first one on that is not below `from`, that begin with `prefix`.
    fn find<const N: usize>(
        &self,
        at: u64,
        count: u32,
        from: &[u8],
        prefix: &[u8],
        max: usize,
    ) -> io::Result<Vec<[u8; N]>> {
        let read = |number: u32| {
            let mut record = [0; N];
            self.file.read_exact_at(&mut record, at.saturating_add(section(number, N)))?;
            io::Result::Ok(record)
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if read(middle)?.as_slice() < from {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let mut found = Vec::new();
        while low < count && found.len() < max {
            let record = read(low)?;
            if !record.starts_with(prefix) {
                break;
            }
            found.push(record);
            low = low.saturating_add(1);
        }
        Ok(found)
    }

    /// Builds the index of a segment, whose root must be this one.
    pub fn build(path: &Path, segment: &Path, root: Digest) -> io::Result<()> {
        let (mut runs, mut of_senders) = (RunsBuilder::default(), SendersBuilder::default());
        let (mut senders, mut receipts) = (Records::default(), Records::default());
        read_leaves(segment, |entry, leaf, length| {
            of_senders.take(entry, &leaf, &mut |record| senders.take(record));
            each_receipt_of(entry, &leaf, &mut |record| receipts.take(record));
            runs.take(leaf, length)
        })?;
        of_senders.end(&mut |record| senders.take(record));
        let runs = runs.finish()?;
        let roots = runs.iter().map(|(root, _)| *root).collect();
        if TreeLevels::of_roots(roots).map(|levels| levels.root()) != Some(root) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the segment is not the certified one"));
        }
        files::replace_with(path, |writer| {
            writer.write_all(MAGIC)?;
            writer.write_all(root.as_slice())?;
            for count in [u32::try_from(runs.len()).unwrap_or(u32::MAX), senders.count, receipts.count] {
                writer.write_all(&count.to_be_bytes())?;
            }
            for (root, offset) in &runs {
                writer.write_all(root.as_slice())?;
                writer.write_all(&offset.to_be_bytes())?;
            }
            write_sorted(writer, senders.count, RECORDS_PER_PASS, |emit| match senders.all() {
                Some(all) => {
                    all.iter().for_each(|record| emit(*record));
                    Ok(())
                }
                None => each_sender(segment, emit),
            })?;
            write_sorted(writer, receipts.count, RECORDS_PER_PASS, |emit| match receipts.all() {
                Some(all) => {
                    all.iter().for_each(|record| emit(*record));
                    Ok(())
                }
                None => each_receipt(segment, emit),
            })
        })
    }
}

fn section(count: u32, width: usize) -> u64 {
    u64::from(count).saturating_mul(u64::try_from(width).unwrap_or(u64::MAX))
}

/// Gathers the roots and places of runs from leaves that come one by one.
struct RunsBuilder {
    leaves: Vec<Leaf>,
    runs: Vec<(Digest, u64)>,
    /// Where the run begins, and where it ends so far.
    bounds: (u64, u64),
}

impl Default for RunsBuilder {
    fn default() -> Self {
        Self { leaves: Vec::new(), runs: Vec::new(), bounds: (SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES) }
    }
}

impl RunsBuilder {
    fn take(&mut self, leaf: Leaf, length: u64) -> io::Result<()> {
        self.leaves.push(leaf);
        self.bounds.1 = self.bounds.1.saturating_add(length);
        if self.leaves.len() == RUN_LEAVES {
            self.end_run();
        }
        Ok(())
    }

    fn end_run(&mut self) {
        if let Some(levels) = TreeLevels::of_leaves(&self.leaves) {
            self.runs.push((levels.root(), self.bounds.0));
        }
        self.leaves.clear();
        self.bounds.0 = self.bounds.1;
    }

    fn finish(mut self) -> io::Result<Vec<(Digest, u64)>> {
        self.end_run();
        if self.runs.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the segment is empty"));
        }
        Ok(self.runs)
    }
}

fn read_leaves(segment: &Path, mut take: impl FnMut(u32, Leaf, u64) -> io::Result<()>) -> io::Result<()> {
    let mut position = 0_u32;
    Segment::read_leaves(&mut BufReader::new(File::open(segment)?), |leaf, length| {
        take(position, leaf, length)?;
        position = position.checked_add(1).ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    })
}

/// Records that come one by one: how many, and all of them if they are no more than are sorted at a time.
#[derive(Default)]
struct Records<const N: usize> {
    count: u32,
    kept: Vec<[u8; N]>,
}

impl<const N: usize> Records<N> {
    fn take(&mut self, record: [u8; N]) {
        self.count = self.count.saturating_add(1);
        if self.count <= RECORDS_PER_PASS {
            self.kept.push(record);
        } else {
            self.kept = Vec::new();
        }
    }

    fn all(&self) -> Option<&[[u8; N]]> {
        (self.count <= RECORDS_PER_PASS).then_some(&self.kept)
    }
}

/// Gathers the records of senders from leaves that come one by one.
#[derive(Default)]
struct SendersBuilder {
    open: Option<(AccountId, Sender)>,
    paid: Option<(AccountId, Sender)>,
}

impl SendersBuilder {
    fn take(&mut self, entry: u32, leaf: &Leaf, emit: &mut dyn FnMut([u8; SENDER_BYTES])) {
        let Some((account, first)) = number_of(leaf) else { return };
        match &mut self.open {
            Some((of, sender)) if *of == account => sender.count = sender.count.saturating_add(1),
            _ => {
                self.end(emit);
                self.open = Some((account, Sender { first, entry, count: 1 }));
            }
        }
        if matches!(leaf, Leaf::Paid(_)) {
            self.paid = Some((account, Sender { first, entry, count: 0 }));
        }
    }

    fn end(&mut self, emit: &mut dyn FnMut([u8; SENDER_BYTES])) {
        for (account, Sender { first, entry, count }) in self.open.take().into_iter().chain(self.paid.take()) {
            let record =
                [&key(&account)[..], &first.0.to_be_bytes(), &entry.to_be_bytes(), &count.to_be_bytes()].concat();
            emit(record.first_chunk().copied().unwrap_or([0; SENDER_BYTES]));
        }
    }
}

fn each_sender(segment: &Path, emit: &mut dyn FnMut([u8; SENDER_BYTES])) -> io::Result<()> {
    let mut senders = SendersBuilder::default();
    read_leaves(segment, |entry, leaf, _| {
        senders.take(entry, &leaf, emit);
        Ok(())
    })?;
    senders.end(emit);
    Ok(())
}

fn each_receipt(segment: &Path, emit: &mut dyn FnMut([u8; RECEIPT_BYTES])) -> io::Result<()> {
    read_leaves(segment, |entry, leaf, _| {
        each_receipt_of(entry, &leaf, emit);
        Ok(())
    })
}

fn each_receipt_of(entry: u32, leaf: &Leaf, emit: &mut dyn FnMut([u8; RECEIPT_BYTES])) {
    let Leaf::Executed(transfer) = leaf else { return };
    // Several outputs of a payout may pay one account.
    let keys: BTreeSet<_> = transfer.receipts().map(|receipt| key(&receipt.payment.recipient)).collect();
    for key in keys {
        let record = [&key[..], &entry.to_be_bytes()].concat();
        emit(record.first_chunk().copied().unwrap_or([0; RECEIPT_BYTES]));
    }
}

/// Writes `count` records that `each` gives, sorted, with about `at_once` of them in memory: in each pass those whose keys
/// are in one of so many equal parts.
fn write_sorted<const N: usize>(
    writer: &mut dyn Write,
    count: u32,
    at_once: u32,
    each: impl Fn(&mut dyn FnMut([u8; N])) -> io::Result<()>,
) -> io::Result<()> {
    let passes = u64::from(count.div_ceil(at_once));
    let part = |record: &[u8; N]| {
        let high = u32::from_be_bytes(record.first_chunk().copied().unwrap_or_default());
        u64::from(high).saturating_mul(passes) >> 32
    };
    let mut records = Vec::new();
    for pass in 0..passes {
        each(&mut |record| {
            if part(&record) == pass {
                records.push(record);
            }
        })?;
        records.sort_unstable();
        records.iter().try_for_each(|record| writer.write_all(record))?;
        records.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Transfer;
    use fastpay_core::checkpoint::SegmentEntry;
    use fastpay_testkit::{TestAccount, TestCommittee, payment, payout};

    /// Payments among 40 accounts, in the order of a segment.
    fn segment() -> Segment {
        let committee = TestCommittee::new(4);
        let accounts: Vec<_> = (0..40).map(TestAccount::numbered).collect();
        let mut entries = Vec::new();
        for (at, sender) in accounts.iter().enumerate() {
            let to = |step: usize| accounts[(at + step) % 40].id();
            for number in 0..20 {
                let transfer: Transfer = match number % 4 {
                    0 => payout(sender.id(), &[(to(1), 1), (to(2), 2), (to(1), 3)], number + 5).into(),
                    _ => payment(sender.id(), to(3), 4, number + 5).into(),
                };
                entries.push(SegmentEntry::Executed(sender.sign(&committee.domain, transfer)));
            }
        }
        entries.sort_by_key(|entry| number_of(&entry.leaf()));
        Segment { entries }
    }

    #[test]
    fn an_index_finds_each_account_and_is_only_of_its_own_segment() {
        let (folder, segment) = (tempfile::tempdir().unwrap(), segment());
        let (of_segment, path) = (folder.path().join("1.segment"), folder.path().join("1.index"));
        segment.write(&mut File::create(&of_segment).unwrap()).unwrap();
        let leaves: Vec<Leaf> = segment.entries.iter().map(SegmentEntry::leaf).collect();
        let root = leaves[0].root(&segment.path(&leaves[0]).unwrap()).unwrap();
        assert!(SegmentIndex::build(&path, &of_segment, Digest::ZERO).is_err(), "another segment is certified");
        assert!(SegmentIndex::open(&path, root).unwrap().is_none());
        SegmentIndex::build(&path, &of_segment, root).unwrap();
        assert!(SegmentIndex::open(&path, Digest::ZERO).unwrap().is_none());
        let index = SegmentIndex::open(&path, root).unwrap().unwrap();
        let runs = index.runs().unwrap();
        assert_eq!((runs.roots.root(), runs.offsets.len()), (root, leaves.len().div_ceil(RUN_LEAVES)));
        for number in 0..40 {
            let account = TestAccount::numbered(number).id();
            let entry = leaves.iter().position(|leaf| number_of(leaf).unwrap().0 == account).unwrap();
            let expected = Sender { first: SequenceNumber(5), entry: u32::try_from(entry).unwrap(), count: 20 };
            assert_eq!(index.senders(&account).unwrap(), [expected]);
            let paid: Vec<u32> =
                (0..).zip(&leaves).filter(|(_, leaf)| pays(leaf, &account)).map(|(at, _)| at).collect();
            let mut found = Vec::new();
            while let Some(entry) = index.receipt(&account, found.last().map_or(0, |last| last + 1)).unwrap() {
                found.push(entry);
            }
            assert_eq!((found, paid.len()), (paid, 25));
        }
        let stranger = TestAccount::numbered(40).id();
        assert_eq!((index.senders(&stranger).unwrap(), index.receipt(&stranger, 0).unwrap()), (vec![], None));
        // Cut off or of another kind, it is none.
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 51, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(SegmentIndex::open(&path, root).unwrap().is_none(), "{length} bytes");
        }
    }

    #[test]
    fn records_are_sorted_with_few_in_memory() {
        let records: Vec<[u8; 12]> = (0..1_000_u32)
            .map(|number| {
                let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
                [key, key, number.to_be_bytes()].concat().try_into().unwrap()
            })
            .collect();
        let mut sorted = records.clone();
        sorted.sort_unstable();
        for at_once in [1, 7, 999, 1_000, 5_000] {
            let mut written = Vec::new();
            let each = |emit: &mut dyn FnMut([u8; 12])| {
                records.iter().for_each(|record| emit(*record));
                Ok(())
            };
            write_sorted(&mut written, 1_000, at_once, each).unwrap();
            assert_eq!(written, sorted.concat(), "{at_once} at once");
        }
    }
}

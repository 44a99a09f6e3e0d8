//! The file in which a member keeps what it has signed, outside of the engine's log [LEDGER 1]. A damaged or older log can
//! then make it neither sign twice for one slot nor forget that it is locked.
//!
//! A vote is signed, then logged by the engine, then recorded and synced here, and then sent. So the log lacks a vote that
//! is recorded here only if the log was damaged, and never because the member was killed in between.
//!
//! The file has a head, and a ring of records of 64 bytes, each with its number and a checksum. The head has the file's
//! birth, by which a copy of the folder is told from the folder. Each start writes the file anew, so a copy of before the
//! last start that is put back in place is found. One of after it is not.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::Digest;
use fastpay_program::files;

const RECORD_BYTES: usize = 64;
/// So many records are kept: those of 1,300 rounds of one height, or of as many heights. One height without an end takes
/// a day to have so many rounds.
const RECORDS: u64 = 4_096;
const CHECKED_BYTES: usize = RECORD_BYTES - 4;

/// What is signed in a round, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Step {
    /// By the round's leader.
    Proposal,
    /// By all.
    Prevote,
    /// By all.
    Precommit,
}

/// A place for one signature. A member never goes back to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Slot {
    /// The height.
    pub height: u64,
    /// The round.
    pub round: u32,
    /// The step.
    pub step: Step,
}

/// What a member signs in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Cast {
    /// The slot.
    pub slot: Slot,
    /// The value's id; `None` for nil.
    pub id: Option<Digest>,
}

/// Why nothing is signed.
#[derive(Debug, thiserror::Error)]
pub enum VoteRefused {
    /// Another value has the slot.
    #[error("this member has signed something else in {slot:?}; it was damaged, or started twice")]
    Second {
        /// The slot.
        slot: Slot,
    },
    /// The slot is before the newest.
    #[error("this member has signed in {newest:?}, which is after {slot:?}; it was damaged, or started twice")]
    Back {
        /// The slot.
        slot: Slot,
        /// The newest one.
        newest: Slot,
    },
    /// The file cannot be written. It is not tried again: what is on the disk is not known.
    #[error("the file of votes cannot be written: {0}; restart this member when its disk works again")]
    Disk(io::Error),
    /// It could not be written before.
    #[error("the file of votes could not be written before; restart this member when its disk works again")]
    Poisoned,
}

/// Why the file of votes cannot be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// There is no file.
    #[error("the file of votes is missing")]
    Missing,
    /// A record or the head is not as it was written.
    #[error("the file of votes is damaged")]
    Damaged,
    /// The file was copied or restored, so newer votes may be missing.
    #[error("the file of votes is a copy")]
    Copied,
}

/// The open file of votes.
#[derive(Debug)]
pub struct VoteFile {
    file: File,
    /// What is signed, recorded or not; the newest [`RECORDS`].
    signed: BTreeMap<Slot, Option<Digest>>,
    /// What is signed, and not yet recorded.
    unrecorded: Vec<Cast>,
    /// The number of the next record, from 1.
    next: u64,
    poisoned: bool,
}

impl VoteFile {
    /// Creates the file of a member that has signed nothing, or has waited until what it signed no longer matters.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn create(path: &Path) -> io::Result<()> {
        write_new(path, &vec![0; RECORD_BYTES.saturating_mul(usize::try_from(RECORDS).unwrap_or(0))])
    }

    /// Opens the file, and says why it cannot be relied on if so. One that can be is written again as a new file, so that
    /// what was copied before this start is known as a copy, also where it is put back in place.
    ///
    /// # Errors
    /// Any of the file system.
    pub fn open(path: &Path) -> io::Result<Result<Self, Untrusted>> {
        let Some(content) = files::read(path)? else { return Ok(Err(Untrusted::Missing)) };
        let casts = match casts_in(&content, born(path)?) {
            Ok(casts) => casts,
            Err(untrusted) => return Ok(Err(untrusted)),
        };
        write_new(path, content.get(RECORD_BYTES..).unwrap_or_default())?;
        let next = casts.last_key_value().map_or(1, |(number, _)| number.saturating_add(1));
        let file = OpenOptions::new().write(true).open(path)?;
        let signed = casts.into_values().map(|cast| (cast.slot, cast.id)).collect();
        Ok(Ok(Self { file, signed, unrecorded: Vec::new(), next, poisoned: false }))
    }

    /// All that is known to be signed, the oldest first.
    pub fn casts(&self) -> impl DoubleEndedIterator<Item = Cast> {
        self.signed.iter().map(|(slot, id)| Cast { slot: *slot, id: *id })
    }

    /// Asks whether this may be signed. If so it is remembered, and recorded before anything is sent.
    ///
    /// # Errors
    /// See [`VoteRefused`].
    pub fn sign(&mut self, cast: Cast) -> Result<(), VoteRefused> {
        if self.poisoned {
            return Err(VoteRefused::Poisoned);
        }
        if self.is_known(cast)? {
            return Ok(());
        }
        match self.signed.last_key_value() {
            Some((newest, _)) if *newest > cast.slot => Err(VoteRefused::Back { slot: cast.slot, newest: *newest }),
            _ => {
                self.remember(cast);
                Ok(())
            }
        }
    }

    /// Records what is to be sent, and all that was signed before it; synced when this returns. What was signed after it
    /// may not be in the engine's log yet, and is recorded when it is sent itself.
    ///
    /// # Errors
    /// See [`VoteRefused`]: nothing may be sent.
    pub fn record(&mut self, sent: Cast) -> Result<(), VoteRefused> {
        if self.poisoned {
            return Err(VoteRefused::Poisoned);
        }
        // The engine's log has votes that were signed before the last start, and are sent again.
        if !self.is_known(sent)? {
            self.remember(sent);
        }
        self.write(sent.slot).map_err(|error| {
            self.poisoned = true;
            VoteRefused::Disk(error)
        })
    }

    fn is_known(&self, cast: Cast) -> Result<bool, VoteRefused> {
        match self.signed.get(&cast.slot) {
            Some(id) if *id == cast.id => Ok(true),
            Some(_) => Err(VoteRefused::Second { slot: cast.slot }),
            None => Ok(false),
        }
    }

    fn remember(&mut self, cast: Cast) {
        self.signed.insert(cast.slot, cast.id);
        self.unrecorded.push(cast);
        while u64::try_from(self.signed.len()).is_ok_and(|count| count > RECORDS) {
            self.signed.pop_first();
        }
    }

    fn write(&mut self, up_to: Slot) -> io::Result<()> {
        let due: Vec<Cast> = self.unrecorded.extract_if(.., |cast| cast.slot <= up_to).collect();
        if due.is_empty() {
            return Ok(());
        }
        for cast in due {
            self.file.write_all_at(&record(self.next, &cast), offset_of(self.next))?;
            self.next = self.next.saturating_add(1);
        }
        self.file.sync_data()
    }
}

/// Puts a new file with these records in the place of what is there. Its head has its own birth.
fn write_new(path: &Path, ring: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    files::replace(&new, &[&[0; RECORD_BYTES], ring].concat())?;
    let file = OpenOptions::new().write(true).open(&new)?;
    file.write_all_at(&record(0, &born(&new)?), 0)?;
    file.sync_all()?;
    files::rename(&new, path)
}

/// The records by number of a file that was born then.
fn casts_in(content: &[u8], born: Digest) -> Result<BTreeMap<u64, Cast>, Untrusted> {
    let (records, rest) = content.as_chunks::<RECORD_BYTES>();
    let (head, ring) = records.split_first().ok_or(Untrusted::Damaged)?;
    if !rest.is_empty() || u64::try_from(ring.len()) != Ok(RECORDS) {
        return Err(Untrusted::Damaged);
    }
    match read_record::<Digest>(head) {
        Some((0, birth)) if birth == born => read_ring(ring).ok_or(Untrusted::Damaged),
        Some((0, _)) => Err(Untrusted::Copied),
        _ => Err(Untrusted::Damaged),
    }
}

/// The ring begins after the head; number 1 is its first record.
fn offset_of(number: u64) -> u64 {
    let place = number.saturating_sub(1) % RECORDS;
    place.saturating_add(1).saturating_mul(RECORD_BYTES as u64)
}

/// The records of the ring by number. `None` if one is damaged, missing, or at another's place.
fn read_ring(ring: &[[u8; RECORD_BYTES]]) -> Option<BTreeMap<u64, Cast>> {
    let mut casts = BTreeMap::new();
    for (place, bytes) in (1_u64..).zip(ring) {
        if *bytes == [0; RECORD_BYTES] {
            continue;
        }
        let (number, cast) = read_record::<Cast>(bytes)?;
        let is_in_place = number > 0 && offset_of(number) == place.saturating_mul(RECORD_BYTES as u64);
        is_in_place.then(|| casts.insert(number, cast))?;
    }
    let newest = casts.last_key_value().map_or(0, |(number, _)| *number);
    (u64::try_from(casts.len()) == Ok(newest.min(RECORDS))).then_some(casts)
}

fn record(number: u64, content: &impl BorshSerialize) -> [u8; RECORD_BYTES] {
    let mut bytes = borsh::to_vec(&(number, content)).expect("memory takes every write");
    bytes.resize(CHECKED_BYTES, 0);
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.try_into().expect("a record has 64 bytes")
}

fn read_record<T: BorshDeserialize>(bytes: &[u8; RECORD_BYTES]) -> Option<(u64, T)> {
    let (mut content, checksum) = bytes.split_at_checked(CHECKED_BYTES)?;
    if crc32c::crc32c(content).to_le_bytes() != checksum {
        return None;
    }
    BorshDeserialize::deserialize(&mut content).ok()
}

fn born(path: &Path) -> io::Result<Digest> {
    Ok(Digest::new(*blake3::hash(files::birth(path)?.as_bytes()).as_bytes()))
}

/// What is recorded in a file that is open.
#[cfg(test)]
pub(crate) fn recorded(path: &Path) -> Vec<Cast> {
    casts_in(&std::fs::read(path).unwrap(), born(path).unwrap()).unwrap().into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn cast(height: u64, round: u32, step: Step, value: u8) -> Cast {
        Cast { slot: Slot { height, round, step }, id: (value > 0).then(|| Digest::repeat_byte(value)) }
    }

    fn opened(path: &Path) -> VoteFile {
        VoteFile::open(path).unwrap().unwrap()
    }

    /// A file with votes at two heights, all recorded.
    fn used() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("votes");
        VoteFile::create(&path).unwrap();
        let mut votes = opened(&path);
        let last = cast(2, 1, Step::Prevote, 0);
        for cast in [cast(1, 0, Step::Prevote, 1), cast(1, 0, Step::Precommit, 1), last] {
            votes.sign(cast).unwrap();
        }
        votes.record(last).unwrap();
        (folder, path)
    }

    #[test]
    fn a_slot_is_signed_once_also_after_a_restart() {
        let (_folder, path) = used();
        for _ in 0..2 {
            let mut votes = opened(&path);
            votes.sign(cast(1, 0, Step::Precommit, 1)).unwrap();
            let second = votes.sign(cast(1, 0, Step::Precommit, 2)).unwrap_err();
            assert!(matches!(second, VoteRefused::Second { .. }), "{second}");
            let second = votes.record(cast(2, 1, Step::Prevote, 3)).unwrap_err();
            assert!(matches!(second, VoteRefused::Second { .. }), "{second}");
            let back = votes.sign(cast(2, 0, Step::Precommit, 1)).unwrap_err();
            assert!(matches!(back, VoteRefused::Back { .. }), "{back}");
        }
    }

    #[test]
    fn what_is_signed_is_recorded_before_it_is_sent_and_not_sooner() {
        let (_folder, path) = used();
        let mut votes = opened(&path);
        let (first, second) = (cast(2, 1, Step::Precommit, 4), cast(3, 0, Step::Prevote, 5));
        votes.sign(first).unwrap();
        assert!(!recorded(&path).contains(&first), "the engine has not logged it yet");
        votes.sign(second).unwrap();
        votes.record(first).unwrap();
        assert_eq!(recorded(&path).last(), Some(&first), "the engine may not have logged the second one");
        votes.record(second).unwrap();
        assert_eq!(recorded(&path).last(), Some(&second));
        votes.record(first).unwrap();
        assert_eq!(recorded(&path).len(), 5, "each once, also when it is sent again");
    }

    #[test]
    fn a_vote_of_the_engines_log_is_recorded_when_it_is_sent_again() {
        let (_folder, path) = used();
        let logged = cast(2, 2, Step::Prevote, 6);
        opened(&path).record(logged).unwrap();
        assert_eq!(recorded(&path).last(), Some(&logged));
    }

    #[test]
    fn the_newest_records_are_kept() {
        let (_folder, path) = used();
        let mut votes = opened(&path);
        for height in 10..10 + RECORDS {
            votes.sign(cast(height, 0, Step::Prevote, 7)).unwrap();
        }
        votes.record(cast(9 + RECORDS, 0, Step::Prevote, 7)).unwrap();
        let votes = opened(&path);
        assert_eq!(votes.casts().next().unwrap().slot.height, 10);
        assert_eq!(votes.casts().count() as u64, RECORDS);
    }

    #[test]
    fn a_flip_of_any_bit_is_found() {
        let (_folder, path) = used();
        let whole = std::fs::read(&path).unwrap();
        for at in 0..4 * RECORD_BYTES {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            let mut file = OpenOptions::new().write(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, &damaged).unwrap();
            assert_eq!(VoteFile::open(&path).unwrap().unwrap_err(), Untrusted::Damaged, "byte {at}");
        }
    }

    #[test]
    fn a_lost_record_and_a_cut_file_are_found() {
        let (_folder, path) = used();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; RECORD_BYTES], offset_of(2)).unwrap();
        assert_eq!(VoteFile::open(&path).unwrap().unwrap_err(), Untrusted::Damaged);
        file.set_len(2 * RECORD_BYTES as u64).unwrap();
        assert_eq!(VoteFile::open(&path).unwrap().unwrap_err(), Untrusted::Damaged);
    }

    #[test]
    fn a_copy_of_before_the_last_start_is_found_also_where_it_is_put_back_in_place() {
        let (_folder, path) = used();
        let mut running = opened(&path);
        let copy = std::fs::read(&path).unwrap();
        running.record(cast(2, 1, Step::Precommit, 4)).unwrap();
        // Births are told apart by the kernel's clock, which goes on every few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(opened(&path));
        // As `cp` does: the file, with its inode and birth, stays, and its content is the copy's.
        std::fs::write(&path, &copy).unwrap();
        assert_eq!(VoteFile::open(&path).unwrap().unwrap_err(), Untrusted::Copied);
    }

    #[test]
    fn a_copy_and_a_missing_file_are_found() {
        let (folder, path) = used();
        let copy = folder.path().join("copy");
        std::fs::copy(&path, &copy).unwrap();
        assert_eq!(VoteFile::open(&copy).unwrap().unwrap_err(), Untrusted::Copied);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(VoteFile::open(&path).unwrap().unwrap_err(), Untrusted::Missing);
    }
}

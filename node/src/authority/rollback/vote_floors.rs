//! The number from which each account is voted for again, in memory and in the file `floors` of the data folder.
//!
//! The file only saves questions: a lost entry is asked for again, and an answer learned later is never too low. So the
//! file is not synced, and damaged entries are ignored. Each entry is the account, the number (big-endian) and a
//! checksum of both.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use fastpay_core::{AccountId, SequenceNumber};

pub(super) const FLOORS_FILE: &str = "floors";
const ENTRY_BYTES: usize = 32 + 8 + 4;
/// The maximum number of entries, about 90 MB. Beyond it, all are removed, and asked for again when needed.
const FLOORS_MAX: usize = 1 << 20;

/// The floors learned from the peers.
pub struct VoteFloors {
    known: HashMap<AccountId, SequenceNumber>,
    max: usize,
    /// `None` if it could not be written.
    file: Option<File>,
}

impl VoteFloors {
    /// Reads the floors of a data folder.
    ///
    /// # Errors
    /// If the file cannot be read or opened.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(FLOORS_FILE);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let mut floors = Self { known: HashMap::new(), max: FLOORS_MAX, file: None };
        let (entries, torn) = bytes.as_chunks::<ENTRY_BYTES>();
        for (account, from) in entries.iter().filter_map(decode) {
            floors.raise(account, from);
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        // Cut off a torn entry, so that the next entry begins at a boundary.
        file.set_len((bytes.len() - torn.len()) as u64)?;
        floors.file = Some(file);
        Ok(floors)
    }

    /// The number from which the account is voted for, if known.
    #[must_use]
    pub fn votes_from(&self, account: &AccountId) -> Option<SequenceNumber> {
        self.known.get(account).copied()
    }

    pub(super) fn learn(&mut self, account: AccountId, from: SequenceNumber) {
        if self.known.len() >= self.max {
            self.known.clear();
            if let Some(Err(error)) = self.file.as_ref().map(|file| file.set_len(0)) {
                self.give_up(&error);
            }
        }
        self.raise(account, from);
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(&encode(account, from))) {
            self.give_up(&error);
        }
    }

    fn raise(&mut self, account: AccountId, from: SequenceNumber) {
        let known = self.known.entry(account).or_insert(from);
        *known = from.max(*known);
    }

    fn give_up(&mut self, error: &io::Error) {
        tracing::warn!(%error, "what the peers say cannot be written down; they are asked again after a restart");
        self.file = None;
    }
}

fn encode(account: AccountId, from: SequenceNumber) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    let (body, checksum) = entry.split_at_mut(ENTRY_BYTES - 4);
    let (id, number) = body.split_at_mut(32);
    id.copy_from_slice(&account.0);
    number.copy_from_slice(&from.0.to_be_bytes());
    checksum.copy_from_slice(&crc32c::crc32c(body).to_be_bytes());
    entry
}

fn decode(entry: &[u8; ENTRY_BYTES]) -> Option<(AccountId, SequenceNumber)> {
    let (body, checksum) = entry.split_at(ENTRY_BYTES - 4);
    let (id, number) = body.split_at(32);
    let fits = checksum == crc32c::crc32c(body).to_be_bytes();
    fits.then_some((AccountId(id.try_into().ok()?), SequenceNumber(u64::from_be_bytes(number.try_into().ok()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(byte: u8) -> AccountId {
        AccountId([byte; 32])
    }

    #[test]
    fn floors_come_back_after_a_restart_and_torn_or_damaged_ones_are_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut floors = VoteFloors::open(folder.path()).unwrap();
        floors.learn(account(1), SequenceNumber(7));
        floors.learn(account(2), SequenceNumber(u64::MAX));
        floors.learn(account(3), SequenceNumber(1));
        drop(floors);
        let path = folder.path().join(FLOORS_FILE);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut floors = VoteFloors::open(folder.path()).unwrap();
            let known = [(1, 7), (2, u64::MAX), (3, 1)].map(|(id, from)| (account(id), SequenceNumber(from)));
            for (number, (id, from)) in known.into_iter().enumerate() {
                let expected = (cut >= (number + 1) * ENTRY_BYTES).then_some(from);
                assert_eq!(floors.votes_from(&id), expected, "{cut}");
            }
            // An entry written after a torn one is read again.
            floors.learn(account(4), SequenceNumber(9));
            drop(floors);
            assert_eq!(VoteFloors::open(folder.path()).unwrap().votes_from(&account(4)), Some(SequenceNumber(9)));
        }
        for flipped in 0..ENTRY_BYTES * 8 {
            let mut bytes = whole.clone();
            bytes[ENTRY_BYTES + flipped / 8] ^= 1 << (flipped % 8);
            std::fs::write(&path, bytes).unwrap();
            let floors = VoteFloors::open(folder.path()).unwrap();
            assert_eq!(floors.votes_from(&account(2)), None);
            assert_eq!(floors.votes_from(&account(3)), Some(SequenceNumber(1)));
        }
    }

    #[test]
    fn where_there_are_too_many_all_are_forgotten_and_learned_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut floors = VoteFloors::open(folder.path()).unwrap();
        floors.max = 2;
        for byte in 1..=3 {
            floors.learn(account(byte), SequenceNumber(5));
        }
        let known = |floors: &VoteFloors| [1, 2, 3].map(|byte| floors.votes_from(&account(byte)).is_some());
        assert_eq!(known(&floors), [false, false, true]);
        drop(floors);
        assert_eq!(known(&VoteFloors::open(folder.path()).unwrap()), [false, false, true]);
    }
}

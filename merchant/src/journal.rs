//! The entries on disk: one line of JSON each, behind its checksum, appended and synced. A line that a crash cut short
//! is taken away when the journal is opened; any other damage stops the service, because an invoice that was promised
//! could be missing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::book::{Book, Entry};

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refused.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A line is not as it was written.
    #[error("line {line} of {path} is damaged; restore the folder from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// An earlier write failed, so nobody knows what is on disk.
    #[error("{path} could not be written before; restart the service")]
    Broken {
        /// The file.
        path: PathBuf,
    },
}

/// The journal, open for writing. Whoever opens it holds the folder's lock.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    is_broken: bool,
}

impl Journal {
    /// Opens the journal at `path`, or begins one, and reads what it says.
    ///
    /// # Errors
    /// Where the system refuses, or a line is damaged.
    pub fn open(path: &Path) -> Result<(Self, Book), JournalError> {
        let io = |error| JournalError::Io { path: path.into(), error };
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
        let mut file = file.map_err(io)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(io)?;
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last.saturating_add(1));
        let mut book = Book::default();
        let lines = content.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n');
        for (line, text) in (1..).zip(lines) {
            let entry = decode(text).ok_or_else(|| JournalError::Damaged { path: path.into(), line })?;
            book.apply(entry);
        }
        if whole < content.len() {
            tracing::warn!(path = %path.display(), "the last line was cut short by a crash and is taken away");
            file.set_len(u64::try_from(whole).unwrap_or(u64::MAX)).map_err(io)?;
        }
        file.seek(SeekFrom::End(0)).map_err(io)?;
        file.sync_all().map_err(io)?;
        if let Some(folder) = path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        }
        Ok((Self { path: path.into(), file, is_broken: false }, book))
    }

    /// As a disk that fails does.
    #[cfg(test)]
    pub(crate) fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// Appends entries; when it returns they survive a crash.
    ///
    /// # Errors
    /// Where the disk refuses. Then, and ever after, nothing is written any more.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        if self.is_broken {
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        if entries.is_empty() {
            return Ok(());
        }
        let lines: Vec<u8> = entries.iter().flat_map(encode).collect();
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            self.is_broken = true;
            JournalError::Io { path: self.path.clone(), error }
        })
    }
}

fn encode(entry: &Entry) -> Vec<u8> {
    let json = serde_json::to_string(entry).expect("an entry is text and numbers");
    format!("{:08x} {json}\n", crc32c::crc32c(json.as_bytes())).into_bytes()
}

fn decode(line: &[u8]) -> Option<Entry> {
    let (checksum, json) = line.strip_suffix(b"\n")?.split_at_checked(9)?;
    let expected = format!("{:08x} ", crc32c::crc32c(json));
    if checksum != expected.as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::{Attempt, Event, Outcome};
    use crate::invoice::State;
    use crate::invoice::tests::{arrival, terms};

    fn entries() -> Vec<Entry> {
        let event = Event {
            id: "evt_1".into(),
            invoice: "inv_1".into(),
            state: State::PaidTwice,
            arrivals: 1,
            looked_at_ms: 7,
            body: "{\"type\":\"invoice.paid\"}\n".into(),
        };
        let failed = Outcome::Failed { reason: "503".into(), next_at_ms: 9 };
        vec![
            Entry::Created(terms(u128::MAX)),
            Entry::Arrived(arrival(0, 10, 1)),
            Entry::Announced(event),
            Entry::Attempted(Attempt { event: "evt_1".into(), at_ms: 8, outcome: failed }),
            Entry::Attempted(Attempt { event: "evt_1".into(), at_ms: 9, outcome: Outcome::Delivered }),
        ]
    }

    #[test]
    fn cut_anywhere_it_knows_the_entries_that_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(&path).unwrap();
        journal.append(&entries()).unwrap();
        let content = std::fs::read(&path).unwrap();
        for length in 0..=content.len() {
            std::fs::write(&path, &content[..length]).unwrap();
            let (mut journal, book) = Journal::open(&path).unwrap();
            let whole = content[..length].iter().filter(|byte| **byte == b'\n').count();
            let mut expected = Book::default();
            entries().into_iter().take(whole).for_each(|entry| expected.apply(entry));
            assert_eq!(book, expected, "{length}");
            // What is missing is written behind what is whole.
            journal.append(&entries()[whole..]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), content, "{length}");
        }
    }

    #[test]
    fn a_damaged_line_stops_the_service() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        Journal::open(&path).unwrap().0.append(&entries()).unwrap();
        let content = std::fs::read(&path).unwrap();
        for at in (0..content.len() - 1).step_by(7).filter(|at| content[*at] != b'\n') {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert!(matches!(Journal::open(&path), Err(JournalError::Damaged { .. })), "byte {at}");
        }
    }
}

//! The entries on disk: one line of JSON each, behind its checksum, appended and synced. A line that a crash cut short
//! is taken away when the journal is opened; any other damage stops the service, because an invoice that was promised
//! could be missing.
//!
//! A journal that has grown is written anew beside the old one, synced, and renamed into its place: a crash leaves the one
//! or the other.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::book::{Book, Entry};

/// A journal of fewer lines is never written anew.
const LINES_MIN: usize = 10_000;

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
    /// How many lines there are.
    lines: usize,
    /// At how many it is written anew.
    due_at: usize,
    is_broken: bool,
}

fn due_at(lines: usize) -> usize {
    lines.saturating_mul(2).max(LINES_MIN)
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
        let (mut lines, mut due) = (0_usize, LINES_MIN);
        for text in content.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            lines = lines.saturating_add(1);
            let entry = decode(text).ok_or_else(|| JournalError::Damaged { path: path.into(), line: lines })?;
            if let Entry::Compacted(compaction) = &entry {
                due = due_at(compaction.lines);
            }
            book.apply(entry);
        }
        if whole < content.len() {
            tracing::warn!(path = %path.display(), "the last line was cut short by a crash and is taken away");
            file.set_len(u64::try_from(whole).unwrap_or(u64::MAX)).map_err(io)?;
        }
        file.seek(SeekFrom::End(0)).map_err(io)?;
        file.sync_all().map_err(io)?;
        sync_folder(path).map_err(io)?;
        Ok((Self { path: path.into(), file, lines, due_at: due, is_broken: false }, book))
    }

    /// Whether it has grown so much that it should be written anew: to more than twice what it was then.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.lines > self.due_at
    }

    /// Writes it anew with these entries, which stand for all that it says.
    ///
    /// # Errors
    /// Where the disk refuses. Then the old one is there as it was, and is used on.
    pub fn rewrite(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        // Not at once again, where it fails.
        self.due_at = due_at(self.lines);
        let new = self.path.with_extension("new");
        let io = |error| JournalError::Io { path: new.clone(), error };
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new).map_err(io)?;
        let mut writer = BufWriter::new(file);
        entries.iter().try_for_each(|entry| writer.write_all(&encode(entry))).map_err(io)?;
        let file = writer.into_inner().map_err(|error| io(error.into_error()))?;
        file.sync_all().and_then(|()| std::fs::rename(&new, &self.path)).map_err(io)?;
        (self.file, self.lines, self.due_at) = (file, entries.len(), due_at(entries.len()));
        // Which of the two a crash would leave is not known without it, and what follows is only in the new one.
        sync_folder(&self.path).map_err(|error| {
            self.is_broken = true;
            io(error)
        })
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
        let text: Vec<u8> = entries.iter().flat_map(encode).collect();
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        self.lines = self.lines.saturating_add(entries.len());
        written.map_err(|error| {
            self.is_broken = true;
            JournalError::Io { path: self.path.clone(), error }
        })
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
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

    /// The entries, and in how many the same book is told.
    fn compacted() -> (Book, Vec<Entry>) {
        let mut book = Book::default();
        entries().into_iter().for_each(|entry| book.apply(entry));
        let kept = book.compacted(0).kept;
        (book, kept)
    }

    #[test]
    fn a_crash_while_it_is_written_anew_leaves_the_old_or_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("journal"), folder.path().join("journal.new"));
        let (mut journal, _) = Journal::open(&path).unwrap();
        journal.append(&entries()).unwrap();
        let old = std::fs::read(&path).unwrap();
        let (book, kept) = compacted();
        journal.rewrite(&kept).unwrap();
        let written = std::fs::read(&path).unwrap();
        let mut expected = Book::default();
        kept.iter().for_each(|entry| expected.apply(entry.clone()));
        // As far as it came before the new one took the old one's place.
        for length in 0..=written.len() {
            std::fs::write(&path, &old).unwrap();
            std::fs::write(&new, &written[..length]).unwrap();
            let (mut journal, found) = Journal::open(&path).unwrap();
            assert_eq!(found, book, "{length}");
            journal.rewrite(&kept).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), written, "{length}");
        }
        // What follows is behind the new one, and is cut like that of the old one.
        let (mut journal, found) = Journal::open(&path).unwrap();
        assert_eq!(found, expected);
        let later = [Entry::Arrived(arrival(5, 1, 1))];
        journal.append(&later).unwrap();
        let longer = std::fs::read(&path).unwrap();
        for length in written.len()..longer.len() {
            std::fs::write(&path, &longer[..length]).unwrap();
            assert_eq!(Journal::open(&path).unwrap().1, expected, "{length}");
        }
    }

    #[test]
    fn it_is_due_where_it_has_doubled_and_a_refusal_leaves_it_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(&path).unwrap();
        let many: Vec<_> = (0..=LINES_MIN as u64).map(|number| Entry::Arrived(arrival(number, 1, 1))).collect();
        journal.append(&many[1..]).unwrap();
        assert!(!journal.is_due());
        journal.append(&many[..1]).unwrap();
        assert!(journal.is_due());
        // In the way of the new one.
        std::fs::create_dir(folder.path().join("journal.new")).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(journal.rewrite(&many), Err(JournalError::Io { .. })));
        assert!(!journal.is_due(), "not at once again");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        journal.append(&compacted().1[1..]).unwrap();
        drop(journal);
        std::fs::remove_dir(folder.path().join("journal.new")).unwrap();
        let (mut journal, book) = Journal::open(&path).unwrap();
        assert!(journal.is_due());
        let kept = book.compacted(0).kept;
        journal.rewrite(&kept).unwrap();
        assert!(!journal.is_due());
        let (journal, _) = Journal::open(&path).unwrap();
        assert_eq!((journal.lines, journal.due_at), (kept.len(), due_at(kept.len())));
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

//! A shard's journal in memory: the encoded records in sequence, as on disk.

use fastpay_core::{JournalPosition, Record};

/// Records by position. As in a journal on disk, positions count the bytes of the records.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal {
    bytes: Vec<u8>,
}

impl MemoryJournal {
    /// Adds a record and returns its position.
    pub fn append(&mut self, record: &Record) -> JournalPosition {
        let position = self.end();
        borsh::to_writer(&mut self.bytes, record).expect("writing to memory does not fail");
        position
    }

    /// The position of the next record.
    #[must_use]
    pub fn end(&self) -> JournalPosition {
        JournalPosition(self.bytes.len() as u64)
    }

    /// The record at `position`, which must be a position that [`MemoryJournal::append`] returned.
    #[must_use]
    pub fn read(&self, position: JournalPosition) -> Record {
        self.records_from(position).next().expect("a position before the end").1
    }

    /// All records from `position` on.
    pub fn records_from(&self, position: JournalPosition) -> impl Iterator<Item = (JournalPosition, Record)> {
        let start = usize::try_from(position.0).expect("the journal is in memory");
        let mut rest = &self.bytes[start..];
        std::iter::from_fn(move || {
            let position = JournalPosition((self.bytes.len() - rest.len()) as u64);
            (!rest.is_empty()).then(|| (position, borsh::BorshDeserialize::deserialize(&mut rest).expect("as written")))
        })
    }

    /// All records from the first.
    pub fn records(&self) -> impl Iterator<Item = (JournalPosition, Record)> {
        self.records_from(JournalPosition(0))
    }
}

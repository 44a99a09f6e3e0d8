//! Reads the journal along the links of a history. This runs beside the shard, never in its thread.

use borsh::BorshDeserialize;
use fastpay_core::{AccountId, Chain, Find, History, JournalPosition, Link, Record, SequenceNumber};

use crate::authority::storage::{JournalError, JournalRead, JournalReader};

/// Reads entries of histories from one shard's journal.
#[derive(Clone)]
pub struct HistoryReader {
    journal: JournalReader,
}

/// Why an entry cannot be read. Neither can happen while the journal is intact.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The journal cannot be read there.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The record at this position is not the one that the link names.
    #[error("the record at journal position {0} is not part of the history that points to it")]
    BrokenLink(JournalPosition),
}

impl HistoryReader {
    /// A reader over a journal.
    #[must_use]
    pub fn new(journal: JournalReader) -> Self {
        Self { journal }
    }

    /// The committed end of the journal.
    #[must_use]
    pub fn end(&self) -> JournalPosition {
        self.journal.end()
    }

    /// Whether a read may take a while; see [`fastpay_program::disk::Disk::is_slow`].
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.journal.is_slow()
    }

    /// The record of entry `number` of a chain.
    fn read(&self, position: JournalPosition, number: u64, chain: Chain) -> Result<(Record, Link), HistoryError> {
        let record = self.record(position)?;
        let link = record.link(chain, number, position).ok_or(HistoryError::BrokenLink(position))?;
        Ok((record, link))
    }

    /// The record at a position.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn record(&self, position: JournalPosition) -> Result<Record, HistoryError> {
        let bytes = self.journal.read_at(position)?;
        Record::try_from_slice(&bytes).map_err(|_| HistoryError::BrokenLink(position))
    }

    /// The records from a position on, each with its own position, up to the present end.
    pub fn records(
        &self,
        from: JournalPosition,
    ) -> impl Iterator<Item = Result<(JournalPosition, Record), HistoryError>> + use<> {
        self.journal.read_from(from).map(|entry| {
            let (position, bytes) = entry?;
            let record = Record::try_from_slice(&bytes).map_err(|_| HistoryError::BrokenLink(position))?;
            Ok((position, record))
        })
    }

    /// The names of the certificates confirmed from a position on, in order, at most `names_max`, and the position from
    /// which to continue. It reads at most `records_max` records.
    ///
    /// # Errors
    /// See [`HistoryError`]. A position after the end, or where no record begins, is an error of the journal.
    pub fn confirmed(
        &self,
        from: JournalPosition,
        names_max: usize,
        records_max: usize,
    ) -> Result<(Vec<(AccountId, SequenceNumber)>, JournalPosition), HistoryError> {
        let (mut records, mut names) = (self.journal.read_from(from), Vec::new());
        for _ in 0..records_max {
            if names.len() >= names_max {
                break;
            }
            let Some(entry) = records.next() else { break };
            let (position, bytes) = entry?;
            let record = Record::try_from_slice(&bytes).map_err(|_| HistoryError::BrokenLink(position))?;
            if let Record::Confirmation { certificate, .. } = record {
                let transfer = &certificate.order.transfer;
                names.push((transfer.sender(), transfer.sequence()));
            }
        }
        Ok((names, records.position()))
    }

    /// The entry of this number, from 0; `None` if there is none.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn entry(&self, history: &History, number: u64, chain: Chain) -> Result<Option<Record>, HistoryError> {
        Ok(self.entry_at(history, number, chain)?.map(|(record, _)| record))
    }

    fn entry_at(&self, history: &History, number: u64, chain: Chain) -> Result<Option<(Record, Link)>, HistoryError> {
        let mut step = history.find(number);
        loop {
            match step {
                Find::Absent => return Ok(None),
                Find::Found(position) => return self.read(position, number, chain).map(Some),
                Find::Read(position, entry) => step = self.read(position, entry, chain)?.1.find(number),
            }
        }
    }

    /// Up to `limit` entries from number `start` on, oldest first, each with its number.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn page(
        &self,
        history: &History,
        start: u64,
        limit: u32,
        chain: Chain,
    ) -> Result<Vec<(u64, Record)>, HistoryError> {
        let end = start.saturating_add(limit.into()).min(history.count());
        let mut entries = Vec::new();
        let Some(last) = end.checked_sub(1).filter(|last| *last >= start) else { return Ok(entries) };
        let mut next = self.entry_at(history, last, chain)?.map(|entry| (last, entry));
        while let Some((number, (record, link))) = next.take() {
            if let (Some(previous), Some(before)) = (link.previous, number.checked_sub(1).filter(|it| *it >= start)) {
                next = Some((before, self.read(previous, before, chain)?));
            }
            entries.push((number, record));
        }
        entries.reverse();
        Ok(entries)
    }
}

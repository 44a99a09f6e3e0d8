//! Reads the journal along the links of a history. This runs beside the shard, never in its thread.

use std::sync::Arc;

use borsh::BorshDeserialize;
use fastpay_core::{
    AccountId, Certificate, Chain, Find, History, JournalPosition, LedgerBase, Link, Pruned, Record, SequenceNumber,
    Unpaid,
};

use crate::authority::storage::{JournalError, JournalRead, JournalReader};

/// Reads entries of histories from one shard's journal.
#[derive(Clone)]
pub struct HistoryReader {
    journal: JournalReader,
    base: Option<Arc<LedgerBase>>,
}

/// Where a cursor has the generation of the journal in which it is a position. So a cursor of one generation is none of
/// another, whatever records begin there.
const GENERATION_SHIFT: u32 = 48;

/// Why an entry cannot be read. Only the last can happen while the journal is intact.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The journal cannot be read there.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The record at this position is not the one that the link names.
    #[error("the record at journal position {0} is not part of the history that points to it")]
    BrokenLink(JournalPosition),
    /// The entry was pruned.
    #[error(transparent)]
    Pruned(#[from] Pruned),
}

impl HistoryReader {
    /// A reader over a journal, which begins with this base.
    #[must_use]
    pub fn new(journal: JournalReader, base: Option<Arc<LedgerBase>>) -> Self {
        Self { journal, base }
    }

    /// What the journal begins with; none if it begins with the first record.
    #[must_use]
    pub fn base(&self) -> Option<&LedgerBase> {
        self.base.as_deref()
    }

    /// A redemption that the contract had not paid at the base.
    #[must_use]
    pub fn unpaid(&self, account: AccountId, sequence: SequenceNumber) -> Option<&Unpaid> {
        self.base()?.unpaid.get(&(account, sequence))
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
        match (record.link(chain, number, position), record.pruned(chain)) {
            (Some(link), _) => Ok((record, link)),
            (None, Some(pruned)) => Err(pruned.into()),
            (None, None) => Err(HistoryError::BrokenLink(position)),
        }
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

    /// The cursor of a position, for readers who may come back when the journal is of another generation.
    #[must_use]
    pub fn cursor(&self, position: JournalPosition) -> JournalPosition {
        let generation = self.base().map_or(0, |base| base.generation);
        JournalPosition(position.0 | generation.wrapping_shl(GENERATION_SHIFT))
    }

    /// The position of a cursor of this journal.
    fn position(&self, cursor: JournalPosition) -> Result<JournalPosition, JournalError> {
        let position = JournalPosition(cursor.0 & (1_u64 << GENERATION_SHIFT).wrapping_sub(1));
        if cursor == JournalPosition::default() || self.cursor(position) == cursor {
            return Ok(position);
        }
        Err(JournalError::OutOfRange { position: cursor, end: self.cursor(self.end()) })
    }

    /// The names of the certificates confirmed from a cursor on, in order, at most `names_max`, and the cursor from
    /// which to continue. It reads at most `records_max` records.
    ///
    /// # Errors
    /// See [`HistoryError`]. A cursor of another generation, after the end, or where no record begins, is an error of
    /// the journal.
    pub fn confirmed(
        &self,
        from: JournalPosition,
        names_max: usize,
        records_max: usize,
    ) -> Result<(Vec<(AccountId, SequenceNumber)>, JournalPosition), HistoryError> {
        let (mut records, mut names) = (self.journal.read_from(self.position(from)?), Vec::new());
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
        Ok((names, self.cursor(records.position())))
    }

    /// The certificate that an account with this history of sent transfers sent under a number. That of an unpaid
    /// redemption is kept.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn certificate(
        &self,
        account: AccountId,
        sent: &History,
        sequence: SequenceNumber,
    ) -> Result<Option<Arc<Certificate>>, HistoryError> {
        let record = match self.entry(sent, sequence.0, Chain::Sent) {
            Err(HistoryError::Pruned(pruned)) => {
                let kept = self.unpaid(account, sequence).and_then(|unpaid| unpaid.certificate);
                Some(self.record(kept.ok_or(pruned)?)?)
            }
            entry => entry?,
        };
        Ok(record.and_then(|record| record.certificate().cloned()))
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

//! Imports the `journal.jsonl` of earlier programs, once: each entry is a line of JSON after its CRC-32C. It becomes
//! the first content of the database in one transaction, and is then renamed. A crash between the two leaves both: the
//! database recognises the journal by its length and checksum.

use std::io;
use std::path::{Path, PathBuf};

use fastpay_core::{AccountId, SequenceNumber};
use fastpay_rpc::PaymentName;
use rusqlite::{OptionalExtension, Result};
use serde::Deserialize;

use super::StoreError;
use super::rows::{Rows, key};
use crate::event::{self, Delivery, Outcome};
use crate::invoice::{Arrival, State, Terms};

const FILE: &str = "journal.jsonl";
/// The name of an imported journal. The owner may remove it.
const ASIDE: &str = "journal.jsonl.imported";

/// Why a journal cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system failed.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A line was changed after it was written.
    #[error("line {line} of {path} is damaged; restore the folder from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// An earlier program ran again after the import.
    #[error(
        "{path} was written by an earlier program after its invoices had moved to invoices.db: its invoices are not in the \
         database. Keep both files, and move {path} elsewhere to go on with the database"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

/// An entry of the journal.
#[derive(Deserialize)]
#[serde(tag = "entry", rename_all = "camelCase", deny_unknown_fields)]
enum Entry {
    Created(Terms),
    Arrived(Arrival),
    Announced(Event),
    Attempted(Attempt),
    Compacted(Compaction),
    Told(Told),
    Archived {
        sender: AccountId,
        sequences: Vec<SequenceNumber>,
        #[serde(default)]
        outputs: Vec<(SequenceNumber, u16)>,
    },
    Retired {
        reference: String,
        id: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    id: String,
    invoice: String,
    state: State,
    arrivals: u64,
    looked_at_ms: u64,
    body: String,
}

#[derive(Deserialize)]
struct Attempt {
    event: String,
    outcome: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compaction {
    looked_at_ms: u64,
}

#[derive(Deserialize)]
struct Told {
    event: Event,
    attempts: u32,
    last: Option<Outcome>,
}

/// Imports the journal, if there is one.
pub(super) fn import(rows: &Rows, folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(FILE);
    let Some(content) = read(&path)? else { return Ok(()) };
    // A line that a crash cut short was never answered.
    let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last.saturating_add(1));
    let lines = content.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n');
    for (line, text) in (1..).zip(lines) {
        let damaged = || JournalError::Damaged { path: path.clone(), line };
        add(rows, decode(text).ok_or_else(damaged)?)?;
    }
    let sql = "UPDATE service SET journal_bytes = ?, journal_crc = ?";
    rows.0.execute(sql, fingerprint(&content))?;
    tracing::info!(path = %path.display(), "the invoices were taken over into invoices.db");
    Ok(())
}

/// Renames an imported journal.
pub(super) fn put_aside(rows: &Rows, folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(FILE);
    let Some(content) = read(&path)? else { return Ok(()) };
    let sql = "SELECT journal_bytes, journal_crc FROM service";
    let known: Option<(Option<i64>, Option<i64>)> =
        rows.0.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (bytes, crc) = fingerprint(&content);
    if known != Some((Some(bytes), Some(crc))) {
        return Err(JournalError::Foreign { path }.into());
    }
    std::fs::rename(&path, folder.join(ASIDE)).map_err(|error| JournalError::Io { path, error })?;
    Ok(())
}

fn fingerprint(content: &[u8]) -> (i64, i64) {
    (i64::try_from(content.len()).unwrap_or(i64::MAX), crc32c::crc32c(content).into())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
    match std::fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(JournalError::Io { path: path.into(), error }),
    }
}

fn decode(line: &[u8]) -> Option<Entry> {
    let (checksum, json) = line.strip_suffix(b"\n")?.split_at_checked(9)?;
    let expected = format!("{:08x} ", crc32c::crc32c(json));
    if checksum != expected.as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

fn add(rows: &Rows, entry: Entry) -> Result<()> {
    match entry {
        Entry::Created(terms) => rows.add_invoice(&terms),
        Entry::Arrived(arrival) => {
            rows.set_looked_at_ms(arrival.after_ms)?;
            rows.add_payment(&arrival).map(drop)
        }
        Entry::Announced(event) => delivery(rows, event, 0, None),
        Entry::Told(Told { event, attempts, last }) => delivery(rows, event, attempts, last),
        Entry::Attempted(Attempt { event, outcome }) => rows.attempted(&event, &outcome),
        Entry::Compacted(Compaction { looked_at_ms }) => rows.set_looked_at_ms(looked_at_ms),
        Entry::Archived { sender, sequences, outputs } => {
            let payments = sequences.into_iter().map(|sequence| (sequence, None));
            let outputs = outputs.into_iter().map(|(sequence, output)| (sequence, Some(output)));
            for (sequence, output) in payments.chain(outputs) {
                let sql = "INSERT OR IGNORE INTO archived_payment VALUES (?, ?, ?)";
                rows.0.prepare_cached(sql)?.execute(key(&PaymentName { sender, sequence, output }))?;
            }
            Ok(())
        }
        Entry::Retired { reference, id } => {
            rows.0.execute("INSERT OR REPLACE INTO archived_invoice VALUES (?, ?)", (reference, id)).map(drop)
        }
    }
}

fn delivery(rows: &Rows, event: Event, attempts: u32, last: Option<Outcome>) -> Result<()> {
    let Event { id, invoice, state, looked_at_ms, body, arrivals } = event;
    rows.set_looked_at_ms(looked_at_ms)?;
    let Some(invoice) = rows.invoice(&invoice)? else { return Ok(()) };
    if invoice.totals.payments == 0 {
        rows.set_state(invoice.number, state)?;
    }
    let delivery = Delivery { event: event::Event { id, state, body }, attempts, last };
    rows.add_event(invoice.number, looked_at_ms, &delivery)?;
    if invoice.totals.payments == arrivals { rows.announced(invoice.number) } else { Ok(()) }
}

//! Invoices, payments and webhooks on disk: one SQLite database, which only the service writes and anybody may read.
//!
//! A change is one transaction. It is synced before [`Store::change`] returns, and a crash leaves all of it or nothing.

mod journal;
mod payouts;
mod refunds;
mod rows;

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_program::files;
use rusqlite::{Connection, TransactionBehavior};

pub use journal::JournalError;
pub use payouts::Payout;
pub use refunds::{PaidBy, Refund, RefundList};
pub(crate) use rows::Rows;
pub use rows::{Order, Payment, Record};

const FILE: &str = "invoices.db";
/// The migrations: each version's changes to the previous schema.
const SCHEMA: [&str; 3] = [include_str!("1.sql"), include_str!("2.sql"), include_str!("3.sql")];
/// The maximum wait for another program that has locked the database to read it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system failed.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// SQLite or the disk failed.
    #[error("the invoice database failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// The database was changed after it was written.
    #[error("{path} is damaged ({reason}); restore the folder from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first defect that SQLite found.
        reason: String,
    },
    /// A later program wrote it.
    #[error("{path} has version {version}, and this program supports {}; use the program that wrote it", SCHEMA.len())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The journal of an earlier program cannot be imported.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The database. Its opener holds the folder's lock.
#[derive(Debug)]
pub(crate) struct Store(Connection);

impl Store {
    /// Opens the database in `folder`, or creates one, importing the journal of an earlier program if there is one.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        let io = |error| StoreError::Io { path: path.clone(), error };
        // SQLite gives its other files the mode of this one.
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(io)?;
        let mut store = Self(Connection::open(&path)?);
        store.0.busy_timeout(PATIENCE)?;
        store.0.pragma_update(None, "journal_mode", "WAL")?;
        // Sync the log at each commit, not only before a checkpoint.
        store.0.pragma_update(None, "synchronous", "FULL")?;
        store.0.pragma_update(None, "foreign_keys", true)?;
        let reason: String = store.0.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if reason != "ok" {
            return Err(StoreError::Damaged { path, reason });
        }
        let version: u32 = store.0.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let Some(missing) = SCHEMA.get(version as usize..) else { return Err(StoreError::Newer { path, version }) };
        if !missing.is_empty() {
            store.change(|rows| {
                missing.iter().try_for_each(|sql| rows.0.execute_batch(sql))?;
                if version == 0 {
                    journal::import(rows, folder)?;
                }
                Ok::<_, StoreError>(rows.0.pragma_update(None, "user_version", SCHEMA.len() as u32)?)
            })?;
        }
        journal::put_aside(&Rows(&store.0), folder)?;
        files::sync_folder(folder).map_err(io)?;
        Ok(store)
    }

    /// Runs `f` in a transaction, which is on disk when this returns. If `f` fails, nothing changes.
    pub fn change<T, E: From<rusqlite::Error>>(&mut self, f: impl FnOnce(&Rows) -> Result<T, E>) -> Result<T, E> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let outcome = f(&Rows(&transaction))?;
        transaction.commit()?;
        Ok(outcome)
    }

    /// The rows, for reading.
    pub fn rows(&self) -> Rows<'_> {
        Rows(&self.0)
    }

    /// Makes the database fail like a disk without room.
    #[cfg(test)]
    pub fn fill_disk(&self) {
        self.0.query_row("PRAGMA max_page_count = 1", [], |_| Ok(())).unwrap();
    }
}

#[cfg(test)]
mod tests;

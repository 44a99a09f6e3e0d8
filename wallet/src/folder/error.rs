//! Errors of the wallet's own files.

use std::io;
use std::path::{Path, PathBuf};

use fastpay_core::{AccountId, Digest, SequenceNumber};
use fastpay_ledger_client::JournalError;
use fastpay_program::LockError;

/// Why the wallet's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file system failed.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another command is using the folder.
    #[error("another fastpay command is using {path}; wait until it has finished and try again")]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// A file was changed after the wallet wrote it.
    #[error("{path} is damaged ({reason}); restore the wallet's folder from a backup, or move this file away")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// Signing a second order for one sequence number could lock the account for ever.
    #[error(
        "sequence number {sequence} of account {account} belongs to order {existing} already; \
         finish that one with `fastpay resume`"
    )]
    OtherOrder {
        /// The sender's account.
        account: AccountId,
        /// Its number.
        sequence: SequenceNumber,
        /// The digest of the order that has the number.
        existing: Digest,
    },
    /// A number cannot be settled before its certificate is on disk.
    #[error("the certificate of sequence number {sequence} of account {account} is not in the folder; this is a bug")]
    NotCertified {
        /// The sender's account.
        account: AccountId,
        /// Its number.
        sequence: SequenceNumber,
    },
}

impl FolderError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.into(), error }
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.into(), reason: reason.to_string() }
    }
}

impl From<LockError> for FolderError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Busy(path) => Self::Busy { path },
            LockError::Io { path, error } => Self::Io { path, error },
        }
    }
}

impl From<JournalError> for FolderError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Lock(error) => error.into(),
            JournalError::Io { path, error } => Self::Io { path, error },
            JournalError::Damaged { path, reason } => Self::Damaged { path, reason },
        }
    }
}

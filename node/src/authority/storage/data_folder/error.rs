//! Errors of a data folder.

use super::super::journal::JournalError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the data folder cannot be used.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The file system failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The failed action: a verb with the article of its object.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },

    /// Another process has the folder open.
    #[error(
        "the data folder {path} is in use by another process: stop that one first, or give this \
         authority a folder of its own; two processes on one folder could sign two different orders"
    )]
    InUse {
        /// The data folder.
        path: PathBuf,
    },

    /// The folder was not created, or not completely.
    #[error("{path} is not an authority's data folder: check the path, or create the folder with `init`")]
    NotCreated {
        /// The data folder.
        path: PathBuf,
    },

    /// The folder already belongs to an authority.
    #[error(
        "{path} already is an authority's data folder: start the authority on it, or choose another \
         folder"
    )]
    AlreadyCreated {
        /// The data folder.
        path: PathBuf,
    },

    /// `meta.json` does not parse.
    #[error("{path} is damaged ({reason}): restore it from a copy")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        reason: String,
    },

    /// The folder was written by newer software.
    #[error(
        "the data folder {path} has format version {found}, this program reads up to {supported}: \
         use a newer program"
    )]
    UnsupportedVersion {
        /// The data folder.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version that this program reads.
        supported: u32,
    },

    /// The folder belongs to another authority, deployment or layout.
    #[error(
        "the data folder {path} was created for the {what} {stored}, but this authority is \
         configured for {configured}: correct the configuration, or use the folder made for it"
    )]
    Mismatch {
        /// The data folder.
        path: PathBuf,
        /// The part that differs.
        what: &'static str,
        /// The value in the folder.
        stored: String,
        /// The configured value.
        configured: String,
    },

    /// A shard's journal could not be created.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

pub(super) fn io_error(action: &'static str, path: &Path, source: io::Error) -> StorageError {
    StorageError::Io { action, path: path.to_owned(), source }
}

pub(super) fn malformed(path: &Path, reason: &dyn ToString) -> StorageError {
    StorageError::Malformed { path: path.to_owned(), reason: reason.to_string() }
}

//! Payment lists that were begun, by the hash of their file. Each is written once, before its first order is signed,
//! and never changed: the same file always makes the same orders of the same account.

use std::path::{Path, PathBuf};

use fastpay_core::{AccountId, Digest};
use fastpay_program::files;
use serde::{Deserialize, Serialize};

use super::error::FolderError;
use super::json;

/// A list that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Job {
    /// The account that pays.
    pub account: AccountId,
    /// The maximum number of outputs in one order.
    pub outputs_max: usize,
}

/// All jobs.
#[derive(Clone, Debug)]
pub struct Jobs {
    folder: PathBuf,
}

impl Jobs {
    pub(crate) fn new(home: &Path) -> Self {
        Self { folder: home.join("jobs") }
    }

    /// The job with this name; `None` if it was not begun.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn find(&self, name: Digest) -> Result<Option<Job>, FolderError> {
        json::read(&self.path(name))
    }

    /// Begins a job, or returns it as it was begun before.
    ///
    /// # Errors
    /// If the file cannot be written, or is damaged.
    pub fn begin(&self, name: Digest, job: Job) -> Result<Job, FolderError> {
        files::create_folder(&self.folder).map_err(|error| FolderError::io(&self.folder, error))?;
        json::create(&self.path(name), &job)?;
        Ok(self.find(name)?.unwrap_or(job))
    }

    fn path(&self, name: Digest) -> PathBuf {
        self.folder.join(format!("{}.json", hex::encode(name)))
    }
}

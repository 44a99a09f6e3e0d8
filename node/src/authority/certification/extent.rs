//! How far an archive is, for the operator.

use std::fmt;

use fastpay_ethereum::utc;
use serde::Serialize;

use super::archive::{Archive, ArchiveError};
use super::store::Store;
use crate::authority::config::ArchiveSettings;

/// Where an archive is, and its newest certified checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Extent {
    /// The folder.
    pub folder: String,
    /// The number of the newest certified checkpoint there; 0 if there is none.
    pub number: u64,
    /// How many numbers before it were skipped and are still to be fetched.
    pub skipped: usize,
    /// When it was archived, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<u64>,
    /// The URL of the store that keeps the numbers that the folder does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The number of the newest checkpoint there, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
}

impl Extent {
    /// Reads the folder, which need not exist yet. The store is not asked.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn of_folder(settings: &ArchiveSettings) -> Result<Self, ArchiveError> {
        let archive = Archive::new(&settings.folder);
        let number = if settings.folder.is_dir() { archive.newest_number()? } else { 0 };
        let skipped = archive.skipped()?.len();
        let archived_at = if number > 0 { Some(archive.newest_at_ms()? / 1_000) } else { None };
        let (folder, store) = (settings.folder.display().to_string(), settings.store.as_ref().map(ToString::to_string));
        Ok(Self { folder, number, skipped, archived_at, store, stored: None })
    }

    /// As [`Extent::of_folder`], and asks the store.
    ///
    /// # Errors
    /// Those of the file system, and of the store.
    pub async fn of(settings: &ArchiveSettings) -> Result<Self, ArchiveError> {
        let extent = Self::of_folder(settings)?;
        let Some(url) = &settings.store else { return Ok(extent) };
        let stored = Store::open(url)?.numbers().await?.last().copied().unwrap_or(0);
        Ok(Self { stored: Some(stored), ..extent })
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, number, skipped, archived_at, store, stored } = self;
        match archived_at {
            Some(at) => write!(f, "checkpoint {number}, archived {}, in {folder}", utc(*at))?,
            None => write!(f, "no certified checkpoint yet in {folder}")?,
        }
        if *skipped > 0 {
            write!(f, "; {skipped} before it are still to be fetched")?;
        }
        match (store, stored) {
            (Some(store), Some(stored)) => write!(f, "; {store} has all up to {stored}"),
            (Some(store), None) => write!(f, "; older ones in {store}"),
            (None, _) => Ok(()),
        }
    }
}

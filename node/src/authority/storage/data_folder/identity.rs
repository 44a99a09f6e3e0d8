//! `meta.json`: the authority and deployment of the folder.

use super::error::{StorageError, io_error, malformed};
use fastpay_program::files;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

const FORMAT_VERSION: u32 = 1;
/// The file that identifies the folder; a folder without it is no data folder.
pub(crate) const META_FILE: &str = "meta.json";
/// Far above the size of a real file; a larger file is something else and not worth reading.
pub(super) const META_BYTES_MAX: u64 = 64 << 10;

/// The identity of a data folder. It is fixed when the folder is created, except that names of new keys are added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderIdentity {
    /// The authority's names, in hex: first the one that the folder was made for, then those that it has voted under
    /// since. For [`super::DataFolder::open`], the names of the present keys: the folder must list one of them.
    pub names: Vec<String>,
    /// The number of shards. With another number, accounts would move to other shards.
    pub shards: u32,
    /// The Primary's chain id, or the one that a stand-alone network signs for.
    pub chain_id: u64,
    /// The contract's address as the caller writes it.
    pub contract: String,
}

/// `meta.json`.
#[derive(Serialize, Deserialize)]
struct Meta {
    format_version: u32,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

impl FolderIdentity {
    /// Reads the authority and deployment of the folder.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`.
    pub(super) fn read(folder: &Path) -> Result<Self, StorageError> {
        let path = folder.join(META_FILE);
        let failed = |source| io_error("read the file", &path, source);
        let length = fs::metadata(&path).map_err(failed)?.len();
        if length > META_BYTES_MAX {
            return Err(malformed(&path, &format!("{length} bytes are too many")));
        }
        let bytes = fs::read(&path).map_err(failed)?;
        let meta: Meta = serde_json::from_slice(&bytes).map_err(|error| malformed(&path, &error))?;
        // Check the version first: a newer one may have other fields.
        if meta.format_version > FORMAT_VERSION {
            return Err(StorageError::UnsupportedVersion {
                path: folder.to_owned(),
                found: meta.format_version,
                supported: FORMAT_VERSION,
            });
        }
        serde_json::from_value(serde_json::Value::Object(meta.rest)).map_err(|error| malformed(&path, &error))
    }

    /// Writes the file durably, completely or not at all.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn write(&self, folder: &Path) -> Result<(), StorageError> {
        let path = folder.join(META_FILE);
        let meta = Meta::of(self, &path)?;
        let mut bytes = serde_json::to_vec_pretty(&meta).map_err(|error| malformed(&path, &error))?;
        bytes.push(b'\n');
        files::replace(&path, &bytes).map_err(|source| io_error("write the file", &path, source))
    }
}

impl Meta {
    fn of(identity: &FolderIdentity, path: &Path) -> Result<Self, StorageError> {
        let rest =
            serde_json::to_value(identity).and_then(serde_json::from_value).map_err(|error| malformed(path, &error))?;
        Ok(Self { format_version: FORMAT_VERSION, rest })
    }
}

//! `meta.json`: the authority and deployment of the folder.

use super::error::{StorageError, io_error, malformed};
use fastpay_core::{Digest, Epoch};
use fastpay_program::files;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Of a folder that was never rebased, which earlier releases read.
const FORMAT_VERSION_FIRST: u32 = 1;
/// Of a folder that names its generation, and says nothing of [`Fullness`]. Earlier releases read it.
const FORMAT_VERSION_SECOND: u32 = 2;
/// The newest version. Earlier releases, whose members went on with new keys, must not vote with such a folder.
const FORMAT_VERSION: u32 = 3;
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
    /// The number of shards. With another number, accounts would move to other shards: only a rebase changes it.
    pub shards: u32,
    /// The Primary's chain id, or the one that a stand-alone network signs for.
    pub chain_id: u64,
    /// The contract's address as the caller writes it.
    pub contract: String,
}

/// The generation of journals that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    /// Its number. 0, in folders of the first version, is the one made with the folder.
    pub number: u64,
    /// What was noted with the switch to it. None of the one made with the folder.
    pub switch: Option<Switch>,
    /// The checkpoint, adopted after a recovery, from which it or one before it begins.
    pub adopted: Option<Digest>,
    /// What the folder says of its votes. None of a folder that no node of this release was started on.
    pub fullness: Option<Fullness>,
}

/// What a folder says of the votes that it has, beside its journals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fullness {
    /// An epoch since which the folder was full when this was written (docs/PROTOCOL.md, H2).
    pub since: Option<Epoch>,
    /// The newest epoch of which it may lack votes. It has joined a later one.
    pub stale_up_to: Option<Epoch>,
}

/// What is noted with the switch to a generation: until a node was started on it, this is all that is known of its
/// journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The ends of its journals, in bytes.
    pub ends: Vec<u64>,
    /// The generation on which a node was last started before.
    pub from_generation: u64,
    /// The ends of the journals of that generation.
    pub from_ends: Vec<u64>,
}

/// `meta.json`.
#[derive(Serialize, Deserialize)]
struct Meta {
    format_version: u32,
    /// The generation of journals that counts. 0, in folders of the first version, is the one made with the folder.
    #[serde(default, skip_serializing_if = "is_first")]
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch: Option<Switch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adopted: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fullness: Option<Fullness>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_first(generation: &u64) -> bool {
    *generation == 0
}

impl FolderIdentity {
    /// Reads the authority and deployment of the folder, and which generation of journals counts.
    ///
    /// # Errors
    /// `Malformed`, `UnsupportedVersion`, `Io`.
    pub(super) fn read(folder: &Path) -> Result<(Self, Generation), StorageError> {
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
        let identity = serde_json::from_value(serde_json::Value::Object(meta.rest.clone()));
        let Meta { generation: number, switch, adopted, fullness, .. } = meta;
        let generation = Generation { number, switch, adopted, fullness };
        Ok((identity.map_err(|error| malformed(&path, &error))?, generation))
    }

    /// Writes the file durably, completely or not at all.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn write(&self, folder: &Path, generation: Generation) -> Result<(), StorageError> {
        let path = folder.join(META_FILE);
        let meta = Meta::of(self, generation, &path)?;
        let mut bytes = serde_json::to_vec_pretty(&meta).map_err(|error| malformed(&path, &error))?;
        bytes.push(b'\n');
        files::replace(&path, &bytes).map_err(|source| io_error("write the file", &path, source))
    }
}

impl Meta {
    fn of(identity: &FolderIdentity, generation: Generation, path: &Path) -> Result<Self, StorageError> {
        let rest =
            serde_json::to_value(identity).and_then(serde_json::from_value).map_err(|error| malformed(path, &error))?;
        let Generation { number, switch, adopted, fullness } = generation;
        let format_version = match (number, fullness) {
            (_, Some(_)) => FORMAT_VERSION,
            (0, None) => FORMAT_VERSION_FIRST,
            (_, None) => FORMAT_VERSION_SECOND,
        };
        Ok(Self { format_version, generation: number, switch, adopted, fullness, rest })
    }
}

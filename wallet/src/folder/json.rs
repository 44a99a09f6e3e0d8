//! The folder's JSON files, each created once or replaced as a whole.

use std::path::Path;

use fastpay_program::files;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::FolderError;

/// The value in a file; `None` if there is no file.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FolderError> {
    let content = files::read(path).map_err(|error| FolderError::io(path, error))?;
    let value = content.map(|content| serde_json::from_slice(&content)).transpose();
    value.map_err(|error| FolderError::damaged(path, error))
}

/// Writes a value into a new file. False if the file exists, which stays as it is.
pub(super) fn create(path: &Path, value: &impl Serialize) -> Result<bool, FolderError> {
    files::create(path, &text(path, value)?).map_err(|error| FolderError::io(path, error))
}

/// Writes a value into a file in place of its content.
pub(super) fn replace(path: &Path, value: &impl Serialize) -> Result<(), FolderError> {
    files::replace(path, &text(path, value)?).map_err(|error| FolderError::io(path, error))
}

fn text(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, FolderError> {
    serde_json::to_vec_pretty(value).map_err(|error| FolderError::damaged(path, error))
}

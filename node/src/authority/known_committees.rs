//! The committees that an earlier run read from the contract, in the data folder.

use std::path::Path;

use fastpay_core::Committees;
use fastpay_program::files;

/// The file's name in the data folder.
pub(crate) const COMMITTEES_FILE: &str = "committees.json";

/// The committees of an earlier run; `None` if they were never read. They can be trusted: the data folder is bound to
/// the contract, whose committee of an epoch never changes.
#[must_use]
pub fn read(data: &Path) -> Option<Committees> {
    let bytes = std::fs::read(data.join(COMMITTEES_FILE)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Stores final committees, for a start without the Primary.
///
/// # Errors
/// The error of the operating system.
pub fn write(data: &Path, committees: &Committees) -> std::io::Result<()> {
    let bytes = serde_json::to_vec_pretty(committees).map_err(std::io::Error::from)?;
    files::replace(&data.join(COMMITTEES_FILE), &bytes)
}

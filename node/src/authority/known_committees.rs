//! The committees that an earlier run read from the contract, in the data folder.

use std::path::Path;

use fastpay_core::Committees;
use fastpay_program::files;
use serde::{Deserialize, Serialize};

/// The file's name in the data folder.
pub(crate) const COMMITTEES_FILE: &str = "committees.json";

/// The file. Earlier releases wrote the committees alone and knew of no recovery, so they are read again.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    known: Committees,
}

/// The committees of an earlier run; `None` if they were never read, or by a release that did not look for recoveries.
/// They can be trusted: the data folder is bound to the contract, whose committee of an epoch never changes.
#[must_use]
pub fn read(data: &Path) -> Option<Committees> {
    let bytes = std::fs::read(data.join(COMMITTEES_FILE)).ok()?;
    serde_json::from_slice(&bytes).ok().map(|Stored { known }| known)
}

/// The committees of an earlier run, also if a release wrote them that did not look for recoveries: up to the newest epoch
/// that the folder has taken up.
#[must_use]
pub(crate) fn taken_up(data: &Path) -> Option<Committees> {
    read(data).or_else(|| serde_json::from_slice(&std::fs::read(data.join(COMMITTEES_FILE)).ok()?).ok())
}

/// Stores final committees, for a start without the Primary.
///
/// # Errors
/// The error of the operating system.
pub fn write(data: &Path, committees: &Committees) -> std::io::Result<()> {
    let stored = Stored { known: committees.clone() };
    let bytes = serde_json::to_vec_pretty(&stored).map_err(std::io::Error::from)?;
    files::replace(&data.join(COMMITTEES_FILE), &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{Epoch, Recovery};
    use fastpay_testkit::TestCommittee;

    #[test]
    fn committees_of_a_release_that_knew_of_no_recovery_are_read_again() {
        let (first, folder) = (TestCommittee::new(4), tempfile::tempdir().unwrap());
        assert_eq!(read(folder.path()), None);
        let mut committees = Committees::new(first.committee.clone()).unwrap();
        committees.install(first.rotated().committee.clone()).unwrap();
        std::fs::write(folder.path().join(COMMITTEES_FILE), serde_json::to_vec(&committees).unwrap()).unwrap();
        assert_eq!(read(folder.path()), None, "a recovery may have installed epoch 1");
        assert_eq!(taken_up(folder.path()), Some(committees.clone()));
        for recovery in [None, Some(Recovery { epoch: Epoch(1), adopted: None })] {
            recovery.map_or(Ok(()), |recovery| committees.recover(recovery)).unwrap();
            write(folder.path(), &committees).unwrap();
            assert_eq!(read(folder.path()), Some(committees.clone()));
        }
    }
}

//! The checkpoint that an announcement names. Once it is installed it counts without votes, so those who decide compare it
//! with what they have themselves.

use fastpay_core::checkpoint::CheckpointCertificate;
use fastpay_core::{Committees, Digest, Domain};

use super::CommitteeError;
use crate::authority::certification::{Archive, ArchiveError};
use crate::authority::config::Config;

/// Checks that the own archive, if one is configured, has the named checkpoint with the votes of a quorum. Zero names none.
pub(super) fn check_checkpoint(
    config: &Config,
    domain: &Domain,
    committees: &Committees,
    named: Digest,
) -> Result<(), CommitteeError> {
    let Some(settings) = config.archive.as_ref().filter(|_| !named.is_zero()) else { return Ok(()) };
    let archive = Archive::new(&settings.folder);
    let newest = archive.newest_number()?;
    for number in (1..=newest).rev() {
        match archive.certificate(number) {
            Ok(CheckpointCertificate { checkpoint, votes }) if domain.checkpoint_digest(&checkpoint) == named => {
                let committee = committees.get(checkpoint.epoch);
                let certified = committee
                    .and_then(|committee| CheckpointCertificate::from_votes(checkpoint, domain, committee, votes));
                if certified.is_some() {
                    return Ok(());
                }
            }
            // The folder keeps the newest ones only, or lacks what was skipped.
            Ok(_) | Err(ArchiveError::Missing(_) | ArchiveError::Skipped { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(CommitteeError::NotCertified { named, archive: settings.folder.clone(), newest })
}

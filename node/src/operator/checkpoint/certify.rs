//! Gathers votes into a certificate, which completes a checkpoint of the archive.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::CheckpointCertificate;
use fastpay_core::{Digest, Epoch};
use serde::Serialize;

use super::archive::{Archive, ArchiveError, Defect, read_json};
use super::{CheckpointError, CheckpointVoteFile, Progress};
use crate::authority::config::Config;
use crate::authority::deployment;

/// A checkpoint that was certified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Certified {
    /// Its number.
    pub number: u64,
    /// Its digest.
    pub checkpoint: Digest,
    /// The epoch whose members signed it.
    pub epoch: Epoch,
    /// The certificate, for the other archives.
    pub certificate: PathBuf,
}

/// Certifies the proposal in the archive with the votes in these files. The archive is recomputed first.
///
/// # Errors
/// See [`CheckpointError`]; no certificate is written then.
pub async fn certify(
    config: &Config,
    folder: &Path,
    votes: &[PathBuf],
    told: Progress<'_>,
) -> Result<Certified, CheckpointError> {
    let archive = Archive::new(folder);
    let deployment = deployment::load(config).await?;
    let (domain, committees) = (deployment.domain(), deployment.committees()?);
    let base = archive.newest(&domain, &committees)?;
    let computed = archive.recompute(&base.checkpoint, base.state.clone(), &domain, told)?;
    base.check(&domain, computed.state.installations())?;
    archive.check_files(&computed)?;
    let (checkpoint, digest) = (computed.checkpoint, domain.checkpoint_digest(&computed.checkpoint));
    let committee = committees.current();
    if checkpoint.epoch != committee.epoch() {
        return Err(CheckpointError::EpochEnded { epoch: checkpoint.epoch, current: committee.epoch() });
    }

    let (mut counted, mut members) = (Vec::new(), BTreeSet::new());
    for path in votes {
        let file: CheckpointVoteFile = read_json(path)?;
        if file.checkpoint != digest {
            let (path, found) = (path.clone(), file.checkpoint);
            return Err(CheckpointError::OtherCheckpoint { path, expected: digest, found });
        }
        let vote = file.vote();
        vote.check(committee, digest).map_err(|error| CheckpointError::Vote { path: path.clone(), error })?;
        members.insert(vote.authority);
        counted.push(vote);
    }
    let few = CheckpointError::TooFewVotes { found: members.len(), quorum: committee.quorum() };
    let certificate = CheckpointCertificate::from_votes(checkpoint, &domain, committee, counted).ok_or(few)?;
    // As everybody who reads the archive will.
    let verified = certificate.verify(&domain, computed.state.installations()).map_err(|error| {
        let path = archive.certificate_path(checkpoint.number);
        CheckpointError::from(ArchiveError::Wrong { path, defect: Defect::Certificate(error) })
    })?;
    let path = archive.complete(&verified.into_certificate())?;
    Ok(Certified { number: checkpoint.number, checkpoint: digest, epoch: checkpoint.epoch, certificate: path })
}

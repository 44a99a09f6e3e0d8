//! Gathers votes into a certificate, which completes a checkpoint of the archive.

use std::path::PathBuf;

use fastpay_core::checkpoint::{CheckpointCertificate, CheckpointVote};
use fastpay_core::{Digest, Epoch};

use super::archive::{Archive, ArchiveError, Defect};
use super::compute::check_events;
use super::{CheckpointError, CheckpointVoteFile, Inputs, Progress, events};
use crate::authority::deployment;

/// A checkpoint that was certified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// Its number.
    pub number: u64,
    /// Its digest.
    pub checkpoint: Digest,
    /// The epoch whose members signed it.
    pub epoch: Epoch,
    /// The certificate.
    pub certificate: PathBuf,
}

/// Certifies the proposal in the archive with those of the votes that are for it and valid. The archive is recomputed
/// first.
///
/// # Errors
/// See [`CheckpointError`]; no certificate is written then.
pub async fn certify(
    inputs: Inputs<'_>,
    votes: &[CheckpointVoteFile],
    told: Progress<'_>,
) -> Result<Certified, CheckpointError> {
    let archive = Archive::new(inputs.archive);
    let deployment = deployment::load(inputs.config).await?;
    let (domain, committees) = (deployment.domain(), deployment.committees()?);
    let base = archive.newest(&domain, &committees)?;
    let computed = archive.recompute(&base, &domain, &mut *told)?;
    if !computed.is_recovery() {
        base.check(&domain, &computed.state.installations)?;
    }
    archive.check_files(&computed)?;
    let (checkpoint, digest) = (computed.checkpoint, domain.checkpoint_digest(&computed.checkpoint));
    let committee = committees.current();
    if checkpoint.epoch != committee.epoch() {
        return Err(CheckpointError::EpochEnded { epoch: checkpoint.epoch, current: committee.epoch() });
    }
    // On an old view of the chain nobody knows whether the epoch has ended.
    let events = events::read(&deployment, base.state.up_to, inputs, told).await?;
    check_events(&base, &events, checkpoint.up_to)?;

    let votes = votes.iter().filter(|vote| vote.checkpoint == digest).map(CheckpointVoteFile::vote);
    let mut votes: Vec<_> = votes.filter(|vote| vote.check(committee, digest).is_ok()).collect();
    votes.sort_by_key(|vote: &CheckpointVote| vote.authority);
    votes.dedup_by_key(|vote| vote.authority);
    let few = CheckpointError::TooFewVotes { found: votes.len(), quorum: committee.quorum() };
    let certificate = CheckpointCertificate::from_votes(checkpoint, &domain, committee, votes).ok_or(few)?;
    // As everybody who reads the archive will.
    let verified = certificate.verify(&domain, &computed.state.installations).map_err(|error| {
        let path = archive.certificate_path(checkpoint.number);
        CheckpointError::from(ArchiveError::Wrong { path, defect: Defect::Certificate(error) })
    })?;
    let path = archive.complete(&verified.into_certificate())?;
    Ok(Certified { number: checkpoint.number, checkpoint: digest, epoch: checkpoint.epoch, certificate: path })
}

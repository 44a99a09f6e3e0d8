//! Gathers votes into a certificate, which completes a checkpoint of the archive.

use std::path::PathBuf;

use fastpay_core::checkpoint::{Checkpoint, CheckpointCertificate, CheckpointVote, Installations};
use fastpay_core::{Committees, Digest, Domain, Epoch};

use super::archive::{Archive, ArchiveError, Defect};
use super::compute::check_events;
use super::memory::Memory;
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

/// Certifies the proposal in the archive with those of the votes that are for it and valid. It is recomputed from its files
/// first, unless this process made it and the files are still those that it wrote.
///
/// # Errors
/// See [`CheckpointError`]; no certificate is written then.
pub async fn certify(
    inputs: Inputs<'_>,
    votes: &[CheckpointVoteFile],
    memory: &Memory,
    told: Progress<'_>,
) -> Result<Certified, CheckpointError> {
    let archive = Archive::new(inputs.archive);
    let deployment = deployment::load(inputs.config).await?;
    let (domain, committees) = (deployment.domain(), deployment.committees()?);
    let base = archive.tip(&committees)?;
    let made = memory.made(&archive, base.number.saturating_add(1));
    let (checkpoint, installations) = match made.filter(|made| made.follows(&base, &domain)) {
        Some(made) => (made.checkpoint, made.state.installations.clone()),
        None => recompute(&archive, (&domain, &committees), &mut *told)?,
    };
    let digest = domain.checkpoint_digest(&checkpoint);
    let committee = committees.current();
    if checkpoint.epoch != committee.epoch() {
        return Err(CheckpointError::EpochEnded { epoch: checkpoint.epoch, current: committee.epoch() });
    }
    // On an old view of the chain nobody knows whether the epoch has ended.
    let events = events::read(&deployment, base.up_to, inputs, told).await?;
    check_events(&base, &events, checkpoint.up_to)?;

    let votes = votes.iter().filter(|vote| vote.checkpoint == digest).map(CheckpointVoteFile::vote);
    let mut votes: Vec<_> = votes.filter(|vote| vote.check(committee, digest).is_ok()).collect();
    votes.sort_by_key(|vote: &CheckpointVote| vote.authority);
    votes.dedup_by_key(|vote| vote.authority);
    let few = CheckpointError::TooFewVotes { found: votes.len(), quorum: committee.quorum() };
    let certificate = CheckpointCertificate::from_votes(checkpoint, &domain, committee, votes).ok_or(few)?;
    // As everybody who reads the archive will.
    let verified = certificate.verify(&domain, &installations).map_err(|error| {
        let path = archive.certificate_path(checkpoint.number);
        CheckpointError::from(ArchiveError::Wrong { path, defect: Defect::Certificate(error) })
    })?;
    let path = archive.complete(&verified.into_certificate())?;
    Ok(Certified { number: checkpoint.number, checkpoint: digest, epoch: checkpoint.epoch, certificate: path })
}

/// The checkpoint that the files of the proposal lead to, and the committees in its state.
fn recompute(
    archive: &Archive,
    (domain, committees): (&Domain, &Committees),
    told: Progress<'_>,
) -> Result<(Checkpoint, Installations), CheckpointError> {
    let base = archive.base(archive.newest_number()?, domain, committees)?;
    let computed = archive.recompute(&base, domain, told)?;
    if !computed.is_recovery() {
        base.check(domain, &computed.state.installations)?;
    }
    archive.check_files(&computed)?;
    Ok((computed.checkpoint, computed.state.installations))
}

//! Verifies an archive from the first committee on.

use std::fmt;
use std::path::Path;

use fastpay_core::checkpoint::{Checkpoint, CheckpointCertificate, CheckpointMismatch, StateSummary};
use fastpay_core::{Committees, Digest, Domain, Epoch};
use serde::Serialize;

use super::archive::{Archive, ArchiveError, Defect, wrong};
use super::base::{Base, Stored, check_committees};
use super::compute::{Computed, follow_segment};
use super::fetched::Brought;
use super::{CheckpointError, Progress};
use crate::authority::deployment::{self, Reader};

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The number of the newest certified checkpoint; 0 if there is none.
    pub number: u64,
    /// The digest of that checkpoint.
    pub checkpoint: Digest,
    /// The epoch whose members signed it.
    pub epoch: Epoch,
    /// The newest event of the contract that it includes.
    pub up_to: u64,
    /// The accounts of which it includes numbers.
    pub accounts: u64,
    /// The orders, void numbers and events of all segments.
    pub entries: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, checkpoint, epoch, up_to, accounts, entries } = self;
        if *number == 0 {
            return write!(f, "the archive has no certified checkpoint yet");
        }
        write!(
            f,
            "checkpoints 1 to {number} are verified; the newest is {checkpoint} of epoch {epoch}: {accounts} accounts, \
             events up to {up_to}, {entries} entries in all"
        )
    }
}

/// Recomputes all certified checkpoints of the archive at `place`, a folder or the URL of a store, from the first
/// committee on, and checks each certificate against the committees in the states, and these against the deployment's.
///
/// # Errors
/// The first file that is wrong: see [`ArchiveError`].
pub async fn verify(
    reader: impl Into<Reader<'_>>,
    place: &Path,
    told: Progress<'_>,
) -> Result<Report, CheckpointError> {
    let reader = reader.into();
    let archive = Archive::at(place, reader)?;
    let deployment = deployment::load(reader).await?;
    let (domain, committees) = (&deployment.domain(), &deployment.committees()?);
    let (first, newest) = (archive.base(0, domain, committees)?, archive.newest_anywhere().await?);
    let mut entries = 0_u64;
    let seen = |computed: &Computed| entries = entries.saturating_add(computed.segment.entries.len() as u64);
    let Base { checkpoint, state, .. } = archive.verify_after(first, newest, (domain, committees), told, seen).await?;
    Ok(Report {
        number: checkpoint.number,
        checkpoint: domain.checkpoint_digest(&checkpoint),
        epoch: checkpoint.epoch,
        up_to: checkpoint.up_to.0,
        accounts: state.accounts,
        entries,
    })
}

impl Archive {
    /// Recomputes the certified checkpoints after `base` up to number `last`, and checks each certificate against the
    /// committees in the states, and these against the deployment's. Hands each to `seen`, and returns the last.
    pub(crate) async fn verify_after(
        &self,
        mut base: Base,
        last: u64,
        (domain, committees): (&Domain, &Committees),
        told: Progress<'_>,
        mut seen: impl FnMut(&Computed),
    ) -> Result<Base, CheckpointError> {
        let mut held = None;
        for number in base.checkpoint.number.saturating_add(1)..=last {
            told(format!("checkpoint {number} of {last}"));
            let brought = self.bring(number).await?;
            let verified = self.verify_next(&base, domain, committees, told);
            let (certificate, computed) = verified.map_err(|error| brought.explain(error))?;
            seen(&computed);
            base = self.built_on(computed.checkpoint, computed.state, certificate);
            // The number before was its base, and is not read any more.
            held = Some(brought);
        }
        held.into_iter().for_each(Brought::keep);
        Ok(base)
    }

    fn verify_next(
        &self,
        base: &Base,
        domain: &Domain,
        committees: &Committees,
        told: Progress<'_>,
    ) -> Result<(CheckpointCertificate, Computed), ArchiveError> {
        let number = base.checkpoint.number.saturating_add(1);
        if self.is_skipped(number) {
            return Err(self.skipped_from(number)?);
        }
        let path = self.certificate_path(number);
        let certificate = self.certificate(number)?;
        let computed = self.recompute(base, domain, told)?;
        check_committees(&computed.state.installations, committees)
            .map_err(|defect| wrong(&self.segment_path(number), defect))?;
        let verified = certificate.clone().verify(domain, &computed.state.installations);
        let verified = verified.map_err(|error| wrong(&path, Defect::Certificate(error)))?;
        if let Err(mismatch) = computed.checkpoint.check(verified.checkpoint()) {
            let is_of_certificate = matches!(
                mismatch,
                CheckpointMismatch::Number | CheckpointMismatch::Previous | CheckpointMismatch::Epoch
            );
            let path = if is_of_certificate { path } else { self.segment_path(number) };
            return Err(wrong(&path, Defect::NotAsCertified(mismatch)));
        }
        self.check_files(&computed)?;
        Ok((certificate, computed))
    }

    /// Recomputes what the files of the number after `base` lead to.
    pub(super) fn recompute(&self, base: &Base, domain: &Domain, told: Progress<'_>) -> Result<Computed, ArchiveError> {
        let number = base.checkpoint.number.saturating_add(1);
        let followed = follow_segment(base, self.segment(number)?, domain, told)?;
        followed.map_err(|error| wrong(&self.segment_path(number), Defect::Segment(Box::new(error))))
    }

    /// A certified checkpoint as the base of the next one. Its files are in the archive.
    pub(super) fn built_on(
        &self,
        checkpoint: Checkpoint,
        state: StateSummary,
        certificate: CheckpointCertificate,
    ) -> Base {
        let stored = Stored::File(self.state_path(checkpoint.number));
        Base { checkpoint, certificate: Some(certificate), state, stored }
    }
}

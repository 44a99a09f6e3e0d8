//! The file of the next committee, and the proofs of its members.

use std::path::{Path, PathBuf};

use fastpay_core::{Announcement, Authority, Committee, Committees, Digest, Domain, Epoch, PrimaryAddress};
use serde::Deserialize;

use super::prove::Proof;
use super::{CommitteeError, read};

/// An announcement in the form that the scripts read, too: the chain's committee file, with the fields that an
/// announcement adds. All of it is signed, so no field has a default.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnouncementFile {
    chain_id: u64,
    authorities: Vec<Authority>,
    guardian: PrimaryAddress,
    recovery: PrimaryAddress,
    epoch: Epoch,
    compromised_since: Epoch,
    checkpoint: Digest,
    deadline: u64,
}

/// Reads an announcement for this chain.
pub(super) fn announcement(path: &Path, domain: &Domain) -> Result<Announcement, CommitteeError> {
    let file: AnnouncementFile = read(path)?;
    if file.chain_id != domain.chain_id() {
        return Err(CommitteeError::Chain { expected: domain.chain_id(), found: file.chain_id });
    }
    let committee = Committee::new(file.epoch, file.authorities)?;
    if file.compromised_since > file.epoch {
        return Err(CommitteeError::CompromisedSince(file.compromised_since));
    }
    let is_guardian = |member: &&Authority| member.redemption_key == file.guardian;
    if committee.members().iter().any(|member| is_guardian(&member)) {
        return Err(CommitteeError::GuardianIsMember(file.guardian));
    }
    Ok(Announcement {
        committee,
        guardian: file.guardian,
        recovery: file.recovery,
        compromised_since: file.compromised_since,
        checkpoint: file.checkpoint,
        deadline: file.deadline,
    })
}

/// Checks what the contract cannot check: that each member has both keys, that no voting key is of small order, and
/// that no key belonged to another pair in an earlier epoch.
pub(super) fn check_members(
    announcement: &Announcement,
    proofs: &[PathBuf],
    domain: &Domain,
    committees: &Committees,
) -> Result<(), CommitteeError> {
    let current = committees.current().epoch();
    let found = announcement.committee.epoch();
    if found != committees.next_epoch() {
        return Err(CommitteeError::Epoch { current, found });
    }
    let proofs = proofs.iter().map(|path| read::<Proof>(path)).collect::<Result<Vec<_>, _>>()?;
    for member in announcement.committee.members() {
        let proof = proofs.iter().find(|proof| proof.authority() == *member);
        proof.ok_or(CommitteeError::MissingProof(member.name))?.verify(domain)?;
    }
    match committees.other_pair(&announcement.committee) {
        Some((epoch, before, now)) => Err(CommitteeError::OtherPair { epoch, before, now }),
        None => Ok(()),
    }
}

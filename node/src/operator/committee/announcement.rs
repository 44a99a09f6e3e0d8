//! The file of the next committee, and the proofs of its members.

use std::path::{Path, PathBuf};

use fastpay_core::{Announcement, Authority, Committee, Committees, Digest, Domain, Epoch, PrimaryAddress};
use fastpay_ethereum::{LOCAL_CHAIN, known_key};
use serde::{Deserialize, Serialize};

use super::prove::Proof;
use super::{CommitteeError, read};

/// An announcement: the chain's committee file, with the fields that an announcement adds. All of it is signed, so no
/// field has a default.
#[derive(Debug, Serialize, Deserialize)]
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
    let announcement = Announcement {
        committee: Committee::new(file.epoch, file.authorities)?,
        guardian: file.guardian,
        recovery: file.recovery,
        compromised_since: file.compromised_since,
        checkpoint: file.checkpoint,
        deadline: file.deadline,
    };
    check_terms(&announcement, domain)?;
    Ok(announcement)
}

/// The text of an announcement's file.
pub(super) fn file_of(announcement: &Announcement, domain: &Domain) -> String {
    let file = AnnouncementFile {
        chain_id: domain.chain_id(),
        authorities: announcement.committee.members().to_vec(),
        guardian: announcement.guardian,
        recovery: announcement.recovery,
        epoch: announcement.committee.epoch(),
        compromised_since: announcement.compromised_since,
        checkpoint: announcement.checkpoint,
        deadline: announcement.deadline,
    };
    serde_json::to_string_pretty(&file).expect("it has texts and numbers only") + "\n"
}

/// Checks what depends on the announcement alone.
pub(super) fn check_terms(announcement: &Announcement, domain: &Domain) -> Result<(), CommitteeError> {
    let Announcement { committee, guardian, compromised_since, .. } = announcement;
    if *compromised_since > committee.epoch() {
        return Err(CommitteeError::CompromisedSince(*compromised_since));
    }
    if committee.members().iter().any(|member| member.redemption_key == *guardian) {
        return Err(CommitteeError::GuardianIsMember(*guardian));
    }
    let known = if domain.chain_id() == LOCAL_CHAIN { None } else { known_key(announcement) };
    known.map_or(Ok(()), |key| Err(CommitteeError::KnownKey(key)))
}

/// Checks what the contract cannot check: that each member has both keys, that no voting key is of small order, and that
/// no key belonged to another pair in an earlier epoch. Returns the proofs in the order of the members.
pub(super) fn check_members(
    announcement: &Announcement,
    proofs: &[PathBuf],
    domain: &Domain,
    committees: &Committees,
) -> Result<Vec<Proof>, CommitteeError> {
    let current = committees.current().epoch();
    let found = announcement.committee.epoch();
    if found != committees.next_epoch() {
        return Err(CommitteeError::Epoch { current, found });
    }
    let proofs = proofs.iter().map(|path| read::<Proof>(path)).collect::<Result<Vec<_>, _>>()?;
    let mut ordered = Vec::new();
    for member in announcement.committee.members() {
        let proof = proofs.iter().find(|proof| proof.authority() == *member);
        let proof = proof.ok_or(CommitteeError::MissingProof(member.name))?;
        proof.verify(domain)?;
        ordered.push(proof.clone());
    }
    if let Some((epoch, before, now)) = committees.other_pair(&announcement.committee) {
        return Err(CommitteeError::OtherPair { epoch, before, now });
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::TestCommittee;

    #[test]
    fn keys_whose_secrets_everybody_knows_are_announced_on_a_local_chain_only() {
        let committee = TestCommittee::new(4).rotated().committee;
        let contract = PrimaryAddress::repeat_byte(7);
        let (guardian, recovery, deadline) = (PrimaryAddress::repeat_byte(8), PrimaryAddress::ZERO, 1);
        let compromised_since = committee.epoch();
        let announcement =
            Announcement { committee, guardian, recovery, compromised_since, checkpoint: Digest::ZERO, deadline };
        check_terms(&announcement, &Domain::new(LOCAL_CHAIN, contract)).unwrap();
        let error = check_terms(&announcement, &Domain::new(1, contract)).unwrap_err();
        let first = announcement.committee.members()[0].name.to_string();
        assert!(matches!(&error, CommitteeError::KnownKey(key) if *key == first), "{error}");
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::new(LOCAL_CHAIN, PrimaryAddress::repeat_byte(7));
        let written = Announcement {
            committee: TestCommittee::new(5).rotated().committee,
            guardian: PrimaryAddress::repeat_byte(1),
            recovery: PrimaryAddress::repeat_byte(2),
            compromised_since: Epoch(0),
            checkpoint: Digest::repeat_byte(3),
            deadline: 4,
        };
        let path = folder.path().join("next.json");
        std::fs::write(&path, file_of(&written, &domain)).unwrap();
        assert_eq!(announcement(&path, &domain).unwrap(), written);
    }
}

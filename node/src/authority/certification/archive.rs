//! The archive: a folder with all checkpoints from number 1 on, each in four files. Number 0 is the first committee and
//! has no file.
//!
//! ```text
//!  0000000001.segment ─┐ written by `propose` and `sign`,    0000000001.vote.json      0000000001.certificate.json
//!  0000000001.state   ─┼─ replaced until they are certified  by `sign`, once the       last, by `certify` and
//!  0000000001.cut.json ┘                                     others are there          `admit`: the number is complete
//! ```
//! `0000000001.index` finds accounts in the segment (`index`); it may be removed. `chain.json` remembers up to which block the contract's events need not be read again; it may be removed.
//!
//! Each file is written under another name, synced, and renamed, so it is whole or not there. A checkpoint counts if
//! its certificate is there; files of the number after the newest certificate are a proposal. Peers are served from these
//! files alone, so nothing is said that is not durable.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointError as NotCertified, CheckpointMismatch, CheckpointState, Cut,
    Installations, Segment, SegmentError,
};
use fastpay_core::{AccountId, Committees, Domain, Epoch, SequenceNumber};
use fastpay_program::files;
use fastpay_rpc::{ARCHIVE_PART_BYTES, ArchiveFile, ArchivePart};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::compute::{Computed, apply, first_state};
use super::{CertificateFile, CheckpointError, CheckpointFields, CheckpointVoteFile, Progress};

const CERTIFICATE: &str = "certificate.json";

/// Why an archive cannot be used. Names the first file that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file system failed.
    #[error("cannot access {path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A file is missing.
    #[error("{0} is missing; copy it from another authority's archive, and run `fastpay-node archive verify`")]
    Missing(PathBuf),
    /// A file is wrong.
    #[error("{path}: {defect}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        defect: Defect,
    },
}

/// What is wrong with a file of an archive, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    /// The bytes cannot be read.
    #[error("the file is damaged, or of another kind ({0}); get it again from an authority that has it")]
    Damaged(String),
    /// The entries do not follow from the state before.
    #[error("the segment does not follow from the checkpoint before: {0}; copy it from another authority's archive")]
    Segment(Box<SegmentError>),
    /// The certificate is for something else than the segment leads to.
    #[error(
        "{0} than the one that is certified; copy this number's segment, state, cut and certificate from another \
         authority's archive"
    )]
    NotAsCertified(CheckpointMismatch),
    /// The certificate proves nothing.
    #[error(
        "the certificate does not count: {0}. It may be of another deployment; compare the configuration's contract or \
         genesis, or copy the certificate from another authority's archive"
    )]
    Certificate(NotCertified),
    /// The file does not belong to this number's certificate, or proposal.
    #[error(
        "the file is of another checkpoint than this number's segment leads to; copy it from another authority's \
         archive, or remove the number's files if it is not certified yet"
    )]
    OtherCheckpoint,
    /// The committee is not the deployment's.
    #[error("the committee of epoch {0} is another one than the deployment's; is this another deployment's archive?")]
    OtherCommittee(Epoch),
}

pub(super) fn wrong(path: &Path, defect: Defect) -> ArchiveError {
    ArchiveError::Wrong { path: path.to_owned(), defect }
}

/// A checkpoint and the next number of each account in its cut, as the proposer hands it to the signers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedCut {
    /// The checkpoint that the proposer computed.
    #[serde(with = "CheckpointFields")]
    pub checkpoint: Checkpoint,
    next: BTreeMap<AccountId, SequenceNumber>,
}

impl ProposedCut {
    pub(super) fn cut(&self) -> Cut {
        Cut { up_to: self.checkpoint.up_to, next: self.next.clone() }
    }

    /// Reads a proposed cut.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        read_json(path)
    }
}

/// The checkpoint on which the next one is built.
pub(crate) struct Base {
    pub checkpoint: Checkpoint,
    /// None for number 0.
    pub certificate: Option<CheckpointCertificate>,
    pub state: CheckpointState,
}

impl Base {
    /// Checks that the checkpoint still counts where these committees were installed: its epoch is the newest, or the
    /// one before with sound keys, or an installation names the checkpoint.
    pub fn check(&self, domain: &Domain, installations: &Installations) -> Result<(), CheckpointError> {
        let Some(certificate) = &self.certificate else { return Ok(()) };
        let digest = domain.checkpoint_digest(&self.checkpoint);
        if installations.iter().any(|installed| installed.checkpoint == digest) {
            return Ok(());
        }
        let number = self.checkpoint.number;
        let verified = certificate.clone().verify(domain, installations);
        verified.map(drop).map_err(|error| CheckpointError::Base { number, error })
    }
}

/// A folder of checkpoints.
#[derive(Clone, Debug)]
pub struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// The archive in a folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Makes the folder if there is none.
    pub(super) fn create(folder: &Path) -> Result<Self, ArchiveError> {
        files::create_folder(folder).map_err(|error| ArchiveError::Io { path: folder.to_owned(), error })?;
        Ok(Self::new(folder))
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        self.folder.join(format!("{number:010}.{kind}"))
    }

    /// The file with the cut of a checkpoint.
    #[must_use]
    pub fn cut_path(&self, number: u64) -> PathBuf {
        self.path(number, "cut.json")
    }

    /// The file with the entries between a checkpoint and the one before.
    #[must_use]
    pub fn segment_path(&self, number: u64) -> PathBuf {
        self.path(number, "segment")
    }

    /// The file with the state of a checkpoint.
    #[must_use]
    pub fn state_path(&self, number: u64) -> PathBuf {
        self.path(number, "state")
    }

    /// The file with the certificate of a checkpoint.
    #[must_use]
    pub fn certificate_path(&self, number: u64) -> PathBuf {
        self.path(number, CERTIFICATE)
    }

    /// The file with the index of a segment, a cache.
    pub(super) fn index_path(&self, number: u64) -> PathBuf {
        self.path(number, "index")
    }

    /// The file with this authority's vote for its proposal.
    #[must_use]
    pub fn vote_path(&self, number: u64) -> PathBuf {
        self.path(number, "vote.json")
    }

    /// A part of a file, from an offset on; `None` if there is no such file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read_part(&self, number: u64, file: ArchiveFile, offset: u64) -> io::Result<Option<ArchivePart>> {
        let path = match file {
            ArchiveFile::Certificate => self.certificate_path(number),
            ArchiveFile::Segment => self.segment_path(number),
            ArchiveFile::Cut => self.cut_path(number),
            ArchiveFile::Vote => self.vote_path(number),
        };
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let (length, mut bytes) = (file.metadata()?.len(), Vec::new());
        // A file system knows no place far beyond the end.
        file.seek(SeekFrom::Start(offset.min(length)))?;
        file.take(ARCHIVE_PART_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(Some(ArchivePart { bytes: bytes.into(), length }))
    }

    /// The number of the newest certified checkpoint; 0 if there is none.
    pub(super) fn newest_number(&self) -> Result<u64, ArchiveError> {
        if !self.folder.is_dir() {
            return Err(ArchiveError::Missing(self.folder.clone()));
        }
        let failed = |error| ArchiveError::Io { path: self.folder.clone(), error };
        let names = files::names(&self.folder).map_err(failed)?;
        let number = |name: &String| name.strip_suffix(CERTIFICATE)?.strip_suffix('.')?.parse().ok();
        Ok(names.iter().filter_map(number).max().unwrap_or(0))
    }

    /// When the newest certified checkpoint was archived here, in milliseconds since 1970; 0 if there is none.
    pub(super) fn newest_at_ms(&self) -> Result<u64, ArchiveError> {
        let path = self.certificate_path(self.newest_number()?);
        let modified = match fs::metadata(&path).and_then(|metadata| metadata.modified()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            modified => modified.map_err(|error| ArchiveError::Io { path, error })?,
        };
        let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The newest certified checkpoint, without its state. Its certificate is not checked again.
    pub(super) fn tip(&self, committees: &Committees) -> Result<Checkpoint, CheckpointError> {
        match self.newest_number()? {
            0 => Ok(Checkpoint::first(&first_state(committees)?)),
            number => Ok(self.certificate(number)?.checkpoint),
        }
    }

    /// The newest certified checkpoint. Older ones are not looked at: its quorum computed it from them.
    pub(super) fn newest(&self, domain: &Domain, committees: &Committees) -> Result<Base, CheckpointError> {
        self.base(self.newest_number()?, domain, committees)
    }

    /// The certified checkpoint of a number, on which the next one is built.
    pub(crate) fn base(&self, number: u64, domain: &Domain, committees: &Committees) -> Result<Base, CheckpointError> {
        let first = first_state(committees)?;
        if number == 0 {
            return Ok(Base { checkpoint: Checkpoint::first(&first), certificate: None, state: first });
        }
        let (certificate, state) = (self.certificate(number)?, self.state(number)?);
        let checkpoint = certificate.checkpoint;
        if checkpoint.number != number || checkpoint.state != state.digest() {
            return Err(wrong(&self.state_path(number), Defect::OtherCheckpoint).into());
        }
        check_committees(&state, committees).map_err(|defect| wrong(&self.state_path(number), defect))?;
        let verified = certificate.clone().verify(domain, state.installations());
        verified.map_err(|error| wrong(&self.certificate_path(number), Defect::Certificate(error)))?;
        Ok(Base { checkpoint, certificate: Some(certificate), state })
    }

    /// Writes a proposal, which may replace an earlier one. The cut comes last.
    pub(super) fn write(&self, computed: &Computed) -> Result<PathBuf, ArchiveError> {
        let Computed { checkpoint, segment, state } = computed;
        let replace = |path: PathBuf, write: &dyn Fn(&mut dyn io::Write) -> io::Result<()>| {
            files::replace_with(&path, write).map_err(|error| ArchiveError::Io { path: path.clone(), error })?;
            Ok(path)
        };
        replace(self.segment_path(checkpoint.number), &|mut file| segment.write(&mut file))?;
        replace(self.state_path(checkpoint.number), &|mut file| state.write(&mut file))?;
        let cut = ProposedCut { checkpoint: *checkpoint, next: state.cut().next.clone() };
        replace(self.cut_path(checkpoint.number), &|file| Ok(serde_json::to_writer(file, &cut)?))
    }

    /// Makes the newest number a proposal again, so that another checkpoint can take its place. A vote for the number
    /// after, which was built on it, goes first.
    pub(super) fn withdraw(&self, number: u64) -> Result<(), ArchiveError> {
        self.drop_vote(number.saturating_add(1))?;
        remove(self.certificate_path(number))
    }

    /// Removes this authority's vote for a number, whose proposal is to be replaced, or is not what the vote is for.
    pub(super) fn drop_vote(&self, number: u64) -> Result<(), ArchiveError> {
        remove(self.vote_path(number))
    }

    /// Writes a certificate, which completes its number.
    pub(super) fn complete(&self, certificate: &CheckpointCertificate) -> Result<PathBuf, ArchiveError> {
        let path = self.certificate_path(certificate.checkpoint.number);
        let file = CertificateFile::from(certificate);
        let written = files::replace_with(&path, |writer| Ok(serde_json::to_writer_pretty(writer, &file)?));
        match written {
            Ok(()) => Ok(path),
            Err(error) => Err(ArchiveError::Io { path, error }),
        }
    }

    /// Writes this authority's vote for the proposal, which is there.
    pub(super) fn write_vote(&self, vote: &CheckpointVoteFile) -> Result<(), ArchiveError> {
        let path = self.vote_path(vote.number);
        let written = files::replace_with(&path, |writer| Ok(serde_json::to_writer_pretty(writer, vote)?));
        written.map_err(|error| ArchiveError::Io { path, error })
    }

    /// This authority's vote for a number; `None` if it has not voted, or its vote cannot be read: then it votes again.
    pub(super) fn vote(&self, number: u64) -> Option<CheckpointVoteFile> {
        read_json(&self.vote_path(number)).ok()
    }

    pub(super) fn certificate(&self, number: u64) -> Result<CheckpointCertificate, ArchiveError> {
        Ok(read_json::<CertificateFile>(&self.certificate_path(number))?.into())
    }

    fn state(&self, number: u64) -> Result<CheckpointState, ArchiveError> {
        read_stream(&self.state_path(number), CheckpointState::read)
    }

    /// Recomputes what the files of a number lead to from the checkpoint before.
    pub(super) fn recompute(
        &self,
        previous: &Checkpoint,
        state: CheckpointState,
        domain: &Domain,
        told: Progress<'_>,
    ) -> Result<Computed, ArchiveError> {
        let number = previous.number.saturating_add(1);
        let path = self.segment_path(number);
        let segment = read_stream(&path, Segment::read)?;
        let (state, root) =
            apply(state, &segment, domain, told).map_err(|error| wrong(&path, Defect::Segment(Box::new(error))))?;
        let epoch = state.installations().epoch();
        let checkpoint = previous.next(domain, epoch, &state, root).expect("fewer than 2^64 checkpoints");
        Ok(Computed { checkpoint, segment, state })
    }

    /// Checks that the files of state and cut are those of the checkpoint that their segment leads to.
    pub(super) fn check_files(&self, computed: &Computed) -> Result<(), ArchiveError> {
        let (number, other) = (computed.checkpoint.number, Defect::OtherCheckpoint);
        if self.state(number)? != computed.state {
            return Err(wrong(&self.state_path(number), other));
        }
        let path = self.cut_path(number);
        let file = ProposedCut::read(&path)?;
        if file.checkpoint != computed.checkpoint || file.cut() != *computed.state.cut() {
            return Err(wrong(&path, other));
        }
        Ok(())
    }
}

/// Compares the committees of a state with those that the deployment is known to have.
pub(super) fn check_committees(state: &CheckpointState, committees: &Committees) -> Result<(), Defect> {
    for installed in state.installations().iter() {
        let epoch = installed.committee.epoch();
        let known = committees.get(epoch).ok_or(Defect::Certificate(NotCertified::UnknownEpoch(epoch)))?;
        if **known != installed.committee {
            return Err(Defect::OtherCommittee(epoch));
        }
    }
    Ok(())
}

/// Removes a file if it is there.
fn remove(path: PathBuf) -> Result<(), ArchiveError> {
    match files::remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ArchiveError::Io { path, error }),
        _ => Ok(()),
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ArchiveError> {
    let parse = |file: &mut BufReader<File>| Ok(serde_json::from_reader(file)?);
    read_stream(path, parse)
}

fn read_stream<T>(path: &Path, read: impl FnOnce(&mut BufReader<File>) -> io::Result<T>) -> Result<T, ArchiveError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ArchiveError::Missing(path.to_owned()),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => wrong(path, Defect::Damaged(error.to_string())),
        _ => ArchiveError::Io { path: path.to_owned(), error },
    };
    File::open(path).and_then(|file| read(&mut BufReader::new(file))).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Digest;
    use fastpay_core::checkpoint::InstalledCommittee;
    use fastpay_testkit::TestCommittee;

    fn installed(committee: &TestCommittee, compromised_since: u64, checkpoint: Digest) -> InstalledCommittee {
        let (committee, compromised_since) = (committee.committee.clone(), Epoch(compromised_since));
        InstalledCommittee { committee, compromised_since, checkpoint }
    }

    /// The first checkpoint, signed in epoch 0.
    fn base(first: &TestCommittee) -> Base {
        let state = CheckpointState::new(first.committee.clone()).unwrap();
        let checkpoint = Checkpoint::first(&state).next(&first.domain, Epoch(0), &state, Digest::ZERO).unwrap();
        let votes = first.keys.iter().map(|keys| checkpoint.sign(keys, &first.domain)).collect();
        let certificate = CheckpointCertificate::from_votes(checkpoint, &first.domain, &first.committee, votes);
        Base { checkpoint, certificate, state }
    }

    #[test]
    fn a_checkpoint_is_built_on_while_its_epoch_counts_or_an_installation_names_it() {
        let first = TestCommittee::new(4);
        let (second, third) = (first.rotated(), first.rotated().rotated());
        let base = base(&first);
        let check = |later: Vec<InstalledCommittee>| {
            let mut installations = Installations::new(first.committee.clone()).unwrap();
            later.into_iter().for_each(|next| installations.install(next).unwrap());
            base.check(&first.domain, &installations)
        };
        let sound = |named| installed(&second, 1, named);
        check(vec![]).unwrap();
        check(vec![sound(Digest::ZERO)]).unwrap();
        let error = check(vec![sound(Digest::ZERO), installed(&third, 2, Digest::ZERO)]).unwrap_err();
        let is_ended = matches!(error, CheckpointError::Base { number: 1, error: NotCertified::EpochEnded(Epoch(0)) });
        assert!(is_ended, "{error}");
        let error = check(vec![installed(&second, 0, Digest::ZERO)]).unwrap_err();
        let is_compromised = matches!(error, CheckpointError::Base { error: NotCertified::EpochCompromised(_), .. });
        assert!(is_compromised, "{error}");
        let named = first.domain.checkpoint_digest(&base.checkpoint);
        check(vec![installed(&second, 0, named)]).unwrap();
        check(vec![sound(named), installed(&third, 2, Digest::ZERO)]).unwrap();
    }

    #[test]
    fn the_committees_of_a_state_are_the_deployments() {
        let first = TestCommittee::new(4);
        let state = CheckpointState::new(first.committee.clone()).unwrap();
        let known = |committee: &TestCommittee| Committees::new(committee.committee.clone()).unwrap();
        check_committees(&state, &known(&first)).unwrap();
        let error = check_committees(&state, &known(&TestCommittee::new(7))).unwrap_err();
        assert!(matches!(error, Defect::OtherCommittee(Epoch(0))), "{error}");
    }
}

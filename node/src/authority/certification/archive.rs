//! The archive: a folder with all checkpoints from number 1 on, each in four files. Number 0 is the first committee and
//! has no file.
//!
//! ```text
//!  0000000001.segment ─┐ written by `propose` and `sign`,    0000000001.vote.json      0000000001.certificate.json
//!  0000000001.state   ─┼─ replaced until they are certified  by `sign`, once the       last, by `certify` and
//!  0000000001.cut.json ┘                                     others are there          `admit`: the number is complete
//! ```
//! The cut comes last; a leader writes it once before, without roots, to announce it.
//! `0000000001.index` finds accounts in the segment (`index`); it may be removed. `0000000001.stored.json` is the
//! certificate of a number that is in the store alone (`past`); it may be removed. `0000000001.skipped.json` is that of
//! a number whose files are still to be fetched (`skipped`). `chain.json` remembers up to which block the contract's
//! events need not be read again; it may be removed.
//!
//! Each file is written under another name, synced, and renamed, so it is whole or not there. A checkpoint counts if
//! its certificate is there; files of the number after the newest certificate are a proposal. Peers are served from
//! these files alone, so nothing is said that is not durable.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointError as NotCertified, CheckpointMismatch, Segment, SegmentError,
    StateSummary,
};
use fastpay_core::{AccountId, Committees, Digest, Epoch, SequenceNumber, TransactionIndex};
use fastpay_program::files;
use fastpay_rpc::{ARCHIVE_PART_BYTES, ArchiveFile, ArchivePart};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::base::Base;
use super::compute::{Computed, first_state};
use super::room::{JournalsDisk, Limited};
use super::store::{Store, StoreError};
use super::{CertificateFile, CheckpointError, CheckpointFields, CheckpointVoteFile};

pub(super) const CERTIFICATE: &str = "certificate.json";
const VOTE: &str = "vote.json";
pub(super) const SEGMENT: &str = "segment";
const STATE: &str = "state";
const CUT: &str = "cut.json";
/// The files of a certified number. The certificate comes first where a number is removed, and last where it is
/// written.
pub(super) const FILES: [&str; 4] = [CERTIFICATE, SEGMENT, STATE, CUT];

/// The name of a number's file of a kind.
pub(super) fn file_name(number: u64, kind: &str) -> String {
    format!("{number:010}.{kind}")
}

/// The number whose file of this kind has this name.
pub(super) fn number_of(name: &str, kind: &str) -> Option<u64> {
    name.strip_suffix(kind)?.strip_suffix('.')?.parse().ok()
}

/// The kind of a file that peers read.
pub(super) fn kind_of(file: ArchiveFile) -> &'static str {
    match file {
        ArchiveFile::Certificate => CERTIFICATE,
        ArchiveFile::Segment => SEGMENT,
        ArchiveFile::Cut => CUT,
        ArchiveFile::Vote => VOTE,
        ArchiveFile::State => STATE,
    }
}

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
    /// Files of numbers that were skipped are still to be fetched.
    #[error(
        "the files of {count} skipped checkpoints, from number {first} to {last}, are still to be fetched from other \
         authorities; everything before is verified. Let the node run until fastpay_archive_skipped_numbers is 0, and \
         verify again"
    )]
    Skipped {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
        /// How many they are.
        count: usize,
    },
    /// A file is wrong.
    #[error("{path}: {defect}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        defect: Defect,
    },
    /// What the store returned is wrong.
    #[error(
        "the archive's store has an object that is wrong: {object}: {defect}. The bucket may keep an earlier version of \
         the object that is right"
    )]
    WrongInStore {
        /// The object's URL.
        object: String,
        /// What is wrong with it.
        defect: Defect,
    },
    /// The disk is nearly full, and what is left is for the journals.
    #[error(
        "the disk of {folder} has no room for {lacking} more bytes beyond the {reserve} that the journals keep (limits, \
         disk_reserve_bytes): nothing is archived until there is; make room, or move the archive to another disk"
    )]
    NoRoom {
        /// The archive's folder.
        folder: PathBuf,
        /// What the journals keep.
        reserve: u64,
        /// The bytes that are lacking.
        lacking: u64,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// The cut is of the form before the present one.
    #[error(
        "the file names the next number of every account, which is the old form of a cut; remove the number's segment, \
         state, cut and vote, and the checkpoint is proposed anew"
    )]
    WholeCut,
    /// The committee is not the deployment's.
    #[error("the committee of epoch {0} is another one than the deployment's; is this another deployment's archive?")]
    OtherCommittee(Epoch),
}

pub(super) fn wrong(path: &Path, defect: Defect) -> ArchiveError {
    ArchiveError::Wrong { path: path.to_owned(), defect }
}

/// A checkpoint, and how its cut differs from the one before, as the proposer hands it to the signers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedCut {
    /// The checkpoint that the proposer computed. While it computes, the cut is announced: its three roots are zero.
    #[serde(with = "CheckpointFields")]
    pub checkpoint: Checkpoint,
    /// The next number of each account that takes one after the cut before.
    pub(super) changed: BTreeMap<AccountId, SequenceNumber>,
}

/// The old form of a cut, which named the next numbers of all accounts.
#[derive(Deserialize)]
struct WholeCut {
    #[serde(rename = "next")]
    _next: IgnoredAny,
}

impl ProposedCut {
    /// A cut after `base` that is chosen, and whose checkpoint is still to be computed.
    pub(super) fn announced(
        (epoch, previous, base): (Epoch, Digest, &Checkpoint),
        up_to: TransactionIndex,
        changed: BTreeMap<AccountId, SequenceNumber>,
    ) -> Self {
        let (number, root) = (base.number.saturating_add(1), Digest::ZERO);
        let checkpoint = Checkpoint { epoch, number, previous, up_to, cut: root, state: root, segment: root };
        Self { checkpoint, changed }
    }

    fn of(computed: &Computed) -> Self {
        Self { checkpoint: computed.checkpoint, changed: computed.segment.next(computed.part.rows().cut()) }
    }

    /// Reads a proposed cut.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        let bytes = read_file(path, |file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map(|_| bytes)
        })?;
        Self::parse(&bytes).map_err(|defect| wrong(path, defect))
    }

    /// Reads a proposed cut from the bytes of its file.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Defect> {
        serde_json::from_slice(bytes).map_err(|error| match serde_json::from_slice::<WholeCut>(bytes) {
            Ok(WholeCut { .. }) => Defect::WholeCut,
            Err(_) => Defect::Damaged(error.to_string()),
        })
    }
}

/// A folder of checkpoints.
#[derive(Clone, Debug)]
pub struct Archive {
    pub(super) folder: PathBuf,
    /// Where the numbers are that the folder lacks; None if it has all.
    pub(super) store: Option<Store>,
    /// Where files of the store are while they are needed; None if they are only passed on.
    pub(super) fetched: Option<Arc<TempDir>>,
    /// The journals that may be on the same disk, to which it leaves the reserve; None if it fills the disk.
    pub(super) journals: Option<JournalsDisk>,
}

impl Archive {
    /// The archive in a folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), store: None, fetched: None, journals: None }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder if there is none.
    pub(super) fn create(folder: &Path) -> Result<Self, ArchiveError> {
        files::create_folder(folder).map_err(|error| ArchiveError::Io { path: folder.to_owned(), error })?;
        Ok(Self::new(folder))
    }

    pub(super) fn path(&self, number: u64, kind: &str) -> PathBuf {
        let name = file_name(number, kind);
        let fetched = self.fetched.as_ref().map(|fetched| fetched.path().join(&name)).filter(|path| path.exists());
        fetched.unwrap_or_else(|| self.folder.join(name))
    }

    /// The file with the cut of a checkpoint.
    #[must_use]
    pub fn cut_path(&self, number: u64) -> PathBuf {
        self.path(number, CUT)
    }

    /// The file with the entries between a checkpoint and the one before.
    #[must_use]
    pub fn segment_path(&self, number: u64) -> PathBuf {
        self.path(number, SEGMENT)
    }

    /// The file with the state of a checkpoint.
    #[must_use]
    pub fn state_path(&self, number: u64) -> PathBuf {
        self.path(number, STATE)
    }

    /// The file with the certificate of a checkpoint.
    #[must_use]
    pub fn certificate_path(&self, number: u64) -> PathBuf {
        self.path(number, CERTIFICATE)
    }

    /// The file with this authority's vote for its proposal.
    #[must_use]
    pub fn vote_path(&self, number: u64) -> PathBuf {
        self.path(number, VOTE)
    }

    /// A part of a file, from an offset on; `None` if there is no such file. Of a skipped number nothing is shown but
    /// its state: peers take a number whose certificate they see.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read_part(&self, number: u64, file: ArchiveFile, offset: u64) -> io::Result<Option<ArchivePart>> {
        if file != ArchiveFile::State && self.is_skipped(number) {
            return Ok(None);
        }
        let mut file = match File::open(self.path(number, kind_of(file))) {
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
    pub(crate) fn newest_number(&self) -> Result<u64, ArchiveError> {
        if !self.folder.is_dir() {
            return Err(ArchiveError::Missing(self.folder.clone()));
        }
        let failed = |error| ArchiveError::Io { path: self.folder.clone(), error };
        let names = files::names(&self.folder).map_err(failed)?;
        Ok(names.iter().filter_map(|name| number_of(name, CERTIFICATE)).max().unwrap_or(0))
    }

    /// The numbers of which the folder has files of a certified number, with their kinds. The certificate comes first.
    pub(super) fn held(&self) -> Result<BTreeMap<u64, Vec<&'static str>>, ArchiveError> {
        let failed = |error| ArchiveError::Io { path: self.folder.clone(), error };
        let names = files::names(&self.folder).map_err(failed)?;
        let mut held = BTreeMap::<u64, Vec<_>>::new();
        for kind in FILES {
            let numbers = names.iter().filter_map(|name| number_of(name, kind));
            numbers.for_each(|number| held.entry(number).or_default().push(kind));
        }
        Ok(held)
    }

    /// Removes a certified number from the folder. It is no certified number of the folder's any more before the rest
    /// goes.
    pub(super) fn remove_number(&self, number: u64) -> Result<(), ArchiveError> {
        self.leave(number)?;
        FILES.into_iter().chain([VOTE]).try_for_each(|kind| remove(self.path(number, kind)))
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
    ///
    /// # Errors
    /// If the folder or the certificate cannot be read.
    pub fn tip(&self, committees: &Committees) -> Result<Checkpoint, CheckpointError> {
        match self.newest_number()? {
            0 => Ok(Checkpoint::first(&first_state(committees)?.summary())),
            number => Ok(self.certificate(number)?.checkpoint),
        }
    }

    /// Writes a proposal that is built on `base`, which may replace an earlier one. The cut comes last.
    pub(super) fn write(&self, base: &Base, computed: &Computed) -> Result<PathBuf, ArchiveError> {
        let Computed { checkpoint, segment, part, .. } = computed;
        self.replace(self.segment_path(checkpoint.number), &|mut file| segment.write(&mut file))?;
        self.replace(self.state_path(checkpoint.number), &|mut file| part.write(&mut base.open()?, &mut file))?;
        self.write_cut(&ProposedCut::of(computed))
    }

    /// Writes the cut of a proposal, or announces it.
    pub(super) fn write_cut(&self, cut: &ProposedCut) -> Result<PathBuf, ArchiveError> {
        self.replace(self.cut_path(cut.checkpoint.number), &|file| Ok(serde_json::to_writer(file, cut)?))
    }

    fn replace(
        &self,
        path: PathBuf,
        write: &dyn Fn(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<PathBuf, ArchiveError> {
        let left = self.room()?;
        let written = files::replace_with(&path, |inner| match left {
            Some(left) => write(&mut Limited { inner, left }),
            None => write(inner),
        });
        match written {
            // About: how long the file would be is not known.
            Err(error) if left.is_some() && error.kind() == io::ErrorKind::StorageFull => Err(self.no_room(1)),
            Err(error) => Err(ArchiveError::Io { path, error }),
            Ok(()) => Ok(path),
        }
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
        let path = self.write_certificate(CERTIFICATE, certificate)?;
        self.unmark(certificate.checkpoint.number)?;
        Ok(path)
    }

    /// Writes a certificate into the file of its number of this kind.
    pub(super) fn write_certificate(
        &self,
        kind: &str,
        certificate: &CheckpointCertificate,
    ) -> Result<PathBuf, ArchiveError> {
        let path = self.path(certificate.checkpoint.number, kind);
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

    pub(crate) fn certificate(&self, number: u64) -> Result<CheckpointCertificate, ArchiveError> {
        match read_json::<CertificateFile>(&self.certificate_path(number)) {
            Err(ArchiveError::Missing(_)) if self.is_skipped(number) => Err(self.skipped_from(number)?),
            certificate => Ok(certificate?.into()),
        }
    }

    /// What the state's file of a number holds.
    pub(super) fn state(&self, number: u64) -> Result<StateSummary, ArchiveError> {
        read_file(&self.state_path(number), StateSummary::read)
    }

    pub(super) fn segment(&self, number: u64) -> Result<Segment, ArchiveError> {
        read_file(&self.segment_path(number), Segment::read)
    }

    /// Checks that the files of state and cut are those of the checkpoint that their segment leads to.
    pub(super) fn check_files(&self, computed: &Computed) -> Result<(), ArchiveError> {
        let (number, other) = (computed.checkpoint.number, Defect::OtherCheckpoint);
        if self.state(number)? != computed.state {
            return Err(wrong(&self.state_path(number), other));
        }
        let path = self.cut_path(number);
        if ProposedCut::read(&path)? != ProposedCut::of(computed) {
            return Err(wrong(&path, other));
        }
        Ok(())
    }
}

/// Removes a file if it is there.
pub(super) fn remove(path: PathBuf) -> Result<(), ArchiveError> {
    match files::remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ArchiveError::Io { path, error }),
        _ => Ok(()),
    }
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ArchiveError> {
    let parse = |file: &mut BufReader<File>| Ok(serde_json::from_reader(file)?);
    read_file(path, parse)
}

pub(super) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(&mut BufReader<File>) -> io::Result<T>,
) -> Result<T, ArchiveError> {
    File::open(path).and_then(|file| read(&mut BufReader::new(file))).map_err(|error| unreadable(path, error))
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::NotFound => ArchiveError::Missing(path.to_owned()),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => wrong(path, Defect::Damaged(error.to_string())),
        _ => ArchiveError::Io { path: path.to_owned(), error },
    }
}

//! Reads the archive of another authority, within bounds: of each file so many bytes, so much time for each part and
//! for the whole.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::checkpoint::{CheckpointCertificate, CheckpointError as NotCertified};
use fastpay_core::{AuthorityName, Committee, Committees, Domain, Epoch};
use fastpay_program::files;
use fastpay_rpc::{ARCHIVE_PART_BYTES, ArchiveFile, ArchivePart, Refusal};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::archive::{Defect, ProposedCut};
use super::{CertificateFile, CheckpointVoteFile};
use crate::authority::peer_sync;

/// The most bytes of a vote's file, and of a certificate's without its votes.
const VOTE_BYTES_MAX: u64 = 4_096;
/// The most bytes of a vote in a certificate's file.
const CERTIFICATE_VOTE_BYTES_MAX: u64 = 512;
/// One lost answer says nothing. A member that restarts for longer than this is passed over as a leader, which harms
/// nobody.
const SILENT_ROUNDS: u32 = 3;

/// Why nothing is taken from a peer now.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeerFailure {
    /// It does not answer, or breaks the protocol.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The file is longer than it can be.
    #[error("its file has {length} bytes, and at most {bytes_max} are possible")]
    TooLong {
        /// The length that it names.
        length: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// The parts do not make a file.
    #[error("it sent a part of a file that does not fit to the others")]
    Torn,
    /// It takes too long.
    #[error("it did not send the file within {0:?}")]
    Slow(Duration),
    /// The file is not what it should be.
    #[error("its file is not of this kind: {0}")]
    Malformed(serde_json::Error),
    /// The cut is none, or of the old form.
    #[error("the cut that it proposes cannot be signed: {0}")]
    Cut(Defect),
    /// The certificate has other votes than those of a quorum.
    #[error("it showed a certificate that no quorum of its epoch has signed")]
    NoQuorum,
    /// The vote does not count.
    #[error("it showed a vote that does not count: {0}")]
    Vote(NotCertified),
    /// The certificate is not built on the one before.
    #[error("its certificate does not follow the one before, or the newest one of this archive: number {0}")]
    Fork(u64),
    /// The file is about another checkpoint.
    #[error("it showed a file of another checkpoint")]
    Other,
    /// It does not return the certificates that it has executed.
    #[error(transparent)]
    Certificates(peer_sync::PeerFailure),
    /// Its checkpoint is of a later epoch than this authority has followed; or of none.
    #[error("its checkpoint is of epoch {0}, which is not known here yet")]
    UnknownEpoch(Epoch),
    /// It shows another checkpoint than the archive has, and which of the two counts cannot be judged yet.
    #[error("it showed a rival of a checkpoint that is built on number {0}, which is still to be fetched")]
    Unjudged(u64),
    /// What it showed was not admitted.
    #[error("{0}")]
    Refused(String),
    /// The file does not fit on the disk.
    #[error("its file of {length} bytes is not fetched: {room} bytes are free for it beside the reserve; make room")]
    NoRoom {
        /// The length that the peer names.
        length: u64,
        /// What it may take.
        room: u64,
    },
    /// It has the certificate of a later number, and not this state.
    #[error("it does not serve the state of number {0}; its release may be an earlier one")]
    NoState(u64),
    /// The file cannot be kept here.
    #[error("cannot keep a peer's file: {0}")]
    Disk(io::Error),
}

impl PeerFailure {
    /// Whether the peer is at fault.
    pub fn is_misbehaviour(&self) -> bool {
        match self {
            Self::Client(error) => !error.is_retryable() && !matches!(error, ClientError::Unreadable(_)),
            Self::Certificates(failure) => failure.is_misbehaviour(),
            Self::Disk(_) | Self::UnknownEpoch(_) | Self::NoRoom { .. } | Self::Unjudged(_) => false,
            _ => true,
        }
    }

    /// Whether a peer's segments may be taken where its state is not: an earlier release serves none, the state may not
    /// fit on the disk, and it is longer than the segments after a short absence.
    pub fn lacks_state(&self) -> bool {
        matches!(
            self,
            Self::NoState(_) | Self::NoRoom { .. } | Self::Client(ClientError::Refused(Refusal::Malformed(_)))
        )
    }
}

/// How long a peer is left alone after it misbehaved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub first: Duration,
    pub max: Duration,
}

/// Another authority.
pub(super) struct Peer {
    client: AuthorityClient,
    /// The maximum time for a file.
    file_timeout: Duration,
    left_until: Option<Instant>,
    /// How long it was left after it last misbehaved.
    left: Option<Duration>,
    /// In how many rounds in a row it has not answered, or was left alone.
    rounds_without: u32,
}

impl Peer {
    pub fn new(client: AuthorityClient, file_timeout: Duration) -> Self {
        Self { client, file_timeout, left_until: None, left: None, rounds_without: 0 }
    }

    pub fn client(&self) -> &AuthorityClient {
        &self.client
    }

    pub fn name(&self) -> AuthorityName {
        self.client.name()
    }

    /// Whether it is left alone now.
    pub fn is_left(&self) -> bool {
        self.left_until.is_some_and(|until| Instant::now() < until)
    }

    /// Leaves it alone for a while, twice as long as the last time. Returns how long.
    pub fn leave(&mut self, patience: Patience) -> Duration {
        let wait = self.left.map_or(patience.first, |wait| wait.saturating_mul(2).min(patience.max));
        (self.left_until, self.left) = (Some(Instant::now() + wait), Some(wait));
        wait
    }

    /// Leaves it alone for a while, as it showed what cannot be checked yet. Returns how long.
    pub fn pause(&mut self, patience: Patience) -> Duration {
        self.left_until = Some(Instant::now() + patience.first);
        patience.first
    }

    /// Notes whether it has answered in this round.
    pub fn note_round(&mut self, answered: bool) {
        self.rounds_without = if answered { 0 } else { self.rounds_without.saturating_add(1) };
    }

    /// Whether it has answered in this round.
    pub fn has_answered(&self) -> bool {
        self.rounds_without == 0
    }

    /// Whether it has not answered for some rounds.
    pub fn is_silent(&self) -> bool {
        self.rounds_without >= SILENT_ROUNDS
    }

    /// It served something that was right.
    pub fn trust(&mut self) {
        (self.left_until, self.left) = (None, None);
    }

    /// The certificate of a number, by a quorum of one of these committees.
    pub async fn certificate(
        &self,
        number: u64,
        domain: &Domain,
        committees: &Committees,
    ) -> Result<Option<CheckpointCertificate>, PeerFailure> {
        let votes_max = committees.iter().map(|committee| committee.quorum()).max().unwrap_or_default();
        let votes = u64::try_from(votes_max).unwrap_or(u64::MAX).saturating_mul(CERTIFICATE_VOTE_BYTES_MAX);
        let bytes_max = VOTE_BYTES_MAX.saturating_add(votes);
        let file: Option<CertificateFile> = self.json(number, ArchiveFile::Certificate, bytes_max).await?;
        let Some(file) = file else { return Ok(None) };
        let certificate = CheckpointCertificate::from(file);
        if certificate.checkpoint.number != number {
            return Err(PeerFailure::Other);
        }
        check_votes(&certificate, domain, committees)?;
        Ok(Some(certificate))
    }

    /// Its vote for a number, in the committee's epoch.
    pub async fn vote(&self, number: u64, committee: &Committee) -> Result<Option<CheckpointVoteFile>, PeerFailure> {
        let vote: Option<CheckpointVoteFile> = self.json(number, ArchiveFile::Vote, VOTE_BYTES_MAX).await?;
        let Some(vote) = vote else { return Ok(None) };
        if vote.number != number {
            return Err(PeerFailure::Other);
        }
        // It may not have followed a rotation yet, or this authority has not.
        if vote.epoch != committee.epoch() {
            return Ok(None);
        }
        vote.vote().check(committee, vote.checkpoint).map_err(PeerFailure::Vote)?;
        Ok(Some(vote))
    }

    /// The cut that it proposes or has signed for a number.
    pub async fn cut(&self, number: u64, bytes_max: u64) -> Result<Option<ProposedCut>, PeerFailure> {
        let bytes = self.bytes(number, ArchiveFile::Cut, bytes_max).await?;
        bytes.map(|bytes| ProposedCut::parse(&bytes).map_err(PeerFailure::Cut)).transpose()
    }

    /// The segment of a number, in a file without a name in `folder`; `None` if it has none. It may have `bytes_max` bytes,
    /// for which there is `room`.
    pub async fn segment(
        &self,
        number: u64,
        (bytes_max, room): (u64, u64),
        folder: &Path,
    ) -> Result<Option<File>, PeerFailure> {
        self.file(number, ArchiveFile::Segment, (bytes_max, room), folder).await
    }

    /// The state of a number, as [`Self::segment`].
    pub async fn state(&self, number: u64, (bytes_max, room): (u64, u64), folder: &Path) -> Result<File, PeerFailure> {
        let file = self.file(number, ArchiveFile::State, (bytes_max, room), folder).await?;
        file.ok_or(PeerFailure::NoState(number))
    }

    async fn file(
        &self,
        number: u64,
        kind: ArchiveFile,
        (bytes_max, room): (u64, u64),
        folder: &Path,
    ) -> Result<Option<File>, PeerFailure> {
        let mut file = files::nameless(folder).map_err(PeerFailure::Disk)?;
        let is_there = match self.read(number, kind, bytes_max.min(room), &mut file).await {
            Err(PeerFailure::TooLong { length, .. }) if length <= bytes_max => {
                return Err(PeerFailure::NoRoom { length, room });
            }
            is_there => is_there?,
        };
        file.rewind().map_err(PeerFailure::Disk)?;
        Ok(is_there.then_some(file))
    }

    async fn json<T: DeserializeOwned>(
        &self,
        number: u64,
        file: ArchiveFile,
        bytes_max: u64,
    ) -> Result<Option<T>, PeerFailure> {
        let bytes = self.bytes(number, file, bytes_max).await?;
        bytes.map(|bytes| serde_json::from_slice(&bytes).map_err(PeerFailure::Malformed)).transpose()
    }

    async fn bytes(&self, number: u64, file: ArchiveFile, bytes_max: u64) -> Result<Option<Vec<u8>>, PeerFailure> {
        let mut bytes = Vec::new();
        Ok(self.read(number, file, bytes_max, &mut bytes).await?.then_some(bytes))
    }

    /// Reads a whole file. Returns whether the peer has it.
    async fn read(
        &self,
        number: u64,
        file: ArchiveFile,
        bytes_max: u64,
        into: &mut impl Write,
    ) -> Result<bool, PeerFailure> {
        let reading = self.read_parts(number, file, bytes_max, into);
        timeout(self.file_timeout, reading).await.map_err(|_| PeerFailure::Slow(self.file_timeout))?
    }

    async fn read_parts(
        &self,
        number: u64,
        file: ArchiveFile,
        bytes_max: u64,
        into: &mut impl Write,
    ) -> Result<bool, PeerFailure> {
        let shard = self.client.shards().first().ok_or(ClientError::NotFound)?;
        let mut offset = 0_u64;
        loop {
            let part = match shard.archive_part(number, file, offset).await {
                // It answered, and keeps the rest.
                Err(ClientError::TimedOut(after)) if offset > 0 => return Err(PeerFailure::Slow(after)),
                part => part?,
            };
            let Some(part) = part else {
                // A proposal may be replaced meanwhile, but no file goes away.
                return if offset == 0 { Ok(false) } else { Err(PeerFailure::Torn) };
            };
            let end = end_of(&part, offset, bytes_max)?;
            into.write_all(&part.bytes).map_err(PeerFailure::Disk)?;
            if end == part.length {
                return Ok(true);
            }
            offset = end;
        }
    }
}

/// Checks that a certificate has the votes of a quorum of its epoch, whether or not it counts by them now.
fn check_votes(
    certificate: &CheckpointCertificate,
    domain: &Domain,
    committees: &Committees,
) -> Result<(), PeerFailure> {
    let CheckpointCertificate { checkpoint, votes } = certificate;
    let committee = committees.get(checkpoint.epoch).ok_or(PeerFailure::UnknownEpoch(checkpoint.epoch))?;
    let counted = CheckpointCertificate::from_votes(*checkpoint, domain, committee, votes.clone());
    if counted.as_ref() == Some(certificate) { Ok(()) } else { Err(PeerFailure::NoQuorum) }
}

/// Where a part of a file that begins at an offset ends. Only the last part is short, so a file takes no more calls
/// than it needs.
fn end_of(part: &ArchivePart, offset: u64, bytes_max: u64) -> Result<u64, PeerFailure> {
    if part.length > bytes_max {
        return Err(PeerFailure::TooLong { length: part.length, bytes_max });
    }
    let end = offset.saturating_add(part.bytes.len() as u64);
    let is_last = end == part.length;
    if is_last || (end < part.length && part.bytes.len() == ARCHIVE_PART_BYTES) {
        return Ok(end);
    }
    Err(PeerFailure::Torn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_and_end_with_the_file() {
        const PART: u64 = ARCHIVE_PART_BYTES as u64;
        let end = |offset, bytes: u64, length| {
            let part = ArchivePart { bytes: vec![0; usize::try_from(bytes).unwrap()].into(), length };
            end_of(&part, offset, 3 * PART)
        };
        assert_eq!(end(0, 0, 0).unwrap(), 0);
        assert_eq!(end(0, PART, PART + 1).unwrap(), PART);
        assert_eq!(end(PART, 1, PART + 1).unwrap(), PART + 1);
        for (offset, bytes, length) in [(0, PART - 1, PART), (0, 0, 1), (0, 2, 1), (PART, 1, PART), (PART, 0, 2 * PART)]
        {
            let failure = end(offset, bytes, length).unwrap_err();
            assert!(matches!(failure, PeerFailure::Torn) && failure.is_misbehaviour(), "{offset} {bytes} {length}");
        }
        assert!(matches!(end(0, PART, 3 * PART + 1), Err(PeerFailure::TooLong { .. })));
    }
}

//! Fetches another member's Closing, within bounds: its statement is checked before its entries are read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::checkpoint::Installations;
use fastpay_core::handover::{CLOSING_ENTRIES_MAX, ClosingEntries, ClosingError, SignedClosing};
use fastpay_core::private::NoProofs;
use fastpay_core::{AuthorityName, Domain, Epoch, TransactionIndex};
use fastpay_rpc::{ARCHIVE_PART_BYTES, ArchivePart};
use tokio::time::{Instant, timeout};

use super::closings::Closings;
use crate::authority::metrics::HandoverMetrics;

/// The most bytes of a Closing that are kept: of ten million accounts with 400 bytes each. It bounds the disk, by member.
pub(super) const CLOSING_BYTES_MAX: u64 = 4 << 30;

/// How long calls may take, and how long a peer that misbehaves is left alone.
#[derive(Clone, Copy, Debug)]
pub struct HandoverTimes {
    /// The pause between rounds.
    pub poll: Duration,
    /// The pause between rounds of a member that joins.
    pub join: Duration,
    /// The maximum time in which a peer sends the certificates of a few accounts that a joiner lacks.
    pub certificates: Duration,
    /// The maximum time for a call to a peer.
    pub call: Duration,
    /// The maximum time for a whole Closing, and one second more for each of its MiB.
    pub file: Duration,
    /// How long a peer that misbehaved is left alone at first.
    pub left: Duration,
    /// And at most.
    pub left_max: Duration,
}

impl Default for HandoverTimes {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(30),
            join: Duration::from_secs(2),
            certificates: Duration::from_secs(60),
            call: Duration::from_secs(5),
            file: Duration::from_secs(600),
            left: Duration::from_secs(300),
            left_max: Duration::from_secs(86_400),
        }
    }
}

/// An epoch, and the member whose Closing is wanted; none for the peer's own.
type Wanted = (Epoch, Option<AuthorityName>);

/// What a Closing is checked against: what this authority has followed of the contract's order.
pub(super) struct Followed<'a> {
    pub domain: &'a Domain,
    pub epoch: Epoch,
    pub installations: &'a Installations,
    pub up_to: TransactionIndex,
}

/// Why a peer's Closing is not taken now.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// It does not answer, or breaks the protocol.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It takes too long.
    #[error("it did not send its Closing within {0:?}")]
    Slow(Duration),
    /// The parts do not make a file.
    #[error("it sent a part of its Closing that does not fit to the others")]
    Torn,
    /// The file is longer than it can be.
    #[error("its Closing has {length} bytes, of which at most {bytes_max} are possible")]
    TooLong {
        /// The length that it names.
        length: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// The statement names more entries than a Closing has.
    #[error("its Closing has {0} entries, and at most {CLOSING_ENTRIES_MAX} are possible")]
    TooMany(u64),
    /// The bytes are no Closing.
    #[error("its file is no Closing: {0}")]
    Malformed(io::Error),
    /// It is of another member.
    #[error("it sent the Closing of another member than the one that it was asked for")]
    OfAnother,
    /// It does not count.
    #[error(transparent)]
    Closing(#[from] ClosingError),
    /// It cannot be kept here.
    #[error("cannot keep a peer's Closing: {0}")]
    Disk(io::Error),
    /// It would take what the journals need.
    #[error(
        "there is no room for two copies of a peer's Closing of {length} bytes: {free} bytes are free beyond the reserve"
    )]
    NoRoom {
        /// The Closing's bytes.
        length: u64,
        /// The free bytes beyond `disk_reserve_bytes`.
        free: u64,
    },
}

impl FetchError {
    /// Whether the peer is at fault. It may be further along the chain, or have followed an installation that this
    /// authority has not.
    fn is_misbehaviour(&self) -> bool {
        match self {
            Self::Client(error) => !error.is_retryable() && !matches!(error, ClientError::Unreadable(_)),
            Self::Closing(error) => {
                !matches!(error, ClosingError::BeyondTheChain { .. } | ClosingError::EpochCompromised(_))
            }
            Self::Disk(_) | Self::NoRoom { .. } => false,
            _ => true,
        }
    }
}

/// Another authority.
pub(super) struct Peer {
    client: AuthorityClient,
    times: HandoverTimes,
    left_until: Option<Instant>,
    /// How long it was left after it last misbehaved.
    left: Option<Duration>,
    /// The epoch of which its Closing was taken last.
    taken: Option<Epoch>,
}

impl Peer {
    pub fn new(client: AuthorityClient, times: HandoverTimes) -> Self {
        Self { client, times, left_until: None, left: None, taken: None }
    }

    pub fn name(&self) -> AuthorityName {
        self.client.name()
    }

    /// Its client, unless it is left alone now.
    pub fn client(&self) -> Option<&AuthorityClient> {
        let is_left = self.left_until.is_some_and(|until| Instant::now() < until);
        (!is_left).then_some(&self.client)
    }

    /// Fetches the Closing of an epoch that it signed; if that is here, the one of another member.
    pub async fn fetch(
        &mut self,
        followed: &Followed<'_>,
        other: Option<AuthorityName>,
        (closings, metrics): (&Closings, &HandoverMetrics),
    ) {
        let is_taken = self.taken >= Some(followed.epoch);
        if self.client().is_none() || (is_taken && other.is_none()) {
            return;
        }
        let fetched = match other {
            Some(other) if is_taken => self.take(followed, Some(other), closings).await,
            _ => match (self.take(followed, None, closings).await, other) {
                // It has signed none, and may have those of others.
                (Ok(false), Some(other)) => self.take(followed, Some(other), closings).await.map(|_| false),
                (own, _) => own,
            },
        };
        let peer = self.client.name();
        match fetched {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!(%peer, epoch = %followed.epoch, "took a member's Closing of an epoch that has ended");
                (self.taken, self.left_until, self.left) = (Some(followed.epoch), None, None);
            }
            Err(error) if error.is_misbehaviour() => {
                let wait = self.left.map_or(self.times.left, |left| left.saturating_mul(2).min(self.times.left_max));
                (self.left_until, self.left) = (Some(Instant::now() + wait), Some(wait));
                metrics.peers_left.inc();
                tracing::warn!(%peer, %error, wait_s = wait.as_secs(), "this peer is not asked for a Closing for a while");
            }
            Err(error @ (FetchError::Disk(_) | FetchError::NoRoom { .. })) => {
                let wait = self.times.left;
                self.left_until = Some(Instant::now() + wait);
                tracing::warn!(%peer, %error, wait_s = wait.as_secs(), "a peer's Closing cannot be kept; trying again");
            }
            Err(error) => tracing::debug!(%peer, %error, "a peer's Closing cannot be taken now"),
        }
    }

    /// Returns whether it is here now.
    async fn take(
        &self,
        followed: &Followed<'_>,
        member: Option<AuthorityName>,
        closings: &Closings,
    ) -> Result<bool, FetchError> {
        let of = (followed.epoch, member);
        let Some(first) = self.part(of, 0).await? else { return Ok(false) };
        let signed = SignedClosing::read_statement(&mut &first.bytes[..]).map_err(FetchError::Malformed)?;
        signed.check_statement((followed.domain, followed.epoch), (followed.installations, followed.up_to))?;
        if member.is_some_and(|member| member != signed.authority) {
            return Err(FetchError::OfAnother);
        }
        let author = (followed.epoch, signed.authority);
        if closings.has(author) {
            return Ok(true);
        }
        if signed.closing.entries > CLOSING_ENTRIES_MAX as u64 {
            return Err(FetchError::TooMany(signed.closing.entries));
        }
        // It is there twice while it is copied.
        let (length, free) = (first.length, closings.room().map_err(FetchError::Disk)?);
        if length.saturating_mul(2) > free {
            return Err(FetchError::NoRoom { length, free });
        }
        let mut file = closings.nameless().map_err(FetchError::Disk)?;
        let within = self.times.file.saturating_add(Duration::from_secs(length >> 20));
        let reading = timeout(within, self.read_all(of, first, &mut file));
        reading.await.unwrap_or(Err(FetchError::Slow(within)))?;
        check(&mut file, followed)?;
        file.rewind().map_err(FetchError::Disk)?;
        closings.keep(author, |kept| io::copy(&mut file, kept).map(drop)).map_err(FetchError::Disk)?;
        Ok(true)
    }

    async fn read_all(&self, of: Wanted, first: ArchivePart, file: &mut File) -> Result<(), FetchError> {
        let (mut part, mut offset) = (first, 0_u64);
        loop {
            let end = end_of(&part, offset)?;
            file.write_all(&part.bytes).map_err(FetchError::Disk)?;
            if end == part.length {
                return Ok(());
            }
            offset = end;
            part = self.part(of, offset).await?.ok_or(FetchError::Torn)?;
        }
    }

    async fn part(&self, (epoch, member): Wanted, offset: u64) -> Result<Option<ArchivePart>, FetchError> {
        let shard = self.client.shards().first().ok_or(ClientError::NotFound)?;
        match shard.closing_part(epoch, member, offset).await {
            // It answered, and keeps the rest.
            Err(ClientError::TimedOut(after)) if offset > 0 => Err(FetchError::Slow(after)),
            part => Ok(part?),
        }
    }
}

/// Where a part that begins at an offset ends. Only the last one is short, so a file takes no more calls than it needs.
fn end_of(part: &ArchivePart, offset: u64) -> Result<u64, FetchError> {
    if part.length > CLOSING_BYTES_MAX {
        return Err(FetchError::TooLong { length: part.length, bytes_max: CLOSING_BYTES_MAX });
    }
    let end = offset.saturating_add(part.bytes.len() as u64);
    let is_whole = end < part.length && part.bytes.len() == ARCHIVE_PART_BYTES;
    if end == part.length || is_whole { Ok(end) } else { Err(FetchError::Torn) }
}

/// Checks a whole file, entry by entry.
fn check(file: &mut File, followed: &Followed<'_>) -> Result<(), FetchError> {
    file.rewind().map_err(FetchError::Disk)?;
    let mut reader = BufReader::new(&mut *file);
    let signed = SignedClosing::read_statement(&mut reader).map_err(FetchError::Malformed)?;
    let (mut failure, entries) = (None, ClosingEntries::new(reader.by_ref()));
    let entries = entries.map_while(|entry| entry.map_err(|error| failure = Some(error)).ok());
    let (of, against) = ((followed.domain, followed.epoch), (followed.installations, followed.up_to));
    let checked = signed.check(entries, of, against, &NoProofs, &mut rand::rng(), |_, _| ());
    failure.map_or(Ok(()), |error| Err(FetchError::Malformed(error)))?;
    Ok(checked?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_and_end_with_the_file() {
        const PART: u64 = ARCHIVE_PART_BYTES as u64;
        let end = |offset, bytes: u64, length| {
            end_of(&ArchivePart { bytes: vec![0; usize::try_from(bytes).unwrap()].into(), length }, offset)
        };
        assert_eq!(end(0, PART, PART + 1).unwrap(), PART);
        assert_eq!(end(PART, 1, PART + 1).unwrap(), PART + 1);
        for (offset, bytes, length) in [(0, PART - 1, PART), (0, 0, 1), (0, 2, 1), (PART, 1, PART), (PART, 0, 2 * PART)]
        {
            let error = end(offset, bytes, length).unwrap_err();
            assert!(matches!(error, FetchError::Torn) && error.is_misbehaviour(), "{offset} {bytes} {length}");
        }
        let too_long = end(0, PART, CLOSING_BYTES_MAX + 1).unwrap_err();
        assert!(matches!(too_long, FetchError::TooLong { .. }) && too_long.is_misbehaviour());
        assert!(!FetchError::NoRoom { length: 2, free: 3 }.is_misbehaviour());
    }
}

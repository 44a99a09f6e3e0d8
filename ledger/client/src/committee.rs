//! A FastPay committee on a ledger, as authorities and wallets read it: from certified states of the settlement
//! cluster, the newest that f + 1 members show.

use std::path::{Path, PathBuf};

use borsh::BorshDeserialize;
use fastpay_core::{
    AccountId, Asset, Balance, Committee, Committees, Digest, Domain, SequenceNumber, TransactionIndex,
};
use fastpay_ledger_statement::{
    Announced, CommitteeNumber, CurrentEpoch, Cursor, FoundedCommittee, GenesisError, Receiver, SafetyParameters,
    SpentOn, StateKey, Time, UnlockEntry,
};
use fastpay_program::Clock;

use crate::client::{Client, ClientError};
use crate::network::{Network, NetworkError};

/// The ledger decides heights continuously, so a state that is older than this, in milliseconds, is refused.
const STATE_AGE_MS_MAX: u64 = 600_000;

/// The oldest state of a ledger that is believed now.
#[must_use]
pub fn oldest_state() -> Time {
    Time(Clock::system().now_ms().saturating_sub(STATE_AGE_MS_MAX))
}

/// So many announcements are read at most: a stolen quorum can make any number.
pub const ANNOUNCEMENTS_READ_MAX: usize = 64;

/// The announcements that can be installed, now or later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenAnnouncements {
    /// The oldest [`ANNOUNCEMENTS_READ_MAX`], the oldest first, each with its id.
    pub first: Vec<(Digest, Announced)>,
    /// How many more there are.
    pub further: u64,
}

/// A committee on a ledger. A clone has the same connections.
#[derive(Clone, Debug)]
pub struct CommitteeClient {
    client: Client,
    number: CommitteeNumber,
    founded: FoundedCommittee,
}

/// Why there is no such committee.
#[derive(Debug, thiserror::Error)]
pub enum OpenCommitteeError {
    /// The ledger's file.
    #[error("the ledger {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The defect.
        error: Box<NetworkError>,
    },
    /// The ledger's genesis.
    #[error("the ledger's genesis: {0}")]
    Genesis(#[from] GenesisError),
    /// It has no such committee.
    #[error("the ledger has no committee {0}; its file lists them")]
    NoCommittee(CommitteeNumber),
    /// Another defect.
    #[error(transparent)]
    Client(ClientError),
}

impl CommitteeClient {
    /// Reads the ledger's file. No member is asked. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// See [`OpenCommitteeError`].
    pub fn open(file: &Path, number: CommitteeNumber) -> Result<Self, OpenCommitteeError> {
        let network = Network::read(file);
        let network =
            network.map_err(|error| OpenCommitteeError::File { path: file.to_path_buf(), error: Box::new(error) })?;
        let client = match Client::new(&network) {
            Err(ClientError::Genesis(error)) => return Err(error.into()),
            client => client.map_err(OpenCommitteeError::Client)?,
        };
        Self::new(client, number)
    }

    /// A committee on the ledger of this client.
    ///
    /// # Errors
    /// [`OpenCommitteeError::NoCommittee`].
    pub fn new(client: Client, number: CommitteeNumber) -> Result<Self, OpenCommitteeError> {
        let founded = client.layout().genesis().committees.get(&number).cloned();
        let founded = founded.ok_or(OpenCommitteeError::NoCommittee(number))?;
        Ok(Self { client, number, founded })
    }

    /// The ledger.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The committee's number.
    #[must_use]
    pub fn number(&self) -> CommitteeNumber {
        self.number
    }

    /// The domain of all signatures of the committee.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.client.layout().deployment().domain(self.number)
    }

    /// The committee of epoch 0.
    #[must_use]
    pub fn first(&self) -> &Committee {
        &self.founded.first
    }

    /// The committee's windows, delays and bond.
    #[must_use]
    pub fn parameters(&self) -> &SafetyParameters {
        &self.founded.parameters
    }

    async fn read<T: BorshDeserialize>(&self, key: &StateKey, oldest: Time) -> Result<Option<T>, ClientError> {
        self.client.entry_of(self.client.partition().settlement, key, oldest).await
    }

    /// The index of the committee's newest event, in a state of `oldest` or later.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn newest_event(&self, oldest: Time) -> Result<TransactionIndex, ClientError> {
        Ok(self.read(&StateKey::EventIndex(self.number), oldest).await?.unwrap_or_default())
    }

    /// The number and the time of the newest group that the committee has been sent, in the newest state that f + 1
    /// members show. Both are zero before the first one.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn newest_group(&self) -> Result<(u64, Time), ClientError> {
        let sent = StateKey::Sent(Receiver::Committee(self.number));
        let (due, time): (Cursor, Option<Time>) = self.read(&sent, Time(0)).await?.unwrap_or_default();
        Ok((due.next.saturating_sub(1), time.unwrap_or_default()))
    }

    /// What the committee's accounts have of an asset in all, in a state of `oldest` or later.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn omnibus(&self, asset: Asset, oldest: Time) -> Result<Balance, ClientError> {
        Ok(self.read(&StateKey::Omnibus(self.number, asset), oldest).await?.unwrap_or_default())
    }

    /// What an account's number is spent on, in a state of `oldest` or later; `None` if it is not spent there.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn spent(
        &self,
        sender: AccountId,
        sequence: SequenceNumber,
        oldest: Time,
    ) -> Result<Option<SpentOn>, ClientError> {
        self.read(&StateKey::Spent(self.number, sender, sequence), oldest).await
    }

    /// The current epoch, in a state of `oldest` or later.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn current_epoch(&self, oldest: Time) -> Result<CurrentEpoch, ClientError> {
        self.read(&StateKey::Epoch(self.number), oldest).await?.ok_or(ClientError::Malformed)
    }

    /// What is known of a number whose owner requested to unlock it, in a state of `oldest` or later.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn unlock(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        oldest: Time,
    ) -> Result<Option<UnlockEntry>, ClientError> {
        self.read(&StateKey::Unlock(self.number, account, sequence), oldest).await
    }

    /// An announcement, in a state of `oldest` or later.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn announcement(&self, id: Digest, oldest: Time) -> Result<Option<Announced>, ClientError> {
        self.read(&StateKey::Announcement(self.number, id), oldest).await
    }

    /// The announcements that have neither ended nor lapsed, in states of `oldest` or later. The oldest are read: no
    /// announcement hides one that was made before it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn announcements(&self, oldest: Time) -> Result<OpenAnnouncements, ClientError> {
        let current = self.current_epoch(oldest).await?.epoch;
        let is_over = |announced: &Announced| {
            announced.next.committee.epoch() <= current || announced.lapses_at(self.parameters()) < oldest
        };
        let count: Option<u64> = self.read(&StateKey::AnnouncementCount(self.number), oldest).await?;
        // Each is for no earlier epoch than the one before, and lapses no earlier: those that are over come first.
        let (mut start, count) = (0, count.unwrap_or_default());
        let mut end = count;
        while start < end {
            let middle = start.midpoint(end);
            match self.numbered_announcement(middle, oldest).await? {
                Some((_, announced)) if is_over(&announced) => start = middle.saturating_add(1),
                _ => end = middle,
            }
        }
        let mut open = OpenAnnouncements::default();
        for number in (start..count).take(ANNOUNCEMENTS_READ_MAX) {
            // A state that is a little older than the one before does not have it yet.
            open.first.extend(self.numbered_announcement(number, oldest).await?);
        }
        open.further = count.saturating_sub(start).saturating_sub(ANNOUNCEMENTS_READ_MAX as u64);
        Ok(open)
    }

    async fn numbered_announcement(
        &self,
        number: u64,
        oldest: Time,
    ) -> Result<Option<(Digest, Announced)>, ClientError> {
        let id: Option<Digest> = self.read(&StateKey::AnnouncementId(self.number, number), oldest).await?;
        let Some(id) = id else { return Ok(None) };
        Ok(self.announcement(id, oldest).await?.map(|announced| (id, announced)))
    }

    /// `known` with the committees that follow it, up to the newest that f + 1 members show in states of `oldest` or
    /// later. How long earlier ones count is not told.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn committees(&self, mut known: Committees, oldest: Time) -> Result<Committees, ClientError> {
        let newest = self.current_epoch(oldest).await?.epoch;
        while known.current().epoch() < newest {
            let next: Option<Committee> =
                self.read(&StateKey::Committee(self.number, known.next_epoch()), oldest).await?;
            // The members that answered now may have older states than those that told the epoch.
            let Some(next) = next else { break };
            known.install(next).map_err(|_| ClientError::Malformed)?;
        }
        Ok(known)
    }
}

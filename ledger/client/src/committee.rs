//! A FastPay committee on a ledger, as authorities and wallets read it: from certified states of the settlement cluster,
//! the newest that f + 1 members show.

use std::path::{Path, PathBuf};

use borsh::BorshDeserialize;
use fastpay_core::{AccountId, Asset, Balance, Committee, Committees, Domain, Epoch, SequenceNumber, TransactionIndex};
use fastpay_ledger_statement::{CommitteeNumber, GenesisError, Redeemed, StateKey, Time};
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

/// A committee on a ledger.
#[derive(Clone, Debug)]
pub struct CommitteeClient {
    client: Client,
    number: CommitteeNumber,
    first: Committee,
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
        let first = client.layout().genesis().committees.get(&number).cloned();
        let first = first.ok_or(OpenCommitteeError::NoCommittee(number))?;
        Ok(Self { client, number, first })
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
        &self.first
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

    /// What the committee's accounts have of an asset in all, in a state of `oldest` or later.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn omnibus(&self, asset: Asset, oldest: Time) -> Result<Balance, ClientError> {
        Ok(self.read(&StateKey::Omnibus(self.number, asset), oldest).await?.unwrap_or_default())
    }

    /// What an account's number was redeemed for, in a state of `oldest` or later; `None` if it is not redeemed there.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn redeemed(
        &self,
        sender: AccountId,
        sequence: SequenceNumber,
        oldest: Time,
    ) -> Result<Option<Redeemed>, ClientError> {
        self.read(&StateKey::Redeemed(self.number, sender, sequence), oldest).await
    }

    /// `known` with the committees that follow it, up to the newest in a state of `oldest` or later. How long earlier ones
    /// count is not told.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn committees(&self, mut known: Committees, oldest: Time) -> Result<Committees, ClientError> {
        let newest: Option<(Epoch, Option<Time>)> = self.read(&StateKey::Epoch(self.number), oldest).await?;
        let (newest, _) = newest.ok_or(ClientError::Malformed)?;
        while known.current().epoch() < newest {
            let next: Option<Committee> =
                self.read(&StateKey::Committee(self.number, known.next_epoch()), oldest).await?;
            known.install(next.ok_or(ClientError::Malformed)?).map_err(|_| ClientError::Malformed)?;
        }
        Ok(known)
    }
}

//! The Primary as the follower reads it: a contract on Ethereum, or a FastPay committee on a ledger.
//!
//! ```text
//!  blocks of the contract's chain   ─► EthereumSource ─┐
//!                                                      ├─► Batch: events in order, position, time ─► Follower
//!  groups of the settlement cluster ─► LedgerSource ───┘
//! ```
//! A position is a [`Cursor`]: of a ledger, the number and the digest of a group take the place of a block's. The
//! follower treats both alike: what it applies has no gap, and is on disk before the position and the time are.

mod ethereum;
mod ledger;
#[cfg(test)]
mod tests;

use fastpay_core::{Committees, Epoch};
use fastpay_ethereum::{Cursor, Primary};

pub use ethereum::EthereumSource;
pub use ledger::{LedgerConfig, LedgerDeployment, LedgerError, LedgerEvents, LedgerFault, LedgerSource};

use crate::authority::deposit_sink::ShardEvent;
use crate::authority::rotation::{Rotation, RotationError};
use crate::authority::shard::ChainTime;

/// A Primary.
pub enum FundingSource {
    /// A contract on Ethereum.
    Ethereum(Box<EthereumSource>),
    /// A committee on a ledger.
    Ledger(Box<LedgerSource>),
}

/// The events of a part of the Primary's order, and where the next part begins.
pub struct Batch {
    /// The events, in the order of their indices.
    pub(crate) events: Vec<ShardEvent>,
    /// The position after them.
    pub cursor: Cursor,
    /// The newest block or group that is known to be final.
    pub newest: u64,
    /// Whether the position is before the head.
    pub has_more: bool,
    /// The time at the position.
    pub time: ChainTime,
}

impl Batch {
    /// Whether it ends an epoch.
    #[must_use]
    pub fn closes_an_epoch(&self) -> bool {
        self.events.iter().any(|event| matches!(event, ShardEvent::Installation(_)))
    }
}

impl From<Primary> for FundingSource {
    fn from(primary: Primary) -> Self {
        Self::Ethereum(Box::new(EthereumSource::new(primary)))
    }
}

impl From<LedgerSource> for FundingSource {
    fn from(source: LedgerSource) -> Self {
        Self::Ledger(Box::new(source))
    }
}

impl FundingSource {
    /// The position before the first event, for a follower that has none.
    ///
    /// # Errors
    /// See [`RotationError::is_retryable`].
    pub async fn start(&self) -> Result<Cursor, RotationError> {
        match self {
            Self::Ethereum(source) => Ok(source.start().await?),
            Self::Ledger(_) => Ok(LedgerSource::start()),
        }
    }

    /// The events after `cursor`, at whose position the time is `time`.
    ///
    /// # Errors
    /// See [`RotationError::is_retryable`].
    pub async fn next(&mut self, cursor: &Cursor, time: ChainTime) -> Result<Batch, RotationError> {
        match self {
            Self::Ethereum(source) => Ok(source.next(cursor).await?),
            Self::Ledger(source) => Ok(source.next(cursor, time).await?),
        }
    }

    /// Whether the committees are to be read with this batch.
    #[must_use]
    pub fn are_committees_due(&self, batch: &Batch) -> bool {
        match self {
            Self::Ethereum(source) => !batch.has_more && source.committees_known_at() != Some(batch.newest),
            Self::Ledger(_) => batch.closes_an_epoch(),
        }
    }

    /// The committees after this batch.
    ///
    /// # Errors
    /// See [`RotationError::is_retryable`].
    pub async fn committees(&self, rotation: &Rotation, batch: &Batch) -> Result<Committees, RotationError> {
        match self {
            Self::Ethereum(source) => source.committees(rotation, batch.cursor.block_number).await,
            Self::Ledger(source) => Ok(source.committees(rotation.committees())?),
        }
    }

    /// The committees of a batch are known, and on disk.
    pub fn note_committees(&mut self, batch: &Batch) {
        if let Self::Ethereum(source) = self {
            source.note_committees(batch.newest);
        }
    }

    /// The epoch of which a follower at this position knows the committee, if the position alone does not tell: the
    /// contract shows all committees, and a ledger's groups each one once.
    #[must_use]
    pub fn epoch_known(&self, rotation: &Rotation) -> Option<Epoch> {
        match self {
            Self::Ethereum(_) => None,
            Self::Ledger(_) => Some(rotation.committees().current().epoch()),
        }
    }

    /// When the committee last gave a sign of life, if that was not asked since the committees were known. For an
    /// alert.
    pub async fn sign_of_life(&mut self) -> Option<u64> {
        match self {
            Self::Ethereum(source) => source.sign_of_life().await,
            Self::Ledger(_) => None,
        }
    }

    /// Whether the source waits by itself until there is more, so that its follower need not.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self, Self::Ledger(_))
    }
}

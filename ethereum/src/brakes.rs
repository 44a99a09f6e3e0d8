//! What slows the contract down, as its users meet it: a pause, the outflow limit, and the queue of what
//! exceeds the limit. Times are the chain's, in seconds since 1970: what counts is the block's clock.

use alloy::primitives::{Address, U256};
use fastpay_core::{AccountId, Asset, Epoch, SequenceNumber};
use serde::{Deserialize, Serialize};

use crate::contract::IFastPay;
use crate::endpoint::At;
use crate::error::PrimaryError;
use crate::primary::Primary;

/// A redemption that exceeded the outflow limit, in the contract's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Queued {
    /// From when on anyone can execute it, in seconds since 1970.
    pub executable_at: u64,
    /// Who brought it, and gets the fee.
    pub relayer: Address,
}

/// How far an order is on the Primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payout {
    /// Nobody has brought it yet.
    Open,
    /// It was brought, and waits: the order is spent, and nobody is paid yet.
    Queued(Queued),
    /// It is paid out, be it into a claim.
    Done,
}

/// A moment as people and programs read it: `2026-11-21T19:31:05Z`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let moment = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    moment.map_or_else(|| format!("{seconds} s after 1970"), |moment| moment.to_string())
}

impl Primary {
    /// Until when the contract is paused, by the newest block's clock; none where it is not.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn paused_until(&self) -> Result<Option<u64>, PrimaryError> {
        let until: u64 = self.view(self.contract(), &IFastPay::pausedUntilCall {}).await?.saturating_to();
        Ok((until > self.latest_head().await?.timestamp()).then_some(until))
    }

    /// How much of `asset` can be redeemed at once now; more is queued.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn outflow_available(&self, asset: Asset) -> Result<U256, PrimaryError> {
        self.view(self.contract(), &IFastPay::outflowAvailableCall { asset: asset.0 }).await
    }

    /// How long what exceeds the limit is queued, in seconds.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn outflow_delay(&self) -> Result<u64, PrimaryError> {
        Ok(self.view(self.contract(), &IFastPay::brakesCall {}).await?.outflowDelay.into())
    }

    /// How much of `asset` is in the queue.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn total_queued(&self, asset: Asset) -> Result<U256, PrimaryError> {
        self.view(self.contract(), &IFastPay::totalQueuedCall { asset: asset.0 }).await
    }

    /// Until when the contract takes votes of an epoch, in seconds since 1970: [`u64::MAX`] for the current one,
    /// 0 for one that ended long ago or was never installed.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn epoch_valid_until(&self, epoch: Epoch) -> Result<u64, PrimaryError> {
        Ok(self.view(self.contract(), &IFastPay::epochValidUntilCall { epoch: epoch.0 }).await?.saturating_to())
    }

    /// How far the order `sequence` of `sender` is in the newest block.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn payout(&self, sender: AccountId, sequence: SequenceNumber) -> Result<Payout, PrimaryError> {
        self.payout_in(sender, sequence, At::Latest).await
    }

    /// The same in the block of this number, such as that of [`Primary::final_head`]. Nodes keep the state of
    /// recent blocks only.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn payout_at(
        &self,
        sender: AccountId,
        sequence: SequenceNumber,
        block_number: u64,
    ) -> Result<Payout, PrimaryError> {
        self.payout_in(sender, sequence, At::Number(block_number)).await
    }

    async fn payout_in(&self, sender: AccountId, sequence: SequenceNumber, at: At) -> Result<Payout, PrimaryError> {
        // In this order: what is spent stays spent, and what is then not in the queue has left it.
        let spent = IFastPay::isRedeemedCall { sender: sender.0.into(), sequence: sequence.0 };
        if !self.view_at(self.contract(), &spent, at).await? {
            return Ok(Payout::Open);
        }
        let queued = IFastPay::queuedCall { sender: sender.0.into(), sequence: sequence.0 };
        let queued = self.view_at(self.contract(), &queued, at).await?;
        match queued.executableAt.saturating_to() {
            0 => Ok(Payout::Done),
            executable_at => Ok(Payout::Queued(Queued { executable_at, relayer: queued.relayer })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_for_people() {
        assert_eq!(utc(1_795_289_465), "2026-11-21T19:31:05Z");
        assert_eq!(utc(u64::MAX), "18446744073709551615 s after 1970");
    }
}

//! The contract's safety parameters as its users see them: a pause, the outflow limit, and the queue of redemptions
//! above the limit. All times are the chain's, in seconds since 1970: the block's clock decides.

use alloy::primitives::{Address, U256};
use fastpay_core::{AccountId, Asset, Epoch, SequenceNumber};
use serde::{Deserialize, Serialize};

use crate::contract::IFastPay;
use crate::endpoint::{At, Endpoint};
use crate::error::PrimaryError;
use crate::primary::Primary;

/// A redemption that exceeded the outflow limit, in the contract's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Queued {
    /// The time from which anyone can execute it, in seconds since 1970.
    pub executable_at: u64,
    /// The relayer that submitted it and gets the fee.
    pub relayer: Address,
    /// The epoch that voted for it.
    pub epoch: u64,
    /// Whether keys of that epoch were stolen: then it is executed only with votes of the current epoch.
    pub needs_votes: bool,
}

/// The state of an order on the Primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payout {
    /// Not submitted yet.
    Open,
    /// It was submitted and is queued: the number is spent, and nobody is paid yet.
    Queued(Queued),
    /// It is paid, or its amount is a claim.
    Done,
}

impl Primary {
    /// If the contract is paused, by the newest block's clock: until when.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn paused_until(&self) -> Result<Option<u64>, PrimaryError> {
        let until: u64 = self.view(self.contract(), &IFastPay::pausedUntilCall {}).await?.saturating_to();
        Ok((until > self.latest_head().await?.timestamp()).then_some(until))
    }

    /// The amount of `asset` that can be redeemed at once now; more is queued.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn outflow_available(&self, asset: Asset) -> Result<U256, PrimaryError> {
        self.view(self.contract(), &IFastPay::outflowAvailableCall { asset: asset.0 }).await
    }

    /// How long a redemption above the limit is queued, in seconds.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn outflow_delay(&self) -> Result<u64, PrimaryError> {
        Ok(self.view(self.contract(), &IFastPay::safetyParametersCall {}).await?.outflowDelay.into())
    }

    /// The amount of `asset` in the queue. It is a part of the balance.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn total_queued(&self, asset: Asset) -> Result<U256, PrimaryError> {
        self.view(self.contract(), &IFastPay::totalQueuedCall { asset: asset.0 }).await
    }

    /// Until when the contract accepts votes of an epoch, in seconds since 1970: [`u64::MAX`] for the current one, 0
    /// for one that ended long ago or was never installed.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn epoch_valid_until(&self, epoch: Epoch) -> Result<u64, PrimaryError> {
        Ok(self.view(self.contract(), &IFastPay::epochValidUntilCall { epoch: epoch.0 }).await?.saturating_to())
    }

    /// The state of the order `sequence` of `sender` in the newest block.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn payout(&self, sender: AccountId, sequence: SequenceNumber) -> Result<Payout, PrimaryError> {
        self.first_answer(|node| self.payout_at(node, sender, sequence, At::Latest)).await
    }

    /// As [`Primary::payout`], at one of the configured nodes, in its own newest final block.
    ///
    /// # Errors
    /// If it does not answer, or there is no such node.
    pub async fn final_payout_by(
        &self,
        node: usize,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Payout, PrimaryError> {
        let endpoint = self.endpoint(node)?;
        let head = endpoint.final_head(self.finality()).await?;
        self.payout_at(endpoint, sender, sequence, At::Number(head.number())).await
    }

    async fn payout_at(
        &self,
        node: &Endpoint,
        sender: AccountId,
        sequence: SequenceNumber,
        at: At,
    ) -> Result<Payout, PrimaryError> {
        // In this order: a spent number stays spent, so if it is not in the queue after that, it has left it.
        let spent = IFastPay::isRedeemedCall { sender: sender.0.into(), sequence: sequence.0 };
        if !node.view(self.contract(), &spent, at).await? {
            return Ok(Payout::Open);
        }
        let queued = IFastPay::queuedCall { sender: sender.0.into(), sequence: sequence.0 };
        let queued = node.view(self.contract(), &queued, at).await?;
        match queued.executableAt.saturating_to() {
            0 => Ok(Payout::Done),
            executable_at => {
                let (relayer, epoch, needs_votes) = (queued.relayer, queued.epoch, queued.needsVotes);
                Ok(Payout::Queued(Queued { executable_at, relayer, epoch, needs_votes }))
            }
        }
    }
}

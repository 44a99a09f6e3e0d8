//! Reads `Council`: the times of an announcement, the address that may announce a recovery, and the digests against
//! which it checks votes.

use alloy::primitives::{Address, B256};
use fastpay_core::{CouncilStatement, Digest, Epoch};

use crate::contract::{CapRaise, ICouncil, IFastPay};
use crate::endpoint::At;
use crate::error::PrimaryError;
use crate::finality::BlockHead;
use crate::primary::Primary;

/// The times of an announcement, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The epoch that it would begin.
    pub epoch: Epoch,
    /// The time from which it can mature and be installed.
    pub installable_at: u64,
    /// The time from which it can no longer be installed.
    pub lapses_at: u64,
    /// The block in which it matured, if it has.
    pub matured_block: Option<u64>,
    /// Whether it is a recovery.
    pub is_recovery: bool,
}

impl Primary {
    /// The address of `Council`.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn council(&self) -> Result<Address, PrimaryError> {
        self.view(self.contract(), &IFastPay::councilCall {}).await
    }

    /// The address that may announce a recovery; zero if none may.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn recovery(&self) -> Result<Address, PrimaryError> {
        self.view(self.council().await?, &ICouncil::recoveryCall {}).await
    }

    /// When a quorum last gave a sign of life, by a heartbeat or an installation, in seconds since 1970.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn last_sign_of_life(&self) -> Result<u64, PrimaryError> {
        let council = self.council().await?;
        let heartbeat = self.view(council, &ICouncil::lastHeartbeatCall {}).await?;
        let installed = self.view(council, &ICouncil::installedAtCall {}).await?;
        Ok(heartbeat.max(installed).saturating_to())
    }

    /// The times of the announcement with this digest; `None` if there is no such announcement.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn clock_of(&self, id: Digest) -> Result<Option<Clock>, PrimaryError> {
        let clock = self.view(self.council().await?, &ICouncil::clockOfCall { id }).await?;
        if clock.announcedAt.is_zero() {
            return Ok(None);
        }
        Ok(Some(Clock {
            epoch: Epoch(clock.epoch),
            installable_at: clock.installableAt.saturating_to(),
            lapses_at: clock.lapsesAt.saturating_to(),
            matured_block: (!clock.maturedBlock.is_zero()).then(|| clock.maturedBlock.saturating_to()),
            is_recovery: clock.isRecovery,
        }))
    }

    /// The digest against which the contract would check votes for `statement`.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn council_digest(&self, statement: &CouncilStatement<'_>) -> Result<Digest, PrimaryError> {
        match *statement {
            CouncilStatement::Announcement(announcement) => {
                let call = ICouncil::announcementDigestCall { announcement: announcement.into() };
                self.view(self.council().await?, &call).await
            }
            CouncilStatement::Acceptance { epoch, announcement, block_hash } => {
                let call = ICouncil::acceptanceDigestCall { epoch: epoch.0, announcement, blockHash: block_hash };
                self.view(self.council().await?, &call).await
            }
            CouncilStatement::CapRaise { epoch, asset, cap, deadline } => {
                let raise = CapRaise { epoch: epoch.0, asset: asset.0, cap: cap.0, deadline };
                self.view(self.council().await?, &ICouncil::capRaiseDigestCall { raise }).await
            }
            CouncilStatement::Heartbeat { epoch, block_hash } => {
                let call = ICouncil::heartbeatDigestCall { epoch: epoch.0, blockHash: block_hash };
                self.view(self.council().await?, &call).await
            }
            CouncilStatement::CheckpointAdoption { epoch, checkpoint } => {
                let call = ICouncil::adoptionDigestCall { epoch: epoch.0, checkpoint };
                self.view(self.council().await?, &call).await
            }
            CouncilStatement::Release { epoch, redemption } => {
                let call = IFastPay::releaseVoteDigestCall { epoch: epoch.0, redemption: redemption.into() };
                self.view(self.contract(), &call).await
            }
        }
    }

    /// The hash of the block of this number. The caller must make sure that it is final.
    ///
    /// # Errors
    /// If no node answers, or the first one that does has no such block.
    pub async fn block_hash(&self, number: u64) -> Result<B256, PrimaryError> {
        let head: BlockHead =
            self.request("eth_getBlockByNumber", serde_json::json!([At::Number(number).to_json(), false])).await?;
        Ok(head.hash)
    }
}

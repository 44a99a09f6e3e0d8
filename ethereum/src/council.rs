//! Reads `Council`: the committees announced, the times of an announcement, the address that may announce a recovery,
//! and the digests against which it checks votes.

use std::collections::BTreeSet;

use alloy::primitives::{Address, B256};
use alloy::sol_types::SolEvent;
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
    /// The time of its block.
    pub announced_at: u64,
    /// The time from which it can mature and be installed.
    pub installable_at: u64,
    /// The time from which it can no longer be installed.
    pub lapses_at: u64,
    /// The block in which it matured, if it has.
    pub matured_block: Option<u64>,
    /// Whether it is a recovery.
    pub is_recovery: bool,
}

impl Clock {
    /// Whether it can still be installed in a contract whose epoch is `current` and whose quorum last gave a sign of
    /// life at `sign_of_life`, at the time `now`.
    #[must_use]
    pub fn is_open(&self, current: Epoch, sign_of_life: u64, now: u64) -> bool {
        let is_cancelled = self.is_recovery && self.announced_at <= sign_of_life;
        current.0.checked_add(1) == Some(self.epoch.0) && !is_cancelled && now <= self.lapses_at
    }
}

impl Primary {
    /// The digests of the committees that were announced in the blocks from `first` to `last`, according to any node.
    ///
    /// # Errors
    /// If a node does not answer: it may know of one that the others leave out.
    pub async fn committees_announced(&self, first: u64, last: u64) -> Result<BTreeSet<Digest>, PrimaryError> {
        let (council, kinds) = (self.council().await?, [ICouncil::CommitteeAnnounced::SIGNATURE_HASH]);
        let mut announced = BTreeSet::new();
        for node in self.endpoints() {
            let logs = node.logs_of(council, &kinds, first, last).await?;
            announced.extend(logs.iter().filter_map(|log| log.topics().get(1).copied()));
        }
        Ok(announced)
    }

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

    /// The checkpoint that a recovered epoch has adopted; zero for none.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn adopted(&self, epoch: Epoch) -> Result<Digest, PrimaryError> {
        self.view(self.council().await?, &ICouncil::adoptedCall { epoch: epoch.0 }).await
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
            announced_at: clock.announcedAt.saturating_to(),
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

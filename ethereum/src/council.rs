//! Reads `Council`: the committees announced, the times of an announcement, the address that may announce a recovery,
//! and the digests against which it checks votes. Makes the calls by which a committee is announced and installed.

use std::collections::BTreeMap;

use alloy::primitives::{Address, B256, Bytes, U256};
use alloy::sol_types::{SolCall, SolEvent, SolInterface};
use fastpay_core::{Amount, Announcement, Committee, CouncilStatement, Digest, Domain, Epoch};
use serde::Deserialize;

use crate::contract::{CapRaise, ICouncil, IFastPay};
use crate::endpoint::At;
use crate::error::PrimaryError;
use crate::finality::BlockHead;
use crate::primary::{Primary, members_of};
use crate::submission::Call;

/// The times of an announcement, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The epoch that it would begin.
    pub epoch: Epoch,
    /// The time of its block.
    pub announced_at: u64,
    /// The time of the guardian's endorsement, if there is one.
    pub endorsed_at: Option<u64>,
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

/// A step by which a committee is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A quorum's announcement.
    Announce,
    /// The recovery address's announcement.
    AnnounceRecovery,
    /// The guardian's endorsement.
    Endorse,
    /// The record that its delay has passed.
    Mature,
    /// The installation.
    Install,
}

impl Primary {
    /// What was announced in the blocks from `first` to `last`, according to any node, by its digest: the announcement,
    /// and the transaction that sent it. Each announcement is the one that its digest names.
    ///
    /// # Errors
    /// If a node does not answer: it may know of one that the others leave out.
    pub async fn announcements(
        &self,
        first: u64,
        last: u64,
    ) -> Result<BTreeMap<Digest, (Announcement, Option<B256>)>, PrimaryError> {
        let (council, kinds) = (self.council().await?, [ICouncil::CommitteeAnnounced::SIGNATURE_HASH]);
        let mut announced = BTreeMap::new();
        for node in self.endpoints() {
            for log in node.logs_in_parts(council, &kinds, first, last).await? {
                let Ok(ICouncil::CommitteeAnnounced { id, announcement, .. }) =
                    ICouncil::CommitteeAnnounced::decode_log_data(log.data())
                else {
                    continue;
                };
                let Some(announcement) = announcement_of(&announcement) else { continue };
                if self.domain().council_digest(&CouncilStatement::Announcement(&announcement)) == id {
                    announced.entry(id).or_insert((announcement, log.transaction_hash));
                }
            }
        }
        Ok(announced)
    }

    /// The event of the installation of an epoch, if it is in the blocks from `first` to `last`.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn installed(
        &self,
        epoch: Epoch,
        first: u64,
        last: u64,
    ) -> Result<Option<IFastPay::CommitteeInstalled>, PrimaryError> {
        let kinds = [IFastPay::CommitteeInstalled::SIGNATURE_HASH];
        let logs = self.first_answer(|node| node.logs_in_parts(self.contract(), &kinds, first, last)).await?;
        let mut events = logs.iter().filter_map(|log| IFastPay::CommitteeInstalled::decode_log_data(log.data()).ok());
        Ok(events.rfind(|event| event.epoch == epoch.0))
    }

    /// The votes with which this transaction announced a committee, packed and not verified; `None` if it announced a
    /// recovery, or called the council through another contract.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn votes_announced_in(&self, transaction: B256) -> Result<Option<Bytes>, PrimaryError> {
        #[derive(Debug, Deserialize)]
        struct Sent {
            input: Bytes,
        }
        let sent: Option<Sent> = self.request("eth_getTransactionByHash", serde_json::json!([transaction])).await?;
        let call = sent.and_then(|sent| ICouncil::announceCall::abi_decode(&sent.input).ok());
        Ok(call.map(|call| call.votes))
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
            endorsed_at: (!clock.endorsedAt.is_zero()).then(|| clock.endorsedAt.saturating_to()),
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

/// The announcement in an event; `None` if its members are no committee.
fn announcement_of(announced: &crate::ContractAnnouncement) -> Option<Announcement> {
    let committee = Committee::new(Epoch(announced.epoch), members_of(&announced.authorities)).ok()?;
    Some(Announcement {
        committee,
        guardian: announced.guardian,
        recovery: announced.recovery,
        compromised_since: Epoch(announced.compromisedSince),
        checkpoint: announced.checkpoint,
        deadline: announced.deadline,
    })
}

impl Call {
    /// The step that this call takes if the council of `domain` is called, and the digest of the announcement; `None`
    /// if it is no step of one.
    #[must_use]
    pub fn step(&self, domain: &Domain) -> Option<(Step, Digest)> {
        use ICouncil::ICouncilCalls as Calls;
        let id = |announced: &crate::ContractAnnouncement| {
            let announcement = announcement_of(announced)?;
            Some(domain.council_digest(&CouncilStatement::Announcement(&announcement)))
        };
        match Calls::abi_decode(&self.data).ok()? {
            Calls::announce(call) => Some((Step::Announce, id(&call.announcement)?)),
            Calls::announceRecovery(call) => Some((Step::AnnounceRecovery, id(&call.announcement)?)),
            Calls::endorse(call) => Some((Step::Endorse, call.id)),
            Calls::mature(call) => Some((Step::Mature, call.id)),
            Calls::install(call) => Some((Step::Install, id(&call.announcement)?)),
            _ => None,
        }
    }

    /// Announces the next committee. `proofs` are its members' proofs of possession in their order, `votes` those of a
    /// quorum of the current committee.
    #[must_use]
    pub fn announce(council: Address, announcement: &Announcement, proofs: Bytes, votes: Bytes) -> Self {
        let call = ICouncil::announceCall { announcement: announcement.into(), proofs, votes };
        Self::of(council, Amount::ZERO, &call)
    }

    /// Announces a committee in place of a silent one. Only the recovery address may send it.
    #[must_use]
    pub fn announce_recovery(council: Address, announcement: &Announcement, proofs: Bytes) -> Self {
        Self::of(council, Amount::ZERO, &ICouncil::announceRecoveryCall { announcement: announcement.into(), proofs })
    }

    /// Endorses an announcement. Only the guardian may send it.
    #[must_use]
    pub fn endorse(council: Address, id: Digest) -> Self {
        Self::of(council, Amount::ZERO, &ICouncil::endorseCall { id })
    }

    /// Records the block in which an announcement is found installable.
    #[must_use]
    pub fn mature(council: Address, id: Digest) -> Self {
        Self::of(council, Amount::ZERO, &ICouncil::matureCall { id })
    }

    /// Installs a committee with a quorum's acceptances, which name `block`.
    #[must_use]
    pub fn install(council: Address, announcement: &Announcement, block: u64, votes: Bytes) -> Self {
        let (announcement, block_number) = (announcement.into(), U256::from(block));
        Self::of(council, Amount::ZERO, &ICouncil::installCall { announcement, blockNumber: block_number, votes })
    }
}

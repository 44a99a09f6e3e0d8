//! A committee on a ledger, as its operators change it: read from the newest certified state that f + 1 members of the
//! settlement cluster show, changed by instructions that an Ethereum key signs.
//!
//! Each step can be carried out once, whoever sends it, and costs nothing. So nothing is stored before it is sent: a command
//! that is repeated reads first what has happened.

use std::path::Path;
use std::time::Duration;

use fastpay_core::{
    AccountKey, Announcement, Committee, Committees, ContractVote, CouncilStatement, Digest, Domain, PrimaryAddress,
    Recovery, VerifiedContractVote,
};
use fastpay_ethereum::{Clock, PrivateKeySigner};
use fastpay_ledger_client::{ClientError, CommitteeClient};
use fastpay_ledger_statement::{Action, Announced, CommitteeNumber, CurrentEpoch, NextCommittee, StateKey, Time};
use tokio::time::sleep;

use super::council::Facts;
use super::proposal::State;
use super::votes::{Acceptances, valid};
use super::{CommitteeError, VoteFile};
use crate::authority::follower::read_cursor;
use crate::authority::funding::{LedgerConfig, LedgerDeployment, LedgerError};
use crate::authority::known_committees;

/// The ledger decides heights continuously: an older state than this, in milliseconds, is refused.
const STATE_AGE_MS_MAX: u64 = 600_000;
/// The ledger accepts an announcement if its deadline is at most this far away.
const DEADLINE_MAX_S: u64 = 30 * 86_400;
/// The pause between looks at what a member, or the own node, does not know yet.
const PAUSE: Duration = Duration::from_millis(500);
/// So many looks give it the time for that.
const LOOKS_MAX: usize = 60;

/// See the [module](self).
pub(super) struct OnLedger {
    deployment: LedgerDeployment,
    /// The committees that the data folder has.
    known: Option<Committees>,
}

fn failed(error: ClientError) -> CommitteeError {
    LedgerError::from(error).into()
}

impl OnLedger {
    pub(super) fn open(config: &LedgerConfig, data: &Path) -> Result<Self, CommitteeError> {
        Ok(Self { deployment: LedgerDeployment::read(config)?, known: known_committees::read(data) })
    }

    fn ledger(&self) -> &CommitteeClient {
        self.deployment.ledger()
    }

    pub(super) fn domain(&self) -> Domain {
        self.ledger().domain()
    }

    pub(super) fn number(&self) -> CommitteeNumber {
        self.ledger().number()
    }

    pub(super) fn place(&self) -> String {
        let deployment = self.ledger().client().layout().deployment();
        format!("committee {} on the ledger with the genesis hash {}", self.number(), deployment.0)
    }

    fn oldest() -> Time {
        Time(fastpay_program::Clock::system().now_ms().saturating_sub(STATE_AGE_MS_MAX))
    }

    pub(super) async fn current(&self) -> Result<CurrentEpoch, CommitteeError> {
        self.ledger().current_epoch(Self::oldest()).await.map_err(failed)
    }

    async fn announced(&self, id: Digest) -> Result<Option<Announced>, CommitteeError> {
        self.ledger().announcement(id, Self::oldest()).await.map_err(failed)
    }

    /// The oldest that can still be installed, and how many more there are.
    pub(super) async fn open_announcements(&self) -> Result<(Vec<Announcement>, u64), CommitteeError> {
        let announced = self.ledger().announcements(Self::oldest()).await.map_err(failed)?;
        let first = announced.first.iter().map(|(_, announced)| announced.next.announcement());
        Ok((first.collect(), announced.further))
    }

    async fn now(&self) -> Result<Time, CommitteeError> {
        let client = self.ledger().client();
        let (settlement, key) = (client.partition().settlement, StateKey::Epoch(self.number()));
        Ok(client.read(settlement, &key, Self::oldest()).await.map_err(failed)?.time)
    }

    pub(super) async fn now_s(&self) -> Result<u64, CommitteeError> {
        Ok(self.now().await?.0 / 1_000)
    }

    /// The committees of all epochs. After an installation that says that keys were out, nothing was adopted.
    pub(super) async fn committees(&self) -> Result<Committees, CommitteeError> {
        let first = Committees::new(self.ledger().first().clone()).expect("a ledger's committee begins in epoch 0");
        let known = self.known.clone().unwrap_or(first);
        let mut committees = self.ledger().committees(known, Self::oldest()).await.map_err(failed)?;
        if let Some((_, epoch)) = self.current().await?.compromised.last().copied()
            && committees.recovery().is_none()
        {
            committees.recover(Recovery { epoch, adopted: None }).map_err(|_| failed(ClientError::Malformed))?;
        }
        Ok(committees)
    }

    pub(super) async fn check_deadline(&self, deadline: u64) -> Result<(), CommitteeError> {
        let now = self.now_s().await?;
        let is_timely = deadline > now && deadline <= now.saturating_add(DEADLINE_MAX_S);
        is_timely.then_some(()).ok_or(CommitteeError::Deadline(deadline))
    }

    /// The statement that the next committee accepts; `None` before it has matured.
    pub(super) async fn acceptance(&self, id: Digest) -> Result<Option<CouncilStatement<'static>>, CommitteeError> {
        let announced = self.announced(id).await?.ok_or(CommitteeError::NotAnnounced(id))?;
        Ok(announced.acceptance(id))
    }

    pub(super) async fn facts(&self, announcement: &Announcement, votes: &[VoteFile]) -> Result<Facts, CommitteeError> {
        let id = self.domain().council_digest(&CouncilStatement::Announcement(announcement));
        let (announced, current, now) = (self.announced(id).await?, self.current().await?, self.now().await?);
        let state = self.state(announcement, announced.as_ref(), (&current, now)).await?;
        let acceptance = announced.as_ref().and_then(|announced| announced.acceptance(id));
        let accepted = acceptance.map_or_else(Acceptances::default, |statement| {
            let digest = self.domain().council_digest(&statement);
            Acceptances { block: 0, digest, votes: valid(&announcement.committee, digest, votes) }
        });
        let clock = announced.map(|announced| self.clock(announcement, &announced));
        Ok(Facts { clock, state, accepted, roles: (current.guardian, PrimaryAddress::ZERO), is_forgotten: false })
    }

    /// In seconds. It can be installed once its last millisecond has passed.
    fn clock(&self, announcement: &Announcement, announced: &Announced) -> Clock {
        let (parameters, seconds) = (self.ledger().parameters(), |time: Time| time.0 / 1_000);
        Clock {
            epoch: announcement.committee.epoch(),
            announced_at: seconds(announced.announced_at),
            endorsed_at: announced.endorsed_at.map(seconds),
            installable_at: announced.installable_at(parameters).0.div_ceil(1_000),
            lapses_at: seconds(announced.lapses_at(parameters)),
            matured_block: None,
            is_recovery: false,
        }
    }

    async fn state(
        &self,
        announcement: &Announcement,
        announced: Option<&Announced>,
        (current, now): (&CurrentEpoch, Time),
    ) -> Result<State, CommitteeError> {
        let (epoch, parameters) = (announcement.committee.epoch(), self.ledger().parameters());
        Ok(match announced {
            None if current.epoch >= epoch => State::Ended,
            None if now.0 / 1_000 > announcement.deadline => State::Lapsed,
            None => State::Proposed,
            Some(announced) if current.epoch >= epoch => {
                let is_it = announced.matured.is_some() && self.is_installed(announcement, current).await?;
                if is_it { State::Installed } else { State::Ended }
            }
            Some(announced) if now > announced.lapses_at(parameters) => State::Lapsed,
            Some(announced) if announced.matured.is_some() => State::Matured,
            Some(announced) if now >= announced.installable_at(parameters) => State::Installable,
            Some(_) => State::Announced,
        })
    }

    /// Whether the committee of its epoch is this one. The guardian is compared while the epoch lasts.
    async fn is_installed(&self, announcement: &Announcement, current: &CurrentEpoch) -> Result<bool, CommitteeError> {
        let Announcement { committee, guardian, compromised_since, .. } = announcement;
        let epoch = committee.epoch();
        let committees = self.committees().await?;
        let is_same = committees.get(epoch).is_some_and(|installed| **installed == *committee);
        let keys_were_out = current.compromised.contains(&(*compromised_since, epoch));
        let is_now = current.guardian == *guardian && keys_were_out == (*compromised_since < epoch);
        Ok(is_same && (current.epoch > epoch || is_now))
    }

    /// Has a step carried out, unless it `is_done`, and returns once f + 1 members show that it is.
    pub(super) async fn carry_out(
        &self,
        key: &PrivateKeySigner,
        action: Action,
        is_done: impl AsyncFn() -> Result<bool, CommitteeError>,
    ) -> Result<(), CommitteeError> {
        if is_done().await? {
            return Ok(());
        }
        let key = AccountKey::ethereum(key.to_bytes().0).expect("it is a key");
        let settlement = self.ledger().client().partition().settlement;
        if let Err(error) = self.ledger().client().instruct(&key, settlement, None, &action).await {
            // Somebody else may have done it, or the answer of an earlier command was lost.
            return if is_done().await? { Ok(()) } else { Err(failed(error)) };
        }
        for _ in 0..LOOKS_MAX {
            if is_done().await? {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        Err(CommitteeError::Undone)
    }

    /// Waits until this authority's own node has applied every group that the ledger has sent by now.
    pub(super) async fn await_follower(&self, data: &Path) -> Result<(), CommitteeError> {
        let (group, _) = self.ledger().newest_group().await.map_err(failed)?;
        for _ in 0..LOOKS_MAX {
            if read_cursor(data).is_some_and(|cursor| cursor.block_number >= group) {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        let at = read_cursor(data).map(|cursor| cursor.block_number);
        Err(CommitteeError::NotFollowed { at, group })
    }
}

/// What is announced. A ledger has no recovery.
pub(super) fn next_committee(announcement: &Announcement) -> NextCommittee {
    let Announcement { committee, guardian, compromised_since, checkpoint, deadline, .. } = announcement.clone();
    NextCommittee { committee, guardian, compromised_since, checkpoint, deadline }
}

/// Exactly a quorum of these votes, in the order of names.
pub(super) fn quorum_of(committee: &Committee, votes: &[VerifiedContractVote]) -> Option<Vec<ContractVote>> {
    let mut votes: Vec<ContractVote> = votes.iter().map(|vote| vote.vote().clone()).collect();
    votes.sort_by_key(|vote| vote.authority);
    votes.dedup_by_key(|vote| vote.authority);
    (votes.len() >= committee.quorum()).then(|| {
        votes.truncate(committee.quorum());
        votes
    })
}

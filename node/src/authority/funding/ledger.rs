//! The events of a FastPay committee on a ledger, from the groups of the settlement cluster (docs/LEDGER.md).
//!
//! ```text
//!  GroupReader: certified, without gap, from f + 1 members ─► events with indices without gap ─► Batch
//!                                                     └─► committees that were installed
//! ```
//! The time is that of the newest group that was applied [LEDGER 3]. The genesis has the committee's windows.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountId, Amount, Committee, Committees, Deposit, Epoch, EpochEnd, Installation, Recovery, TransactionIndex,
    UnlockEventKind,
};
use fastpay_ethereum::Cursor;
use fastpay_ledger_client::{ClientError, CommitteeClient, GroupReader, GroupsError, OpenCommitteeError};
use fastpay_ledger_statement::{
    CommitteeEvent, CommitteeNumber, Cursor as Due, EventKind, Message, Receiver, VerifiedGroup,
};
use serde::Deserialize;
use tokio::time::Instant;

use super::Batch;
use crate::authority::deposit_sink::ShardEvent;
use crate::authority::shard::ChainTime;

/// Whoever has all groups up to what the head was at most so long ago is at the head: there may be a group at every
/// height, and the newest is always under way.
const HEAD_AGE_MAX: Duration = Duration::from_secs(10);

/// The configuration of a committee on a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LedgerConfig {
    /// The file that describes the ledger: its genesis, and the addresses of its members.
    pub file: PathBuf,
    /// The number of the committee in it.
    pub committee: CommitteeNumber,
}

/// A committee on a ledger that authorities can serve.
pub struct LedgerDeployment {
    ledger: Arc<CommitteeClient>,
}

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Its file, or the committee in it.
    #[error(transparent)]
    Open(#[from] OpenCommitteeError),
    /// A member does not answer, or not with what holds.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The groups cannot be read, or the settlement cluster has forked.
    #[error(transparent)]
    Groups(#[from] GroupsError),
    /// A quorum of the settlement cluster certified what no honest one sends.
    #[error("group {group} of the settlement cluster is impossible: {fault}")]
    Impossible {
        /// Its number.
        group: u64,
        /// The defect.
        fault: LedgerFault,
    },
    /// A committee other than the stored one was installed in its epoch.
    #[error("the ledger has installed another committee in epoch {0} than this authority has taken up")]
    OtherCommittee(Epoch),
    /// An installation is missing.
    #[error("the ledger installs epoch {found} after epoch {after}")]
    NotNext {
        /// The epoch before.
        after: Epoch,
        /// The epoch.
        found: Epoch,
    },
}

/// What is wrong with a certified group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerFault {
    /// An event is missing or repeated.
    #[error("event {found} comes after event {after}")]
    Index {
        /// The event before.
        after: TransactionIndex,
        /// The event.
        found: TransactionIndex,
    },
    /// A message that is no event, or an event of another committee.
    #[error("a message is no event of this committee")]
    Foreign,
    /// Nothing is deposited, or by nobody.
    #[error("event {0} deposits nothing, or for nobody")]
    Deposit(TransactionIndex),
    /// Its time is before that of an earlier group.
    #[error("its time is before that of the group before")]
    Time,
}

impl LedgerError {
    /// Whether trying again later may succeed, without an operator.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Client(_) | Self::Groups(GroupsError::Unreachable { .. }))
    }
}

impl LedgerDeployment {
    /// Reads the ledger's file. No member is asked.
    ///
    /// # Errors
    /// See [`LedgerError`].
    pub fn read(config: &LedgerConfig) -> Result<Self, LedgerError> {
        Ok(Self::of(CommitteeClient::open(&config.file, config.committee)?))
    }

    /// The committee that this client reads.
    #[must_use]
    pub fn of(ledger: CommitteeClient) -> Self {
        Self { ledger: Arc::new(ledger) }
    }

    /// The committee on it.
    #[must_use]
    pub fn ledger(&self) -> &CommitteeClient {
        &self.ledger
    }
}

/// Events of groups that follow each other, and where the next part begins.
#[derive(Debug)]
pub struct LedgerEvents {
    /// The events, in the order of their indices.
    pub events: Vec<CommitteeEvent>,
    /// The position after the groups.
    pub cursor: Cursor,
    /// Whether the position is before the head.
    pub has_more: bool,
    /// The time at the position.
    pub time: ChainTime,
}

/// An installation, as a group tells it.
#[derive(Clone, Debug)]
struct Installed {
    committee: Committee,
    compromised_since: Epoch,
    /// The end of the epoch before.
    end: EpochEnd,
}

/// The newest group in the state that was read last.
#[derive(Clone, Copy)]
struct Head {
    number: u64,
    /// Its time, in seconds since 1970.
    time: u64,
    asked_at: Instant,
}

/// Reads the groups for one committee.
pub struct LedgerSource {
    reader: GroupReader,
    ledger: Arc<CommitteeClient>,
    /// In seconds.
    unlock_window: u64,
    /// The head, once it is known.
    head: Option<Head>,
    /// What the newest batch installs, in order.
    installed: Vec<Installed>,
}

impl LedgerSource {
    /// A source of this committee's events.
    ///
    /// # Errors
    /// [`LedgerError::Client`].
    pub fn new(ledger: &LedgerDeployment) -> Result<Self, LedgerError> {
        let ledger = &ledger.ledger;
        let reader = GroupReader::new(ledger.client(), Receiver::Committee(ledger.number()))?;
        let unlock_window = ledger.parameters().unlock_window_ms / 1_000;
        let (ledger, head, installed) = (ledger.clone(), None, Vec::new());
        Ok(Self { reader, ledger, unlock_window, head, installed })
    }

    /// The position before the first group.
    #[must_use]
    pub fn start() -> Cursor {
        position(Due::default(), TransactionIndex(0))
    }

    pub(super) async fn next(&mut self, cursor: &Cursor, time: ChainTime) -> Result<Batch, LedgerError> {
        let LedgerEvents { events, cursor, has_more, time } = self.next_events(cursor, time).await?;
        self.installed.clear();
        // The window of a request begins when this authority reads it, not when it was made: while it was away, nobody
        // could bring a certificate here, or have an order upheld without it.
        let read_at = self.head.map_or(time.block_time, |head| head.time.max(time.block_time));
        let voidable_at = read_at.saturating_add(time.unlock_window);
        let events = events.iter().map(|event| self.event(event, voidable_at)).collect();
        Ok(Batch { events, cursor, newest: cursor.block_number, has_more, time })
    }

    /// The events after `cursor`, at whose position the time is `time`: certified, without gap, and possible.
    ///
    /// # Errors
    /// [`LedgerError::Groups`], [`LedgerError::Impossible`]; [`LedgerError::Client`] if the head was never known, or
    /// there are none and it is not known whether that is the head.
    pub async fn next_events(&mut self, cursor: &Cursor, time: ChainTime) -> Result<LedgerEvents, LedgerError> {
        let next = cursor.block_number.saturating_add(1);
        let groups = self.reader.next(Due { next, previous: cursor.block_hash }).await?;
        let mut events = Vec::new();
        let (mut cursor, mut time) = (*cursor, ChainTime { unlock_window: self.unlock_window, ..time });
        for group in &groups {
            let number = group.group().number;
            let last = self.read(group, cursor.last_index, &mut time, &mut events);
            let last = last.map_err(|fault| LedgerError::Impossible { group: number, fault })?;
            cursor = position(group.cursor(), last);
        }
        let has_more = match self.is_before_head(cursor.block_number).await {
            Err(error) if groups.is_empty() || self.head.is_none() => return Err(error.into()),
            is_before_head => is_before_head.unwrap_or(true),
        };
        Ok(LedgerEvents { events, cursor, has_more, time })
    }

    /// Whether the cluster had sent a group after this one lately, by a state that f + 1 members show. No clock tells,
    /// and a member that lags or lies cannot show the last group that it has for the newest.
    async fn is_before_head(&mut self, number: u64) -> Result<bool, ClientError> {
        let head = match self.head {
            Some(head) if head.asked_at.elapsed() <= HEAD_AGE_MAX => head,
            _ => {
                let asked_at = Instant::now();
                let (number, time) = self.ledger.newest_group().await?;
                *self.head.insert(Head { number, time: time.0 / 1_000, asked_at })
            }
        };
        Ok(number < head.number)
    }

    /// The committees up to the newest group, from all groups. `first` is that of epoch 0.
    ///
    /// # Errors
    /// See [`LedgerError`].
    pub async fn all_committees(&mut self, first: Committees) -> Result<Committees, LedgerError> {
        let (mut committees, mut cursor, mut time) = (first, Self::start(), ChainTime::default());
        loop {
            let batch = self.next(&cursor, time).await?;
            committees = self.committees(committees)?;
            (cursor, time) = (batch.cursor, batch.time);
            if !batch.has_more {
                return Ok(committees);
            }
        }
    }

    /// Adds a group's events, and gives the index of the newest.
    fn read(
        &self,
        group: &VerifiedGroup,
        mut last: TransactionIndex,
        time: &mut ChainTime,
        events: &mut Vec<CommitteeEvent>,
    ) -> Result<TransactionIndex, LedgerFault> {
        let now = group.time().0 / 1_000;
        if now < time.block_time {
            return Err(LedgerFault::Time);
        }
        time.block_time = now;
        for message in &group.group().messages {
            let Message::Event(event) = message else { return Err(LedgerFault::Foreign) };
            if last.next() != Some(event.index) {
                return Err(LedgerFault::Index { after: last, found: event.index });
            }
            last = event.index;
            if let EventKind::Funded(funding) = &event.kind {
                if funding.committee != self.ledger.number() {
                    return Err(LedgerFault::Foreign);
                }
                if funding.amount == Amount::ZERO || funding.account == AccountId::ZERO {
                    return Err(LedgerFault::Deposit(last));
                }
            }
            events.push(event.clone());
        }
        Ok(last)
    }

    /// What an event is to the shards. A number that it asks about or opens again can be voided from `voidable_at` on.
    fn event(&mut self, event: &CommitteeEvent, voidable_at: u64) -> ShardEvent {
        let index = event.index;
        let unlock = |account, sequence, kind| ShardEvent::Unlock { index, account, sequence, kind };
        match &event.kind {
            EventKind::Funded(funding) => {
                let (recipient, asset, amount) = (funding.account, funding.asset, funding.amount);
                ShardEvent::Deposit(Deposit { index, recipient, asset, amount })
            }
            EventKind::Redeemed { redemption, .. } => {
                let digest = self.ledger.domain().transfer_digest(&redemption.clone().into());
                unlock(redemption.sender, redemption.sequence, UnlockEventKind::Spent(digest))
            }
            // The ledger has checked that the account's owner signed it.
            EventKind::UnlockRequested { account, sequence, .. } => {
                unlock(*account, *sequence, UnlockEventKind::Requested(voidable_at))
            }
            EventKind::Upheld { account, sequence, digest } => {
                unlock(*account, *sequence, UnlockEventKind::Upheld(*digest))
            }
            EventKind::Voided { account, sequence } => unlock(*account, *sequence, UnlockEventKind::Voided),
            EventKind::Installed { committee, previous_counts_until, compromised_since, .. } => {
                let (epoch, compromised_since) = (committee.epoch(), *compromised_since);
                let until = previous_counts_until.unwrap_or_default().0 / 1_000;
                let end = EpochEnd::new(until, self.unlock_window);
                self.installed.push(Installed { committee: committee.clone(), compromised_since, end });
                ShardEvent::Installation(Installation { after: index, index, epoch, compromised_since, voidable_at })
            }
        }
    }

    /// The committees with those that the newest batch installs. After a crash some of them may be known.
    pub(super) fn committees(&self, mut committees: Committees) -> Result<Committees, LedgerError> {
        for Installed { committee, compromised_since, end } in &self.installed {
            let epoch = committee.epoch();
            if let Some(known) = committees.get(epoch) {
                if **known != *committee {
                    return Err(LedgerError::OtherCommittee(epoch));
                }
                continue;
            }
            let after = committees.current().epoch();
            committees.install(committee.clone()).map_err(|_| LedgerError::NotNext { after, found: epoch })?;
            committees.note_end(after, *end);
            if *compromised_since < epoch {
                end_compromised(&mut committees, *compromised_since);
            }
        }
        Ok(committees)
    }
}

/// The position before a group that is due.
fn position(due: Due, last_index: TransactionIndex) -> Cursor {
    Cursor { block_number: due.next.saturating_sub(1), block_hash: due.previous, last_index }
}

/// Notes an installation that says that keys of earlier epochs were out: they end at once, and nothing is executed
/// before a checkpoint is adopted.
fn end_compromised(committees: &mut Committees, since: Epoch) {
    let epoch = committees.current().epoch();
    let ended: Vec<_> = committees.iter().map(|committee| committee.epoch()).filter(|ended| *ended >= since).collect();
    ended.into_iter().filter(|ended| *ended < epoch).for_each(|ended| committees.note_end(ended, EpochEnd::default()));
    committees.recover(Recovery { epoch, adopted: None }).expect("the epoch is the current one, after the first");
}

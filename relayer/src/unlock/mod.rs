//! Numbers that their owners asked the contract to unlock (docs/PROTOCOL.md, "Unlocking"): what the authorities sign about
//! them is brought to the contract, and so are the requests of owners who have no ETH.
//!
//! ```text
//!  POST /v1/unlocks ─► desk: signed by the owner? ─► check: stuck? ─► budget of the day ─► requestUnlock ─┐
//!                                                                                                       ▼
//!                          uphold, void ◄─ budget ◄─ decide: ask all authorities ◄─ watch: the contract's final events
//! ```
//! `desk` has the port, `check` what is asked before a request is paid for, `watch` the contract's order, `decide` the
//! authorities, and `send` the transactions. Questions to others run beside the relayer's rounds and hold up no
//! redemption.

mod check;
mod decide;
mod desk;
mod send;
mod watch;

use std::collections::BTreeSet;

use alloy::primitives::{B256, U256};
use fastpay_client::CommitteeClient;
use fastpay_core::{AccountId, SequenceNumber};
use fastpay_ethereum::{Cursor, DepositReader, Primary, RANGE_BLOCKS_DEFAULT};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::relayer::{Relayer, RelayerError, wait_or_stop};
use crate::submit::wait_or_stop_sending;
use check::Checked;
use decide::Decided;
pub(crate) use desk::router;
use desk::{ASKED_MAX, Ask};
pub use desk::{Refusal, RefusalCode, Taken, UnlockDesk};

/// The maximum number of simultaneous requests to authorities and nodes.
const JOBS_MAX: usize = 16;
const DAY_MS: u64 = 86_400_000;

/// An account, and a number of its orders.
pub(crate) type Number = (AccountId, SequenceNumber);

/// The state that survives a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unlocks {
    /// How far the contract's order was read; none before the first read.
    pub cursor: Option<Cursor>,
    /// The numbers that are undecided in final blocks, in the order of the requests.
    pub open: Vec<OpenUnlock>,
    /// The day that `spent_wei` is about, counted from 1970-01-01 in UTC.
    pub day: u64,
    /// The amount spent on that day in wei: bonds of requests, and gas beyond returned bonds.
    pub spent_wei: U256,
}

/// A number that its owner asked the contract to unlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenUnlock {
    /// The account.
    pub account: AccountId,
    /// The number.
    pub sequence: SequenceNumber,
    /// A quorum can void it from then on, in seconds since 1970.
    pub voidable_from: u64,
    /// Whether this relayer's bond is with the contract.
    pub is_ours: bool,
    /// How often the authorities were asked.
    pub tries: u32,
    /// When they are asked next, in milliseconds since 1970.
    pub next_at_ms: u64,
    /// The event that it waits for.
    pub waits_for: String,
}

/// A transaction about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnlockStep {
    /// The account.
    pub account: AccountId,
    /// The number.
    pub sequence: SequenceNumber,
    /// The kind of transaction.
    pub kind: UnlockStepKind,
}

/// The kinds of transactions about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnlockStepKind {
    /// It brings the owner's request.
    Request,
    /// It upholds an order.
    Uphold,
    /// It voids the number.
    Void,
}

impl OpenUnlock {
    pub(crate) fn number(&self) -> Number {
        (self.account, self.sequence)
    }
}

impl UnlockStep {
    fn number(&self) -> Number {
        (self.account, self.sequence)
    }
}

impl Unlocks {
    pub(crate) fn position(&self, number: Number) -> Option<usize> {
        self.open.iter().position(|open| open.number() == number)
    }

    /// The rest of today's budget in wei. Setting the clock back does not renew the budget.
    pub(crate) fn left(&self, budget: U256, now_ms: u64) -> U256 {
        if now_ms / DAY_MS > self.day { budget } else { budget.saturating_sub(self.spent_wei) }
    }

    fn charge(&mut self, wei: U256, now_ms: u64) {
        let today = now_ms / DAY_MS;
        if today > self.day {
            (self.day, self.spent_wei) = (today, U256::ZERO);
        }
        self.spent_wei = self.spent_wei.saturating_add(wei);
    }

    /// When there is a budget again, in milliseconds since 1970.
    fn again_at_ms(&self, now_ms: u64) -> u64 {
        self.day.max(now_ms / DAY_MS).saturating_add(1).saturating_mul(DAY_MS)
    }
}

/// The state that need not survive a restart.
#[derive(Debug)]
pub(crate) struct Unlocking {
    reader: DepositReader,
    /// Numbers about which the authorities are being asked.
    asking: BTreeSet<Number>,
    jobs: JoinSet<Done>,
    desk: mpsc::Sender<Ask>,
    asked: mpsc::Receiver<Ask>,
}

/// The end of a question to others.
#[derive(Debug)]
enum Done {
    Decided(Decided),
    Checked(Checked),
}

impl Unlocking {
    pub(crate) fn new(primary: Primary) -> Self {
        let (desk, asked) = mpsc::channel(ASKED_MAX);
        let reader = DepositReader::new(primary, RANGE_BLOCKS_DEFAULT);
        Self { reader, asking: BTreeSet::new(), jobs: JoinSet::new(), desk, asked }
    }
}

impl Relayer {
    /// Takes owners' requests; `None` if the operator spends nothing on that.
    #[must_use]
    pub fn unlock_desk(&self) -> Option<UnlockDesk> {
        let is_open = !self.config.unlock.daily_budget_wei.is_zero();
        is_open.then(|| UnlockDesk::new(self.sender.primary().domain(), self.unlocking.desk.clone()))
    }

    /// One round: reads the contract's order, and takes the next step of each number and request.
    ///
    /// # Errors
    /// See [`RelayerError`].
    pub async fn unlock_round(&mut self) -> Result<(), RelayerError> {
        if self.config.unlock.daily_budget_wei.is_zero() || !self.is_identified().await? {
            return Ok(());
        }
        match self.unlock_all().await {
            Err(RelayerError::Primary(error)) => wait_or_stop(error)?,
            Err(RelayerError::Send(error)) => wait_or_stop_sending(error)?,
            outcome => outcome?,
        }
        self.metrics.observe_unlocks(&self.state, self.config.unlock.daily_budget_wei, self.clock.now_ms());
        self.save()
    }

    async fn unlock_all(&mut self) -> Result<(), RelayerError> {
        // Before anything is sent: a number whose transaction is final and forgotten is known from here on.
        let is_caught_up = self.read_requests().await?;
        self.save()?;
        while let Some(done) = self.unlocking.jobs.try_join_next() {
            match done {
                Ok(Done::Decided(decided)) => self.bring_decision(decided).await?,
                Ok(Done::Checked(checked)) => self.bring_request(checked).await?,
                Err(error) => {
                    tracing::error!(%error, "a question about a number failed");
                    self.unlocking.asking.clear();
                }
            }
        }
        self.ask_authorities().await?;
        if is_caught_up {
            self.take_asked().await?;
        }
        Ok(())
    }

    /// The transaction about a number that is not final yet.
    fn step_under_way(&self, of: impl Fn(&UnlockStep) -> bool) -> Option<(UnlockStep, B256)> {
        self.state.bundles.iter().find_map(|bundle| {
            let step = bundle.unlock.filter(&of)?;
            Some((step, bundle.submission.attempts.last().map(|attempt| attempt.hash).unwrap_or_default()))
        })
    }

    /// A client of the authorities under the newest committee; `None` if there are too few, or they are not known.
    async fn committee_client(&mut self) -> Result<Option<CommitteeClient>, RelayerError> {
        self.follow_committees().await?;
        let Some(committees) = &self.committees else { return Ok(None) };
        Ok(self.voters.client(&self.sender.primary().domain(), committees))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_of_a_day_and_a_clock_that_was_set_back_gives_none_anew() {
        let (budget, day) = (U256::from(100), 20_000 * DAY_MS);
        let mut unlocks = Unlocks::default();
        assert_eq!(unlocks.left(budget, day), budget);
        unlocks.charge(U256::from(70), day + 5);
        assert_eq!(unlocks.left(budget, day + 6), U256::from(30));
        assert_eq!(unlocks.left(budget, day - DAY_MS), U256::from(30));
        assert_eq!(unlocks.again_at_ms(day - DAY_MS), day + DAY_MS);
        unlocks.charge(U256::from(50), day + 7);
        assert_eq!((unlocks.left(budget, day + 8), unlocks.spent_wei), (U256::ZERO, U256::from(120)));
        assert_eq!(unlocks.left(budget, day + DAY_MS), budget);
        unlocks.charge(U256::from(1), day + DAY_MS);
        assert_eq!((unlocks.spent_wei, unlocks.day), (U256::from(1), 20_001));
        // It survives on disk.
        let text = serde_json::to_string(&unlocks).unwrap();
        assert_eq!(serde_json::from_str::<Unlocks>(&text).unwrap(), unlocks);
    }
}

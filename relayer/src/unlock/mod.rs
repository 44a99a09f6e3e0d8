//! Unlocking of numbers at their owners' request (docs/PROTOCOL.md, "Unlocking"): submits the authorities' votes about
//! them to the contract, and the requests of owners who have no ETH.
//!
//! ```text
//!  POST /v1/unlocks ─► desk: signed by the owner? ─► check: stuck? ─► budget of the day ─► requestUnlock ─┐
//!                                                                                                       ▼
//!                          uphold, void ◄─ budget ◄─ decide: ask all authorities ◄─ watch: the contract's final events
//! ```
//! `desk` is the port, `check` decides before a request is paid for, `watch` reads the contract's events, `decide` asks
//! the authorities, and `send` makes the transactions. Questions to others run beside the relayer's rounds and delay no
//! redemption.

mod check;
mod decide;
mod desk;
mod places;
mod send;
mod watch;

use std::collections::BTreeSet;

use alloy::primitives::B256;
use fastpay_client::CommitteeClient;
use fastpay_ethereum::{DepositReader, Primary, RANGE_BLOCKS_DEFAULT};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};
use crate::unlocks::{Number, OpenUnlock, UnlockStep, UnlockStepKind};
use check::Checked;
use decide::Decided;
pub(crate) use desk::router;
use desk::{ASKED_MAX, Ask};
pub use desk::{Refusal, RefusalCode, Taken, UnlockDesk};

/// The maximum number of simultaneous requests to authorities and nodes.
const JOBS_MAX: usize = 16;

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

/// The result of a question to others.
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
    /// The desk for owners' requests; `None` if the operator's budget for them is zero.
    #[must_use]
    pub fn unlock_desk(&self) -> Option<UnlockDesk> {
        let is_open = !self.config.unlock.daily_budget_wei.is_zero();
        is_open.then(|| UnlockDesk::new(self.domain, self.primary.unlocking.desk.clone()))
    }

    /// Runs one round: reads the contract's events, and takes the next step of each number and request.
    ///
    /// # Errors
    /// See [`RelayerError`].
    pub async fn unlock_round(&mut self) -> Result<(), RelayerError> {
        if self.config.unlock.daily_budget_wei.is_zero() || !self.is_identified().await? {
            return Ok(());
        }
        self.unlock_all().await.or_else(wait_if_it_passes)?;
        self.metrics.observe_unlocks(&self.state, self.config.unlock.daily_budget_wei, self.clock.now_ms());
        self.save()
    }

    async fn unlock_all(&mut self) -> Result<(), RelayerError> {
        // Read before sending: this finds every number whose transaction is final and was removed.
        let is_caught_up = self.read_requests().await?;
        self.save()?;
        while let Some(done) = self.primary.unlocking.jobs.try_join_next() {
            match done {
                Ok(Done::Decided(decided)) => self.bring_decision(decided).await?,
                Ok(Done::Checked(checked)) => self.bring_request(checked).await?,
                Err(error) => {
                    tracing::error!(%error, "asking about a number failed");
                    self.primary.unlocking.asking.clear();
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

    /// A client of the authorities under the newest committee; `None` if they are unknown or fewer than a quorum.
    async fn committee_client(&mut self) -> Result<Option<CommitteeClient>, RelayerError> {
        self.follow_committees().await?;
        let Some(committees) = &self.committees else { return Ok(None) };
        let client = self.voters.client(&self.domain, committees).await;
        if let Some(network) = client.as_ref().map(CommitteeClient::network)
            && network.certifying().len() == 1
        {
            // Its checkpoints prove that a number was executed.
            match self.primary.epochs.closing(committees).await {
                Ok(Some(closing)) => {
                    network.count_closing(closing);
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "whether the committee before counts cannot be told now"),
            }
        }
        Ok(client)
    }
}

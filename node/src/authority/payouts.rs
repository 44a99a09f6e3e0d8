//! Finds redemptions that are certified here and that the Primary has not taken, so that an operator notices them before
//! users complain, with or without a relayer.
//!
//! ```text
//!  redemption log of each shard ─► the Primary's state of each ─► those that wait, and since when ─► page, API, metrics, a file
//! ```
//! A contract is read in its final block; of a ledger, the newest certified state that f + 1 members show. The protocol
//! does not depend on it. The file saves asking the Primary about the whole redemption log again, and keeps since when
//! each redemption waits; without it, they count as waiting since they were first seen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{AccountId, Certificate, Digest, Domain, Redemption, SequenceNumber, TransactionIndex, Transfer};
use fastpay_ethereum::{BlockHead, Primary, PrimaryError};
use fastpay_ledger_client::{ClientError, CommitteeClient, oldest_state};
use fastpay_program::{files, until_stopped};
use fastpay_rpc::json::{self, Decimal, Hex, WaitingRedemption, WaitingRedemptions};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, watch};

use crate::authority::metrics::{Metrics, now_seconds};
use crate::authority::network::{Range, ReadError, Reads};
use crate::authority::shard::{HistoryReader, ShardHandle};
use crate::authority::voter_status::VoterStatusWatch;

/// The interval between reads of the Primary. A contract's payments take minutes to become final.
const INTERVAL: Duration = Duration::from_secs(10);
/// The maximum number of a shard's redemptions that are kept and checked at a time; further ones are only counted.
const WAITING_PER_SHARD_MAX: usize = 256;

/// The waiting redemptions; none before the Primary was first read.
pub type WaitingSeen = watch::Receiver<Option<Arc<WaitingRedemptions>>>;

/// What pays redemptions.
pub enum Payer {
    /// A contract on Ethereum.
    Contract(Box<Primary>),
    /// A committee on a ledger.
    Ledger(Box<CommitteeClient>),
}

/// A state of a [`Payer`].
enum Snapshot<'a> {
    /// The final block.
    Block(&'a Primary, BlockHead),
    /// The newest event of the committee. What is read after it may be newer.
    Event(&'a CommitteeClient, TransactionIndex),
}

impl From<Primary> for Payer {
    fn from(primary: Primary) -> Self {
        Self::Contract(Box::new(primary))
    }
}

impl From<CommitteeClient> for Payer {
    fn from(ledger: CommitteeClient) -> Self {
        Self::Ledger(Box::new(ledger))
    }
}

impl Payer {
    fn domain(&self) -> Domain {
        match self {
            Self::Contract(primary) => primary.domain(),
            Self::Ledger(ledger) => ledger.domain(),
        }
    }

    async fn newest(&self) -> Result<Snapshot<'_>, StepError> {
        Ok(match self {
            Self::Contract(primary) => Snapshot::Block(primary, primary.final_head().await?),
            Self::Ledger(ledger) => Snapshot::Event(ledger, ledger.newest_event(oldest_state()).await?),
        })
    }
}

impl Snapshot<'_> {
    /// The number of the block or the event.
    fn number(&self) -> u64 {
        match self {
            Self::Block(_, head) => head.number(),
            Self::Event(_, index) => index.0,
        }
    }

    /// What tells this state from all others. Members of a ledger answer each question from a state of their own, so what
    /// one question finds unpaid may be paid in the state of another one.
    fn identity(&self) -> Option<(u64, Digest)> {
        match self {
            Self::Block(_, head) => Some((head.number(), Digest::from(head.hash.0))),
            Self::Event(..) => None,
        }
    }

    /// Whether the redemption of a number was paid, or put into a contract's queue.
    async fn has_taken(&self, sender: AccountId, sequence: SequenceNumber) -> Result<bool, StepError> {
        Ok(match self {
            Self::Block(primary, block) => primary.is_redeemed_in(block, sender, sequence).await?,
            Self::Event(ledger, _) => ledger.spent(sender, sequence, oldest_state()).await?.is_some(),
        })
    }
}

/// Why the Primary cannot be compared with the redemption logs now.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    #[error(transparent)]
    Ledger(#[from] ClientError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A redemption that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    redemption: json::Transfer,
    since: u64,
}

/// The waiting redemptions of one shard's log. The Primary has taken all entries below `next` that are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Queue {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
}

/// Compares the redemption logs with the Primary until it is stopped.
pub struct Payouts {
    payer: Payer,
    domain: Domain,
    voter_status: VoterStatusWatch,
    shards: Vec<Reads>,
    queues: Vec<Queue>,
    /// The final block in which all listed redemptions were checked.
    asked_at: Option<(u64, Digest)>,
    file: PathBuf,
    metrics: Arc<Metrics>,
    seen: watch::Sender<Option<Arc<WaitingRedemptions>>>,
}

impl Payouts {
    /// Begins with these shards, in order, and with the state that an earlier run left in `file`.
    #[must_use]
    pub fn new(
        payer: Payer,
        voter_status: VoterStatusWatch,
        shards: &[(ShardHandle, HistoryReader)],
        file: PathBuf,
        metrics: Arc<Metrics>,
    ) -> (Self, WaitingSeen) {
        let turn = Arc::new(Semaphore::new(1));
        let reads = shards.iter().map(|(shard, history)| Reads::new(shard.clone(), history.clone(), turn.clone()));
        let stored = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let stored = stored.filter(|queues: &Vec<Queue>| queues.len() == shards.len());
        let queues = stored.unwrap_or_else(|| vec![Queue::default(); shards.len()]);
        let (seen, waiting) = watch::channel(None);
        let (domain, shards) = (payer.domain(), reads.collect());
        (Self { payer, domain, voter_status, shards, queues, asked_at: None, file, metrics, seen }, waiting)
    }

    /// Runs until `stop` turns true.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        until_stopped(stop, self.compare_for_ever()).await;
    }

    async fn compare_for_ever(&mut self) {
        loop {
            match self.step().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "the waiting redemptions are not available now"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Reads new entries of the redemption logs, removes those that the Primary has taken, and publishes the rest.
    /// True if there is more to compare at once.
    async fn step(&mut self) -> Result<bool, StepError> {
        let newest = self.payer.newest().await?;
        // If this step fails, the next one checks all redemptions again.
        let asked_at = self.asked_at.take();
        let votes_max = self.voter_status.borrow().quorum_max();
        let (mut beyond, mut changed, mut more) = (0, false, false);
        for (reads, queue) in self.shards.iter().zip(&mut self.queues) {
            let ledger = reads.ledger().await?;
            let total = ledger.redemptions.count();
            if queue.next > total {
                // The queue is from another state of the folder.
                *queue = Queue::default();
            }
            let before = queue.clone();
            while queue.next < total && queue.waiting.len() < WAITING_PER_SHARD_MAX {
                let room = u32::try_from(WAITING_PER_SHARD_MAX - queue.waiting.len()).unwrap_or(u32::MAX);
                let range = Range { start: queue.next, limit: room };
                let page = match reads.redemption_certificates(&ledger, range, votes_max).await {
                    // The Primary had paid what is pruned, and what it had not is in the log again.
                    Err(ReadError::Pruned(pruned)) => {
                        *queue = Queue { next: pruned.first, waiting: BTreeMap::new() };
                        continue;
                    }
                    page => page?,
                };
                if page.is_empty() {
                    break;
                }
                page.iter().for_each(|certificate| queue.push(certificate));
            }
            if asked_at.is_none() || asked_at != newest.identity() || *queue != before {
                queue.drop_paid(&newest).await?;
            }
            changed |= *queue != before;
            more |= queue.next < total && queue.waiting.len() < WAITING_PER_SHARD_MAX;
            beyond += total.saturating_sub(queue.next);
        }
        if changed {
            self.store();
        }
        self.publish(newest.number(), beyond);
        self.asked_at = newest.identity();
        Ok(more)
    }

    fn publish(&self, head: u64, beyond: u64) {
        let entries = (0..).zip(&self.queues).flat_map(|(shard, queue)| {
            queue.waiting.iter().map(move |(number, waiting)| (shard, *number, waiting.clone()))
        });
        let mut redemptions: Vec<_> = entries
            .map(|(shard, number, Waiting { redemption, since })| WaitingRedemption {
                shard,
                number: Decimal(number),
                digest: Hex(self.domain.transfer_digest(&redemption.clone().into()).0),
                redemption,
                since: Decimal(since),
            })
            .collect();
        redemptions.sort_by_key(|waiting| waiting.since.0);
        let oldest = redemptions.first().map(|waiting| waiting.since.0);
        let count = beyond.saturating_add(redemptions.len() as u64);
        self.metrics.authority.observe_waiting(count, oldest);
        let block = Decimal(head);
        self.seen.send_replace(Some(Arc::new(WaitingRedemptions { block, redemptions, beyond: Decimal(beyond) })));
    }

    fn store(&self) {
        let written = serde_json::to_vec(&self.queues).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|bytes| files::replace(&self.file, &bytes)) {
            // This only costs requests at the next start.
            tracing::warn!(%error, file = %self.file.display(), "cannot store the waiting redemptions");
        }
    }
}

impl Queue {
    /// Adds the next entry of the redemption log.
    fn push(&mut self, certificate: &Certificate) {
        let redemption = json::Transfer::from(&certificate.order.transfer);
        let since = u64::try_from(now_seconds()).unwrap_or_default();
        self.waiting.insert(self.next, Waiting { redemption, since });
        self.next += 1;
    }

    /// Removes the redemptions that the Primary has paid, or put into its own queue, in this state.
    async fn drop_paid(&mut self, newest: &Snapshot<'_>) -> Result<(), StepError> {
        let mut paid = Vec::new();
        for (number, waiting) in &self.waiting {
            let taken = match Transfer::from(waiting.redemption.clone()) {
                Transfer::Redemption(Redemption { sender, sequence, .. }) => newest.has_taken(sender, sequence).await?,
                // Only an edited file lists such a transfer.
                Transfer::Payment(_) | Transfer::Payout(_) => true,
            };
            if taken {
                paid.push(*number);
            }
        }
        self.waiting.retain(|number, _| !paid.contains(number));
        Ok(())
    }
}

//! Watches for committees that are announced, so that operators notice one that is not theirs.
//!
//! ```text
//!  blocks that became final ─► committees announced in them ─┐
//!                                                            ├─► those that can still be installed ─► log, metrics, page
//!  a ledger's certified state ───────────────────────────────┘
//! ```
//! A thief with a quorum's keys can announce a committee of its own. The contract, or the ledger, then waits for two
//! weeks, so that the operators can install theirs first. The protocol does not depend on this watch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{Digest, Epoch};
use fastpay_ethereum::{Primary, PrimaryError, RANGE_BLOCKS_DEFAULT};
use fastpay_ledger_client::{ClientError, CommitteeClient, oldest_state};
use fastpay_program::{Clock, until_stopped};
use tokio::sync::watch;

use crate::authority::metrics::Metrics;

/// The interval between reads of the contract, or of the ledger.
const INTERVAL: Duration = Duration::from_secs(10);
/// How far back a start reads: 45 days of 12 seconds a block. A recovery lapses 44 days after its announcement, any
/// other announcement after 28.
const BLOCKS_READ_AT_START: u64 = 45 * 7_200;

/// The most announcements that are kept; each costs requests. A liar among the Ethereum nodes can invent any number.
const KEPT_MAX: usize = 256;

/// An announced committee that can still be installed.
struct Open {
    id: Digest,
    /// The epoch that it would begin.
    epoch: Epoch,
    /// In seconds since 1970.
    installable_at: u64,
    is_recovery: bool,
}

/// Where committees are announced.
enum Place {
    Contract(Box<Contract>),
    Ledger(Box<CommitteeClient>),
}

/// Watches one contract, or a committee on a ledger, until it is stopped.
pub struct Announcements {
    place: Place,
    /// Those of the open announcements that were logged.
    logged: BTreeSet<Digest>,
    metrics: Arc<Metrics>,
}

impl Announcements {
    /// A watch on this contract.
    #[must_use]
    pub fn new(primary: Primary, metrics: Arc<Metrics>) -> Self {
        let contract = Contract { primary, next_block: None, announced: BTreeSet::new() };
        Self { place: Place::Contract(Box::new(contract)), logged: BTreeSet::new(), metrics }
    }

    /// A watch on this committee of a ledger.
    #[must_use]
    pub fn on_ledger(committee: CommitteeClient, metrics: Arc<Metrics>) -> Self {
        Self { place: Place::Ledger(Box::new(committee)), logged: BTreeSet::new(), metrics }
    }

    /// Runs until `stop` turns true.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        until_stopped(stop, self.watch()).await;
    }

    async fn watch(&mut self) {
        loop {
            let open = match &mut self.place {
                Place::Contract(contract) => {
                    contract.open().await.map(|open| (open, 0)).map_err(|error| error.to_string())
                }
                Place::Ledger(committee) => open_on(committee).await.map_err(|error| error.to_string()),
            };
            match open {
                Ok((open, further)) => self.show(&open, further),
                Err(error) => tracing::debug!(%error, "which committees are announced is not known just now"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Shows what is announced, and that there are so many more.
    fn show(&mut self, open: &[Open], further: u64) {
        self.logged.retain(|id| open.iter().any(|open| open.id == *id));
        for Open { id, epoch, installable_at, is_recovery } in open {
            if self.logged.insert(*id) {
                tracing::warn!(%id, epoch = epoch.0, installable_at, is_recovery, "a committee is announced; if its operators are not the present ones or agreed on by them, act before it can be installed");
            }
        }
        let installable_at = open.iter().map(|open| open.installable_at).min();
        let count = (open.len() as u64).saturating_add(further);
        self.metrics.authority.observe_announcements(count, installable_at);
    }
}

/// The announcements on a ledger that can still be installed: the oldest, and how many more there are.
async fn open_on(committee: &CommitteeClient) -> Result<(Vec<Open>, u64), ClientError> {
    let now = Clock::system().now_ms();
    let announced = committee.announcements(oldest_state()).await?;
    let parameters = committee.parameters();
    let open = announced.first.iter().filter(|(_, announced)| announced.lapses_at(parameters).0 >= now);
    let open = open.map(|(id, announced)| Open {
        id: *id,
        epoch: announced.next.committee.epoch(),
        installable_at: announced.installable_at(parameters).0.div_ceil(1_000),
        is_recovery: false,
    });
    Ok((open.collect(), announced.further))
}

/// What is read of a contract.
struct Contract {
    primary: Primary,
    /// The first block that was not read yet; `None` before the first read.
    next_block: Option<u64>,
    /// The announced committees that have not ended yet.
    announced: BTreeSet<Digest>,
}

impl Contract {
    /// Reads the blocks that became final, and gives those of all known announcements that can still be installed.
    async fn open(&mut self) -> Result<Vec<Open>, PrimaryError> {
        let head = self.primary.final_head().await?;
        let mut next = match self.next_block {
            Some(next) => next,
            None => {
                let oldest = head.number().saturating_sub(BLOCKS_READ_AT_START);
                self.primary.deployment_block().await?.max(oldest)
            }
        };
        while next <= head.number() {
            let last = next.saturating_add(RANGE_BLOCKS_DEFAULT - 1).min(head.number());
            let announced = self.primary.announcements(next, last).await?;
            let room = KEPT_MAX.saturating_sub(self.announced.len());
            self.announced.extend(announced.into_keys().take(room));
            next = last.saturating_add(1);
            self.next_block = Some(next);
        }
        self.check(head.timestamp()).await
    }

    /// Forgets announcements that have ended, and gives the others.
    async fn check(&mut self, now: u64) -> Result<Vec<Open>, PrimaryError> {
        let mut open = Vec::new();
        if self.announced.is_empty() {
            return Ok(open);
        }
        let (epoch, sign_of_life) = (self.primary.epoch().await?, self.primary.last_sign_of_life().await?);
        for id in self.announced.clone() {
            // A node that is behind does not know it yet.
            let Some(clock) = self.primary.clock_of(id).await? else { continue };
            if clock.is_open(epoch, sign_of_life, now) {
                let (epoch, installable_at, is_recovery) = (clock.epoch, clock.installable_at, clock.is_recovery);
                open.push(Open { id, epoch, installable_at, is_recovery });
            } else {
                self.announced.remove(&id);
            }
        }
        Ok(open)
    }
}

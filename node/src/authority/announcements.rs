//! Watches for committees that are announced, so that operators notice one that is not theirs.
//!
//! ```text
//!  blocks that became final ─► committees announced in them ─► those that can still be installed ─► log, metrics, page
//! ```
//! A thief with a quorum's keys can announce a committee of its own. The contract then waits for two weeks, so that the
//! operators can install theirs first. The protocol does not depend on this watch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::Digest;
use fastpay_ethereum::{Primary, PrimaryError, RANGE_BLOCKS_DEFAULT};
use fastpay_program::until_stopped;
use tokio::sync::watch;

use crate::authority::metrics::Metrics;

/// The interval between reads of the contract.
const INTERVAL: Duration = Duration::from_secs(10);
/// How far back a start reads: 45 days of 12 seconds a block. A recovery lapses 44 days after its announcement, any
/// other announcement after 28.
const BLOCKS_READ_AT_START: u64 = 45 * 7_200;

/// The most announcements that are kept; each costs requests. A liar among the Ethereum nodes can invent any number.
const KEPT_MAX: usize = 256;

/// Watches one contract until it is stopped.
pub struct Announcements {
    primary: Primary,
    /// The first block that was not read yet; `None` before the first read.
    next_block: Option<u64>,
    /// The announced committees that have not ended yet.
    announced: BTreeSet<Digest>,
    /// Those of them that were logged.
    logged: BTreeSet<Digest>,
    metrics: Arc<Metrics>,
}

impl Announcements {
    /// A watch on this contract.
    #[must_use]
    pub fn new(primary: Primary, metrics: Arc<Metrics>) -> Self {
        Self { primary, next_block: None, announced: BTreeSet::new(), logged: BTreeSet::new(), metrics }
    }

    /// Runs until `stop` turns true.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        until_stopped(stop, self.watch()).await;
    }

    async fn watch(&mut self) {
        loop {
            if let Err(error) = self.step().await {
                tracing::debug!(%error, "which committees are announced is not known just now");
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Reads the blocks that became final, and checks all known announcements.
    async fn step(&mut self) -> Result<(), PrimaryError> {
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

    /// Forgets announcements that have ended, and shows those that can still be installed.
    async fn check(&mut self, now: u64) -> Result<(), PrimaryError> {
        let mut open = Vec::new();
        if !self.announced.is_empty() {
            let (epoch, sign_of_life) = (self.primary.epoch().await?, self.primary.last_sign_of_life().await?);
            for id in self.announced.clone() {
                // A node that is behind does not know it yet.
                let Some(clock) = self.primary.clock_of(id).await? else { continue };
                if clock.is_open(epoch, sign_of_life, now) {
                    open.push((id, clock));
                } else {
                    self.announced.remove(&id);
                    self.logged.remove(&id);
                }
            }
        }
        for (id, clock) in &open {
            if self.logged.insert(*id) {
                tracing::warn!(%id, epoch = clock.epoch.0, installable_at = clock.installable_at, is_recovery = clock.is_recovery, "a committee is announced; if its operators are not the present ones or agreed on by them, act before it can be installed");
            }
        }
        let installable_at = open.iter().map(|(_, clock)| clock.installable_at).min();
        self.metrics.authority.observe_announcements(open.len(), installable_at);
        Ok(())
    }
}

//! All configured Ethereum nodes, each read separately.

use std::time::Duration;

use fastpay_core::{Committees, CouncilStatement, Digest, Domain, Epoch, PrimaryAddress};
use fastpay_ethereum::{Clock, EpochReader, Primary, PrimaryConfig, PrimaryError};
use tokio::time::sleep;

use super::{CommitteeError, Tell};
use crate::authority::config::{Config, PrimarySection};

/// The contract accepts an announcement if its deadline is at most this far away.
const DEADLINE_MAX_S: u64 = 30 * 86_400;
/// Without a guardian an installation takes 14 days. With this delay, a committee that is announced within a week is
/// installed before the contract pays anything that stolen keys have queued. The contract asks for it where there is no
/// guardian from the beginning (docs/CONTRACT.md, Safety parameters).
const DELAY_WITHOUT_GUARDIAN_S: u64 = 21 * 86_400;
/// The clocks of two nodes' newest blocks are at most this far apart: one that lags has some blocks less.
const SPREAD_MAX_S: u64 = 300;
/// In the next block, the contract knows the hashes of fewer blocks than this before the newest one (EIP-2935).
const HASHES_KEPT: u64 = 8_191;
/// A block that is not final so long after the chain had it does not become so: a node lies, or has stopped.
const SETTLE_MAX_S: u64 = 3_600;
/// The pause between reads while a block is awaited.
const PAUSE: Duration = Duration::from_millis(500);
/// The same while a block is to become final, which takes minutes.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);
/// So many reads give a node the time to take up a block that another one has.
const READS_MAX: usize = 40;

/// The Ethereum nodes of a configuration.
pub(super) struct Nodes {
    config: PrimaryConfig,
    nodes: Vec<(String, Primary)>,
}

/// What the newest blocks of all nodes say: the least and the most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    /// The earliest of their times, in seconds since 1970. What has passed then has passed at every node.
    pub(super) earliest: u64,
    /// The latest of their times.
    pub(super) latest: u64,
    /// The lowest of their numbers.
    pub(super) lowest: u64,
    /// The highest of their numbers.
    pub(super) highest: u64,
}

impl Heads {
    /// Whether the contract knows the hash of this block no longer.
    pub(super) fn forgot(&self, block: u64) -> bool {
        block.saturating_add(HASHES_KEPT) <= self.lowest
    }
}

impl Nodes {
    /// Connects to every node: a node that does not answer cannot agree.
    pub(super) async fn connect(config: &Config) -> Result<Self, CommitteeError> {
        let config = match &config.primary {
            Some(PrimarySection::Ethereum(config)) => config.clone(),
            Some(PrimarySection::Ledger(_)) => return Err(CommitteeError::NotOnLedger("this command")),
            None => return Err(CommitteeError::NoPrimary),
        };
        let mut nodes = Vec::new();
        for url in &config.rpc_urls {
            let node = Primary::connect(PrimaryConfig { rpc_urls: vec![url.clone()], ..config.clone() }).await?;
            nodes.push((url.origin().ascii_serialization(), node));
        }
        Ok(Self { config, nodes })
    }

    pub(super) fn domain(&self) -> Domain {
        Domain::new(self.config.chain_id, self.config.contract)
    }

    /// The answer on which all nodes agree.
    pub(super) async fn agree<T: PartialEq>(
        &self,
        ask: impl AsyncFn(&Primary) -> Result<T, PrimaryError>,
    ) -> Result<T, CommitteeError> {
        let mut agreed = None;
        for (label, node) in &self.nodes {
            let answer = ask(node).await?;
            match &agreed {
                None => agreed = Some(answer),
                Some(first) if *first == answer => {}
                Some(_) => return Err(CommitteeError::Disagreement { node: label.clone() }),
            }
        }
        agreed.ok_or(CommitteeError::Primary(PrimaryError::NoUrl))
    }

    /// All nodes as one, of which the first that answers is believed. It sends transactions.
    pub(super) async fn primary(&self) -> Result<Primary, CommitteeError> {
        Ok(Primary::connect(self.config.clone()).await?)
    }

    /// As [`Nodes::agree`], while a node may still be about to take up a block that another one has.
    pub(super) async fn agree_soon<T: PartialEq>(
        &self,
        ask: impl AsyncFn(&Primary) -> Result<T, PrimaryError>,
    ) -> Result<T, CommitteeError> {
        for _ in 0..READS_MAX {
            match self.agree(&ask).await {
                Err(CommitteeError::Disagreement { .. }) => sleep(PAUSE).await,
                answer => return answer,
            }
        }
        self.agree(&ask).await
    }

    /// The times of an announcement; `None` if there is none.
    pub(super) async fn clock_of(&self, id: Digest) -> Result<Option<Clock>, CommitteeError> {
        self.agree_soon(async |node| node.clock_of(id).await).await
    }

    /// The epoch in the newest block.
    pub(super) async fn epoch(&self) -> Result<Epoch, CommitteeError> {
        self.agree_soon(async |node| node.epoch().await).await
    }

    /// The guardian and the recovery address.
    pub(super) async fn roles(&self) -> Result<(PrimaryAddress, PrimaryAddress), CommitteeError> {
        self.agree_soon(async |node| Ok((node.guardian().await?, node.recovery().await?))).await
    }

    /// Each node by itself.
    pub(super) fn each(&self) -> impl Iterator<Item = &Primary> {
        self.nodes.iter().map(|(_, node)| node)
    }

    /// Waits until a block is final at every node; by default the highest one that any of them has, so that all that they
    /// say now is final. Tells what it waits for. By the chain's clock it waits for an hour at most.
    pub(super) async fn settle(&self, block: Option<u64>, told: Tell<'_>) -> Result<(), CommitteeError> {
        let heads = self.heads().await?;
        let (block, until) = (block.unwrap_or(heads.highest), heads.latest.saturating_add(SETTLE_MAX_S));
        let (mut last, mut missed) = (String::new(), 0_usize);
        loop {
            match self.waits_for(block, until).await {
                Ok(None) => return Ok(()),
                Ok(Some(waiting)) => {
                    missed = 0;
                    if last != waiting {
                        told(waiting.clone());
                        last = waiting;
                    }
                }
                // One missed answer ends nothing: what was sent is sent. A block may come between the reads of two nodes.
                Err(CommitteeError::Disagreement { .. }) if missed < READS_MAX => missed = missed.saturating_add(1),
                Err(CommitteeError::Primary(error)) if error.is_retryable() && missed < READS_MAX => {
                    missed = missed.saturating_add(1);
                }
                Err(error) => return Err(error),
            }
            sleep(SETTLE_PAUSE).await;
        }
    }

    /// What there is to wait for until a block is final at every node; `None` if it is, and all agree on it.
    async fn waits_for(&self, block: u64, until: u64) -> Result<Option<String>, CommitteeError> {
        let Some((node, newest)) = self.behind(block).await? else {
            return self.final_hash(block).await.map(|_| None);
        };
        if self.heads().await?.earliest > until {
            return Err(CommitteeError::NotSettled { node, block, newest });
        }
        Ok(Some(format!("waiting until block {block} is final at {node}")))
    }

    /// A node at which this block is not final, and its newest final block.
    async fn behind(&self, block: u64) -> Result<Option<(String, u64)>, CommitteeError> {
        for (label, node) in &self.nodes {
            let newest = node.final_head().await?.number();
            if newest < block {
                return Ok(Some((label.clone(), newest)));
            }
        }
        Ok(None)
    }

    /// The nodes' newest blocks. No node alone decides on the time: where two are minutes apart, they disagree.
    pub(super) async fn heads(&self) -> Result<Heads, CommitteeError> {
        let mut heads: Option<Heads> = None;
        for (label, node) in &self.nodes {
            let head = node.latest_head().await?;
            let (time, number) = (head.timestamp(), head.number());
            let Heads { earliest, latest, lowest, highest } =
                heads.unwrap_or(Heads { earliest: time, latest: time, lowest: number, highest: number });
            let (earliest, latest) = (earliest.min(time), latest.max(time));
            if latest.saturating_sub(earliest) > SPREAD_MAX_S {
                return Err(CommitteeError::Disagreement { node: label.clone() });
            }
            heads = Some(Heads { earliest, latest, lowest: lowest.min(number), highest: highest.max(number) });
        }
        heads.ok_or(CommitteeError::Primary(PrimaryError::NoUrl))
    }

    /// Checks that the contract would accept this deadline of an announcement, whichever node is right about the time.
    pub(super) async fn check_deadline(&self, deadline: u64) -> Result<(), CommitteeError> {
        let heads = self.heads().await?;
        let is_timely = deadline > heads.latest && deadline <= heads.earliest.saturating_add(DEADLINE_MAX_S);
        is_timely.then_some(()).ok_or(CommitteeError::Deadline(deadline))
    }

    /// Checks that a committee with this guardian, zero for nobody, can stop what stolen keys have queued.
    pub(super) async fn check_guardian(&self, guardian: PrimaryAddress) -> Result<(), CommitteeError> {
        if !guardian.is_zero() {
            return Ok(());
        }
        let outflow_delay_s = self.agree_soon(async |node| node.outflow_delay().await).await?;
        if outflow_delay_s < DELAY_WITHOUT_GUARDIAN_S {
            return Err(CommitteeError::NoGuardian { outflow_delay_s });
        }
        Ok(())
    }

    /// The committees of all epochs in the newest block that is final at every node.
    pub(super) async fn committees(&self) -> Result<Committees, CommitteeError> {
        let reader = EpochReader::new(self.primary().await?);
        let mut known = reader.read_with_recovery(None).await?;
        loop {
            let more = reader.read_with_recovery(Some(&known)).await?;
            if more == known {
                return Ok(known);
            }
            known = more;
        }
    }

    /// The hash of a block that is final at every node.
    pub(super) async fn final_hash(&self, block: u64) -> Result<Digest, CommitteeError> {
        if let Some((_, newest)) = self.behind(block).await? {
            return Err(CommitteeError::NotFinal { block, newest });
        }
        self.agree(async |node| node.block_hash(block).await).await
    }

    /// Checks that the contract would compute the digest that is signed.
    pub(super) async fn check_digest(&self, statement: &CouncilStatement<'_>) -> Result<Digest, CommitteeError> {
        let digest = self.domain().council_digest(statement);
        match self.agree(async |node| node.council_digest(statement).await).await? {
            there if there == digest => Ok(digest),
            _ => Err(CommitteeError::OtherDigest),
        }
    }
}

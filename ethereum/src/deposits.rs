//! Reads the contract's events from finalized blocks, for an authority's follower, and extracts the deposits.
//!
//! ```text
//!  every node ─► final head ─► the cursor's block still the same? ─► logs of a range of whole blocks
//!                │  hash and time: all nodes agree?                       │  all nodes agree?
//!            DepositBatch { events, cursor }   ◄── check (pure) ◄─────────┘  count of the contract?
//! ```
//! It never guesses: an answer that delay cannot explain is an [`Alarm`]. The caller reads again, a bounded number of
//! times, and then stops. Reading again loses nothing, because the cursor moves only with a batch.

use std::ops::RangeInclusive;

use alloy::primitives::B256;
use alloy::rpc::types::Log;
use fastpay_core::{Deposit, TransactionIndex};
use serde::{Deserialize, Serialize};

use crate::contract::IFastPay;
use crate::endpoint::{At, Endpoint};
use crate::error::PrimaryError;
use crate::events::{Alarm, BlockRange, OrderEvent, check_logs};
use crate::finality::BlockHead;
use crate::primary::Primary;

/// The default number of blocks in one request: providers commonly refuse more.
pub const RANGE_BLOCKS_DEFAULT: u64 = 1_000;
/// The unlock windows that the contract's constructor accepts, in seconds: 3 to 30 days.
const UNLOCK_WINDOWS: RangeInclusive<u64> = 3 * 86_400..=30 * 86_400;
/// A range with more logs than this is read in smaller ranges, to bound a batch.
const RANGE_LOGS_MAX: usize = 10_000;

/// How far the chain was read. Store it with the deposits of its batch, in one atomic step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The last block that was read.
    pub block_number: u64,
    /// Its hash. The block is final, so the hash must not change.
    pub block_hash: B256,
    /// The index of the last event of the order in or before it.
    pub last_index: TransactionIndex,
}

/// The events of a range of blocks, and where the next range starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositBatch {
    /// The deposits, in the order of their indices.
    pub deposits: Vec<Deposit>,
    /// The contract's events: these deposits, and the other events between them.
    pub events: Vec<OrderEvent>,
    /// The new cursor.
    pub cursor: Cursor,
    /// The newest block that is final at every node. If the cursor is there, nothing is left to read now.
    pub final_block: u64,
    /// The time of the cursor's block, in seconds since 1970. All nodes agree.
    pub time: u64,
    /// The time of the newest final block, in seconds since 1970. All nodes agree.
    pub final_time: u64,
}

/// Why there is no batch.
#[derive(Debug, thiserror::Error)]
pub enum DepositsError {
    /// A node could not be read.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// A node is behind the reader's position: it lags or is syncing.
    #[error("the Ethereum node {node} is at final block {head}, behind block {cursor} that was read before; retrying")]
    Lagging {
        /// The node that was asked.
        node: String,
        /// Its newest final block.
        head: u64,
        /// The last block that was read before.
        cursor: u64,
    },
    /// The chain changed during the read, in blocks that were not final before.
    #[error("block {block} changed while it was read; retrying")]
    Moved {
        /// The block's number.
        block: u64,
    },
    /// The node's answer is impossible.
    #[error("the Ethereum nodes contradict the contract's rules: {0}")]
    Alarm(#[from] Alarm),
}

impl DepositsError {
    /// Whether trying again later is right, however often. False if the answer is impossible; an operator must act if
    /// that persists.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Primary(error) => error.is_retryable(),
            Self::Lagging { .. } | Self::Moved { .. } => true,
            Self::Alarm(_) => false,
        }
    }
}

/// Reads events range by range. It has no position of its own: the caller keeps the cursor.
#[derive(Debug)]
pub struct DepositReader {
    primary: Primary,
    range_blocks_max: u64,
    range_blocks: u64,
}

impl DepositReader {
    /// A reader of ranges of at most `range_blocks_max` blocks (at least 1).
    #[must_use]
    pub fn new(primary: Primary, range_blocks_max: u64) -> Self {
        let range_blocks_max = range_blocks_max.max(1);
        Self { primary, range_blocks_max, range_blocks: range_blocks_max }
    }

    /// The cursor before the contract's first block, for a follower that has none.
    ///
    /// # Errors
    /// Retryable while that block is not final.
    pub async fn start(&self) -> Result<Cursor, DepositsError> {
        let number = self.primary.deployment_block().await?.saturating_sub(1);
        let mut start: Option<Cursor> = None;
        for node in self.primary.endpoints() {
            let head = node.final_head(self.primary.finality()).await?;
            if head.number() < number {
                return Err(DepositsError::Lagging { node: node.label().into(), head: head.number(), cursor: number });
            }
            let block_hash = block_hash(node, number).await?;
            let cursor = Cursor { block_number: number, block_hash, last_index: TransactionIndex(0) };
            if start.is_some_and(|first| first != cursor) {
                return Err(Alarm::Disagreement { block: number, node: node.label().into() }.into());
            }
            start = Some(cursor);
        }
        start.ok_or(DepositsError::Primary(PrimaryError::NoUrl))
    }

    /// The next batch after `cursor`: all events of the next whole blocks that are final at every node. The batch is
    /// empty with a new cursor if those blocks have no events, and with the same cursor if no new block is final.
    ///
    /// # Errors
    /// See [`DepositsError::is_retryable`].
    pub async fn next(&mut self, cursor: &Cursor) -> Result<DepositBatch, DepositsError> {
        let newest = self.common_final_block(cursor).await?;
        let final_block = newest.number();
        if final_block == cursor.block_number {
            let (deposits, events, cursor, time) = (Vec::new(), Vec::new(), *cursor, newest.timestamp());
            return Ok(DepositBatch { deposits, events, cursor, final_block, time, final_time: time });
        }
        loop {
            let first = cursor.block_number.saturating_add(1);
            let last = cursor.block_number.saturating_add(self.range_blocks).min(final_block);
            match self.read(cursor, first, last, &newest).await {
                // The range is too large, for the node or for a batch.
                Err(DepositsError::Primary(PrimaryError::Refused { method: "eth_getLogs", message, .. }))
                    if self.range_blocks > 1 =>
                {
                    self.range_blocks = (last.saturating_sub(first) / 2).max(1);
                    tracing::debug!(blocks = self.range_blocks, %message, "reading smaller ranges");
                }
                Ok(batch) => {
                    self.range_blocks = self.range_blocks.saturating_mul(2).min(self.range_blocks_max);
                    return Ok(batch);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// How long an unlock request is open before a quorum can void its number, in seconds. It never changes.
    ///
    /// # Errors
    /// See [`DepositsError::is_retryable`]. [`Alarm::UnlockWindow`] if a node's answer is out of the contract's bounds,
    /// or differs from the first node's.
    pub async fn unlock_window(&self) -> Result<u64, DepositsError> {
        let mut agreed = None;
        for node in self.primary.endpoints() {
            let call = IFastPay::safetyParametersCall {};
            let seconds = node.view(self.primary.contract(), &call, At::Latest).await?.unlockWindow.into();
            if !UNLOCK_WINDOWS.contains(&seconds) || *agreed.get_or_insert(seconds) != seconds {
                return Err(Alarm::UnlockWindow { node: node.label().into(), seconds }.into());
            }
        }
        agreed.ok_or(DepositsError::Primary(PrimaryError::NoUrl))
    }

    /// The newest block that is final at every node, after checking that each still has the cursor's block. All nodes
    /// must agree on its hash, and on its time, by which windows are counted.
    async fn common_final_block(&self, cursor: &Cursor) -> Result<BlockHead, DepositsError> {
        let mut heads = Vec::new();
        for node in self.primary.endpoints() {
            let head: BlockHead = node.final_head(self.primary.finality()).await?;
            if head.number() < cursor.block_number {
                let (node, head) = (node.label().into(), head.number());
                return Err(DepositsError::Lagging { node, head, cursor: cursor.block_number });
            }
            let found = if head.number() == cursor.block_number {
                head.hash
            } else {
                block_hash(node, cursor.block_number).await?
            };
            if found != cursor.block_hash {
                let (block, expected) = (cursor.block_number, cursor.block_hash);
                return Err(Alarm::Reorganised { node: node.label().into(), block, expected, found }.into());
            }
            heads.push((node, head));
        }
        let common = heads.iter().map(|(_, head)| *head).min_by_key(BlockHead::number).ok_or(PrimaryError::NoUrl)?;
        for (node, head) in heads {
            let block = common.number();
            let found = if head.number() == block { head } else { block_head(node, block).await? };
            if !found.agrees_with(&common) {
                return Err(Alarm::Disagreement { block, node: node.label().into() }.into());
            }
        }
        Ok(common)
    }

    async fn read(
        &self,
        cursor: &Cursor,
        first: u64,
        last: u64,
        newest: &BlockHead,
    ) -> Result<DepositBatch, DepositsError> {
        let mut agreed: Option<(BlockHead, Vec<Log>, Vec<OrderEvent>)> = None;
        for node in self.primary.endpoints() {
            let head = block_head(node, last).await?;
            let hash = head.hash;
            let mut logs = node.logs(OrderEvent::TOPICS, first, last).await?;
            // Only some nodes add the block's time, so it cannot be compared. Nothing depends on it.
            logs.iter_mut().for_each(|log| log.block_timestamp = None);
            if logs.len() > RANGE_LOGS_MAX && last > first {
                let message = format!("more than {RANGE_LOGS_MAX} events");
                let node = node.label().into();
                return Err(PrimaryError::Refused { node, method: "eth_getLogs", code: 0, message }.into());
            }
            let count = self.count(node, hash, last == newest.number()).await?;
            // If the block was replaced between the requests, the answers are of different chains.
            if block_hash(node, last).await? != hash {
                return Err(DepositsError::Moved { block: last });
            }
            let range = BlockRange { first, last, last_hash: hash };
            let events = check_logs(cursor.last_index, self.primary.contract(), &range, &logs, count)?;
            match &agreed {
                None => agreed = Some((head, logs, events)),
                Some((first, first_logs, _)) if first.agrees_with(&head) && *first_logs == logs => {}
                Some(_) => return Err(Alarm::Disagreement { block: last, node: node.label().into() }.into()),
            }
        }
        let (head, _, events) = agreed.ok_or(PrimaryError::NoUrl)?;
        let last_index = events.last().map_or(cursor.last_index, OrderEvent::index);
        let deposits = events.iter().filter_map(OrderEvent::deposit).collect();
        let cursor = Cursor { block_number: last, block_hash: head.hash, last_index };
        let (final_block, time, final_time) = (newest.number(), head.timestamp(), newest.timestamp());
        Ok(DepositBatch { deposits, events, cursor, final_block, time, final_time })
    }

    /// The index of the last event that the contract counted up to the block `hash`. `None` if the node no longer has
    /// the state of so old a block. The range that ends at the newest block always has it, so an omitted log is found
    /// there at the latest.
    async fn count(
        &self,
        node: &Endpoint,
        hash: B256,
        is_newest: bool,
    ) -> Result<Option<TransactionIndex>, DepositsError> {
        let call = IFastPay::lastTransactionIndexCall {};
        match node.view(self.primary.contract(), &call, At::Hash(hash)).await {
            Ok(count) => Ok(Some(TransactionIndex(count))),
            Err(PrimaryError::Refused { .. }) if !is_newest => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) async fn block_hash(node: &Endpoint, number: u64) -> Result<B256, DepositsError> {
    Ok(block_head(node, number).await?.hash)
}

async fn block_head(node: &Endpoint, number: u64) -> Result<BlockHead, DepositsError> {
    let block = node.block(At::Number(number)).await?;
    match block {
        Some(block) if block.number() == number => Ok(block),
        Some(_) => Err(node.bad_answer("eth_getBlockByNumber", "another block than the requested one").into()),
        None => Err(node.bad_answer("eth_getBlockByNumber", "no such block, though a later one is final").into()),
    }
}

//! Finds the order on which an account's number was spent: the contract's newest event about the number, searched
//! backwards from the newest block.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::{Address, B256, U64};
use alloy::rpc::types::Log;
use alloy::sol_types::SolEvent;
use fastpay_core::{AccountId, Digest, SequenceNumber};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::contract::IFastPay;
use crate::deposits::RANGE_BLOCKS_DEFAULT;
use crate::endpoint::{At, Endpoint};
use crate::error::PrimaryError;
use crate::events::OrderEvent;
use crate::primary::Primary;

/// The number of newest blocks that are searched, two weeks of Ethereum: a hundred requests at most. Older events are
/// not found.
const BLOCKS_SEARCHED_MAX: u64 = 100_000;

/// The order on which a number of an account was spent, by the contract's log. A thief with redemption keys may have
/// spent it on another order than its owner signed; then the owner was not paid, although the number's bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spending {
    /// The order that it was spent on.
    pub digest: Digest,
    /// The state of that order.
    pub state: SpendingState,
    /// The transaction that proves it.
    pub transaction: B256,
    /// The block of that transaction.
    pub block_number: u64,
}

/// The state of an order that the contract accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", rename_all_fields = "lowercase")]
pub enum SpendingState {
    /// It was paid.
    Paid {
        /// The relayer that submitted it and received the fee.
        relayer: Address,
    },
    /// It is in the contract's queue.
    Queued,
    /// It was released from the queue, and is never paid.
    Released,
}

/// The used part of a transaction's receipt.
#[derive(Debug, Deserialize)]
struct Receipt {
    logs: Vec<Log>,
}

impl Primary {
    /// The redemptions on which the contract spent these numbers of an account, as the first node that answers reports
    /// them. Only the newest blocks are searched.
    ///
    /// # Errors
    /// If no node answers, or it serves no logs.
    pub async fn spendings(
        &self,
        sender: AccountId,
        wanted: BTreeSet<SequenceNumber>,
    ) -> Result<BTreeMap<SequenceNumber, Spending>, PrimaryError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let blocks = (self.deployment_block().await?, self.latest_head().await?.number());
        self.search(sender, wanted, blocks, None).await
    }

    /// The redemption on which the contract spent a number, as the first node that answers reports it in final blocks.
    ///
    /// # Errors
    /// As [`Primary::spendings`].
    pub async fn final_spending(
        &self,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<Spending>, PrimaryError> {
        let blocks = (self.deployment_block().await?, self.final_head().await?.number());
        Ok(self.search(sender, [sequence].into(), blocks, None).await?.remove(&sequence))
    }

    /// The redemption on which the contract spent a number, as one of the configured nodes reports it in final blocks.
    ///
    /// # Errors
    /// If there is no such node, it does not answer, or it serves no logs.
    pub async fn final_spending_by(
        &self,
        node: usize,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<Spending>, PrimaryError> {
        let endpoint = self.endpoint(node)?;
        let deployed = endpoint.view(self.contract(), &IFastPay::deploymentBlockCall {}, At::Latest).await?;
        let blocks = (deployed.saturating_to(), endpoint.final_head(self.finality()).await?.number());
        Ok(self.search(sender, [sequence].into(), blocks, Some(endpoint)).await?.remove(&sequence))
    }

    /// Searches at one node, or at the first one that answers.
    async fn search(
        &self,
        sender: AccountId,
        mut wanted: BTreeSet<SequenceNumber>,
        (deployed, mut last): (u64, u64),
        only: Option<&Endpoint>,
    ) -> Result<BTreeMap<SequenceNumber, Spending>, PrimaryError> {
        let mut found = BTreeMap::new();
        let kinds = [
            IFastPay::Redeemed::SIGNATURE_HASH,
            IFastPay::RedemptionQueued::SIGNATURE_HASH,
            IFastPay::RedemptionReleased::SIGNATURE_HASH,
        ];
        let oldest = deployed.max(last.saturating_sub(BLOCKS_SEARCHED_MAX));
        while last >= oldest && !wanted.is_empty() {
            let first = last.saturating_sub(RANGE_BLOCKS_DEFAULT.saturating_sub(1)).max(oldest);
            let filter = json!([{
                "address": self.contract(),
                "topics": [kinds, B256::from(sender.0)],
                "fromBlock": U64::from(first),
                "toBlock": U64::from(last),
            }]);
            let logs: Vec<Log> = match only {
                Some(node) => node.request("eth_getLogs", filter).await?,
                None => self.request("eth_getLogs", filter).await?,
            };
            // If a number was queued and then paid, the newest log counts.
            for ((_, sequence), spending) in logs.iter().rev().filter_map(spending_in) {
                if wanted.remove(&sequence) {
                    found.insert(sequence, spending);
                }
            }
            let Some(before) = first.checked_sub(1) else { break };
            last = before;
        }
        Ok(found)
    }

    /// The numbers that a transaction spent, or whose payment it completed, as the first node that answers reports
    /// them.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn spendings_of(
        &self,
        transaction: B256,
    ) -> Result<BTreeMap<(AccountId, SequenceNumber), Spending>, PrimaryError> {
        let receipt: Option<Receipt> = self.request("eth_getTransactionReceipt", json!([transaction])).await?;
        let logs = receipt.map(|receipt| receipt.logs).unwrap_or_default();
        Ok(logs.iter().filter(|log| log.address() == self.contract()).filter_map(spending_in).collect())
    }
}

/// The number that a log is about, with its spending.
fn spending_in(log: &Log) -> Option<((AccountId, SequenceNumber), Spending)> {
    let (sender, sequence, digest, state) = match OrderEvent::decode(log)?.ok()? {
        OrderEvent::Redeemed(paid) => {
            (paid.sender, paid.sequence, paid.digest, SpendingState::Paid { relayer: paid.relayer })
        }
        OrderEvent::RedemptionQueued(queued) => (queued.sender, queued.sequence, queued.digest, SpendingState::Queued),
        OrderEvent::RedemptionReleased(released) => {
            (released.sender, released.sequence, released.digest, SpendingState::Released)
        }
        _ => return None,
    };
    let (transaction, block_number) = (log.transaction_hash?, log.block_number?);
    let name = (AccountId(sender.0), SequenceNumber(sequence));
    Some((name, Spending { digest, state, transaction, block_number }))
}

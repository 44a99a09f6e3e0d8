//! Redemptions that the contract paid or queued, with all their fields. Its events leave out the memo, which stands in
//! the call; the digest in the event tells the right one, so one node's answer suffices, whichever node it is.

use std::ops::RangeInclusive;

use alloy::primitives::{B256, Bytes};
use alloy::rpc::types::Log;
use alloy::sol_types::SolEvent;
use fastpay_core::{AccountId, Amount, Asset, Digest, Epoch, Memo, Redemption, SequenceNumber, TransactionIndex};
use serde::Deserialize;
use serde_json::json;

use crate::contract::IFastPay;
use crate::endpoint::{At, Endpoint};
use crate::error::PrimaryError;
use crate::events::OrderEvent;
use crate::primary::Primary;

/// A redemption as an event tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidRedemption {
    /// The redemption without its memo.
    pub redemption: Redemption,
    /// The digest of the redemption with its memo.
    pub digest: Digest,
    /// Of which epoch the votes were, if the event queues it.
    pub queued_with: Option<Epoch>,
    /// The event's index.
    pub index: TransactionIndex,
    /// The whole blocks among which the event was read.
    pub blocks: RangeInclusive<u64>,
}

impl PaidRedemption {
    /// The redemption of an event that was read from these blocks; `None` if the event neither pays nor queues one.
    #[must_use]
    pub fn new(event: &OrderEvent, blocks: RangeInclusive<u64>) -> Option<Self> {
        let (sender, recipient, asset, sequence, amount, fee, digest) = match event {
            OrderEvent::Redeemed(paid) => {
                (paid.sender, paid.recipient, paid.asset, paid.sequence, paid.amount, paid.fee, paid.digest)
            }
            OrderEvent::RedemptionQueued(queued) => (
                queued.sender,
                queued.recipient,
                queued.asset,
                queued.sequence,
                queued.amount,
                queued.fee,
                queued.digest,
            ),
            _ => return None,
        };
        let queued_with = match event {
            OrderEvent::RedemptionQueued(queued) => Some(Epoch(queued.epoch)),
            _ => None,
        };
        let redemption = Redemption {
            sender: AccountId(sender.0),
            recipient,
            asset: Asset(asset),
            amount: Amount(amount),
            fee: Amount(fee),
            sequence: SequenceNumber(sequence),
            memo: Memo::ZERO,
        };
        Some(Self { redemption, digest, queued_with, index: event.index(), blocks })
    }
}

/// The part of a transaction that is of interest here.
#[derive(Debug, Deserialize)]
struct Called {
    input: Bytes,
}

impl Primary {
    /// The redemption with its memo. `None` if no node shows a transaction that contains the memo: another contract made it
    /// up.
    ///
    /// # Errors
    /// If no node knows the memo, and one does not answer.
    pub async fn whole(&self, paid: &PaidRedemption) -> Result<Option<Redemption>, PrimaryError> {
        let with_memo = |memo: Memo| {
            let redemption = Redemption { memo, ..paid.redemption.clone() };
            (self.domain().transfer_digest(&redemption.clone().into()) == paid.digest).then_some(redemption)
        };
        if let Some(redemption) = with_memo(Memo::ZERO) {
            return Ok(Some(redemption));
        }
        let mut failure = None;
        for node in self.endpoints() {
            match self.calldata_of(node, paid).await {
                Ok(called) => {
                    let memo = called.windows(Memo::len_bytes()).find_map(|word| with_memo(Memo::from_slice(word)));
                    if memo.is_some() {
                        return Ok(memo);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// The input of the transaction of this event, as one node shows it; empty if it knows none.
    async fn calldata_of(&self, node: &Endpoint, paid: &PaidRedemption) -> Result<Bytes, PrimaryError> {
        let filter = json!([{
            "address": self.contract(),
            "topics": [
                [IFastPay::Redeemed::SIGNATURE_HASH, IFastPay::RedemptionQueued::SIGNATURE_HASH],
                B256::from(paid.redemption.sender.0),
            ],
            "fromBlock": At::Number(*paid.blocks.start()).to_json(),
            "toBlock": At::Number(*paid.blocks.end()).to_json(),
        }]);
        let logs: Vec<Log> = node.request("eth_getLogs", filter).await?;
        let is_paid = |log: &&Log| {
            let event = OrderEvent::decode(log).and_then(Result::ok);
            event.and_then(|event| PaidRedemption::new(&event, paid.blocks.clone())).is_some_and(|of| of == *paid)
        };
        let Some(transaction) = logs.iter().find(is_paid).and_then(|log| log.transaction_hash) else {
            return Ok(Bytes::new());
        };
        let called: Option<Called> = node.request("eth_getTransactionByHash", json!([transaction])).await?;
        Ok(called.map(|called| called.input).unwrap_or_default())
    }
}

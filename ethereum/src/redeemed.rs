//! Who brought a redemption to the contract, and where it was paid: its event, looked for from the newest block back.

use alloy::primitives::{Address, B256, U64};
use alloy::rpc::types::Log;
use alloy::sol_types::SolEvent;
use fastpay_core::{AccountId, Digest, SequenceNumber};
use serde_json::json;

use crate::contract::IFastPay;
use crate::deposits::RANGE_BLOCKS_DEFAULT;
use crate::error::PrimaryError;
use crate::primary::Primary;

/// So many of the newest blocks are searched, two weeks of Ethereum: a hundred questions at most. What is older is left
/// unsaid.
const BLOCKS_SEARCHED_MAX: u64 = 100_000;

/// A redemption that is paid, as the contract's log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaidRedemption {
    /// Who brought it, and got the fee.
    pub relayer: Address,
    /// The transaction that paid it.
    pub transaction: B256,
    /// The block of that.
    pub block_number: u64,
    /// The order that was paid. A thief with redemption keys may have spent the number on another than its owner signed.
    pub digest: Digest,
}

impl Primary {
    /// How the order `sequence` of `sender` was paid, by the word of the first node that answers; none where that is not
    /// among the newest blocks.
    ///
    /// # Errors
    /// Where no node answers.
    pub async fn paid_redemption(
        &self,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<PaidRedemption>, PrimaryError> {
        let mut last = self.latest_head().await?.number();
        let oldest = self.deployment_block().await?.max(last.saturating_sub(BLOCKS_SEARCHED_MAX));
        while last >= oldest {
            let first = last.saturating_sub(RANGE_BLOCKS_DEFAULT.saturating_sub(1)).max(oldest);
            let filter = json!([{
                "address": self.contract(),
                "topics": [IFastPay::Redeemed::SIGNATURE_HASH, B256::from(sender.0)],
                "fromBlock": U64::from(first),
                "toBlock": U64::from(last),
            }]);
            let logs: Vec<Log> = self.request("eth_getLogs", filter).await?;
            if let Some(found) = logs.iter().find_map(|log| paid_in(log, sequence)) {
                return Ok(Some(found));
            }
            let Some(before) = first.checked_sub(1) else { break };
            last = before;
        }
        Ok(None)
    }
}

/// What a log says of the order of this number.
fn paid_in(log: &Log, sequence: SequenceNumber) -> Option<PaidRedemption> {
    let event = IFastPay::Redeemed::decode_log_validate(&log.inner).ok()?;
    let (transaction, block_number) = (log.transaction_hash?, log.block_number?);
    let (relayer, digest) = (event.relayer, event.digest);
    (event.sequence == sequence.0).then_some(PaidRedemption { relayer, transaction, block_number, digest })
}

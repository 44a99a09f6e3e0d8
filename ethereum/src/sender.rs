//! Sends transactions and follows them until they are final.
//!
//! ```text
//!  Call ─► simulate ─► prepare ─► Submission ─► (caller stores it) ─► broadcast ─► status ─┬─► Final
//!                                    ▲                                  ▲ │         │      └─► Superseded
//!                                    └──── raise the offer if stuck ────┴─┼ vanished┘
//!                                                                         └─► Unsendable ─► release its nonce
//! ```
//! A submission keeps one nonce for life, so however often it is sent, raised, dropped by a node or reverted by a
//! reorganisation, its call happens at most once. No transaction is prepared with more gas than it may have, or than
//! its sender can pay for. A call is simulated with the fees and the gas of its transaction, so a contract sees the
//! same gas price in both. [`Sender::confirm`] runs the whole loop (`confirm`); a caller with many submissions under
//! way uses its steps.
//!
//! Only one sender may use the key at a time: two would assign the same nonce, and one of their transactions would be
//! superseded.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use alloy::consensus::{SignableTransaction, TxEip1559};
use alloy::eips::eip2718::Encodable2718;
use alloy::primitives::{Address, B256, Bytes, TxKind, U64, U128, U256};
use alloy::signers::{SignerSync, local::PrivateKeySigner};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::endpoint::{At, Endpoint};
use crate::error::PrimaryError;
use crate::fees::{Fees, Offer, SenderConfig};
use crate::nonces::Nonces;
use crate::primary::Primary;
use crate::revert::Revert;
use crate::submission::{Attempt, Call, Inclusion, Status, Submission};

/// The number of reads, and the interval between them, in which the chain must show no trace of a transaction whose
/// nonce is used before it counts as superseded. A node that is processing a block may know the nonce before the
/// transaction; believing it once could make a caller pay twice.
const SUPERSEDED_LOOKS: u32 = 6;
const SUPERSEDED_LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// The minimum gas that a transaction may use beyond the estimate: three slots of storage that are empty again cost
/// 17,100 more each. Unused gas costs nothing.
const SPARE_GAS_MIN: u64 = 60_000;

/// The minimum gas of a transaction.
const TRANSACTION_GAS_MIN: u64 = 21_000;

/// The gas limit of a transaction with this estimate. It is higher, because the state may change before the block,
/// above all if the estimate is made on blocks that a reorganisation reverts: storage that they wrote must then be
/// written for the first time.
#[must_use]
pub fn gas_limit(estimate: u64) -> u64 {
    estimate.saturating_add((estimate / 4).max(SPARE_GAS_MIN))
}

/// Why a call was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The Primary refused the call or could not be reached.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The chain's base fee is above the configured cap.
    #[error("the chain's base fee of {base_fee_gwei} gwei is above the cap of {cap_gwei} gwei; wait, or raise the cap")]
    FeesTooHigh {
        /// The newest block's base fee in gwei, rounded down.
        base_fee_gwei: u128,
        /// The configured cap in gwei.
        cap_gwei: u64,
    },
    /// The transaction is in a block and reverted, because something changed since it was simulated.
    #[error("transaction {hash} reverted in block {block_number} and changed nothing; inspect it before trying again")]
    RevertedOnChain {
        /// The transaction's hash.
        hash: B256,
        /// The block's number.
        block_number: u64,
    },
    /// Another transaction used its nonce: the key is used elsewhere, too.
    #[error("another transaction of {from} took nonce {nonce}; check what it did before trying again")]
    Superseded {
        /// The sender: its key is also used elsewhere.
        from: Address,
        /// The nonce.
        nonce: u64,
    },
    /// A stored submission is of another key.
    #[error("the stored transaction belongs to {stored}, the given key to {given}; give the right key")]
    OtherKey {
        /// The sender of the stored submission.
        stored: Address,
        /// The address of the given key.
        given: Address,
    },
    /// A stored submission was never signed: what it would do is nobody's decision.
    #[error("the stored transaction was never signed, so it is not sent; find out who wrote it")]
    NoAttempt,
    /// A stored submission is for another chain, where the same address is another contract.
    #[error(
        "the stored transaction {hash} was not signed for chain {chain_id} and is not sent there; finish it with the \
         folder and the Ethereum node that it was begun with"
    )]
    OtherChain {
        /// The stored transaction's hash.
        hash: B256,
        /// The chain that is connected.
        chain_id: u64,
    },
    /// The call needs more gas than a transaction may have.
    #[error("the transaction needs {gas_limit} gas, and the limit is {gas_max}; make it smaller")]
    TooMuchGas {
        /// The gas limit that it would have.
        gas_limit: u64,
        /// The most that a transaction may have.
        gas_max: u64,
    },
    /// Every node refuses it for a permanent reason, and none has an earlier offer of it.
    #[error("no Ethereum node can accept transaction {hash}: {reason}")]
    Unsendable {
        /// The transaction's hash.
        hash: B256,
        /// The error of the first node.
        reason: Box<PrimaryError>,
    },
    /// The submission could not be stored, so it was not sent.
    #[error("the transaction could not be stored and was not sent: {0}")]
    NotStored(#[from] io::Error),
    /// Signing failed.
    #[error("signing failed: {0}")]
    Signing(#[from] alloy::signers::Error),
}

impl SendError {
    /// Whether the same call may succeed later without anybody's help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Primary(error) => error.is_retryable(),
            Self::FeesTooHigh { .. } => true,
            Self::RevertedOnChain { .. }
            | Self::Superseded { .. }
            | Self::OtherKey { .. }
            | Self::NoAttempt
            | Self::OtherChain { .. }
            | Self::TooMuchGas { .. }
            | Self::Unsendable { .. }
            | Self::NotStored(_)
            | Self::Signing(_) => false,
        }
    }
}

/// Sends the transactions of one key.
#[derive(Debug)]
pub struct Sender {
    primary: Primary,
    signer: PrivateKeySigner,
    config: SenderConfig,
    nonces: Mutex<Nonces>,
}

/// A call that succeeded in a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TriedOut {
    offer: Offer,
    /// A node's estimate of its gas.
    pub(crate) estimate: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    block_number: Option<U64>,
    block_hash: Option<B256>,
    status: Option<U64>,
    gas_used: U64,
    effective_gas_price: Option<U128>,
}

impl Sender {
    /// A sender for the key of `signer`.
    #[must_use]
    pub fn new(primary: Primary, signer: PrivateKeySigner, config: SenderConfig) -> Self {
        Self { primary, signer, config, nonces: Mutex::default() }
    }

    /// The address that sends these transactions.
    #[must_use]
    pub fn address(&self) -> Address {
        self.signer.address()
    }

    /// Keeps the nonce of a stored submission from being assigned again, for a caller that starts with submissions
    /// under way. Broadcasting does the same.
    pub fn adopt(&self, submission: &Submission) {
        self.with_nonces(|nonces| nonces.adopt(submission.nonce));
    }

    /// Frees the nonce of a submission that is never sent again, for the next one. Otherwise, no transaction with a
    /// higher nonce is ever included.
    pub fn release(&self, nonce: u64) {
        self.with_nonces(|nonces| nonces.release(nonce));
    }

    fn with_nonces<T>(&self, then: impl FnOnce(&mut Nonces) -> T) -> T {
        then(&mut self.nonces.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The contract and its nodes.
    #[must_use]
    pub fn primary(&self) -> &Primary {
        &self.primary
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Simulates the call on the newest block as a transaction with this offer and at most this much gas, and estimates
    /// its gas. The called contract sees the gas price of the later transaction, so it cannot tell the simulation by
    /// that.
    ///
    /// # Errors
    /// [`PrimaryError::Reverted`] with the contract's reason, also if the gas does not suffice;
    /// [`PrimaryError::InsufficientFunds`] if the sender cannot pay for this much gas; or no node answers.
    pub async fn simulate(&self, call: &Call, offer: &Offer, gas_max: u64) -> Result<u64, PrimaryError> {
        let transaction = self.trial(call, offer.fees, gas_max);
        // Call first, because its error names the reason at every node; an estimate's error often does not.
        let tried = self.primary.request::<Bytes>("eth_call", json!([transaction, At::Latest.to_json()])).await;
        tried.map_err(out_of_gas_is_a_revert)?;
        let gas = self.primary.request::<U64>("eth_estimateGas", json!([transaction, At::Latest.to_json()])).await;
        Ok(gas.map_err(out_of_gas_is_a_revert)?.to())
    }

    /// Why a submission reverted in its block: the contract's error for the same transaction after that block. `None`
    /// if it would succeed there: then a called contract behaves differently in a simulation.
    ///
    /// # Errors
    /// If no node answers, or none has the state of that block any more.
    pub async fn why_reverted(
        &self,
        submission: &Submission,
        inclusion: &Inclusion,
    ) -> Result<Option<Box<Revert>>, PrimaryError> {
        let attempt = submission.attempts.iter().rev().find(|attempt| attempt.hash == inclusion.hash);
        let Some(attempt) = attempt else { return Ok(None) };
        let transaction = self.trial(&submission.call, attempt.fees, submission.gas_limit);
        let at = At::Number(inclusion.block_number).to_json();
        match self.primary.request::<Bytes>("eth_call", json!([transaction, at])).await.map_err(out_of_gas_is_a_revert)
        {
            Ok(_) => Ok(None),
            Err(PrimaryError::Reverted(revert)) => Ok(Some(revert)),
            Err(error) => Err(error),
        }
    }

    fn trial(&self, call: &Call, fees: Fees, gas: u64) -> serde_json::Value {
        json!({
            "from": self.address(),
            "to": call.to,
            "value": call.value,
            "data": call.data,
            "gas": U64::from(gas),
            "maxFeePerGas": U128::from(fees.max_fee_per_gas),
            "maxPriorityFeePerGas": U128::from(fees.max_priority_fee_per_gas),
        })
    }

    /// Simulates the call and signs it with the next nonce. It sends nothing: store the submission, then
    /// [`Sender::broadcast`] it. A submission that is never broadcast has no effect, and the next one gets the same
    /// nonce.
    ///
    /// # Errors
    /// As [`Sender::simulate`], and if fees are above the cap.
    pub async fn prepare(&self, call: Call) -> Result<Submission, SendError> {
        let trial = self.try_out(&call).await?;
        self.prepare_tried(call, trial).await
    }

    /// Simulates the call with all the gas that a transaction may have and the sender can pay for.
    pub(crate) async fn try_out(&self, call: &Call) -> Result<TriedOut, SendError> {
        let offer = self.current_offer().await?;
        let balance = self.primary.ether_balance(self.address()).await?;
        let affordable = offer.gas_for(balance.saturating_sub(call.value));
        if balance < call.value || affordable < TRANSACTION_GAS_MIN {
            return Err(PrimaryError::InsufficientFunds.into());
        }
        let gas_max = affordable.min(offer.gas_max);
        match self.simulate(call, &offer, gas_max).await {
            // With more ETH, it might have succeeded.
            Err(PrimaryError::Reverted(revert)) if revert.is_lack_of_gas() && gas_max < offer.gas_max => {
                Err(PrimaryError::InsufficientFunds.into())
            }
            Ok(estimate) if gas_limit(estimate).min(offer.gas_max) > gas_max => {
                Err(PrimaryError::InsufficientFunds.into())
            }
            estimate => Ok(TriedOut { offer, estimate: estimate? }),
        }
    }

    pub(crate) async fn prepare_tried(&self, call: Call, tried: TriedOut) -> Result<Submission, SendError> {
        let TriedOut { offer, estimate } = tried;
        self.prepare_within(call, &offer, gas_limit(estimate).min(offer.gas_max)).await
    }

    /// The number of the sender's transactions in the chain.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn mined(&self) -> Result<u64, PrimaryError> {
        self.primary.transaction_count(self.address(), At::Latest).await
    }

    /// The present offer.
    ///
    /// # Errors
    /// If no node answers, or the base fee is above the cap.
    pub async fn current_offer(&self) -> Result<Offer, SendError> {
        let offer = self.primary.current_offer(&self.config).await?;
        if offer.base_fee > offer.fees.max_fee_per_gas {
            let cap_gwei = self.config.max_fee_cap_gwei;
            return Err(SendError::FeesTooHigh { base_fee_gwei: offer.base_fee / 1_000_000_000, cap_gwei });
        }
        Ok(offer)
    }

    /// As [`Sender::prepare`], for a call that the caller has simulated, with this offer and exactly this gas limit.
    ///
    /// # Errors
    /// If the limit is more than a transaction may have, or no node answers.
    pub async fn prepare_within(&self, call: Call, offer: &Offer, gas_limit: u64) -> Result<Submission, SendError> {
        if gas_limit > offer.gas_max {
            return Err(SendError::TooMuchGas { gas_limit, gas_max: offer.gas_max });
        }
        let from = self.address();
        let mined = self.mined().await?;
        let waiting = self.primary.transaction_count(from, At::Pending).await?;
        let nonce = self.with_nonces(|nonces| nonces.choose(mined, waiting));
        let mut submission = Submission { call, from, nonce, gas_limit, attempts: Vec::new() };
        self.add_attempt(&mut submission, offer.fees)?;
        Ok(submission)
    }

    /// The same submission with a higher offer, to be stored and broadcast; `None` if the caps prevent that, so it has
    /// to wait.
    ///
    /// # Errors
    /// If no node answers, or the submission is not signed with this key for this chain.
    pub async fn raised(&self, submission: &Submission) -> Result<Option<Submission>, SendError> {
        let (last, _) = self.sign_again(submission)?;
        let fresh = self.primary.current_offer(&self.config).await?.fees;
        let Some(fees) = self.config.next_offer(last.fees, fresh) else { return Ok(None) };
        let mut raised = submission.clone();
        self.add_attempt(&mut raised, fees)?;
        Ok(Some(raised))
    }

    /// Sends the newest attempt to every node. A node that has it already, or has a later state, counts as accepting
    /// it.
    ///
    /// # Errors
    /// If no node accepted it: unless the error is [`SendError::Unsendable`], it may be sent again. If the submission
    /// is not signed with this key for this chain: then it was not sent.
    pub async fn broadcast(&self, submission: &Submission) -> Result<(), SendError> {
        let (newest, raw) = self.sign_again(submission)?;
        self.adopt(submission);
        let (mut taken, mut failure, mut refusal) = (false, None::<PrimaryError>, None);
        for node in self.primary.endpoints() {
            match node.request::<B256>("eth_sendRawTransaction", json!([raw])).await {
                Ok(_) => taken = true,
                Err(PrimaryError::Refused { message, .. }) if is_harmless(&message) => taken = true,
                Err(PrimaryError::Refused { node, method, code, message }) if is_for_good(&message) => {
                    refusal = refusal.or(Some(PrimaryError::Refused { node, method, code, message }));
                }
                // A refusal is more informative than a missing answer.
                Err(error @ PrimaryError::Refused { .. }) => match failure {
                    Some(PrimaryError::Refused { .. }) => {}
                    _ => failure = Some(error),
                },
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match (failure, refusal) {
            _ if taken => Ok(()),
            (Some(error), _) => Err(error.into()),
            (None, Some(reason)) if !self.is_known(submission).await? => {
                Err(SendError::Unsendable { hash: newest.hash, reason: Box::new(reason) })
            }
            // An earlier offer is pending.
            _ => Ok(()),
        }
    }

    /// Whether any node that answers has any offer of a submission.
    pub async fn is_known_anywhere(&self, submission: &Submission) -> bool {
        for node in self.primary.endpoints() {
            for attempt in &submission.attempts {
                if is_known_at(node, attempt.hash).await.unwrap_or(false) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether any node has any offer of a submission. All nodes must answer.
    async fn is_known(&self, submission: &Submission) -> Result<bool, PrimaryError> {
        for node in self.primary.endpoints() {
            for attempt in &submission.attempts {
                if is_known_at(node, attempt.hash).await? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The outcome of a submission.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn status(&self, submission: &Submission) -> Result<Status, PrimaryError> {
        let mut failure = None;
        for node in self.primary.endpoints() {
            match self.status_at(node, submission).await {
                Err(error) if error.is_retryable() => failure = failure.or(Some(error)),
                answer => return answer,
            }
        }
        Err(failure.unwrap_or(PrimaryError::NoUrl))
    }

    /// As [`Sender::status`], at one of the configured nodes.
    ///
    /// # Errors
    /// If it does not answer, or there is no such node.
    pub async fn status_by(&self, node: usize, submission: &Submission) -> Result<Status, PrimaryError> {
        self.status_at(self.primary.endpoint(node)?, submission).await
    }

    /// The status at one node. The answers of two nodes must not be combined: one node that is ahead may show the
    /// nonce as used while another that lags lacks the transaction, and a sender that combined them would pay twice.
    async fn status_at(&self, node: &Endpoint, submission: &Submission) -> Result<Status, PrimaryError> {
        // In this order: a transaction that is final now cannot be missing from receipts requested later.
        let head = node.final_head(self.primary.finality()).await?;
        let counted = json!([submission.from, At::Number(head.number()).to_json()]);
        let final_nonce = node.request::<U64>("eth_getTransactionCount", counted).await?.to::<u64>();
        let mut looks = if final_nonce > submission.nonce { SUPERSEDED_LOOKS } else { 1 };
        loop {
            for attempt in submission.attempts.iter().rev() {
                if let Some(inclusion) = inclusion(node, attempt.hash).await? {
                    let blocks_left = inclusion.block_number.saturating_sub(head.number());
                    return Ok(match blocks_left {
                        0 => Status::Final(inclusion),
                        blocks_left => Status::Included { inclusion, blocks_left },
                    });
                }
            }
            looks = looks.saturating_sub(1);
            if looks == 0 {
                break;
            }
            tokio::time::sleep(SUPERSEDED_LOOK_INTERVAL).await;
        }
        if final_nonce > submission.nonce {
            return Ok(Status::Superseded);
        }
        let mut known = false;
        for attempt in submission.attempts.iter().rev() {
            known |= is_known_at(node, attempt.hash).await?;
        }
        Ok(Status::Pending { known })
    }

    fn add_attempt(&self, submission: &mut Submission, fees: Fees) -> Result<(), SendError> {
        let (hash, _) = self.sign(submission, fees)?;
        submission.attempts.push(Attempt { hash, fees });
        Ok(())
    }

    /// Whether the submission was signed with this key for this chain.
    #[must_use]
    pub fn is_own(&self, submission: &Submission) -> bool {
        self.check_own(submission).is_ok()
    }

    /// Checks that the submission was signed with this key for this chain.
    ///
    /// # Errors
    /// [`SendError::NoAttempt`], [`SendError::OtherKey`] or [`SendError::OtherChain`].
    pub fn check_own(&self, submission: &Submission) -> Result<(), SendError> {
        self.sign_again(submission).map(drop)
    }

    /// Signs the newest attempt again. Signing is deterministic, so an equal hash proves that it was signed with this
    /// key for this chain. On another chain, its call and its ETH would go to a stranger's contract at the same
    /// address.
    fn sign_again(&self, submission: &Submission) -> Result<(Attempt, Bytes), SendError> {
        let attempt = submission.attempts.last().ok_or(SendError::NoAttempt)?;
        let (hash, raw) = self.sign(submission, attempt.fees)?;
        if hash != attempt.hash {
            return Err(SendError::OtherChain { hash: attempt.hash, chain_id: self.primary.chain_id() });
        }
        Ok((*attempt, raw))
    }

    fn sign(&self, submission: &Submission, fees: Fees) -> Result<(B256, Bytes), SendError> {
        if submission.from != self.address() {
            return Err(SendError::OtherKey { stored: submission.from, given: self.address() });
        }
        let transaction = TxEip1559 {
            chain_id: self.primary.chain_id(),
            nonce: submission.nonce,
            gas_limit: submission.gas_limit,
            max_fee_per_gas: fees.max_fee_per_gas,
            max_priority_fee_per_gas: fees.max_priority_fee_per_gas,
            to: TxKind::Call(submission.call.to),
            value: submission.call.value,
            access_list: Default::default(),
            input: submission.call.data.clone(),
        };
        let signature = self.signer.sign_hash_sync(&transaction.signature_hash())?;
        let signed = transaction.into_signed(signature);
        Ok((*signed.hash(), signed.encoded_2718().into()))
    }
}

/// The inclusion of the transaction, as a node reports it now.
async fn inclusion(node: &Endpoint, hash: B256) -> Result<Option<Inclusion>, PrimaryError> {
    let receipt: Option<Receipt> = node.request("eth_getTransactionReceipt", json!([hash])).await?;
    let Some(receipt) = receipt else { return Ok(None) };
    let (Some(number), Some(block_hash)) = (receipt.block_number, receipt.block_hash) else { return Ok(None) };
    let block_number = number.to();
    // The receipt may be of a block that was just replaced.
    let block = node.block(At::Number(block_number)).await?;
    if block.is_none_or(|block| block.hash != block_hash) {
        return Ok(None);
    }
    let success = receipt.status == Some(U64::from(1));
    let gas_price_wei = receipt.effective_gas_price.map(U256::from);
    Ok(Some(Inclusion { hash, block_number, block_hash, success, gas_used: receipt.gas_used.to(), gas_price_wei }))
}

async fn is_known_at(node: &Endpoint, hash: B256) -> Result<bool, PrimaryError> {
    let found: Option<IgnoredAny> = node.request("eth_getTransactionByHash", json!([hash])).await?;
    Ok(found.is_some())
}

/// Converts an error to a revert if the simulation ran out of gas, which some nodes report by a text of their own.
fn out_of_gas_is_a_revert(error: PrimaryError) -> PrimaryError {
    const WORDS: [&str; 3] = ["out of gas", "outofgas", "gas required exceeds"];
    match &error {
        PrimaryError::Refused { message, .. } if mentions(message, &WORDS) => {
            PrimaryError::Reverted(Box::new(Revert::Unknown(Bytes::new())))
        }
        _ => error,
    }
}

fn mentions(message: &str, any: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    any.iter().any(|words| message.contains(words))
}

/// Whether a refusal is permanent: it does not depend on the state of the chain or of the node's pool. The texts are
/// those of geth, reth, Erigon, Nethermind, Besu and anvil.
fn is_for_good(message: &str) -> bool {
    const FOR_GOOD: [&str; 15] = [
        // The gas limit, against the cap of EIP-7825 and against the block's.
        "gas limit too high",
        "is greater than the cap",
        "gaslimitcapexceeded",
        "exceeds block gas limit",
        "gaslimitexceeded",
        "tx.gas_limit > env",
        "intrinsic gas",
        "floor data gas",
        "gas floor",
        // The node's own limit for the cost of one transaction (geth's --rpc.txfeecap).
        "exceeds the configured cap",
        "fee cap exceeded",
        "oversized data",
        "transaction type not supported",
        "rlp",
        "cannot be decoded",
    ];
    mentions(message, &FOR_GOOD)
}

/// Whether a refusal means that the node has this transaction, a better one with the same nonce, or one already in a
/// block. The chain then tells what really happened.
fn is_harmless(message: &str) -> bool {
    const HARMLESS: [&str; 6] =
        ["already known", "already imported", "already in the pool", "nonce too low", "underpriced", "already exists"];
    mentions(message, &HARMLESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_by_what_to_do() {
        for forever in [
            "transaction gas limit too high (cap: 16777216, tx: 18493817)",
            "transaction gas limit (18493817) is greater than the cap (16777216)",
            "exceeds block gas limit",
            "Transaction gas limit exceeds block gas limit",
            "intrinsic gas too low: gas 20000, minimum needed 21000",
            "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit",
            "insufficient gas for floor data gas cost: gas 100, minimum needed 200",
            "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)",
            "GasLimitExceeded, Gas limit: 30000000, gas limit of rejected tx: 31000000",
            "rlp: expected input list for types.DynamicFeeTx",
        ] {
            assert!(is_for_good(forever) && !is_harmless(forever), "{forever}");
        }
        for later in [
            "replacement transaction underpriced",
            "nonce too low: next nonce 5, tx nonce 4",
            "already known",
            "insufficient funds for gas * price + value",
            "txpool is full",
            "max fee per gas less than block base fee",
            "account limit exceeded",
            "too many requests",
        ] {
            assert!(!is_for_good(later), "{later}");
        }
    }
}

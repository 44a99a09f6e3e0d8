//! Sends transactions and stays with them until they are final.
//!
//! ```text
//!  Call ─► simulate ─► prepare ─► Submission ─► (caller stores it) ─► broadcast ─► status ─┬─► Final
//!                                    ▲                                  ▲           │      └─► Superseded
//!                                    └──── raise the offer if stuck ────┴── vanished┘
//! ```
//! A submission keeps one nonce for life, so however often it is sent, raised, forgotten by a node or
//! undone by a reorganisation, its call happens at most once. [`Sender::drive`] runs the whole loop
//! (`drive`); a caller with many submissions under way uses its steps.
//!
//! The key must be used by one sender at a time: two would hand out the same nonce, and one of their
//! transactions would be superseded.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
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
use crate::fees::{Fees, SenderConfig};
use crate::primary::Primary;
use crate::submission::{Attempt, Call, Inclusion, Status, Submission};

/// So often, and so far apart, the chain must show no trace of a transaction whose nonce is used before it
/// counts as superseded. A node in the middle of taking a block in may know of the nonce before it knows of
/// the transaction; believing it once could have somebody pay twice.
const SUPERSEDED_LOOKS: u32 = 6;
const SUPERSEDED_LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// The least gas that a transaction may use beyond the estimate: three slots of storage that are empty again cost
/// 17,100 more each. What is not used costs nothing.
const SPARE_GAS_MIN: u64 = 60_000;

/// How much gas a transaction may use for which a node estimates so much. More, because the state may change before the
/// block: most of all where it is estimated on blocks that a reorganisation takes back, and what was written there has to be
/// written for the first time.
#[must_use]
pub fn gas_limit(estimate: u64) -> u64 {
    estimate.saturating_add((estimate / 4).max(SPARE_GAS_MIN))
}

/// Why a call was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The Primary refused it or could not be asked.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The chain asks for more than the configured most.
    #[error(
        "the chain's base fee of {base_fee_gwei} gwei is above the cap of {cap_gwei} gwei; wait or raise max_fee_cap_gwei"
    )]
    FeesTooHigh {
        /// The newest block's base fee in gwei, rounded down.
        base_fee_gwei: u128,
        /// The configured cap in gwei.
        cap_gwei: u64,
    },
    /// It came into the chain and reverted, because something changed since it was simulated.
    #[error("transaction {hash} reverted in block {block_number} and changed nothing; look at it before trying again")]
    RevertedOnChain {
        /// The transaction's hash.
        hash: B256,
        /// The block's number.
        block_number: u64,
    },
    /// Another transaction took its nonce: the key is used elsewhere too.
    #[error("another transaction of {from} took nonce {nonce}; check what it did before trying again")]
    Superseded {
        /// Whose key is used elsewhere too.
        from: Address,
        /// The nonce.
        nonce: u64,
    },
    /// A stored submission is of another key.
    #[error("the stored transaction is of {stored} and the key given is of {given}; give the right key")]
    OtherKey {
        /// Who sent the stored submission.
        stored: Address,
        /// Whose key is given.
        given: Address,
    },
    /// A stored submission is of another chain, where what it calls is something else.
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
    /// The submission could not be stored, so it was not sent.
    #[error("the transaction could not be stored and was not sent: {0}")]
    NotStored(#[from] io::Error),
    /// The key did not sign.
    #[error("the key did not sign: {0}")]
    Signing(#[from] alloy::signers::Error),
}

impl SendError {
    /// True where the same call may succeed later without anybody's help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Primary(error) => error.is_retryable(),
            Self::FeesTooHigh { .. } => true,
            Self::RevertedOnChain { .. }
            | Self::Superseded { .. }
            | Self::OtherKey { .. }
            | Self::OtherChain { .. }
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
    /// The lowest nonce above all those that were broadcast here.
    next_nonce: AtomicU64,
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
        Self { primary, signer, config, next_nonce: AtomicU64::new(0) }
    }

    /// Whose transactions these are.
    #[must_use]
    pub fn address(&self) -> Address {
        self.signer.address()
    }

    /// Keeps the nonce of a stored submission from being given away again. For a caller that starts with
    /// submissions under way; broadcasting does the same.
    pub fn adopt(&self, submission: &Submission) {
        self.next_nonce.fetch_max(submission.nonce.saturating_add(1), Ordering::AcqRel);
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

    /// Tries the call on the newest block without sending it, and estimates its gas.
    ///
    /// # Errors
    /// [`PrimaryError::Reverted`] with the contract's reason, [`PrimaryError::InsufficientFunds`], or no
    /// node answers.
    pub async fn simulate(&self, call: &Call) -> Result<u64, PrimaryError> {
        let transaction = json!({ "from": self.address(), "to": call.to, "value": call.value, "data": call.data });
        // Asked first because its error names the reason at every node; an estimate's often does not.
        let _: Bytes = self.primary.request("eth_call", json!([transaction, "latest"])).await?;
        let gas: U64 = self.primary.request("eth_estimateGas", json!([transaction, "latest"])).await?;
        Ok(gas.to())
    }

    /// Signs the call with the next nonce, after simulating it. Nothing is sent yet: store the submission,
    /// then [`Sender::broadcast`] it. A prepared submission that is not broadcast leaves no trace, and the
    /// next one gets the same nonce.
    ///
    /// # Errors
    /// As [`Sender::simulate`], and where fees are above the cap.
    pub async fn prepare(&self, call: Call) -> Result<Submission, SendError> {
        let gas = self.simulate(&call).await?;
        self.prepare_with_gas(call, gas).await
    }

    pub(crate) async fn prepare_with_gas(&self, call: Call, gas: u64) -> Result<Submission, SendError> {
        let (base_fee, fees) = self.primary.current_offer(&self.config).await?;
        if base_fee > fees.max_fee_per_gas {
            let cap_gwei = self.config.max_fee_cap_gwei;
            return Err(SendError::FeesTooHigh { base_fee_gwei: base_fee / 1_000_000_000, cap_gwei });
        }
        let waiting = self.primary.transaction_count(self.address(), At::Pending).await?;
        let nonce = waiting.max(self.next_nonce.load(Ordering::Acquire));
        let mut submission =
            Submission { call, from: self.address(), nonce, gas_limit: gas_limit(gas), attempts: Vec::new() };
        self.add_attempt(&mut submission, fees)?;
        Ok(submission)
    }

    /// The same submission with a better offer, to be stored and broadcast; none where the caps allow no
    /// better one, and it has to wait.
    ///
    /// # Errors
    /// Where no node answers, or the submission is of another key or chain.
    pub async fn raised(&self, submission: &Submission) -> Result<Option<Submission>, SendError> {
        self.sign_again(submission)?;
        let (_, fresh) = self.primary.current_offer(&self.config).await?;
        let offer = match submission.attempts.last() {
            Some(last) => self.config.next_offer(last.fees, fresh),
            None => Some(fresh),
        };
        let Some(fees) = offer else { return Ok(None) };
        let mut raised = submission.clone();
        self.add_attempt(&mut raised, fees)?;
        Ok(Some(raised))
    }

    /// Sends the newest attempt to every node. A node that has it already, or has a later state, is as
    /// good as one that takes it.
    ///
    /// # Errors
    /// Where no node took it; it may then be sent again. Where the submission is of another key or chain; then it
    /// was not sent.
    pub async fn broadcast(&self, submission: &Submission) -> Result<(), SendError> {
        let Some(raw) = self.sign_again(submission)? else { return Ok(()) };
        self.adopt(submission);
        let mut failure = None;
        let mut taken = false;
        for node in self.primary.endpoints() {
            match node.request::<B256>("eth_sendRawTransaction", json!([raw])).await {
                Ok(_) => taken = true,
                Err(PrimaryError::Refused { message, .. }) if is_harmless(&message) => taken = true,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) if !taken => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// What became of a submission.
    ///
    /// # Errors
    /// Where no node answers.
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

    /// What one node knows of it. Never parts of what two know: the nonce may be used at one that is ahead, and the
    /// transaction not yet be there at one that lags, and whoever puts that together pays twice.
    async fn status_at(&self, node: &Endpoint, submission: &Submission) -> Result<Status, PrimaryError> {
        // In this order: what is final now cannot be missing from the receipts asked for afterwards.
        let head = node.final_head(self.primary.finality()).await?;
        let counted = json!([submission.from, At::Number(head.number()).to_json()]);
        let final_nonce = node.request::<U64>("eth_getTransactionCount", counted).await?.to::<u64>();
        let mut looks = if final_nonce > submission.nonce { SUPERSEDED_LOOKS } else { 1 };
        loop {
            for attempt in submission.attempts.iter().rev() {
                if let Some(inclusion) = inclusion(node, attempt.hash).await? {
                    let is_final = inclusion.block_number <= head.number();
                    return Ok(if is_final { Status::Final(inclusion) } else { Status::Included(inclusion) });
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
            let found: Option<IgnoredAny> = node.request("eth_getTransactionByHash", json!([attempt.hash])).await?;
            known |= found.is_some();
        }
        Ok(Status::Pending { known })
    }

    fn add_attempt(&self, submission: &mut Submission, fees: Fees) -> Result<(), SendError> {
        let (hash, _) = self.sign(submission, fees)?;
        submission.attempts.push(Attempt { hash, fees });
        Ok(())
    }

    /// True where the submission is of this key and this chain.
    #[must_use]
    pub fn is_own(&self, submission: &Submission) -> bool {
        self.sign_again(submission).is_ok()
    }

    /// The newest attempt. Signing is deterministic, so its hash says whether it was signed with this key for this
    /// chain: sent on another one, its call and its ETH would go to whoever has the contract's address there.
    fn sign_again(&self, submission: &Submission) -> Result<Option<Bytes>, SendError> {
        let Some(attempt) = submission.attempts.last() else { return Ok(None) };
        let (hash, raw) = self.sign(submission, attempt.fees)?;
        if hash != attempt.hash {
            return Err(SendError::OtherChain { hash: attempt.hash, chain_id: self.primary.chain_id() });
        }
        Ok(Some(raw))
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

/// Where the transaction is in the chain as a node has it now.
async fn inclusion(node: &Endpoint, hash: B256) -> Result<Option<Inclusion>, PrimaryError> {
    let receipt: Option<Receipt> = node.request("eth_getTransactionReceipt", json!([hash])).await?;
    let Some(receipt) = receipt else { return Ok(None) };
    let (Some(number), Some(block_hash)) = (receipt.block_number, receipt.block_hash) else { return Ok(None) };
    let block_number = number.to();
    // The receipt may be of a block that has just been abandoned.
    let block = node.block(At::Number(block_number)).await?;
    if block.is_none_or(|block| block.hash != block_hash) {
        return Ok(None);
    }
    let success = receipt.status == Some(U64::from(1));
    let gas_price_wei = receipt.effective_gas_price.map(U256::from);
    Ok(Some(Inclusion { hash, block_number, block_hash, success, gas_used: receipt.gas_used.to(), gas_price_wei }))
}

/// True for a refusal that means that the node has this transaction, a better one of the same nonce, or
/// one already in a block. What really happened is then asked of the chain.
fn is_harmless(message: &str) -> bool {
    const HARMLESS: [&str; 6] =
        ["already known", "already imported", "already in the pool", "nonce too low", "underpriced", "already exists"];
    let message = message.to_ascii_lowercase();
    HARMLESS.iter().any(|words| message.contains(words))
}

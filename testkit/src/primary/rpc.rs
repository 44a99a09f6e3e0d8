//! JSON-RPC: answers the requests of Ethereum's clients from one branch of the chain.

use std::sync::Arc;

use alloy::consensus::TxEnvelope;
use alloy::eips::eip2718::Decodable2718;
use alloy::eips::{BlockId, BlockNumberOrTag};
use alloy::primitives::{Address, B256, Bytes, TxKind, U64, U256};
use alloy::rpc::types::{FeeHistory, Filter, FilterBlockOption, Log, TransactionRequest};
use alloy::sol_types::{Revert, SolError};
use revm::context::result::ExecutionResult;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::block::{Block, Transaction, waiting_transaction};
use super::chain::{BLOCK_GAS_MAX, Chain};
use super::evm::{self, NotRun, TRANSACTION_GAS_MAX, TrialCall};
use super::pool::PoolError;
use super::state::{EvmDatabase, WorldState};

/// The tip for the proposer that nodes suggest, in wei per gas.
const SUGGESTED_TIP: u64 = 1_000_000_000;
/// The maximum number of blocks in a fee history.
const FEE_HISTORY_MAX: u64 = 1_024;

/// An error in its JSON-RPC form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RpcFailure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Bytes>,
}

impl RpcFailure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn invalid(what: &str) -> Self {
        Self::new(-32_602, format!("invalid params: {what}"))
    }
}

impl From<NotRun> for RpcFailure {
    fn from(error: NotRun) -> Self {
        match error {
            NotRun::InsufficientFunds => PoolError::InsufficientFunds.into(),
            NotRun::Invalid(reason) => Self::new(-32_000, reason),
        }
    }
}

impl From<PoolError> for RpcFailure {
    fn from(error: PoolError) -> Self {
        Self::new(-32_000, error.to_string())
    }
}

type Answer = Result<Value, RpcFailure>;

/// Submits a signed transaction.
pub(super) fn submit(chain: &mut Chain, params: &[Value]) -> Answer {
    let raw: Bytes = parameter(params, 0)?;
    let undecodable = |error: String| RpcFailure::new(-32_000, format!("the transaction cannot be decoded: {error}"));
    let transaction = TxEnvelope::decode_2718_exact(&raw).map_err(|error| undecodable(error.to_string()))?;
    let signer = transaction.signature().recover_address_from_prehash(&transaction.signature_hash());
    let signer = signer.map_err(|error| undecodable(error.to_string()))?;
    let transaction = Transaction::new_unchecked(transaction, signer);
    let hash = *transaction.tx_hash();
    chain.submit(transaction)?;
    to_json(hash)
}

/// A node's view of the chain, up to the block that it considers the newest.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) chain: &'a Chain,
    pub(super) branch: &'a [Arc<Block>],
}

impl<'a> View<'a> {
    /// Answers any request.
    pub(super) fn answer(&self, method: &str, params: &[Value]) -> Answer {
        match method {
            "eth_chainId" => to_json(U64::from(self.chain.config.chain_id)),
            "eth_blockNumber" => to_json(U64::from(self.newest().number())),
            "eth_getBlockByNumber" => {
                let block = self.block(BlockId::Number(parameter(params, 0)?));
                to_json(block.map(|block| block.to_rpc(params.get(1) == Some(&json!(true)))))
            }
            "eth_getBlockByHash" => {
                let block = self.block(BlockId::Hash(parameter::<B256>(params, 0)?.into()));
                to_json(block.map(|block| block.to_rpc(params.get(1) == Some(&json!(true)))))
            }
            "eth_getLogs" => self.logs(&parameter(params, 0)?),
            "eth_call" => self.call(params),
            "eth_estimateGas" => self.estimate(params),
            "eth_getCode" => to_json(self.state(params, 1)?.code(parameter(params, 0)?).original_bytes()),
            "eth_getStorageAt" => {
                let value = self.state(params, 2)?.storage(parameter(params, 0)?, parameter(params, 1)?);
                to_json(B256::from(value))
            }
            "eth_getBalance" => to_json(self.state(params, 1)?.balance(parameter(params, 0)?)),
            "eth_getTransactionCount" => self.transaction_count(params),
            "eth_gasPrice" => to_json(U64::from(self.newest().base_fee() + SUGGESTED_TIP)),
            "eth_maxPriorityFeePerGas" => to_json(U64::from(SUGGESTED_TIP)),
            "eth_feeHistory" => self.fee_history(parameter::<U64>(params, 0)?.to(), parameter(params, 1)?),
            "eth_getTransactionReceipt" => {
                let place = self.included(parameter(params, 0)?);
                to_json(place.map(|(block, position)| block.receipt(position)))
            }
            "eth_getTransactionByHash" => {
                let hash = parameter(params, 0)?;
                let included = self.included(hash).map(|(block, position)| block.transaction(position));
                to_json(included.or_else(|| self.chain.pool.get(hash).map(waiting_transaction)))
            }
            _ => Err(RpcFailure::new(-32_601, format!("the method {method} does not exist/is not available"))),
        }
    }

    fn newest(&self) -> &'a Arc<Block> {
        self.branch.last().expect("a node has at least the first block")
    }

    fn number(&self, tag: BlockNumberOrTag) -> u64 {
        let newest = self.newest().number();
        match tag {
            BlockNumberOrTag::Latest | BlockNumberOrTag::Pending => newest,
            BlockNumberOrTag::Finalized => self.chain.final_of(newest),
            BlockNumberOrTag::Safe => newest.saturating_sub(self.chain.config.safe_depth),
            BlockNumberOrTag::Earliest => 0,
            BlockNumberOrTag::Number(number) => number,
        }
    }

    pub(super) fn block(&self, id: BlockId) -> Option<&'a Arc<Block>> {
        match id {
            BlockId::Number(tag) => self.branch.get(usize::try_from(self.number(tag)).ok()?),
            BlockId::Hash(hash) => self.branch.iter().rev().find(|block| block.hash() == hash.block_hash),
        }
    }

    fn block_and_state(&self, params: &[Value], index: usize) -> Result<(&'a Block, &'a WorldState), RpcFailure> {
        let id = if params.get(index).is_some() { parameter(params, index)? } else { BlockId::latest() };
        let block = self.block(id).ok_or_else(|| RpcFailure::new(-32_000, "header not found"))?;
        let state = self.chain.state(block.hash());
        let forgotten = || RpcFailure::new(-32_000, format!("missing trie node: no state of block {}", block.number()));
        Ok((block, state.ok_or_else(forgotten)?))
    }

    fn state(&self, params: &[Value], index: usize) -> Result<&'a WorldState, RpcFailure> {
        Ok(self.block_and_state(params, index)?.1)
    }

    fn included(&self, hash: B256) -> Option<(&'a Block, usize)> {
        self.branch.iter().rev().find_map(|block| Some((block.as_ref(), block.position(hash)?)))
    }

    fn transaction_count(&self, params: &[Value]) -> Answer {
        let (owner, state) = (parameter(params, 0)?, self.state(params, 1)?);
        let is_pending = params.get(1) == Some(&json!("pending"));
        let count = if is_pending { self.chain.pool.next_nonce(owner, state) } else { state.nonce(owner) };
        to_json(U64::from(count))
    }

    /// All logs that match the filter.
    pub(super) fn matching_logs(&self, filter: &Filter) -> Result<Vec<Log>, RpcFailure> {
        let (first, last) = match filter.block_option {
            FilterBlockOption::AtBlockHash(hash) => {
                let block = self.block(hash.into()).ok_or_else(|| RpcFailure::new(-32_000, "unknown block"))?;
                (block.number(), block.number())
            }
            FilterBlockOption::Range { from_block, to_block } => {
                (self.number(from_block.unwrap_or_default()), self.number(to_block.unwrap_or_default()))
            }
        };
        if first > last {
            return Err(RpcFailure::invalid("invalid block range"));
        }
        let blocks = self.branch.iter().filter(|block| (first..=last).contains(&block.number()));
        let logs = blocks.flat_map(|block| (0..block.transactions.len()).flat_map(|position| block.logs(position)));
        Ok(logs.filter(|log| filter.matches(&log.inner)).collect())
    }

    fn logs(&self, filter: &Filter) -> Answer {
        to_json(self.matching_logs(filter)?)
    }

    fn call(&self, params: &[Value]) -> Answer {
        let (block, state) = self.block_and_state(params, 1)?;
        let call = trial_call(parameter(params, 0)?);
        let database = EvmDatabase { state, branch: self.branch };
        match evm::try_call(&block.header, self.chain.config.chain_id, &database, &call)? {
            ExecutionResult::Success { output, .. } => to_json(output.into_data()),
            failed => Err(failure(&failed)),
        }
    }

    fn estimate(&self, params: &[Value]) -> Answer {
        let (block, state) = self.block_and_state(params, 1)?;
        let call = trial_call(parameter(params, 0)?);
        let database = EvmDatabase { state, branch: self.branch };
        match evm::estimate(&block.header, self.chain.config.chain_id, &database, &call)? {
            Ok(gas) => to_json(U64::from(gas)),
            Err(failed) => Err(failure(&failed)),
        }
    }

    fn fee_history(&self, count: u64, newest: BlockNumberOrTag) -> Answer {
        let last = self.block(newest.into()).ok_or_else(|| RpcFailure::new(-32_000, "header not found"))?.number();
        let first = (last + 1).saturating_sub(count.clamp(1, FEE_HISTORY_MAX));
        let blocks = || self.branch.iter().filter(|block| (first..=last).contains(&block.number()));
        let after = self.branch.get(usize::try_from(last).unwrap_or(usize::MAX).saturating_add(1));
        let next = after.map_or_else(|| self.chain.next_base_fee(), |block| block.base_fee());
        let ratio = |block: &Arc<Block>| block.header.gas_used as f64 / BLOCK_GAS_MAX as f64;
        to_json(FeeHistory {
            base_fee_per_gas: blocks().map(|block| block.base_fee()).chain([next]).map(u128::from).collect(),
            gas_used_ratio: blocks().map(ratio).collect(),
            oldest_block: first,
            ..FeeHistory::default()
        })
    }
}

fn trial_call(request: TransactionRequest) -> TrialCall {
    TrialCall {
        from: request.from.unwrap_or(Address::ZERO),
        to: request.to.unwrap_or(TxKind::Create),
        value: request.value.unwrap_or(U256::ZERO),
        gas: request.gas.unwrap_or(TRANSACTION_GAS_MAX),
        fees: request.max_fee_per_gas.map(|max_fee| (max_fee, request.max_priority_fee_per_gas.unwrap_or_default())),
        data: request.input.into_input().unwrap_or_default(),
    }
}

/// The RPC error of a failed call.
fn failure(result: &ExecutionResult) -> RpcFailure {
    match result {
        ExecutionResult::Revert { output, .. } => {
            let reason = Revert::abi_decode(output).map(|error| format!(": {}", error.reason)).unwrap_or_default();
            RpcFailure { code: 3, message: format!("execution reverted{reason}"), data: Some(output.clone()) }
        }
        ExecutionResult::Halt { reason, .. } => RpcFailure::new(-32_000, format!("EVM error {reason:?}")),
        ExecutionResult::Success { .. } => RpcFailure::new(-32_000, "it succeeds"),
    }
}

fn parameter<T: DeserializeOwned>(params: &[Value], index: usize) -> Result<T, RpcFailure> {
    let value = params.get(index).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| RpcFailure::invalid(&format!("argument {index}: {error}")))
}

fn to_json(value: impl Serialize) -> Answer {
    Ok(serde_json::to_value(value).expect("the types of JSON-RPC are JSON"))
}

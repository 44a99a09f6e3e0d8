//! The chain: its blocks, the state after each, the waiting transactions, and how blocks are added and replaced.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy::consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use alloy::consensus::{Header, Sealable};
use alloy::eips::eip1559::{BaseFeeParams, calc_next_block_base_fee};
use alloy::primitives::{Address, B256, Bloom, U256, keccak256};

use super::block::{Block, Included, Transaction};
use super::evm;
use super::pool::{Pool, PoolError};
use super::state::{EvmDatabase, WorldState};

/// The address that receives the tips.
const PROPOSER: Address = Address::repeat_byte(0xbe);
/// The maximum gas of a block.
pub(super) const BLOCK_GAS_MAX: u64 = 30_000_000;

/// The parameters of a chain. Every field may be changed before the chain begins.
#[derive(Clone, Copy, Debug)]
pub struct ChainConfig {
    /// The chain id of EIP-155.
    pub chain_id: u64,
    /// The number of blocks by which the newest final block is behind the newest.
    pub finalized_depth: u64,
    /// The number of blocks by which the newest safe block is behind the newest.
    pub safe_depth: u64,
    /// The number of newest blocks whose state nodes keep.
    pub state_depth: u64,
    /// The time of the first block, in seconds since 1970.
    pub genesis_time_s: u64,
    /// The first block's base fee, in wei per gas.
    pub base_fee: u64,
}

impl Default for ChainConfig {
    /// Anvil's chain id and finality, and geth's state depth.
    fn default() -> Self {
        Self {
            chain_id: crate::anvil::CHAIN_ID,
            finalized_depth: 2,
            safe_depth: 1,
            state_depth: 128,
            genesis_time_s: 1_800_000_000,
            base_fee: 1_000_000_000,
        }
    }
}

/// The fate of a transaction whose block is abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The first of the new blocks includes it again, if it still can.
    Again,
    /// It waits, and the block after the new ones may include it.
    Later,
    /// All nodes forget it.
    Lost,
}

/// One chain.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) config: ChainConfig,
    /// No block after this one becomes final.
    pub(super) final_max: Option<u64>,
    /// The blocks from genesis to the newest.
    pub(super) branch: Vec<Arc<Block>>,
    /// The state after each block that is recent enough, including abandoned blocks.
    states: BTreeMap<B256, WorldState>,
    pub(super) pool: Pool,
    /// The base fee of the next block, if it is set.
    base_fee_next: Option<u64>,
    /// A counter that distinguishes blocks that would otherwise be equal.
    sealed: u64,
    /// A digest of all requests and answers.
    pub(super) digest: B256,
}

impl Chain {
    pub(super) fn new(config: ChainConfig) -> Self {
        let header = Header {
            timestamp: config.genesis_time_s,
            base_fee_per_gas: Some(config.base_fee),
            gas_limit: BLOCK_GAS_MAX,
            ..Header::default()
        };
        let mut chain = Self {
            config,
            final_max: None,
            branch: Vec::new(),
            states: BTreeMap::new(),
            pool: Pool::default(),
            base_fee_next: None,
            sealed: 0,
            digest: B256::ZERO,
        };
        chain.seal(header, Vec::new(), WorldState::default());
        chain.base_fee_next = Some(config.base_fee);
        chain
    }

    /// The newest final block's number when the newest block is `newest`.
    pub(super) fn final_of(&self, newest: u64) -> u64 {
        newest.saturating_sub(self.config.finalized_depth).min(self.final_max.unwrap_or(u64::MAX))
    }

    pub(super) fn newest(&self) -> &Arc<Block> {
        self.branch.last().expect("there is always a first block")
    }

    /// The state after a block; `None` if the chain has forgotten it.
    pub(super) fn state(&self, block: B256) -> Option<&WorldState> {
        self.states.get(&block)
    }

    pub(super) fn newest_state(&self) -> &WorldState {
        self.state(self.newest().hash()).expect("the newest block's state is kept")
    }

    /// Sets an account's balance in the state of every block, so that no reorganisation reverts it.
    pub(super) fn set_balance(&mut self, owner: Address, wei: U256) {
        self.states.values_mut().for_each(|state| state.set_balance(owner, wei));
    }

    /// Changes an account's storage after the newest block.
    pub(super) fn set_storage(&mut self, owner: Address, slot: U256, value: U256) {
        let newest = self.newest().hash();
        self.states.get_mut(&newest).expect("the newest block's state is kept").set_storage(owner, slot, value);
    }

    /// The base fee of the next block, in wei per gas.
    pub(super) fn next_base_fee(&self) -> u64 {
        let newest = &self.newest().header;
        self.base_fee_next.unwrap_or_else(|| {
            let base_fee = newest.base_fee_per_gas.unwrap_or_default();
            calc_next_block_base_fee(newest.gas_used, newest.gas_limit, base_fee, BaseFeeParams::ethereum())
        })
    }

    pub(super) fn set_next_base_fee(&mut self, wei: u64) {
        self.base_fee_next = Some(wei);
    }

    pub(super) fn submit(&mut self, transaction: Transaction) -> Result<(), PoolError> {
        let state = self.states.get(&self.newest().hash()).expect("the newest block's state is kept");
        self.pool.add(transaction, self.config.chain_id, state)
    }

    /// Adds a block at this time, in seconds since 1970 (at least a second after the block before), with the waiting
    /// transactions that pay enough.
    pub(super) fn mine(&mut self, time_s: u64) {
        let parent = self.newest().clone();
        let mut header = Header {
            parent_hash: parent.hash(),
            number: parent.number() + 1,
            timestamp: time_s.max(parent.header.timestamp + 1),
            beneficiary: PROPOSER,
            gas_limit: BLOCK_GAS_MAX,
            base_fee_per_gas: Some(self.next_base_fee()),
            mix_hash: keccak256(parent.hash()),
            ..Header::default()
        };
        let mut state = self.newest_state().clone();
        let (mut included, mut passed_by) = (Vec::new(), Vec::new());
        let base_fee = header.base_fee_per_gas.unwrap_or_default();
        while let Some(transaction) = self.pool.best(&state, base_fee, BLOCK_GAS_MAX - header.gas_used, &passed_by) {
            let database = EvmDatabase { state: &state, branch: &self.branch };
            let Ok(outcome) = evm::execute(&header, self.config.chain_id, &database, &transaction) else {
                passed_by.push(*transaction.tx_hash());
                continue;
            };
            state.apply(outcome.state);
            header.gas_used += outcome.result.tx_gas_used();
            included.push(to_included(transaction, outcome.result, &included, header.gas_used));
        }
        self.seal(header, included, state);
        self.pool.prune(self.states.get(&self.newest().hash()).expect("it was just kept"));
    }

    /// Replaces the newest `depth` blocks with as many others at the same times. `fate` decides about each of their
    /// transactions. Those included again come in the order of the calls of `fate`, if they pay the same.
    pub(super) fn reorganise(&mut self, depth: usize, mut fate: impl FnMut(B256) -> Fate) {
        let keep = self.branch.len().saturating_sub(depth).max(1);
        let abandoned = self.branch.split_off(keep);
        let waiting = std::mem::take(&mut self.pool);
        let base_fee_next = self.base_fee_next.take();
        let mut later = Vec::new();
        // The newest come first: the last transactions of the old blocks are first in the new ones, where nonces allow.
        for transaction in abandoned.iter().rev().flat_map(|block| &block.transactions) {
            match fate(transaction.hash()) {
                Fate::Again => self.pool.put_back(transaction.transaction.clone()),
                Fate::Later => later.push(transaction.transaction.clone()),
                Fate::Lost => {}
            }
        }
        for block in &abandoned {
            self.mine(block.header.timestamp);
        }
        self.base_fee_next = base_fee_next;
        for transaction in later.into_iter().chain(waiting.iter().cloned()) {
            self.pool.put_back(transaction);
        }
        self.pool.prune(self.states.get(&self.newest().hash()).expect("the newest block's state is kept"));
    }

    fn seal(&mut self, mut header: Header, transactions: Vec<Included>, state: WorldState) {
        self.sealed += 1;
        self.base_fee_next = None;
        let signed: Vec<_> = transactions.iter().map(|included| included.transaction.inner()).collect();
        let receipts: Vec<_> = transactions.iter().map(Included::consensus_receipt).collect();
        header.transactions_root = calculate_transaction_root(&signed);
        header.receipts_root = calculate_receipt_root(&receipts);
        header.logs_bloom = transactions.iter().flat_map(|included| &included.logs).collect::<Bloom>();
        // The header has no state root: no client here checks Merkle proofs.
        header.extra_data = self.sealed.to_be_bytes().into();
        let block = Block { header: header.seal_slow(), transactions };
        self.states.insert(block.hash(), state);
        self.branch.push(Arc::new(block));
        self.forget_old_states();
    }

    fn forget_old_states(&mut self) {
        let newest = self.branch.len() as u64 - 1;
        if newest < self.config.state_depth || self.states.len() as u64 <= 2 * self.config.state_depth {
            return;
        }
        let first = usize::try_from(newest - self.config.state_depth).unwrap_or(usize::MAX);
        let kept: std::collections::BTreeSet<B256> = self.branch.iter().skip(first).map(|block| block.hash()).collect();
        self.states.retain(|hash, _| kept.contains(hash));
    }
}

fn to_included(
    transaction: Transaction,
    result: revm::context::result::ExecutionResult,
    before: &[Included],
    cumulative_gas_used: u64,
) -> Included {
    let created = match &result {
        revm::context::result::ExecutionResult::Success { output, .. } => output.address().copied(),
        _ => None,
    };
    Included {
        transaction,
        success: result.is_success(),
        gas_used: result.tx_gas_used(),
        cumulative_gas_used,
        created,
        first_log: before.iter().map(|included| included.logs.len() as u64).sum(),
        logs: result.into_logs(),
    }
}

//! Waiting transactions, by the rules of common nodes: one for each sender and nonce, replaced only by a better offer.

use std::collections::BTreeMap;

use alloy::consensus::Transaction as _;
use alloy::primitives::{Address, B256, U256};

use super::block::Transaction;
use super::evm::TRANSACTION_GAS_MAX;
use super::state::WorldState;

/// The percentage by which a replacement has to raise both fees.
const REPLACEMENT_PERCENT: u128 = 10;

/// Why the pool refuses a transaction, in geth's words, which senders parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PoolError {
    #[error("already known")]
    AlreadyKnown,
    #[error("nonce too low")]
    NonceTooLow,
    #[error("replacement transaction underpriced")]
    Underpriced,
    #[error("insufficient funds for gas * price + value")]
    InsufficientFunds,
    #[error("max priority fee per gas higher than max fee per gas")]
    TipAboveCap,
    #[error("transaction gas limit too high")]
    GasLimitTooHigh,
    #[error("invalid chain id for signer")]
    WrongChain,
    #[error("transaction type not supported")]
    UnsupportedType,
}

#[derive(Clone, Debug)]
struct Waiting {
    transaction: Transaction,
    /// The order of arrival: the earlier of two equal offers goes first.
    arrival: u64,
}

/// The waiting transactions.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    waiting: BTreeMap<(Address, u64), Waiting>,
    arrivals: u64,
}

impl Pool {
    /// Adds a transaction.
    pub(super) fn add(&mut self, transaction: Transaction, chain_id: u64, state: &WorldState) -> Result<(), PoolError> {
        let (sender, nonce) = (transaction.signer(), transaction.nonce());
        if transaction.is_eip4844() || transaction.is_eip7702() {
            return Err(PoolError::UnsupportedType);
        }
        if transaction.chain_id().is_some_and(|id| id != chain_id) {
            return Err(PoolError::WrongChain);
        }
        if transaction.gas_limit() > TRANSACTION_GAS_MAX {
            return Err(PoolError::GasLimitTooHigh);
        }
        if tip_cap(&transaction) > transaction.max_fee_per_gas() {
            return Err(PoolError::TipAboveCap);
        }
        if nonce < state.nonce(sender) {
            return Err(PoolError::NonceTooLow);
        }
        if let Some(present) = self.waiting.get(&(sender, nonce)) {
            if present.transaction.tx_hash() == transaction.tx_hash() {
                return Err(PoolError::AlreadyKnown);
            }
            let better = |old: u128, new: u128| new * 100 >= old * (100 + REPLACEMENT_PERCENT);
            if !better(present.transaction.max_fee_per_gas(), transaction.max_fee_per_gas())
                || !better(tip_cap(&present.transaction), tip_cap(&transaction))
            {
                return Err(PoolError::Underpriced);
            }
        }
        let gas = U256::from(transaction.gas_limit()).saturating_mul(U256::from(transaction.max_fee_per_gas()));
        if gas.saturating_add(transaction.value()) > state.balance(sender) {
            return Err(PoolError::InsufficientFunds);
        }
        self.put(transaction);
        Ok(())
    }

    /// Puts a transaction of an abandoned block back, behind all others, unless another one has taken its nonce.
    pub(super) fn put_back(&mut self, transaction: Transaction) {
        if !self.waiting.contains_key(&(transaction.signer(), transaction.nonce())) {
            self.put(transaction);
        }
    }

    fn put(&mut self, transaction: Transaction) {
        self.arrivals += 1;
        let place = (transaction.signer(), transaction.nonce());
        self.waiting.insert(place, Waiting { transaction, arrival: self.arrivals });
    }

    /// The transaction of this hash.
    pub(super) fn get(&self, hash: B256) -> Option<&Transaction> {
        self.iter().find(|transaction| *transaction.tx_hash() == hash)
    }

    /// All waiting transactions, by sender and nonce.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Transaction> {
        self.waiting.values().map(|waiting| &waiting.transaction)
    }

    /// Forgets a transaction. Returns false if it is not in the pool.
    pub(super) fn forget(&mut self, hash: B256) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|_, waiting| *waiting.transaction.tx_hash() != hash);
        self.waiting.len() < before
    }

    /// Forgets the transactions whose nonces are used.
    pub(super) fn prune(&mut self, state: &WorldState) {
        self.waiting.retain(|(sender, nonce), _| *nonce >= state.nonce(*sender));
    }

    /// The next nonce of a sender, counting waiting transactions without gaps.
    pub(super) fn next_nonce(&self, sender: Address, state: &WorldState) -> u64 {
        let mut nonce = state.nonce(sender);
        while self.waiting.contains_key(&(sender, nonce)) {
            nonce += 1;
        }
        nonce
    }

    /// The next transaction for a block, after those already in `state`: the best tip among all senders' next
    /// transactions that pay the base fee, need no more than `gas`, and are not in `passed_by`.
    pub(super) fn best(&self, state: &WorldState, base_fee: u64, gas: u64, passed_by: &[B256]) -> Option<Transaction> {
        let is_next = |place: &(Address, u64)| place.1 == state.nonce(place.0);
        let candidates = self.waiting.iter().filter(|(place, waiting)| {
            let transaction = &waiting.transaction;
            is_next(place)
                && transaction.max_fee_per_gas() >= u128::from(base_fee)
                && transaction.gas_limit() <= gas
                && !passed_by.contains(transaction.tx_hash())
        });
        let tip = |waiting: &Waiting| waiting.transaction.effective_tip_per_gas(base_fee).unwrap_or_default();
        let best = candidates.max_by_key(|(_, waiting)| (tip(waiting), std::cmp::Reverse(waiting.arrival)));
        best.map(|(_, waiting)| waiting.transaction.clone())
    }
}

fn tip_cap(transaction: &Transaction) -> u128 {
    transaction.max_priority_fee_per_gas().unwrap_or_else(|| transaction.max_fee_per_gas())
}

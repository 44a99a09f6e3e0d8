//! A block: its header, its transactions, and what they did.

use alloy::consensus::transaction::Recovered;
use alloy::consensus::{
    Eip658Value, Header, Receipt, ReceiptEnvelope, ReceiptWithBloom, Sealed, Transaction as _, TxEnvelope, TxType,
};
use alloy::primitives::{Address, B256, Log};
use alloy::rpc::types;
use alloy::rpc::types::{BlockTransactions, TransactionReceipt};

/// A signed transaction with its signer.
pub(super) type Transaction = Recovered<TxEnvelope>;

/// A transaction in a block.
#[derive(Clone, Debug)]
pub(super) struct Included {
    pub(super) transaction: Transaction,
    pub(super) success: bool,
    pub(super) gas_used: u64,
    pub(super) cumulative_gas_used: u64,
    pub(super) created: Option<Address>,
    pub(super) logs: Vec<Log>,
    /// The index of its first log within the block.
    pub(super) first_log: u64,
}

impl Included {
    pub(super) fn hash(&self) -> B256 {
        *self.transaction.tx_hash()
    }

    /// The receipt in the form that the block's receipts root commits to.
    pub(super) fn consensus_receipt(&self) -> ReceiptEnvelope<Log> {
        self.envelope(self.logs.clone())
    }

    fn envelope<L>(&self, logs: Vec<L>) -> ReceiptEnvelope<L> {
        let logs_bloom = self.logs.iter().collect();
        let (status, cumulative_gas_used) = (Eip658Value::Eip658(self.success), self.cumulative_gas_used);
        let receipt = ReceiptWithBloom { receipt: Receipt { status, cumulative_gas_used, logs }, logs_bloom };
        match self.transaction.tx_type() {
            TxType::Legacy => ReceiptEnvelope::Legacy(receipt),
            TxType::Eip2930 => ReceiptEnvelope::Eip2930(receipt),
            TxType::Eip1559 => ReceiptEnvelope::Eip1559(receipt),
            TxType::Eip4844 => ReceiptEnvelope::Eip4844(receipt),
            TxType::Eip7702 => ReceiptEnvelope::Eip7702(receipt),
        }
    }
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) header: Sealed<Header>,
    pub(super) transactions: Vec<Included>,
}

impl Block {
    pub(super) fn hash(&self) -> B256 {
        self.header.seal()
    }

    pub(super) fn number(&self) -> u64 {
        self.header.number
    }

    pub(super) fn base_fee(&self) -> u64 {
        self.header.base_fee_per_gas.unwrap_or_default()
    }

    /// The position of a transaction.
    pub(super) fn position(&self, hash: B256) -> Option<usize> {
        self.transactions.iter().position(|included| included.hash() == hash)
    }

    /// The block in its JSON-RPC form.
    pub(super) fn to_rpc(&self, with_transactions: bool) -> types::Block {
        let transactions = if with_transactions {
            BlockTransactions::Full((0..self.transactions.len()).map(|position| self.transaction(position)).collect())
        } else {
            BlockTransactions::Hashes(self.transactions.iter().map(Included::hash).collect())
        };
        types::Block::new(types::Header::from_sealed(self.header.clone()), transactions)
    }

    /// The transaction at a position in its JSON-RPC form.
    pub(super) fn transaction(&self, position: usize) -> types::Transaction {
        let transaction = &self.transactions[position].transaction;
        types::Transaction {
            block_hash: Some(self.hash()),
            block_number: Some(self.number()),
            transaction_index: Some(position as u64),
            effective_gas_price: Some(transaction.effective_gas_price(Some(self.base_fee()))),
            ..waiting_transaction(transaction)
        }
    }

    /// The logs of the transaction at a position.
    pub(super) fn logs(&self, position: usize) -> impl Iterator<Item = types::Log> {
        let included = &self.transactions[position];
        included.logs.iter().zip(included.first_log..).map(move |(log, index)| types::Log {
            inner: log.clone(),
            block_hash: Some(self.hash()),
            block_number: Some(self.number()),
            block_timestamp: Some(self.header.timestamp),
            transaction_hash: Some(included.hash()),
            transaction_index: Some(position as u64),
            log_index: Some(index),
            removed: false,
        })
    }

    /// The receipt of the transaction at a position.
    pub(super) fn receipt(&self, position: usize) -> TransactionReceipt {
        let included = &self.transactions[position];
        TransactionReceipt {
            inner: included.envelope(self.logs(position).collect()),
            transaction_hash: included.hash(),
            transaction_index: Some(position as u64),
            block_hash: Some(self.hash()),
            block_number: Some(self.number()),
            gas_used: included.gas_used,
            effective_gas_price: included.transaction.effective_gas_price(Some(self.base_fee())),
            blob_gas_used: None,
            blob_gas_price: None,
            from: included.transaction.signer(),
            to: included.transaction.to(),
            contract_address: included.created,
        }
    }
}

/// The JSON-RPC form of a transaction that is in no block.
pub(super) fn waiting_transaction(transaction: &Transaction) -> types::Transaction {
    types::Transaction {
        inner: transaction.clone(),
        block_hash: None,
        block_number: None,
        transaction_index: None,
        effective_gas_price: None,
        block_timestamp: None,
    }
}

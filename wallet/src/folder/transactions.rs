//! The transactions that an Ethereum key of this wallet sends to the Primary. Each is on disk with its nonce before it
//! is first sent, so a command that crashed cannot pay twice. The next command finishes the unfinished ones before it
//! starts a new one.
//!
//! ```text
//!  NNN.transaction (replaced with every better offer) ──► NNN.outcome
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy::primitives::{Address, U256};
use fastpay_core::{AccountId, Amount, Asset, SequenceNumber, TransactionIndex};
use fastpay_ethereum::{Inclusion, Submission};
use fastpay_program::{Lock, files};
use serde::{Deserialize, Serialize};

use super::error::FolderError;
use super::json;
use super::orders::now_ms;

/// The purpose of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind", deny_unknown_fields)]
pub enum Errand {
    /// Allows the contract to take a token, ahead of a deposit.
    Approve {
        /// The token.
        asset: Asset,
        /// The amount, in the asset's smallest unit.
        amount: Amount,
    },
    /// Funds a FastPay account.
    Deposit {
        /// The account.
        recipient: AccountId,
        /// The deposited asset.
        asset: Asset,
        /// The amount, in the asset's smallest unit.
        amount: Amount,
        /// The contract's last event before this one was sent: this one has a higher index.
        after: TransactionIndex,
    },
    /// Redeems a certificate.
    Redeem {
        /// The redeeming account.
        sender: AccountId,
        /// The order's number.
        sequence: SequenceNumber,
    },
    /// Executes a redemption in the contract's queue.
    Execute {
        /// The redeeming account.
        sender: AccountId,
        /// The order's number.
        sequence: SequenceNumber,
    },
    /// Asks the contract to unlock a number.
    RequestUnlock {
        /// The account of the number.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// Submits the authorities' votes that decide a number.
    DecideUnlock {
        /// The account of the number.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
    /// Collects a claim.
    Claim {
        /// The owner of the claim.
        owner: Address,
        /// The claimed asset.
        asset: Asset,
        /// The address to pay.
        to: Address,
        /// The amount, in the asset's smallest unit.
        amount: U256,
    },
}

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state", deny_unknown_fields)]
pub enum TransactionState {
    /// It may have been sent, and may be in a block that is not final.
    Pending,
    /// It is in a final block and succeeded.
    Final(Inclusion),
    /// It is in a block and reverted.
    Reverted,
    /// Another transaction took its nonce, so it will never happen.
    Superseded,
}

/// A transaction in the wallet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionEntry {
    /// Its number among those of its key in this wallet, from 0.
    pub number: u64,
    /// When it was stored, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Its purpose.
    pub errand: Errand,
    /// The transaction with nonce and fees.
    pub submission: Submission,
    /// Its state.
    pub state: TransactionState,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    created_at_ms: u64,
    errand: Errand,
    submission: Submission,
}

/// One Ethereum key's transactions. Reading needs no lock.
#[derive(Clone, Debug)]
pub struct Transactions {
    folder: PathBuf,
}

impl Transactions {
    pub(crate) fn new(primary: &Path, owner: Address) -> Self {
        Self { folder: primary.join(hex::encode(owner)) }
    }

    /// Takes the right to send, after waiting up to `patience` for another command.
    ///
    /// # Errors
    /// If another command holds it, or the folder cannot be used.
    pub async fn lock(&self, patience: Duration) -> Result<TransactionJournal, FolderError> {
        Ok(TransactionJournal { _lock: Lock::acquire(&self.folder, patience).await?, transactions: self.clone() })
    }

    /// All entries, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read or a file is damaged.
    pub fn entries(&self) -> Result<Vec<TransactionEntry>, FolderError> {
        self.numbers()?.into_iter().map(|number| self.entry(number)).collect()
    }

    /// The newest transaction of a chain, which has the highest nonce there. `is_of_it` selects that chain's
    /// transactions.
    ///
    /// # Errors
    /// If the folder cannot be read or a file is damaged.
    pub fn last(&self, is_of_it: impl Fn(&Submission) -> bool) -> Result<Option<TransactionEntry>, FolderError> {
        let entries = self.numbers()?.into_iter().rev().map(|number| self.entry(number));
        let mut fitting = entries.filter(|entry| entry.as_ref().map_or(true, |entry| is_of_it(&entry.submission)));
        fitting.next().transpose()
    }

    /// The transactions whose outcome is unknown, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read or a file is damaged.
    pub fn pending(&self) -> Result<Vec<TransactionEntry>, FolderError> {
        let open = self.numbers()?.into_iter().filter(|number| !self.path(*number, "outcome").exists());
        open.map(|number| self.entry(number)).collect()
    }

    /// One entry.
    ///
    /// # Errors
    /// If there is no entry of this number, or its file is damaged.
    pub fn entry(&self, number: u64) -> Result<TransactionEntry, FolderError> {
        let path = self.path(number, "transaction");
        let Stored { created_at_ms, errand, submission } =
            json::read(&path)?.ok_or_else(|| FolderError::damaged(&path, "it vanished"))?;
        let state = json::read(&self.path(number, "outcome"))?.unwrap_or(TransactionState::Pending);
        Ok(TransactionEntry { number, created_at_ms, errand, submission, state })
    }

    fn numbers(&self) -> Result<Vec<u64>, FolderError> {
        let names = files::names(&self.folder).map_err(|error| FolderError::io(&self.folder, error))?;
        Ok(names.iter().filter_map(|name| name.strip_suffix(".transaction")?.parse().ok()).collect())
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        self.folder.join(format!("{number:020}.{kind}"))
    }
}

/// The right to send one key's transactions, held until it is dropped.
#[derive(Debug)]
pub struct TransactionJournal {
    transactions: Transactions,
    _lock: Lock,
}

impl TransactionJournal {
    /// The transactions, for reading.
    #[must_use]
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// Stores a new transaction. Once this has returned, the transaction may be sent.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(&self, errand: Errand, submission: Submission) -> Result<TransactionEntry, FolderError> {
        let last = self.transactions.numbers()?.last().copied();
        let number = last.map_or(0, |last| last.saturating_add(1));
        let created_at_ms = now_ms();
        let state = TransactionState::Pending;
        let entry = TransactionEntry { number, created_at_ms, errand, submission, state };
        self.store(&entry, &entry.submission)?;
        Ok(entry)
    }

    /// Stores a higher offer of the same transaction.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, entry: &TransactionEntry, submission: &Submission) -> Result<(), FolderError> {
        let path = self.transactions.path(entry.number, "transaction");
        let stored =
            Stored { created_at_ms: entry.created_at_ms, errand: entry.errand.clone(), submission: submission.clone() };
        json::replace(&path, &stored)
    }

    /// Notes the outcome of a transaction.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(&self, number: u64, state: TransactionState) -> Result<(), FolderError> {
        json::replace(&self.transactions.path(number, "outcome"), &state)
    }
}

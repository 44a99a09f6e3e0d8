//! The instructions that a key of this wallet signs for a ledger. Each is on disk before it is sent, so a command that
//! crashed cannot pay twice: the next one sends the same instruction again and gets its answer.
//!
//! ```text
//!  <cluster>.json: signed ──► carried out ──► reported ──► (replaced by the next one, with a later number)
//!                    └──► rejected ──► (kept by the next one, which takes its number)
//! ```
//! The newest instruction stays in the file, so its number is known. A rejected one can still be carried out by whoever has
//! a copy, until another one has used its number: the next one takes the number, and keeps the rejected one to ask for it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_core::{AccountId, Amount, Asset, SequenceNumber, TransactionIndex};
use fastpay_ledger_statement::{ClusterId, Request, Wire};
use serde::{Deserialize, Serialize};

use super::error::FolderError;
use super::json;
use super::lock::Lock;
use super::orders::now_ms;

/// The purpose of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind", deny_unknown_fields)]
pub enum InstructionErrand {
    /// Opens the key's reserves.
    Open {},
    /// Funds a FastPay account.
    Deposit {
        /// The account.
        recipient: AccountId,
        /// The asset.
        asset: Asset,
        /// The amount, in the asset's smallest unit.
        amount: Amount,
        /// The committee's last event before this one was sent: this one has a higher index.
        after: TransactionIndex,
    },
    /// Redeems a certificate.
    Redeem {
        /// The redeeming account.
        sender: AccountId,
        /// The order's number.
        sequence: SequenceNumber,
    },
}

impl InstructionErrand {
    /// Whether the ledger carries it out once at most, under whatever number it is signed.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        !matches!(self, Self::Deposit { .. })
    }

    /// Whether both are the same but for when they began.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let begun_at_once = |errand: &Self| match errand.clone() {
            Self::Deposit { recipient, asset, amount, .. } => {
                Self::Deposit { recipient, asset, amount, after: TransactionIndex(0) }
            }
            errand => errand,
        };
        begun_at_once(self) == begun_at_once(other)
    }
}

impl fmt::Display for InstructionErrand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open {} => f.write_str("the opening of the reserve"),
            Self::Deposit { recipient, asset, amount, .. } => {
                write!(f, "the deposit of {amount} (in the smallest unit) of asset {} for {recipient}", asset.0)
            }
            Self::Redeem { sender, sequence } => write!(f, "the redemption {} of {sender}", sequence.0),
        }
    }
}

/// An instruction that was signed, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredInstruction {
    /// When it was stored, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Its purpose.
    pub errand: InstructionErrand,
    /// Whether the ledger has rejected it. It can still be carried out until its number is used.
    #[serde(default)]
    pub is_rejected: bool,
    /// Whether the ledger has carried it out, as was proven.
    #[serde(default)]
    pub is_carried_out: bool,
    /// Whether the user was told that it was carried out.
    #[serde(default)]
    pub is_reported: bool,
    /// Others of the same number, which the ledger had rejected before this one was signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_before: Vec<StoredInstruction>,
    /// The signed request, encoded, in hexadecimal digits.
    request: String,
}

impl StoredInstruction {
    /// An instruction that is about to be sent.
    #[must_use]
    pub fn new(errand: InstructionErrand, request: &Request, rejected_before: Vec<Self>) -> Self {
        let (is_rejected, is_carried_out, is_reported) = (false, false, false);
        let (created_at_ms, request) = (now_ms(), hex::encode(request.encode()));
        Self { created_at_ms, errand, is_rejected, is_carried_out, is_reported, rejected_before, request }
    }

    /// The signed request and its number; `None` if the file is damaged.
    #[must_use]
    pub fn request(&self) -> Option<(Request, SequenceNumber)> {
        let request = Request::decode(&hex::decode(&self.request).ok()?).ok()?;
        let Request::Instruct(signed) = &request else { return None };
        let number = signed.instruction.sequence;
        Some((request, number))
    }

    /// All that were rejected under its number, with itself.
    #[must_use]
    pub fn into_rejected(mut self) -> Vec<Self> {
        let mut all = std::mem::take(&mut self.rejected_before);
        all.push(self);
        all
    }
}

/// One key's instructions.
#[derive(Clone, Debug)]
pub struct Instructions {
    folder: PathBuf,
}

impl Instructions {
    pub(super) fn new(ledger: &Path, owner: AccountId) -> Self {
        Self { folder: ledger.join(hex::encode(owner.0)) }
    }

    /// Takes the right to sign, after waiting up to `patience` for another command.
    ///
    /// # Errors
    /// If another command holds it, or the folder cannot be used.
    pub async fn lock(&self, cluster: ClusterId, patience: Duration) -> Result<InstructionJournal, FolderError> {
        let lock = Lock::acquire(&self.folder, patience).await?;
        Ok(InstructionJournal { _lock: lock, path: self.folder.join(format!("{cluster}.json")) })
    }
}

/// The right to sign instructions for one cluster.
#[derive(Debug)]
pub struct InstructionJournal {
    _lock: Lock,
    path: PathBuf,
}

impl InstructionJournal {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The newest instruction that was signed.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub fn newest(&self) -> Result<Option<StoredInstruction>, FolderError> {
        json::read(&self.path)
    }

    /// Stores the newest instruction, in place of the one before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, newest: &StoredInstruction) -> Result<(), FolderError> {
        json::replace(&self.path, newest)
    }
}

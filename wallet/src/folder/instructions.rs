//! The instructions that a key of this wallet signs for a ledger. Each is on disk before it is sent, so a command that
//! crashed cannot pay twice: the next one sends the same instruction again and gets its answer.
//!
//! ```text
//!  <cluster>.json (written ahead) ──► removed once the ledger's answer is known
//! ```
//! A rejected instruction stays: anyone can send it again until another one has used its number. This wallet does not. Its
//! next instruction takes the number and the place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_core::{AccountId, Amount, Asset, SequenceNumber, TransactionIndex};
use fastpay_ledger_statement::{ClusterId, Request, Wire};
use fastpay_program::files;
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

/// An instruction whose outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PendingInstruction {
    /// When it was stored, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Its purpose.
    pub errand: InstructionErrand,
    /// Whether the ledger has rejected it. It is not sent again.
    #[serde(default)]
    pub is_rejected: bool,
    /// The signed request, encoded, in hexadecimal digits.
    request: String,
}

impl PendingInstruction {
    /// An instruction that is about to be sent.
    #[must_use]
    pub fn new(errand: InstructionErrand, request: &Request) -> Self {
        Self { created_at_ms: now_ms(), errand, is_rejected: false, request: hex::encode(request.encode()) }
    }

    /// The same once the ledger has rejected it.
    #[must_use]
    pub fn rejected(self) -> Self {
        Self { is_rejected: true, ..self }
    }

    /// The signed request; `None` if the file is damaged.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        Request::decode(&hex::decode(&self.request).ok()?).ok()
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
    /// The instruction whose outcome is not known.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub fn pending(&self) -> Result<Option<PendingInstruction>, FolderError> {
        json::read(&self.path)
    }

    /// Stores an instruction, in place of one whose number it uses.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, pending: &PendingInstruction) -> Result<(), FolderError> {
        json::replace(&self.path, pending)
    }

    /// Removes an instruction that was carried out, or never can be.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn finish(&self) -> Result<(), FolderError> {
        let failed = |error| FolderError::io(&self.path, error);
        std::fs::remove_file(&self.path).map_err(failed)?;
        self.path.parent().map_or(Ok(()), files::sync_folder).map_err(failed)
    }
}

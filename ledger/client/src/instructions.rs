//! The instructions that a key of a wallet or a relayer signs for a ledger. Each is on disk before it is sent, so a program
//! that crashed cannot pay twice: the next one sends the same instruction again and gets its answer.
//!
//! ```text
//!  <cluster>.json: signed ──► carried out ──► reported ──► (replaced by the next one, with a later number)
//!                    └──► rejected ──► (kept by the next one, which takes its number)
//! ```
//! The newest instruction stays in the file, so its number is known. A rejected one can still be carried out by whoever has
//! a copy, until another one has used its number: the next one takes the number, and keeps the rejected one to ask for it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_core::{AccountId, Amount, Asset, SequenceNumber, TransactionIndex};
use fastpay_ledger_statement::{ClusterId, Request, SignedInstruction};
use fastpay_program::{Clock, Lock, LockError, files};
use serde::{Deserialize, Serialize};

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
    /// Redeems what the committee voted for together.
    RedeemBatch {
        /// The redeeming accounts, each with the order's number.
        items: Vec<(AccountId, SequenceNumber)>,
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
            Self::RedeemBatch { items } => write!(f, "{} redemptions", items.len()),
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
    /// In the file, the encoded request in hexadecimal digits.
    #[serde(rename = "request", with = "encoded")]
    signed: Box<SignedInstruction>,
}

/// A signed instruction in a file.
mod encoded {
    use fastpay_ledger_statement::{Request, SignedInstruction, Wire};
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(signed: &SignedInstruction, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(Request::Instruct(Box::new(signed.clone())).encode()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<SignedInstruction>, D::Error> {
        let bytes = hex::decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        match Request::decode(&bytes).map_err(D::Error::custom)? {
            Request::Instruct(signed) => Ok(signed),
            Request::Get(_) => Err(D::Error::custom("the request is no instruction")),
        }
    }
}

impl StoredInstruction {
    /// An instruction that is about to be sent.
    pub(crate) fn new(errand: InstructionErrand, signed: SignedInstruction, rejected_before: Vec<Self>) -> Self {
        let (is_rejected, is_carried_out, is_reported) = (false, false, false);
        let created_at_ms = Clock::system().now_ms();
        Self {
            created_at_ms,
            errand,
            is_rejected,
            is_carried_out,
            is_reported,
            rejected_before,
            signed: Box::new(signed),
        }
    }

    /// The signed request.
    #[must_use]
    pub fn request(&self) -> Request {
        Request::Instruct(self.signed.clone())
    }

    /// Its number.
    pub(crate) fn number(&self) -> SequenceNumber {
        self.signed.instruction.sequence
    }

    /// Whether the program that signed it still has to learn, or to report, what became of it. What the ledger carries out
    /// once whoever sends it, and has rejected, needs nobody's attention.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        if self.errand.is_idempotent() {
            return !self.is_carried_out && !self.is_rejected;
        }
        !(self.is_carried_out && self.is_reported)
    }

    /// All that were rejected under its number, with itself, as far as it matters whether they are carried out after all.
    pub(crate) fn into_rejected(mut self) -> Vec<Self> {
        let mut all = std::mem::take(&mut self.rejected_before);
        all.push(self);
        all.retain(|one| !one.errand.is_idempotent());
        all
    }
}

/// One key's instructions.
#[derive(Clone, Debug)]
pub struct Instructions {
    folder: PathBuf,
}

impl Instructions {
    /// Those of `owner`, below the folder `ledger`.
    #[must_use]
    pub fn new(ledger: &Path, owner: AccountId) -> Self {
        Self { folder: ledger.join(hex::encode(owner.0)) }
    }

    /// Takes the right to sign, after waiting up to `patience` for another command.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub(crate) async fn lock(
        &self,
        cluster: ClusterId,
        patience: Duration,
    ) -> Result<InstructionJournal, JournalError> {
        let lock = Lock::acquire(&self.folder, patience).await?;
        Ok(InstructionJournal { _lock: lock, path: self.folder.join(format!("{cluster}.json")) })
    }

    /// The newest instruction of each cluster whose outcome is not known, or not reported.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub fn unfinished(&self) -> Result<Vec<StoredInstruction>, JournalError> {
        let io = |error| JournalError::Io { path: self.folder.clone(), error };
        let names = files::names(&self.folder).map_err(io)?;
        let all = names.iter().filter(|name| name.ends_with(".json"));
        let newest = all.map(|name| read(&self.folder.join(name))).collect::<Result<Vec<_>, _>>()?;
        Ok(newest.into_iter().flatten().filter(StoredInstruction::is_unfinished).collect())
    }
}

/// The right to sign instructions for one cluster.
#[derive(Debug)]
pub(crate) struct InstructionJournal {
    _lock: Lock,
    path: PathBuf,
}

impl InstructionJournal {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The newest instruction that was signed.
    pub(crate) fn newest(&self) -> Result<Option<StoredInstruction>, JournalError> {
        read(&self.path)
    }

    /// Stores the newest instruction, in place of the one before.
    pub(crate) fn store(&self, newest: &StoredInstruction) -> Result<(), JournalError> {
        let written = serde_json::to_vec_pretty(newest).map_err(io::Error::from);
        let written = written.and_then(|text| files::replace(&self.path, &text));
        written.map_err(|error| JournalError::Io { path: self.path.clone(), error })
    }
}

fn read(path: &Path) -> Result<Option<StoredInstruction>, JournalError> {
    let content = files::read(path).map_err(|error| JournalError::Io { path: path.into(), error })?;
    let instruction = content.map(|content| serde_json::from_slice(&content)).transpose();
    instruction.map_err(|error| JournalError::Damaged { path: path.into(), reason: error.to_string() })
}

/// Why the instructions on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another program signs with the key.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file system failed.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A file was changed after it was written.
    #[error("{path} is damaged ({reason}); look what the ledger carried out last for this key, and remove the file")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
}

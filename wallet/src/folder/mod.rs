//! The wallet's folder, by default `~/.fastpay`:
//!
//! ```text
//!  config.toml       the owner's settings: Primary, contract, endpoints
//!  committees.json   the contract's committees, epoch by epoch
//!  assets.json       the decimals of tokens
//!  keys/             secret keys, encrypted
//!  contacts/         accounts of others, by name
//!  orders/<account>/ every order that an account sent, written ahead of sending
//!  inbox/<account>/  every verified certificate that an account received
//!  primary/<owner>/  every transaction on the Primary, written ahead of sending
//!  ledger/<owner>/   instructions to a ledger whose outcome is not known, written ahead of sending
//!  jobs/             lists of payments that were begun, by the hashes of their files
//!  proofs/           proofs from audits that authorities voted for two orders of one number
//! ```
//! Nothing here is ever changed in place: files are created once or replaced as a whole. A folder with history belongs
//! to one deployment for ever: numbers of orders, nonces and cursors have another meaning in another one.

mod config;
mod contacts;
mod error;
mod inbox;
mod jobs;
mod json;
mod keys;
mod learned;
mod orders;
mod proofs;
mod transactions;

use std::path::{Path, PathBuf};

use alloy::primitives::Address;
use fastpay_core::AccountId;
use fastpay_ledger_client::Instructions;
use fastpay_program::{LOCK_FILE, files};

pub use config::{Config, ConfigError, LedgerSettings, PrimarySection, PrimarySettings};
pub use contacts::{Contact, ContactError, Contacts};
pub use error::FolderError;
pub use inbox::{CreditedDeposit, Cursor, Inbox, InboxJournal, ReceivedPayment};
pub use jobs::{Job, Jobs};
pub use keys::{KeyEntry, KeyError, KeyKind, Keys, parse_secret, read_keystore};
pub use learned::{AssetInfo, KnownCommittees};
pub use orders::{ArchivedOrder, OrderEntry, OrderJournal, OrderState, Orders};
pub(crate) use orders::{encode_hex, now_ms};
pub use transactions::{Errand, TransactionEntry, TransactionJournal, TransactionState, Transactions};

/// Writes a file outside of the folder, replacing it as a whole.
///
/// # Errors
/// If the file cannot be written.
pub fn write_result(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    files::replace(path, content).map_err(|error| FolderError::io(path, error))
}

/// A wallet's folder.
#[derive(Clone, Debug)]
pub struct Folder {
    home: PathBuf,
}

impl Folder {
    /// The folder at `home`, which need not exist yet.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    /// The folder's path.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Creates the folder, readable by its owner alone.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn create(&self) -> Result<(), FolderError> {
        files::create_folder(&self.home).map_err(|error| FolderError::io(&self.home, error))
    }

    /// The path of the configuration.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    /// The configuration.
    ///
    /// # Errors
    /// If it is missing or malformed.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::read(&self.config_path())
    }

    /// The secret keys.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys::new(self.home.join("keys"))
    }

    /// The address book.
    #[must_use]
    pub fn contacts(&self) -> Contacts {
        Contacts::new(self.clone())
    }

    /// Whether anything was sent or received: orders, transactions, payments, or cursors in lists of those. All of it
    /// belongs to one deployment.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn has_history(&self) -> Result<bool, FolderError> {
        for kind in ["orders", "inbox", "primary", "ledger"] {
            let kind = self.home.join(kind);
            for owner in files::names(&kind).map_err(|error| FolderError::io(&kind, error))? {
                let folder = kind.join(owner);
                let names = files::names(&folder).map_err(|error| FolderError::io(&folder, error))?;
                if names.iter().any(|name| name != LOCK_FILE) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The transfers that an account sent.
    #[must_use]
    pub fn orders(&self, account: AccountId) -> Orders {
        Orders::new(&self.home.join("orders"), account)
    }

    /// The payments that an account received.
    #[must_use]
    pub fn inbox(&self, account: AccountId) -> Inbox {
        Inbox::new(&self.home.join("inbox"), account)
    }

    /// The payment lists that were begun.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        Jobs::new(&self.home)
    }

    /// The instructions that a key signs for a ledger.
    #[must_use]
    pub fn instructions(&self, owner: AccountId) -> Instructions {
        Instructions::new(&self.home.join("ledger"), owner)
    }

    /// The transactions that an Ethereum key sent to the Primary.
    #[must_use]
    pub fn transactions(&self, owner: Address) -> Transactions {
        Transactions::new(&self.home.join("primary"), owner)
    }
}

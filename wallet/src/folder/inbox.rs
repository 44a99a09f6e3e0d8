//! The payments that an account received, with the certificates that prove them, each once, by sender and number. A
//! payment that every authority had pruned has what a checkpoint of the committee proves in place of the certificate. Each
//! authority's list has a cursor, which moves after the entries before it are on disk. The last entries read are stored
//! with the cursors: if an authority was restored from an older copy, its list differs there and is read anew. Deposits
//! have no certificate: those that f + 1 authorities listed are stored with the time when they were first seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_core::checkpoint::{ArchiveCursor, ProvenEntry};
use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Certificate, Deposit, Digest, Domain, Payment, Receipt, SequenceNumber,
    TransactionIndex, Transfer, VerifiedCertificate,
};
use fastpay_program::{Lock, files};
use fastpay_rpc::PaymentName;
use serde::{Deserialize, Serialize};

use super::error::FolderError;
use super::json;
use super::orders::{decode_hex, encode_hex, now_ms};

/// A payment that the wallet verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceivedPayment {
    /// When the wallet first saw it, in milliseconds since 1970.
    pub received_at_ms: u64,
    /// The payment; for an output of a payout, with the output's own memo.
    pub payment: Payment,
    /// The output's number, if it is an output of a payout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u16>,
    /// The certificate, encoded; none if a checkpoint proves the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    /// What was proven by a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archived: Option<Archived>,
}

/// A transfer that a checkpoint proved when it was read from an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Archived {
    checkpoint: u64,
    /// The transfer's digest.
    digest: Digest,
}

impl ReceivedPayment {
    /// The payment's name.
    #[must_use]
    pub fn name(&self) -> PaymentName {
        PaymentName { sender: self.payment.sender, sequence: self.payment.sequence, output: self.output }
    }

    /// The number of the checkpoint that proved it, if no authority had the certificate any more.
    #[must_use]
    pub fn checkpoint(&self) -> Option<u64> {
        self.archived.as_ref().map(|archived| archived.checkpoint)
    }

    /// The digest of the order that paid it.
    ///
    /// # Errors
    /// If its file is damaged.
    pub fn digest(&self, domain: &Domain) -> Result<Digest, FolderError> {
        if let Some(archived) = &self.archived {
            return Ok(archived.digest);
        }
        let path = file_of(&self.name());
        let encoded = self.certificate.as_deref().unwrap_or_default();
        let certificate: Certificate = decode_hex(Path::new(&path), encoded)?;
        Ok(domain.transfer_digest(&certificate.order.transfer))
    }
}

/// A deposit that the committee credited, whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreditedDeposit {
    /// Its number among all deposits of the contract.
    pub index: TransactionIndex,
    /// The asset.
    pub asset: Asset,
    /// The amount that arrived.
    pub amount: Amount,
    /// When the wallet first saw it, in milliseconds since 1970.
    pub seen_at_ms: u64,
}

/// How far the list of an authority was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the next entry to read.
    pub next: u64,
    /// The payment before it, if known.
    pub last: Option<PaymentName>,
}

/// The last entry read from a list, in stored form.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LastRead {
    number: u64,
    sender: AccountId,
    sequence: SequenceNumber,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<u16>,
}

impl LastRead {
    fn of(cursor: &Cursor) -> Option<Self> {
        let (number, PaymentName { sender, sequence, output }) = (cursor.next.checked_sub(1)?, cursor.last?);
        Some(Self { number, sender, sequence, output })
    }

    fn name(&self) -> PaymentName {
        PaymentName { sender: self.sender, sequence: self.sequence, output: self.output }
    }
}

/// One account's incoming payments. Reading needs no lock.
#[derive(Clone, Debug)]
pub struct Inbox {
    account: AccountId,
    folder: PathBuf,
}

impl Inbox {
    pub(crate) fn new(inboxes: &Path, account: AccountId) -> Self {
        Self { account, folder: inboxes.join(hex::encode(account.0)) }
    }

    /// The receiving account.
    #[must_use]
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// Takes the right to write, after waiting up to `patience` for another command.
    ///
    /// # Errors
    /// If another command holds it, or the folder cannot be used.
    pub async fn lock(&self, patience: Duration) -> Result<InboxJournal, FolderError> {
        Ok(InboxJournal { _lock: Lock::acquire(&self.folder, patience).await?, inbox: self.clone() })
    }

    /// All payments, in the order in which the wallet saw them.
    ///
    /// # Errors
    /// If the folder cannot be read or a file is damaged.
    pub fn payments(&self) -> Result<Vec<ReceivedPayment>, FolderError> {
        self.payments_beyond(|_| Ok(false), usize::MAX)
    }

    /// Up to `count` payments that `is_known` does not know, in the order in which the wallet saw them. It reads only
    /// their files.
    ///
    /// # Errors
    /// As [`Inbox::payments`], and if `is_known` fails.
    pub fn payments_beyond<E: From<FolderError>>(
        &self,
        is_known: impl Fn(&PaymentName) -> Result<bool, E>,
        count: usize,
    ) -> Result<Vec<ReceivedPayment>, E> {
        let names = files::names(&self.folder).map_err(|error| FolderError::io(&self.folder, error))?;
        let mut payments = Vec::<ReceivedPayment>::new();
        for name in names.iter().filter_map(|name| name_of(name)) {
            if payments.len() >= count {
                break;
            }
            if !is_known(&name)? {
                payments.extend(json::read(&self.path(&name))?);
            }
        }
        payments.sort_by_key(|received: &ReceivedPayment| received.received_at_ms);
        Ok(payments)
    }

    /// The number of payments. It never decreases.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn count(&self) -> Result<usize, FolderError> {
        let names = files::names(&self.folder).map_err(|error| FolderError::io(&self.folder, error))?;
        Ok(names.iter().filter(|name| name.ends_with(".payment")).count())
    }

    /// Whether the wallet has this payment.
    #[must_use]
    pub fn has(&self, name: &PaymentName) -> bool {
        self.path(name).exists()
    }

    /// The certificate of a stored payment; `None` without such a payment, or if a checkpoint proves it. Verify it again
    /// before use.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn certificate(&self, name: &PaymentName) -> Result<Option<Certificate>, FolderError> {
        let path = self.path(name);
        let stored: Option<ReceivedPayment> = json::read(&path)?;
        stored.and_then(|stored| stored.certificate).map(|encoded| decode_hex(&path, &encoded)).transpose()
    }

    /// The deposits that were credited, by their number.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn deposits(&self) -> Result<Vec<CreditedDeposit>, FolderError> {
        Ok(json::read(&self.deposits_path())?.unwrap_or_default())
    }

    fn path(&self, name: &PaymentName) -> PathBuf {
        self.folder.join(file_of(name))
    }

    fn deposits_path(&self) -> PathBuf {
        self.folder.join("deposits.json")
    }

    fn cursors_path(&self) -> PathBuf {
        self.folder.join("cursors.json")
    }

    fn archived_path(&self) -> PathBuf {
        self.folder.join("archived.json")
    }

    fn last_read_path(&self) -> PathBuf {
        self.folder.join("last_read.json")
    }
}

fn file_of(name: &PaymentName) -> String {
    let PaymentName { sender, sequence, output } = name;
    let output = output.map(|output| format!("-{output}")).unwrap_or_default();
    format!("{}-{sequence}{output}.payment", hex::encode(sender.0))
}

/// The payment name in a file's name.
fn name_of(file: &str) -> Option<PaymentName> {
    let (sender, numbers) = file.strip_suffix(".payment")?.split_once('-')?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(sender, &mut bytes).ok()?;
    let (sequence, output) = match numbers.split_once('-') {
        Some((sequence, output)) => (sequence, Some(output.parse().ok()?)),
        None => (numbers, None),
    };
    Some(PaymentName { sender: AccountId(bytes), sequence: SequenceNumber(sequence.parse().ok()?), output })
}

/// The right to write one account's incoming payments, held until it is dropped.
#[derive(Debug)]
pub struct InboxJournal {
    inbox: Inbox,
    _lock: Lock,
}

impl InboxJournal {
    /// The inbox, for reading.
    #[must_use]
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The cursors in the lists of all authorities.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn cursors(&self) -> Result<BTreeMap<AuthorityName, Cursor>, FolderError> {
        let stored: BTreeMap<String, u64> = json::read(&self.inbox.cursors_path())?.unwrap_or_default();
        let last: BTreeMap<String, LastRead> = json::read(&self.inbox.last_read_path())?.unwrap_or_default();
        let parsed = stored.iter().map(|(name, next)| {
            // A name for another position was stored before the cursor moved.
            let last = last.get(name).filter(|last| last.number.checked_add(1) == Some(*next));
            Ok((name.parse()?, Cursor { next: *next, last: last.map(LastRead::name) }))
        });
        let parsed: Result<_, fastpay_core::ParseIdentityError> = parsed.collect();
        parsed.map_err(|error| FolderError::damaged(&self.inbox.cursors_path(), error))
    }

    /// Moves the cursors. The entries before them must have been added.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn move_cursors(&self, cursors: &BTreeMap<AuthorityName, Cursor>) -> Result<(), FolderError> {
        let next: BTreeMap<_, _> = cursors.iter().map(|(name, cursor)| (name.to_string(), cursor.next)).collect();
        let last = cursors.iter().filter_map(|(name, cursor)| Some((name.to_string(), LastRead::of(cursor)?)));
        json::replace(&self.inbox.last_read_path(), &last.collect::<BTreeMap<_, _>>())?;
        json::replace(&self.inbox.cursors_path(), &next)
    }

    /// How far the archive of each authority was read.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn archive_cursors(&self) -> Result<BTreeMap<AuthorityName, ArchiveCursor>, FolderError> {
        let path = self.inbox.archived_path();
        let stored: BTreeMap<String, (u64, u32)> = json::read(&path)?.unwrap_or_default();
        let parsed = stored.iter().map(|(name, (checkpoint, entry))| {
            Ok((name.parse()?, ArchiveCursor { checkpoint: *checkpoint, entry: *entry }))
        });
        let parsed: Result<_, fastpay_core::ParseIdentityError> = parsed.collect();
        parsed.map_err(|error| FolderError::damaged(&path, error))
    }

    /// Notes how far archives were read. The entries before must have been added.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn move_archive_cursors(&self, cursors: &BTreeMap<AuthorityName, ArchiveCursor>) -> Result<(), FolderError> {
        let stored = cursors.iter().map(|(name, cursor)| (name.to_string(), (cursor.checkpoint, cursor.entry)));
        json::replace(&self.inbox.archived_path(), &stored.collect::<BTreeMap<_, _>>())
    }

    /// Adds deposits that the committee credited to the account, each once.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_deposits(&self, credited: &[Deposit]) -> Result<(), FolderError> {
        let mut known = self.inbox.deposits()?;
        let count = known.len();
        for Deposit { index, asset, amount, .. } in credited {
            if known.iter().all(|known| known.index != *index) {
                known.push(CreditedDeposit { index: *index, asset: *asset, amount: *amount, seen_at_ms: now_ms() });
            }
        }
        if known.len() == count {
            return Ok(());
        }
        known.sort_by_key(|deposit| deposit.index);
        json::replace(&self.inbox.deposits_path(), &known)
    }

    /// Adds the payments that a certificate makes to the account, each with the certificate. Returns those that are new
    /// to the wallet.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn add(&self, certificate: &VerifiedCertificate) -> Result<Vec<ReceivedPayment>, FolderError> {
        self.add_payments(certificate.transfer(), Some(encode_hex(certificate.certificate())), None)
    }

    /// Adds the payments that a transfer makes to the account, which a checkpoint proves, and so is settled. Returns those
    /// that are new to the wallet.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn add_archived(&self, entry: &ProvenEntry, domain: &Domain) -> Result<Vec<ReceivedPayment>, FolderError> {
        let Some(transfer) = &entry.transfer else { return Ok(Vec::new()) };
        let archived = Archived { checkpoint: entry.checkpoint, digest: domain.transfer_digest(transfer) };
        self.add_payments(transfer, None, Some(&archived))
    }

    fn add_payments(
        &self,
        transfer: &Transfer,
        certificate: Option<String>,
        archived: Option<&Archived>,
    ) -> Result<Vec<ReceivedPayment>, FolderError> {
        let mut added = Vec::new();
        for Receipt { payment, output } in transfer.receipts() {
            if payment.recipient != self.inbox.account {
                continue;
            }
            let (certificate, archived) = (certificate.clone(), archived.cloned());
            let received = ReceivedPayment { received_at_ms: now_ms(), payment, output, certificate, archived };
            let path = self.inbox.path(&received.name());
            if json::create(&path, &received)? {
                added.push(received);
            }
        }
        Ok(added)
    }
}

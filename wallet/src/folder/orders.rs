//! An account's orders on disk. An order is written before it is first sent, so a retry sends the same bytes and no
//! second order is ever signed for the same number.
//!
//! ```text
//!  NNN.order ──► NNN.certificate ──► NNN.settled         (files of the account's folder, by sequence number)
//!  created       certified           settled
//!     └────────► NNN.void             the contract decided that no order has the number
//! ```
//! `NNN.paid` says that the contract paid the redemption, and that no certificate of it counts since a recovery.
//! `NNN.archived` has a transfer that a checkpoint of the committee proves, and whose certificate every authority had
//! pruned when this wallet looked for it: it is settled.
//! `NNN.spent` contains the order on which the contract spent the number of a redemption, in a final block.
//! `NNN.E.ended` is a certificate of epoch E in whose place another one came: a recovery has ended it, or too few members
//! attested it. A second one of the epoch has its order's digest before `ended`.
//!
//! Each other file is written once and changes only so, at once: a crash leaves one of these states and nothing between. A
//! certificate of another order than NNN.order (of a copy of this wallet) means that ours was superseded. The files are
//! not trusted: their content is verified again before use.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::checkpoint::ProvenEntry;
use fastpay_core::{
    AccountId, Certificate, Digest, Domain, SequenceNumber, Transfer, TransferOrder, VerifiedCertificate, VerifiedOrder,
};
use fastpay_ethereum::Spending;
use fastpay_program::{Lock, files};
use serde::{Deserialize, Serialize};

use super::error::FolderError;
use super::json;

/// The state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderState {
    /// It is stored, and may have been sent.
    Created,
    /// It has its certificate.
    Certified,
    /// A quorum has confirmed it.
    Settled,
    /// Another order took its number.
    Superseded,
    /// The contract voided its number: it will never happen.
    Voided,
}

/// An order in the wallet.
#[derive(Clone, Debug)]
pub struct OrderEntry {
    /// Its number.
    pub sequence: SequenceNumber,
    /// This wallet's order; `None` if only another copy's certificate is known.
    pub order: Option<TransferOrder>,
    /// The certificate of that number.
    pub certificate: Option<Certificate>,
    /// What a checkpoint proves of that number, in place of a certificate.
    pub archived: Option<ArchivedOrder>,
    /// When it was stored, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Its state.
    pub state: OrderState,
}

impl OrderEntry {
    /// The transfer of this number, past or intended.
    #[must_use]
    pub fn transfer(&self) -> Option<&Transfer> {
        let certified = self.certificate.as_ref().map(|certificate| &certificate.order.transfer);
        let certified = certified.or(self.archived.as_ref().map(|archived| &archived.transfer));
        certified.or(self.order.as_ref().map(|order| &order.transfer))
    }
}

/// A stored order, with the transfer in readable form, for people who read the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOrder {
    created_at_ms: u64,
    digest: Digest,
    transfer: Transfer,
    order: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCertificate {
    certified_at_ms: u64,
    digest: Digest,
    certificate: String,
}

/// A transfer of this account that a checkpoint proved when it was read from an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedOrder {
    archived_at_ms: u64,
    /// The number of the checkpoint.
    pub checkpoint: u64,
    digest: Digest,
    /// The transfer.
    pub transfer: Transfer,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredVoid {
    voided_at_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPayout {
    noted_at_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSettlement {
    settled_at_ms: u64,
}

/// One account's orders. Reading needs no lock.
#[derive(Clone, Debug)]
pub struct Orders {
    account: AccountId,
    folder: PathBuf,
}

impl Orders {
    pub(crate) fn new(accounts: &Path, account: AccountId) -> Self {
        Self { account, folder: accounts.join(hex::encode(account.0)) }
    }

    /// The sender's account.
    #[must_use]
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// Takes the right to write, after waiting up to `patience` for another command.
    ///
    /// # Errors
    /// If another command holds it, or the folder cannot be used.
    pub async fn lock(&self, patience: Duration) -> Result<OrderJournal, FolderError> {
        let lock = Lock::acquire(&self.folder, patience).await?;
        Ok(OrderJournal { orders: self.clone(), _lock: lock })
    }

    /// The number after the last one that this wallet knows to be used.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn next_sequence(&self) -> Result<SequenceNumber, FolderError> {
        let last = self.sequences()?.last().copied();
        Ok(last.map_or(SequenceNumber(0), |last| last.next().unwrap_or(SequenceNumber(u64::MAX))))
    }

    /// The numbers below `next` that this wallet has nothing of, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn unknown_below(&self, next: SequenceNumber) -> Result<Vec<SequenceNumber>, FolderError> {
        let known: std::collections::HashSet<_> = self.sequences()?.into_iter().collect();
        Ok((0..next.0).map(SequenceNumber).filter(|sequence| !known.contains(sequence)).collect())
    }

    /// All entries, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read or a file is damaged.
    pub fn entries(&self) -> Result<Vec<OrderEntry>, FolderError> {
        self.sequences()?.into_iter().filter_map(|sequence| self.entry(sequence).transpose()).collect()
    }

    /// The entries that are not settled, oldest first. They include orders superseded by a certificate that is not
    /// settled: its payee waits, and this wallet may be the only one left that has the certificate.
    ///
    /// # Errors
    /// If the folder cannot be read or a file is damaged.
    pub fn unfinished(&self) -> Result<Vec<OrderEntry>, FolderError> {
        let names = self.names()?;
        let numbers = |kind: &str| names.iter().filter_map(|name| sequence_of(name, kind)).collect::<Vec<_>>();
        let settled = ["settled", "void", "archived", "paid"].into_iter().flat_map(numbers);
        let settled: std::collections::HashSet<_> = settled.collect();
        let mut open = numbers("order");
        open.extend(numbers("certificate"));
        open.sort_unstable();
        open.dedup();
        open.retain(|sequence| !settled.contains(sequence));
        open.into_iter().filter_map(|sequence| self.entry(sequence).transpose()).collect()
    }

    /// The entry of a number; `None` if this wallet has nothing of it.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn entry(&self, sequence: SequenceNumber) -> Result<Option<OrderEntry>, FolderError> {
        let stored: Option<StoredOrder> = self.read(sequence, "order")?;
        let certified: Option<StoredCertificate> = self.read(sequence, "certificate")?;
        let settled: Option<StoredSettlement> = self.read(sequence, "settled")?;
        let archived: Option<ArchivedOrder> = self.read(sequence, "archived")?;
        // A certificate that a recovery ended says nothing of the number that another order took then.
        let is_replaced = |certified: &StoredCertificate| {
            archived.as_ref().is_some_and(|archived| archived.digest != certified.digest)
        };
        let certified = certified.filter(|certified| !is_replaced(certified));
        let state = match (&stored, &certified) {
            _ if self.is_voided(sequence)? => OrderState::Voided,
            _ if self.is_paid(sequence)? => OrderState::Settled,
            (Some(order), None) if archived.as_ref().is_some_and(|archived| archived.digest != order.digest) => {
                OrderState::Superseded
            }
            (_, None) if archived.is_some() => OrderState::Settled,
            (None, None) => return Ok(None),
            (Some(order), Some(certificate)) if order.digest != certificate.digest => OrderState::Superseded,
            (Some(_), None) => OrderState::Created,
            _ if settled.is_some() || archived.is_some() => OrderState::Settled,
            _ => OrderState::Certified,
        };
        let created_at_ms = stored.as_ref().map(|stored| stored.created_at_ms);
        let created_at_ms = created_at_ms.or(certified.as_ref().map(|c| c.certified_at_ms));
        let created_at_ms = created_at_ms.or(archived.as_ref().map(|a| a.archived_at_ms)).unwrap_or_default();
        let order = stored.map(|stored| self.decode(sequence, "order", &stored.order)).transpose()?;
        let certificate =
            certified.map(|stored| self.decode(sequence, "certificate", &stored.certificate)).transpose()?;
        Ok(Some(OrderEntry { sequence, order, certificate, archived, created_at_ms, state }))
    }

    /// The order on which the contract spent a number in a final block, if noted.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn spending(&self, sequence: SequenceNumber) -> Result<Option<Spending>, FolderError> {
        self.read(sequence, "spent")
    }

    /// Notes on which order the contract spent a number in a final block. This never changes, so no lock is needed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_spending(&self, sequence: SequenceNumber, spending: &Spending) -> Result<(), FolderError> {
        self.write(sequence, "spent", spending).map(drop)
    }

    /// Whether the contract voided the number.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn is_voided(&self, sequence: SequenceNumber) -> Result<bool, FolderError> {
        Ok(self.read::<StoredVoid>(sequence, "void")?.is_some())
    }

    /// Whether it is noted that the contract paid what is ordered under the number.
    fn is_paid(&self, sequence: SequenceNumber) -> Result<bool, FolderError> {
        Ok(self.read::<StoredPayout>(sequence, "paid")?.is_some())
    }

    fn sequences(&self) -> Result<Vec<SequenceNumber>, FolderError> {
        let names = self.names()?;
        let mut sequences: Vec<_> = names
            .iter()
            .filter_map(|name| {
                ["order", "certificate", "archived", "void"].iter().find_map(|kind| sequence_of(name, kind))
            })
            .collect();
        sequences.sort_unstable();
        sequences.dedup();
        Ok(sequences)
    }

    fn names(&self) -> Result<Vec<String>, FolderError> {
        files::names(&self.folder).map_err(|error| FolderError::io(&self.folder, error))
    }

    fn path(&self, sequence: SequenceNumber, kind: &str) -> PathBuf {
        self.folder.join(format!("{:020}.{kind}", sequence.0))
    }

    fn read<T: for<'a> Deserialize<'a>>(&self, sequence: SequenceNumber, kind: &str) -> Result<Option<T>, FolderError> {
        json::read(&self.path(sequence, kind))
    }

    fn write(&self, sequence: SequenceNumber, kind: &str, content: &impl Serialize) -> Result<bool, FolderError> {
        json::create(&self.path(sequence, kind), content)
    }

    fn decode<T: BorshDeserialize>(
        &self,
        sequence: SequenceNumber,
        kind: &str,
        encoded: &str,
    ) -> Result<T, FolderError> {
        decode_hex(&self.path(sequence, kind), encoded)
    }
}

fn sequence_of(name: &str, kind: &str) -> Option<SequenceNumber> {
    name.strip_suffix(kind)?.strip_suffix('.')?.parse().ok().map(SequenceNumber)
}

pub(crate) fn encode_hex(value: &impl BorshSerialize) -> String {
    hex::encode(borsh::to_vec(value).expect("writing to memory does not fail"))
}

pub(crate) fn decode_hex<T: BorshDeserialize>(path: &Path, encoded: &str) -> Result<T, FolderError> {
    let bytes = hex::decode(encoded).map_err(|error| FolderError::damaged(path, error))?;
    borsh::from_slice(&bytes).map_err(|error| FolderError::damaged(path, error))
}

/// Now, in milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "it is shown in the history, and nothing else")]
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn stored_certificate(certificate: &VerifiedCertificate) -> StoredCertificate {
    StoredCertificate {
        certified_at_ms: now_ms(),
        digest: certificate.digest(),
        certificate: encode_hex(certificate.certificate()),
    }
}

/// The right to write one account's orders, held until it is dropped.
#[derive(Debug)]
pub struct OrderJournal {
    orders: Orders,
    _lock: Lock,
}

impl OrderJournal {
    /// The orders, for reading.
    #[must_use]
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// Stores an order. Once this has returned, the order may be sent. Storing the same order again changes nothing.
    ///
    /// # Errors
    /// [`FolderError::OtherOrder`] if the number belongs to another order; or the file cannot be written.
    pub fn create(&self, order: &VerifiedOrder) -> Result<(), FolderError> {
        let sequence = order.transfer().sequence();
        let stored = StoredOrder {
            created_at_ms: now_ms(),
            digest: order.digest(),
            transfer: order.transfer().clone(),
            order: encode_hex(order.order()),
        };
        if let Some(certified) = self.orders.read::<StoredCertificate>(sequence, "certificate")?
            && certified.digest != order.digest()
        {
            return Err(self.other_order(sequence, certified.digest));
        }
        if self.orders.write(sequence, "order", &stored)? {
            return Ok(());
        }
        match self.orders.read::<StoredOrder>(sequence, "order")? {
            Some(existing) if existing.digest == order.digest() => Ok(()),
            Some(existing) => Err(self.other_order(sequence, existing.digest)),
            None => Err(FolderError::damaged(&self.orders.path(sequence, "order"), "it vanished")),
        }
    }

    /// Stores the certificate of a number, for this wallet's order or for one that superseded it. One of an earlier epoch,
    /// which a recovery has ended, makes room, and stays beside it: another recovery may count it.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn certify(&self, certificate: &VerifiedCertificate) -> Result<(), FolderError> {
        let sequence = certificate.transfer().sequence();
        let stored = stored_certificate(certificate);
        if self.orders.write(sequence, "certificate", &stored)? {
            return Ok(());
        }
        let Some(earlier) = self.orders.read::<StoredCertificate>(sequence, "certificate")? else { return Ok(()) };
        let epoch = self.orders.decode::<Certificate>(sequence, "certificate", &earlier.certificate)?.epoch;
        if epoch >= certificate.certificate().epoch {
            return Ok(());
        }
        self.replace(sequence, &earlier, &stored)
    }

    /// Puts a certificate in the place of another one, which stays beside it.
    fn replace(
        &self,
        sequence: SequenceNumber,
        before: &StoredCertificate,
        now: &StoredCertificate,
    ) -> Result<(), FolderError> {
        let epoch = self.orders.decode::<Certificate>(sequence, "certificate", &before.certificate)?.epoch;
        if !self.orders.write(sequence, &format!("{}.ended", epoch.0), before)? {
            // Another one of the same epoch may have that name.
            self.orders.write(sequence, &format!("{}.{}.ended", epoch.0, before.digest), before)?;
        }
        json::replace(&self.orders.path(sequence, "certificate"), now)
    }

    /// Notes that this certificate is settled. A certificate must be on disk before: a settled number is never checked
    /// again. If that is of another order, this one takes its place, whatever its epoch.
    ///
    /// # Errors
    /// [`FolderError::NotCertified`] if there is none; or a file cannot be written.
    pub fn settle(&self, certificate: &VerifiedCertificate) -> Result<(), FolderError> {
        let sequence = certificate.transfer().sequence();
        let Some(stored) = self.orders.read::<StoredCertificate>(sequence, "certificate")? else {
            return Err(FolderError::NotCertified { account: self.orders.account, sequence });
        };
        if stored.digest != certificate.digest() {
            self.replace(sequence, &stored, &stored_certificate(certificate))?;
        }
        self.orders.write(sequence, "settled", &StoredSettlement { settled_at_ms: now_ms() }).map(drop)
    }

    /// Stores what a checkpoint proves of a number of this account: a transfer, which is settled, or that it is void.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn archive(&self, entry: &ProvenEntry, domain: &Domain) -> Result<(), FolderError> {
        let Some(transfer) = &entry.transfer else { return self.void(entry.sequence) };
        let (checkpoint, digest) = (entry.checkpoint, domain.transfer_digest(transfer));
        let archived = ArchivedOrder { archived_at_ms: now_ms(), checkpoint, digest, transfer: transfer.clone() };
        self.orders.write(entry.sequence, "archived", &archived).map(drop)
    }

    /// Notes that the contract voided a number, as f + 1 authorities confirm: no order of it ever happens.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn void(&self, sequence: SequenceNumber) -> Result<(), FolderError> {
        self.orders.write(sequence, "void", &StoredVoid { voided_at_ms: now_ms() }).map(drop)
    }

    /// Notes that the contract paid the redemption that is ordered under a number, and that authorities have stepped over
    /// the number: nothing more happens under it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_paid(&self, sequence: SequenceNumber) -> Result<(), FolderError> {
        self.orders.write(sequence, "paid", &StoredPayout { noted_at_ms: now_ms() }).map(drop)
    }

    fn other_order(&self, sequence: SequenceNumber, existing: Digest) -> FolderError {
        FolderError::OtherOrder { account: self.orders.account, sequence, existing }
    }
}

impl OrderEntry {
    /// The order of this entry, verified for a deployment.
    ///
    /// # Errors
    /// If the file was altered, or belongs to another deployment.
    pub fn verify(&self, domain: &Domain) -> Option<Result<VerifiedOrder, fastpay_core::OrderError>> {
        self.order.clone().map(|order| order.verify(domain))
    }
}

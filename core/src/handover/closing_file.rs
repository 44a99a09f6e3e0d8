//! A Closing as it is stored and served, and its verification.
//!
//! ```text
//!  file = magic (8 bytes) ‖ item(statement ‖ member ‖ signature) ‖ { item(entry) ‖ item(order that it names)? }*
//! ```
//! A private order comes with its proof or its certificate. Items are those of [`crate::checkpoint`]'s streams. A file in which an order is missing or was not signed by its owner
//! is refused as a whole: whoever serves an honest member's Closing must not be able to strip entries of it.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::io::{Read, Result as IoResult, Write};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use rand_core::CryptoRng;

use super::closing::{Closing, ClosingEntry, NamedOrder, Newest, ReportedEntry};
use crate::Digest;
use crate::amount::{Epoch, SequenceNumber, TransactionIndex};
use crate::checkpoint::{Installations, RootBuilder, order_verdict, stream};
use crate::epochs::Committees;
use crate::identity::{AccountId, AuthorityName};
use crate::order::{OrderError, VerifiedOrder};
use crate::private::{
    PrivateCertificate, PrivateEvidence, PrivateLock, ProofCheck, ProofError, ProvenOrder, verify_proofs,
};
use crate::request::Request;
use crate::signature::{BadSignature, Ed25519Signature, Signatory, verify_ed25519};
use crate::statement::Domain;
use crate::verifier::Verifier;

/// The most entries of a Closing that is read into memory: as many orders as a checkpoint leaves to the next one.
pub const CLOSING_ENTRIES_MAX: usize = 1 << 24;
const MAGIC: &[u8; 8] = b"FPCLOS\0\x01";
/// So many signatures are checked in one equation: more save nothing.
const ORDERS_PER_BATCH: usize = 256;

/// A member's signature on its Closing, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignedClosing {
    /// The statement.
    pub closing: Closing,
    /// The member of the epoch that ends.
    pub authority: AuthorityName,
    /// By its Ed25519 key of that epoch.
    pub signature: Ed25519Signature,
}

impl SignedClosing {
    /// Writes the Closing with its entries, one by one.
    ///
    /// # Errors
    /// Those of the writer, and of the entries.
    pub fn write<E: Borrow<ReportedEntry>>(
        &self,
        entries: impl Iterator<Item = IoResult<E>>,
        writer: &mut impl Write,
    ) -> IoResult<()> {
        stream::write_magic(writer, MAGIC)?;
        stream::write_item(writer, self)?;
        for reported in entries {
            let reported = reported?;
            let ReportedEntry { entry, order } = reported.borrow();
            stream::write_item(writer, entry)?;
            match order {
                Some(NamedOrder::Transfer(order)) => stream::write_item(writer, order)?,
                Some(NamedOrder::Private(evidence)) => stream::write_item(writer, evidence)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Reads a Closing of at most `entries_max` entries to the end of `reader`. Nothing of it is checked yet.
    ///
    /// # Errors
    /// Those of the reader; `InvalidData` or `UnexpectedEof` if the bytes are no Closing.
    pub fn read(reader: &mut impl Read, entries_max: usize) -> IoResult<(Self, Vec<ReportedEntry>)> {
        let signed = Self::read_statement(reader)?;
        let mut entries = Vec::new();
        for entry in ClosingEntries::new(reader) {
            if entries.len() >= entries_max {
                return Err(stream::invalid("the Closing has too many entries"));
            }
            entries.push(entry?);
        }
        Ok((signed, entries))
    }

    /// Reads the statement alone, before which nothing of the entries need be there.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_statement(reader: &mut impl Read) -> IoResult<Self> {
        stream::read_magic(reader, MAGIC)?;
        stream::read_item(reader, &mut Vec::new())?.ok_or_else(|| stream::invalid("the Closing is empty"))
    }

    /// Checks the Closing of a member of `epoch` and its entries. `installations` are those up to the newest final block
    /// that the caller knows, and `up_to` is the index of the newest event there. `rng` gives the coefficients by which
    /// signatures are checked together; no verdict depends on it. `proofs` knows all versions under which a lock of the
    /// epoch can be proved, also those of earlier epochs.
    ///
    /// # Errors
    /// See [`ClosingError`].
    pub fn verify(
        self,
        entries: Vec<ReportedEntry>,
        (domain, epoch): (&Domain, Epoch),
        (installations, up_to): (&Installations, TransactionIndex),
        proofs: &impl ProofCheck,
        rng: &mut impl CryptoRng,
    ) -> Result<VerifiedClosing, ClosingError> {
        let mut verified = Vec::new();
        self.check(entries, (domain, epoch), (installations, up_to), proofs, rng, |entry, order| {
            verified.push((entry, order))
        })?;
        let Self { closing, authority, .. } = self;
        Ok(VerifiedClosing { authority, closing, entries: verified })
    }

    /// As [`Self::verify`], entry by entry: `take` gets each one with its order, of a Closing that counts only if all of it
    /// is checked.
    ///
    /// # Errors
    /// See [`ClosingError`].
    pub fn check(
        &self,
        entries: impl IntoIterator<Item = ReportedEntry>,
        (domain, epoch): (&Domain, Epoch),
        (installations, up_to): (&Installations, TransactionIndex),
        proofs: &impl ProofCheck,
        rng: &mut impl CryptoRng,
        mut take: impl FnMut(ClosingEntry, Option<VerifiedNamed>),
    ) -> Result<(), ClosingError> {
        self.check_statement((domain, epoch), (installations, up_to))?;
        let mut checked = CheckedEntries::new(domain, installations);
        let mut entries = entries.into_iter();
        loop {
            let batch: Vec<_> = entries.by_ref().take(ORDERS_PER_BATCH).collect();
            if batch.is_empty() {
                break;
            }
            checked.check(batch, self.closing.entries, proofs, rng, &mut take)?;
        }
        let (root, count) = checked.finish();
        if self.closing.entries == count && self.closing.root == root {
            Ok(())
        } else {
            Err(ClosingError::OtherEntries)
        }
    }

    /// Checks what can be checked without the entries: that a member of `epoch` signed the statement, and that its
    /// Closing can count.
    ///
    /// # Errors
    /// See [`ClosingError`].
    pub fn check_statement(
        &self,
        (domain, epoch): (&Domain, Epoch),
        (installations, up_to): (&Installations, TransactionIndex),
    ) -> Result<(), ClosingError> {
        let Self { closing, authority, signature } = self;
        if closing.epoch != epoch {
            return Err(ClosingError::WrongEpoch { expected: epoch, found: closing.epoch });
        }
        let installed = installations.get(epoch).ok_or(ClosingError::UnknownEpoch(epoch))?;
        let mut later = installations.iter().filter(|later| later.committee.epoch() > epoch);
        if later.any(|later| later.compromised_since <= epoch) {
            return Err(ClosingError::EpochCompromised(epoch));
        }
        installed.committee.member(authority).ok_or(ClosingError::NotAMember(*authority))?;
        if !verify_ed25519(&authority.0, signature, domain.closing_digest(closing)) {
            return Err(BadSignature(Signatory::Authority(*authority)).into());
        }
        if closing.up_to > up_to {
            return Err(ClosingError::BeyondTheChain { up_to: closing.up_to, newest: up_to });
        }
        Ok(())
    }
}

/// The entries of a Closing behind its statement, up to the end of a reader. Nothing of them is checked yet.
#[derive(Debug)]
pub struct ClosingEntries<R> {
    reader: R,
    item: Vec<u8>,
}

impl<R: Read> ClosingEntries<R> {
    /// Those that follow where the statement was read.
    pub fn new(reader: R) -> Self {
        Self { reader, item: Vec::new() }
    }

    fn read(&mut self) -> IoResult<Option<ReportedEntry>> {
        let Self { reader, item } = self;
        let Some(entry) = stream::read_item::<ClosingEntry>(reader, item)? else { return Ok(None) };
        let order = if entry.named().is_none() {
            None
        } else if entry.is_private() {
            stream::read_item(reader, item)?.map(NamedOrder::Private)
        } else {
            stream::read_item(reader, item)?.map(NamedOrder::Transfer)
        };
        if order.is_some() != entry.named().is_some() {
            return Err(stream::invalid("an order is missing"));
        }
        Ok(Some(ReportedEntry { entry, order }))
    }
}

impl<R: Read> Iterator for ClosingEntries<R> {
    type Item = IoResult<ReportedEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// The entries of a Closing, checked so far.
struct CheckedEntries<'a> {
    domain: &'a Domain,
    installations: &'a Installations,
    verifier: Verifier,
    committees: Committees,
    builder: RootBuilder,
    last: Option<ClosingEntry>,
    count: u64,
}

impl<'a> CheckedEntries<'a> {
    fn new(domain: &'a Domain, installations: &'a Installations) -> Self {
        let first = installations.iter().next().unwrap_or(installations.current());
        // The verifier asks for no committee where it checks orders.
        let committees = Committees::new(first.committee.clone()).expect("installations begin with epoch 0");
        let verifier = Verifier::with_memory(*domain, ORDERS_PER_BATCH, ORDERS_PER_BATCH);
        let builder = RootBuilder::default();
        Self { domain, installations, verifier, committees, builder, last: None, count: 0 }
    }

    /// Checks the next entries and the orders that they name, which their owners signed. Of more than `entries_max` none.
    fn check(
        &mut self,
        batch: Vec<ReportedEntry>,
        entries_max: u64,
        proofs: &impl ProofCheck,
        rng: &mut impl CryptoRng,
        take: &mut impl FnMut(ClosingEntry, Option<VerifiedNamed>),
    ) -> Result<(), ClosingError> {
        self.count = self.count.saturating_add(batch.len() as u64);
        if self.count > entries_max {
            return Err(ClosingError::OtherEntries);
        }
        let requests = batch.iter().filter_map(|entry| match &entry.order {
            Some(NamedOrder::Transfer(order)) => Some(Request::Order(order.clone())),
            _ => None,
        });
        let requests = requests.collect();
        let mut verdicts: VecDeque<_> = self.verifier.verify(requests, &self.committees, rng).into();
        let mut private: VecDeque<_> = self.check_private(&batch, proofs)?.into();
        for ReportedEntry { entry, order } in batch {
            if self.last.is_some_and(|last| last >= entry) {
                return Err(ClosingError::EntriesUnsorted(entry.account()));
            }
            let verified = order.map(|order| {
                let NamedOrder::Transfer(order) = order else {
                    return Ok(VerifiedNamed::Private(private.pop_front().expect("each private order is checked")));
                };
                let verdict = verdicts.pop_front().map(order_verdict).expect("each order has its verdict");
                let (account, sequence) = (order.transfer.sender(), order.transfer.sequence());
                let error = |error| ClosingError::Order { account, sequence, error };
                verdict.map(VerifiedNamed::Transfer).map_err(error)
            });
            let verified = verified.transpose()?;
            check_entry(&entry, verified.as_ref())?;
            self.builder.push(&stream::encode(&entry));
            self.last = Some(entry);
            take(entry, verified);
        }
        Ok(())
    }

    /// Checks the private orders of entries: the certificate of each, or the proof.
    fn check_private(
        &self,
        batch: &[ReportedEntry],
        proofs: &impl ProofCheck,
    ) -> Result<Vec<Arc<PrivateLock>>, ClosingError> {
        let (mut locks, mut proven) = (Vec::new(), Vec::new());
        for ReportedEntry { entry, order } in batch {
            let (account, Some(NamedOrder::Private(evidence))) = (entry.account(), order) else { continue };
            let digest = match evidence {
                PrivateEvidence::Proven(order) => {
                    let invalid = |_| ClosingError::PrivateOrder(account);
                    let order = ProvenOrder::clone(order).check(self.domain).map_err(invalid)?;
                    let digest = order.digest();
                    proven.push((account, order));
                    digest
                }
                PrivateEvidence::Certified(certificate) => self.check_certificate(account, certificate)?,
            };
            locks.push(Arc::new(PrivateLock { evidence: evidence.clone(), digest }));
        }
        let (accounts, orders): (Vec<_>, Vec<_>) = proven.into_iter().unzip();
        for (account, verdict) in accounts.into_iter().zip(verify_proofs(orders, proofs)) {
            verdict.map_err(|error| ClosingError::Proof { account, error })?;
        }
        Ok(locks)
    }

    /// A certificate of an epoch whose keys were out shows nothing.
    fn check_certificate(
        &self,
        account: AccountId,
        certificate: &Arc<PrivateCertificate>,
    ) -> Result<Digest, ClosingError> {
        let epoch = certificate.epoch;
        let mut later = self.installations.iter().filter(|later| later.committee.epoch() > epoch);
        let is_sound = later.all(|later| later.compromised_since > epoch);
        let committee = self.installations.get(epoch).filter(|_| is_sound);
        let committee = &committee.ok_or(ClosingError::PrivateOrder(account))?.committee;
        let verified = PrivateCertificate::clone(certificate).verify(self.domain, committee);
        verified.map(|verified| verified.digest()).map_err(|_| ClosingError::PrivateOrder(account))
    }

    /// The root, and the number of entries.
    fn finish(self) -> (Digest, u64) {
        (self.builder.finish().map(|(root, _)| root).unwrap_or_default(), self.count)
    }
}

/// Whether the entry says something, and comes with the order that it names.
fn check_entry(entry: &ClosingEntry, order: Option<&VerifiedNamed>) -> Result<(), ClosingError> {
    let account = entry.account();
    if matches!(entry, ClosingEntry::Account { next: SequenceNumber(0), .. }) {
        return Err(ClosingError::SaysNothing(account));
    }
    let found = order.map(|order| match order {
        VerifiedNamed::Transfer(order) => (order.transfer().sender(), order.transfer().sequence(), order.digest()),
        VerifiedNamed::Private(lock) => {
            let (account, sequence) = lock.number();
            (account, sequence, lock.digest)
        }
    });
    // What is certified can be shown to be.
    let needs_certificate = matches!(entry, ClosingEntry::Spent { .. } | ClosingEntry::PrivateSeen { .. });
    let is_proof = |lock: &PrivateLock| matches!(lock.evidence, PrivateEvidence::Proven(_));
    if needs_certificate && matches!(order, Some(VerifiedNamed::Private(lock)) if is_proof(lock)) {
        return Err(ClosingError::OtherOrder(account));
    }
    let named = entry.named().map(|(sequence, digest)| (account, sequence, digest));
    if found == named { Ok(()) } else { Err(ClosingError::OtherOrder(account)) }
}

/// An order that an entry names, which its owner ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifiedNamed {
    /// Of an account.
    Transfer(VerifiedOrder),
    /// Of nullifiers: its proof or its certificate is verified.
    Private(Arc<PrivateLock>),
}

/// A Closing that a member signed, whose orders were signed by their owners. Cannot be deserialised: only checking makes
/// one. That what it says is true is for certificates to show ([`crate::Shard::join`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedClosing {
    pub(super) authority: AuthorityName,
    pub(super) closing: Closing,
    pub(super) entries: Vec<(ClosingEntry, Option<VerifiedNamed>)>,
}

impl VerifiedClosing {
    /// The member.
    #[must_use]
    pub fn authority(&self) -> AuthorityName {
        self.authority
    }

    /// What it signed.
    #[must_use]
    pub fn closing(&self) -> &Closing {
        &self.closing
    }

    /// The accounts that took numbers beyond the checkpoint, each with its next number: what a joiner brings its
    /// certificates up to.
    pub fn next(&self) -> impl Iterator<Item = (AccountId, SequenceNumber, Newest)> {
        self.entries.iter().filter_map(|(entry, _)| match entry {
            ClosingEntry::Account { account, next, newest } => Some((*account, *next, *newest)),
            ClosingEntry::Spent { account, sequence, order } => {
                Some((*account, sequence.next()?, Newest::Executed(*order)))
            }
            ClosingEntry::Lock { .. }
            | ClosingEntry::Seen { .. }
            | ClosingEntry::PrivateLock { .. }
            | ClosingEntry::PrivateSeen { .. } => None,
        })
    }
}

/// Why a Closing is not one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClosingError {
    /// It is of another epoch.
    #[error("the Closing is of epoch {found}; Closings of epoch {expected} are needed")]
    WrongEpoch {
        /// The epoch that is closed.
        expected: Epoch,
        /// The Closing's.
        found: Epoch,
    },
    /// Its committee is not known here (yet).
    #[error("the committee of epoch {0} is not known here; check the Closing again later")]
    UnknownEpoch(Epoch),
    /// Keys of its epoch were out, so Closings prove nothing.
    #[error("keys of epoch {0} were out: its Closings prove nothing, and nobody joins with them")]
    EpochCompromised(Epoch),
    /// The signer is not a member of the committee.
    #[error("authority {0} is not a member of the committee that closes")]
    NotAMember(AuthorityName),
    /// The signature does not fit.
    #[error(transparent)]
    Signature(#[from] BadSignature),
    /// It names an event that is not final here.
    #[error("the Closing is of event {up_to} of the Primary, and the newest final one here is {newest}")]
    BeyondTheChain {
        /// The Closing's index.
        up_to: TransactionIndex,
        /// The newest one here.
        newest: TransactionIndex,
    },
    /// The entries are not those that the member signed.
    #[error("the entries are not those that the member signed; ask somebody else for the same Closing")]
    OtherEntries,
    /// The entries are not in order, or one comes twice.
    #[error("an entry of account {0} is not in its place")]
    EntriesUnsorted(AccountId),
    /// The next number of an entry is 0.
    #[error("the entry of account {0} says nothing")]
    SaysNothing(AccountId),
    /// The order in the file is not the one that the entry names.
    #[error(
        "an entry of account {0} does not come with the order that it names; ask somebody else for the same Closing"
    )]
    OtherOrder(AccountId),
    /// The owner did not sign the order, or nobody may order the transfer.
    #[error("the order {sequence} of account {account} is invalid: {error}")]
    Order {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// Why.
        error: OrderError,
    },
    /// A private order is malformed, or its certificate is not one that counts.
    #[error("a private order of {0} is invalid, or its certificate does not count")]
    PrivateOrder(AccountId),
    /// The proof of a private order does not count.
    #[error("the proof of a private order of {account} does not count: {error}")]
    Proof {
        /// The account nullifier's account.
        account: AccountId,
        /// Why.
        error: ProofError,
    },
}

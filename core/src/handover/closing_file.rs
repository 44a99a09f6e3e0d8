//! A Closing as it is stored and served, and its verification.
//!
//! ```text
//!  file = magic (8 bytes) ‖ item(statement ‖ member ‖ signature) ‖ { item(entry) ‖ item(order that it names)? }*
//! ```
//! Items are those of [`crate::checkpoint`]'s streams. A file in which an order is missing or was not signed by its owner
//! is refused as a whole: whoever serves an honest member's Closing must not be able to strip entries of it.

use std::collections::VecDeque;
use std::io::{Read, Result as IoResult, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use rand_core::CryptoRng;

use super::closing::{Closing, ClosingEntry, Newest, ReportedEntry};
use crate::amount::{Epoch, SequenceNumber, TransactionIndex};
use crate::checkpoint::{Installations, leaves_root, order_verdict, stream};
use crate::epochs::Committees;
use crate::identity::{AccountId, AuthorityName};
use crate::order::{OrderError, VerifiedOrder};
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
    /// Writes the Closing with its entries.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, entries: &[ReportedEntry], writer: &mut impl Write) -> IoResult<()> {
        stream::write_magic(writer, MAGIC)?;
        stream::write_item(writer, self)?;
        for ReportedEntry { entry, order } in entries {
            stream::write_item(writer, entry)?;
            order.iter().try_for_each(|order| stream::write_item(writer, order))?;
        }
        Ok(())
    }

    /// Reads a Closing of at most `entries_max` entries to the end of `reader`. Nothing of it is checked yet.
    ///
    /// # Errors
    /// Those of the reader; `InvalidData` or `UnexpectedEof` if the bytes are no Closing.
    pub fn read(reader: &mut impl Read, entries_max: usize) -> IoResult<(Self, Vec<ReportedEntry>)> {
        stream::read_magic(reader, MAGIC)?;
        let (mut entries, mut item) = (Vec::new(), Vec::new());
        let signed = stream::read_item(reader, &mut item)?.ok_or_else(|| stream::invalid("the Closing is empty"))?;
        while let Some(entry) = stream::read_item::<ClosingEntry>(reader, &mut item)? {
            if entries.len() >= entries_max {
                return Err(stream::invalid("the Closing has too many entries"));
            }
            let order = match entry.named() {
                None => None,
                Some(_) => {
                    Some(stream::read_item(reader, &mut item)?.ok_or_else(|| stream::invalid("an order is missing"))?)
                }
            };
            entries.push(ReportedEntry { entry, order });
        }
        Ok((signed, entries))
    }

    /// Checks the Closing of a member of `epoch` and its entries. `installations` are those up to the newest final block
    /// that the caller knows, and `up_to` is the index of the newest event there. `rng` gives the coefficients by which
    /// signatures are checked together; no verdict depends on it.
    ///
    /// # Errors
    /// See [`ClosingError`].
    pub fn verify(
        self,
        entries: Vec<ReportedEntry>,
        (domain, epoch): (&Domain, Epoch),
        (installations, up_to): (&Installations, TransactionIndex),
        rng: &mut impl CryptoRng,
    ) -> Result<VerifiedClosing, ClosingError> {
        let Self { closing, authority, signature } = self;
        if closing.epoch != epoch {
            return Err(ClosingError::WrongEpoch { expected: epoch, found: closing.epoch });
        }
        let installed = installations.get(epoch).ok_or(ClosingError::UnknownEpoch(epoch))?;
        let mut later = installations.iter().filter(|later| later.committee.epoch() > epoch);
        if later.any(|later| later.compromised_since <= epoch) {
            return Err(ClosingError::EpochCompromised(epoch));
        }
        installed.committee.member(&authority).ok_or(ClosingError::NotAMember(authority))?;
        if !verify_ed25519(&authority.0, &signature, domain.closing_digest(&closing)) {
            return Err(BadSignature(Signatory::Authority(authority)).into());
        }
        if closing.up_to > up_to {
            return Err(ClosingError::BeyondTheChain { up_to: closing.up_to, newest: up_to });
        }
        let root = leaves_root(entries.iter().map(ReportedEntry::entry)).unwrap_or_default();
        if closing.entries != entries.len() as u64 || closing.root != root {
            return Err(ClosingError::OtherEntries);
        }
        if let Some([_, later]) = entries.array_windows().find(|[a, b]| a.entry >= b.entry) {
            return Err(ClosingError::EntriesUnsorted(later.entry.account()));
        }
        let orders = verify_orders(&entries, domain, installations, rng)?;
        let entries = entries.into_iter().zip(orders).map(|(reported, order)| (reported.entry, order)).collect();
        Ok(VerifiedClosing { authority, closing, entries })
    }
}

/// The orders that the entries name, which their owners signed.
fn verify_orders(
    entries: &[ReportedEntry],
    domain: &Domain,
    installations: &Installations,
    rng: &mut impl CryptoRng,
) -> Result<Vec<Option<VerifiedOrder>>, ClosingError> {
    let first = installations.iter().next().unwrap_or(installations.current());
    // The verifier asks for no committee where it checks orders.
    let committees = Committees::new(first.committee.clone()).expect("installations begin with epoch 0");
    let mut verifier = Verifier::with_memory(*domain, ORDERS_PER_BATCH, ORDERS_PER_BATCH);
    let mut orders = Vec::with_capacity(entries.len());
    for batch in entries.chunks(ORDERS_PER_BATCH) {
        let requests = batch.iter().filter_map(|entry| entry.order.clone()).map(Request::Order).collect();
        let mut verdicts: VecDeque<_> = verifier.verify(requests, &committees, rng).into();
        for ReportedEntry { entry, order } in batch {
            let verified = match order {
                None => None,
                Some(order) => {
                    Some(verdicts.pop_front().map(order_verdict).expect("each order has its verdict").map_err(
                        |error| ClosingError::Order {
                            account: order.transfer.sender(),
                            sequence: order.transfer.sequence(),
                            error,
                        },
                    )?)
                }
            };
            check_entry(entry, verified.as_ref())?;
            orders.push(verified);
        }
    }
    Ok(orders)
}

/// Whether the entry says something, and comes with the order that it names.
fn check_entry(entry: &ClosingEntry, order: Option<&VerifiedOrder>) -> Result<(), ClosingError> {
    let account = entry.account();
    if matches!(entry, ClosingEntry::Account { next: SequenceNumber(0), .. }) {
        return Err(ClosingError::SaysNothing(account));
    }
    let found = order.map(|order| (order.transfer().sender(), order.transfer().sequence(), order.digest()));
    let named = entry.named().map(|(sequence, digest)| (account, sequence, digest));
    if found == named { Ok(()) } else { Err(ClosingError::OtherOrder(account)) }
}

/// A Closing that a member signed, whose orders were signed by their owners. Cannot be deserialised: only checking makes
/// one. That what it says is true is for certificates to show ([`crate::Shard::join`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedClosing {
    pub(super) authority: AuthorityName,
    pub(super) closing: Closing,
    pub(super) entries: Vec<(ClosingEntry, Option<VerifiedOrder>)>,
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
            ClosingEntry::Lock { .. } | ClosingEntry::Seen { .. } => None,
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
}

//! What a member of an epoch that ends states about it.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::account::PendingOrder;
use crate::amount::{Epoch, SequenceNumber, TransactionIndex};
use crate::checkpoint::leaves_root;
use crate::identity::AccountId;
use crate::keys::AuthorityKeys;
use crate::order::TransferOrder;
use crate::private::{PrivateCertificate, PrivateEvidence, PrivateLock, PrivateSeen};
use crate::statement::Domain;

use super::closing_file::SignedClosing;

/// The statement `Closing` of a member: after it, the member signs nothing in the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Closing {
    /// The epoch that ends.
    pub epoch: Epoch,
    /// The member has applied the Primary's order up to here, and the next epoch's installation is included.
    pub up_to: TransactionIndex,
    /// The digest of the newest checkpoint of which the member has everything: the entries say what it lacks.
    pub checkpoint: Digest,
    /// The root over the entries; zero if there are none.
    pub root: Digest,
    /// The number of entries.
    pub entries: u64,
}

impl Closing {
    /// The statement with these entries, which are in the order of [`ClosingEntry`].
    #[must_use]
    pub fn new<'a>(
        epoch: Epoch,
        up_to: TransactionIndex,
        checkpoint: Digest,
        entries: impl Iterator<Item = &'a ClosingEntry>,
    ) -> Self {
        let mut count = 0_u64;
        let root = leaves_root(entries.inspect(|_| count = count.saturating_add(1))).unwrap_or_default();
        Self { epoch, up_to, checkpoint, root, entries: count }
    }

    /// Signs the Closing. The caller has [`crate::Record::Closed`] on disk in all shards, and read the entries after that.
    #[must_use]
    pub fn sign(self, keys: &AuthorityKeys, domain: &Domain) -> SignedClosing {
        let signature = keys.sign_ed25519(domain.closing_digest(&self));
        SignedClosing { closing: self, authority: keys.public().name, signature }
    }
}

/// An entry of a Closing: the leaf that the root covers. Entries are in the order of this type, none twice. A kind byte
/// names one layout for ever: a new layout gets a new kind, and unknown kinds are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
#[borsh(use_discriminant = true)]
#[repr(u8)]
pub enum ClosingEntry {
    /// An account took numbers beyond the checkpoint.
    Account {
        /// The account.
        account: AccountId,
        /// Its next number, above 0.
        next: SequenceNumber,
        /// What took the number before.
        newest: Newest,
    } = 0x31,
    /// The member votes for no other order of the number: it voted for this one, or inherited the lock. Two for one
    /// number: for neither.
    Lock {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        order: Digest,
    } = 0x32,
    /// The member keeps a certificate of the order, and has not executed it.
    Seen {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        order: Digest,
    } = 0x33,
    /// A private order spent an account nullifier, beyond the checkpoint. Its coin nullifier has no entry.
    Spent {
        /// The nullifier's account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        order: Digest,
    } = 0x34,
    /// The member votes for no other private order that takes one of the numbers of this one: it voted for it, or inherited
    /// the lock.
    PrivateLock {
        /// The account nullifier's account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        order: Digest,
    } = 0x35,
    /// The member keeps a certificate of the private order, and has not executed it.
    PrivateSeen {
        /// The account nullifier's account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        order: Digest,
    } = 0x36,
}

/// What took the number before an account's next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
#[borsh(use_discriminant = true)]
#[repr(u8)]
pub enum Newest {
    /// The order with this digest was executed.
    Executed(Digest) = 0,
    /// The Primary voided the number.
    Void = 1,
}

impl ClosingEntry {
    /// The account.
    #[must_use]
    pub fn account(&self) -> AccountId {
        match self {
            Self::Account { account, .. }
            | Self::Lock { account, .. }
            | Self::Seen { account, .. }
            | Self::Spent { account, .. }
            | Self::PrivateLock { account, .. }
            | Self::PrivateSeen { account, .. } => *account,
        }
    }

    /// Whether it names a private order.
    pub(super) fn is_private(&self) -> bool {
        matches!(self, Self::Spent { .. } | Self::PrivateLock { .. } | Self::PrivateSeen { .. })
    }

    /// The order that it names: its number and digest.
    #[must_use]
    pub fn named(&self) -> Option<(SequenceNumber, Digest)> {
        match *self {
            Self::Account { next, newest: Newest::Executed(digest), .. } => {
                Some((SequenceNumber(next.0.saturating_sub(1)), digest))
            }
            Self::Account { newest: Newest::Void, .. } => None,
            Self::Lock { sequence, order, .. }
            | Self::Seen { sequence, order, .. }
            | Self::Spent { sequence, order, .. }
            | Self::PrivateLock { sequence, order, .. }
            | Self::PrivateSeen { sequence, order, .. } => Some((sequence, order)),
        }
    }
}

/// An order that an entry names, with what shows that its owner ordered it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a Closing has millions of transfers, and few private orders")]
pub(super) enum NamedOrder {
    Transfer(TransferOrder),
    Private(PrivateEvidence),
}

/// An entry with the order that it names. The order is not under the root: its owner can authorize one transfer with
/// many signatures, and any valid one proves that the owner ordered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedEntry {
    pub(super) entry: ClosingEntry,
    pub(super) order: Option<NamedOrder>,
}

impl ReportedEntry {
    /// An entry, and the order that it names. Whether they fit is checked with the Closing.
    #[must_use]
    pub fn new(entry: ClosingEntry, order: Option<TransferOrder>) -> Self {
        Self { entry, order: order.map(NamedOrder::Transfer) }
    }

    /// The account has taken numbers beyond the checkpoint, and `executed` the one before `next`, with its digest; none
    /// if that one is void.
    #[must_use]
    pub fn account(account: AccountId, next: SequenceNumber, executed: Option<(TransferOrder, Digest)>) -> Self {
        let newest = executed.as_ref().map_or(Newest::Void, |(_, digest)| Newest::Executed(*digest));
        Self::new(ClosingEntry::Account { account, next, newest }, executed.map(|(order, _)| order))
    }

    /// A lock, see [`crate::Shard::locks`].
    #[must_use]
    pub fn lock(lock: &PendingOrder) -> Self {
        let (account, sequence) = (lock.order.transfer.sender(), lock.order.transfer.sequence());
        let entry = ClosingEntry::Lock { account, sequence, order: lock.digest };
        Self::new(entry, Some(TransferOrder::clone(&lock.order)))
    }

    /// The member keeps a certificate of this order, whose digest is given.
    #[must_use]
    pub fn seen(order: TransferOrder, digest: Digest) -> Self {
        let (account, sequence) = (order.transfer.sender(), order.transfer.sequence());
        Self::new(ClosingEntry::Seen { account, sequence, order: digest }, Some(order))
    }

    /// A lock of a private order, see [`crate::private::Pool::locks`].
    #[must_use]
    pub fn private_lock(lock: &PrivateLock) -> Self {
        let ((account, sequence), order) = (lock.number(), lock.digest);
        let entry = ClosingEntry::PrivateLock { account, sequence, order };
        Self { entry, order: Some(NamedOrder::Private(lock.evidence.clone())) }
    }

    /// The member keeps this certificate, see [`crate::private::Pool::waiting`].
    #[must_use]
    pub fn private_seen(PrivateSeen { certificate, digest: order }: &PrivateSeen) -> Self {
        let ([(account, sequence), _], order) = (certificate.order.transfer.taken(), *order);
        let entry = ClosingEntry::PrivateSeen { account, sequence, order };
        Self { entry, order: Some(NamedOrder::Private(PrivateEvidence::Certified(certificate.clone()))) }
    }

    /// The private order that this certificate is of, and whose digest is given, spent its account nullifier.
    #[must_use]
    pub fn spent(certificate: Arc<PrivateCertificate>, order: Digest) -> Self {
        let [(account, sequence), _] = certificate.order.transfer.taken();
        let entry = ClosingEntry::Spent { account, sequence, order };
        Self { entry, order: Some(NamedOrder::Private(PrivateEvidence::Certified(certificate))) }
    }

    /// The entry.
    #[must_use]
    pub fn entry(&self) -> &ClosingEntry {
        &self.entry
    }
}

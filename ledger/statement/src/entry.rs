//! The entries of a cluster's state, and the tree over them. Everything that a cluster remembers is an entry, so a read
//! proof can show any of it.
//!
//! The tree is a sparse Merkle tree over the hashes of the keys, with single entries pulled up: no entry = zero; one
//! entry = H(0x00 ‖ hash of the key ‖ hash of the value); several = H(0x01 ‖ those whose next bit is 0 ‖ those whose
//! next bit is 1), the most significant bit first. One set of entries has one root.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{AccountId, Asset, Digest, Epoch, SequenceNumber, TransactionIndex, merkle_leaf, merkle_node};

use crate::encoding::digest;
use crate::identity::{ClusterId, CommitteeNumber, Receiver};
use crate::request::{Key, Namespace, Version};

/// The longest path: a hash has this many bits.
const PATH_LENGTH_MAX: usize = 256;

/// The key of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum StateKey {
    /// An [`Entry`] of the key-value store.
    Stored(Namespace, Key),
    /// Whether the owner has opened its reserves: present if so.
    Opened(AccountId),
    /// The balance of an asset in a reserve, or claimed by one that is not open. 256 bits, as of every sum: however
    /// much faulty clusters send, it does not overflow.
    Reserve(AccountId, Asset),
    /// The next sequence number of a signer at this cluster.
    Sequence(AccountId),
    /// The digest of a signer's recent instruction, and the answer to it.
    Answered(AccountId, SequenceNumber),
    /// The [`Cursor`] of the groups taken from a cluster.
    Taken(ClusterId),
    /// The [`Cursor`] of the groups to a receiver, and the time of the newest.
    Sent(Receiver),
    /// The total of an asset sent to a cluster since the genesis.
    SentTotal(ClusterId, Asset),
    /// The total of an asset taken from a cluster since the genesis.
    TakenTotal(ClusterId, Asset),
    /// Whether a request was passed on to a cluster, and awaits its answer: present if so.
    Pending(ClusterId, Digest),
    /// The number of requests that await answers from a cluster.
    PendingCount(ClusterId),
    /// The messages that wait for a receiver: the numbers of the first one and of the next to be added, and all bytes.
    Queue(Receiver),
    /// A message that did not fit into an earlier group.
    Queued(Receiver, u64),
    /// The balance of an asset held for the accounts of a FastPay committee.
    Omnibus(CommitteeNumber, Asset),
    /// The index of the newest event for a FastPay committee.
    EventIndex(CommitteeNumber),
    /// What one of an account's sequence numbers is [`SpentOn`]: present if it is spent, and never changed.
    Spent(CommitteeNumber, AccountId, SequenceNumber),
    /// The committee of an epoch.
    Committee(CommitteeNumber, Epoch),
    /// The [`crate::CurrentEpoch`].
    Epoch(CommitteeNumber),
    /// The [`crate::UnlockEntry`] of a number whose owner requested it.
    Unlock(CommitteeNumber, AccountId, SequenceNumber),
    /// The balance of an asset held as bonds for requests to unlock.
    Bonds(CommitteeNumber, Asset),
    /// What is [`crate::Announced`] under this id.
    Announcement(CommitteeNumber, Digest),
    /// The number of announcements so far, those that have ended included.
    AnnouncementCount(CommitteeNumber),
    /// The id of an announcement, by its number among all, from 0.
    AnnouncementId(CommitteeNumber, u64),
}

impl StateKey {
    /// The key's place in the tree.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest("fastpay ledger state key v1", self)
    }
}

/// A value of the key-value store.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Entry {
    /// Of the write that stored it.
    pub version: Version,
    /// The value.
    pub value: crate::request::Value,
}

/// What a sequence number of a FastPay account is spent on. Nothing else is ever paid under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SpentOn {
    /// A redemption was paid.
    Redeemed(Redeemed),
    /// The number was voided.
    Void,
}

/// A paid redemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Redeemed {
    /// The digest of the redemption that was paid.
    pub digest: Digest,
    /// The index of the event that told the committee's authorities.
    pub index: TransactionIndex,
    /// The owner of the reserve that got the fee.
    pub relayer: AccountId,
}

/// The group that is due between a cluster and a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Cursor {
    /// Its number.
    pub next: u64,
    /// The digest of the group before it.
    pub previous: Digest,
}

impl Default for Cursor {
    /// Before the first group.
    fn default() -> Self {
        Self { next: 1, previous: Digest::ZERO }
    }
}

/// The hash of a single entry.
#[must_use]
pub fn leaf_digest(key: Digest, value: Digest) -> Digest {
    merkle_leaf([key.0, value.0].as_flattened())
}

/// The hash of several entries: of those left and right of a bit.
#[must_use]
pub fn branch_digest(left: &Digest, right: &Digest) -> Digest {
    merkle_node(left, right)
}

/// What is at a key.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Evidence {
    /// This value.
    Present(Vec<u8>),
    /// No entry has a key that begins with the bits of the path.
    Nothing,
    /// The only entry whose key begins with the bits of the path is another one.
    Other {
        /// The hash of its key.
        key: Digest,
        /// The hash of its value.
        value: Digest,
    },
}

/// The proof of what is at a key.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct StateProof {
    /// What the path leads to.
    pub evidence: Evidence,
    /// The siblings of the path, from the root down.
    pub siblings: Vec<Digest>,
}

impl StateProof {
    /// The root of the state that this proves something about; `None` if it proves nothing about `key`.
    #[must_use]
    pub fn root(&self, key: Digest) -> Option<Digest> {
        let length = self.siblings.len();
        if length > PATH_LENGTH_MAX {
            return None;
        }
        let end = match &self.evidence {
            Evidence::Present(value) => leaf_digest(key, value_digest(value)),
            Evidence::Nothing => Digest::ZERO,
            Evidence::Other { key: other, value } => {
                let is_on_path = (0..length).all(|depth| key_bit(&key, depth) == key_bit(other, depth));
                (*other != key && is_on_path).then(|| leaf_digest(*other, *value))?
            }
        };
        let up = |hash: Digest, (depth, sibling): (usize, &Digest)| match key_bit(&key, depth) {
            true => branch_digest(sibling, &hash),
            false => branch_digest(&hash, sibling),
        };
        Some(self.siblings.iter().enumerate().rev().fold(end, up))
    }
}

/// The hash of an entry's value.
#[must_use]
pub fn value_digest(value: &[u8]) -> Digest {
    digest("fastpay ledger state value v1", &value)
}

/// The bit of a key's hash at this depth, from the most significant.
#[must_use]
pub fn key_bit(key: &Digest, depth: usize) -> bool {
    key.0.get(depth / 8).is_some_and(|byte| byte >> (7 - depth % 8) & 1 == 1)
}

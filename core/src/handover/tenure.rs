//! What a shard remembers of hand-overs: the epochs that it closed and joined, and the locks that it inherited.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::account::PendingOrder;
use crate::amount::{Epoch, SequenceNumber};
use crate::identity::AccountId;

/// Two orders of one number are voted for by nobody who knows of both, so a third one changes nothing.
const LOCKS_PER_NUMBER_MAX: usize = 2;

/// See the module header.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Tenure {
    /// The newest epoch under which this authority signs nothing any more; it signs nothing under earlier ones either.
    closed: Option<Epoch>,
    /// The newest epoch that it joined with the Closings of the one before.
    joined: Option<Epoch>,
    /// By account and number that is not taken: the orders that those Closings report, in the order of digests. One:
    /// there is no vote for another one. Two: there is no vote for any.
    inherited: BTreeMap<(AccountId, SequenceNumber), Vec<PendingOrder>>,
}

impl Tenure {
    /// The newest epoch under which this authority signs nothing any more.
    #[must_use]
    pub fn closed(&self) -> Option<Epoch> {
        self.closed
    }

    /// The newest epoch that this authority joined with the Closings of the one before.
    #[must_use]
    pub fn joined(&self) -> Option<Epoch> {
        self.joined
    }

    /// The inherited locks on a number: at most two.
    #[must_use]
    pub fn inherited(&self, account: AccountId, sequence: SequenceNumber) -> &[PendingOrder] {
        // Most shards have none, and each order asks.
        if self.inherited.is_empty() {
            return &[];
        }
        self.inherited.get(&(account, sequence)).map_or(&[], Vec::as_slice)
    }

    /// The inherited locks on an account's numbers from `next` on.
    pub(crate) fn from(&self, account: AccountId, next: SequenceNumber) -> impl Iterator<Item = &PendingOrder> {
        self.inherited.range((account, next)..=(account, SequenceNumber(u64::MAX))).flat_map(|(_, locks)| locks)
    }

    /// All inherited locks, by account, number and digest.
    pub fn iter(&self) -> impl Iterator<Item = &PendingOrder> {
        self.inherited.values().flatten()
    }

    /// Whether a lock on the order changes nothing any more.
    pub(crate) fn knows(&self, account: AccountId, sequence: SequenceNumber, order: Digest) -> bool {
        let inherited = self.inherited(account, sequence);
        inherited.len() >= LOCKS_PER_NUMBER_MAX || inherited.iter().any(|lock| lock.digest == order)
    }

    pub(crate) fn inherit(&mut self, lock: PendingOrder) {
        let (account, sequence) = (lock.order.transfer.sender(), lock.order.transfer.sequence());
        if !self.knows(account, sequence, lock.digest) {
            let locks = self.inherited.entry((account, sequence)).or_default();
            locks.push(lock);
            locks.sort_by_key(|lock| lock.digest);
        }
    }

    pub(crate) fn close(&mut self, epoch: Epoch) {
        self.closed = self.closed.max(Some(epoch));
    }

    pub(crate) fn join(&mut self, epoch: Epoch) {
        self.joined = self.joined.max(Some(epoch));
    }

    /// Forgets the locks on a number that is taken.
    pub(crate) fn forget(&mut self, account: AccountId, sequence: SequenceNumber) {
        if !self.inherited.is_empty() {
            self.inherited.remove(&(account, sequence));
        }
    }
}

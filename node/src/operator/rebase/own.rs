//! What the authority has: its shards as they were when it stopped.

use std::num::NonZeroU32;
use std::sync::Arc;

use fastpay_core::checkpoint::{PrimaryEvent, PrimaryEventKind};
use fastpay_core::private::Pool;
use fastpay_core::{
    Account, AccountId, Amount, Asset, CrossShardCredit, Digest, Domain, Epoch, JournalPosition, LedgerBase,
    SequenceNumber, ShardLayout, TransactionIndex, Unlock,
};

use crate::authority::shard::{RecoveredShard, ShardError};

/// An account and one of its numbers.
pub(super) type Slot = (AccountId, SequenceNumber);

/// The authority as it stopped.
pub(super) struct Own {
    pub shards: NonZeroU32,
    pub layout: ShardLayout,
    recovered: Vec<RecoveredShard>,
    /// What its journals begin with.
    pub base: Option<Arc<LedgerBase>>,
    /// The newest event that any shard has applied.
    pub up_to: TransactionIndex,
    /// Credits that one shard has issued and another has not applied.
    pub in_transit: Vec<CrossShardCredit>,
}

/// What the new generation is to be.
pub(super) struct Target {
    pub number: u64,
    pub checkpoint: Digest,
    pub generation: u64,
    /// All shards will have applied the events up to this one.
    pub up_to: TransactionIndex,
    /// From this chain time on, a request that was not read here before can be voided.
    pub voidable_at: u64,
    pub layout: ShardLayout,
    pub with_primary: bool,
    /// It begins anew after a recovery: what the authority executed, locked and kept before counts for nothing.
    pub is_anew: bool,
    pub domain: Domain,
}

/// A deposit of the contract's order.
pub(super) struct Deposited {
    pub index: TransactionIndex,
    pub recipient: AccountId,
    pub asset: Asset,
    pub amount: Amount,
}

impl Deposited {
    pub(super) fn of(event: &PrimaryEvent) -> Option<Self> {
        match event.kind {
            PrimaryEventKind::Deposit { recipient, asset, amount } => {
                Some(Self { index: event.index, recipient, asset, amount })
            }
            _ => None,
        }
    }
}

impl Own {
    pub(super) fn new(shards: NonZeroU32, recovered: Vec<RecoveredShard>) -> Self {
        let ledgers = || recovered.iter().map(|shard| (shard.shard().id(), shard.shard().ledger()));
        let mut in_transit = Vec::new();
        for (from, sender) in ledgers() {
            for (to, receiver) in ledgers() {
                let applied = receiver.inbox(from);
                let waiting = sender.outboxes.get(&to).into_iter().flat_map(|outbox| &outbox.waiting);
                in_transit.extend(waiting.filter(|credit| credit.number > applied).cloned());
            }
        }
        let up_to = ledgers().map(|(_, ledger)| ledger.synchronized).max().unwrap_or_default();
        let base = ledgers().next().and_then(|(_, ledger)| ledger.base.clone());
        Self { shards, layout: ShardLayout::new(shards), recovered, base, up_to, in_transit }
    }

    fn shard_of(&self, account: &AccountId) -> Option<&RecoveredShard> {
        self.recovered.get(self.layout.shard_of(account).0 as usize)
    }

    /// The ends of its journals.
    pub(super) fn ends(&self) -> Vec<JournalPosition> {
        self.recovered.iter().map(|shard| shard.history().end()).collect()
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = &RecoveredShard> {
        self.recovered.iter()
    }

    /// The state of an account; a blank one if it is not known.
    pub(super) fn account(&self, account: &AccountId) -> Result<Account, ShardError> {
        Ok(self.shard_of(account).map_or(Ok(None), |shard| shard.account(account))?.unwrap_or_default())
    }

    /// What is known of a number, unless that is nothing.
    pub(super) fn unlock(&self, (account, sequence): Slot) -> Option<&Unlock> {
        let unlock = self.shard_of(&account)?.shard().ledger().unlocks.get(account, sequence);
        unlock.filter(|unlock| **unlock != Unlock::default())
    }

    /// The private transfers that are not executed.
    pub(super) fn pool(&self) -> Option<&Pool> {
        self.shard_of(&AccountId::PRIVATE_POOL).map(|shard| &shard.shard().ledger().pool)
    }

    /// The newest event that the account's shard has applied.
    pub(super) fn applied(&self, account: &AccountId) -> TransactionIndex {
        self.shard_of(account).map_or(TransactionIndex(0), |shard| shard.shard().ledger().synchronized)
    }

    /// The newest event that all shards have applied.
    pub(super) fn applied_by_all(&self) -> TransactionIndex {
        self.shards().map(|shard| shard.shard().ledger().synchronized).min().unwrap_or_default()
    }

    /// The epoch of the newest event that the account's shard has applied.
    pub(super) fn epoch(&self, account: &AccountId) -> Option<Epoch> {
        self.shard_of(account).map(|shard| shard.shard().ledger().unlocks.epoch())
    }

    /// Whether the account's shard has applied all events up to an index.
    pub(super) fn has_applied(&self, account: &AccountId, up_to: TransactionIndex) -> bool {
        self.applied(account) >= up_to
    }

    /// The most entries of any shard's redemption log.
    pub(super) fn redemptions(&self) -> u64 {
        self.shards().map(|shard| shard.shard().ledger().redemptions.count()).max().unwrap_or_default()
    }
}

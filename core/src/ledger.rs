//! A shard's state apart from its accounts: its position in the Primary's events, its redemption log, the credits
//! between it and its sibling shards, and totals for auditors.

use std::collections::{BTreeMap, VecDeque};

use borsh::{BorshDeserialize, BorshSerialize};

use crate::amount::{Amount, Asset, Balance, TransactionIndex};
use crate::history::{History, JournalPosition};
use crate::identity::ShardId;
use crate::record::CrossShardCredit;

/// Credits for one other shard that it has not yet acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Outbox {
    /// The number of the newest credit; 0 before the first.
    pub issued: u64,
    /// Oldest first, numbered without gap up to `issued`.
    pub waiting: VecDeque<CrossShardCredit>,
}

impl Outbox {
    /// The number of the newest credit that the other shard has acknowledged; 0 before the first. That shard has all
    /// credits up to here on disk, and this one no longer keeps them.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.issued.saturating_sub(self.waiting.len() as u64)
    }
}

/// Totals of one asset in this shard. `accounts` is summed from the changes of accounts, independently of the other
/// four, so that `accounts = deposited + credited − forwarded − redeemed` can be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AssetTotals {
    /// The sum of all balances held here.
    pub accounts: Balance,
    /// The sum of all deposits credited here.
    pub deposited: Balance,
    /// The sum of all credits that came from other shards.
    pub credited: Balance,
    /// The sum of all payments that left for other shards.
    pub forwarded: Balance,
    /// The sum of all redemptions confirmed here.
    pub redeemed: Balance,
}

/// A shard's state besides its accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ShardLedger {
    /// All deposits of this shard's accounts up to this index are applied.
    pub synchronized: TransactionIndex,
    /// The redemption certificates confirmed here, in order.
    pub redemptions: History,
    /// Per other shard, the credits on their way to it.
    pub outboxes: BTreeMap<ShardId, Outbox>,
    /// Per other shard, the number of the newest credit from it that is applied here.
    pub inboxes: BTreeMap<ShardId, u64>,
    /// Per asset, for auditors.
    pub totals: BTreeMap<Asset, AssetTotals>,
}

impl ShardLedger {
    pub(crate) fn totals_mut(&mut self, asset: Asset) -> &mut AssetTotals {
        self.totals.entry(asset).or_default()
    }

    /// Puts a credit into the outbox for `to`.
    pub(crate) fn forward(&mut self, to: ShardId, credit: CrossShardCredit) {
        let asset = credit.asset();
        let total = credit.receipts().fold(Balance::ZERO, |sum, paid| sum.credit(paid.payment.amount));
        let outbox = self.outboxes.entry(to).or_default();
        outbox.issued = credit.number;
        outbox.waiting.push_back(credit);
        let totals = self.totals_mut(asset);
        totals.forwarded = totals.forwarded.plus(total);
    }

    /// The number that the next credit for `to` will have.
    pub(crate) fn next_credit(&self, to: ShardId) -> u64 {
        self.outboxes.get(&to).map_or(0, |outbox| outbox.issued).wrapping_add(1)
    }

    /// The number of the newest credit from `from` that is applied here.
    #[must_use]
    pub fn inbox(&self, from: ShardId) -> u64 {
        self.inboxes.get(&from).copied().unwrap_or_default()
    }

    /// Forgets the credits for `to` up to `number`, which that shard has durably applied.
    pub fn acknowledge(&mut self, to: ShardId, number: u64) {
        if let Some(outbox) = self.outboxes.get_mut(&to) {
            while outbox.waiting.front().is_some_and(|credit| credit.number <= number) {
                outbox.waiting.pop_front();
            }
        }
    }

    /// Adds a redemption to the redemption log.
    pub(crate) fn redeem(&mut self, asset: Asset, amount: Amount, position: JournalPosition) {
        self.redemptions.push(position);
        let totals = self.totals_mut(asset);
        totals.redeemed = totals.redeemed.credit(amount);
    }
}

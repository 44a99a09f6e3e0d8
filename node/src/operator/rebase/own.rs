//! What the authority has: its shards as they were when it stopped, and the state that follows from the checkpoint, the
//! chain and its journals. Where nothing was missing here, the two must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use fastpay_core::checkpoint::{CheckpointState, Cut, NumberState, Outcome, OwnState, PrimaryEvent, PrimaryEventKind};
use fastpay_core::{
    Account, AccountId, Amount, Asset, Balance, CrossShardCredit, Digest, Domain, Epoch, JournalPosition, LedgerBase,
    Receipt, Record, SequenceNumber, ShardId, ShardLayout, TransactionIndex, Unlock, UnlockOutcome,
};

use super::RebaseError;
use crate::authority::certification::{Journals, Progress};
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
    pub domain: Domain,
}

/// A deposit of the contract's order.
pub(super) struct Deposited {
    index: TransactionIndex,
    recipient: AccountId,
    asset: Asset,
    amount: Amount,
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

/// What the new generation begins with.
pub(super) struct Plan {
    /// The cut of the checkpoint.
    pub cut: Cut,
    /// The state after everything that is executed and followed here.
    pub state: CheckpointState,
    /// Executed redemptions that the contract never pays, with what it spent their numbers on.
    pub displaced: BTreeMap<Slot, Digest>,
    /// All accounts that are known of.
    pub accounts: BTreeMap<AccountId, Counts>,
    /// All deposits so far.
    pub deposited: BTreeMap<Asset, Balance>,
    /// Whether all that the checkpoint includes was executed here.
    pub is_complete: bool,
}

/// How many entries of an account's lists are pruned.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub received: u64,
    pub deposits: u64,
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

    /// The newest event that the account's shard has applied.
    fn applied(&self, account: &AccountId) -> TransactionIndex {
        self.shard_of(account).map_or(TransactionIndex(0), |shard| shard.shard().ledger().synchronized)
    }

    /// The epoch of the newest event that the account's shard has applied.
    fn epoch(&self, account: &AccountId) -> Option<Epoch> {
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

/// Computes the state with which the new generation begins.
pub(super) fn plan(
    own: &Own,
    target: &Target,
    base: CheckpointState,
    events: Vec<PrimaryEvent>,
    mut deposits: Vec<Deposited>,
    journals: &Journals,
    told: Progress<'_>,
) -> Result<Plan, RebaseError> {
    let cut = base.cut().clone();
    let followed: Vec<_> = events.into_iter().filter(|event| event.index <= target.up_to).collect();
    deposits.extend(followed.iter().filter_map(Deposited::of));
    let contradiction = |error| RebaseError::Contradiction { number: target.number, error: Box::new(error) };
    let mut state = OwnState::new(base, followed, &target.domain).map_err(contradiction)?;

    // An account's list ends where nothing was listed that the checkpoint lacks: the archive has what comes before.
    let mut first_kept = BTreeMap::<AccountId, u64>::new();
    let mut accounts = BTreeSet::new();
    let scan = |records: &mut dyn Iterator<Item = (ShardId, Record)>| {
        for (_, record) in records {
            accounts.extend(record.accounts());
            for (receipt, link) in record.received() {
                if !is_pruned(&receipt, &cut) {
                    first_kept.entry(receipt.payment.recipient).or_insert(link.number);
                }
            }
            let (account, sent, transfer) = match &record {
                Record::Confirmation { certificate, sent, .. } => {
                    let transfer = &certificate.order.transfer;
                    (transfer.sender(), sent, Some(transfer))
                }
                Record::Void { account, sent } => (*account, sent, None),
                _ => continue,
            };
            let sequence = SequenceNumber(sent.number);
            if sequence >= cut.next(&account) {
                state.take(account, sequence, transfer)?;
            }
        }
        Ok(())
    };
    journals.read(told, scan)?.0.map_err(contradiction)?;
    let mut is_complete = true;
    for (account, next) in &cut.next {
        is_complete = is_complete && own.account(account)?.next_sequence() >= *next;
    }
    let (state, displaced) = state.finish();

    let mut new_deposits = BTreeMap::<AccountId, u64>::new();
    let mut deposited = BTreeMap::<Asset, Balance>::new();
    for shard in own.shards() {
        for (asset, totals) in &shard.shard().ledger().totals {
            let sum = deposited.entry(*asset).or_default();
            *sum = sum.plus(totals.deposited);
        }
    }
    for Deposited { index, recipient, asset, amount } in deposits {
        if index > own.applied(&recipient) {
            let count = new_deposits.entry(recipient).or_default();
            *count = count.saturating_add(1);
            let sum = deposited.entry(asset).or_default();
            *sum = sum.credit(amount);
        }
    }
    accounts.extend(state.cut().next.keys());
    accounts.extend(state.balances().keys().map(|(account, _)| account));
    accounts.extend(own.in_transit.iter().flat_map(CrossShardCredit::receipts).map(|paid| paid.payment.recipient));
    let mut counted = BTreeMap::new();
    for account in accounts {
        let known = own.account(&account)?;
        let received = match is_complete {
            true => first_kept.get(&account).copied().unwrap_or(known.received.count()),
            // What the checkpoint credited and this authority never listed must not pass for nothing.
            false => known.received.count().saturating_add(1),
        };
        let new = new_deposits.get(&account).copied().unwrap_or_default();
        let deposits = known.deposits.count().saturating_add(new);
        counted.insert(account, Counts { received, deposits });
    }
    Ok(Plan { cut, state, displaced, accounts: counted, deposited, is_complete })
}

/// Whether a checkpoint includes the order by which a payment was received.
pub(super) fn is_pruned(receipt: &Receipt, cut: &Cut) -> bool {
    receipt.payment.sequence < cut.next(&receipt.payment.sender)
}

impl Plan {
    /// What the new generation knows of each number: what the Primary said of it, and what is this authority's own.
    pub(super) fn numbers(&self, own: &Own, target: &Target) -> BTreeMap<Slot, Unlock> {
        let mut numbers = BTreeMap::new();
        for (slot, said) in self.state.numbers() {
            numbers.insert(*slot, self.number(*slot, said, own, target));
        }
        for shard in own.shards() {
            for (account, sequence, unlock) in shard.shard().ledger().unlocks.iter() {
                let slot = (account, sequence);
                let is_own = unlock.seen.is_some() || unlock.void_voted.is_some() || unlock.voidable_at.is_some();
                if is_own && sequence >= self.state.cut().next(&account) && !numbers.contains_key(&slot) {
                    numbers.insert(slot, self.number(slot, &NumberState::default(), own, target));
                }
            }
        }
        for (slot, spent) in &self.displaced {
            numbers.insert(*slot, Unlock { spent: Some(*spent), ..Unlock::default() });
        }
        numbers
    }

    fn number(&self, slot: Slot, said: &NumberState, own: &Own, target: &Target) -> Unlock {
        let (outcome, upheld_in) = match said.outcome {
            None => (None, None),
            Some(Outcome::Voided) => (Some(UnlockOutcome::Voided), None),
            Some(Outcome::Upheld { digest, epoch }) => (Some(UnlockOutcome::Upheld(digest)), Some(epoch)),
        };
        let said_only = Unlock {
            voidable_at: said.is_requested.then_some(target.voidable_at),
            spent: said.spent.map(|spent| spent.digest),
            spent_in: said.spent.and_then(|spent| spent.epoch),
            outcome,
            upheld_in,
            ..Unlock::default()
        };
        // Of a number that is taken, only that it is void matters.
        let is_open = slot.1 >= self.state.cut().next(&slot.0);
        let Some(known) = own.unlock(slot).filter(|_| is_open) else { return said_only };
        // The window does not begin anew where the request was read before, unless an installation that was not read may
        // have opened the number again.
        let has_followed = own.epoch(&slot.0) == Some(self.state.installations().epoch());
        let voidable_at = match known.voidable_at {
            Some(before) if has_followed => Some(before),
            Some(before) => Some(before.max(target.voidable_at)),
            None => said_only.voidable_at,
        };
        Unlock { voidable_at, seen: known.seen.clone(), void_voted: known.void_voted, ..said_only }
    }
}

//! The state with which the new generation begins, as it follows from the checkpoint, the chain and the journals. Where
//! nothing was missing here, it must be what the authority has.
//!
//! Memory holds the accounts that the authority's own work since the checkpoint touches, the *active* ones. All others are
//! what the checkpoint says of them, and are read from its stored state as they are written.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::checkpoint::{AccountRow, Cut, Leaf, NumberState, Outcome, OwnState, PrimaryEvent, StatePart};
use fastpay_core::handover::Tenure;
use fastpay_core::private::{Pool, PrivateTransfer};
use fastpay_core::{
    Account, AccountId, Asset, Balance, CrossShardCredit, Digest, Receipt, Record, Redemption, SequenceNumber, ShardId,
    Transfer, Unlock, UnlockOutcome,
};

use super::RebaseError;
use super::own::{Deposited, Own, Slot, Target};
use crate::authority::certification::{Base, CheckpointError, Journals, Progress};

/// What the new generation begins with.
pub(super) struct Plan<'a> {
    /// The checkpoint, whose rows of accounts that are not active are the authority's own.
    pub base: &'a Base,
    /// The cut of the checkpoint, of the active accounts.
    pub cut: Cut,
    /// Of the active accounts the state after everything that is executed and followed here.
    pub part: StatePart,
    /// What that state says of numbers, of all accounts.
    said: BTreeMap<Slot, NumberState>,
    /// Executed redemptions that the contract has not paid, of all accounts.
    pub unpaid: BTreeMap<Slot, Redemption>,
    /// Executed redemptions that the contract never pays, with what it spent their numbers on.
    displaced: BTreeMap<Slot, Digest>,
    /// The first entry that is kept of each list of received payments that is not pruned as a whole.
    first_kept: BTreeMap<AccountId, u64>,
    /// The deposits of each account that its shard has not applied.
    new_deposits: BTreeMap<AccountId, u64>,
    /// All deposits so far.
    pub deposited: BTreeMap<Asset, Balance>,
    /// What the accounts of each shard of the new generation hold.
    pub held: BTreeMap<(ShardId, Asset), Balance>,
    /// Whether all that the checkpoint includes was executed here, and counts.
    pub is_complete: bool,
}

/// How many entries of an account's lists are pruned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub received: u64,
    pub deposits: u64,
}

/// The own numbers beyond the checkpoint: of each account that has taken some, the first one.
struct Beyond(BTreeMap<AccountId, SequenceNumber>);

impl Beyond {
    fn has(&self, account: &AccountId, sequence: SequenceNumber) -> bool {
        self.0.get(account).is_some_and(|first| sequence >= *first)
    }

    /// Whether a checkpoint includes the order by which a payment was received.
    fn prunes(&self, receipt: &Receipt) -> bool {
        !self.has(&receipt.payment.sender, receipt.payment.sequence)
    }

    /// What a record takes beyond the checkpoint.
    fn taken<'r>(&self, record: &'r Record) -> Option<(AccountId, SequenceNumber, Taker<'r>)> {
        let (account, sent, taker) = match record {
            Record::Confirmation { certificate, sent, .. } => {
                let transfer = &certificate.order.transfer;
                (transfer.sender(), sent, Taker::Transfer(transfer))
            }
            Record::Void { account, sent } => (*account, sent, Taker::Void),
            Record::PrivateConfirmation(confirmation) => {
                let transfer = &confirmation.certificate.order.transfer;
                let [(account, _), _] = transfer.taken();
                let [sent, _] = &confirmation.sent;
                (account, sent, Taker::Private(transfer))
            }
            _ => return None,
        };
        let sequence = SequenceNumber(sent.number);
        self.has(&account, sequence).then_some((account, sequence, taker))
    }
}

/// What takes a number.
enum Taker<'r> {
    Transfer(&'r Transfer),
    Void,
    /// Takes a number of its coin nullifier, too.
    Private(&'r PrivateTransfer),
}

impl Taker<'_> {
    /// The accounts that it pays, and the pool, if that pays.
    fn moves(&self) -> Vec<AccountId> {
        let paid = |receipt: Receipt| receipt.payment.recipient;
        match self {
            Self::Transfer(transfer) => transfer.receipts().map(paid).collect(),
            Self::Void => Vec::new(),
            Self::Private(transfer) => {
                transfer.withdrawal().map(paid).into_iter().flat_map(|paid| [paid, AccountId::PRIVATE_POOL]).collect()
            }
        }
    }
}

/// Computes the state with which the new generation begins.
pub(super) fn plan<'a>(
    own: &Own,
    target: &Target,
    base: &'a Base,
    events: Vec<PrimaryEvent>,
    mut deposits: Vec<Deposited>,
    journals: &Journals,
    told: Progress<'_>,
) -> Result<Plan<'a>, RebaseError> {
    let followed: Vec<_> = events.into_iter().filter(|event| event.index <= target.up_to).collect();
    deposits.extend(followed.iter().filter_map(Deposited::of));
    deposits.retain(|deposit| deposit.index > own.applied(&deposit.recipient));
    let ((), executed) = journals.read(told, |_| ())?;
    let beyond =
        if target.is_anew { BTreeMap::new() } else { base.behind(&executed.next).map_err(CheckpointError::from)? };
    let beyond = Beyond(beyond);

    // An account's list ends where nothing was listed that the checkpoint lacks: the archive has what comes before.
    let mut first_kept = BTreeMap::<AccountId, u64>::new();
    let mut active: BTreeSet<AccountId> = beyond.0.keys().copied().collect();
    let mut pending = BTreeSet::new();
    let scan = |records: &mut dyn Iterator<Item = (ShardId, Record)>| {
        for (_, record) in records {
            for (receipt, link) in record.received().filter(|(receipt, _)| !beyond.prunes(receipt)) {
                first_kept.entry(receipt.payment.recipient).or_insert(link.number);
                active.insert(receipt.payment.recipient);
            }
            active.extend(beyond.taken(&record).iter().flat_map(|(.., taker)| taker.moves()));
            match &record {
                Record::Lock { order, .. } => drop(pending.insert(order.transfer.sender())),
                Record::Confirmation { certificate, .. } => drop(pending.remove(&certificate.order.transfer.sender())),
                Record::Void { account, .. } => drop(pending.remove(account)),
                _ => {}
            }
        }
    };
    journals.read(told, scan)?;
    active.append(&mut pending);
    active.extend(own.in_transit.iter().flat_map(CrossShardCredit::receipts).map(|paid| paid.payment.recipient));
    active.extend(own.shards().flat_map(|shard| shard.shard().ledger().unlocks.iter()).map(|(account, ..)| account));
    let pools = || own.shards().map(|shard| &shard.shard().ledger().pool);
    let waiting = pools().flat_map(Pool::waiting).map(|seen| &seen.certificate.order.transfer);
    let held = pools().flat_map(Pool::locks).map(|(lock, _)| lock.transfer());
    active.extend(held.chain(waiting).flat_map(PrivateTransfer::taken).map(|(account, _)| account));
    let tenures = own.shards().map(|shard| &shard.shard().ledger().tenure);
    active.extend(tenures.flat_map(Tenure::iter).map(|lock| lock.order.transfer.sender()));
    active.extend(followed.iter().filter_map(|event| event.kind.account()));
    active.extend(deposits.iter().map(|deposit| deposit.recipient));

    let (mut is_complete, mut held) = (!target.is_anew, BTreeMap::<(ShardId, Asset), Balance>::new());
    let mut hold = |account: &AccountId, asset: &Asset, balance: Balance| {
        let sum = held.entry((target.layout.shard_of(account), *asset)).or_default();
        *sum = sum.plus(balance);
    };
    for row in base.accounts().map_err(CheckpointError::from)? {
        let AccountRow { account, next, balances } = row.map_err(CheckpointError::from)?;
        is_complete = is_complete && own.account(&account)?.next_sequence() >= next;
        balances.iter().for_each(|(asset, balance)| hold(&account, asset, *balance));
    }

    let part = base.part(active).map_err(CheckpointError::from)?;
    let cut = part.rows().cut().clone();
    part.rows().balances().iter().for_each(|((account, asset), held)| hold(account, asset, held.negated()));
    let contradiction = |error| RebaseError::Contradiction { number: target.number, error: Box::new(error) };
    let (part, displaced) = part.change(|rows| {
        let mut state = OwnState::new(rows, followed, &target.domain).map_err(contradiction)?;
        let take = |records: &mut dyn Iterator<Item = (ShardId, Record)>| {
            for (_, record) in records {
                match beyond.taken(&record) {
                    Some((account, sequence, Taker::Transfer(transfer))) => {
                        state.take(account, sequence, Some(transfer))?;
                    }
                    Some((account, sequence, Taker::Void)) => state.take(account, sequence, None)?,
                    Some((.., Taker::Private(transfer))) => state.take_private(transfer)?,
                    None => {}
                }
            }
            Ok(())
        };
        journals.read(told, take)?.0.map_err(contradiction)?;
        Ok::<_, RebaseError>(state.finish())
    })?;
    part.rows().balances().iter().for_each(|((account, asset), held)| hold(account, asset, *held));
    held.retain(|_, sum| *sum != Balance::ZERO);

    let (mut said, mut unpaid) = (BTreeMap::new(), BTreeMap::new());
    let keep = |stored: &mut dyn std::io::Read| {
        for leaf in part.merged(stored)? {
            match leaf? {
                Leaf::Number(account, sequence, number) => drop(said.insert((account, sequence), number)),
                Leaf::Unpaid(redemption) => {
                    unpaid.insert((redemption.sender, redemption.sequence), redemption);
                }
                _ => {}
            }
        }
        Ok(())
    };
    base.read(keep).map_err(CheckpointError::from)?;

    let mut new_deposits = BTreeMap::<AccountId, u64>::new();
    let mut deposited = BTreeMap::<Asset, Balance>::new();
    for shard in own.shards() {
        for (asset, totals) in &shard.shard().ledger().totals {
            let sum = deposited.entry(*asset).or_default();
            *sum = sum.plus(totals.deposited);
        }
    }
    for Deposited { recipient, asset, amount, .. } in deposits {
        let count = new_deposits.entry(recipient).or_default();
        *count = count.saturating_add(1);
        let sum = deposited.entry(asset).or_default();
        *sum = sum.credit(amount);
    }
    let cut = Cut { up_to: base.state.up_to, ..cut };
    Ok(Plan { base, cut, part, said, unpaid, displaced, first_kept, new_deposits, deposited, held, is_complete })
}

impl Plan<'_> {
    /// How many entries of an account's lists are pruned, where this authority knows it as `known`.
    pub(super) fn counts(&self, account: &AccountId, known: &Account) -> Counts {
        let received = match self.is_complete {
            true => self.first_kept.get(account).copied().unwrap_or(known.received.count()),
            // What the checkpoint credited and this authority never listed must not pass for nothing.
            false => known.received.count().saturating_add(1),
        };
        let new = self.new_deposits.get(account).copied().unwrap_or_default();
        Counts { received, deposits: known.deposits.count().saturating_add(new) }
    }

    /// The first entry that is kept of an account's list of received payments, if any is.
    pub(super) fn first_kept(&self, account: &AccountId) -> Option<u64> {
        self.first_kept.get(account).copied().filter(|_| self.is_complete)
    }

    /// Whether a private order can still take its numbers.
    pub(super) fn is_open(&self, transfer: &PrivateTransfer) -> bool {
        let is_open = |(account, sequence): Slot| {
            let rows = self.part.rows();
            let is_void = rows.numbers().get(&(account, sequence)).is_some_and(NumberState::is_voided);
            sequence >= rows.cut().next(&account) && !is_void
        };
        transfer.taken().into_iter().all(is_open)
    }

    /// What the new generation knows of each number: what the Primary said of it, and what is this authority's own.
    pub(super) fn numbers(&self, own: &Own, target: &Target) -> BTreeMap<Slot, Unlock> {
        let mut numbers = BTreeMap::new();
        for (slot, said) in &self.said {
            numbers.insert(*slot, self.number(*slot, said, own, target));
        }
        for shard in own.shards().filter(|_| !target.is_anew) {
            for (account, sequence, unlock) in shard.shard().ledger().unlocks.iter() {
                let slot = (account, sequence);
                let is_own = unlock.seen.is_some() || unlock.void_voted.is_some() || unlock.voidable_at.is_some();
                if is_own && sequence >= self.part.rows().cut().next(&account) && !numbers.contains_key(&slot) {
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
        let is_open = slot.1 >= self.part.rows().cut().next(&slot.0);
        let Some(known) = own.unlock(slot).filter(|_| is_open && !target.is_anew) else { return said_only };
        // The window does not begin anew where the request was read before, unless an installation that was not read may
        // have opened the number again.
        let has_followed = own.epoch(&slot.0) == Some(self.part.rows().installations().epoch());
        let voidable_at = match known.voidable_at {
            Some(before) if has_followed => Some(before),
            Some(before) => Some(before.max(target.voidable_at)),
            None => said_only.voidable_at,
        };
        Unlock { voidable_at, seen: known.seen.clone(), void_voted: known.void_voted, ..said_only }
    }
}

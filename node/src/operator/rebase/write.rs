//! Writes the journals of a new generation, and replays each record as it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastpay_core::{
    ASSETS_PER_RECORD_MAX, AccountId, Asset, AssetTotals, Balance, Base, BaseAccount, BaseLedger, Certificate,
    CrossShardCredit, Digest, Effect, Epoch, Forwarded, JournalPosition, Link, Receipt, Record, Shard, ShardId,
    ShardLedger, Transfer, Unlock,
};

use super::RebaseError;
use super::own::{Own, Plan, Slot, Target};
use crate::authority::certification::{Journals, Progress};
use crate::authority::storage::{Journal, JournalError, JournalWrite};

/// What was written.
pub(super) struct Written {
    pub certificates: u64,
    /// The ends of the journals.
    pub ends: Vec<JournalPosition>,
}

/// A shard of the new generation.
struct Writer {
    shard: Shard,
    journal: Journal,
    encoded: Vec<u8>,
}

impl Writer {
    fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        self.encoded.clear();
        borsh::to_writer(&mut self.encoded, record).expect("writing to memory does not fail");
        let position = match self.journal.append(&self.encoded) {
            Err(JournalError::BatchFull { .. }) => {
                self.journal.commit()?;
                self.journal.append(&self.encoded)?
            }
            position => position?,
        };
        record.accounts().into_iter().for_each(|account| self.shard.load(account, None));
        self.shard.apply(record, position);
        Ok(())
    }

    fn base(&mut self, base: Base) -> Result<(), JournalError> {
        self.append(&Record::Base(Box::new(base)))
    }
}

/// The shards of the new generation.
struct Generation<'a> {
    own: &'a Own,
    target: &'a Target,
    plan: &'a Plan,
    writers: Vec<Writer>,
    /// The unpaid redemptions that are written.
    written: BTreeSet<Slot>,
    certificates: u64,
}

/// Writes the generation durably, and compares it with what the authority held.
pub(super) fn write(
    own: &Own,
    target: &Target,
    plan: &Plan,
    journals: &Journals,
    new: Vec<Journal>,
    told: Progress<'_>,
) -> Result<Written, RebaseError> {
    let mut counts = BTreeMap::<ShardId, usize>::new();
    for account in plan.accounts.keys() {
        let count = counts.entry(target.layout.shard_of(account)).or_default();
        *count = count.saturating_add(1);
    }
    let writers = target.layout.shards().zip(new).map(|(id, journal)| {
        let accounts = counts.get(&id).copied().unwrap_or_default();
        let shard = Shard::new(id, target.layout, target.with_primary, ShardLedger::default(), accounts);
        Writer { shard, journal, encoded: Vec::new() }
    });
    let (writers, written) = (writers.collect(), BTreeSet::new());
    let mut generation = Generation { own, target, plan, writers, written, certificates: 0 };
    generation.begin()?;
    let keep = |records: &mut dyn Iterator<Item = (ShardId, Record)>| {
        for (_, record) in records {
            generation.keep(&record)?;
        }
        Ok::<_, RebaseError>(())
    };
    journals.read(told, keep)?.0?;
    generation.end()?;
    generation.compare()?;
    let mut ends = Vec::new();
    for writer in &mut generation.writers {
        writer.journal.commit()?;
        ends.push(writer.journal.end());
    }
    Ok(Written { certificates: generation.certificates, ends })
}

impl Generation<'_> {
    fn writer(&mut self, account: &AccountId) -> &mut Writer {
        let shard = self.target.layout.shard_of(account).0 as usize;
        self.writers.get_mut(shard).expect("there is a writer for each shard of the layout")
    }

    /// The ledgers and the accounts.
    fn begin(&mut self) -> Result<(), JournalError> {
        let balances = self.balances();
        let installations = self.plan.state.installations();
        let compromised: BTreeMap<Epoch, Epoch> = installations
            .iter()
            .map(|installed| (installed.compromised_since, installed.committee.epoch()))
            .filter(|(since, epoch)| since < epoch)
            .collect();
        let totals = totals(&balances, &self.plan.deposited, self.target);
        for (writer, totals) in self.writers.iter_mut().zip(totals) {
            writer.base(Base::Checkpoint(BaseLedger {
                number: self.target.number,
                checkpoint: self.target.checkpoint,
                generation: self.target.generation,
                synchronized: self.target.up_to,
                epoch: installations.epoch(),
                compromised: compromised.clone().into_iter().collect(),
                redemptions: self.own.redemptions(),
            }))?;
            for part in totals.into_iter().collect::<Vec<_>>().chunks(ASSETS_PER_RECORD_MAX) {
                writer.base(Base::Totals(part.to_vec()))?;
            }
        }
        let (plan, checkpoint) = (self.plan, self.target.number);
        for (account, counts) in &plan.accounts {
            let held = balances.get(account).map(Vec::as_slice).unwrap_or_default();
            let mut parts = held.chunks(ASSETS_PER_RECORD_MAX).map(|part| part.iter().copied().collect());
            let writer = self.writer(account);
            writer.base(Base::Account(BaseAccount {
                account: *account,
                checkpoint,
                next: plan.cut.next(account),
                received: counts.received,
                deposits: counts.deposits,
                balances: parts.next().unwrap_or_default(),
            }))?;
            for balances in parts {
                writer.base(Base::Balances { account: *account, balances })?;
            }
        }
        Ok(())
    }

    /// All balances by account.
    fn balances(&self) -> BTreeMap<AccountId, Vec<(Asset, Balance)>> {
        let mut balances = BTreeMap::<_, Vec<_>>::new();
        for ((account, asset), balance) in self.plan.state.balances() {
            balances.entry(*account).or_default().push((*asset, *balance));
        }
        balances
    }

    /// What is kept of a record of the old journals.
    fn keep(&mut self, record: &Record) -> Result<(), RebaseError> {
        for (receipt, link) in record.received() {
            let counts = self.plan.accounts.get(&receipt.payment.recipient);
            if self.plan.is_complete && counts.is_some_and(|counts| link.number >= counts.received) {
                let account = receipt.payment.recipient;
                let number = self.list(receipt, record.payout_digest())?;
                if number != link.number {
                    return Err(RebaseError::Differs { account, what: "list of received payments" });
                }
            }
        }
        if let Some(certificate) = record.certificate() {
            self.keep_unpaid(certificate)?;
        }
        match record {
            Record::Confirmation { certificate, sent, .. } => {
                let account = certificate.order.transfer.sender();
                if sent.number >= self.plan.cut.next(&account).0 {
                    self.certificates = self.certificates.saturating_add(1);
                    self.take(account, |sent| Record::Confirmation {
                        certificate: certificate.clone(),
                        sent,
                        effect: Effect::Included,
                    })?;
                }
            }
            Record::Void { account, sent } if sent.number >= self.plan.cut.next(account).0 => {
                let account = *account;
                self.take(account, |sent| Record::Void { account, sent })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, account: AccountId, record: impl FnOnce(Link) -> Record) -> Result<(), JournalError> {
        let writer = self.writer(&account);
        let sent = writer.shard.account(&account).map(|known| known.sent.next_link());
        writer.append(&record(sent.expect("each account of the old journals has its base")))
    }

    /// Lists a payment as received. Returns its number.
    fn list(&mut self, receipt: Receipt, payout: Option<Digest>) -> Result<u64, JournalError> {
        let account = receipt.payment.recipient;
        let writer = self.writer(&account);
        let link = writer.shard.account(&account).map(|known| known.received.next_link());
        let link = link.expect("each account of the old journals has its base");
        writer.base(Base::Received { receipt, payout, link })?;
        Ok(link.number)
    }

    /// Keeps the certificate of an unpaid redemption, once.
    fn keep_unpaid(&mut self, certificate: &Arc<Certificate>) -> Result<(), JournalError> {
        let Transfer::Redemption(redemption) = &certificate.order.transfer else { return Ok(()) };
        let slot = (redemption.sender, redemption.sequence);
        if self.plan.state.unpaid().get(&slot) != Some(redemption) || !self.written.insert(slot) {
            return Ok(());
        }
        let writer = self.writer(&slot.0);
        let link = writer.shard.ledger().redemptions.next_link();
        writer.base(Base::Unpaid { redemption: redemption.clone(), logged: Some((certificate.clone(), link)) })
    }

    /// What was on its way, what this authority has no certificate of, what is known of numbers, and the locks.
    fn end(&mut self) -> Result<(), RebaseError> {
        let (own, plan) = (self.own, self.plan);
        for credit in own.in_transit.iter().filter(|_| plan.is_complete) {
            let payout = match &credit.forwarded {
                Forwarded::Payment(_) => None,
                Forwarded::Outputs(part) => Some(part.digest),
            };
            for receipt in credit.receipts() {
                self.list(receipt, payout)?;
            }
        }
        for (slot, redemption) in plan.state.unpaid() {
            if self.written.insert(*slot) {
                self.writer(&slot.0).base(Base::Unpaid { redemption: redemption.clone(), logged: None })?;
            }
        }
        for ((account, sequence), unlock) in plan.numbers(own, self.target) {
            self.writer(&account).base(Base::Number { account, sequence, unlock })?;
        }
        for account in plan.accounts.keys() {
            let Some(pending) = own.account(account)?.pending else { continue };
            if pending.order.transfer.sequence() == plan.state.cut().next(account) {
                let record = Record::Lock { order: pending.order, digest: pending.digest };
                self.writer(account).append(&record)?;
            }
        }
        Ok(())
    }

    /// Compares what was written with what was computed, and with what the authority held where it lacked nothing.
    fn compare(&self) -> Result<(), RebaseError> {
        let balances = self.balances();
        let in_transit = in_transit(self.own);
        for account in self.plan.accounts.keys() {
            let differs = |what| RebaseError::Differs { account: *account, what };
            let shard = self.writers.get(self.target.layout.shard_of(account).0 as usize).map(|writer| &writer.shard);
            let new = shard.and_then(|shard| shard.account(account)).ok_or(differs("state"))?;
            let computed = balances.get(account).cloned().unwrap_or_default();
            let next = self.plan.state.cut().next(account);
            if new.next_sequence() != next || held(new.balances.iter()) != held(computed.into_iter()) {
                return Err(differs("state"));
            }
            if !self.plan.is_complete {
                continue;
            }
            let old = self.own.account(account)?;
            let arriving = in_transit.get(account).into_iter().flatten().copied();
            // Events that its shard has not applied move value, and take no number.
            let is_moved = !self.own.has_applied(account, self.target.up_to);
            if !is_moved && held(old.balances.iter().chain(arriving)) != held(new.balances.iter()) {
                return Err(differs("balance"));
            }
            if old.next_sequence() != next {
                return Err(differs("next number"));
            }
            if old.pending != new.pending {
                return Err(differs("pending order"));
            }
        }
        for shard in self.own.shards().map(|shard| shard.shard()) {
            for (account, sequence, old) in shard.ledger().unlocks.iter() {
                let is_open = sequence >= self.plan.state.cut().next(&account) && *old != Unlock::default();
                if is_open && self.plan.is_complete && self.own.has_applied(&account, self.target.up_to) {
                    let new = self.writers.get(self.target.layout.shard_of(&account).0 as usize);
                    let new = new.and_then(|writer| writer.shard.ledger().unlocks.get(account, sequence));
                    if new.map(without_epochs) != Some(without_epochs(old)) {
                        return Err(RebaseError::Differs { account, what: "unlocking" });
                    }
                }
            }
        }
        Ok(())
    }
}

/// An earlier release stepped over installations, and did not know of which epoch an event was.
fn without_epochs(unlock: &Unlock) -> Unlock {
    Unlock { spent_in: None, upheld_in: None, ..unlock.clone() }
}

/// The balances that are not zero.
fn held(balances: impl Iterator<Item = (Asset, Balance)>) -> BTreeMap<Asset, Balance> {
    let mut held = BTreeMap::<Asset, Balance>::new();
    for (asset, balance) in balances {
        let sum = held.entry(asset).or_default();
        *sum = sum.plus(balance);
    }
    held.retain(|_, balance| *balance != Balance::ZERO);
    held
}

/// What is on its way to each account.
fn in_transit(own: &Own) -> BTreeMap<AccountId, Vec<(Asset, Balance)>> {
    let mut arriving = BTreeMap::<_, Vec<_>>::new();
    for Receipt { payment, .. } in own.in_transit.iter().flat_map(CrossShardCredit::receipts) {
        let amount = Balance::from(payment.amount);
        arriving.entry(payment.recipient).or_default().push((payment.asset, amount));
    }
    arriving
}

/// The totals of each shard, such that the sums over all shards are what they were: the first shard has received all
/// deposits and paid all redemptions, and has forwarded to the others what they hold.
fn totals(
    balances: &BTreeMap<AccountId, Vec<(Asset, Balance)>>,
    deposited: &BTreeMap<Asset, Balance>,
    target: &Target,
) -> Vec<BTreeMap<Asset, AssetTotals>> {
    let mut totals: Vec<BTreeMap<Asset, AssetTotals>> = target.layout.shards().map(|_| BTreeMap::new()).collect();
    for (account, held) in balances {
        if let Some(totals) = totals.get_mut(target.layout.shard_of(account).0 as usize) {
            for (asset, balance) in held {
                let of_asset: &mut AssetTotals = totals.entry(*asset).or_default();
                of_asset.accounts = of_asset.accounts.plus(*balance);
            }
        }
    }
    if let Some((first, others)) = totals.split_first_mut() {
        for (asset, deposited) in deposited {
            first.entry(*asset).or_default().deposited = *deposited;
        }
        for (asset, of_other) in others.iter_mut().flatten() {
            of_other.credited = of_other.accounts;
            let of_first = first.entry(*asset).or_default();
            of_first.forwarded = of_first.forwarded.plus(of_other.accounts);
        }
        for of_asset in first.values_mut() {
            let AssetTotals { accounts, deposited, forwarded, .. } = *of_asset;
            of_asset.redeemed = deposited.plus(forwarded.negated()).plus(accounts.negated());
        }
    }
    totals
}

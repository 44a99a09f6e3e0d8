//! Writes the journals of a new generation, and replays each record as it is written. Of accounts that are not active, a
//! few are in memory at a time: each is compared once it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastpay_core::checkpoint::AccountRow;
use fastpay_core::handover::Tenure;
use fastpay_core::private::PrivateConfirmation;
use fastpay_core::{
    ASSETS_PER_RECORD_MAX, AccountId, Asset, AssetTotals, Balance, Base, BaseAccount, BaseLedger, Certificate,
    CrossShardCredit, Digest, Effect, Epoch, Forwarded, JournalPosition, Link, PendingOrder, Receipt, Record, Shard,
    ShardId, ShardLedger, Transfer, Unlock,
};

use super::RebaseError;
use super::own::{Own, Slot, Target};
use super::plan::Plan;
use crate::authority::certification::{CheckpointError, Journals, Progress};
use crate::authority::storage::{Journal, JournalError, JournalWrite};

/// So many accounts that are not active are in a shard's memory at most, unless it has more active ones.
const PASSING_ACCOUNTS: usize = 4_096;
/// Progress is told each time so many accounts are written.
const TOLD_ACCOUNTS: u64 = 1_000_000;

/// What was written.
pub(super) struct Written {
    pub accounts: u64,
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

    /// Makes room for another account, while all that are in memory were compared.
    fn make_room(&mut self) {
        if !self.shard.has_room(1) {
            self.forget();
        }
    }

    /// Lets the accounts in memory be evicted: they were compared, and nothing changes them any more.
    fn forget(&mut self) {
        self.shard.begin_checkpoint();
        while self.shard.take_accounts(usize::MAX).is_some() {}
        self.shard.finish_checkpoint();
    }
}

/// The shards of the new generation.
struct Generation<'a> {
    own: &'a Own,
    target: &'a Target,
    plan: &'a Plan<'a>,
    writers: Vec<Writer>,
    /// What was on its way to each account.
    arriving: BTreeMap<AccountId, Vec<(Asset, Balance)>>,
    /// What the authority held in the accounts that were compared.
    compared: BTreeMap<Asset, Balance>,
    /// The unpaid redemptions that are written.
    written: BTreeSet<Slot>,
    accounts: u64,
    certificates: u64,
}

/// Writes the generation durably, and compares it with what the authority held.
pub(super) fn write(
    own: &Own,
    target: &Target,
    plan: &Plan<'_>,
    journals: &Journals,
    new: Vec<Journal>,
    told: Progress<'_>,
) -> Result<Written, RebaseError> {
    let mut counts = BTreeMap::<ShardId, usize>::new();
    for account in plan.part.accounts() {
        let count = counts.entry(target.layout.shard_of(account)).or_default();
        *count = count.saturating_add(1);
    }
    let writers = target.layout.shards().zip(new).map(|(id, journal)| {
        let accounts = counts.get(&id).copied().unwrap_or_default().max(PASSING_ACCOUNTS);
        let shard = Shard::new(id, target.layout, target.with_primary, ShardLedger::default(), accounts);
        Writer { shard, journal, encoded: Vec::new() }
    });
    let (writers, arriving, written) = (writers.collect(), in_transit(own), BTreeSet::new());
    let mut generation = Generation {
        own,
        target,
        plan,
        writers,
        arriving,
        compared: BTreeMap::new(),
        written,
        accounts: 0,
        certificates: 0,
    };
    generation.begin()?;
    generation.write_accounts(told)?;
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
    let Generation { accounts, certificates, .. } = generation;
    Ok(Written { accounts, certificates, ends })
}

impl Generation<'_> {
    fn writer(&mut self, account: &AccountId) -> &mut Writer {
        let shard = self.target.layout.shard_of(account).0 as usize;
        self.writers.get_mut(shard).expect("there is a writer for each shard of the layout")
    }

    /// The ledgers.
    fn begin(&mut self) -> Result<(), JournalError> {
        let installations = self.plan.part.rows().installations();
        let compromised: BTreeMap<Epoch, Epoch> = installations
            .iter()
            .map(|installed| (installed.compromised_since, installed.committee.epoch()))
            .filter(|(since, epoch)| since < epoch)
            .collect();
        let totals = totals(&self.plan.held, &self.plan.deposited, self.target);
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
        Ok(())
    }

    /// The accounts: those that are not active pass through memory, and stay what the checkpoint says; then the others.
    fn write_accounts(&mut self, told: Progress<'_>) -> Result<(), RebaseError> {
        let plan = self.plan;
        for row in plan.base.accounts().map_err(CheckpointError::from)? {
            let row = row.map_err(CheckpointError::from)?;
            if !plan.part.accounts().contains(&row.account) {
                self.write_account(&row)?;
                self.compare_account(&row)?;
                self.writer(&row.account).make_room();
            }
            if self.accounts.is_multiple_of(TOLD_ACCOUNTS) && self.accounts > 0 {
                told(format!("wrote {} accounts", self.accounts));
            }
        }
        self.writers.iter_mut().for_each(Writer::forget);
        for mut row in self.active() {
            row.next = self.plan.cut.next(&row.account);
            self.write_account(&row)?;
        }
        Ok(())
    }

    fn write_account(&mut self, row: &AccountRow) -> Result<(), RebaseError> {
        let (account, checkpoint) = (row.account, self.target.number);
        let counts = self.plan.counts(&account, &self.own.account(&account)?);
        let mut parts = row.balances.chunks(ASSETS_PER_RECORD_MAX).map(|part| part.iter().copied().collect());
        let writer = self.writer(&account);
        writer.base(Base::Account(BaseAccount {
            account,
            checkpoint,
            next: row.next,
            received: counts.received,
            deposits: counts.deposits,
            balances: parts.next().unwrap_or_default(),
        }))?;
        for balances in parts {
            writer.base(Base::Balances { account, balances })?;
        }
        self.accounts = self.accounts.saturating_add(1);
        Ok(())
    }

    /// The active accounts as they are after everything that is executed here.
    fn active(&self) -> Vec<AccountRow> {
        let rows = self.plan.part.rows();
        let mut balances = BTreeMap::<_, Vec<_>>::new();
        for ((account, asset), balance) in rows.balances() {
            balances.entry(*account).or_default().push((*asset, *balance));
        }
        let row = |account: &AccountId| AccountRow {
            account: *account,
            next: rows.cut().next(account),
            balances: balances.remove(account).unwrap_or_default(),
        };
        self.plan.part.accounts().iter().map(row).collect()
    }

    /// What is kept of a record of the old journals.
    fn keep(&mut self, record: &Record) -> Result<(), RebaseError> {
        for (receipt, link) in record.received() {
            let first = self.plan.first_kept(&receipt.payment.recipient);
            if first.is_some_and(|first| link.number >= first) {
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
                if self.is_beyond(&account, sent) {
                    self.certificates = self.certificates.saturating_add(1);
                    self.take(account, |sent| Record::Confirmation {
                        certificate: certificate.clone(),
                        sent,
                        effect: Effect::Included,
                    })?;
                }
            }
            Record::Void { account, sent } if self.is_beyond(account, sent) => {
                let account = *account;
                self.take(account, |sent| Record::Void { account, sent })?;
            }
            Record::PrivateConfirmation(confirmation) => {
                let [(account, _), (coin, _)] = confirmation.certificate.order.transfer.taken();
                let [of_account, _] = &confirmation.sent;
                if self.is_beyond(&account, of_account) {
                    self.certificates = self.certificates.saturating_add(1);
                    let of_coin = self.next_link(&coin);
                    self.take(account, |of_account| {
                        let (sent, effect) = ([of_account, of_coin], Some(Effect::Included));
                        let confirmation = PrivateConfirmation { sent, effect, ..(**confirmation).clone() };
                        Record::PrivateConfirmation(Box::new(confirmation))
                    })?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the checkpoint does not include a number that an account took here. All such accounts are active.
    fn is_beyond(&self, account: &AccountId, sent: &Link) -> bool {
        let is_active = self.plan.part.accounts().contains(account);
        is_active && !self.target.is_anew && sent.number >= self.plan.cut.next(account).0
    }

    fn take(&mut self, account: AccountId, record: impl FnOnce(Link) -> Record) -> Result<(), JournalError> {
        let sent = self.next_link(&account);
        self.writer(&account).append(&record(sent))
    }

    /// Of what an account sent.
    fn next_link(&mut self, account: &AccountId) -> Link {
        let sent = self.writer(account).shard.account(account).map(|known| known.sent.next_link());
        sent.expect("each account of the old journals has its base")
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
        if self.plan.unpaid.get(&slot) != Some(redemption) || !self.written.insert(slot) {
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
        for (slot, redemption) in &plan.unpaid {
            if self.written.insert(*slot) {
                self.writer(&slot.0).base(Base::Unpaid { redemption: redemption.clone(), logged: None })?;
            }
        }
        for ((account, sequence), unlock) in plan.numbers(own, self.target) {
            self.writer(&account).base(Base::Number { account, sequence, unlock })?;
        }
        for account in plan.part.accounts().iter().filter(|_| !self.target.is_anew) {
            let Some(pending) = own.account(account)?.pending else { continue };
            if pending.order.transfer.sequence() == plan.part.rows().cut().next(account) {
                let record = Record::Lock { order: pending.order, digest: pending.digest };
                self.writer(account).append(&record)?;
            }
        }
        self.keep_private()?;
        self.keep_tenure()
    }

    /// The private orders that hold numbers, and the certificates that wait.
    fn keep_private(&mut self) -> Result<(), JournalError> {
        let (own, plan) = (self.own, self.plan);
        for pool in own.shards().map(|shard| &shard.shard().ledger().pool).filter(|_| !self.target.is_anew) {
            let locks =
                pool.locks().filter(|(lock, _)| plan.is_open(lock.transfer())).map(|(lock, is_own)| match is_own {
                    true => Record::PrivateLock(lock.clone()),
                    false => Record::PrivateInherited(lock.clone()),
                });
            let waiting = pool.waiting().filter(|seen| plan.is_open(&seen.certificate.order.transfer));
            for record in locks.chain(waiting.cloned().map(Record::PrivateSeen)) {
                self.writer(&AccountId::PRIVATE_POOL).append(&record)?;
            }
        }
        Ok(())
    }

    /// The locks that were inherited, and the epochs that were closed and joined: a shard of the new generation has
    /// accounts of each of the old ones, so what one of these has closed is closed, and what all have joined is joined.
    /// Like the own ones, inherited locks count for nothing after a recovery.
    fn keep_tenure(&mut self) -> Result<(), RebaseError> {
        let (own, plan) = (self.own, self.plan);
        let tenures = || own.shards().map(|shard| &shard.shard().ledger().tenure);
        for PendingOrder { order, digest } in tenures().flat_map(Tenure::iter).filter(|_| !self.target.is_anew) {
            let (account, sequence) = (order.transfer.sender(), order.transfer.sequence());
            if sequence >= plan.part.rows().cut().next(&account) {
                self.writer(&account).append(&Record::Inherited { order: order.clone(), digest: *digest })?;
            }
        }
        let closed = tenures().filter_map(Tenure::closed).max().map(|epoch| Record::Closed { epoch });
        let joined = tenures().map(Tenure::joined).min().flatten().map(|epoch| Record::Joined { epoch });
        for record in closed.into_iter().chain(joined) {
            self.writers.iter_mut().try_for_each(|writer| writer.append(&record))?;
        }
        Ok(())
    }

    /// Compares the active accounts, the sum over all, by which none is left out, and what is known of numbers.
    fn compare(&mut self) -> Result<(), RebaseError> {
        self.active().iter().try_for_each(|row| self.compare_account(row))?;
        let mut held = BTreeMap::<Asset, Balance>::new();
        for (asset, totals) in self.own.shards().flat_map(|shard| &shard.shard().ledger().totals) {
            let sum = held.entry(*asset).or_default();
            *sum = sum.plus(totals.accounts);
        }
        for (asset, held) in held.into_iter().filter(|_| self.plan.is_complete) {
            let compared = self.compared.get(&asset).copied().unwrap_or_default();
            if compared != held {
                return Err(RebaseError::OtherSum { asset, held, compared });
            }
        }
        let (account, up_to) = (AccountId::PRIVATE_POOL, self.target.up_to);
        if self.plan.is_complete && self.own.has_applied(&account, up_to) {
            let own = self.own;
            if own.pool() != Some(&self.writer(&account).shard.ledger().pool) {
                return Err(RebaseError::Differs { account, what: "private orders" });
            }
        }
        for shard in self.own.shards().map(|shard| shard.shard()) {
            for (account, sequence, old) in shard.ledger().unlocks.iter() {
                let is_open = sequence >= self.plan.part.rows().cut().next(&account) && *old != Unlock::default();
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

    /// Compares an account that was written with what was computed, and with what the authority held where it lacked
    /// nothing.
    fn compare_account(&mut self, AccountRow { account, next, balances }: &AccountRow) -> Result<(), RebaseError> {
        let differs = |what| RebaseError::Differs { account: *account, what };
        let shard = self.writers.get(self.target.layout.shard_of(account).0 as usize).map(|writer| &writer.shard);
        let new = shard.and_then(|shard| shard.account(account)).ok_or(differs("state"))?;
        if new.next_sequence() != *next || held(new.balances.iter()) != held(balances.iter().copied()) {
            return Err(differs("state"));
        }
        if !self.plan.is_complete {
            return Ok(());
        }
        let old = self.own.account(account)?;
        for (asset, balance) in old.balances.iter() {
            let sum = self.compared.entry(asset).or_default();
            *sum = sum.plus(balance);
        }
        let arriving = self.arriving.get(account).into_iter().flatten().copied();
        // Events that its shard has not applied move value, and take no number.
        let is_moved = !self.own.has_applied(account, self.target.up_to);
        if !is_moved && held(old.balances.iter().chain(arriving)) != held(new.balances.iter()) {
            return Err(differs("balance"));
        }
        if old.next_sequence() != *next {
            return Err(differs("next number"));
        }
        if old.pending != new.pending {
            return Err(differs("pending order"));
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
    held: &BTreeMap<(ShardId, Asset), Balance>,
    deposited: &BTreeMap<Asset, Balance>,
    target: &Target,
) -> Vec<BTreeMap<Asset, AssetTotals>> {
    let mut totals: Vec<BTreeMap<Asset, AssetTotals>> = target.layout.shards().map(|_| BTreeMap::new()).collect();
    for ((shard, asset), held) in held {
        if let Some(totals) = totals.get_mut(shard.0 as usize) {
            totals.insert(*asset, AssetTotals { accounts: *held, ..AssetTotals::default() });
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

//! The rules of one shard [FP Fig. 2 and 10], as a pure state machine.
//!
//! A rule reads a verified message and the state, and *decides*; it changes nothing. If the decision is a record, the
//! caller assigns it a journal position, *applies* it, and answers only after the journal has it on disk. Replaying
//! the journal applies the same records again, so the state is a fold over the journal.
//!
//! Invariants: an account is locked on at most one order for each sequence number; a sequence number is executed at
//! most once; a credit between shards and a deposit are applied exactly once; no rule creates or destroys value.
//! Memory may hold only some accounts: a rule that needs another one returns [`Decision::Load`] and is asked again.

mod base;
mod handover;
mod private;
mod unlock;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::Digest;
use crate::account::{Account, PendingOrder};
use crate::accounts::AccountTable;
use crate::amount::{Amount, Asset, Balance, Epoch, SequenceNumber};
use crate::certificate::VerifiedCertificate;
use crate::history::{History, JournalPosition, Link};
use crate::identity::{AccountId, ShardId, ShardLayout};
use crate::ledger::ShardLedger;
use crate::order::VerifiedOrder;
use crate::record::{
    AppliedCredit, CrossShardCredit, Destination, Effect, Forwarded, Record, ShardOutputs, SynchronizationOrder,
};
use crate::rejection::Rejection;
use crate::standing::Standing;
use crate::transfer::{Output, Payment, Payout, Receipt, Transfer};
use crate::unlock::Unlock;

pub use private::PrivateDecision;

/// The decision of a rule about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<R = Rejection> {
    /// Load each of these accounts together, including those that are in memory already, and ask again.
    Load(Vec<AccountId>),
    /// Commit this record, apply it, and answer success.
    Commit(Box<Record>),
    /// Commit this record and apply it, then ask again.
    CommitFirst(Box<Record>),
    /// It was executed before: answer success, and change nothing.
    Already,
    /// Refuse the message for this reason.
    Refuse(R),
}

/// The sequence number from which on an authority remembers every vote that it gave for an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteFloor {
    /// From the first number: its memory is complete.
    Zero,
    /// From this number: votes below it may be lost.
    From(SequenceNumber),
    /// Unknown so far: a part of its memory is lost.
    Unknown,
}

/// How old the newest final block is whose events a shard has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimaryView {
    /// Younger than half of the unlock window, or there is no Primary.
    Recent,
    /// So old that the contract may have voided a number that is executed here.
    TooOld,
}

/// One shard's accounts and rules.
#[derive(Clone, Debug)]
pub struct Shard {
    id: ShardId,
    layout: ShardLayout,
    with_primary: bool,
    accounts: AccountTable,
    ledger: ShardLedger,
}

impl Shard {
    /// A shard with the given ledger and no account in memory, which holds at most `accounts_max` accounts (4 if that
    /// is less).
    #[must_use]
    pub fn new(id: ShardId, layout: ShardLayout, with_primary: bool, ledger: ShardLedger, accounts_max: usize) -> Self {
        Self { id, layout, with_primary, accounts: AccountTable::new(accounts_max), ledger }
    }

    /// This shard's number.
    #[must_use]
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// The state apart from the accounts.
    #[must_use]
    pub fn ledger(&self) -> &ShardLedger {
        &self.ledger
    }

    /// An account in memory.
    #[must_use]
    pub fn account(&self, id: &AccountId) -> Option<&Account> {
        self.accounts.get(id)
    }

    /// The number of accounts in memory.
    #[must_use]
    pub fn accounts_in_memory(&self) -> usize {
        self.accounts.len()
    }

    /// The number of accounts that changed since the newest checkpoint began.
    #[must_use]
    pub fn accounts_changed(&self) -> usize {
        self.accounts.changed()
    }

    /// Whether this many accounts can be loaded together. If too many are newer in memory than in the store, a
    /// checkpoint must be finished first.
    #[must_use]
    pub fn has_room(&self, accounts: usize) -> bool {
        self.accounts.has_room(accounts)
    }

    /// Loads an account with its state in the store (none for a new account). An account that is in memory keeps its
    /// state. It is held there until a record is applied or [`Shard::release`] is called. If memory is full, it evicts
    /// an account that the store has in its present state and that is not held.
    ///
    /// # Panics
    /// If there is no room.
    pub fn load(&mut self, id: AccountId, stored: Option<Account>) {
        self.accounts.load(id, stored.unwrap_or_default());
    }

    /// Releases all accounts, after a decision that is no record.
    pub fn release(&mut self) {
        self.accounts.release();
    }

    /// Drops an account from memory that did not change since it was loaded; its place is the next one
    /// to be taken. Another one stays.
    pub fn unload(&mut self, id: &AccountId) {
        self.accounts.unload(id);
    }

    /// Begins a checkpoint: of all accounts that changed since the one before began, as they are now.
    /// The caller keeps the ledger as it is now, and the journal position.
    ///
    /// # Panics
    /// If one is under way.
    pub fn begin_checkpoint(&mut self) {
        self.accounts.begin_checkpoint();
    }

    /// Takes the next accounts of the checkpoint under way, encoded, as they were when it began: about
    /// `limit`. `None` if all are taken, or no checkpoint is under way.
    pub fn take_accounts(&mut self, limit: usize) -> Option<Vec<(AccountId, Vec<u8>)>> {
        self.accounts.take(limit)
    }

    /// The checkpoint under way is in the store: its accounts may leave memory.
    ///
    /// # Panics
    /// If none is under way, or not all of it was taken.
    pub fn finish_checkpoint(&mut self) {
        self.accounts.finish_checkpoint();
    }

    /// The other shard has durably applied all credits up to `number`.
    pub fn acknowledge(&mut self, to: ShardId, number: u64) {
        self.ledger.acknowledge(to, number);
    }

    /// The shard to which a stranger must turn, if it is not this one.
    ///
    /// # Errors
    /// [`Rejection::WrongShard`].
    pub fn check_owner(&self, account: AccountId) -> Result<(), Rejection> {
        let shard = self.layout.shard_of(&account);
        if shard == self.id { Ok(()) } else { Err(Rejection::WrongShard { account, shard }) }
    }

    /// May the authority vote for this order in this epoch, where it remembers all votes for the account from `floor` on?
    /// Commits to [`Record::Lock`]; `Already` means that it did and gives its vote again.
    #[must_use]
    pub fn lock(&self, order: &VerifiedOrder, epoch: Epoch, floor: VoteFloor, view: PrimaryView) -> Decision {
        let transfer = order.transfer();
        let sender = transfer.sender();
        if let Err(rejection) = self.check_owner(sender) {
            return Decision::Refuse(rejection);
        }
        if let Some(rejection) = self.refuse_closed(epoch) {
            return Decision::Refuse(rejection);
        }
        if !self.with_primary && matches!(transfer, Transfer::Redemption(_)) {
            return Decision::Refuse(Rejection::NoPrimary);
        }
        let Some(account) = self.accounts.get(&sender) else {
            return Decision::Load(vec![sender]);
        };
        if let Some(record) = self.step_over(sender) {
            return Decision::CommitFirst(record);
        }
        let expected = account.next_sequence();
        if let Some(rejection) = self.refuse_vote(order, expected, floor) {
            return Decision::Refuse(rejection);
        }
        if view == PrimaryView::TooOld {
            return Decision::Refuse(Rejection::PrimaryTooOld);
        }
        if let Some(pending) = self.locked_on(account, order, expected) {
            return Decision::Refuse(Rejection::OrderPending { pending });
        }
        if account.pending.is_some() {
            return Decision::Already;
        }
        if transfer.sequence() > expected {
            return Decision::Refuse(Rejection::SequenceTooHigh { expected });
        }
        if transfer.sequence() < expected {
            return Decision::Refuse(self.executed_or_void(sender, transfer.sequence(), expected));
        }
        if matches!(transfer, Transfer::Payment(payment) if payment.is_lost_in_pool()) {
            return Decision::Refuse(Rejection::NoDepositMemo);
        }
        let balance = account.balance(transfer.asset());
        let amount = transfer.amount();
        if !balance.covers(amount) {
            return Decision::Refuse(Rejection::InsufficientBalance { balance, amount });
        }
        match floor {
            VoteFloor::Zero => {}
            VoteFloor::From(number) if transfer.sequence() >= number => {}
            VoteFloor::From(number) => return Decision::Refuse(Rejection::VotesForgotten { floor: Some(number) }),
            VoteFloor::Unknown => return Decision::Refuse(Rejection::VotesForgotten { floor: None }),
        }
        Decision::Commit(Box::new(Record::Lock { order: order.shared(), digest: order.digest() }))
    }

    /// Executes a certificate. Commits to [`Record::Confirmation`]. Never refuses one for lack of
    /// funds, and does not care which order the account is locked on. One that may not be executed now is kept first
    /// ([`Record::Seen`]). `standing` says how far it counts: see [`Shard::standing`].
    #[must_use]
    pub fn confirm(&self, certificate: &VerifiedCertificate, view: PrimaryView, standing: Standing) -> Decision {
        let transfer = certificate.transfer();
        let sender = transfer.sender();
        if let Err(rejection) = self.check_owner(sender) {
            return Decision::Refuse(rejection);
        }
        let Some(account) = self.accounts.get(&sender) else {
            return Decision::Load(vec![sender]);
        };
        if let Some(record) = self.step_over(sender) {
            return Decision::CommitFirst(record);
        }
        let expected = account.next_sequence();
        if transfer.sequence() < expected {
            return match self.ledger.unlocks.is_voided(sender, transfer.sequence()) {
                true => Decision::Refuse(Rejection::Voided { expected }),
                false => Decision::Already,
            };
        }
        let withheld = self.withhold(certificate, view, standing);
        if transfer.sequence() > expected {
            let missing = Decision::Refuse(Rejection::MissingCertificate { missing: expected });
            // A certificate of a later number is kept only if its number is frozen.
            let is_frozen = self.ledger.unlocks.get(sender, transfer.sequence()).is_some_and(Unlock::is_frozen);
            return withheld.filter(|_| is_frozen).unwrap_or(missing);
        }
        if let Some(withheld) = withheld {
            return withheld;
        }
        let effect = match transfer {
            Transfer::Redemption(_) if self.is_spent_otherwise(certificate) => Effect::Kept,
            Transfer::Redemption(_) => Effect::Redeemed { link: self.ledger.redemptions.next_link() },
            Transfer::Payment(payment) => {
                let to = self.layout.shard_of(&payment.recipient);
                if to != self.id {
                    Effect::Forwarded { to, number: self.ledger.next_credit(to) }
                } else if let Some(recipient) = self.accounts.get(&payment.recipient) {
                    Effect::Credited { received: recipient.received.next_link() }
                } else {
                    return Decision::Load(vec![sender, payment.recipient]);
                }
            }
            Transfer::Payout(payout) => {
                let Some(outputs) = self.destinations(payout) else {
                    let recipients = payout.outputs.iter().map(|output| output.recipient);
                    let own = recipients.filter(|recipient| self.layout.shard_of(recipient) == self.id);
                    return Decision::Load(std::iter::once(sender).chain(own).collect());
                };
                Effect::PaidOut { digest: certificate.digest(), outputs }
            }
        };
        Decision::Commit(Box::new(Record::Confirmation {
            certificate: certificate.shared(),
            sent: account.sent.next_link(),
            effect,
        }))
    }

    /// The destination of each output of a payout. None if a recipient of this shard is not in memory.
    fn destinations(&self, payout: &Payout) -> Option<Vec<Destination>> {
        let (mut arrivals, mut credits) = (Arrivals::at(&self.accounts), BTreeMap::new());
        let destination = |output: &Output| {
            let to = self.layout.shard_of(&output.recipient);
            if to == self.id {
                return Some(Destination::Credited { received: arrivals.next_link(&output.recipient)? });
            }
            let number = *credits.entry(to).or_insert_with(|| self.ledger.next_credit(to));
            Some(Destination::Forwarded { to, number })
        };
        payout.outputs.iter().map(destination).collect()
    }

    /// Takes a credit from another shard of the same authority. Commits to [`Record::Credit`].
    #[must_use]
    pub fn credit(&self, credit: &CrossShardCredit) -> Decision {
        for paid in credit.receipts() {
            if let Err(rejection) = self.check_owner(paid.payment.recipient) {
                return Decision::Refuse(rejection);
            }
        }
        let applied = self.ledger.inbox(credit.from);
        if credit.number <= applied {
            return Decision::Already;
        }
        let expected = applied.wrapping_add(1);
        if credit.number > expected {
            return Decision::Refuse(Rejection::CreditGap { expected });
        }
        let mut arrivals = Arrivals::at(&self.accounts);
        let received: Option<_> = credit.receipts().map(|paid| arrivals.next_link(&paid.payment.recipient)).collect();
        let Some(received) = received else {
            return Decision::Load(credit.receipts().map(|paid| paid.payment.recipient).collect());
        };
        Decision::Commit(Box::new(Record::Credit(AppliedCredit { credit: credit.clone(), received })))
    }

    /// Follows the Primary one step. Commits to [`Record::Synchronization`].
    #[must_use]
    pub fn synchronize(&self, order: &SynchronizationOrder) -> Decision {
        let synchronized = self.ledger.synchronized;
        if order.up_to <= synchronized {
            return Decision::Already;
        }
        let fits = order.deposit.as_ref().is_none_or(|deposit| deposit.index == order.up_to);
        if order.after > synchronized || !fits {
            return Decision::Refuse(Rejection::SynchronizationGap { synchronized });
        }
        let deposits = match &order.deposit {
            None => None,
            Some(deposit) => {
                if let Err(rejection) = self.check_owner(deposit.recipient) {
                    return Decision::Refuse(rejection);
                }
                match self.accounts.get(&deposit.recipient) {
                    None => return Decision::Load(vec![deposit.recipient]),
                    Some(account) => Some(account.deposits.next_link()),
                }
            }
        };
        Decision::Commit(Box::new(Record::Synchronization { order: order.clone(), deposits }))
    }

    /// Executes a record that stands in the journal at `position`. This is the only way in which a
    /// shard's state changes, save for [`Shard::acknowledge`].
    ///
    /// # Panics
    /// If an account of the record is not in memory: applying it to a blank account instead would
    /// forget a lock.
    pub fn apply(&mut self, record: &Record, position: JournalPosition) {
        match record {
            Record::Lock { order, digest } => {
                let pending = PendingOrder { order: order.clone(), digest: *digest };
                self.account_mut(&order.transfer.sender()).pending = Some(Box::new(pending));
            }
            Record::Confirmation { certificate, effect, .. } => {
                let transfer = &certificate.order.transfer;
                let sender = self.account_mut(&transfer.sender());
                sender.pending = None;
                sender.sent.push(position);
                self.ledger.tenure.forget(transfer.sender(), transfer.sequence());
                if *effect == Effect::Included {
                    self.accounts.release();
                    return;
                }
                if *effect == Effect::Kept {
                    self.ledger.unlocks.keep_spent(transfer.sender(), transfer.sequence());
                    self.accounts.release();
                    return;
                }
                self.ledger.unlocks.remove(transfer.sender(), transfer.sequence());
                self.debit(&transfer.sender(), transfer.asset(), transfer.amount());
                match (effect, transfer) {
                    (Effect::Forwarded { to, number }, Transfer::Payment(payment)) => {
                        let forwarded = Forwarded::Payment(payment.clone());
                        self.ledger.forward(*to, CrossShardCredit { from: self.id, number: *number, forwarded });
                    }
                    (_, Transfer::Payment(Payment { recipient, asset, amount, .. })) => {
                        self.receive(recipient, *asset, *amount, position);
                        self.count(*asset, Balance::from(*amount));
                    }
                    (_, Transfer::Redemption(redemption)) => {
                        self.ledger.redeem(redemption.asset, redemption.amount, position);
                    }
                    (Effect::PaidOut { digest, outputs }, Transfer::Payout(payout)) => {
                        self.pay_out(payout, *digest, outputs, position);
                    }
                    (_, Transfer::Payout(_)) => unreachable!("a payout is decided to be paid out"),
                }
            }
            Record::Credit(AppliedCredit { credit, .. }) => {
                self.ledger.inboxes.insert(credit.from, credit.number);
                let (asset, mut total) = (credit.asset(), Balance::ZERO);
                for Receipt { payment, .. } in credit.receipts() {
                    total = total.credit(payment.amount);
                    self.receive(&payment.recipient, asset, payment.amount, position);
                }
                let totals = self.ledger.totals_mut(asset);
                totals.credited = totals.credited.plus(total);
                self.count(asset, total);
            }
            Record::Synchronization { order, .. } => {
                self.ledger.synchronized = order.up_to;
                if let Some(deposit) = &order.deposit {
                    self.account_mut(&deposit.recipient).deposits.push(position);
                    let totals = self.ledger.totals_mut(deposit.asset);
                    totals.deposited = totals.deposited.credit(deposit.amount);
                    self.fund(&deposit.recipient, deposit.asset, deposit.amount);
                }
            }
            Record::Unlock(event) => self.apply_unlock(event),
            Record::Installation(installation) => self.apply_installation(installation),
            Record::Seen { certificate } => self.apply_seen(certificate),
            Record::VoidVoted { account, sequence, epoch } => self.apply_void_vote(*account, *sequence, *epoch),
            Record::Void { account, .. } => self.apply_void(*account, position),
            Record::Base(base) => self.apply_base(base, position),
            Record::Closed { epoch } => self.ledger.tenure.close(*epoch),
            Record::Inherited { order, digest } => {
                self.ledger.tenure.inherit(PendingOrder { order: order.clone(), digest: *digest });
            }
            Record::Joined { epoch } => self.ledger.tenure.join(*epoch),
            Record::PrivateLock(lock) => self.ledger.pool.hold(lock, true),
            Record::PrivateConfirmation(confirmation) => self.apply_private_confirmation(confirmation, position),
            Record::PrivateSeen(seen) => self.ledger.pool.keep(seen),
            Record::PrivateInherited(lock) => self.ledger.pool.inherit(lock),
        }
        self.accounts.release();
    }

    /// Credits each output of a payout, or puts it into the credit for its shard.
    fn pay_out(&mut self, payout: &Payout, digest: Digest, destinations: &[Destination], position: JournalPosition) {
        let (mut total, mut parts) = (Balance::ZERO, BTreeMap::<_, Vec<_>>::new());
        for ((output, paid), destination) in payout.outputs.numbered().zip(destinations) {
            match destination {
                Destination::Credited { .. } => {
                    total = total.credit(paid.amount);
                    self.receive(&paid.recipient, payout.asset, paid.amount, position);
                }
                Destination::Forwarded { to, number } => {
                    parts.entry((*to, *number)).or_default().push((output, paid.clone()));
                }
            }
        }
        self.count(payout.asset, total);
        let Payout { sender, asset, sequence, .. } = *payout;
        for ((to, number), outputs) in parts {
            let forwarded = Forwarded::Outputs(Arc::new(ShardOutputs { digest, sender, asset, sequence, outputs }));
            self.ledger.forward(to, CrossShardCredit { from: self.id, number, forwarded });
        }
    }

    fn receive(&mut self, recipient: &AccountId, asset: Asset, amount: Amount, position: JournalPosition) {
        let account = self.account_mut(recipient);
        account.received.push(position);
        account.balances.change(asset, |balance| balance.credit(amount));
    }

    /// Adds what the accounts received to their total.
    fn count(&mut self, asset: Asset, received: Balance) {
        let totals = self.ledger.totals_mut(asset);
        totals.accounts = totals.accounts.plus(received);
    }

    fn fund(&mut self, account: &AccountId, asset: Asset, amount: Amount) {
        self.account_mut(account).balances.change(asset, |balance| balance.credit(amount));
        self.count(asset, Balance::from(amount));
    }

    fn debit(&mut self, account: &AccountId, asset: Asset, amount: Amount) {
        self.account_mut(account).balances.change(asset, |balance| balance.debit(amount));
        let totals = self.ledger.totals_mut(asset);
        totals.accounts = totals.accounts.debit(amount);
    }

    fn account_mut(&mut self, id: &AccountId) -> &mut Account {
        self.accounts.get_mut(id).expect("the accounts of a record are loaded before it is decided or replayed")
    }
}

/// The links of what arrives by one record, also where it arrives several times at one account.
struct Arrivals<'a> {
    accounts: &'a AccountTable,
    /// The histories as they will be.
    histories: HashMap<AccountId, History>,
}

impl<'a> Arrivals<'a> {
    fn at(accounts: &'a AccountTable) -> Self {
        Self { accounts, histories: HashMap::new() }
    }

    /// `None` if the account is not in memory.
    fn next_link(&mut self, recipient: &AccountId) -> Option<Link> {
        let history = match self.histories.entry(*recipient) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.accounts.get(recipient)?.received.clone()),
        };
        let link = history.next_link();
        history.push(JournalPosition::HERE);
        Some(link)
    }
}

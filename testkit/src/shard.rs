//! A shard with a journal: what a node does around core's rules, without threads and disk.

mod private;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use borsh::BorshDeserialize;
use fastpay_core::handover::{Inheritance, JoinError};
use fastpay_core::{
    Account, AccountId, Base, Certificate, CrossShardCredit, Decision, Epoch, Installation, JournalPosition,
    PendingOrder, PrimaryView, Record, Rejection, SequenceNumber, Shard, ShardId, ShardLayout, ShardLedger, Standing,
    SynchronizationOrder, UnlockEvent, VerifiedCertificate, VerifiedOrder, VoteFloor,
};

use crate::MemoryJournal;

/// How a message was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message changed the state.
    Committed,
    /// The shard had already executed the message.
    Already,
}

/// Few accounts, so that they are loaded and evicted all the time.
const ACCOUNTS_IN_MEMORY_MAX: usize = 4;

/// The encoded accounts and the ledger after all records before `position`.
#[derive(Clone, Debug, Default)]
struct Checkpoint {
    accounts: BTreeMap<AccountId, Vec<u8>>,
    ledger: ShardLedger,
    position: JournalPosition,
}

/// A shard, its journal, and its store.
#[derive(Clone, Debug)]
pub struct TestShard {
    shard: Shard,
    layout: ShardLayout,
    with_primary: bool,
    journal: MemoryJournal,
    /// The newest complete checkpoint.
    stored: Checkpoint,
    /// The accounts taken so far for the checkpoint in progress, and the ledger when it began.
    under_way: Option<Checkpoint>,
    /// Every account that a record of the journal changes.
    named: BTreeSet<AccountId>,
}

impl TestShard {
    /// A new shard.
    #[must_use]
    pub fn new(id: ShardId, layout: ShardLayout, with_primary: bool) -> Self {
        Self {
            shard: Shard::new(id, layout, with_primary, ShardLedger::default(), ACCOUNTS_IN_MEMORY_MAX),
            layout,
            with_primary,
            journal: MemoryJournal::default(),
            stored: Checkpoint::default(),
            under_way: None,
            named: BTreeSet::new(),
        }
    }

    /// A shard with a Primary and this journal.
    #[cfg(feature = "rebase")]
    pub(crate) fn recovered(id: ShardId, layout: ShardLayout, journal: MemoryJournal) -> Self {
        let named = journal.records().flat_map(|(_, record)| record.accounts()).collect();
        let mut shard = Self { journal, named, ..Self::new(id, layout, true) };
        shard.restart_from_journal();
        shard
    }

    /// Appends a record of a base. The shard is new.
    pub fn begin(&mut self, base: Base) {
        let record = Record::Base(Box::new(base));
        self.load(record.accounts(), self.journal.end());
        self.append(&record);
    }

    /// Locks an account on an order.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn lock(&mut self, order: &VerifiedOrder) -> Result<Outcome, Rejection> {
        self.lock_from(VoteFloor::Zero, order)
    }

    /// As [`TestShard::lock`], when the authority remembers all its votes for the account from `floor` on.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn lock_from(&mut self, floor: VoteFloor, order: &VerifiedOrder) -> Result<Outcome, Rejection> {
        self.lock_with(floor, PrimaryView::Recent, order)
    }

    /// As [`TestShard::lock`], with this view of the Primary.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn lock_with(
        &mut self,
        floor: VoteFloor,
        view: PrimaryView,
        order: &VerifiedOrder,
    ) -> Result<Outcome, Rejection> {
        let epoch = self.shard.ledger().unlocks.epoch();
        self.run(|shard| shard.lock(order, epoch, floor, view))
    }

    /// As [`TestShard::lock`], for a vote under this epoch, whatever the shard has followed.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn lock_under(&mut self, epoch: Epoch, order: &VerifiedOrder) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.lock(order, epoch, VoteFloor::Zero, PrimaryView::Recent))
    }

    /// Ends an epoch.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn close(&mut self, epoch: Epoch) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.close(epoch))
    }

    /// Joins an epoch.
    ///
    /// # Errors
    /// What is missing.
    pub fn join(&mut self, inheritance: &Inheritance, view: PrimaryView) -> Result<Outcome, JoinError> {
        let mut joining = inheritance.begin();
        let joined = self.try_run(|shard| shard.join(&mut joining, view));
        self.shard.release();
        joined.map(|outcome| outcome.expect("a join is not refused by a rule about messages"))
    }

    /// Executes a certificate.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn confirm(&mut self, certificate: &VerifiedCertificate) -> Result<Outcome, Rejection> {
        self.confirm_with(PrimaryView::Recent, certificate)
    }

    /// As [`TestShard::confirm`], with this view of the Primary.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn confirm_with(&mut self, view: PrimaryView, certificate: &VerifiedCertificate) -> Result<Outcome, Rejection> {
        self.confirm_standing(view, Standing::Counts, certificate)
    }

    /// As [`TestShard::confirm_with`], where the certificate counts so far.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn confirm_standing(
        &mut self,
        view: PrimaryView,
        standing: Standing,
        certificate: &VerifiedCertificate,
    ) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.confirm(certificate, view, standing))
    }

    /// Locks an account on an order, with an old view of the Primary.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn lock_late(&mut self, order: &VerifiedOrder) -> Result<Outcome, Rejection> {
        self.lock_with(VoteFloor::Zero, PrimaryView::TooOld, order)
    }

    /// Executes a certificate, with an old view of the Primary.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn confirm_late(&mut self, certificate: &VerifiedCertificate) -> Result<Outcome, Rejection> {
        self.confirm_with(PrimaryView::TooOld, certificate)
    }

    /// Follows the Primary to an event about one number.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn follow_unlock(&mut self, event: &UnlockEvent) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.follow_unlock(event))
    }

    /// Follows the Primary to the installation of a committee.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn follow_installation(&mut self, installation: &Installation) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.follow_installation(installation))
    }

    /// After an event about a number of the account, passes over the numbers that the contract has voided and executes
    /// the upheld certificates that the shard keeps. `verify` verifies again what was verified before it was kept.
    pub fn advance(
        &mut self,
        account: AccountId,
        view: PrimaryView,
        verify: impl Fn(Certificate) -> VerifiedCertificate,
    ) {
        loop {
            if let Some(record) = self.shard.step_over(account) {
                self.append(&record);
                continue;
            }
            let Some(certificate) = self.shard.executable(account) else { return };
            if self.confirm_with(view, &verify(Certificate::clone(&certificate))).is_err() {
                return;
            }
        }
    }

    /// Requests a vote to void a number.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn void_vote(
        &mut self,
        number: (AccountId, SequenceNumber),
        unanimous: bool,
        epoch: Epoch,
        floor: VoteFloor,
        chain_time: u64,
    ) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.void_vote(number, unanimous, epoch, floor, chain_time))
    }

    /// Accepts a credit from another shard.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn credit(&mut self, credit: &CrossShardCredit) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.credit(credit))
    }

    /// Follows the Primary one step.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn synchronize(&mut self, order: &SynchronizationOrder) -> Result<Outcome, Rejection> {
        self.run(|shard| shard.synchronize(order))
    }

    /// The position at which the journal ends.
    #[must_use]
    pub fn journal_end(&self) -> JournalPosition {
        self.journal.end()
    }

    /// Notes that the other shard has applied all credits up to `number`.
    pub fn acknowledge(&mut self, to: ShardId, number: u64) {
        self.shard.acknowledge(to, number);
    }

    /// Executes the decision of `decide`, after loading the accounts that it needs.
    fn run<R>(&mut self, decide: impl Fn(&Shard) -> Decision<R>) -> Result<Outcome, R> {
        self.try_run(|shard| Ok::<_, Infallible>(decide(shard))).unwrap_or_else(|never| match never {})
    }

    fn try_run<R, E>(
        &mut self,
        mut decide: impl FnMut(&Shard) -> Result<Decision<R>, E>,
    ) -> Result<Result<Outcome, R>, E> {
        loop {
            match decide(&self.shard)? {
                Decision::Load(accounts) => {
                    let missing = accounts.iter().any(|account| self.shard.account(account).is_none());
                    assert!(missing || accounts.is_empty(), "asked to load what is in memory");
                    self.shard.release();
                    self.load(accounts, self.journal.end());
                }
                Decision::Commit(record) => {
                    self.append(&record);
                    return Ok(Ok(Outcome::Committed));
                }
                Decision::CommitFirst(record) => self.append(&record),
                Decision::Already => {
                    self.shard.release();
                    return Ok(Ok(Outcome::Already));
                }
                Decision::Refuse(rejection) => {
                    self.shard.release();
                    return Ok(Err(rejection));
                }
            }
        }
    }

    fn append(&mut self, record: &Record) {
        let position = self.journal.append(record);
        self.named.extend(record.accounts());
        self.shard.apply(record, position);
    }

    /// Loads the accounts of a record into memory. If there is no room, takes a checkpoint of all records before `end`
    /// first.
    fn load(&mut self, accounts: Vec<AccountId>, end: JournalPosition) {
        while !self.shard.has_room(accounts.len()) {
            self.checkpoint(end);
        }
        for account in accounts {
            self.shard.load(account, self.stored_account(&account));
        }
    }

    fn stored_account(&self, id: &AccountId) -> Option<Account> {
        let bytes = self.stored.accounts.get(id)?;
        Some(Account::try_from_slice(bytes).expect("what was encoded can be decoded"))
    }

    /// Evicts all accounts from memory.
    pub fn evict(&mut self) {
        self.checkpoint(self.journal.end());
        self.named.iter().for_each(|account| self.shard.unload(account));
    }

    /// Completes the checkpoint in progress, and then takes another complete one.
    fn checkpoint(&mut self, end: JournalPosition) {
        while self.advance_checkpoint(usize::MAX, end) {}
        while self.advance_checkpoint(usize::MAX, end) {}
    }

    /// Takes the next step of a checkpoint: begins it, takes up to `limit` accounts, or stores it.
    pub fn take_part_of_checkpoint(&mut self, limit: usize) {
        self.advance_checkpoint(limit, self.journal.end());
    }

    /// Takes the next step of a checkpoint, and returns whether the checkpoint is still in progress.
    fn advance_checkpoint(&mut self, limit: usize, end: JournalPosition) -> bool {
        let Some(mut checkpoint) = self.under_way.take() else {
            self.shard.begin_checkpoint();
            let ledger = self.ledger().clone();
            self.under_way = Some(Checkpoint { accounts: BTreeMap::new(), ledger, position: end });
            return true;
        };
        if let Some(taken) = self.shard.take_accounts(limit) {
            checkpoint.accounts.extend(taken);
            self.under_way = Some(checkpoint);
            return true;
        }
        let mut accounts = std::mem::take(&mut self.stored.accounts);
        accounts.append(&mut checkpoint.accounts);
        self.stored = Checkpoint { accounts, ..checkpoint };
        self.shard.finish_checkpoint();
        false
    }

    /// Restarts the shard from its journal and its last complete checkpoint alone.
    pub fn restart(&mut self) {
        self.restart_from(self.stored.clone());
    }

    /// Restarts the shard from its journal alone.
    pub fn restart_from_journal(&mut self) {
        self.restart_from(Checkpoint::default());
    }

    fn restart_from(&mut self, checkpoint: Checkpoint) {
        // Encode and decode the ledger as a disk would.
        let ledger = borsh::to_vec(&checkpoint.ledger).expect("writing to memory does not fail");
        let ledger = ShardLedger::try_from_slice(&ledger).expect("what was encoded can be decoded");
        let id = self.shard.id();
        let start = checkpoint.position;
        self.shard = Shard::new(id, self.layout, self.with_primary, ledger, ACCOUNTS_IN_MEMORY_MAX);
        (self.stored, self.under_way) = (checkpoint, None);
        let tail: Vec<_> = self.journal.records_from(start).collect();
        for (position, record) in tail {
            self.load(record.accounts(), position);
            self.shard.apply(&record, position);
        }
    }

    /// All accounts that any record changed, in memory or not.
    #[must_use]
    pub fn accounts(&self) -> BTreeMap<AccountId, Account> {
        self.named.iter().map(|account| (*account, self.account(account))).collect()
    }

    /// An account, whether or not it is in memory; a new one if the shard does not know it.
    #[must_use]
    pub fn account(&self, id: &AccountId) -> Account {
        self.shard.account(id).cloned().or_else(|| self.stored_account(id)).unwrap_or_default()
    }

    /// The orders of an account's next and later numbers of which this authority votes for no other.
    #[must_use]
    pub fn locks(&self, id: &AccountId) -> Vec<PendingOrder> {
        self.shard.locks(*id, &self.account(id))
    }

    /// The shard's state apart from its accounts.
    #[must_use]
    pub fn ledger(&self) -> &ShardLedger {
        self.shard.ledger()
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> &MemoryJournal {
        &self.journal
    }

    /// The shard's rules and state.
    #[must_use]
    pub fn rules(&self) -> &Shard {
        &self.shard
    }

    /// The newest record, if there is one.
    #[must_use]
    pub fn newest_record(&self) -> Option<Record> {
        self.journal.records().last().map(|(_, record)| record)
    }
}

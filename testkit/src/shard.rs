//! A shard with a journal: what a node does around the rules, without threads and disk.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::{
    Account, AccountId, CrossShardCredit, Decision, JournalPosition, Record, Rejection, Shard, ShardId, ShardLayout,
    ShardLedger, SynchronizationOrder, VerifiedCertificate, VerifiedOrder,
};

use crate::MemoryJournal;

/// How a message was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It changed the state.
    Committed,
    /// It had been done before.
    Already,
}

/// Accounts and ledger as they were after the records before `position`.
#[derive(Clone, Debug, Default)]
struct Checkpoint {
    accounts: BTreeMap<AccountId, Account>,
    ledger: ShardLedger,
    position: JournalPosition,
}

/// A shard, its journal, and the accounts that it does not keep in memory.
#[derive(Clone, Debug)]
pub struct TestShard {
    shard: Shard,
    layout: ShardLayout,
    with_primary: bool,
    journal: MemoryJournal,
    checkpoint: Checkpoint,
    /// Accounts out of memory, as they are now.
    evicted: BTreeMap<AccountId, Account>,
    /// Every account that a record of the journal changes.
    named: BTreeSet<AccountId>,
}

impl TestShard {
    /// A new shard.
    #[must_use]
    pub fn new(id: ShardId, layout: ShardLayout, with_primary: bool) -> Self {
        Self {
            shard: Shard::new(id, layout, with_primary, ShardLedger::default()),
            layout,
            with_primary,
            journal: MemoryJournal::default(),
            checkpoint: Checkpoint::default(),
            evicted: BTreeMap::new(),
            named: BTreeSet::new(),
        }
    }

    /// Asks to lock an account on an order.
    ///
    /// # Errors
    /// As the rules say.
    pub fn lock(&mut self, order: &VerifiedOrder) -> Result<Outcome, Rejection> {
        self.drive(|shard| shard.lock(order))
    }

    /// Executes a certificate.
    ///
    /// # Errors
    /// As the rules say.
    pub fn confirm(&mut self, certificate: &VerifiedCertificate) -> Result<Outcome, Rejection> {
        self.drive(|shard| shard.confirm(certificate))
    }

    /// Takes a credit from another shard.
    ///
    /// # Errors
    /// As the rules say.
    pub fn credit(&mut self, credit: &CrossShardCredit) -> Result<Outcome, Rejection> {
        self.drive(|shard| shard.credit(credit))
    }

    /// Follows the Primary one step.
    ///
    /// # Errors
    /// As the rules say.
    pub fn synchronize(&mut self, order: &SynchronizationOrder) -> Result<Outcome, Rejection> {
        self.drive(|shard| shard.synchronize(order))
    }

    /// The other shard has applied all credits up to `number`.
    pub fn acknowledge(&mut self, to: ShardId, number: u64) {
        self.shard.acknowledge(to, number);
    }

    /// Takes a decision, loading the accounts that it asks for, and executes it.
    fn drive(&mut self, decide: impl Fn(&Shard) -> Decision) -> Result<Outcome, Rejection> {
        loop {
            match decide(&self.shard) {
                Decision::Load(account) => {
                    assert!(self.shard.account(&account).is_none(), "asked to load what is in memory");
                    self.shard.load(account, self.evicted.remove(&account));
                }
                Decision::Commit(record) => {
                    let position = self.journal.append(&record);
                    self.named.extend(record.accounts());
                    self.shard.apply(&record, position);
                    return Ok(Outcome::Committed);
                }
                Decision::Already => return Ok(Outcome::Already),
                Decision::Refuse(rejection) => return Err(rejection),
            }
        }
    }

    /// Takes all accounts out of memory.
    pub fn evict(&mut self) {
        self.evicted = self.accounts();
        self.shard.evict(|_| false);
    }

    /// Notes accounts and ledger as they are now; a restart will begin from there.
    pub fn checkpoint(&mut self) {
        self.checkpoint =
            Checkpoint { accounts: self.accounts(), ledger: self.ledger().clone(), position: self.journal.end() };
    }

    /// Forgets everything but the journal and the last checkpoint, and starts from them.
    pub fn restart(&mut self) {
        self.restart_from(self.checkpoint.clone());
    }

    /// Forgets everything but the journal, and starts from it alone.
    pub fn restart_from_journal(&mut self) {
        self.restart_from(Checkpoint::default());
    }

    fn restart_from(&mut self, checkpoint: Checkpoint) {
        let mut shard = Shard::new(self.shard.id(), self.layout, self.with_primary, checkpoint.ledger);
        let mut stored = checkpoint.accounts;
        for (position, record) in self.journal.records_from(checkpoint.position) {
            for account in record.accounts() {
                let state = stored.remove(&account);
                shard.load(account, state);
            }
            shard.apply(&record, position);
        }
        self.shard = shard;
        self.evicted = stored;
    }

    /// All accounts that any record changed, in memory or not.
    #[must_use]
    pub fn accounts(&self) -> BTreeMap<AccountId, Account> {
        self.named.iter().map(|account| (*account, self.account(account))).collect()
    }

    /// An account, which need not be in memory. A new one where nothing is known of it.
    #[must_use]
    pub fn account(&self, id: &AccountId) -> Account {
        self.shard.account(id).or_else(|| self.evicted.get(id)).cloned().unwrap_or_default()
    }

    /// All but the accounts.
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

    /// The newest record, where there is one.
    #[must_use]
    pub fn newest_record(&self) -> Option<Record> {
        self.journal.records().last().map(|(_, record)| record)
    }
}

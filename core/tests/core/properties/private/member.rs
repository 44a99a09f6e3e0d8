//! An honest member: a shard with everything, and how far it has read the contract's events.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastpay_core::handover::ReportedEntry;
use fastpay_core::private::{
    PrivateCertificate, PrivateRejection, VerifiedPrivateCertificate, VerifiedPrivateOrder, Versions,
};
use fastpay_core::{
    AccountId, Amount, Asset, AuthorityKeys, Balance, Deposit, Digest, Epoch, Installation, JournalPosition,
    PrimaryView, SequenceNumber, Standing, SynchronizationOrder, TransactionIndex, UnlockEvent, UnlockEventKind,
    VoteFloor,
};
use fastpay_testkit::{Outcome, TestAuthority, TestCommittee, TestShard, authority_keys};

/// The contract's unlock window. On a view half as old, nothing is executed.
pub const WINDOW: u64 = 1_000;

pub type Number = (AccountId, SequenceNumber);

#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Straight to the pool.
    Deposit(u128),
    Requested(Number),
    Upheld(Number, Digest),
    Voided(Number),
    Installed(Epoch),
}

/// See the module header.
#[derive(Clone)]
pub struct Member {
    pub keys: AuthorityKeys,
    /// It has one shard.
    pub authority: TestAuthority,
    /// When it last read all events.
    pub viewed: u64,
    /// What of its journal the world has looked at.
    pub noted: JournalPosition,
    /// What it executed; a rebase prunes its journal.
    pub executed: BTreeMap<Number, (Arc<PrivateCertificate>, Digest)>,
    /// The number of the checkpoint at which its journal begins.
    pub base: usize,
}

impl Member {
    pub fn new(key: u64) -> Self {
        let authority = TestAuthority::new(&TestCommittee::new(4), 0, 1);
        let (noted, executed) = (authority.shards[0].journal_end(), BTreeMap::new());
        Self { keys: authority_keys(key), noted, authority, viewed: 0, executed, base: 0 }
    }

    pub fn shard(&self) -> &TestShard {
        &self.authority.shards[0]
    }

    pub fn shard_mut(&mut self) -> &mut TestShard {
        &mut self.authority.shards[0]
    }

    pub fn view(&self, now: u64) -> PrimaryView {
        if now - self.viewed < WINDOW / 2 { PrimaryView::Recent } else { PrimaryView::TooOld }
    }

    /// Reads all events. `verify` verifies again what was verified before it was kept.
    pub fn follow(
        &mut self,
        events: &[Event],
        now: u64,
        verify: impl Fn(PrivateCertificate) -> VerifiedPrivateCertificate,
    ) {
        self.viewed = now;
        let from = self.shard().ledger().synchronized.0 as usize;
        for (at, event) in events.iter().enumerate().skip(from) {
            let (after, index) = (TransactionIndex(at as u64), TransactionIndex(at as u64 + 1));
            let unlock = |(account, sequence), kind| UnlockEvent { after, index, account, sequence, kind };
            let unlock = match *event {
                Event::Deposit(amount) => {
                    let (recipient, asset, amount) = (AccountId::PRIVATE_POOL, Asset::ETHER, Amount(amount));
                    let deposit = Some(Deposit { index, recipient, asset, amount });
                    self.shard_mut().synchronize(&SynchronizationOrder { after, up_to: index, deposit }).unwrap();
                    continue;
                }
                Event::Installed(epoch) => {
                    let voidable_at = now + WINDOW;
                    let installation = Installation { after, index, epoch, compromised_since: epoch, voidable_at };
                    self.shard_mut().follow_installation(&installation).unwrap();
                    continue;
                }
                Event::Requested(number) => unlock(number, UnlockEventKind::Requested(now + WINDOW)),
                Event::Upheld(number, digest) => unlock(number, UnlockEventKind::Upheld(digest)),
                Event::Voided(number) => {
                    let event = unlock(number, UnlockEventKind::Voided);
                    assert!(!self.shard().rules().contradicts(&event), "{number:?} is executed and void");
                    event
                }
            };
            self.shard_mut().follow_unlock(&unlock).unwrap();
            self.shard_mut().advance_private(unlock.account, PrimaryView::Recent, &verify);
        }
    }

    pub fn lock(&mut self, order: &VerifiedPrivateOrder, epoch: Epoch, now: u64) -> Result<Outcome, PrivateRejection> {
        let (view, versions) = (self.view(now), versions(epoch));
        self.shard_mut().lock_private(order, (epoch, view), VoteFloor::Zero, &versions)
    }

    pub fn confirm(&mut self, certificate: &VerifiedPrivateCertificate, now: u64) -> Result<Outcome, PrivateRejection> {
        let view = self.view(now);
        self.shard_mut().confirm_private(certificate, view, Standing::Counts)
    }

    /// Crashes, and starts with what is on disk.
    pub fn restart(&mut self) {
        let before = (self.shard().accounts(), self.shard().ledger().clone());
        self.shard_mut().restart_from_journal();
        assert!((self.shard().accounts(), self.shard().ledger().clone()) == before, "a restart changes the state");
    }

    pub fn held(&self) -> Balance {
        self.shard().account(&AccountId::PRIVATE_POOL).balance(Asset::ETHER)
    }

    /// The order of a number that it executed, or whose certificate it keeps.
    pub fn attests(&self, number: Number) -> Option<Digest> {
        let executed = self.executed.get(&number).map(|(_, digest)| *digest);
        executed.or_else(|| self.shard().rules().attests_private(number.0, number.1))
    }

    /// What its Closing says.
    pub fn report(&self) -> Vec<ReportedEntry> {
        let spent = |(certificate, digest): &(Arc<PrivateCertificate>, Digest)| {
            ReportedEntry::spent(certificate.clone(), *digest)
        };
        let mut entries: Vec<_> = self.executed.values().map(spent).collect();
        for (account, sequence, unlock) in self.shard().ledger().unlocks.iter() {
            let next = self.shard().account(&account).next_sequence();
            if unlock.is_voided() && sequence.next() == Some(next) {
                entries.push(ReportedEntry::account(account, next, None));
            }
        }
        let pool = &self.shard().ledger().pool;
        entries.extend(pool.locks().map(|(lock, _)| ReportedEntry::private_lock(lock)));
        entries.extend(pool.waiting().map(ReportedEntry::private_seen));
        sorted(entries)
    }
}

pub fn sorted(mut entries: Vec<ReportedEntry>) -> Vec<ReportedEntry> {
    entries.sort_by_key(|reported| *reported.entry());
    entries.dedup_by_key(|reported| *reported.entry());
    entries
}

/// Each epoch has coin keys of its own, and no vote is given under older ones.
pub fn versions(epoch: Epoch) -> Versions {
    Versions { committee: epoch.0, oldest_rules: 5, newest_rules: 7 }
}

//! Decides whether there is room for new locks: on the disk, and in the budgets of accounts and addresses.
//!
//! A payment begins with a lock. If there is no room, no lock is given, but everything that ends a payment continues:
//! confirmations, credits, deposits, and the vote for an order on which the account is already locked. Payments
//! therefore fill a disk only up to the reserve, and those under way can use the reserve.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use fastpay_core::{AccountId, JournalPosition};
use fastpay_rpc::Refusal;
use tokio::time::Instant;

use super::budget::{AddressBudgets, Budgets};
use super::client_reputation::{Address, ClientReputation};
use super::settings::ShardLimits;
use crate::authority::metrics::ShardMetrics;
use crate::authority::storage::{Journal, JournalWrite};

/// How often the free space is read. In between, the journal's growth is subtracted.
const READING_INTERVAL: Duration = Duration::from_secs(1);
/// The wait that a full disk asks for: an operator has to make room, so asking often is useless.
const DISK_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The room for new locks: see the module's description.
pub(super) struct Room {
    reserve: u64,
    accounts: Budgets<AccountId>,
    addresses: AddressBudgets,
    disk: Option<DiskReading>,
    /// The start of this batch.
    now: Instant,
    /// How long the client address whose requests are served must wait for more room.
    address_wait: Option<Duration>,
    metrics: Arc<ShardMetrics>,
}

/// The free space at the last check.
#[derive(Clone, Copy)]
struct DiskReading {
    at: Instant,
    journal_end: JournalPosition,
    /// `None` if the disk does not report it.
    free: Option<u64>,
}

impl Room {
    pub fn new(limits: &ShardLimits, addresses: AddressBudgets, metrics: Arc<ShardMetrics>) -> Self {
        metrics.observe_reserve(limits.disk_reserve_bytes);
        let accounts = Budgets::new(limits.account_journal_bytes_per_day);
        let (reserve, now) = (limits.disk_reserve_bytes, Instant::now());
        Self { reserve, accounts, addresses, disk: None, now, address_wait: None, metrics }
    }

    /// Begins a batch. Reads the free space of the disk if that is due.
    pub fn refresh(&mut self, journal: &Journal) {
        self.now = Instant::now();
        if self.disk.is_some_and(|reading| self.now.saturating_duration_since(reading.at) < READING_INTERVAL) {
            return;
        }
        let was_low = self.is_low(journal);
        let free = journal.disk_free();
        match &free {
            Ok(free) => self.metrics.observe_disk(*free),
            Err(error) => {
                tracing::warn!(%error, "the free space of the disk cannot be read; orders are voted for all the same");
            }
        }
        self.disk = Some(DiskReading { at: self.now, journal_end: journal.end(), free: free.ok() });
        if self.is_low(journal) && !was_low {
            tracing::error!(
                reserve = self.reserve,
                "the disk is nearly full: no new order is voted for until there is room; certificates are confirmed"
            );
        }
    }

    /// Begins the requests of a client.
    pub fn turn_to(&mut self, peer: &ClientReputation) {
        self.address_wait = peer.address().and_then(|address| self.addresses().wait(&address, self.now));
    }

    /// Why this client's order on this account gets no new lock; `None` if there is room.
    pub fn refusal(&self, account: &AccountId, journal: &Journal) -> Option<Refusal> {
        if self.is_low(journal) {
            return Some(Refusal::DiskLow(DISK_RETRY_AFTER));
        }
        let of_account = self.accounts.wait(account, self.now).map(Refusal::AccountBudget);
        of_account.or_else(|| self.address_wait.map(Refusal::AddressBudget))
    }

    fn is_low(&self, journal: &Journal) -> bool {
        let Some(DiskReading { free: Some(free), journal_end, .. }) = self.disk else { return false };
        let grown = journal.end().0.saturating_sub(journal_end.0);
        free.saturating_sub(grown) < self.reserve
    }

    /// Records the bytes written for an account.
    pub fn spend(&mut self, account: AccountId, bytes: u64) {
        self.accounts.spend(account, bytes, self.now);
    }

    /// Records the bytes written for a client.
    pub fn spend_at(&mut self, peer: &ClientReputation, bytes: u64) {
        if let Some(address) = peer.address() {
            self.addresses().spend(address, bytes, self.now);
        }
    }

    fn addresses(&self) -> MutexGuard<'_, Budgets<Address>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Subscriptions to changes of an account.
//!
//! For each record, a shard checks once whether any subscription exists. If so, it marks those of the record's
//! accounts, and wakes their subscribers once the record is on disk. A client that first subscribes and then reads
//! misses nothing: the answer to the read comes after all changes before the subscription.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastpay_core::{AccountId, Record};
use tokio::sync::watch;

/// Wakes all subscribers of one account.
pub(super) type Alarm = Arc<watch::Sender<()>>;

/// The subscribed accounts of one shard.
#[derive(Default)]
pub(super) struct Subscriptions {
    /// The number of subscriptions. While it is zero, a record costs one read of it.
    count: AtomicUsize,
    by_account: Mutex<HashMap<AccountId, Alarm>>,
}

impl Subscriptions {
    pub(super) fn subscribe(self: &Arc<Self>, account: AccountId) -> Subscription {
        self.count.fetch_add(1, Ordering::Relaxed);
        let changed = self.by_account().entry(account).or_default().subscribe();
        Subscription { subscriptions: self.clone(), account, changed: Some(changed) }
    }

    /// Collects the subscribers of the accounts that a record changes. They are not woken for locks.
    pub(super) fn of(&self, record: &Record, alarms: &mut Vec<Alarm>) {
        if self.count.load(Ordering::Relaxed) == 0 || matches!(record, Record::Lock { .. }) {
            return;
        }
        let by_account = self.by_account();
        alarms.extend(record.accounts().into_iter().filter_map(|account| by_account.get(&account).cloned()));
    }

    fn by_account(&self) -> MutexGuard<'_, HashMap<AccountId, Alarm>> {
        self.by_account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for changes of one account, as long as it lives.
pub struct Subscription {
    subscriptions: Arc<Subscriptions>,
    account: AccountId,
    /// `None` only while it is dropped.
    changed: Option<watch::Receiver<()>>,
}

impl Subscription {
    /// Waits until the account has changed since the last wait. Many changes count as one.
    pub async fn changed(&mut self) {
        if let Some(changed) = &mut self.changed {
            // The sender lives as long as there is a receiver.
            let _ = changed.changed().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut by_account = self.subscriptions.by_account();
        self.changed = None;
        if by_account.get(&self.account).is_some_and(|alarm| alarm.receiver_count() == 0) {
            by_account.remove(&self.account);
        }
        self.subscriptions.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{Amount, Asset, Deposit, Link, SynchronizationOrder, TransactionIndex};

    fn deposit(recipient: AccountId) -> Record {
        let index = TransactionIndex(1);
        let deposit = Deposit { index, recipient, asset: Asset::ETHER, amount: Amount(1) };
        let order = SynchronizationOrder { after: TransactionIndex(0), up_to: index, deposit: Some(deposit) };
        Record::Synchronization { order, deposits: Some(Link { number: 0, previous: None, skip: None }) }
    }

    #[test]
    fn those_who_wait_for_the_account_are_woken_and_nothing_is_left_of_those_who_left() {
        let (one, other) = (AccountId([1; 32]), AccountId([2; 32]));
        let subscriptions = Arc::new(Subscriptions::default());
        let woken_by = |account| {
            let mut alarms = Vec::new();
            subscriptions.of(&deposit(account), &mut alarms);
            alarms.iter().for_each(|alarm| alarm.send_replace(()));
            alarms.len()
        };
        assert_eq!(woken_by(one), 0);
        let [first, second] = [subscriptions.subscribe(one), subscriptions.subscribe(one)];
        let third = subscriptions.subscribe(other);
        assert_eq!((woken_by(one), woken_by(AccountId([3; 32]))), (1, 0));
        let has_changed = |subscription: &Subscription| subscription.changed.as_ref().unwrap().has_changed().unwrap();
        assert!(has_changed(&first) && has_changed(&second) && !has_changed(&third));
        drop(first);
        assert_eq!(woken_by(one), 1);
        drop((second, third));
        assert!(subscriptions.by_account().is_empty() && subscriptions.count.load(Ordering::Relaxed) == 0);
    }
}

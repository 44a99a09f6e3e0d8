//! Claims accounts, so that the tasks of several peers do not fetch the same certificates.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastpay_core::AccountId;
use tokio::time::Instant;

/// A claim ends by itself after this time, because its peer may stall.
const CLAIM_LIFETIME: Duration = Duration::from_secs(1);

/// The claims of all tasks.
#[derive(Default)]
pub(super) struct Claims(Mutex<HashMap<AccountId, Instant>>);

impl Claims {
    fn claimed(&self) -> MutexGuard<'_, HashMap<AccountId, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims an account. Returns false if another task has claimed it.
    pub(super) fn take(&self, account: AccountId) -> bool {
        let now = Instant::now();
        let mut claimed = self.claimed();
        let is_free = claimed.get(&account).is_none_or(|since| now.duration_since(*since) >= CLAIM_LIFETIME);
        if is_free {
            claimed.insert(account, now);
        }
        is_free
    }

    /// Releases claims.
    pub(super) fn release<'a>(&self, accounts: impl Iterator<Item = &'a AccountId>) {
        let mut claimed = self.claimed();
        for account in accounts {
            claimed.remove(account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_task_has_an_account_until_it_is_done_or_stalls() {
        let (claims, account) = (Claims::default(), AccountId([1; 32]));
        assert!(claims.take(account));
        assert!(!claims.take(account), "another task has it");
        assert!(claims.take(AccountId([2; 32])));
        claims.release([account].iter());
        assert!(claims.take(account));
        tokio::time::advance(CLAIM_LIFETIME).await;
        assert!(claims.take(account), "the task that has it stalls");
    }
}

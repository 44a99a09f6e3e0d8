//! Waits for others: for authorities to credit a deposit, and for a relayer to redeem a certificate.

use std::collections::BTreeMap;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{AccountId, Amount, Asset, Deposit, SequenceNumber, TransactionIndex};
use fastpay_rpc::PAGE_ENTRIES_MAX;
use tokio::time::{Instant, sleep};

use crate::any_primary::AnyPrimary;
use crate::error::WalletError;
use crate::folder::{CreditedDeposit, Errand};
use crate::wallet::{LOCK_PATIENCE, READ_PATIENCE, Wallet};

/// The maximum number of pages of newer deposits by others that are searched.
const PAGES_MAX: usize = 20;
const POLL_MIN: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(2);

impl Wallet {
    /// Waits until a quorum has credited a deposit of `amount` to `recipient` with an index above `after`; others may
    /// deposit to the same account meanwhile. Calls `report` with the number of authorities that have credited it.
    ///
    /// # Errors
    /// [`WalletError::TimedOut`]: the authorities will still credit it once its block is final for them.
    pub async fn wait_for_credit(
        &self,
        recipient: AccountId,
        asset: Asset,
        amount: Amount,
        after: TransactionIndex,
        patience: Duration,
        report: &(dyn Fn(usize) + Send + Sync),
    ) -> Result<Deposit, WalletError> {
        let quorum = self.network().committee().quorum();
        let until = Instant::now() + patience;
        let (mut pause, mut told) = (POLL_MIN, 0);
        loop {
            let answers = self.network().ask_all(Instant::now() + READ_PATIENCE, move |authority| async move {
                deposits_after(&authority, recipient, after).await
            });
            let answers = answers.await;
            let mut credited: BTreeMap<(TransactionIndex, Amount), (usize, &Deposit)> = BTreeMap::new();
            for (name, deposit) in self.network().of_members(&answers).into_values().flatten() {
                let ours = deposit.asset == asset && deposit.recipient == recipient;
                if deposit.index > after && ours && may_be_of(asset, deposit.amount, amount) {
                    credited.entry(*name).or_insert_with(|| (0, deposit)).0 += 1;
                }
            }
            let most = credited.values().map(|(count, _)| *count).max().unwrap_or(0);
            if most > told {
                report(most);
                told = most;
            }
            if let Some((_, deposit)) = credited.into_values().find(|(count, _)| *count >= quorum) {
                return Ok(deposit.clone());
            }
            if Instant::now() >= until {
                let hint = "the authorities credit it once its block is final for them; see `fastpay balance`";
                return Err(timed_out("the deposit's credit", patience, hint));
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(POLL_MAX);
        }
    }
}

impl Wallet {
    /// Stores the deposits credited to an account, whoever sent them, that are among the newest on the authorities'
    /// lists. A deposit counts if f + 1 members list it, so at least one honest one.
    ///
    /// # Errors
    /// If fewer authorities than a quorum answer, or the wallet's files cannot be used.
    pub async fn collect_deposits(&self, account: AccountId) -> Result<(), WalletError> {
        let journal = self.folder().inbox(account).lock(LOCK_PATIENCE).await?;
        let answers = self.network().ask_all(Instant::now() + READ_PATIENCE, move |authority| async move {
            deposits_after(&authority, account, TransactionIndex(0)).await
        });
        let answers = self.enough(answers.await)?;
        let lists = self.network().of_members(&answers);
        let mut listed: BTreeMap<(TransactionIndex, Amount, Asset), (usize, &Deposit)> = BTreeMap::new();
        for deposit in lists.into_values().flat_map(BTreeMap::values).filter(|of| of.recipient == account) {
            let what = (deposit.index, deposit.amount, deposit.asset);
            listed.entry(what).or_insert_with(|| (0, deposit)).0 += 1;
        }
        let trusted = self.network().trusted_count();
        let credited = listed.into_values().filter(|(count, _)| *count >= trusted).map(|(_, deposit)| deposit.clone());
        Ok(journal.add_deposits(&credited.collect::<Vec<_>>())?)
    }
}

/// Waits until a redemption is submitted to the Primary: to a contract in the newest block. It may then be in the
/// contract's queue and paid later.
///
/// # Errors
/// [`WalletError::TimedOut`]: a relayer may still submit it, or the owner can redeem it alone.
pub async fn wait_for_redemption(
    primary: &AnyPrimary,
    sender: AccountId,
    sequence: SequenceNumber,
    patience: Duration,
) -> Result<(), WalletError> {
    let until = Instant::now() + patience;
    let mut pause = POLL_MIN;
    loop {
        match primary.is_spent(sender, sequence).await? {
            Some(true) => return Ok(()),
            Some(false) => {}
            None => tracing::warn!("the Primary does not answer"),
        }
        if Instant::now() >= until {
            let hint = "wait longer, or redeem it yourself with `fastpay redeem --sequence <number> --self`";
            return Err(timed_out("the redemption by a relayer", patience, hint));
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(POLL_MAX);
    }
}

fn timed_out(what: &'static str, patience: Duration, hint: &'static str) -> WalletError {
    WalletError::TimedOut { what, seconds: patience.as_secs(), hint }
}

/// Removes from `credited` the deposit to `account` that a final transaction of this wallet made, and returns it.
pub fn take_credited(
    credited: &mut Vec<CreditedDeposit>,
    account: AccountId,
    errand: &Errand,
) -> Option<CreditedDeposit> {
    let Errand::Deposit { recipient, asset, amount, after } = errand else { return None };
    if *recipient != account {
        return None;
    }
    let is_it = |credited: &CreditedDeposit| {
        credited.index > *after && credited.asset == *asset && may_be_of(*asset, credited.amount, *amount)
    };
    credited.iter().position(is_it).map(|place| credited.remove(place))
}

/// Whether a credited amount may result from `sent`. Some tokens keep a fee on the way: not more than half.
fn may_be_of(asset: Asset, credited: Amount, sent: Amount) -> bool {
    let kept_by_token = asset != Asset::ETHER && credited.0 >= sent.0.div_ceil(2);
    credited == sent || (kept_by_token && credited < sent)
}

/// The deposits with an index above `after`, among the newest pages that the authority has not pruned, each once: pages may
/// overlap, and a liar may repeat a deposit as often as it likes.
async fn deposits_after(
    authority: &AuthorityClient,
    account: AccountId,
    after: TransactionIndex,
) -> Result<BTreeMap<(TransactionIndex, Amount), Deposit>, ClientError> {
    let shard = authority.shard_of(&account);
    let mut start = shard.account_asset(account, Asset::ETHER).await?.deposits;
    let mut found = BTreeMap::new();
    for _ in 0..PAGES_MAX {
        start = start.saturating_sub(u64::from(PAGE_ENTRIES_MAX));
        let (page, is_rest_pruned) = match shard.deposits(account, start).await {
            Err(ClientError::Pruned(pruned)) if pruned.first > start => {
                (shard.deposits(account, pruned.first).await?.entries, true)
            }
            page => (page?.entries, false),
        };
        let reached = is_rest_pruned || page.first().is_none_or(|oldest| oldest.index <= after);
        found.extend(page.into_iter().map(|deposit| ((deposit.index, deposit.amount), deposit)));
        if reached || start == 0 {
            break;
        }
    }
    Ok(found)
}

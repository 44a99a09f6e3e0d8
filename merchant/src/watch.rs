//! Looks for payments at intervals, through the wallet library, which verifies every certificate.
//!
//! ```text
//!  authorities ─► collect ─► inbox (on disk) ─► what the ledger lacks ─► take_in
//! ```
//! What the ledger lacks is read from the inbox and not from `collect`, because a crash may have come between, or
//! `fastpay receive` with the same folder.

use std::pin::pin;
use std::time::Duration;

use fastpay_wallet::folder::FolderError;
use fastpay_wallet::{Collected, Uncertified, Wallet, WalletError};
use tokio::select;
use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::ledger::{Ledger, now_ms};
use crate::ledger_error::LedgerError;

/// Received payments are reported at most this much later, even if the wallet still waits for authorities.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// The maximum number of payments in one change to the ledger: each is held in memory with its certificate.
const TAKEN_MAX: usize = 1_000;

/// The maximum number of the account's own orders read at a time. It bounds how long received payments wait.
const SENT_MAX: usize = 20;

/// Why the service ends.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The wallet's files cannot be used.
    #[error(transparent)]
    Wallet(#[from] WalletError),
    /// The database failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl From<FolderError> for WatchError {
    fn from(error: FolderError) -> Self {
        Self::Wallet(error.into())
    }
}

/// Why a reading may have missed a payment.
#[derive(Debug, thiserror::Error)]
pub enum Blindness {
    /// The wallet did not reach the end of the lists of a quorum.
    #[error("there are more payments than one request returns, or some whose certificates are unavailable now")]
    Unproven,
    /// The authorities cannot be read, or another command uses the wallet.
    #[error(transparent)]
    Wallet(WalletError),
}

/// Watches until the disk fails. A time in which not everything was read makes nothing expire, and nothing late.
///
/// # Errors
/// If files cannot be used.
pub async fn watch(wallet: Wallet, ledger: Ledger, pause: Duration) -> Result<(), WatchError> {
    let (mut was_blind, mut taken) = (false, 0);
    loop {
        let blindness = poll(&wallet, &ledger, &mut taken).await?;
        if let Some(error) = blindness.as_ref().filter(|_| !was_blind) {
            tracing::warn!(%error, "not all payments are visible now; no invoice expires meanwhile");
        }
        was_blind = blindness.is_some();
        sleep(pause).await;
    }
}

/// Reads once. Returns why it may have missed a payment, if so. `taken` is the number of payments in the inbox that the
/// ledger had at the last reading, 0 at first.
///
/// # Errors
/// As [`watch`].
pub async fn poll(wallet: &Wallet, ledger: &Ledger, taken: &mut usize) -> Result<Option<Blindness>, WatchError> {
    let account = ledger.account();
    let began_at_ms = now_ms();
    let mut collecting = pin!(wallet.collect(account));
    let collected = loop {
        select! {
            collected = &mut collecting => break collected,
            () = sleep(TELL_AFTER) => take_in(wallet, ledger, 0, taken)?,
        }
    };
    let (looked_at_ms, blindness) = match collected {
        Ok(Collected { is_whole: true, .. }) => (began_at_ms, None),
        Ok(Collected { is_whole: false, .. }) => (0, Some(Blindness::Unproven)),
        Err(error @ WalletError::Folder(FolderError::Busy { .. })) => (0, Some(Blindness::Wallet(error))),
        Err(error @ (WalletError::Folder(_) | WalletError::Config(_))) => return Err(error.into()),
        Err(error) => (0, Some(Blindness::Wallet(error))),
    };
    take_in(wallet, ledger, looked_at_ms, taken)?;
    follow_sent(wallet, ledger).await?;
    Ok(blindness)
}

/// Looks for refunds and payouts in the account's new orders, while any is open.
async fn follow_sent(wallet: &Wallet, ledger: &Ledger) -> Result<(), WatchError> {
    for _ in 0..SENT_MAX {
        let Some(sequence) = ledger.expects_sent()? else { break };
        let account = ledger.account();
        if let Some(certificate) = wallet.find_settled(account, sequence).await {
            ledger.take_sent(certificate.transfer(), &certificate.digest())?;
            continue;
        }
        match wallet.find_uncertified(account, sequence).await {
            Ok(Some(Uncertified::Settled(transfer))) => {
                ledger.take_sent(&transfer, &wallet.network().domain().transfer_digest(&transfer))?;
            }
            // The void number paid nothing.
            Ok(Some(Uncertified::Void)) => ledger.step_over(sequence)?,
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "cannot find out now what became of a number of the account");
                break;
            }
        }
    }
    Ok(())
}

/// Adds payments from the inbox that the ledger lacks, a bounded number at a time.
fn take_in(wallet: &Wallet, ledger: &Ledger, looked_at_ms: u64, taken: &mut usize) -> Result<(), WatchError> {
    let inbox = wallet.folder().inbox(ledger.account());
    // Count before listing: a payment added meanwhile is then listed by the next reading.
    let count = block_in_place(|| inbox.count())?;
    if count == *taken {
        return Ok(ledger.take_in(&[], looked_at_ms)?);
    }
    loop {
        let lacking = block_in_place(|| inbox.payments_beyond(|name| ledger.has(name), TAKEN_MAX))?;
        let is_all = lacking.len() < TAKEN_MAX;
        ledger.take_in(&lacking, if is_all { looked_at_ms } else { 0 })?;
        if is_all {
            *taken = count;
            return Ok(());
        }
    }
}

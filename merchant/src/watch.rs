//! Looks for payments again and again, through the wallet library, which verifies every certificate.

use std::time::Duration;

use fastpay_wallet::{Wallet, WalletError};
use tokio::time::sleep;

use crate::ledger::{Ledger, LedgerError, now_ms};

/// Why the service ends.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The wallet's files.
    #[error(transparent)]
    Wallet(#[from] WalletError),
    /// The journal.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Watches until something is wrong with the disk. While too few authorities answer, nothing expires.
///
/// # Errors
/// Where files cannot be used.
pub async fn watch(wallet: Wallet, ledger: Ledger, pause: Duration) -> Result<(), WatchError> {
    let account = ledger.account();
    // What the wallet took in before a crash, and the journal does not have. When it came is not known.
    let known = wallet.folder().inbox(account).payments().map_err(WalletError::from)?;
    ledger.take_in(&known, 0)?;
    let mut was_away = false;
    loop {
        let looked_at_ms = now_ms();
        match wallet.collect(account).await {
            Ok(received) => {
                ledger.take_in(&received, looked_at_ms)?;
                was_away = false;
            }
            Err(error @ (WalletError::Folder(_) | WalletError::Config(_))) => return Err(error.into()),
            Err(error) => {
                if !was_away {
                    tracing::warn!(%error, "payments cannot be seen now; nothing expires meanwhile");
                }
                was_away = true;
            }
        }
        sleep(pause).await;
    }
}

//! Reads from Ethereum at intervals: the state of payouts, and the decimals of tokens. Nothing waits for it, and while
//! its node is away, the known state stays.

use std::time::Duration;

use fastpay_ethereum::Primary;
use fastpay_wallet::{RedemptionState, Wallet, redemption_state};
use tokio::time::sleep;

use crate::ledger::Ledger;
use crate::ledger_error::LedgerError;
use crate::store::Payout;

/// The interval between reads: about a block.
const PAUSE: Duration = Duration::from_secs(12);

/// Runs until the disk fails.
///
/// # Errors
/// If the database cannot be used.
pub async fn follow(wallet: Wallet, ledger: Ledger) -> Result<(), LedgerError> {
    loop {
        for asset in ledger.assets()? {
            if let Err(error) = wallet.asset_info(asset).await {
                tracing::debug!(%asset, %error, "the asset's decimals are not available now");
            }
        }
        let payouts = ledger.payouts_on_their_way()?;
        if !payouts.is_empty() {
            match wallet.primary().await {
                Ok(primary) => read_states(&wallet, &primary, &ledger, &payouts).await?,
                Err(error) => tracing::warn!(%error, "the payouts' states on Ethereum are not available now"),
            }
        }
        sleep(PAUSE).await;
    }
}

async fn read_states(
    wallet: &Wallet,
    primary: &Primary,
    ledger: &Ledger,
    payouts: &[Payout],
) -> Result<(), LedgerError> {
    for payout in payouts {
        let Some((sequence, digest)) = payout.ordered else { continue };
        // Retired keys may have certified another order under the number.
        let certificate = wallet.certificate(ledger.account(), sequence).await;
        let Some(certificate) = certificate.filter(|found| found.digest() == digest) else { continue };
        match redemption_state(primary, &certificate).await {
            Ok(state) => ledger.payout_is(payout, name_of(&state), is_final(primary, &state).await)?,
            Err(error) => tracing::warn!(%error, %sequence, "a payout's state on Ethereum is not available now"),
        }
    }
    Ok(())
}

/// Whether a payment is in a final block. One that may still change is read again.
async fn is_final(primary: &Primary, state: &RedemptionState) -> bool {
    let RedemptionState::Paid { block_number, .. } = state else { return false };
    primary.final_head().await.is_ok_and(|head| *block_number <= head.number())
}

/// The state's name, as in `fastpay show`.
fn name_of(state: &RedemptionState) -> &'static str {
    match state {
        RedemptionState::Open => "open",
        RedemptionState::Queued(_) => "queued",
        RedemptionState::Paid { .. } => "paid",
        RedemptionState::Displaced(_) => "displaced",
        RedemptionState::Released(_) => "released",
        RedemptionState::Spent => "spent",
    }
}

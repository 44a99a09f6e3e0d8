//! Reads from the Primary at intervals: the state of payouts, and the decimals of tokens. Nothing waits for it, and while
//! the Primary is away, the known state stays.

use std::time::Duration;

use fastpay_wallet::{AnyPrimary, RedemptionState, Wallet};
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
            match wallet.any_primary().await {
                Ok(primary) => read_states(&wallet, &primary, &ledger, &payouts).await?,
                Err(error) => tracing::warn!(%error, "the payouts' states at the Primary are not available now"),
            }
        }
        sleep(PAUSE).await;
    }
}

async fn read_states(
    wallet: &Wallet,
    primary: &AnyPrimary,
    ledger: &Ledger,
    payouts: &[Payout],
) -> Result<(), LedgerError> {
    for payout in payouts {
        let Some((sequence, digest)) = payout.ordered else { continue };
        // Retired keys may have certified another order under the number.
        let certificate = wallet.certificate(ledger.account(), sequence).await;
        let Some(certificate) = certificate.filter(|found| found.digest() == digest) else { continue };
        match primary.redemption_state(&certificate).await {
            Ok(state) => ledger.payout_is(payout, name_of(&state), is_final(primary, &state).await)?,
            Err(error) => tracing::warn!(%error, %sequence, "a payout's state at the Primary is not available now"),
        }
    }
    Ok(())
}

/// Whether a payment is in a final block, or in a certified state of a ledger. One that may still change is read again.
async fn is_final(primary: &AnyPrimary, state: &RedemptionState) -> bool {
    match (primary, state) {
        (AnyPrimary::Contract(primary), RedemptionState::Paid { block_number, .. }) => {
            primary.final_head().await.is_ok_and(|head| *block_number <= head.number())
        }
        (AnyPrimary::Ledger(_), state) => *state != RedemptionState::Open,
        (AnyPrimary::Contract(_), _) => false,
    }
}

/// The state's name, as in `fastpay show`.
fn name_of(state: &RedemptionState) -> &'static str {
    match state {
        RedemptionState::Open => "open",
        RedemptionState::Queued(_) => "queued",
        RedemptionState::Paid { .. } | RedemptionState::PaidOnLedger(_) => "paid",
        RedemptionState::Displaced(_) | RedemptionState::DisplacedOnLedger(_) => "displaced",
        RedemptionState::Released(_) => "released",
        RedemptionState::Spent => "spent",
    }
}

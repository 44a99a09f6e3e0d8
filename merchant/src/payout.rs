//! Payouts to Ethereum: the service prepares a redemption, the owner's wallet signs it, and the service follows its
//! state.
//!
//! ```text
//!  intent (on disk, never changed) ─► link or command ─► the owner's wallet signs a redemption with its memo
//!        the account's certified orders ─► a redemption with a payout's memo ─► ordered, once ─► its state on Ethereum
//! ```
//! The service holds no key. Another transfer with the memo of a payout is not that payout.

use fastpay_core::{Amount, Asset, Digest, PrimaryAddress, Redemption};

use crate::ledger_error::{LedgerError, RequestError};
use crate::request::text_memo;
use crate::store::{Payout, Rows};

/// A request for a payout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayoutRequest {
    /// The owner's reference.
    pub reference: String,
    /// The asset.
    pub asset: Asset,
    /// The amount that leaves the account, in the asset's smallest unit. The fee is part of it.
    pub amount: Amount,
    /// The address on Ethereum that receives it.
    pub recipient: PrimaryAddress,
}

impl PayoutRequest {
    /// The payout of this reference, if the same request prepared it before.
    pub(crate) fn known(&self, rows: &Rows) -> Result<Option<Payout>, LedgerError> {
        let Some(known) = rows.payout(&self.reference)? else { return Ok(None) };
        let is_same = (known.asset, known.amount, known.recipient) == (self.asset, self.amount, self.recipient);
        is_same.then_some(Some(known)).ok_or_else(|| RequestError::OtherPayout(self.reference.clone()).into())
    }

    /// The payout of this reference: the existing one, or a new one with this fee. Returns whether it is new.
    pub(crate) fn answer(&self, rows: &Rows, fee: Amount, now_ms: u64) -> Result<(Payout, bool), LedgerError> {
        if let Some(known) = self.known(rows)? {
            return Ok((known, false));
        }
        let memo = text_memo(&format!("pyt_{}", hex::encode(rand::random::<[u8; 14]>())));
        rows.add_payout(self, fee, &memo, now_ms)?;
        let made = rows.payout(&self.reference)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        Ok((made, true))
    }
}

/// Notes which payout a redemption of the account is. A payout is ordered once.
pub(crate) fn take_redemption(rows: &Rows, redemption: &Redemption, digest: &Digest) -> Result<(), LedgerError> {
    let Some(payout) = rows.payout_of_memo(&redemption.memo)? else { return Ok(()) };
    let sequence = redemption.sequence.0;
    let is_it =
        (payout.recipient, payout.asset, payout.amount) == (redemption.recipient, redemption.asset, redemption.amount);
    if is_it && payout.ordered.is_none() {
        rows.set_ordered(payout.number, sequence, digest)?;
    } else {
        let why = if is_it { "it was ordered before" } else { "it pays another address, asset or amount" };
        tracing::error!(sequence, %digest, why, "an order carries the memo of a payout and is not its redemption");
    }
    Ok(())
}

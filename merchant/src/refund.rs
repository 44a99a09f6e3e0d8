//! Refunds: the service lists the refunds, the owner's wallet pays them, and the service detects the payments.
//!
//! ```text
//!  what came too much, or too late ─► list (on disk, never changed) ─► CSV ─► fastpay pay --csv ─► payout
//!        the account's certified orders, one after the other ─► output with a refund's memo ─► paid, once
//! ```
//! The service holds no key. A part of a payment is on one list only, and the same list is the same file, which
//! `fastpay pay --csv` pays once, so nothing is paid back twice.

use fastpay_core::{AccountId, Amount, Digest, Memo, Receipt, Transfer};
use serde::{Deserialize, Serialize};

use crate::invoice::State;
use crate::ledger_error::{LedgerError, RequestError};
use crate::payout::take_redemption;
use crate::request::text_memo;
use crate::store::{Order, PaidBy, Record, RefundList, Rows};

/// The maximum number of lines in one list; the rest goes on the next one.
pub const LINES_MAX: usize = 1_000;
/// The number of payments read at a time.
const PAYMENTS_READ: usize = 100;

/// A request for a list of refunds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefundRequest {
    /// The owner's reference for the list.
    #[serde(skip)]
    pub reference: String,
    /// Invoices to refund, each with an amount; without one, what is due is refunded.
    pub invoices: Vec<(String, Option<Amount>)>,
    /// Whether to refund the amounts due of all invoices.
    pub due: bool,
    /// Whether to refund the payments of no invoice.
    pub unmatched: bool,
}

/// A list under construction.
struct Draft<'a> {
    rows: &'a Rows<'a>,
    account: AccountId,
    list: i64,
    lines: usize,
}

impl RefundRequest {
    /// The list of this reference: the one that the same request prepared before, or a new one.
    pub(crate) fn answer(
        &self,
        rows: &Rows,
        account: AccountId,
        now_ms: u64,
        looked_at_ms: u64,
    ) -> Result<(RefundList, bool), LedgerError> {
        let request = serde_json::to_string(self).expect("a request is text and numbers");
        if let Some(known) = rows.refund_list(&self.reference)? {
            let is_same = known.request == request;
            return is_same
                .then_some((known, false))
                .ok_or_else(|| RequestError::OtherRefunds(self.reference.clone()).into());
        }
        let list = rows.add_refund_list(&self.reference, &request, now_ms)?;
        let mut draft = Draft { rows, account, list, lines: 0 };
        for (id, amount) in &self.invoices {
            let invoice = rows.invoice(id)?.ok_or_else(|| RequestError::UnknownInvoice(id.clone()))?;
            let left = invoice.totals.received.saturating_sub(rows.refunded_of(invoice.number)?);
            let wanted = match amount {
                Some(amount) if amount.0 > left => {
                    return Err(RequestError::NotSoMuch { invoice: id.clone(), left: Amount(left) }.into());
                }
                Some(amount) => amount.0,
                None => due(rows, &invoice, looked_at_ms)?,
            };
            draft.add(Some(invoice.number), wanted)?;
        }
        if self.due {
            for state in [State::Overpaid, State::PaidTwice, State::Late, State::Underpaid] {
                draft.add_due(state, looked_at_ms)?;
            }
        }
        if self.unmatched {
            draft.add(None, u128::MAX)?;
        }
        if draft.lines == 0 {
            return Err(RequestError::NothingDue.into());
        }
        let list = rows.refund_list(&self.reference)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        Ok((list, true))
    }
}

/// The amount due of an invoice by its state, less the amounts on lists: an overpayment; all late payments; and, once
/// an invoice has expired unpaid, everything that was paid for it.
fn due(rows: &Rows, invoice: &Record, looked_at_ms: u64) -> Result<u128, LedgerError> {
    let Record { terms, totals, state, number } = invoice;
    let whole = match state {
        State::Overpaid | State::PaidTwice => totals.received.saturating_sub(terms.amount.0),
        State::Late => totals.received,
        State::Underpaid if terms.expires_at_ms() <= looked_at_ms => totals.received,
        State::Underpaid | State::Open | State::Paid | State::Expired => 0,
    };
    Ok(whole.saturating_sub(rows.refunded_of(*number)?))
}

impl Draft<'_> {
    fn add_due(&mut self, state: State, looked_at_ms: u64) -> Result<(), LedgerError> {
        let mut number = 0;
        while self.lines < LINES_MAX {
            let invoices = self.rows.invoices_after(number, Order::OldestFirst, Some(state), PAYMENTS_READ)?;
            let Some(last) = invoices.last() else { break };
            number = last.number;
            for invoice in &invoices {
                self.add(Some(invoice.number), due(self.rows, invoice, looked_at_ms)?)?;
            }
        }
        Ok(())
    }

    /// Adds up to `wanted` of the payments of an invoice, or of none, the newest first.
    fn add(&mut self, invoice: Option<i64>, mut wanted: u128) -> Result<(), LedgerError> {
        let mut before = i64::MAX;
        while wanted > 0 && self.lines < LINES_MAX {
            let payments = self.rows.payments_before(invoice, before, PAYMENTS_READ)?;
            let Some(last) = payments.last() else { break };
            before = last.number;
            for payment in payments {
                let amount = payment.arrival.amount.0.saturating_sub(self.rows.refunded(payment.number)?).min(wanted);
                // Skip the account's own payments: it need not pay itself back.
                if amount == 0 || payment.arrival.sender == self.account || self.lines >= LINES_MAX {
                    continue;
                }
                let memo = text_memo(&format!("rfd_{}", hex::encode(rand::random::<[u8; 14]>())));
                self.rows.add_refund(self.list, payment.number, &memo, Amount(amount))?;
                self.lines = self.lines.saturating_add(1);
                wanted = wanted.saturating_sub(amount);
            }
        }
        Ok(())
    }
}

/// Notes which refunds an order of the account paid, or which payout it is. Each refund is paid once.
pub(crate) fn take_sent(rows: &Rows, transfer: &Transfer, digest: &Digest) -> Result<(), LedgerError> {
    if let Transfer::Redemption(redemption) = transfer {
        take_redemption(rows, redemption, digest)?;
    }
    let sequence = transfer.sequence().0;
    for Receipt { payment, output } in transfer.receipts() {
        let memo: Memo = payment.memo;
        let Some(refund) = rows.refund_of_memo(&memo)? else { continue };
        let is_it =
            (refund.recipient, refund.asset, refund.amount) == (payment.recipient, payment.asset, payment.amount);
        if is_it && refund.paid.is_none() {
            rows.set_paid(refund.number, &PaidBy { sequence, output, digest: *digest })?;
        } else {
            let why = if is_it { "it was paid before" } else { "it pays another account, asset or amount" };
            tracing::error!(
                sequence, ?output, %digest, why,
                "an order carries the memo of a refund and does not pay it"
            );
        }
    }
    rows.set_sent_next(sequence.saturating_add(1))?;
    Ok(())
}

//! A shop's request for an invoice: it gets a new invoice, the existing one, or a refusal.

use fastpay_core::{Amount, Asset, Memo};

use crate::checkout::Checkout;
use crate::invoice::Terms;
use crate::ledger_error::{LedgerError, RequestError};
use crate::store::{Record, Rows};

/// A request of the shop for an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The shop's reference.
    pub reference: String,
    /// The asset to be paid.
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
    /// A memo of the shop's own choice.
    pub memo: Option<Memo>,
    /// How long the payment is expected, in seconds.
    pub expires_in: u64,
    /// The data shown to the customer.
    pub checkout: Checkout,
}

impl Request {
    /// The invoice that the same request made before, or the terms of a new one with this id.
    pub(crate) fn answer(
        &self,
        rows: &Rows,
        id: String,
        now_ms: u64,
        open_max: usize,
    ) -> Result<Result<Record, Terms>, LedgerError> {
        if let Some(known) = rows.invoice_of_reference(&self.reference)? {
            let is_same = self.is_for(&known.terms);
            return is_same.then_some(Ok(known)).ok_or_else(|| RequestError::OtherTerms(self.reference.clone()).into());
        }
        if let Some(id) = rows.archived(&self.reference)? {
            return Err(RequestError::Archived { reference: self.reference.clone(), id }.into());
        }
        let memo = self.memo.unwrap_or_else(|| text_memo(&id));
        if rows.invoice_of_memo(&memo)?.is_some() {
            return Err(RequestError::MemoTaken.into());
        }
        if rows.count_open()? >= u64::try_from(open_max).unwrap_or(u64::MAX) {
            return Err(RequestError::TooManyOpen(open_max).into());
        }
        Ok(Err(Terms {
            id,
            reference: self.reference.clone(),
            asset: self.asset,
            amount: self.amount,
            memo,
            created_at_ms: now_ms,
            expires_at: now_ms.div_ceil(1_000).saturating_add(self.expires_in),
            checkout: self.checkout.clone(),
            checkout_key: Some(hex::encode(rand::random::<[u8; 16]>())),
        }))
    }

    fn is_for(&self, terms: &Terms) -> bool {
        let asked_for = terms.expires_at.saturating_sub(terms.created_at_ms.div_ceil(1_000));
        (terms.asset, terms.amount, asked_for) == (self.asset, self.amount, self.expires_in)
            && self.memo.is_none_or(|memo| memo == terms.memo)
            && self.checkout == terms.checkout
    }
}

/// A memo with this text, of which it contains the first 32 bytes.
pub(crate) fn text_memo(text: &str) -> Memo {
    let mut memo = Memo::ZERO;
    memo.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    memo
}

//! What a shop asks for, and whether it gets a new invoice, the one of before, or a refusal.

use fastpay_core::{Amount, Asset, Memo};

use crate::invoice::Terms;
use crate::ledger::LedgerError;
use crate::store::{Record, Rows};

/// What the shop asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the shop calls it.
    pub reference: String,
    /// What is to be paid.
    pub asset: Asset,
    /// How much.
    pub amount: Amount,
    /// A memo of the shop's own choice.
    pub memo: Option<Memo>,
    /// How long the payment is expected, in seconds.
    pub expires_in: u64,
}

/// Why there is no such invoice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The reference has other terms.
    #[error("reference {0:?} belongs to an invoice of other terms already; use another reference")]
    OtherTerms(String),
    /// The reference had its invoice, which an earlier program moved to archive/.
    #[error(
        "reference {reference:?} belongs to {id}, which ended long ago and is in the archive; use another reference"
    )]
    Archived {
        /// The reference.
        reference: String,
        /// The invoice.
        id: String,
    },
    /// The memo is another invoice's.
    #[error("another invoice has this memo; leave the memo out, and the invoice gets one of its own")]
    MemoTaken,
    /// So many wait for their payment already.
    #[error("{0} invoices are open already; those that are paid or expire make room")]
    TooManyOpen(usize),
    /// The list of refunds has other lines.
    #[error("reference {0:?} belongs to a list of other refunds already; use another reference")]
    OtherRefunds(String),
    /// There is no such invoice.
    #[error("there is no invoice of the id {0:?}")]
    UnknownInvoice(String),
    /// More than came, or than is left.
    #[error("of {invoice} only {left} of the smallest unit can still go back")]
    NotSoMuch {
        /// The invoice.
        invoice: String,
        /// What came for it and is on no list.
        left: Amount,
    },
    /// A list would be empty.
    #[error(
        "nothing is to be refunded: no invoice was overpaid, paid twice, late or underpaid at its end, or it is on a list already"
    )]
    NothingDue,
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
        }))
    }

    fn is_for(&self, terms: &Terms) -> bool {
        let asked_for = terms.expires_at.saturating_sub(terms.created_at_ms.div_ceil(1_000));
        (terms.asset, terms.amount, asked_for) == (self.asset, self.amount, self.expires_in)
            && self.memo.is_none_or(|memo| memo == terms.memo)
    }
}

/// A text that fills a memo, or less.
pub(crate) fn text_memo(text: &str) -> Memo {
    let mut memo = Memo::ZERO;
    memo.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    memo
}

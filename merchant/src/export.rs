//! All invoices and payments as CSV, for bookkeeping: a row for each payment, one for an invoice without any, and one
//! for each payment of no invoice. The table comes in parts of a bounded number of rows, because anybody can pay to an
//! invoice, or to none, a million times.

use std::fmt;
use std::str::FromStr;

use fastpay_core::{AccountId, Amount, Asset, SequenceNumber};
use fastpay_wallet::format_memo;
use serde::Serialize;

use crate::invoice::{Arrival, State};
use crate::store::{Order, Record, Rows};

#[derive(Clone, Default, Serialize)]
struct Row {
    invoice: String,
    reference: String,
    state: Option<State>,
    asset: Option<Asset>,
    invoice_amount: Option<Amount>,
    created_at_ms: Option<u64>,
    expires_at: Option<u64>,
    memo: String,
    payment_amount: Option<Amount>,
    sender: Option<AccountId>,
    sequence: Option<SequenceNumber>,
    received_at_ms: Option<u64>,
    late: Option<bool>,
    output: Option<u16>,
}

impl Row {
    fn of_invoice(Record { terms, state, .. }: &Record) -> Self {
        Self {
            invoice: terms.id.clone(),
            reference: plain(&terms.reference),
            state: Some(*state),
            asset: Some(terms.asset),
            invoice_amount: Some(terms.amount),
            created_at_ms: Some(terms.created_at_ms),
            expires_at: Some(terms.expires_at),
            memo: plain(&format_memo(&terms.memo)),
            ..Self::default()
        }
    }

    fn with_payment(self, arrival: &Arrival, late: Option<bool>) -> Self {
        Self {
            asset: Some(arrival.asset),
            memo: plain(&format_memo(&arrival.memo)),
            payment_amount: Some(arrival.amount),
            sender: Some(arrival.sender),
            sequence: Some(arrival.sequence),
            output: arrival.output,
            received_at_ms: Some(arrival.received_at_ms),
            late,
            ..self
        }
    }
}

/// The maximum number of rows in one part.
pub const ROWS_MAX: usize = 10_000;

/// The start of a part of the table. Its text is a parameter of the next part's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// At the oldest invoice.
    #[default]
    Start,
    /// After the invoice with this id.
    Behind(String),
    /// After a payment of an invoice.
    Within {
        /// The invoice's id.
        invoice: String,
        /// The payment's number among all.
        payment: i64,
    },
    /// After a payment of no invoice.
    Unmatched {
        /// The payment's number among all.
        payment: i64,
    },
}

/// The text is not a place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after must be the ID of an invoice, or the value in the header Link of the previous page")]
pub struct ParsePlaceError;

/// Replaces the invoice's id for a payment of no invoice.
const UNMATCHED: &str = "none";

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => Ok(()),
            Self::Behind(invoice) => f.write_str(invoice),
            Self::Within { invoice, payment } => write!(f, "{invoice}:{payment}"),
            Self::Unmatched { payment } => write!(f, "{UNMATCHED}:{payment}"),
        }
    }
}

impl FromStr for Place {
    type Err = ParsePlaceError;

    fn from_str(text: &str) -> Result<Self, ParsePlaceError> {
        let Some((invoice, payment)) = text.split_once(':') else { return Ok(Self::Behind(text.into())) };
        let is_number = !payment.is_empty() && payment.bytes().all(|byte| byte.is_ascii_digit());
        let payment = payment.parse().ok().filter(|_| is_number).ok_or(ParsePlaceError)?;
        Ok(match invoice {
            UNMATCHED => Self::Unmatched { payment },
            invoice => Self::Within { invoice: invoice.into(), payment },
        })
    }
}

/// A part of the table.
#[derive(Debug)]
pub struct Page {
    /// The rows as CSV, with a header line.
    pub table: Vec<u8>,
    /// The number of rows, without the header.
    pub rows: usize,
    /// The start of the next part; `None` for the last one.
    pub next: Option<Place>,
}

/// Up to `count` rows from a place on: those of the invoices, oldest first, and then the payments of no invoice.
/// Amounts are in the asset's smallest unit. `None` if no invoice has the place's id.
pub(crate) fn to_csv(rows: &Rows, from: &Place, count: usize) -> rusqlite::Result<Option<Page>> {
    let mut table = Table { rows: Vec::new(), count, last: from.clone() };
    let (behind, payment) = match from {
        Place::Start => (None, 0),
        Place::Behind(id) => (Some(id), i64::MAX),
        Place::Within { invoice, payment } => (Some(invoice), *payment),
        Place::Unmatched { payment } => return table.finish(rows, *payment).map(Some),
    };
    let mut number = 0;
    if let Some(id) = behind {
        let Some(invoice) = rows.invoice(id)? else { return Ok(None) };
        table.add_payments(rows, &invoice, payment)?;
        number = invoice.number;
    }
    while !table.is_full() {
        let invoices = rows.invoices_after(number, Order::OldestFirst, None, INVOICES_READ)?;
        let Some(last) = invoices.last() else { return table.finish(rows, 0).map(Some) };
        number = last.number;
        for invoice in &invoices {
            table.add_invoice(rows, invoice)?;
        }
    }
    // There may be more; the last part has no next one.
    Ok(Some(Page { table: write(&table.rows), rows: table.rows.len(), next: Some(table.last) }))
}

/// The number of invoices read at a time.
const INVOICES_READ: usize = 100;

/// A part under construction.
struct Table {
    rows: Vec<Row>,
    count: usize,
    /// The place after the last row.
    last: Place,
}

impl Table {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.count
    }

    fn add_invoice(&mut self, rows: &Rows, invoice: &Record) -> rusqlite::Result<()> {
        if invoice.totals.payments == 0 && !self.is_full() {
            self.rows.push(Row::of_invoice(invoice));
            self.last = Place::Behind(invoice.terms.id.clone());
        }
        self.add_payments(rows, invoice, 0)
    }

    /// Adds the payments of an invoice after the one numbered `behind`.
    fn add_payments(&mut self, rows: &Rows, invoice: &Record, behind: i64) -> rusqlite::Result<()> {
        let row = Row::of_invoice(invoice);
        let room = self.count.saturating_sub(self.rows.len());
        for payment in rows.payments_after(Some(invoice.number), behind, room)? {
            let late = payment.arrival.is_late(&invoice.terms);
            self.rows.push(row.clone().with_payment(&payment.arrival, Some(late)));
            self.last = Place::Within { invoice: invoice.terms.id.clone(), payment: payment.number };
        }
        Ok(())
    }

    /// Adds the last rows: payments of no invoice.
    fn finish(mut self, rows: &Rows, behind: i64) -> rusqlite::Result<Page> {
        let room = self.count.saturating_sub(self.rows.len());
        let mut payments = rows.payments_after(None, behind, room.saturating_add(1))?;
        let is_more = payments.len() > room;
        payments.truncate(room);
        let payment = payments.last().map_or(behind, |payment| payment.number);
        self.rows.extend(payments.iter().map(|payment| Row::default().with_payment(&payment.arrival, None)));
        let next = is_more.then_some(Place::Unmatched { payment });
        Ok(Page { table: write(&self.rows), rows: self.rows.len(), next })
    }
}

fn write(rows: &[Row]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().for_each(|row| writer.serialize(row).expect("memory takes every row"));
    writer.into_inner().expect("memory takes every row")
}

/// Escapes a cell that spreadsheets would take for a formula, because a memo is a stranger's text.
fn plain(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

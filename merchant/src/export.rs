//! All invoices and payments as CSV, for whoever keeps the shop's books: a row for each payment, one for an invoice
//! without any, and one for each payment of no invoice.

use fastpay_core::{AccountId, Amount, Asset, SequenceNumber};
use fastpay_wallet::format_memo;
use serde::Serialize;

use crate::book::Book;
use crate::invoice::{Arrival, State, Terms, state};

#[derive(Default, Serialize)]
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
}

impl Row {
    fn of_invoice(terms: &Terms, state: State) -> Self {
        Self {
            invoice: terms.id.clone(),
            reference: plain(&terms.reference),
            state: Some(state),
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
            received_at_ms: Some(arrival.received_at_ms),
            late,
            ..self
        }
    }
}

/// At most so many invoices in one page.
pub const INVOICES_MAX: usize = 10_000;

/// A part of the table.
#[derive(Debug)]
pub struct Page {
    /// CSV, with a head.
    pub table: Vec<u8>,
    /// How many rows it has, beside the head.
    pub rows: usize,
    /// The invoice after which the next part begins; none where this is the last one.
    pub next: Option<String>,
}

/// Up to `count` invoices after one, when the wallet had looked last at `looked_at_ms`; after the last of them, the
/// payments of no invoice. Amounts are in the asset's smallest unit. None where there is no such invoice.
#[must_use]
pub fn to_csv(book: &Book, looked_at_ms: u64, after: Option<&str>, count: usize) -> Option<Page> {
    let mut invoices = book.invoices_after(after)?.peekable();
    let mut rows = Vec::new();
    let mut last = None;
    for invoice in invoices.by_ref().take(count) {
        let row = || Row::of_invoice(&invoice.terms, state(&invoice.terms, &invoice.arrivals, looked_at_ms));
        if invoice.arrivals.is_empty() {
            rows.push(row());
        }
        let payments = invoice.arrivals.iter();
        rows.extend(payments.map(|arrival| row().with_payment(arrival, Some(arrival.is_late(&invoice.terms)))));
        last = Some(&invoice.terms.id);
    }
    let next = last.filter(|_| invoices.peek().is_some()).cloned();
    if next.is_none() {
        rows.extend(book.unmatched().iter().map(|arrival| Row::default().with_payment(arrival, None)));
    }
    Some(Page { table: write(&rows), rows: rows.len(), next })
}

fn write(rows: &[Row]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().for_each(|row| writer.serialize(row).expect("memory takes every row"));
    writer.into_inner().expect("memory takes every row")
}

/// Spreadsheets take a cell that begins so for a formula, and a memo is text from a stranger.
fn plain(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Entry;
    use crate::invoice::tests::{arrival, terms};
    use fastpay_core::Memo;

    #[test]
    fn each_payment_has_a_row_and_no_cell_is_a_formula() {
        let mut book = Book::default();
        let open =
            Terms { id: "inv_2".into(), memo: Memo::repeat_byte(2), reference: "=1+1, \"x\"".into(), ..terms(5) };
        let mut memo = Memo::ZERO;
        memo[..9].copy_from_slice(b"@cmd|calc");
        let entries = [
            Entry::Created(terms(10)),
            Entry::Created(open),
            Entry::Arrived(arrival(0, 4, 1)),
            Entry::Arrived(arrival(1, 6, 2)),
            Entry::Arrived(Arrival { memo, ..arrival(2, 3, 3) }),
        ];
        entries.into_iter().for_each(|entry| book.apply(entry));
        let page = |after, count| to_csv(&book, 4_000, after, count).unwrap();
        let table = String::from_utf8(page(None, 2).table).unwrap();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 5, "{table}");
        assert!(lines[0].starts_with("invoice,reference,state,asset,invoice_amount,"), "{table}");
        assert!(lines[1].starts_with("inv_1,order 1,paid,0x") && lines[1].contains(",4,"), "{table}");
        assert!(lines[2].contains(",6,") && lines[3].starts_with("inv_2,\"'=1+1, \"\"x\"\"\",open,"), "{table}");
        assert!(lines[4].starts_with(",,,0x") && lines[4].contains("'@cmd|calc,3,"), "{table}");

        // In pages: the payments of no invoice are in the last one.
        let first = page(None, 1);
        let second = page(first.next.as_deref(), 1);
        assert_eq!((first.next.as_deref(), second.next), (Some("inv_1"), None));
        let rows = |table: Vec<u8>| -> Vec<String> {
            String::from_utf8(table).unwrap().lines().skip(1).map(str::to_owned).collect()
        };
        assert_eq!([rows(first.table), rows(second.table)].concat(), rows(page(None, 2).table));
        assert!(to_csv(&book, 4_000, Some("inv_9"), 1).is_none());
    }
}

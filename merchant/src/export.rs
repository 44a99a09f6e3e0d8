//! All invoices and payments as CSV, for whoever keeps the shop's books: a row for each payment, one for an invoice
//! without any, and one for each payment of no invoice. In parts of so many rows: anybody can pay to an invoice, or to none,
//! a million times.

use std::fmt;
use std::str::FromStr;

use fastpay_core::{AccountId, Amount, Asset, SequenceNumber};
use fastpay_wallet::format_memo;
use serde::Serialize;

use crate::book::{Book, Invoice};
use crate::invoice::{Arrival, State, Terms, state};

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
            output: arrival.output,
            received_at_ms: Some(arrival.received_at_ms),
            late,
            ..self
        }
    }
}

/// At most so many rows in one part.
pub const ROWS_MAX: usize = 10_000;

/// Where a part of the table begins. As text, what the address of the next part says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// With the oldest invoice.
    #[default]
    Start,
    /// Behind the invoice of this id.
    Behind(String),
    /// Behind so many rows of an invoice.
    Within {
        /// Its id.
        invoice: String,
        /// How many.
        rows: usize,
    },
    /// Behind so many payments of no invoice.
    Unmatched {
        /// How often the journal had been written anew: the oldest of these payments may go to the archive by that.
        generation: u64,
        /// How many.
        rows: usize,
    },
}

/// The text is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after is the id of an invoice, or what the header Link of the part before says")]
pub struct ParsePlaceError;

/// What stands for the id of an invoice where there is none.
const UNMATCHED: &str = "none";

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => Ok(()),
            Self::Behind(invoice) => f.write_str(invoice),
            Self::Within { invoice, rows } => write!(f, "{invoice}:{rows}"),
            Self::Unmatched { generation, rows } => write!(f, "{UNMATCHED}:{generation}:{rows}"),
        }
    }
}

impl FromStr for Place {
    type Err = ParsePlaceError;

    fn from_str(text: &str) -> Result<Self, ParsePlaceError> {
        let rows = |text: &str| text.parse().map_err(|_| ParsePlaceError);
        let parts: Vec<_> = text.splitn(4, ':').collect();
        match parts.as_slice() {
            [UNMATCHED, generation, payments] => {
                let generation = generation.parse().map_err(|_| ParsePlaceError)?;
                Ok(Self::Unmatched { generation, rows: rows(payments)? })
            }
            [invoice, payments] => Ok(Self::Within { invoice: (*invoice).into(), rows: rows(payments)? }),
            [invoice] => Ok(Self::Behind((*invoice).into())),
            _ => Err(ParsePlaceError),
        }
    }
}

/// A part of the table.
#[derive(Debug)]
pub struct Page {
    /// CSV, with a head.
    pub table: Vec<u8>,
    /// How many rows it has, beside the head.
    pub rows: usize,
    /// Where the next part begins; none where this is the last one.
    pub next: Option<Place>,
}

impl Page {
    fn new(rows: &[Row], next: Option<Place>) -> Self {
        Self { table: write(rows), rows: rows.len(), next }
    }
}

/// Up to `count` rows from a place on, when the wallet had looked last at `looked_at_ms`: those of the invoices, oldest
/// first, and then the payments of no invoice. Amounts are in the asset's smallest unit. None where there is no such place
/// any more.
#[must_use]
pub fn to_csv(book: &Book, looked_at_ms: u64, from: &Place, count: usize) -> Option<Page> {
    let mut rows = Vec::new();
    let (first, after, mut skipped) = match from {
        Place::Start => (None, None, 0),
        Place::Behind(id) => (None, Some(id), 0),
        Place::Within { invoice, rows } => (Some(book.invoice(invoice)?), Some(invoice), *rows),
        Place::Unmatched { generation, rows: skipped } => {
            return (*generation == book.generation()).then(|| unmatched(book, rows, *skipped, count));
        }
    };
    let following = book.invoices_after(after.map(String::as_str))?;
    for invoice in first.into_iter().chain(following) {
        let before = rows.len();
        rows.extend(rows_of(invoice, looked_at_ms).skip(skipped).take(count.saturating_sub(before)));
        let listed = skipped.saturating_add(rows.len().saturating_sub(before));
        if listed < invoice.arrivals.len().max(1) {
            return Some(Page::new(&rows, Some(Place::Within { invoice: invoice.terms.id.clone(), rows: listed })));
        }
        skipped = 0;
    }
    Some(unmatched(book, rows, 0, count))
}

fn rows_of(invoice: &Invoice, looked_at_ms: u64) -> impl Iterator<Item = Row> {
    let Invoice { terms, arrivals, .. } = invoice;
    let row = Row::of_invoice(terms, state(terms, arrivals, looked_at_ms));
    let alone = arrivals.is_empty().then(|| row.clone());
    let payments = arrivals.iter().map(move |arrival| row.clone().with_payment(arrival, Some(arrival.is_late(terms))));
    alone.into_iter().chain(payments)
}

/// The last parts: these rows, and behind them payments of no invoice.
fn unmatched(book: &Book, mut rows: Vec<Row>, skipped: usize, count: usize) -> Page {
    let before = rows.len();
    let payments = book.unmatched().iter().map(|arrival| Row::default().with_payment(arrival, None));
    rows.extend(payments.skip(skipped).take(count.saturating_sub(before)));
    let listed = skipped.saturating_add(rows.len().saturating_sub(before));
    let is_last = listed >= book.unmatched().len();
    Page::new(&rows, (!is_last).then(|| Place::Unmatched { generation: book.generation(), rows: listed }))
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
        let table = String::from_utf8(to_csv(&book, 4_000, &Place::Start, 9).unwrap().table).unwrap();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 5, "{table}");
        assert!(lines[0].starts_with("invoice,reference,state,asset,invoice_amount,"), "{table}");
        assert!(lines[1].starts_with("inv_1,order 1,paid,0x") && lines[1].contains(",4,"), "{table}");
        assert!(lines[2].contains(",6,") && lines[3].starts_with("inv_2,\"'=1+1, \"\"x\"\"\",open,"), "{table}");
        assert!(lines[4].starts_with(",,,0x") && lines[4].contains("'@cmd|calc,3,"), "{table}");
    }

    /// Two invoices, of three payments and of none, and two payments of no invoice.
    fn small_book() -> Book {
        let mut book = Book::default();
        let second = Terms { id: "inv_2".into(), memo: Memo::repeat_byte(2), reference: "order 2".into(), ..terms(5) };
        book.apply(Entry::Created(terms(10)));
        book.apply(Entry::Created(second));
        (0..3).for_each(|number| book.apply(Entry::Arrived(arrival(number, 4, 1))));
        for number in 3..5 {
            book.apply(Entry::Arrived(Arrival { memo: Memo::repeat_byte(9), ..arrival(number, 1, 1) }));
        }
        book
    }

    #[test]
    fn parts_of_any_length_are_the_whole_table() {
        let book = small_book();
        let rows = |page: &Page| -> Vec<String> {
            String::from_utf8(page.table.clone()).unwrap().lines().skip(1).map(str::to_owned).collect()
        };
        let whole = to_csv(&book, 4_000, &Place::Start, 6).unwrap();
        assert_eq!((whole.rows, &whole.next), (6, &None));
        for count in 1..=6 {
            let (mut all, mut next, mut parts) = (Vec::new(), Some(Place::Start), 0);
            while let Some(place) = next {
                let place = if place == Place::Start { place } else { place.to_string().parse().unwrap() };
                let part = to_csv(&book, 4_000, &place, count).unwrap();
                assert!(part.rows <= count);
                all.extend(rows(&part));
                (next, parts) = (part.next, parts + 1);
            }
            assert_eq!((all, parts), (rows(&whole), 6_usize.div_ceil(count)), "{count}");
        }
        let behind = to_csv(&book, 4_000, &"inv_1".parse().unwrap(), 6).unwrap();
        assert_eq!(rows(&behind), rows(&whole)[3..]);
    }

    #[test]
    fn a_place_that_is_gone_is_said_so() {
        let book = small_book();
        for (text, is_there) in
            [("inv_1:2", true), ("none:0:1", true), ("inv_1:99", true), ("inv_9", false), ("inv_9:1", false)]
        {
            assert_eq!(to_csv(&book, 4_000, &text.parse().unwrap(), 6).is_some(), is_there, "{text}");
        }
        for text in ["inv_1:", "inv_1:x", "inv_1:-1", "none:1:", "none::1", "a:1:2", "none:1:2:3"] {
            assert_eq!(text.parse::<Place>(), Err(ParsePlaceError), "{text}");
        }
        // Written anew meanwhile, the first payments may be in the archive.
        let mut anew = Book::default();
        book.compacted(0).kept.into_iter().for_each(|entry| anew.apply(entry));
        assert!(to_csv(&anew, 4_000, &"none:0:1".parse().unwrap(), 6).is_none());
        assert!(to_csv(&anew, 4_000, &"none:1:1".parse().unwrap(), 6).is_some());
    }
}

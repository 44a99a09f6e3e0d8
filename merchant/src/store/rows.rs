//! The rows of the database as typed values.

use fastpay_core::{AccountId, Amount, Asset, Memo, SequenceNumber};
use fastpay_rpc::PaymentName;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Result, Row, ToSql, named_params, params};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as NotAState;

use crate::checkout::{Checkout, Item};
use crate::event::{Delivery, Event, Outcome};
use crate::invoice::{Arrival, State, Terms, Totals};

/// An invoice in its present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number among all invoices.
    pub(crate) number: i64,
    /// The agreed terms.
    pub terms: Terms,
    /// The sums of its payments.
    pub totals: Totals,
    /// The invoice's state.
    pub state: State,
}

/// The order of a list of invoices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In the order of creation.
    OldestFirst,
    /// In the reverse order.
    NewestFirst,
}

impl Order {
    /// The number before that of the list's first invoice.
    pub(crate) const fn start(self) -> i64 {
        match self {
            Self::OldestFirst => 0,
            Self::NewestFirst => i64::MAX,
        }
    }
}

/// A payment, and its number among all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub(crate) number: i64,
    /// The payment.
    pub arrival: Arrival,
}

/// An amount as text that sorts like the number.
pub(super) struct Units(pub u128);

impl ToSql for Units {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(format!("{:039}", self.0).into())
    }
}

impl FromSql for Units {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(|_| FromSqlError::InvalidType)
    }
}

impl ToSql for State {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(self.to_string().into())
    }
}

impl FromSql for State {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text: &str = value.as_str()?;
        Self::deserialize(text.into_deserializer()).map_err(|_: NotAState| FromSqlError::InvalidType)
    }
}

/// The lines of an invoice, as JSON.
struct Lines(Vec<Item>);

impl FromSql for Lines {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(FromSqlError::other)
    }
}

/// Reads a number of 64 bits: SQLite's integers are signed, and the sequence numbers of strangers need all bits.
pub(super) fn get_u64(row: &Row, name: &str) -> Result<u64> {
    Ok(row.get::<_, i64>(name)?.cast_unsigned())
}

pub(super) fn get_bytes<const N: usize>(row: &Row, name: &str) -> Result<[u8; N]> {
    row.get(name)
}

fn record(row: &Row) -> Result<Record> {
    let terms = Terms {
        id: row.get("id")?,
        reference: row.get("reference")?,
        asset: Asset(get_bytes(row, "asset")?.into()),
        amount: Amount(row.get::<_, Units>("amount")?.0),
        memo: get_bytes(row, "memo")?.into(),
        created_at_ms: get_u64(row, "created_at_ms")?,
        expires_at: get_u64(row, "expires_at")?,
        checkout: Checkout {
            description: row.get("description")?,
            items: row.get::<_, Option<Lines>>("items")?.map(|lines| lines.0).unwrap_or_default(),
            return_url: row.get("return_url")?,
        },
        checkout_key: row.get("checkout_key")?,
    };
    let totals = Totals {
        payments: get_u64(row, "payments")?,
        whole: get_u64(row, "whole")?,
        received: row.get::<_, Units>("received")?.0,
        in_time: row.get::<_, Units>("in_time")?.0,
    };
    Ok(Record { number: row.get("number")?, terms, totals, state: row.get("state")? })
}

pub(super) fn payment(row: &Row) -> Result<Payment> {
    let output: i32 = row.get("output")?;
    let arrival = Arrival {
        sender: AccountId(get_bytes(row, "sender")?),
        sequence: SequenceNumber(get_u64(row, "sequence")?),
        output: u16::try_from(output).ok(),
        asset: Asset(get_bytes(row, "asset")?.into()),
        amount: Amount(row.get::<_, Units>("amount")?.0),
        memo: get_bytes(row, "memo")?.into(),
        received_at_ms: get_u64(row, "received_at_ms")?,
        after_ms: get_u64(row, "after_ms")?,
    };
    Ok(Payment { number: row.get("number")?, arrival })
}

fn delivery(row: &Row) -> Result<Delivery> {
    let (outcome, reason, due): (Option<String>, Option<String>, Option<i64>) =
        (row.get("outcome")?, row.get("reason")?, row.get("due_at_ms")?);
    let reason = reason.unwrap_or_default();
    let last = match (outcome.as_deref(), due) {
        (Some("delivered"), _) => Some(Outcome::Delivered),
        (Some("given_up"), _) => Some(Outcome::GivenUp { reason }),
        (Some("failed"), Some(next)) => Some(Outcome::Failed { reason, next_at_ms: next.cast_unsigned() }),
        _ => None,
    };
    let event = Event { id: row.get("id")?, state: row.get("state")?, body: row.get("body")? };
    Ok(Delivery { event, attempts: row.get("attempts")?, last })
}

/// A payment's primary key, in the form of the columns.
pub(super) fn key(name: &PaymentName) -> ([u8; 32], i64, i32) {
    (name.sender.0, name.sequence.0.cast_signed(), name.output.map_or(-1, i32::from))
}

/// The rows, within a transaction or outside one.
pub(crate) struct Rows<'a>(pub(super) &'a Connection);

impl Rows<'_> {
    pub(super) fn statement(&self, sql: &str) -> Result<CachedStatement<'_>> {
        self.0.prepare_cached(sql)
    }

    pub(super) fn one<T>(&self, sql: &str, of: impl Params, read: impl FnOnce(&Row) -> Result<T>) -> Result<Option<T>> {
        self.statement(sql)?.query_row(of, read).optional()
    }

    pub(super) fn all<T>(&self, sql: &str, of: impl Params, read: impl FnMut(&Row) -> Result<T>) -> Result<Vec<T>> {
        self.statement(sql)?.query_map(of, read)?.collect()
    }

    fn count(&self, sql: &str) -> Result<u64> {
        self.statement(sql)?.query_row([], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
    }

    pub fn looked_at_ms(&self) -> Result<u64> {
        self.statement("SELECT looked_at_ms FROM service")?.query_row([], |row| get_u64(row, "looked_at_ms"))
    }

    /// Notes when the wallet read. The time never goes back.
    pub fn set_looked_at_ms(&self, at_ms: u64) -> Result<()> {
        let sql = "UPDATE service SET looked_at_ms = ?1 WHERE looked_at_ms < ?1";
        self.statement(sql)?.execute([at_ms.cast_signed()]).map(drop)
    }

    pub fn add_invoice(&self, terms: &Terms) -> Result<()> {
        let sql = "INSERT INTO invoice (id, reference, asset, amount, memo, created_at_ms, expires_at, description,
            items, return_url, checkout_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let Terms { id, reference, asset, amount, memo, created_at_ms, expires_at, checkout, checkout_key } = terms;
        let (asset, amount, memo) = (asset.0.as_slice(), Units(amount.0), memo.as_slice());
        let (created, expires) = (created_at_ms.cast_signed(), expires_at.cast_signed());
        let Checkout { description, items, return_url } = checkout;
        let has_items = !items.is_empty();
        let items = has_items.then(|| serde_json::to_string(items).expect("an item is text and numbers"));
        self.statement(sql)?
            .execute(params![
                id,
                reference,
                asset,
                amount,
                memo,
                created,
                expires,
                description,
                items,
                return_url,
                checkout_key
            ])
            .map(drop)
    }

    /// The invoice of this checkout page.
    pub fn invoice_of_checkout(&self, key: &str) -> Result<Option<Record>> {
        self.one("SELECT * FROM invoice WHERE checkout_key = ?", [key], record)
    }

    pub fn invoice(&self, id: &str) -> Result<Option<Record>> {
        self.one("SELECT * FROM invoice WHERE id = ?", [id], record)
    }

    pub fn invoice_numbered(&self, number: i64) -> Result<Option<Record>> {
        self.one("SELECT * FROM invoice WHERE number = ?", [number], record)
    }

    pub fn invoice_of_reference(&self, reference: &str) -> Result<Option<Record>> {
        self.one("SELECT * FROM invoice WHERE reference = ?", [reference], record)
    }

    pub fn invoice_of_memo(&self, memo: &Memo) -> Result<Option<Record>> {
        self.one("SELECT * FROM invoice WHERE memo = ?", [memo.as_slice()], record)
    }

    /// Up to `count` invoices that follow the one with this number, in one state or in all.
    pub fn invoices_after(&self, number: i64, order: Order, state: Option<State>, count: usize) -> Result<Vec<Record>> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let follows = match order {
            Order::OldestFirst => "number > ? ORDER BY number",
            Order::NewestFirst => "number < ? ORDER BY number DESC",
        };
        match state {
            None => self.all(&format!("SELECT * FROM invoice WHERE {follows} LIMIT ?"), [number, count], record),
            Some(state) => {
                let sql = format!("SELECT * FROM invoice WHERE state = ? AND {follows} LIMIT ?");
                self.all(&sql, (state, number, count), record)
            }
        }
    }

    /// The invoice that an earlier program archived under this reference.
    pub fn archived(&self, reference: &str) -> Result<Option<String>> {
        self.one("SELECT id FROM archived_invoice WHERE reference = ?", [reference], |row| row.get(0))
    }

    /// The open invoices that end by this time.
    pub fn ended(&self, at_ms: u64) -> Result<Vec<i64>> {
        let sql = "SELECT number FROM invoice WHERE state = 'open' AND expires_at <= ? ORDER BY expires_at, number";
        self.all(sql, [(at_ms / 1_000).cast_signed()], |row| row.get(0))
    }

    pub fn set_state(&self, number: i64, state: State) -> Result<()> {
        self.statement("UPDATE invoice SET state = ? WHERE number = ?")?.execute((state, number)).map(drop)
    }

    pub fn has_payment(&self, name: &PaymentName) -> Result<bool> {
        let known = |table: &str| {
            let sql = format!("SELECT 1 FROM {table} WHERE sender = ? AND sequence = ? AND output = ?");
            self.statement(&sql)?.exists(key(name))
        };
        Ok(known("payment")? || known("archived_payment")?)
    }

    /// Adds a payment once, and counts it for the invoice of its memo and asset.
    pub fn add_payment(&self, arrival: &Arrival) -> Result<()> {
        if self.has_payment(&arrival.name())? {
            return Ok(());
        }
        let invoice = self.invoice_of_memo(&arrival.memo)?.filter(|invoice| invoice.terms.asset == arrival.asset);
        let number = invoice.as_ref().map(|invoice| invoice.number);
        let sql =
            "INSERT INTO payment (invoice, sender, sequence, output, asset, amount, memo, received_at_ms, after_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let (sender, sequence, output) = key(&arrival.name());
        let Arrival { asset, amount, memo, received_at_ms, after_ms, .. } = arrival;
        let (asset, memo, amount) = (asset.0.as_slice(), memo.as_slice(), Units(amount.0));
        let (received, after) = (received_at_ms.cast_signed(), after_ms.cast_signed());
        self.statement(sql)?.execute((number, sender, sequence, output, asset, amount, memo, received, after))?;
        if let Some(Record { terms, mut totals, .. }) = invoice {
            totals.add(arrival, &terms);
            let sql = "UPDATE invoice SET payments = :payments, whole = :whole, received = :received,
                in_time = :in_time, state = :state, is_untold = 1 WHERE number = :number";
            self.statement(sql)?.execute(named_params! {
                ":payments": totals.payments.cast_signed(),
                ":whole": totals.whole.cast_signed(),
                ":received": Units(totals.received),
                ":in_time": Units(totals.in_time),
                ":state": totals.state(&terms),
                ":number": number,
            })?;
        }
        Ok(())
    }

    /// The invoices with payments that no event has reported yet.
    pub fn unreported(&self) -> Result<Vec<i64>> {
        self.all("SELECT number FROM invoice WHERE is_untold = 1 ORDER BY number", [], |row| row.get(0))
    }

    /// Notes that events have reported all payments of an invoice.
    pub fn announced(&self, number: i64) -> Result<()> {
        self.statement("UPDATE invoice SET is_untold = 0 WHERE number = ?")?.execute([number]).map(drop)
    }

    /// The largest payments of an invoice, in the order of arrival. Of equal ones, the earlier are included.
    pub fn greatest(&self, invoice: i64, count: usize) -> Result<Vec<Arrival>> {
        let sql = "SELECT * FROM payment WHERE invoice = ? ORDER BY amount DESC, number LIMIT ?";
        let mut payments = self.all(sql, (invoice, i64::try_from(count).unwrap_or(i64::MAX)), payment)?;
        payments.sort_unstable_by_key(|payment| payment.number);
        Ok(payments.into_iter().map(|payment| payment.arrival).collect())
    }

    /// The payments of an invoice, or of none, after the one with this number, in the order of arrival.
    pub fn payments_after(&self, invoice: Option<i64>, number: i64, count: usize) -> Result<Vec<Payment>> {
        let sql = "SELECT * FROM payment WHERE invoice IS ? AND number > ? ORDER BY number LIMIT ?";
        self.all(sql, (invoice, number, i64::try_from(count).unwrap_or(i64::MAX)), payment)
    }

    /// Up to `count` payments of an invoice, or of none, before the one with this number, newest first.
    pub fn payments_before(&self, invoice: Option<i64>, number: i64, count: usize) -> Result<Vec<Payment>> {
        let sql = "SELECT * FROM payment WHERE invoice IS ? AND number < ? ORDER BY number DESC LIMIT ?";
        self.all(sql, (invoice, number, i64::try_from(count).unwrap_or(i64::MAX)), payment)
    }

    /// Adds an event whose outcome is known.
    pub fn add_event(&self, invoice: i64, looked_at_ms: u64, delivery: &Delivery) -> Result<()> {
        let sql = "INSERT INTO event (invoice, looked_at_ms, id, state, body, attempts) VALUES (?, ?, ?, ?, ?, ?)";
        let Delivery { event: Event { id, state, body }, attempts, .. } = delivery;
        self.statement(sql)?.execute((invoice, looked_at_ms.cast_signed(), id, state, body, attempts))?;
        self.set_outcome(id, delivery.last.as_ref())
    }

    /// Counts an attempt.
    pub fn attempted(&self, event: &str, outcome: &Outcome) -> Result<()> {
        self.statement("UPDATE event SET attempts = attempts + 1 WHERE id = ?")?.execute([event])?;
        self.set_outcome(event, Some(outcome))
    }

    /// Gives up all waiting events. Returns their number.
    pub fn give_up(&self, reason: &str) -> Result<usize> {
        let sql = "UPDATE event SET outcome = 'given_up', reason = ?, due_at_ms = NULL, body = ''
            WHERE due_at_ms IS NOT NULL";
        self.statement(sql)?.execute([reason])
    }

    fn set_outcome(&self, event: &str, outcome: Option<&Outcome>) -> Result<()> {
        let (name, reason, due) = match outcome {
            None => (None, None, Some(0)),
            Some(Outcome::Delivered) => (Some("delivered"), None, None),
            Some(Outcome::Failed { reason, next_at_ms }) => {
                (Some("failed"), Some(reason), Some(next_at_ms.cast_signed()))
            }
            Some(Outcome::GivenUp { reason }) => (Some("given_up"), Some(reason), None),
        };
        let sql = "UPDATE event SET outcome = ?2, reason = ?3, due_at_ms = ?4,
            body = CASE WHEN ?4 IS NULL THEN '' ELSE body END WHERE id = ?1";
        self.statement(sql)?.execute((event, name, reason, due)).map(drop)
    }

    /// The events of an invoice, oldest first.
    pub fn events(&self, invoice: i64) -> Result<Vec<Delivery>> {
        self.all("SELECT * FROM event WHERE invoice = ? ORDER BY number", [invoice], delivery)
    }

    /// The number of an invoice's events, and the state that the last one reported.
    pub fn reported(&self, invoice: i64) -> Result<(u64, Option<State>)> {
        let sql = "SELECT count(*), (SELECT state FROM event WHERE invoice = ?1 ORDER BY number DESC LIMIT 1)
            FROM event WHERE invoice = ?1";
        self.statement(sql)?.query_row([invoice], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)))
    }

    /// Up to `count` events that are due by `by_ms`, or only after `beyond_ms`, oldest first.
    pub fn due(&self, by_ms: u64, beyond_ms: u64, count: usize) -> Result<Vec<Delivery>> {
        let sql = "SELECT * FROM event WHERE due_at_ms IS NOT NULL AND (due_at_ms <= ? OR due_at_ms > ?)
            ORDER BY looked_at_ms, number LIMIT ?";
        let [by, beyond] = [by_ms, beyond_ms].map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        self.all(sql, (by, beyond, i64::try_from(count).unwrap_or(i64::MAX)), delivery)
    }

    pub fn count_open(&self) -> Result<u64> {
        self.count("SELECT count(*) FROM invoice WHERE state = 'open'")
    }

    pub fn count_unmatched(&self) -> Result<u64> {
        self.count("SELECT count(*) FROM payment WHERE invoice IS NULL")
    }

    pub fn count_waiting(&self) -> Result<u64> {
        self.count("SELECT count(*) FROM event WHERE due_at_ms IS NOT NULL")
    }

    pub fn count_failing(&self) -> Result<u64> {
        self.count("SELECT count(*) FROM event WHERE due_at_ms IS NOT NULL AND attempts > 0")
    }
}

//! The rows of refunds.

use fastpay_core::{AccountId, Amount, Asset, Digest, Memo};
use rusqlite::{Result, Row};

use super::rows::{Rows, Units, get_bytes, get_u64};

/// A list of refunds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundList {
    pub(crate) number: i64,
    /// The owner's reference.
    pub reference: String,
    /// The request, as JSON.
    pub request: String,
    /// The time, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The number of its lines.
    pub refunds: u64,
    /// The number of paid lines.
    pub paid: u64,
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    pub(crate) number: i64,
    /// The invoice; `None` for a payment of no invoice.
    pub invoice: Option<String>,
    /// The account that paid and receives the refund.
    pub recipient: AccountId,
    /// The asset of the refund.
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
    /// The memo that the refund must carry.
    pub memo: Memo,
    /// The order that paid it.
    pub paid: Option<PaidBy>,
}

/// The order that paid a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaidBy {
    /// Its number among the account's.
    pub sequence: u64,
    /// The output's number, if it is a payout.
    pub output: Option<u16>,
    /// Its digest.
    pub digest: Digest,
}

fn list(row: &Row) -> Result<RefundList> {
    Ok(RefundList {
        number: row.get("number")?,
        reference: row.get("reference")?,
        request: row.get("request")?,
        created_at_ms: get_u64(row, "created_at_ms")?,
        refunds: get_u64(row, "refunds")?,
        paid: get_u64(row, "paid")?,
    })
}

fn refund(row: &Row) -> Result<Refund> {
    let digest: Option<[u8; 32]> = row.get("paid_digest")?;
    let paid = digest.map(|digest| {
        let output: Option<u16> = row.get("paid_output")?;
        Ok::<_, rusqlite::Error>(PaidBy { sequence: get_u64(row, "paid_sequence")?, output, digest: digest.into() })
    });
    Ok(Refund {
        number: row.get("number")?,
        invoice: row.get("invoice_id")?,
        recipient: AccountId(get_bytes(row, "sender")?),
        asset: Asset(get_bytes(row, "asset")?.into()),
        amount: Amount(row.get::<_, Units>("amount")?.0),
        memo: get_bytes(row, "memo")?.into(),
        paid: paid.transpose()?,
    })
}

const LISTS: &str = "SELECT *, (SELECT count(*) FROM refund WHERE list = refund_list.number) AS refunds,
    (SELECT count(paid_digest) FROM refund WHERE list = refund_list.number) AS paid FROM refund_list";
const REFUNDS: &str = "SELECT refund.*, payment.sender, payment.asset, invoice.id AS invoice_id FROM refund
    JOIN payment ON payment.number = refund.payment LEFT JOIN invoice ON invoice.number = payment.invoice";

impl Rows<'_> {
    pub fn add_refund_list(&self, reference: &str, request: &str, created_at_ms: u64) -> Result<i64> {
        let sql = "INSERT INTO refund_list (reference, request, created_at_ms) VALUES (?, ?, ?)";
        self.statement(sql)?.insert((reference, request, created_at_ms.cast_signed()))
    }

    pub fn add_refund(&self, list: i64, payment: i64, memo: &Memo, amount: Amount) -> Result<()> {
        let sql = "INSERT INTO refund (list, payment, memo, amount) VALUES (?, ?, ?, ?)";
        self.statement(sql)?.execute((list, payment, memo.as_slice(), Units(amount.0))).map(drop)
    }

    pub fn refund_list(&self, reference: &str) -> Result<Option<RefundList>> {
        self.one(&format!("{LISTS} WHERE reference = ?"), [reference], list)
    }

    /// Up to `count` lists after the one with this number, oldest first.
    pub fn refund_lists_after(&self, number: i64, count: usize) -> Result<Vec<RefundList>> {
        let sql = format!("{LISTS} WHERE number > ? ORDER BY number LIMIT ?");
        self.all(&sql, (number, i64::try_from(count).unwrap_or(i64::MAX)), list)
    }

    /// The lines of a list.
    pub fn refunds(&self, list: i64) -> Result<Vec<Refund>> {
        self.all(&format!("{REFUNDS} WHERE list = ? ORDER BY refund.number"), [list], refund)
    }

    pub fn refund_of_memo(&self, memo: &Memo) -> Result<Option<Refund>> {
        self.one(&format!("{REFUNDS} WHERE refund.memo = ?"), [memo.as_slice()], refund)
    }

    /// The amount of a payment that is on lists, paid or not.
    pub fn refunded(&self, payment: i64) -> Result<u128> {
        let amounts =
            self.all("SELECT amount FROM refund WHERE payment = ?", [payment], |row| row.get::<_, Units>(0))?;
        Ok(amounts.into_iter().fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }

    /// The amount of an invoice's payments that is on lists, paid or not.
    pub fn refunded_of(&self, invoice: i64) -> Result<u128> {
        let sql = "SELECT refund.amount FROM refund JOIN payment ON payment.number = refund.payment WHERE invoice = ?";
        let amounts = self.all(sql, [invoice], |row| row.get::<_, Units>(0))?;
        Ok(amounts.into_iter().fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }

    pub fn has_open_refunds(&self) -> Result<bool> {
        self.statement("SELECT 1 FROM refund WHERE paid_digest IS NULL")?.exists([])
    }

    pub fn set_paid(&self, refund: i64, by: &PaidBy) -> Result<()> {
        let sql = "UPDATE refund SET paid_sequence = ?, paid_output = ?, paid_digest = ? WHERE number = ?";
        let PaidBy { sequence, output, digest } = by;
        self.statement(sql)?.execute((sequence.cast_signed(), output, digest.as_slice(), refund)).map(drop)
    }

    /// The number of the account's next order in which to search for refunds.
    pub fn sent_next(&self) -> Result<u64> {
        self.statement("SELECT sent_next FROM service")?.query_row([], |row| get_u64(row, "sent_next"))
    }

    pub fn set_sent_next(&self, sequence: u64) -> Result<()> {
        self.statement("UPDATE service SET sent_next = ?")?.execute([sequence.cast_signed()]).map(drop)
    }
}

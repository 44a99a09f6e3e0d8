//! The rows of payouts to Ethereum.

use fastpay_core::{Amount, Asset, Digest, Memo, PrimaryAddress, SequenceNumber};
use rusqlite::{Result, Row};

use super::rows::{Rows, Units, get_bytes, get_u64};
use crate::payout::PayoutRequest;

/// A payout to Ethereum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payout {
    pub(crate) number: i64,
    /// The owner's reference.
    pub reference: String,
    /// The asset.
    pub asset: Asset,
    /// The amount that leaves the account, including the fee.
    pub amount: Amount,
    /// The address on Ethereum that receives it.
    pub recipient: PrimaryAddress,
    /// The proposed fee for the relayer.
    pub fee: Amount,
    /// The memo that the order must carry.
    pub memo: Memo,
    /// The time, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The account's order that redeems it.
    pub ordered: Option<(SequenceNumber, Digest)>,
    /// The state of that order on Ethereum.
    pub ethereum: Option<String>,
}

fn payout(row: &Row) -> Result<Payout> {
    let digest: Option<[u8; 32]> = row.get("digest")?;
    let ordered =
        digest.map(|digest| Ok::<_, rusqlite::Error>((SequenceNumber(get_u64(row, "sequence")?), digest.into())));
    Ok(Payout {
        number: row.get("number")?,
        reference: row.get("reference")?,
        asset: Asset(get_bytes(row, "asset")?.into()),
        amount: Amount(row.get::<_, Units>("amount")?.0),
        recipient: PrimaryAddress::from(get_bytes(row, "recipient")?),
        fee: Amount(row.get::<_, Units>("fee")?.0),
        memo: get_bytes(row, "memo")?.into(),
        created_at_ms: get_u64(row, "created_at_ms")?,
        ordered: ordered.transpose()?,
        ethereum: row.get("ethereum")?,
    })
}

impl Rows<'_> {
    pub fn add_payout(&self, request: &PayoutRequest, fee: Amount, memo: &Memo, created_at_ms: u64) -> Result<()> {
        let sql = "INSERT INTO payout (reference, asset, amount, recipient, fee, memo, created_at_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?)";
        let PayoutRequest { reference, asset, amount, recipient } = request;
        let (asset, recipient, amount, fee) = (asset.0.as_slice(), recipient.as_slice(), Units(amount.0), Units(fee.0));
        let created = created_at_ms.cast_signed();
        self.statement(sql)?.execute((reference, asset, amount, recipient, fee, memo.as_slice(), created)).map(drop)
    }

    pub fn payout(&self, reference: &str) -> Result<Option<Payout>> {
        self.one("SELECT * FROM payout WHERE reference = ?", [reference], payout)
    }

    pub fn payout_of_memo(&self, memo: &Memo) -> Result<Option<Payout>> {
        self.one("SELECT * FROM payout WHERE memo = ?", [memo.as_slice()], payout)
    }

    /// Up to `count` payouts before the one with this number, newest first.
    pub fn payouts_before(&self, number: i64, count: usize) -> Result<Vec<Payout>> {
        let sql = "SELECT * FROM payout WHERE number < ? ORDER BY number DESC LIMIT ?";
        self.all(sql, (number, i64::try_from(count).unwrap_or(i64::MAX)), payout)
    }

    /// The payouts that are ordered, and whose state on Ethereum may still change.
    pub fn payouts_on_their_way(&self) -> Result<Vec<Payout>> {
        self.all("SELECT * FROM payout WHERE is_done = 0 AND digest IS NOT NULL ORDER BY number", [], payout)
    }

    pub fn has_unordered_payouts(&self) -> Result<bool> {
        self.statement("SELECT 1 FROM payout WHERE is_done = 0 AND digest IS NULL")?.exists([])
    }

    pub fn set_ordered(&self, payout: i64, sequence: u64, digest: &Digest) -> Result<()> {
        let sql = "UPDATE payout SET sequence = ?, digest = ? WHERE number = ?";
        self.statement(sql)?.execute((sequence.cast_signed(), digest.as_slice(), payout)).map(drop)
    }

    pub fn set_ethereum(&self, payout: i64, state: &str, is_done: bool) -> Result<()> {
        let sql = "UPDATE payout SET ethereum = ?, is_done = ? WHERE number = ?";
        self.statement(sql)?.execute((state, is_done, payout)).map(drop)
    }

    /// The assets of invoices.
    pub fn assets(&self) -> Result<Vec<Asset>> {
        self.all("SELECT DISTINCT asset FROM invoice", [], |row| Ok(Asset(get_bytes(row, "asset")?.into())))
    }
}

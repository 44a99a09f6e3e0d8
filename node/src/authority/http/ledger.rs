//! Reads that need no account: the redemption log, transfers by digest, deposits by index.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use fastpay_core::{Digest, LedgerBase, Pruned, Record, ShardId, TransactionIndex};
use fastpay_rpc::http::Retry;
use fastpay_rpc::json::{
    Bytes32, ConfirmedTransfer, Decimal, Deposit, Hex, NewTransfer, NewTransfers, Problem, ProblemCode, RedemptionPage,
    Uint64, WaitingRedemptions,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Path, Query, range};
use super::problem::{ApiError, OfEntry, OfFound};
use super::{Node, SharedNode};
use crate::authority::index::{Index, IndexError, IndexedTransfer, Place};
use crate::authority::network;
use crate::authority::shard::HistoryError;
use crate::authority::storage::JournalError;

/// How long a client waits before it asks an index again that is behind.
const INDEX_RETRY: Duration = Duration::from_millis(500);
/// How long a client waits before it asks again for waiting redemptions, if the Primary has not been read yet.
const PAYOUTS_RETRY: Duration = Duration::from_secs(5);

/// Which redemptions are asked for. (Flattened parameters cannot deny unknown ones, so the page is written out.)
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RedemptionParams {
    /// The shard; by default the first. `/v1/status` lists the shards.
    pub shard: Option<Uint64>,
    /// The number of the first entry, from 0.
    pub start: Option<Uint64>,
    /// The maximum number of entries. 0 or a greater number means a whole page, at most 100.
    pub limit: Option<Uint64>,
}

/// The redemption log
///
/// Redemption certificates confirmed at one shard, oldest first: what relayers bring to the contract.
#[utoipa::path(get, path = "/v1/redemptions", tag = "Ledger", operation_id = "listRedemptions",
    params(RedemptionParams),
    responses((status = 200, description = "Certificates in the order of confirmation.", body = RedemptionPage), OfEntry))]
pub(super) async fn redemptions(
    State(node): SharedNode,
    Query(params): Query<RedemptionParams>,
) -> Result<Json<RedemptionPage>, ApiError> {
    let number = params.shard.map_or(0, |shard| shard.0);
    let shard = u32::try_from(number).ok().filter(|shard| *shard < node.layout.count());
    let reads = shard.and_then(|shard| node.shards.get(shard as usize));
    let (Some(shard), Some(reads)) = (shard, reads) else {
        let count = node.layout.count();
        let detail = format!("there is no shard {number}; this authority has {count}, counted from 0");
        return Err(ApiError::new(ProblemCode::NotFound, detail));
    };
    let voter_status = node.context.voter_status.borrow().clone();
    let page = reads.redemptions(&voter_status, range(params.start, params.limit)).await?;
    Ok(Json(RedemptionPage::new(ShardId(shard), &page)))
}

/// The redemptions that wait
///
/// Certified here, and neither paid nor queued by the Primary: by a contract in its final block, or by a ledger. A list
/// for people: what the Primary says is what counts.
#[utoipa::path(get, path = "/v1/redemptions/waiting", tag = "Ledger", operation_id = "listWaitingRedemptions",
    responses((status = 200, description = "Longest first.", body = WaitingRedemptions), OfFound))]
pub(super) async fn waiting_redemptions(State(node): SharedNode) -> Result<Json<WaitingRedemptions>, ApiError> {
    let not_here = |detail: &str| Problem::new(ProblemCode::NotFound, detail.to_owned());
    let Some(waiting) = &node.context.waiting else {
        return Err(not_here("this authority has no Primary, so nothing is redeemed").into());
    };
    let Some(waiting) = waiting.borrow().clone() else {
        let problem = not_here("the Primary was not asked yet; ask again").retry_after(PAYOUTS_RETRY);
        return Err(Problem { retry: Retry::Later, ..problem }.into());
    };
    Ok(Json(waiting.as_ref().clone()))
}

/// The newest transfers
///
/// At most 20, as the index came across them, a moment behind the confirmations. A list for people: the certificate of
/// each proves it (`readCertificates`), and that there is no newer one nothing proves.
#[utoipa::path(get, path = "/v1/transfers", tag = "Ledger", operation_id = "listNewTransfers",
    responses((status = 200, description = "Newest first.", body = NewTransfers), OfFound))]
pub(super) async fn new_transfers(State(node): SharedNode) -> Result<Json<NewTransfers>, ApiError> {
    let Some(index) = node.context.index.as_ref().filter(|index| !index.has_failed()) else {
        return Err(not_indexed(&node, "nothing is listed here"));
    };
    let transfers = index.newest().into_iter().map(|IndexedTransfer { sender, sequence, digest }| NewTransfer {
        sender: sender.into(),
        sequence: Decimal(sequence.0),
        digest: Hex(digest.0),
    });
    Ok(Json(NewTransfers { transfers: transfers.collect() }))
}

/// A transfer by its digest
///
/// The EIP-712 digest that its sender signed. Only confirmed ones, found by an index that follows a moment behind the
/// confirmations.
#[utoipa::path(get, path = "/v1/transfers/{digest}", tag = "Ledger", operation_id = "getTransfer",
    params(("digest" = Bytes32, Path, description = "The EIP-712 digest of the transfer.")),
    responses((status = 200, description = "The transfer's sender, number and certificate.", body = ConfirmedTransfer),
        OfFound))]
pub(super) async fn transfer(
    State(node): SharedNode,
    Path(wanted): Path<Bytes32>,
) -> Result<Json<ConfirmedTransfer>, ApiError> {
    let digest = Digest::from(wanted.0);
    if let Some(Record::Confirmation { certificate, .. }) = indexed(&node, move |index| index.transfer(&digest)).await?
    {
        let transfer = &certificate.order.transfer;
        if node.context.domain.transfer_digest(transfer) == digest {
            let (sender, sequence) = (transfer.sender().into(), Decimal(transfer.sequence().0));
            return Ok(Json(ConfirmedTransfer { sender, sequence, certificate: certificate.as_ref().into() }));
        }
    }
    let Some(base) = base(&node) else {
        return Err(not_indexed(&node, "no transfer of this digest is confirmed here"));
    };
    let checkpoint = base.number;
    let what = format!(
        "no transfer of this digest is kept here; those of before are in the committee's archive, up to checkpoint \
         {checkpoint}"
    );
    Err(not_indexed(&node, &what))
}

/// A deposit by its index
///
/// The index is the contract's. In a committee without a Primary, the deposits are the genesis balances.
#[utoipa::path(get, path = "/v1/deposits/{index}", tag = "Ledger", operation_id = "getDeposit",
    params(("index" = Uint64, Path, description = "Its number among all deposits of the contract, from 1.")),
    responses((status = 200, description = "The deposit.", body = Deposit), OfFound))]
pub(super) async fn deposit(State(node): SharedNode, Path(wanted): Path<Uint64>) -> Result<Json<Deposit>, ApiError> {
    let wanted = TransactionIndex(wanted.0);
    let record = indexed(&node, move |index| index.deposit(wanted)).await?;
    if let Some(base) = base(&node).filter(|base| wanted <= base.synchronized) {
        let first = base.synchronized.0.saturating_add(1);
        return Err(ApiError::pruned(&Pruned { checkpoint: base.number, first }));
    }
    match record.as_ref().and_then(network::deposit) {
        Some(deposit) if deposit.index == wanted => Ok(Json(deposit.into())),
        _ => Err(not_indexed(&node, "no deposit of this index is credited here")),
    }
}

/// What the journals begin with; none if they begin with the first record. It is the same in all shards.
fn base(node: &Node) -> Option<&LedgerBase> {
    node.reads().history_reader().base()
}

/// The record to which the index points.
async fn indexed(
    node: &Node,
    find: impl FnOnce(&Index) -> Result<Option<Place>, IndexError> + Send + 'static,
) -> Result<Option<Record>, ApiError> {
    let Some(index) = node.context.index.clone() else { return Ok(None) };
    let shards = node.context.shards.clone();
    let read = move || {
        let place = find(&index).unwrap_or_else(|error| {
            tracing::error!(%error, "the index cannot be read");
            None
        });
        let Some(place) = place else { return Ok(None) };
        let Some((_, history)) = shards.get(place.shard.0 as usize) else { return Ok(None) };
        match history.record(place.position) {
            // The index is from another time than the journal.
            Err(HistoryError::Journal(JournalError::BadRecord { .. } | JournalError::OutOfRange { .. })) => Ok(None),
            record => record.map(Some),
        }
    };
    Ok(node.reads().blocking(read).await?)
}

/// Why the index does not find an entry, and whether the client should ask again.
fn not_indexed(node: &Node, what: &str) -> ApiError {
    match &node.context.index {
        None => ApiError::new(ProblemCode::NotFound, "this authority keeps no index; ask another one"),
        Some(index) if index.has_failed() => {
            ApiError::new(ProblemCode::NotFound, format!("{what}, and its index has failed; ask another one"))
        }
        Some(index) => match index.bytes_behind() {
            0 => ApiError::new(ProblemCode::NotFound, what),
            bytes => {
                let detail = format!("{what}, as far as the index goes: it is {bytes} bytes behind; ask again");
                let problem = Problem::new(ProblemCode::NotFound, detail).retry_after(INDEX_RETRY);
                Problem { retry: Retry::Later, ..problem }.into()
            }
        },
    }
}

//! Entries of one account in the archive, with their proof.

use axum::Json;
use axum::extract::State;
use fastpay_core::SequenceNumber;
use fastpay_core::checkpoint::ArchivedList;
use fastpay_rpc::ArchivedRequest;
use fastpay_rpc::json::{Account, ArchiveCursor, ArchivedPage, Uint64};
use serde::Deserialize;
use utoipa::IntoParams;

use super::SharedNode;
use super::extract::{Path, Query};
use super::problem::{ApiError, OfArchive};

/// Where a list of numbers begins.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SentParams {
    /// The first number; 0 if it is not given.
    pub from: Option<Uint64>,
    /// The maximum number of entries. 0 or a greater number means 100, a whole page.
    pub limit: Option<Uint64>,
    /// Whether the client knows leaf 0x24: what a recovery debited without its owner's order. Otherwise a list that
    /// would have one is refused.
    pub paid: Option<bool>,
}

/// Where a list of payments begins.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReceivedParams {
    /// The `next` of the page before; 0.0 if it is not given.
    pub cursor: Option<ArchiveCursor>,
    /// The maximum number of entries. 0 or a greater number means 100, a whole page.
    pub limit: Option<Uint64>,
}

/// Archived numbers of an account
///
/// The numbers that the account took, in order, from this authority's archive of checkpoints, with their proof.
#[utoipa::path(get, path = "/v1/accounts/{account}/archived/sent", tag = "Accounts", operation_id = "listArchivedSent",
    params(("account" = Account, Path, description = "The sender."), SentParams),
    responses((status = 200, description = "Numbers without a gap.", body = ArchivedPage), OfArchive))]
pub(super) async fn sent(
    node: SharedNode,
    Path(account): Path<Account>,
    Query(SentParams { from, limit, paid }): Query<SentParams>,
) -> Result<Json<ArchivedPage>, ApiError> {
    let from = SequenceNumber(from.map_or(0, |from| from.0));
    read(node, account, ArchivedList::Sent(from), limit, paid.unwrap_or_default()).await
}

/// Archived payments to an account
///
/// The transfers that paid the account, by checkpoint, sender and number, from this authority's archive of checkpoints,
/// with their proof. That none is missing is not proven.
#[utoipa::path(get, path = "/v1/accounts/{account}/archived/received", tag = "Accounts",
    operation_id = "listArchivedReceived",
    params(("account" = Account, Path, description = "The recipient."), ReceivedParams),
    responses((status = 200, description = "Transfers in order.", body = ArchivedPage), OfArchive))]
pub(super) async fn received(
    node: SharedNode,
    Path(account): Path<Account>,
    Query(ReceivedParams { cursor, limit }): Query<ReceivedParams>,
) -> Result<Json<ArchivedPage>, ApiError> {
    read(node, account, ArchivedList::Received(cursor.unwrap_or_default().0), limit, false).await
}

async fn read(
    State(node): SharedNode,
    account: Account,
    list: ArchivedList,
    limit: Option<Uint64>,
    with_paid: bool,
) -> Result<Json<ArchivedPage>, ApiError> {
    let limit = limit.map_or(0, |limit| u32::try_from(limit.0).unwrap_or(u32::MAX));
    let page = node.context.archived.read(ArchivedRequest { account: account.0, list, limit, with_paid }).await?;
    Ok(Json((&page).into()))
}

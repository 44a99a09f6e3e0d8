//! Reads of one account.

use axum::Json;
use axum::extract::State;
use fastpay_core::{Chain, Record, SequenceNumber};
use fastpay_rpc::json::{
    Account, AccountState, Bytes20, Certificate, Decimal, DepositPage, ProblemCode, ReceivedPage, SentPage,
    SentTransfer, Transfer, Uint64,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::SharedNode;
use super::extract::{PageParams, Path, Query};
use super::problem::{ApiError, OfEntry, OfPage, OfState};

/// Which asset is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AssetParams {
    /// Only this asset; all, up to a bound, if it is not given.
    pub asset: Option<Bytes20>,
}

/// An account
///
/// Its next number, the order that it is locked on, and its balances. An unknown account is empty.
#[utoipa::path(get, path = "/v1/accounts/{account}", tag = "Accounts", operation_id = "getAccount",
    params(("account" = Account, Path, description = "The account."), AssetParams),
    responses((status = 200, description = "The account as this authority knows it.", body = AccountState), OfState))]
pub(super) async fn account(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(params): Query<AssetParams>,
) -> Result<Json<AccountState>, ApiError> {
    let voter_status = node.context.voter_status.borrow().clone();
    let state = node.shard_of(&id.0).account_state(&voter_status, id.0, params.asset.map(Into::into)).await?;
    Ok(Json(AccountState::new(id.0, node.layout.shard_of(&id.0), &state)))
}

/// A certificate by its sender and number
///
/// Only confirmed ones. Anyone can bring it to an authority that has missed it.
#[utoipa::path(get, path = "/v1/accounts/{account}/certificates/{sequence}", tag = "Accounts",
    operation_id = "getCertificate",
    params(("account" = Account, Path, description = "The sender."),
        ("sequence" = Uint64, Path, description = "Its number among the sender's, from 0.")),
    responses((status = 200, description = "The certificate.", body = Certificate), OfEntry))]
pub(super) async fn certificate(
    State(node): SharedNode,
    Path((id, sequence)): Path<(Account, Uint64)>,
) -> Result<Json<Certificate>, ApiError> {
    match node.shard_of(&id.0).sent_certificate(id.0, SequenceNumber(sequence.0)).await? {
        Some(certificate) => Ok(Json(certificate.as_ref().into())),
        None => Err(ApiError::new(ProblemCode::NotFound, "no certificate of this number is confirmed here")),
    }
}

/// A page of what an account sent ends before a payout with which it would have more outputs than this, but has at least
/// one transfer.
const OUTPUTS_PER_PAGE_MAX: usize = 1_024;

/// Transfers sent by an account
///
/// Transfers confirmed here, oldest first.
#[utoipa::path(get, path = "/v1/accounts/{account}/sent", tag = "Accounts", operation_id = "listSent",
    params(("account" = Account, Path, description = "The sender."), PageParams),
    responses((status = 200, description = "Transfers in the order of their numbers.", body = SentPage), OfPage))]
pub(super) async fn sent(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(page): Query<PageParams>,
) -> Result<Json<SentPage>, ApiError> {
    let shard = node.shard_of(&id.0);
    let account = shard.account(id.0).await?;
    let total = Decimal(account.sent.count());
    let entries = shard.page(account.sent, page.range(), Chain::Sent).await?;
    let (mut transfers, mut outputs) = (Vec::new(), 0_usize);
    for (_, record) in &entries {
        let Some(sent) = sent_transfer(&node.context.domain, record) else { continue };
        if let Transfer::Payout { outputs: paid, .. } = &sent.transfer {
            outputs = outputs.saturating_add(paid.len());
        }
        if outputs > OUTPUTS_PER_PAGE_MAX && !transfers.is_empty() {
            break;
        }
        transfers.push(sent);
    }
    Ok(Json(SentPage { start: Decimal(page.range().start), total, transfers }))
}

/// Payments received by an account
///
/// Payments in the order of their arrival at this authority, oldest first. Other authorities may number them otherwise.
#[utoipa::path(get, path = "/v1/accounts/{account}/received", tag = "Accounts", operation_id = "listReceived",
    params(("account" = Account, Path, description = "The recipient."), PageParams),
    responses((status = 200, description = "Payments in the order of arrival.", body = ReceivedPage), OfPage))]
pub(super) async fn received(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(page): Query<PageParams>,
) -> Result<Json<ReceivedPage>, ApiError> {
    let page = node.shard_of(&id.0).received(id.0, page.range()).await?;
    Ok(Json(ReceivedPage::new(&node.context.domain, &page)))
}

/// An account's deposits
///
/// Returns deposits in order of index, oldest first.
#[utoipa::path(get, path = "/v1/accounts/{account}/deposits", tag = "Accounts", operation_id = "listDeposits",
    params(("account" = Account, Path, description = "The recipient."), PageParams),
    responses((status = 200, description = "Deposits in the order of their indices.", body = DepositPage), OfPage))]
pub(super) async fn deposits(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(page): Query<PageParams>,
) -> Result<Json<DepositPage>, ApiError> {
    Ok(Json((&node.shard_of(&id.0).deposits(id.0, page.range()).await?).into()))
}

pub(super) fn sent_transfer(domain: &fastpay_core::Domain, record: &Record) -> Option<SentTransfer> {
    match record {
        Record::Confirmation { certificate, .. } => Some(SentTransfer::new(domain, &certificate.order.transfer)),
        _ => None,
    }
}

//! What is known of an account.

use axum::Json;
use axum::extract::State;
use fastpay_core::{AccountId, Chain, Record, SequenceNumber, TransferOrder};
use fastpay_rpc::json::{
    Account, AccountState, Bytes20, Certificate, Decimal, Deposit, DepositPage, ProblemCode, ReceivedPage,
    ReceivedPayment, SentPage, SentTransfer, Transfer, Uint64,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::SharedNode;
use super::extract::{PageParams, Path, Query};
use super::problem::{OfEntry, OfPage, OfState, Rejection};
use crate::network::chosen;

/// Which asset is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AssetParams {
    /// Only this asset; all, up to a bound, where it is not given.
    pub asset: Option<Bytes20>,
}

/// An account
///
/// Its next number, the order that it is locked on, and what it holds. One that was never heard of has nothing.
#[utoipa::path(get, path = "/v1/accounts/{account}", tag = "Accounts", operation_id = "getAccount",
    params(("account" = Account, Path, description = "The account."), AssetParams),
    responses((status = 200, description = "The account as this authority knows it.", body = AccountState), OfState))]
pub(super) async fn account(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(params): Query<AssetParams>,
) -> Result<Json<AccountState>, Rejection> {
    let account = node.shard_of(&id.0).account(id.0).await?;
    let standing = node.context.standing.borrow().clone();
    let catching_up = standing.guard().is_some_and(|guard| !guard.bears_witness(id.0, &account));
    let (holdings, truncated) = chosen(account.balances.iter(), params.asset.map(Into::into));
    let pending: Option<&TransferOrder> = account.pending.as_ref().map(|pending| pending.order.as_ref());
    Ok(Json(AccountState {
        account: id,
        shard: node.layout.shard_of(&id.0).0,
        next_sequence: Decimal(account.next_sequence().0),
        pending: pending.map(Into::into),
        holdings: holdings.into_iter().map(Into::into).collect(),
        received: Decimal(account.received.count()),
        deposits: Decimal(account.deposits.count()),
        truncated,
        catching_up,
    }))
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
) -> Result<Json<Certificate>, Rejection> {
    let shard = node.shard_of(&id.0);
    let account = shard.account(id.0).await?;
    match shard.certificate(account.sent, SequenceNumber(sequence.0)).await? {
        Some(certificate) => Ok(Json(certificate.as_ref().into())),
        None => Err(Rejection::new(ProblemCode::NotFound, "no certificate of this number is confirmed here")),
    }
}

/// A page of what an account sent ends before a payout with which it would have more outputs than this, but has at least
/// one transfer.
const OUTPUTS_PER_PAGE_MAX: usize = 1_024;

/// What an account sent
///
/// Transfers confirmed here, oldest first.
#[utoipa::path(get, path = "/v1/accounts/{account}/sent", tag = "Accounts", operation_id = "listSent",
    params(("account" = Account, Path, description = "The sender."), PageParams),
    responses((status = 200, description = "Transfers in the order of their numbers.", body = SentPage), OfPage))]
pub(super) async fn sent(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(page): Query<PageParams>,
) -> Result<Json<SentPage>, Rejection> {
    let shard = node.shard_of(&id.0);
    let account = shard.account(id.0).await?;
    let total = Decimal(account.sent.count());
    let entries = shard.page(account.sent, page.start(), page.limit(), Chain::Sent).await?;
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
    Ok(Json(SentPage { start: Decimal(page.start()), total, transfers }))
}

/// What an account received
///
/// Payments in the order of their arrival at this authority, oldest first. Other authorities may number them otherwise.
#[utoipa::path(get, path = "/v1/accounts/{account}/received", tag = "Accounts", operation_id = "listReceived",
    params(("account" = Account, Path, description = "The recipient."), PageParams),
    responses((status = 200, description = "Payments in the order of arrival.", body = ReceivedPage), OfPage))]
pub(super) async fn received(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(page): Query<PageParams>,
) -> Result<Json<ReceivedPage>, Rejection> {
    let shard = node.shard_of(&id.0);
    let account = shard.account(id.0).await?;
    let total = Decimal(account.received.count());
    let entries = shard.page(account.received, page.start(), page.limit(), Chain::Received(id.0)).await?;
    let payments =
        entries.iter().filter_map(|(number, record)| received_payment(&node.context.domain, id.0, *number, record));
    Ok(Json(ReceivedPage { total, payments: payments.collect() }))
}

/// An account's deposits
///
/// In the order in which the contract numbered them, oldest first.
#[utoipa::path(get, path = "/v1/accounts/{account}/deposits", tag = "Accounts", operation_id = "listDeposits",
    params(("account" = Account, Path, description = "The recipient."), PageParams),
    responses((status = 200, description = "Deposits in the order of their indices.", body = DepositPage), OfPage))]
pub(super) async fn deposits(
    State(node): SharedNode,
    Path(id): Path<Account>,
    Query(page): Query<PageParams>,
) -> Result<Json<DepositPage>, Rejection> {
    let shard = node.shard_of(&id.0);
    let account = shard.account(id.0).await?;
    let total = Decimal(account.deposits.count());
    let entries = shard.page(account.deposits, page.start(), page.limit(), Chain::Deposits).await?;
    let deposits = entries.iter().filter_map(|(_, record)| deposit(record)).collect();
    Ok(Json(DepositPage { total, deposits }))
}

pub(super) fn received_payment(
    domain: &fastpay_core::Domain,
    account: AccountId,
    number: u64,
    record: &Record,
) -> Option<ReceivedPayment> {
    let receipt = record.received_by(account, number)?;
    Some(ReceivedPayment::new(domain, number, &receipt, record.payout_digest()))
}

pub(super) fn sent_transfer(domain: &fastpay_core::Domain, record: &Record) -> Option<SentTransfer> {
    match record {
        Record::Confirmation { certificate, .. } => Some(SentTransfer::new(domain, &certificate.order.transfer)),
        _ => None,
    }
}

pub(super) fn deposit(record: &Record) -> Option<Deposit> {
    match record {
        Record::Synchronization { order, .. } => order.deposit.as_ref().map(Into::into),
        _ => None,
    }
}

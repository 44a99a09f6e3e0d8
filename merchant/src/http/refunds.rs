//! The operations on refunds.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use fastpay_core::Amount;
use fastpay_program::http::{read_json, require_json};
use serde::Deserialize;
use utoipa::IntoParams;

use super::invoices::{BODY_BYTES_MAX, PAGE_MAX, SharedShop, check_reference};
use super::problem::{ApiError, OfInvoice, OfRefunds, ProblemCode};
use crate::forms::{NewRefunds, RefundLists, RefundPage};
use crate::refund::RefundRequest;

/// The maximum number of invoices in one request.
const INVOICES_MAX: usize = 100;

fn check(asked: NewRefunds) -> Result<RefundRequest, ApiError> {
    let NewRefunds { reference, invoices, due, unmatched } = asked;
    check_reference(&reference)?;
    if invoices.len() > INVOICES_MAX {
        return Err(ApiError::malformed(format!("invoices has at most {INVOICES_MAX} entries")));
    }
    if invoices.is_empty() && !due && !unmatched {
        return Err(ApiError::malformed("say of what: invoices, due or unmatched"));
    }
    if invoices.iter().any(|invoice| invoice.amount.is_some_and(|amount| amount.0 == 0)) {
        return Err(ApiError::malformed("amount is at least 1, in the asset's smallest unit"));
    }
    let invoices = invoices.into_iter().map(|invoice| (invoice.id, invoice.amount.map(|amount| Amount(amount.0))));
    Ok(RefundRequest { reference, invoices: invoices.collect(), due, unmatched })
}

/// Prepare refunds
///
/// A list of who is to get back how much. It moves no money: the owner's wallet pays it, each line with its memo, and the
/// service finds it paid. What is on a list is on no other. Asked again with the same reference for the same, the answer
/// is the list that there is.
#[utoipa::path(post, path = "/v1/refunds", tag = "Refunds", operation_id = "prepareRefunds", request_body = NewRefunds,
    responses((status = 201, description = "A new list, on the service's disk.", body = RefundPage),
        (status = 200, description = "The list that the same request made before.", body = RefundPage), OfRefunds))]
pub(super) async fn prepare(
    Shared(shop): SharedShop,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<RefundPage>), ApiError> {
    require_json(&headers)?;
    let request = check(read_json(body, BODY_BYTES_MAX, shop.limits.body_timeout).await?)?;
    let (list, is_new) = shop.ledger.prepare_refunds(&request)?;
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(list)))
}

fn unknown_list() -> ApiError {
    ApiError::new(ProblemCode::NotFound, "there is no list of refunds of this reference")
}

/// A list of refunds
#[utoipa::path(get, path = "/v1/refunds/{reference}", tag = "Refunds", operation_id = "getRefunds",
    params(("reference" = String, Path, description = "The reference of the list.")),
    responses((status = 200, description = "The list, with what is paid.", body = RefundPage), OfInvoice))]
pub(super) async fn show(
    Shared(shop): SharedShop,
    reference: Result<Path<String>, PathRejection>,
) -> Result<Json<RefundPage>, ApiError> {
    let Path(reference) = reference?;
    shop.ledger.refunds(&reference)?.map(Json).ok_or_else(unknown_list)
}

/// Which lists.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RefundParams {
    /// Start after the list with this reference; by default with the oldest.
    after: Option<String>,
}

/// Lists of refunds
///
/// Returns pages of 100, oldest first, without lines.
#[utoipa::path(get, path = "/v1/refunds", tag = "Refunds", operation_id = "listRefunds", params(RefundParams),
    responses((status = 200, description = "Lists of refunds.", body = RefundLists), OfInvoice))]
pub(super) async fn list(
    Shared(shop): SharedShop,
    params: Result<Query<RefundParams>, QueryRejection>,
) -> Result<Json<RefundLists>, ApiError> {
    let Query(RefundParams { after }) = params?;
    shop.ledger.refund_lists(after.as_deref(), PAGE_MAX)?.map(Json).ok_or_else(unknown_list)
}

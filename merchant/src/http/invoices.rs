//! The operations.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use fastpay_core::{Amount, Asset};
use fastpay_program::http::{read_json, require_json};
use fastpay_wallet::parse_memo;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Shop;
use super::problem::{ApiError, OfInvoice, OfRequest, OfService, ProblemCode};
use crate::checkout::{Checkout, Item};
use crate::export::{Place, ROWS_MAX};
use crate::forms::{Invoice, InvoicePage, NewInvoice, Status};
use crate::invoice::State;
use crate::request::Request;
use crate::store::Order;

/// The maximum length of a body: a request has a few fields.
pub(super) const BODY_BYTES_MAX: usize = 16 * 1_024;
const REFERENCE_LENGTH_MAX: usize = 128;
/// The maximum time to expiry, a year. For a longer time, create another invoice.
const EXPIRES_IN_MAX: u64 = 366 * 24 * 60 * 60;
/// The maximum number of invoices in one page.
pub(super) const PAGE_MAX: usize = 100;

pub(super) type SharedShop = Shared<Arc<Shop>>;

pub(super) fn check_reference(reference: &str) -> Result<(), ApiError> {
    let length = reference.chars().count();
    if !(1..=REFERENCE_LENGTH_MAX).contains(&length) || reference.chars().any(char::is_control) {
        let rule = format!("reference has 1 to {REFERENCE_LENGTH_MAX} characters, none of them a control character");
        return Err(ApiError::malformed(rule));
    }
    Ok(())
}

fn check(asked: NewInvoice) -> Result<Request, ApiError> {
    let NewInvoice { reference, amount, expires_in, asset, memo, description, items, return_url } = asked;
    check_reference(&reference)?;
    if amount.0 == 0 {
        return Err(ApiError::malformed("amount is at least 1, in the asset's smallest unit"));
    }
    if !(1..=EXPIRES_IN_MAX).contains(&expires_in) {
        return Err(ApiError::malformed(format!("expiresIn is from 1 to {EXPIRES_IN_MAX} seconds")));
    }
    let memo = memo.map(|text| parse_memo(&text)).transpose();
    let memo = memo.map_err(|error| ApiError::malformed(error.to_string()))?;
    if memo.is_some_and(|memo| memo.is_zero()) {
        return Err(ApiError::malformed("memo is not empty: it tells this invoice's payments from others"));
    }
    let asset = asset.map_or(Asset::ETHER, Asset::from);
    let checkout = Checkout { description, items: items.into_iter().map(Item::from).collect(), return_url };
    checkout.check(Amount(amount.0)).map_err(|error| ApiError::malformed(error.to_string()))?;
    Ok(Request { reference, asset, amount: Amount(amount.0), memo, expires_in, checkout })
}

/// Ask for an invoice
///
/// Repeating the request with the same reference and terms returns the existing invoice.
#[utoipa::path(post, path = "/v1/invoices", tag = "Invoices", operation_id = "createInvoice", request_body = NewInvoice,
    responses((status = 201, description = "A new invoice, on the service's disk.", body = Invoice),
        (status = 200, description = "The invoice that the same request made before.", body = Invoice), OfRequest))]
pub(super) async fn create(
    Shared(shop): SharedShop,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Invoice>), ApiError> {
    require_json(&headers)?;
    let request = check(read_json(body, BODY_BYTES_MAX, shop.limits.body_timeout).await?)?;
    let (invoice, is_new) = shop.ledger.create(&request, shop.limits.open_invoices_max)?;
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(invoice)))
}

/// An invoice
///
/// Returns the invoice with its payments and webhooks.
#[utoipa::path(get, path = "/v1/invoices/{id}", tag = "Invoices", operation_id = "getInvoice",
    params(("id" = String, Path, description = "The id of the invoice.")),
    responses((status = 200, description = "The invoice as it stands.", body = Invoice), OfInvoice))]
pub(super) async fn show(
    Shared(shop): SharedShop,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Invoice>, ApiError> {
    let Path(id) = id?;
    shop.ledger.invoice(&id)?.map(Json).ok_or_else(unknown_invoice)
}

fn unknown_invoice() -> ApiError {
    ApiError::new(ProblemCode::NotFound, "there is no invoice of this id")
}

/// Which invoices.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Start after the invoice with this id; by default with the oldest.
    after: Option<String>,
    /// Only those of this state.
    state: Option<State>,
    /// The maximum number of entries. 0 or a greater number means 100, a whole page.
    limit: Option<usize>,
    /// The newest first: `after` then names the one before which the page begins.
    #[serde(default)]
    #[param(required = false)]
    newest: bool,
    /// Only the invoice with this reference of the shop; no other parameter is possible beside it.
    reference: Option<String>,
}

/// Invoices
///
/// Returns pages, oldest first by default, with payments and webhooks.
#[utoipa::path(get, path = "/v1/invoices", tag = "Invoices", operation_id = "listInvoices", params(ListParams),
    responses((status = 200, description = "Invoices as they stand.", body = InvoicePage), OfInvoice))]
pub(super) async fn list(
    Shared(shop): SharedShop,
    params: Result<Query<ListParams>, QueryRejection>,
) -> Result<Json<InvoicePage>, ApiError> {
    let Query(ListParams { after, state, limit, newest, reference }) = params?;
    if let Some(reference) = reference {
        if newest || after.is_some() || state.is_some() || limit.is_some() {
            return Err(ApiError::malformed("a reference names one invoice: give no other parameter beside it"));
        }
        let invoices = shop.ledger.invoice_of_reference(&reference)?.into_iter().collect();
        return Ok(Json(InvoicePage { invoices, next: None }));
    }
    let order = if newest { Order::NewestFirst } else { Order::OldestFirst };
    let limit = limit.filter(|limit| (1..=PAGE_MAX).contains(limit)).unwrap_or(PAGE_MAX);
    shop.ledger.invoices(after.as_deref(), order, state, limit)?.map(Json).ok_or_else(unknown_invoice)
}

/// From where on.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportParams {
    /// Start after the invoice with this id, or with the value from the header `Link`. By default, start with the
    /// oldest.
    after: Option<String>,
}

/// Invoices and payments as CSV
///
/// A row for each payment, and one for an invoice without any; at the end, one for each payment of no invoice. In parts
/// of up to 10,000 rows: the address of the next one is in the header `Link`, as `rel="next"`.
#[utoipa::path(get, path = "/v1/export.csv", tag = "Service", operation_id = "export", params(ExportParams),
    responses((status = 200, description = "The table.", body = String, content_type = "text/csv"), OfInvoice))]
pub(super) async fn export(
    Shared(shop): SharedShop,
    params: Result<Query<ExportParams>, QueryRejection>,
) -> Result<(HeaderMap, Vec<u8>), ApiError> {
    let Query(ExportParams { after }) = params?;
    let from = after.map_or(Ok(Place::Start), |after| after.parse());
    let from = from.map_err(|error| ApiError::malformed(error.to_string()))?;
    let page = shop.ledger.export(&from, ROWS_MAX)?.ok_or_else(unknown_invoice)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    let link = page.next.map(|next| format!("</v1/export.csv?after={next}>; rel=\"next\""));
    if let Some(Ok(link)) = link.map(HeaderValue::try_from) {
        headers.insert(header::LINK, link);
    }
    Ok((headers, page.table))
}

/// The service's status
#[utoipa::path(get, path = "/v1/status", tag = "Service", operation_id = "getStatus",
    responses((status = 200, description = "How the service does.", body = Status), OfService))]
pub(super) async fn status(Shared(shop): SharedShop) -> Result<Json<Status>, ApiError> {
    Ok(Json(shop.ledger.status()?))
}

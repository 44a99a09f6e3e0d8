//! The customer's page of an invoice: a document, its style and its script, and the data that they show. It needs no
//! token: a client with the key in its address sees this invoice, and nothing else.

use axum::Json;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderName, HeaderValue, header};
use axum::routing::get;
use fastpay_rpc::json::{Account, Bytes20, Decimal, Uint128};
use fastpay_wallet::format_memo;
use qrcode::{Color, EcLevel, QrCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::assets::{AssetForm, known};
use super::invoices::SharedShop;
use super::page::file;
use super::problem::{ApiError, OfCheckout, ProblemCode};
use crate::forms::{InvoiceItem, Payment};
use crate::invoice::State;
use crate::ledger::now_ms;
use crate::ledger_error::LedgerError;

/// An invoice as the customer sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckoutState {
    /// What the shop is called.
    #[schema(required)]
    shop: Option<String>,
    /// The shop's reference.
    reference: String,
    /// The invoice's id.
    id: String,
    /// A description for the customer.
    #[schema(required)]
    description: Option<String>,
    /// The purchased items.
    items: Vec<InvoiceItem>,
    /// The account that is paid.
    account: Account,
    /// The address of an ERC-20, or zero for ETH.
    asset: Bytes20,
    /// Its short name; null while it is not known.
    #[schema(required)]
    symbol: Option<String>,
    /// The number of decimals of amounts; null while unknown.
    #[schema(required)]
    decimals: Option<u8>,
    /// The amount to pay, in the asset's smallest unit.
    amount: Uint128,
    /// The amount received, in the asset's smallest unit.
    received: Uint128,
    /// Its state.
    state: State,
    /// The time, in milliseconds since 1970.
    created_at_ms: u64,
    /// Until when the payment is expected, in seconds since 1970.
    expires_at: u64,
    /// The service's clock, in milliseconds since 1970.
    now_ms: u64,
    /// How to pay what is missing; null where nothing is, or it is too late.
    #[schema(required)]
    payment: Option<CheckoutPayment>,
    /// The 100 greatest payments.
    payments: Vec<Payment>,
    /// The page to which the customer returns.
    #[schema(required)]
    return_url: Option<String>,
}

/// How to pay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckoutPayment {
    /// The payment link.
    link: String,
    /// The link for a web wallet, if one is configured.
    #[schema(required)]
    web_link: Option<String>,
    /// What the payment must carry, as text.
    memo: String,
    /// One of the two as a QR code; null where none holds it.
    #[schema(required)]
    qr: Option<Code>,
}

/// A QR code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Code {
    /// The width and height in modules.
    size: usize,
    /// The dark modules as an SVG path, one module a unit.
    path: String,
}

impl Code {
    /// On a screen, which is neither torn nor dirty, a code of fewer and larger squares is easier to scan.
    fn new(text: &str) -> Option<Self> {
        let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
        let (size, colors) = (code.width(), code.to_colors());
        let mut path = String::new();
        for (y, row) in colors.chunks(size).enumerate() {
            let mut x = 0_usize;
            for run in row.chunk_by(|one, other| one == other) {
                if run.first() == Some(&Color::Dark) {
                    path.push_str(&format!("M{x} {y}h{}v1h-{}z", run.len(), run.len()));
                }
                x = x.saturating_add(run.len());
            }
        }
        Some(Self { size, path })
    }
}

/// Show the checkout data
///
/// Returns the invoice whose checkout page has this key. Needs no token.
#[utoipa::path(get, path = "/checkout/{key}/state", tag = "Checkout", operation_id = "getCheckout", security(()),
    params(("key" = String, Path, description = "The key in the address of the page.")),
    responses((status = 200, description = "The invoice as its customer sees it.", body = CheckoutState), OfCheckout))]
pub(super) async fn state(
    Shared(shop): SharedShop,
    key: Result<Path<String>, PathRejection>,
) -> Result<([(HeaderName, HeaderValue); 1], Json<CheckoutState>), ApiError> {
    let Path(key) = key?;
    let unknown = || ApiError::new(ProblemCode::NotFound, "there is no such page");
    let (record, payments) = shop.ledger.checkout(&key)?.ok_or_else(unknown)?;
    let (base, terms, now_ms) = (shop.ledger.base(), &record.terms, now_ms());
    let is_payable = matches!(record.state, State::Open | State::Underpaid) && now_ms < terms.expires_at_ms();
    let payment = is_payable.then(|| {
        let link = base.of_invoice(&record);
        let web_link = base.page.as_ref().map(|page| link.behind(page).to_string());
        let link = link.to_string();
        let qr = Code::new(web_link.as_ref().unwrap_or(&link));
        CheckoutPayment { link, web_link, memo: format_memo(&terms.memo), qr }
    });
    let info = known(shop.wallet.folder(), terms.asset).map_err(LedgerError::from)?.map(AssetForm::parts);
    let (symbol, decimals) = info.unzip();
    let state = CheckoutState {
        shop: base.link.label.clone(),
        reference: terms.reference.clone(),
        id: terms.id.clone(),
        description: terms.checkout.description.clone(),
        items: terms.checkout.items.iter().map(InvoiceItem::from).collect(),
        account: base.link.account.into(),
        asset: terms.asset.into(),
        symbol,
        decimals,
        amount: Decimal(terms.amount.0),
        received: Decimal(record.totals.received),
        state: record.state,
        created_at_ms: terms.created_at_ms,
        expires_at: terms.expires_at,
        now_ms,
        payment,
        payments: payments.iter().map(|arrival| Payment::new(arrival, terms)).collect(),
        return_url: terms.checkout.return_url.clone(),
    };
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(state)))
}

/// The page is the same for every key: it requests the data that it shows.
pub(super) fn routes() -> Router {
    Router::new()
        .route("/checkout/{key}", get(async || file("text/html; charset=utf-8", include_str!("checkout.html"))))
        .route("/checkout/checkout.css", get(async || file("text/css; charset=utf-8", include_str!("checkout.css"))))
        .route(
            "/checkout/checkout.js",
            get(async || file("text/javascript; charset=utf-8", include_str!("checkout.js"))),
        )
}

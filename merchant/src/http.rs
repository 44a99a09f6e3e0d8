//! The port for the shop: JSON over HTTP, a bearer token, problems as RFC 9457 has them.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, Request as HttpRequest, State as Shared};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use fastpay_core::{Amount, Asset};
use fastpay_wallet::parse_memo;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::book::{Request, RequestError};
use crate::export::to_csv;
use crate::invoice::State;
use crate::ledger::{Ledger, LedgerError};

/// A request has a few fields.
const BODY_BYTES_MAX: usize = 16 * 1_024;
const REFERENCE_LENGTH_MAX: usize = 128;
/// A year: who wants longer makes another invoice.
const EXPIRES_IN_MAX: u64 = 366 * 24 * 60 * 60;
const PAGE_MAX: usize = 100;

#[derive(Clone)]
struct Door {
    /// Of the token: comparing hashes tells nothing of how much of a guess is right.
    token_hash: [u8; 32],
}

/// The routes.
pub fn router(ledger: Ledger, token: &str) -> Router {
    let door = Door { token_hash: Sha256::digest(token.as_bytes()).into() };
    Router::new()
        .route("/v1/invoices", post(create).get(list))
        .route("/v1/invoices/{id}", get(show))
        .route("/v1/export.csv", get(export))
        .route("/v1/status", get(status))
        .fallback(|| async {
            problem(StatusCode::NOT_FOUND, "not-found", "there is nothing here; see docs/MERCHANT.md")
        })
        .method_not_allowed_fallback(|| async {
            problem(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "this path has other methods")
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(door, check_token))
        .with_state(ledger)
}

async fn check_token(Shared(door): Shared<Door>, request: HttpRequest, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token =
        shown.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let is_known = token.is_some_and(|(_, token)| {
        let hash: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        hash == door.token_hash
    });
    if is_known {
        return next.run(request).await;
    }
    let refused =
        problem(StatusCode::UNAUTHORIZED, "unauthorized", "show the token of secrets/token as a bearer token");
    ([(header::WWW_AUTHENTICATE, "Bearer")], refused).into_response()
}

/// What the shop sends.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewInvoice {
    reference: String,
    #[serde(default = "ether")]
    asset: Asset,
    amount: Amount,
    memo: Option<String>,
    expires_in: u64,
}

fn ether() -> Asset {
    Asset::ETHER
}

impl NewInvoice {
    fn check(self) -> Result<Request, String> {
        let length = self.reference.chars().count();
        if !(1..=REFERENCE_LENGTH_MAX).contains(&length) || self.reference.chars().any(char::is_control) {
            return Err(format!(
                "reference has 1 to {REFERENCE_LENGTH_MAX} characters, none of them a control character"
            ));
        }
        if self.amount == Amount(0) {
            return Err("amount is at least 1, in the asset's smallest unit".into());
        }
        if !(1..=EXPIRES_IN_MAX).contains(&self.expires_in) {
            return Err(format!("expiresIn is from 1 to {EXPIRES_IN_MAX} seconds"));
        }
        let memo = self.memo.map(|text| parse_memo(&text).map_err(|error| error.to_string())).transpose()?;
        if memo.is_some_and(|memo| memo.is_zero()) {
            return Err("memo is not empty: it tells this invoice's payments from others".into());
        }
        let Self { reference, asset, amount, expires_in, .. } = self;
        Ok(Request { reference, asset, amount, memo, expires_in })
    }
}

async fn create(Shared(ledger): Shared<Ledger>, body: Bytes) -> Response {
    let read = serde_json::from_slice::<NewInvoice>(&body).map_err(|error| error.to_string());
    match read.and_then(NewInvoice::check) {
        Err(why) => problem(StatusCode::BAD_REQUEST, "malformed", &why),
        Ok(request) => match ledger.create(&request) {
            Ok((invoice, true)) => (StatusCode::CREATED, Json(invoice)).into_response(),
            Ok((invoice, false)) => Json(invoice).into_response(),
            Err(error) => refuse(&error),
        },
    }
}

async fn show(Shared(ledger): Shared<Ledger>, Path(id): Path<String>) -> Response {
    match ledger.invoice(&id) {
        Some(invoice) => Json(invoice).into_response(),
        None => problem(StatusCode::NOT_FOUND, "not-found", "there is no invoice of this id"),
    }
}

/// Which invoices.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<String>,
    state: Option<State>,
}

async fn list(Shared(ledger): Shared<Ledger>, page: Result<Query<Page>, QueryRejection>) -> Response {
    match page {
        Ok(Query(page)) => {
            let invoices = ledger.invoices(page.after.as_deref(), page.state, PAGE_MAX);
            Json(json!({ "invoices": invoices })).into_response()
        }
        Err(error) => problem(StatusCode::BAD_REQUEST, "malformed", &error.body_text()),
    }
}

async fn export(Shared(ledger): Shared<Ledger>) -> Response {
    let (book, looked_at_ms) = ledger.book();
    match to_csv(&book, looked_at_ms) {
        Ok(table) => ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], table).into_response(),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", &error.to_string()),
    }
}

async fn status(Shared(ledger): Shared<Ledger>) -> Response {
    Json(ledger.status()).into_response()
}

fn refuse(error: &LedgerError) -> Response {
    match error {
        LedgerError::Request(RequestError::OtherTerms(_)) => {
            problem(StatusCode::CONFLICT, "reference-taken", &error.to_string())
        }
        LedgerError::Request(RequestError::MemoTaken) => {
            problem(StatusCode::CONFLICT, "memo-taken", &error.to_string())
        }
        LedgerError::Journal(_) | LedgerError::Folder(_) => {
            tracing::error!(%error, "an invoice could not be kept");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "storage", "the invoice could not be kept; try again later")
        }
    }
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({
        "type": format!("urn:fastpay:merchant:{code}"),
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "code": code,
        "detail": detail,
    });
    (status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
}

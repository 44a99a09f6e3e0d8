//! The port for the shop: JSON over HTTP, a bearer token, and problems as in RFC 9457 (docs/MERCHANT.md).
//!
//! A request without a valid token is refused before its body is read, except for the customers' pages under `/checkout/`.
//! Memory and time for each connection are bounded as on the authorities' ports.

mod assets;
mod checkout;
mod invoices;
mod office;
mod openapi;
mod page;
mod payouts;
mod problem;
mod refunds;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fastpay_program::http::ConnectionLimits;
use fastpay_wallet::Wallet;
use ring::hmac;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::ledger::Ledger;
use problem::{ApiError, ProblemCode};

/// Bounds of the port.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The maximum number of connections; further ones are closed at once. A shop needs a few.
    pub connections_max: usize,
    /// The time limits of a connection.
    pub connection: ConnectionLimits,
    /// The maximum time from a request's head to the end of its body.
    pub body_timeout: Duration,
    /// The maximum number of unpaid invoices.
    pub open_invoices_max: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            connection: ConnectionLimits::default(),
            body_timeout: Duration::from_secs(10),
            open_invoices_max: 10_000,
        }
    }
}

/// The state that the handlers share.
struct Shop {
    ledger: Ledger,
    wallet: Wallet,
    limits: HttpLimits,
}

/// Serves until `stop` turns true, then completes the requests in flight.
pub async fn serve(
    listener: TcpListener,
    ledger: Ledger,
    wallet: Wallet,
    token: &str,
    limits: HttpLimits,
    stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(limits.connections_max));
    let admit = move |_| Some(((), room.clone().try_acquire_owned().ok()?));
    let router = router(Shop { ledger, wallet, limits }, token);
    fastpay_program::http::serve(listener, router, limits.connection, None, admit, stop).await;
}

fn router(shop: Shop, token: &str) -> Router {
    let openapi::Parts { owner, customer, document } = openapi::parts();
    let shop = Arc::new(shop);
    let owner = owner
        .route("/v1/openapi.json", get(async || document))
        .fallback(problem::no_such_path)
        .method_not_allowed_fallback(problem::no_such_method)
        .layer(from_fn_with_state(Arc::new(Door::new(token)), check_token))
        .with_state(shop.clone());
    // The pages contain no data of the shop: one asks its user for the token, the other takes the key from its address.
    office::routes().merge(checkout::routes()).merge(customer.with_state(shop)).merge(owner)
}

/// Checks the token without storing it: it compares HMACs under a key of this run in constant time.
struct Door {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl Door {
    fn new(token: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<[u8; 32]>());
        let tag = hmac::sign(&key, token.as_bytes());
        Self { key, tag }
    }

    fn opens_to(&self, authorization: Option<&HeaderValue>) -> bool {
        let shown = authorization.and_then(|value| value.to_str().ok()).and_then(|value| value.split_once(' '));
        shown.is_some_and(|(scheme, token)| {
            let is_token = hmac::verify(&self.key, token.trim().as_bytes(), self.tag.as_ref()).is_ok();
            scheme.eq_ignore_ascii_case("bearer") && is_token
        })
    }
}

async fn check_token(Shared(door): Shared<Arc<Door>>, request: Request, next: Next) -> Response {
    if door.opens_to(request.headers().get(header::AUTHORIZATION)) {
        return next.run(request).await;
    }
    let refused = ApiError::new(ProblemCode::Unauthorized, "the request has no token, or a wrong one");
    ([(header::WWW_AUTHENTICATE, "Bearer")], refused).into_response()
}

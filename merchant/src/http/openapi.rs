//! The OpenAPI document, made from the request handlers.

use std::sync::Arc;

use axum::Router;
use fastpay_rpc::http::Document;
use utoipa::OpenApi;
use utoipa::openapi::Info;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::Problem;
use super::{Shop, assets, checkout, invoices, payouts, refunds};

const TOKEN: &str = "token";

#[derive(OpenApi)]
#[openapi(
    components(schemas(Problem)),
    tags(
        (name = "Invoices", description = "What is to be paid"),
        (name = "Refunds", description = "What is to be paid back, by the owner's wallet"),
        (name = "Payouts", description = "What is to be paid out to Ethereum, by the owner's wallet"),
        (name = "Checkout", description = "What customers see, without a token"),
        (name = "Service", description = "The service itself")
    )
)]
struct Head;

/// The operations, and their document.
pub(super) struct Parts {
    /// The operations that need the token.
    pub owner: Router<Arc<Shop>>,
    /// The operations for everybody.
    pub customer: Router<Arc<Shop>>,
    /// The document of both.
    pub document: Document,
}

pub(super) fn parts() -> Parts {
    let (customer, customers) = OpenApiRouter::new().routes(routes!(checkout::state)).split_for_parts();
    let routes = OpenApiRouter::with_openapi(Head::openapi())
        .routes(routes!(invoices::create, invoices::list))
        .routes(routes!(invoices::show))
        .routes(routes!(refunds::prepare, refunds::list))
        .routes(routes!(refunds::show))
        .routes(routes!(payouts::prepare, payouts::list))
        .routes(routes!(payouts::show))
        .routes(routes!(assets::list))
        .routes(routes!(invoices::export))
        .routes(routes!(invoices::status));
    let (owner, mut document) = routes.split_for_parts();
    document.merge(customers);
    document.info = Info::new("FastPay merchant", env!("CARGO_PKG_VERSION"));
    document.info.description = Some(
        "The port of fastpay-merchant, for the shop beside it. Every request but those of customers shows the content of \
         secrets/token as a bearer token. See docs/MERCHANT.md."
            .into(),
    );
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme(TOKEN, bearer);
    document.security = Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
    Parts { owner, customer, document: Document::from(&document) }
}

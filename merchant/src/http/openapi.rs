//! The OpenAPI document, made from the code that answers.

use std::sync::Arc;

use axum::Router;
use fastpay_rpc::http::Document;
use utoipa::OpenApi;
use utoipa::openapi::Info;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::Problem;
use super::{Shop, invoices, refunds};

const TOKEN: &str = "token";

#[derive(OpenApi)]
#[openapi(
    components(schemas(Problem)),
    tags(
        (name = "Invoices", description = "What is to be paid"),
        (name = "Refunds", description = "What is to be paid back, by the owner's wallet"),
        (name = "Service", description = "The service itself")
    )
)]
struct Parts;

/// The router of the API, and the document.
pub(super) fn parts() -> (Router<Arc<Shop>>, Document) {
    let routes = OpenApiRouter::with_openapi(Parts::openapi())
        .routes(routes!(invoices::create, invoices::list))
        .routes(routes!(invoices::show))
        .routes(routes!(refunds::prepare, refunds::list))
        .routes(routes!(refunds::show))
        .routes(routes!(invoices::export))
        .routes(routes!(invoices::status));
    let (router, mut document) = routes.split_for_parts();
    document.info = Info::new("FastPay merchant", env!("CARGO_PKG_VERSION"));
    document.info.description = Some(
        "The port of fastpay-merchant, for the shop beside it. Every request shows the content of secrets/token as a \
         bearer token. See docs/MERCHANT.md."
            .into(),
    );
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme(TOKEN, bearer);
    document.security = Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
    let document = Document::from(&document);
    (router, document)
}

//! The OpenAPI document, made from the request handlers.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use fastpay_rpc::http::Document;
use fastpay_rpc::json::Problem;
use utoipa::OpenApi;
use utoipa::openapi::schema::{AdditionalProperties, OneOf, Schema};
use utoipa::openapi::{Info, RefOr};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Node, about, accounts, archived, events, in_turn, ledger, orders};

#[derive(OpenApi)]
#[openapi(
    components(schemas(Problem)),
    tags(
        (name = "Transfers", description = "Orders and certificates"),
        (name = "Accounts", description = "What is known of an account"),
        (name = "Ledger", description = "What belongs to no account"),
        (name = "Authority", description = "The authority itself"),
    )
)]
struct Parts;

/// The routes of the API with their descriptions.
fn routes() -> OpenApiRouter<Arc<Node>> {
    let reads = OpenApiRouter::new()
        .routes(routes!(accounts::account))
        .routes(routes!(accounts::certificate))
        .routes(routes!(accounts::sent))
        .routes(routes!(accounts::received))
        .routes(routes!(accounts::deposits))
        .routes(routes!(archived::sent))
        .routes(routes!(archived::received))
        .routes(routes!(ledger::redemptions))
        .routes(routes!(ledger::waiting_redemptions))
        .routes(routes!(orders::vote_for_batch))
        .routes(routes!(orders::vote_about_number))
        .routes(routes!(orders::read_certificates))
        .routes(routes!(ledger::new_transfers))
        .routes(routes!(ledger::transfer))
        .routes(routes!(ledger::deposit))
        .routes(routes!(about::committee))
        .routes(routes!(about::endpoints))
        .routes(routes!(about::status))
        .route_layer(from_fn(in_turn));
    OpenApiRouter::with_openapi(Parts::openapi())
        .routes(routes!(orders::submit_order))
        .routes(routes!(orders::submit_certificate))
        .routes(routes!(orders::submit_attested))
        .routes(routes!(events::events))
        .merge(reads)
}

/// The router of the API, and the document.
pub(super) fn parts() -> (Router<Arc<Node>>, Document) {
    let (router, mut document) = routes().split_for_parts();
    document.info = Info::new("FastPay authority", env!("CARGO_PKG_VERSION"));
    document.info.description = Some(
        "The JSON API of one authority of a FastPay committee. A payment is certified once a quorum of authorities has \
         voted for it, and settled once a quorum has confirmed the certificate. Send both to each authority, at its own \
         address. See docs/API.md."
            .into(),
    );
    if let Some(components) = &mut document.components {
        components.schemas.values_mut().for_each(close);
    }
    let document = Document::from(&document);
    (router, document)
}

/// Documents that the variants of a tagged union allow no other field, as their decoder does.
fn close(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::OneOf(OneOf { items, .. })) = schema {
        for item in items {
            if let RefOr::T(Schema::Object(object)) = item {
                object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
            }
        }
    }
}

//! The owner's page: a document, its style and its script, which calls the same API as the shop, with the token.

use axum::Router;
use axum::routing::get;

use super::page::file;

pub(super) fn routes() -> Router {
    Router::new()
        .route("/", get(async || file("text/html; charset=utf-8", include_str!("office.html"))))
        .route("/office.css", get(async || file("text/css; charset=utf-8", include_str!("office.css"))))
        .route("/office.js", get(async || file("text/javascript; charset=utf-8", include_str!("office.js"))))
}

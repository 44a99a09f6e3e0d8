//! The owner's page: a document, its style and its program, which ask the same port as the shop does, with the token.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::routing::get;

/// Nothing from elsewhere is loaded, run or asked.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Router {
    Router::new()
        .route("/", get(async || file("text/html; charset=utf-8", include_str!("office.html"))))
        .route("/office.css", get(async || file("text/css; charset=utf-8", include_str!("office.css"))))
        .route("/office.js", get(async || file("text/javascript; charset=utf-8", include_str!("office.js"))))
}

fn file(content_type: &'static str, text: &'static str) -> ([(HeaderName, &'static str); 5], &'static str) {
    let headers = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}

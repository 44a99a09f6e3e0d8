//! The port for people and programs: health, readiness, metrics.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::follower::Progress;
use crate::metrics::Metrics;

/// What the answers are made of.
#[derive(Clone)]
pub struct HttpContext {
    /// All counters.
    pub metrics: Arc<Metrics>,
    /// Where the follower has come to.
    pub progress: watch::Receiver<Progress>,
    /// The authority's name.
    pub authority: fastpay_core::AuthorityName,
}

/// Serves until `stop` turns true.
///
/// # Errors
/// Where the server fails as a whole.
pub async fn serve(
    listener: TcpListener,
    context: HttpContext,
    mut stop: watch::Receiver<bool>,
) -> Result<(), std::io::Error> {
    let router = Router::new()
        .route("/health", get(async || Json(json!({"status": "up"}))))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(context);
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    axum::serve(listener, router).with_graceful_shutdown(stopped).await
}

/// Ready: votes, and credits deposits. A node whose follower has stopped still votes, but an operator
/// must know.
async fn ready(State(context): State<HttpContext>) -> impl IntoResponse {
    let progress = context.progress.borrow().clone();
    let (code, state, reason) = match progress {
        Progress::AtHead => (StatusCode::OK, "ready", None),
        Progress::CatchingUp => (StatusCode::SERVICE_UNAVAILABLE, "catching up with the Primary", None),
        Progress::Stopped(reason) => (StatusCode::SERVICE_UNAVAILABLE, "follower stopped", Some(reason)),
    };
    (code, Json(json!({"status": state, "reason": reason, "authority": context.authority})))
}

async fn metrics(State(context): State<HttpContext>) -> impl IntoResponse {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", content_type)], context.metrics.text())
}

//! What is read of a request. Where it cannot be, the answer is a problem.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use fastpay_rpc::json::{ProblemCode, Uint64, json_bytes_max};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::Node;
use super::connections::Caller;
use super::problem::Rejection;

/// The variable parts of the path.
pub(super) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Rejection> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|error| Rejection::malformed(error.body_text()))
    }
}

/// The parameters behind the question mark.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Rejection> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|error| Rejection::malformed(error.body_text()))
    }
}

/// Which entries of a list are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageParams {
    /// The number of the first entry, from 0.
    pub start: Option<Uint64>,
    /// At most so many entries; 0 or too many: as many as a page has, 100.
    pub limit: Option<Uint64>,
}

impl PageParams {
    pub(super) fn start(&self) -> u64 {
        self.start.map_or(0, |start| start.0)
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.map_or(0, |limit| u32::try_from(limit.0).unwrap_or(u32::MAX))
    }
}

/// What a body of JSON of the form `F` says, with who sent it. Who sends what says nothing is judged by that.
pub(super) struct Body<F, T>(pub Caller, pub T, pub PhantomData<F>);

impl<F: DeserializeOwned, T: TryFrom<F, Error: Display>> FromRequest<Arc<Node>> for Body<F, T> {
    type Rejection = Rejection;

    async fn from_request(request: Request, node: &Arc<Node>) -> Result<Self, Rejection> {
        let (mut parts, body) = request.into_parts();
        let Ok(caller) = Caller::from_request_parts(&mut parts, node).await;
        let worthless = |rejection: Rejection| {
            node.context.metrics.network.malformed.inc();
            caller.peer.judge(1, true);
            rejection
        };
        if !is_json(&parts.headers) {
            let detail = "the body must be JSON, under Content-Type: application/json";
            return Err(worthless(Rejection::new(ProblemCode::UnsupportedMediaType, detail)));
        }
        // Who is on probation is read slowly, here as on a stream.
        caller.peer.pause().await;
        let bytes_max = json_bytes_max(node.context.standing.borrow().quorum_max());
        let arriving = Limited::new(body, bytes_max).collect();
        let arrived = tokio::time::timeout(node.limits.body_timeout, arriving).await.map_err(|_| {
            let detail = format!("the body did not arrive within {} s", node.limits.body_timeout.as_secs());
            worthless(Rejection::new(ProblemCode::RequestTimeout, detail))
        })?;
        let bytes: Bytes = match arrived {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let detail = format!("the body is longer than {bytes_max} bytes");
                return Err(worthless(Rejection::new(ProblemCode::TooLarge, detail)));
            }
            Err(_) => return Err(worthless(Rejection::malformed("the body ended too early"))),
        };
        let form = serde_json::from_slice::<F>(&bytes).map_err(|error| error.to_string());
        let value = form.and_then(|form| T::try_from(form).map_err(|error| error.to_string()));
        let value = value.map_err(|error| worthless(Rejection::malformed(error)))?;
        Ok(Self(caller, value, PhantomData))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

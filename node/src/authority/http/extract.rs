//! Extractors for requests. A malformed request is answered with a problem.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use fastpay_program::http::{read_json, require_json};
use fastpay_rpc::json::{Uint64, json_bytes_max};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::Node;
use super::connections::Caller;
use super::problem::ApiError;
use crate::authority::network::Range;

/// The variable parts of the path.
pub(super) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|error| ApiError::malformed(error.body_text()))
    }
}

/// The parameters behind the question mark.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|error| ApiError::malformed(error.body_text()))
    }
}

/// Which entries of a list are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageParams {
    /// The number of the first entry, from 0.
    pub start: Option<Uint64>,
    /// The maximum number of entries. 0 or a greater number means 100, a whole page.
    pub limit: Option<Uint64>,
}

impl PageParams {
    pub(super) fn range(&self) -> Range {
        range(self.start, self.limit)
    }
}

/// The requested range; by default the first page.
pub(super) fn range(start: Option<Uint64>, limit: Option<Uint64>) -> Range {
    let limit = limit.map_or(0, |limit| u32::try_from(limit.0).unwrap_or(u32::MAX));
    Range { start: start.map_or(0, |start| start.0), limit }
}

/// A JSON body of the form `F`, with its caller. A malformed body counts against the caller's reputation.
pub(super) struct Body<F, T>(pub Caller, pub T, pub PhantomData<F>);

impl<F: DeserializeOwned, T: TryFrom<F, Error: Display>> FromRequest<Arc<Node>> for Body<F, T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, node: &Arc<Node>) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let Ok(caller) = Caller::from_request_parts(&mut parts, node).await;
        let worthless = |error: ApiError| {
            node.context.metrics.network.malformed.inc();
            caller.peer.judge(1, true);
            error
        };
        require_json(&parts.headers).map_err(|error| worthless(error.into()))?;
        // Clients on probation are throttled, as on a stream.
        caller.peer.pause().await;
        let bytes_max = json_bytes_max(node.context.voter_status.borrow().quorum_max());
        let form = read_json::<F>(body, bytes_max, node.limits.body_timeout).await;
        let form = form.map_err(|error| worthless(error.into()))?;
        let value = T::try_from(form).map_err(|error| worthless(ApiError::malformed(error.to_string())))?;
        Ok(Self(caller, value, PhantomData))
    }
}

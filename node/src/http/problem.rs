//! Problems as answers, and which of them an operation may answer.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use fastpay_rpc::Refusal;
use fastpay_rpc::json::{Problem, ProblemCode};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

use crate::network::ReadError;

const CONTENT_TYPE: &str = "application/problem+json";
/// What a client that finds a shard busy with reads waits.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// A problem that is an answer.
#[derive(Debug)]
pub(super) struct Rejection(Box<Problem>);

impl Rejection {
    pub(super) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::Malformed, detail)
    }
}

impl From<Problem> for Rejection {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Problem::from(&refusal).into()
    }
}

impl From<ReadError> for Rejection {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Busy => Refusal::Busy(READ_AGAIN_AFTER).into(),
            ReadError::Stopping => Refusal::Stopping.into(),
            ReadError::Unreadable => Self::new(ProblemCode::HistoryUnreadable, error.to_string()),
        }
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.0).expect("a problem is text, numbers and an order");
        let mut response = (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response();
        if let Some(milliseconds) = self.0.retry_after_ms {
            // Whole seconds are all that the header knows.
            response.headers_mut().insert(header::RETRY_AFTER, milliseconds.div_ceil(1_000).max(1).into());
        }
        response
    }
}

/// The answer to a path that is not one.
pub(super) async fn no_such_path(uri: Uri) -> Rejection {
    let path: String = uri.path().chars().take(200).collect();
    Rejection::new(ProblemCode::NotFound, format!("there is nothing at {path}; see /v1/openapi.json"))
}

/// The answer to a method that a path does not have.
pub(super) async fn no_such_method() -> Rejection {
    Rejection::new(ProblemCode::MethodNotAllowed, "this path has other methods")
}

/// The responses of an operation that may answer these problems, in a form that [`utoipa`] documents.
pub(super) fn responses(codes: &[ProblemCode]) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let mut by_status: BTreeMap<u16, Vec<&ProblemCode>> = BTreeMap::new();
    codes.iter().for_each(|code| by_status.entry(code.status()).or_default().push(code));
    let response = |codes: &[&ProblemCode]| {
        let described = codes.iter().map(|code| format!("`{}`: {}.", code.as_str(), code.title()));
        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let mut response =
            ResponseBuilder::new().description(described.collect::<Vec<_>>().join(" ")).content(CONTENT_TYPE, problem);
        if codes.iter().any(|code| matches!(code, ProblemCode::Busy | ProblemCode::TooManyStreams)) {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
            let header =
                HeaderBuilder::new().schema(Some(seconds)).description(Some("When to send it again, in seconds."));
            response = response.header("Retry-After", header.build());
        }
        RefOr::T(response.build())
    };
    by_status.iter().map(|(status, codes)| (status.to_string(), response(codes))).collect()
}

/// Names a set of problems, for the annotations of the operations that may answer them.
macro_rules! problems {
    ($($(#[$meta:meta])* $name:ident: $($code:ident),*;)*) => { $(
        $(#[$meta])*
        pub(super) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
                responses(&[$(ProblemCode::$code),*])
            }
        }
    )* };
}

problems! {
    /// Of an order.
    OfOrder: Malformed, Invalid, OrderPending, SequenceTooHigh, AlreadyConfirmed, InsufficientBalance, NoPrimary, Busy,
        Stopping, NotVoting, CatchingUp, RequestTimeout, TooLarge, UnsupportedMediaType;
    /// Of a certificate.
    OfCertificate: Malformed, Invalid, MissingCertificate, Busy, Stopping, UnknownEpoch, RequestTimeout, TooLarge,
        UnsupportedMediaType;
    /// Of a batch of redemptions.
    OfBatch: Malformed, RedemptionsMissing, Busy, Stopping, NotVoting, HistoryUnreadable, RequestTimeout, TooLarge,
        UnsupportedMediaType;
    /// Of what a shard knows in memory.
    OfState: Malformed, Busy, Stopping;
    /// Of a page of a history.
    OfPage: Malformed, Busy, Stopping, HistoryUnreadable;
    /// Of one entry of a history, or of one shard.
    OfEntry: Malformed, NotFound, Busy, Stopping, HistoryUnreadable;
    /// Of a stream of events.
    OfEvents: Malformed, CursorAhead, TooManyStreams, Busy, Stopping;
    /// Of what may not be known here.
    OfKnowledge: Malformed, NotFound;
}

//! Problems as answers, and the problems that each operation may return.

use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::response::{IntoResponse, Response};
use fastpay_program::http::BodyError;
use fastpay_rpc::http::Retry;
use fastpay_rpc::http::{ProblemKind, TYPE_PREFIX, problem_response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger_error::{LedgerError, RequestError};

/// How long a shop waits before it asks again if too many invoices are open.
const OPEN_RETRY: Duration = Duration::from_secs(10);

fastpay_rpc::problem_kinds! {
    /// The kind of problem.
    ProblemCode
    /// The request cannot be read.
    Malformed "malformed" 400 Never "The request cannot be read",
        "Correct the request as the detail says.";
    /// The token is missing or wrong.
    Unauthorized "unauthorized" 401 AfterChange "The token is missing or wrong",
        "Show the content of secrets/token as a bearer token.";
    /// There is none here.
    NotFound "not-found" 404 AfterChange "Not found here",
        "Check what was asked for.";
    /// The path exists, with other methods.
    MethodNotAllowed "method-not-allowed" 405 Never "The method is not allowed here",
        "Use a method that the Allow header names.";
    /// The body did not arrive in time.
    RequestTimeout "request-timeout" 408 Later "The body did not arrive in time",
        "Send the same again over a faster connection.";
    /// The reference belongs to an invoice of other terms.
    ReferenceTaken "reference-taken" 409 Never "The reference has other terms",
        "Use another reference, or ask for the same as the first time.";
    /// The reference had its invoice, which is in the archive.
    ReferenceArchived "reference-archived" 409 Never "The reference's invoice is in the archive",
        "Look it up in the archive, or use another reference for a new invoice.";
    /// The memo is another invoice's.
    MemoTaken "memo-taken" 409 Never "Another invoice has this memo",
        "Leave the memo out: the invoice gets one of its own.";
    /// So much cannot be refunded.
    NotRefundable "not-refundable" 409 AfterChange "So much cannot be refunded",
        "Look at the invoice's payments and at the lists of refunds that there are.";
    /// Relayers take more of a payout than anybody would agree to unasked.
    FeeTooHigh "fee-too-high" 409 AfterChange "Relayers take a large part of it",
        "Pay out more at once, or agree by stating the fee.";
    /// The body is longer than any request.
    TooLarge "too-large" 413 Never "The body is too long",
        "Send one invoice.";
    /// The body is not JSON.
    UnsupportedMediaType "unsupported-media-type" 415 Never "The body is not JSON",
        "Send it with Content-Type: application/json.";
    /// Too many invoices wait for their payment.
    TooManyOpen "too-many-open" 429 Later "Too many invoices are open",
        "Ask again when some are paid or have expired, or raise open_invoices_max in merchant.toml.";
    /// The disk failed.
    Storage "storage" 500 Later "The disk failed",
        "Send the same again, an invoice with the same reference. The owner is told in the service's log.";
}

/// Why a request got no answer, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Problem {
    /// `urn:fastpay:problem:` and the code.
    r#type: String,
    /// The same for all problems of the code.
    title: String,
    /// The HTTP status.
    status: u16,
    /// The details of this occurrence.
    detail: String,
    /// A stable code for programs.
    code: ProblemCode,
    /// The recommended action, for people.
    action: String,
    /// Whether the same request may be sent again.
    retry: Retry,
    /// The waiting time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// A problem that is returned as an answer.
#[derive(Debug)]
pub(super) struct ApiError(Box<Problem>);

impl ApiError {
    pub(super) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let wait = waits(code).then_some(OPEN_RETRY);
        Self(Box::new(Problem {
            r#type: format!("{TYPE_PREFIX}{}", code.as_str()),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            code,
            action: code.action().into(),
            retry: code.retry(),
            retry_after_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }))
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::Malformed, detail)
    }
}

impl From<PathRejection> for ApiError {
    fn from(error: PathRejection) -> Self {
        Self::malformed(error.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(error: QueryRejection) -> Self {
        Self::malformed(error.body_text())
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::MediaType => ProblemCode::UnsupportedMediaType,
            BodyError::Slow(_) => ProblemCode::RequestTimeout,
            BodyError::TooLong(_) => ProblemCode::TooLarge,
            BodyError::CutShort | BodyError::Json(_) => ProblemCode::Malformed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        let code = match &error {
            LedgerError::Request(RequestError::OtherTerms(_)) => ProblemCode::ReferenceTaken,
            LedgerError::Request(RequestError::Archived { .. }) => ProblemCode::ReferenceArchived,
            LedgerError::Request(RequestError::OtherRefunds(_) | RequestError::OtherPayout(_)) => {
                ProblemCode::ReferenceTaken
            }
            LedgerError::Request(RequestError::UnknownInvoice(_)) => ProblemCode::NotFound,
            LedgerError::Request(RequestError::NotSoMuch { .. } | RequestError::NothingDue) => {
                ProblemCode::NotRefundable
            }
            LedgerError::Request(RequestError::MemoTaken) => ProblemCode::MemoTaken,
            LedgerError::Request(RequestError::TooManyOpen(_)) => ProblemCode::TooManyOpen,
            LedgerError::Store(_) | LedgerError::Folder(_) => {
                // The disk's error is logged for the owner and not sent.
                tracing::error!(%error, "the database failed");
                return Self::new(ProblemCode::Storage, "the service's disk failed");
            }
        };
        Self::new(code, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        problem_response(&self.0, self.0.status, self.0.retry_after_ms)
    }
}

/// The answer to an unknown path.
pub(super) async fn no_such_path() -> ApiError {
    ApiError::new(ProblemCode::NotFound, "there is nothing here; see /v1/openapi.json")
}

/// The answer to a method that a path does not have.
pub(super) async fn no_such_method() -> ApiError {
    ApiError::new(ProblemCode::MethodNotAllowed, "this path has other methods")
}

/// Whether a problem comes with a time to wait.
fn waits(code: ProblemCode) -> bool {
    code == ProblemCode::TooManyOpen
}

fastpay_rpc::problem_sets! {
    ProblemCode, waits;
    /// Problems of a request for an invoice.
    OfRequest: Malformed, Unauthorized, RequestTimeout, ReferenceTaken, ReferenceArchived, MemoTaken, TooLarge,
        UnsupportedMediaType, TooManyOpen, Storage;
    /// Problems of a request for refunds.
    OfRefunds: Malformed, Unauthorized, NotFound, RequestTimeout, ReferenceTaken, NotRefundable, TooLarge,
        UnsupportedMediaType, Storage;
    /// Problems of a request for a payout.
    OfPayouts: Malformed, Unauthorized, RequestTimeout, ReferenceTaken, FeeTooHigh, TooLarge, UnsupportedMediaType,
        Storage;
    /// Problems of a checkout page, which needs no token.
    OfCheckout: Malformed, NotFound, Storage;
    /// Problems of a read of one invoice or a page of them.
    OfInvoice: Malformed, Unauthorized, NotFound, Storage;
    /// Problems of every request.
    OfService: Unauthorized, Storage;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_written_as_its_name() {
        for code in ProblemCode::ALL {
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{}\"", code.as_str()));
        }
    }
}

//! Problems as answers, and the problems that each operation may return.

use std::time::Duration;

use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use fastpay_core::Pruned;
use fastpay_program::http::BodyError;
use fastpay_rpc::Refusal;
use fastpay_rpc::http::problem_response;
use fastpay_rpc::json::{Decimal, Problem, ProblemCode};

use crate::authority::certification::NotArchived;
use crate::authority::network::ReadError;

/// The time that a client waits if a shard is busy with reads.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The time that a client waits if the archive is being indexed.
const ARCHIVE_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// A problem that is returned as an answer.
#[derive(Debug)]
pub(super) struct ApiError(Box<Problem>);

impl ApiError {
    pub(super) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    pub(super) fn pruned(pruned: &Pruned) -> Self {
        let problem = Problem::new(ProblemCode::Pruned, pruned.to_string());
        let (checkpoint, first) = (Some(Decimal(pruned.checkpoint)), Some(Decimal(pruned.first)));
        Problem { checkpoint, first, ..problem }.into()
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::Malformed, detail)
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Problem::from(&refusal).into()
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Busy => Refusal::Busy(READ_AGAIN_AFTER).into(),
            ReadError::Stopping => Refusal::Stopping.into(),
            ReadError::Unreadable => Self::new(ProblemCode::HistoryUnreadable, error.to_string()),
            ReadError::Pruned(pruned) => Self::pruned(&pruned),
        }
    }
}

impl From<NotArchived> for ApiError {
    fn from(reason: NotArchived) -> Self {
        let code = match reason {
            NotArchived::NoArchive | NotArchived::Empty | NotArchived::TooOld(_) | NotArchived::Recovered(..) => {
                ProblemCode::NotArchived
            }
            NotArchived::Busy => return Refusal::Busy(ARCHIVE_AGAIN_AFTER).into(),
            NotArchived::Unreadable => ProblemCode::HistoryUnreadable,
        };
        Self::new(code, reason.to_string())
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

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        problem_response(&self.0, self.0.status, self.0.retry_after_ms)
    }
}

/// The answer to an unknown path.
pub(super) async fn no_such_path(uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(ProblemCode::NotFound, format!("there is nothing at {path}; see /v1/openapi.json"))
}

/// The answer to a method that a path does not have.
pub(super) async fn no_such_method() -> ApiError {
    ApiError::new(ProblemCode::MethodNotAllowed, "this path has other methods")
}

/// Whether a problem comes with a time to wait.
fn waits(code: ProblemCode) -> bool {
    matches!(
        code,
        ProblemCode::Busy
            | ProblemCode::TooManyStreams
            | ProblemCode::DiskLow
            | ProblemCode::AccountBudget
            | ProblemCode::AddressBudget
    )
}

/// As [`waits`], for reads that may find the entry a moment later.
fn waits_for_found(code: ProblemCode) -> bool {
    waits(code) || code == ProblemCode::NotFound
}

fastpay_rpc::problem_sets! {
    ProblemCode, waits;
    /// Problems of an order.
    OfOrder: Malformed, Invalid, OrderPending, SequenceTooHigh, AlreadyConfirmed, InsufficientBalance, NoPrimary, Busy,
        Stopping, NotVoting, UnknownEpoch, CatchingUp, DiskLow, AccountBudget, AddressBudget, Frozen, Overruled, Voided,
        PrimaryTooOld, RequestTimeout, TooLarge, UnsupportedMediaType;
    /// Problems of a certificate.
    OfCertificate: Malformed, Invalid, MissingCertificate, Busy, Stopping, UnknownEpoch, EpochEnded, Unattested, Frozen,
        Overruled, Voided, PrimaryTooOld, RequestTimeout, TooLarge, UnsupportedMediaType;
    /// Problems of a batch of redemptions.
    OfBatch: Malformed, RedemptionsMissing, InsufficientBalance, Busy, Stopping, NotVoting, UnknownEpoch,
        HistoryUnreadable, RequestTimeout, TooLarge, UnsupportedMediaType;
    /// Problems of a vote about a number that is to be unlocked.
    OfUnlock: Malformed, SequenceTooHigh, Frozen, Overruled, Voided, NotRequested, WindowOpen, CatchingUp, Busy,
        Stopping, NotVoting, UnknownEpoch, HistoryUnreadable, Pruned, RequestTimeout, TooLarge, UnsupportedMediaType;
    /// Problems of a read of certificates by name.
    OfNames: Malformed, Busy, Stopping, HistoryUnreadable, Pruned, RequestTimeout, TooLarge, UnsupportedMediaType;
    /// Problems of a read from a shard's memory.
    OfState: Malformed, Busy, Stopping;
    /// Problems of a page of a history.
    OfPage: Malformed, Busy, Stopping, HistoryUnreadable, Pruned;
    /// Problems of a page of the archive.
    OfArchive: Malformed, NotArchived, Busy, HistoryUnreadable;
    /// Problems of one entry of a history, or of one shard.
    OfEntry: Malformed, NotFound, Busy, Stopping, HistoryUnreadable, Pruned;
    /// Problems of a stream of events.
    OfEvents: Malformed, CursorAhead, TooManyStreams, Busy, Stopping, HistoryUnreadable, Pruned;
    /// Problems of a read of a fact that this authority may not know.
    OfKnowledge: Malformed, NotFound;
}

fastpay_rpc::problem_sets! {
    ProblemCode, waits_for_found;
    /// Problems of a read that becomes possible a moment later: by the index, or from the contract.
    OfFound: Malformed, NotFound, Busy, Stopping, HistoryUnreadable, Pruned;
}

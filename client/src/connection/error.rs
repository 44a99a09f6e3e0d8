//! Errors of a call to an authority.

use std::time::Duration;

use fastpay_core::Pruned;
use fastpay_rpc::{Malformed, PRUNED_CHECKPOINT_KEY, PRUNED_FIRST_KEY, Refusal, printable};
use tonic::{Code, Status};

/// Why an authority gave no good answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The address, or the file of its certificate authority, cannot be used.
    #[error("{address:?} is not the address of an authority: {reason}")]
    Address {
        /// The value given.
        address: String,
        /// The defect.
        reason: String,
    },
    /// No connection, or it broke. Try again later; the same bytes can be sent any number of times.
    #[error("the authority is unreachable: {0}")]
    Unreachable(String),
    /// No answer in time. As above.
    #[error("the authority did not answer within {0:?}")]
    TimedOut(Duration),
    /// The authority refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The authority does not have it (yet).
    #[error("the authority does not have it")]
    NotFound,
    /// The authority reports that it cannot read its own records: its disk is damaged. This is not misbehaviour.
    #[error("the authority failed to read its records: {0}")]
    Unreadable(String),
    /// The authority keeps only later entries.
    #[error(transparent)]
    Pruned(#[from] Pruned),
    /// Its answer proves that it misbehaves.
    #[error("the authority sent a malformed answer: {0}")]
    Malformed(String),
}

impl ClientError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) => true,
            Self::Refused(refusal) => refusal.is_retryable(),
            Self::Address { .. } | Self::NotFound | Self::Unreadable(_) | Self::Pruned(_) | Self::Malformed(_) => false,
        }
    }

    /// The shortest time to wait before the call is repeated, if the authority named one.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Refused(Refusal::Busy(retry_after)) => *retry_after,
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn from_status(status: &Status) -> Self {
        let message = printable(status.message());
        let number = |key| status.metadata().get(key)?.to_str().ok()?.parse().ok();
        if let (Some(first), Some(checkpoint)) = (number(PRUNED_FIRST_KEY), number(PRUNED_CHECKPOINT_KEY)) {
            return Self::Pruned(Pruned { checkpoint, first });
        }
        match status.code() {
            Code::NotFound => Self::NotFound,
            Code::ResourceExhausted => Self::Refused(Refusal::Busy(Duration::ZERO)),
            Code::InvalidArgument => Self::Refused(Refusal::Malformed(message)),
            Code::FailedPrecondition => Self::Refused(Refusal::Invalid(message)),
            // The connection failed (a reset, a peer that does not speak HTTP/2). This is no answer of the authority.
            Code::Internal if std::error::Error::source(status).is_some() => Self::Unreachable(message),
            Code::DataLoss => Self::Unreadable(message),
            Code::OutOfRange | Code::Unimplemented | Code::Internal => Self::Malformed(message),
            _ => Self::Unreachable(message),
        }
    }
}

impl From<Malformed> for ClientError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed.to_string())
    }
}

//! Reads JSON bodies of bounded length in bounded time.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The request does not declare its body as JSON.
    #[error("the body must be JSON, with Content-Type: application/json")]
    MediaType,
    /// The body did not arrive within this time.
    #[error("the body did not arrive within {} s", .0.as_secs())]
    Slow(Duration),
    /// The body is longer than this many bytes.
    #[error("the body exceeds {0} bytes")]
    TooLong(usize),
    /// The connection ended before the body did.
    #[error("the body is incomplete")]
    CutShort,
    /// The body does not have the expected form.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// Checks that a body is declared as JSON.
///
/// # Errors
/// [`BodyError::MediaType`].
pub fn require_json(headers: &HeaderMap) -> Result<(), BodyError> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    if essence.trim().eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(BodyError::MediaType) }
}

/// Reads a body of at most `bytes_max` bytes, within `patience`.
///
/// # Errors
/// All of [`BodyError`] except the media type.
pub async fn read_json<T: DeserializeOwned>(body: Body, bytes_max: usize, patience: Duration) -> Result<T, BodyError> {
    let arriving = Limited::new(body, bytes_max).collect();
    let arrived = tokio::time::timeout(patience, arriving).await.map_err(|_| BodyError::Slow(patience))?;
    let bytes = arrived.map_err(|error| match error.is::<LengthLimitError>() {
        true => BodyError::TooLong(bytes_max),
        false => BodyError::CutShort,
    })?;
    Ok(serde_json::from_slice(&bytes.to_bytes())?)
}

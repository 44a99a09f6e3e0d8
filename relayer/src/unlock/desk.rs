//! The port for owners' requests: `POST /v1/unlocks`. Web pages of any origin may use it.

use std::net::IpAddr;
use std::time::Duration;

use alloy::primitives::{B256, Bytes};
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use fastpay_core::{AccountId, Domain, SequenceNumber, is_unlock_signed};
use fastpay_program::http::{BodyError, read_json, require_json};
use fastpay_rpc::http::{ProblemKind, TYPE_PREFIX, problem_response};
use fastpay_rpc::json::Uint64;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::Number;
use super::places::Places;

/// The maximum number of requests that wait for the relayer's next round.
pub(super) const ASKED_MAX: usize = 16;
const BODY_BYTES_MAX: usize = 1_024;
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// A request is answered within this time: a round and the questions to others take less.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

fastpay_rpc::problem_kinds! {
    /// Why a request is not submitted to the contract.
    RefusalCode
    /// The request cannot be read.
    Malformed "malformed" 400 Never "The request cannot be read",
        "Correct the request as the detail says.";
    /// The authorization is not the owner's signature of this request.
    NotOwner "not-owner" 403 Never "The account's owner did not sign this request",
        "Sign the unlock request with the account's key.";
    /// The number has an order, or is void.
    Spent "spent" 409 Never "The number is spent",
        "Finish what the detail names: nothing is to be unlocked.";
    /// The authorities have another next number.
    NotNext "not-next" 409 AfterChange "The number is not the account's next one",
        "Unlock the account's next number.";
    /// An order of the number can still be finished, or none is in the way.
    NotStuck "not-stuck" 409 AfterChange "The account is not stuck",
        "Do what the detail says.";
    /// Another number of the account is being unlocked.
    OneAtATime "one-at-a-time" 409 AfterChange "Another number of the account is being unlocked",
        "Wait until that number is decided.";
    /// The contract does not take it.
    Refused "refused" 409 AfterChange "The contract refuses the request",
        "Read the detail; the contract's state may have changed.";
    /// The relayer pays for no more today.
    BudgetSpent "budget-spent" 429 Later "The relayer's budget of the day is spent",
        "Send the same again after retryAfterMs, or to another relayer, or pay for it.";
    /// Nothing can be voided while the contract is paused.
    Paused "paused" 503 Later "The contract is paused",
        "Send the same again after retryAfterMs.";
    /// Too many requests wait.
    Busy "busy" 503 Later "The relayer is busy",
        "Send the same again after retryAfterMs.";
    /// It cannot be checked or sent now.
    Unavailable "unavailable" 503 Later "The relayer cannot bring it now",
        "Send the same again later, or to another relayer.";
    /// The body did not arrive in time.
    RequestTimeout "request-timeout" 408 Later "The body did not arrive in time",
        "Send the same again over a faster connection.";
    /// The body is longer than any request.
    TooLarge "too-large" 413 Never "The body is too long",
        "Send one request.";
    /// The body is not JSON.
    UnsupportedMediaType "unsupported-media-type" 415 Never "The body is not JSON",
        "Send it with Content-Type: application/json.";
}

/// How far the relayer is with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It submitted the request in this transaction, which is not final yet.
    Sent {
        /// The transaction's hash.
        transaction: B256,
    },
    /// The contract has the request.
    Requested {
        /// The time from which a quorum can void the number, in seconds since 1970.
        voidable_from: u64,
    },
}

/// Why the relayer does not submit a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason for programs.
    pub code: RefusalCode,
    /// The reason in words.
    pub detail: String,
    /// When the client may send it again.
    pub retry_after: Option<Duration>,
}

pub(super) type Answer = Result<Taken, Refusal>;

/// An owner's request, signed.
#[derive(Debug)]
pub(super) struct Ask {
    account: AccountId,
    sequence: SequenceNumber,
    pub(super) authorization: Vec<u8>,
    answer: oneshot::Sender<Answer>,
}

impl Ask {
    pub(super) fn number(&self) -> Number {
        (self.account, self.sequence)
    }

    pub(super) fn answer(self, answer: Answer) {
        // The client may have disconnected.
        drop(self.answer.send(answer));
    }
}

/// Takes owners' requests, verifies their signatures, and passes them to the relayer.
#[derive(Clone, Debug)]
pub struct UnlockDesk {
    domain: Domain,
    relayer: mpsc::Sender<Ask>,
    places: Places,
}

impl UnlockDesk {
    pub(super) fn new(domain: Domain, relayer: mpsc::Sender<Ask>) -> Self {
        Self { domain, relayer, places: Places::default() }
    }

    /// Has the relayer submit an owner's request to the contract, for a client at the address `from`. `authorization` is
    /// a 32-byte Ed25519 key and its 64-byte signature, or a 65-byte Ethereum signature. The same request may be
    /// repeated at any time.
    ///
    /// # Errors
    /// See [`RefusalCode`].
    pub async fn ask(
        &self,
        from: IpAddr,
        account: AccountId,
        sequence: SequenceNumber,
        authorization: Vec<u8>,
    ) -> Result<Taken, Refusal> {
        if !is_unlock_signed(&self.domain, account, sequence, &authorization) {
            let detail = format!("the authorization is not {account}'s signature of a request to unlock {sequence}");
            return Err(Refusal::new(RefusalCode::NotOwner, detail));
        }
        let busy = || Refusal::later(RefusalCode::Busy, "too many requests wait".into(), Duration::from_secs(10));
        let _place = self.places.take(from).ok_or_else(busy)?;
        let (answer, answered) = oneshot::channel();
        let ask = Ask { account, sequence, authorization, answer };
        self.relayer.try_send(ask).map_err(|_| busy())?;
        match timeout(ANSWER_PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            _ => Err(Refusal::new(
                RefusalCode::Unavailable,
                "the relayer cannot reach the chain or the authorities".into(),
            )),
        }
    }
}

impl Refusal {
    pub(super) fn new(code: RefusalCode, detail: String) -> Self {
        Self { code, detail, retry_after: None }
    }

    pub(super) fn later(code: RefusalCode, detail: String, wait: Duration) -> Self {
        Self { code, detail, retry_after: Some(wait) }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::MediaType => RefusalCode::UnsupportedMediaType,
            BodyError::Slow(_) => RefusalCode::RequestTimeout,
            BodyError::TooLong(_) => RefusalCode::TooLarge,
            BodyError::CutShort | BodyError::Json(_) => RefusalCode::Malformed,
        };
        Self::new(code, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { code, detail, retry_after } = self;
        let retry_after_ms = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let mut problem = json!({
            "type": format!("{TYPE_PREFIX}{}", code.as_str()),
            "title": code.title(),
            "status": code.status(),
            "detail": detail,
            "code": code,
            "action": code.action(),
            "retry": code.retry(),
        });
        if let (Some(milliseconds), Some(facts)) = (retry_after_ms, problem.as_object_mut()) {
            facts.insert("retryAfterMs".into(), milliseconds.into());
        }
        problem_response(&problem, code.status(), retry_after_ms)
    }
}

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    account: AccountId,
    sequence: Uint64,
    authorization: Bytes,
}

/// The routes for unlocking.
pub(crate) fn router(desk: UnlockDesk) -> Router {
    Router::new().route("/v1/unlocks", post(answer).options(allow)).with_state(desk)
}

const ANY_ORIGIN: (&str, &str) = ("access-control-allow-origin", "*");

async fn answer(
    Shared(desk): Shared<UnlockDesk>,
    Extension(from): Extension<IpAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answered = async {
        require_json(&headers)?;
        let Request { account, sequence, authorization } = read_json(body, BODY_BYTES_MAX, BODY_PATIENCE).await?;
        desk.ask(from, account, SequenceNumber(sequence.0), authorization.into()).await
    };
    let response = match answered.await {
        Ok(Taken::Sent { transaction }) => {
            (StatusCode::ACCEPTED, axum::Json(json!({ "state": "sent", "transaction": transaction }))).into_response()
        }
        Ok(Taken::Requested { voidable_from }) => {
            axum::Json(json!({ "state": "requested", "voidableFrom": voidable_from })).into_response()
        }
        Err(refusal) => refusal.into_response(),
    };
    ([ANY_ORIGIN, ("cache-control", "no-store")], response).into_response()
}

/// Answers the preflight request that a browser sends before JSON to another origin.
async fn allow() -> impl IntoResponse {
    let allowed =
        [ANY_ORIGIN, ("access-control-allow-methods", "POST"), ("access-control-allow-headers", "content-type")];
    (StatusCode::NO_CONTENT, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_written_as_its_name() {
        for code in RefusalCode::ALL {
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{}\"", code.as_str()));
        }
    }
}

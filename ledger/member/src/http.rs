//! The key-value store over HTTP, and proofs of the state for pages in a browser.
//!
//! ```text
//!  GET    /v1/kv/{namespace}/{key}                    the value; ETag is its version
//!  PUT    … If-Match: "version" or If-None-Match: *   the body is the value
//!  DELETE …                                           both with Ledger-Sequence and Ledger-Authorization
//!  GET    /v1/state/{key}                             {"proof": …}, of any entry; key and proof as in gRPC's Read
//! ```
//!
//! The writer signs the instruction that the request stands for, so the member cannot alter it. A plain HTTP client takes
//! the answer on the member's word; who does not asks for the proof. Pages of any origin may do that.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fastpay_core::{Authorization, SequenceNumber};
use fastpay_ledger_client::api::state_key;
use fastpay_ledger_statement::{
    Action, AnswerProof, Condition, Entry, Evidence, Get, Height, Instruction, Key, Layout, Namespace, Outcome,
    ReadProof, Rejection, Request, SignedInstruction, StateKey, VALUE_BYTES_MAX, Value, Version, Wire,
};
use fastpay_program::http::{ConnectionLimits, serve};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::command::{Command, Unavailable};
use crate::grpc::{Service, SubmitError};
use crate::places::Places;

static HEIGHT: HeaderName = HeaderName::from_static("ledger-height");
static TIME: HeaderName = HeaderName::from_static("ledger-time");

#[derive(Clone)]
struct Store {
    service: Service,
    layout: Arc<Layout>,
}

/// Serves until `stop` turns true.
pub async fn serve_store(
    listener: TcpListener,
    service: Service,
    layout: Layout,
    room: Places,
    stop: watch::Receiver<bool>,
) {
    let store = Store { service, layout: Arc::new(layout) };
    let router = Router::new()
        .route("/v1/kv/{namespace}/{key}", get(read).put(put).delete(delete))
        .route("/v1/state/{key}", get(prove))
        .layer(DefaultBodyLimit::max(VALUE_BYTES_MAX))
        .with_state(store);
    let admit = move |address: IpAddr| room.take(Some(address)).map(|place| ((), place));
    serve(listener, router, ConnectionLimits::default(), None, admit, stop).await;
}

/// Why a request has no answer with a value or a version.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the namespace is not one: use up to 64 of a-z, 0-9 and -")]
    Namespace,
    #[error("the key has no bytes, or more than 256")]
    Key,
    #[error("the key of an entry of the state is its borsh encoding in hexadecimal digits")]
    StateKey,
    #[error("nothing is decided yet; try again later")]
    Undecided,
    #[error("the value has more than {VALUE_BYTES_MAX} bytes")]
    Value,
    #[error("give {0} as docs/LEDGER.md says")]
    Header(&'static str),
    #[error("the key has no value")]
    Missing,
    #[error("the key has another version, or none; read it, and decide again")]
    Condition(Option<Version>),
    #[error(transparent)]
    Rejection(#[from] Rejection),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error("the member's answer is to something else")]
    Unexpected,
}

impl From<Unavailable> for Failure {
    fn from(unavailable: Unavailable) -> Self {
        Self::Submit(unavailable.into())
    }
}

impl Failure {
    /// The status, and the kind for programs.
    fn kind(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Namespace => (StatusCode::BAD_REQUEST, "namespace"),
            Self::Key | Self::StateKey => (StatusCode::BAD_REQUEST, "key"),
            Self::Value => (StatusCode::PAYLOAD_TOO_LARGE, "value"),
            Self::Header(_) => (StatusCode::BAD_REQUEST, "header"),
            Self::Missing => (StatusCode::NOT_FOUND, "missing"),
            Self::Condition(_) => (StatusCode::PRECONDITION_FAILED, "version"),
            Self::Rejection(Rejection::UnknownNamespace) => (StatusCode::NOT_FOUND, "namespace"),
            Self::Undecided | Self::Rejection(Rejection::Busy) | Self::Submit(SubmitError::Unavailable(_)) => {
                (StatusCode::SERVICE_UNAVAILABLE, "busy")
            }
            Self::Rejection(
                Rejection::SequenceGap(_) | Rejection::SequenceConflict(_) | Rejection::SequenceForgotten(_),
            ) => (StatusCode::CONFLICT, "sequence"),
            Self::Rejection(_) => (StatusCode::UNPROCESSABLE_ENTITY, "rejected"),
            Self::Submit(SubmitError::Request(_)) => (StatusCode::UNAUTHORIZED, "signature"),
            Self::Submit(SubmitError::NoAnswer) => (StatusCode::GATEWAY_TIMEOUT, "timeout"),
            Self::Unexpected => (StatusCode::INTERNAL_SERVER_ERROR, "system"),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, kind) = self.kind();
        let body = axum::Json(json!({ "error": { "kind": kind, "message": self.to_string() } }));
        let mut response = (status, body).into_response();
        if let Self::Condition(Some(version)) = self {
            response.headers_mut().insert(header::ETAG, tag(version));
        }
        response
    }
}

fn place(namespace: String, key: String) -> Result<(Namespace, Key), Failure> {
    let namespace = Namespace::new(namespace).ok_or(Failure::Namespace)?;
    Ok((namespace, Key::new(key.into_bytes()).ok_or(Failure::Key)?))
}

fn tag(version: Version) -> HeaderValue {
    let text = format!("\"{}-{}\"", version.height, version.position);
    HeaderValue::from_str(&text).expect("digits are a header's value")
}

fn version(tag: &str) -> Option<Version> {
    let (height, position) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
    Some(Version { height: Height(height.parse().ok()?), position: position.parse().ok()? })
}

fn numbers(height: Height, time: fastpay_ledger_statement::Time) -> [(HeaderName, HeaderValue); 2] {
    [(HEIGHT.clone(), height.0.into()), (TIME.clone(), time.0.into())]
}

/// From the newest state here if this cluster keeps the key; otherwise, and for `Cache-Control: no-cache`, with a round.
async fn read(
    State(store): State<Store>,
    Path((namespace, key)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let (namespace, key) = place(namespace, key)?;
    if !store.layout.genesis().namespaces.contains_key(&namespace) {
        return Err(Rejection::UnknownNamespace.into());
    }
    let wants_newest = headers.get(header::CACHE_CONTROL).is_some_and(|value| value == "no-cache");
    let is_here = store.layout.genesis().partition.of_value(&namespace, &key) == store.layout.us();
    if is_here && !wants_newest {
        let place = StateKey::Stored(namespace, key);
        let read = store.service.handle().ask(|reply| Command::Read(place, reply)).await?;
        let ReadProof { header, proof, .. } = read.ok_or(Failure::Missing)?;
        let Evidence::Present(entry) = proof.evidence else { return Err(Failure::Missing) };
        let Entry { version, value } = borsh::from_slice(&entry).map_err(|_| Failure::Unexpected)?;
        return Ok(found(version, &value, numbers(header.height, header.time)));
    }
    let get = Get { namespace, key, nonce: rand::random() };
    let AnswerProof { answer, header, .. } = store.service.submit(Request::Get(get)).await?;
    match answer.result? {
        Outcome::Found { version, value } => Ok(found(version, &value, numbers(header.height, header.time))),
        Outcome::Missing => Err(Failure::Missing),
        _ => Err(Failure::Unexpected),
    }
}

/// An entry of the newest state with its proof, or the proof that there is none.
async fn prove(State(store): State<Store>, Path(key): Path<String>) -> Response {
    let answer = proof(&store, &key).await.map(|proof| axum::Json(json!({ "proof": proof })));
    let from_any_page = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (header::CACHE_CONTROL, "no-store")];
    (from_any_page, answer).into_response()
}

async fn proof(store: &Store, key: &str) -> Result<String, Failure> {
    let key = hex::decode(key).ok().and_then(|bytes| state_key(&bytes).ok()).ok_or(Failure::StateKey)?;
    let proof = store.service.handle().ask(|reply| Command::Read(key, reply)).await?;
    Ok(format!("0x{}", hex::encode(proof.ok_or(Failure::Undecided)?.encode())))
}

fn found(version: Version, value: &Value, numbers: [(HeaderName, HeaderValue); 2]) -> Response {
    ([(header::ETAG, tag(version))], numbers.into_iter().collect::<HeaderMap>(), value.as_bytes().to_vec())
        .into_response()
}

async fn put(
    State(store): State<Store>,
    Path((namespace, key)): Path<(String, String)>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Response, Failure> {
    let body = body.map_err(|_| Failure::Value)?;
    let value = Value::new(body.to_vec()).ok_or(Failure::Value)?;
    write(&store, place(namespace, key)?, &headers, Some(value)).await
}

async fn delete(
    State(store): State<Store>,
    Path((namespace, key)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    write(&store, place(namespace, key)?, &headers, None).await
}

async fn write(
    store: &Store,
    (namespace, key): (Namespace, Key),
    headers: &HeaderMap,
    value: Option<Value>,
) -> Result<Response, Failure> {
    let signer = store.layout.genesis().namespaces.get(&namespace).copied().ok_or(Rejection::UnknownNamespace)?;
    let shard = store.layout.genesis().partition.of_value(&namespace, &key);
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let sequence = text("ledger-sequence").and_then(|digits| digits.parse().ok()).map(SequenceNumber);
    let sequence = sequence.ok_or(Failure::Header("Ledger-Sequence"))?;
    let authorization = text("ledger-authorization").and_then(|digits| hex::decode(digits).ok());
    let authorization: Option<Authorization> = authorization.and_then(|bytes| borsh::from_slice(&bytes).ok());
    let authorization = authorization.ok_or(Failure::Header("Ledger-Authorization"))?;
    let condition = match (text("if-match"), text("if-none-match")) {
        (None, None) => Condition::Always,
        (None, Some("*")) => Condition::Absent,
        (Some(tag), None) => Condition::Version(version(tag).ok_or(Failure::Header("If-Match"))?),
        _ => return Err(Failure::Header("If-Match or If-None-Match: *")),
    };
    let action = Action::Write { namespace, key, condition, value };
    let deployment = store.layout.deployment();
    let instruction = Instruction { deployment, shard, signer, sequence, action };
    let request = Request::Instruct(Box::new(SignedInstruction { instruction, authorization }));
    let AnswerProof { answer, header, .. } = store.service.submit(request).await?;
    match answer.result? {
        Outcome::Written(version) => {
            let numbers: HeaderMap = numbers(header.height, header.time).into_iter().collect();
            Ok((StatusCode::NO_CONTENT, [(header::ETAG, tag(version))], numbers).into_response())
        }
        Outcome::ConditionFailed(now) => Err(Failure::Condition(now)),
        _ => Err(Failure::Unexpected),
    }
}

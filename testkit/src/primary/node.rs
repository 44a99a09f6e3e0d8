//! One Ethereum node: a transport for alloy's clients, in process and in virtual time.

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use alloy::primitives::{U64, keccak256};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::{ErrorPayload, RequestPacket, Response, ResponsePacket, ResponsePayload, SerializedRequest};
use alloy::rpc::types::{Log, TransactionRequest};
use alloy::transports::{TransportError, TransportErrorKind, TransportFut};
use fastrand::Rng;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use url::Url;

use super::block::Block;
use super::chain::Chain;
use super::faults::Behaviour;
use super::rpc::{self, RpcFailure, View};

/// A node with its own view of the chain and its own faults. Clones refer to the same node.
#[derive(Clone, Debug)]
pub struct SimulatedNode {
    name: Arc<str>,
    chain: Arc<Mutex<Chain>>,
    conduct: Arc<Mutex<Conduct>>,
}

#[derive(Debug)]
struct Conduct {
    behaviour: Behaviour,
    random: Rng,
}

/// The outcome of one request, drawn in advance.
#[derive(Clone, Copy, Debug)]
struct Way {
    there: Duration,
    back: Duration,
    is_lost: bool,
    is_refused: bool,
}

impl SimulatedNode {
    pub(super) fn new(chain: Arc<Mutex<Chain>>, name: &str, seed: u64) -> Self {
        let conduct = Conduct { behaviour: Behaviour::default(), random: Rng::with_seed(seed) };
        Self { name: name.into(), chain, conduct: Arc::new(Mutex::new(conduct)) }
    }

    /// The node's address in a configuration.
    ///
    /// # Panics
    /// If the node's name cannot be a host name.
    #[must_use]
    pub fn url(&self) -> Url {
        format!("http://{}", self.name).parse().expect("the name is a host's")
    }

    /// A client of this node.
    #[must_use]
    pub fn client(&self) -> RpcClient {
        RpcClient::new(self.clone(), true)
    }

    /// Changes the node's behaviour from now on. Requests under way are answered as they would have been before.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.conduct().behaviour);
    }

    /// Makes the node correct again.
    pub fn recover(&self) {
        self.behave(|behaviour| *behaviour = Behaviour::default());
    }

    /// Keeps the node on the branch that is the newest now, even if the chain abandons it.
    pub fn get_stuck(&self) {
        let branch = self.chain().branch.clone();
        self.behave(|behaviour| behaviour.stuck_on = Some(branch));
    }

    fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().expect("no user of the chain panics")
    }

    fn conduct(&self) -> MutexGuard<'_, Conduct> {
        self.conduct.lock().expect("no user of a node panics")
    }

    fn draw(&self) -> Result<Way, TransportError> {
        let Conduct { behaviour, random } = &mut *self.conduct();
        if behaviour.away {
            return Err(TransportErrorKind::custom_str("connection refused"));
        }
        let mut delay = || Duration::from_millis(random.u64(behaviour.delay_ms.clone()));
        let (there, back) = (delay(), delay());
        let is_refused = random.u32(..100) < behaviour.errors_percent;
        Ok(Way { there, back, is_lost: behaviour.silent, is_refused })
    }

    async fn handle(self, packet: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let way = self.draw()?;
        tokio::time::sleep(way.there).await;
        if way.is_lost {
            std::future::pending::<()>().await;
        }
        let answer = match packet {
            RequestPacket::Single(request) => ResponsePacket::Single(self.respond(&request, way)),
            RequestPacket::Batch(requests) => {
                ResponsePacket::Batch(requests.iter().map(|request| self.respond(request, way)).collect())
            }
        };
        tokio::time::sleep(way.back).await;
        Ok(answer)
    }

    fn respond(&self, request: &SerializedRequest, way: Way) -> Response {
        let params = request.params().map_or("[]", |params| params.get());
        let answer = match serde_json::from_str::<Vec<Value>>(params) {
            _ if way.is_refused => Err(RpcFailure::new(-32_603, "internal error")),
            Ok(params) => self.answer(request.method(), &params),
            Err(error) => Err(RpcFailure::new(-32_600, error.to_string())),
        };
        let payload = match answer {
            Ok(value) => ResponsePayload::Success(to_raw_value(&value).expect("a value is JSON")),
            Err(RpcFailure { code, message, data }) => ResponsePayload::Failure(ErrorPayload {
                code,
                message: message.into(),
                data: data.map(|data| to_raw_value(&data).expect("bytes are JSON")),
            }),
        };
        self.note(request.method(), params, &payload);
        Response { id: request.id().clone(), payload }
    }

    fn answer(&self, method: &str, params: &[Value]) -> Result<Value, RpcFailure> {
        let behaviour = self.conduct().behaviour.clone();
        if behaviour.refuses.contains(&method) || refuses_call(&behaviour, method, params) {
            return Err(RpcFailure::new(-32_005, "limit exceeded"));
        }
        let mut chain = self.chain();
        if method == "eth_sendRawTransaction" {
            if behaviour.swallows_transactions {
                let raw: Option<alloy::primitives::Bytes> =
                    params.first().and_then(|raw| serde_json::from_value(raw.clone()).ok());
                return Ok(serde_json::json!(keccak256(raw.unwrap_or_default())));
            }
            return rpc::submit(&mut chain, params);
        }
        let branch: &[Arc<Block>] = behaviour.stuck_on.as_deref().unwrap_or(&chain.branch);
        let known = branch.len().saturating_sub(behaviour.lag).max(1);
        let mut answer = View { chain: &chain, branch: &branch[..known] }.answer(method, params)?;
        if behaviour.later_s != 0 && is_older_block(method, params) && !answer.is_null() {
            let time: U64 = serde_json::from_value(answer["timestamp"].clone()).expect("blocks have a time");
            answer["timestamp"] =
                serde_json::json!(U64::from(time.to::<u64>().saturating_add_signed(behaviour.later_s)));
        }
        if method != "eth_getLogs" || behaviour.lies.is_empty() {
            return Ok(answer);
        }
        let mut logs: Vec<Log> = serde_json::from_value(answer).expect("they were logs");
        behaviour.lies.iter().for_each(|lie| lie.apply(&mut logs));
        Ok(serde_json::to_value(logs).expect("logs are JSON"))
    }

    /// Adds a request and its answer to the chain's digest.
    fn note(&self, method: &str, params: &str, answer: &ResponsePayload) {
        let answer = match answer {
            ResponsePayload::Success(value) => value.get(),
            ResponsePayload::Failure(error) => &error.message,
        };
        let mut chain = self.chain();
        let words = [&self.name, method, params, answer].map(str::as_bytes).concat();
        chain.digest = keccak256([chain.digest.as_slice(), &words].concat());
    }
}

/// Whether this is the call of a function that the node refuses to call.
fn refuses_call(behaviour: &Behaviour, method: &str, params: &[Value]) -> bool {
    if behaviour.refuses_calls.is_empty() || method != "eth_call" {
        return false;
    }
    let call = params.first().and_then(|call| TransactionRequest::deserialize(call).ok()).unwrap_or_default();
    let input = call.input.into_input().unwrap_or_default();
    behaviour.refuses_calls.iter().any(|function| input.starts_with(&keccak256(function)[..4]))
}

/// Whether a request asks for a block other than the newest.
fn is_older_block(method: &str, params: &[Value]) -> bool {
    ["eth_getBlockByNumber", "eth_getBlockByHash"].contains(&method)
        && params.first().is_some_and(|which| which != "latest")
}

impl tower::Service<RequestPacket> for SimulatedNode {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        Box::pin(self.clone().handle(packet))
    }
}

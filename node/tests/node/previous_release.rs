//! The conversations of the previous release, replayed against this one.
//!
//! `vectors/release` has the previous release's schema, and what its clients asked an authority of it over gRPC and HTTP
//! and were answered: `RECORD_CONVERSATIONS=1` had that release's copy of this test write them. During a rolling upgrade
//! both releases are at work. So a client of either must conclude the same from an authority of either:
//!
//! | client | authority | checked here by |
//! |---|---|---|
//! | previous | this | the recorded requests, answered now, and read by the previous schema |
//! | this | previous | this release's requests, read by the previous schema; the recorded answers, read by this release |
//!
//! Texts for people and the version are not compared.

mod script;

use std::sync::Arc;

use fastpay_core::{Certificate, ContractVote, Deposit, Epoch, Vote};
use fastpay_rpc::proto::redemption_batch_response::Response as BatchResponse;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::{AccountState, Page, Received, Refusal, ShardStatus, proto};
use prost::Message;
use protox::prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value as Field};
use serde_json::{Value, json};

use crate::http_scene::HttpServed;
use crate::network::Served;

const RELEASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/release");
/// Answers differ in these from one release to the next, and no program reads them.
const NOT_COMPARED: [&str; 5] = ["message", "version", "title", "detail", "action"];

/// The recorded steps; or none, after writing them where they are to be recorded.
fn recorded(name: &str, live: impl FnOnce() -> Vec<Value>) -> Option<Vec<Value>> {
    let path = format!("{RELEASE}/{name}.json");
    if std::env::var_os("RECORD_CONVERSATIONS").is_some() {
        let steps: Vec<_> = live().iter().map(Value::to_string).collect();
        std::fs::write(path, format!("[\n{}\n]\n", steps.join(",\n"))).unwrap();
        return None;
    }
    Some(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
}

fn previous_schema() -> DescriptorPool {
    protox::Compiler::new([RELEASE]).unwrap().open_file("fastpay.proto").unwrap().descriptor_pool()
}

/// A message as a program of the previous release reads it: without the fields that it does not know.
fn as_before(schema: &MessageDescriptor, bytes: &[u8]) -> Value {
    fn plain(field: &Field) -> Value {
        match field {
            Field::Message(message) => fields(message),
            Field::List(list) => list.iter().map(plain).collect(),
            Field::Bytes(bytes) => json!(hex::encode(bytes)),
            scalar => json!(format!("{scalar:?}")),
        }
    }
    fn fields(message: &DynamicMessage) -> Value {
        let known = message.fields().filter(|(field, _)| !NOT_COMPARED.contains(&field.name()));
        known.map(|(field, value)| (field.name().to_owned(), plain(value))).collect::<serde_json::Map<_, _>>().into()
    }
    fields(&DynamicMessage::decode(schema.clone(), bytes).unwrap())
}

/// An answer, read into the types that clients of this release work with, and written again.
fn reread(call: &str, answer: &[u8]) -> Vec<u8> {
    fn through<M, T>(answer: &[u8]) -> Vec<u8>
    where
        M: Message + Default + for<'a> From<&'a T>,
        T: TryFrom<M, Error: std::fmt::Debug>,
    {
        M::from(&T::try_from(M::decode(answer).unwrap()).unwrap()).encode_to_vec()
    }
    match call {
        "GetAccount" => through::<proto::AccountResponse, AccountState>(answer),
        "GetCertificate" => through::<proto::Certificate, Certificate>(answer),
        "ListReceived" => through::<proto::ReceivedPage, Page<Received>>(answer),
        "ListDeposits" => through::<proto::DepositPage, Page<Deposit>>(answer),
        "ListRedemptions" => {
            let Page { entries, total } =
                Page::<Certificate>::try_from(proto::CertificatePage::decode(answer).unwrap()).unwrap();
            let entries = entries.into_iter().map(Arc::new).collect();
            proto::CertificatePage::from(&Page { entries, total }).encode_to_vec()
        }
        "GetStatus" => through::<proto::StatusResponse, ShardStatus>(answer),
        "Submit" => {
            let proto::SubmitResponse { id, response } = Message::decode(answer).unwrap();
            let response = match response.unwrap() {
                Response::Vote(vote) => Response::Vote((Epoch(vote.epoch), &Vote::try_from(vote).unwrap()).into()),
                Response::Refused(refused) => Response::Refused((&Refusal::try_from(refused).unwrap()).into()),
                confirmed @ Response::Confirmed(_) => confirmed,
            };
            proto::SubmitResponse { id, response: Some(response) }.encode_to_vec()
        }
        "VoteRedemptionBatch" => {
            let proto::RedemptionBatchResponse { response } = Message::decode(answer).unwrap();
            let response = match response.unwrap() {
                BatchResponse::Vote(vote) => {
                    let (epoch, vote) = <(Epoch, ContractVote)>::try_from(vote).unwrap();
                    BatchResponse::Vote((epoch, &vote).into())
                }
                BatchResponse::Refused(refused) => {
                    BatchResponse::Refused((&Refusal::try_from(refused).unwrap()).into())
                }
                positions @ (BatchResponse::Missing(_) | BatchResponse::Uncovered(_)) => positions,
            };
            proto::RedemptionBatchResponse { response: Some(response) }.encode_to_vec()
        }
        other => panic!("{other}: say how its answer is read"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_clients_and_authorities_of_both_releases_understand_each_other() {
    let served = Served::start(2).await;
    let (alice, bob) = script::accounts();
    served.deposit(&[(alice.id(), 100), (bob.id(), 1), (alice.id(), 11)]).await;
    let calls = script::calls(&served.shards.committee);
    let mut live = Vec::new();
    for call in &calls {
        live.push(script::call(&served, call).await);
    }
    let steps = recorded("grpc", || {
        let steps = calls.iter().zip(&live).map(|((call, shard, request), answer)| {
            let (answer, status) = (answer.as_ref().ok().map(hex::encode), answer.as_ref().err());
            json!({ "call": call, "shard": shard, "request": hex::encode(request), "answer": answer, "status": status })
        });
        steps.collect()
    });
    served.end().await;
    let Some(steps) = steps else { return };

    let schema = previous_schema();
    let service = schema.get_service_by_name("fastpay.v1.Shard").unwrap();
    let names: Vec<_> = service.methods().map(|method| method.name().to_owned()).collect();
    for name in &names {
        assert!(calls.iter().any(|(call, ..)| call == name), "{name} is not among the calls");
    }
    // Calls that this release added stand behind those of the previous one.
    assert!(steps.len() <= calls.len());
    for ((step, (call, shard, request)), answer) in steps.iter().zip(&calls).zip(&live) {
        let method = service.methods().find(|method| method.name() == call).unwrap();
        let bytes = |field: &str| step[field].as_str().map(|text| hex::decode(text).unwrap());
        assert_eq!((&step["call"], &step["shard"]), (&json!(call), &json!(shard)));
        let asked = as_before(&method.input(), &bytes("request").unwrap());
        assert_eq!(as_before(&method.input(), request), asked, "{call} asks for something else");
        let before = match (bytes("answer"), answer) {
            (Some(before), Ok(_)) => before,
            (None, Err(status)) if step["status"] == json!(status) => continue,
            other => panic!("{call} {asked}: {other:?} where the previous release answers {step}"),
        };
        let now = answer.as_ref().unwrap();
        let understood = as_before(&method.output(), &before);
        assert_eq!(as_before(&method.output(), now), understood, "a client of the previous release: {call} {asked}");
        assert_eq!(
            as_before(&method.output(), &reread(call, &before)),
            understood,
            "a client of this release: {call} {asked}"
        );
    }
}

/// Whether all of an earlier answer is in the one of now.
fn contains(now: &Value, before: &Value) -> bool {
    match (now, before) {
        (Value::Object(now), Value::Object(before)) => before
            .iter()
            .filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()))
            .all(|(name, before)| now.get(name).is_some_and(|now| contains(now, before))),
        (Value::Array(now), Value::Array(before)) => {
            now.len() == before.len() && now.iter().zip(before).all(|(now, before)| contains(now, before))
        }
        _ => now == before,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_answers_keep_all_that_the_previous_release_answered() {
    let served = HttpServed::start(2).await;
    let calls = script::http_calls(&served.shards.committee);
    let mut live = Vec::new();
    for call in &calls {
        live.push(script::http_call(&served, call).await);
    }
    served.end().await;
    let steps = recorded("http", || {
        let steps = calls.iter().zip(&live).map(|((method, path, body), (status, answer))| {
            json!({ "method": method, "path": path, "body": body, "status": status, "answer": answer })
        });
        steps.collect()
    });
    let Some(steps) = steps else { return };
    assert!(steps.len() <= calls.len());
    for ((step, (method, path, body)), (status, answer)) in steps.iter().zip(&calls).zip(&live) {
        let asked = json!({ "method": method, "path": path, "body": body });
        assert!(
            contains(&asked, &json!({ "method": step["method"], "path": step["path"], "body": step["body"] })),
            "{asked}"
        );
        assert_eq!(json!(status), step["status"], "{asked}: {answer}");
        assert!(contains(answer, &step["answer"]), "{asked}: {answer}, and the previous release: {}", step["answer"]);
    }
    assert!(!contains(&json!({ "a": [1, 2] }), &json!({ "a": [1] })));
    assert!(!contains(&json!({ "b": 1 }), &json!({ "a": 1 })));
}

//! The requests of the recorded conversations, and what sends them: over gRPC as bytes, over HTTP as JSON.

use bytes::{Buf, BufMut};
use fastpay_core::{AccountId, PrimaryAddress, SequenceNumber, Transfer};
use fastpay_rpc::json;
use fastpay_rpc::proto::submit_request::Request as Asked;
use fastpay_rpc::proto::{self, SubmitRequest};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption};
use prost::Message;
use serde_json::{Value, json};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic::{Request, Status};

use crate::http_scene::{HttpServed, ask};
use crate::network::Served;
use crate::scene::{account_in, layout};

/// A call, the number of its shard, and the encoded request.
pub type Call = (String, usize, Vec<u8>);
/// Method, path and body.
pub type HttpCall = (String, String, Value);

/// An account of the first shard, and one of the second.
pub fn accounts() -> (TestAccount, TestAccount) {
    (account_in(layout(2), 0, 0), account_in(layout(2), 1, 0))
}

/// Every call of the gRPC service with its usual answers, on accounts that deposits funded.
pub fn calls(committee: &TestCommittee) -> Vec<Call> {
    let (alice, bob) = accounts();
    let sign = |from: &TestAccount, transfer: Transfer| from.sign(&committee.domain, transfer);
    let order = |transfer: Transfer| Some(Asked::Order((&sign(&alice, transfer)).into()));
    let certificate = |from: &TestAccount, transfer: Transfer| {
        Some(Asked::Certificate((&committee.certificate(&sign(from, transfer))).into()))
    };
    let pay = |amount, sequence| Transfer::from(payment(alice.id(), bob.id(), amount, sequence));
    let redeem = Transfer::from(redemption(alice.id(), PrimaryAddress::repeat_byte(7), 50, 1));
    let outputs = Transfer::from(payout(alice.id(), &[(bob.id(), 2), (alice.id(), 1)], 2));
    let back = Transfer::from(payment(bob.id(), alice.id(), 3, 0));
    let submitted = [
        order(pay(30, 0)),
        // Refused: locked on another order.
        order(pay(31, 0)),
        certificate(&alice, pay(30, 0)),
        // Refused: confirmed already, too far ahead, not covered, without a transfer.
        order(pay(31, 0)),
        order(pay(1, 5)),
        order(pay(1_000, 1)),
        None,
        order(redeem.clone()),
        certificate(&alice, redeem),
        order(outputs.clone()),
        certificate(&alice, outputs),
        // Refused: of an account of the other shard.
        certificate(&bob, back.clone()),
    ];
    let submit =
        |(id, request): (u64, Option<Asked>)| ("Submit".to_owned(), 0, SubmitRequest { id, request }.encode_to_vec());
    let mut calls: Vec<_> = (1..).zip(submitted).map(submit).collect();
    let incoming = SubmitRequest { id: 9, request: certificate(&bob, back) };
    calls.push(("Submit".to_owned(), 1, incoming.encode_to_vec()));
    let key = |account: &TestAccount| bytes::Bytes::copy_from_slice(&account.id().0);
    let redemptions = |sequences: &[u64]| {
        let names: Vec<_> = sequences.iter().map(|sequence| (alice.id(), SequenceNumber(*sequence))).collect();
        proto::RedemptionBatchRequest::from(&names[..]).encode_to_vec()
    };
    for (shard, account) in [&alice, &bob].into_iter().enumerate() {
        let mut ask = |name: &str, request| calls.push((name.to_owned(), shard, request));
        let of = proto::AccountRequest { account: key(account), ..Default::default() };
        let page = proto::AccountPageRequest { account: key(account), ..Default::default() };
        ask("GetAccount", of.encode_to_vec());
        ask("ListReceived", page.encode_to_vec());
        ask("ListDeposits", page.encode_to_vec());
        for sequence in [0, 9] {
            let certificate = proto::CertificateRequest { account: key(account), sequence };
            ask("GetCertificate", certificate.encode_to_vec());
        }
        ask("ListRedemptions", proto::PageRequest::default().encode_to_vec());
        ask("VoteRedemptionBatch", redemptions(&[1]));
        ask("VoteRedemptionBatch", redemptions(&[1, 2]));
        ask("GetStatus", proto::StatusRequest::default().encode_to_vec());
    }
    calls
}

/// What a funded account and its recipient ask over HTTP.
pub fn http_calls(committee: &TestCommittee) -> Vec<HttpCall> {
    let (alice, bob) = accounts();
    let sign = |from: &TestAccount, transfer: Transfer| from.sign(&committee.domain, transfer);
    let order = |transfer: Transfer| {
        ("POST".to_owned(), "/v1/orders".to_owned(), json!(json::TransferOrder::from(&sign(&alice, transfer))))
    };
    let certificate = |from: &TestAccount, transfer: Transfer| {
        let certificate = committee.certificate(&sign(from, transfer));
        ("POST".to_owned(), "/v1/certificates".to_owned(), json!(json::Certificate::from(&certificate)))
    };
    let get = |path: String| ("GET".to_owned(), path, Value::Null);
    let pay = |amount, sequence| Transfer::from(payment(alice.id(), bob.id(), amount, sequence));
    let redeem = Transfer::from(redemption(alice.id(), PrimaryAddress::repeat_byte(7), 50, 1));
    let outputs = Transfer::from(payout(alice.id(), &[(bob.id(), 2), (alice.id(), 1)], 2));
    let batch = |account: AccountId, sequence: u64| {
        let redemptions = json!([{"sender": account.to_string(), "sequence": sequence.to_string()}]);
        ("POST".to_owned(), "/v1/redemptions/votes".to_owned(), json!({ "redemptions": redemptions }))
    };
    let digest = committee.domain.transfer_digest(&pay(30, 0));
    let mut calls = vec![
        // Without it Alice could order nothing.
        certificate(&bob, payment(bob.id(), alice.id(), 111, 0).into()),
        order(pay(30, 0)),
        order(pay(31, 0)),
        get(format!("/v1/accounts/{}", alice.id())),
        certificate(&alice, pay(30, 0)),
        order(pay(31, 0)),
        order(pay(1, 5)),
        order(pay(1_000, 1)),
        ("POST".to_owned(), "/v1/orders".to_owned(), json!({})),
        order(redeem.clone()),
        certificate(&alice, redeem),
        order(outputs.clone()),
        certificate(&alice, outputs),
        batch(alice.id(), 1),
        batch(alice.id(), 2),
        get(format!("/v1/transfers/{digest}")),
        get("/v1/committee".to_owned()),
        get("/v1/status".to_owned()),
        get(format!("/v1/redemptions?shard={}", 0)),
        get("/v1/nothing".to_owned()),
    ];
    for account in [&alice, &bob] {
        for what in ["", "/sent", "/received", "/deposits", "/certificates/0", "/certificates/9"] {
            calls.push(get(format!("/v1/accounts/{}{what}", account.id())));
        }
    }
    calls
}

/// Messages as the bytes that they come as.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining()).to_vec()))
    }
}

/// Waits until no credit is under way between the shards: only then is an answer the same each time.
fn settle(shards: &crate::scene::Shards) {
    tokio::task::block_in_place(|| shards.settle());
}

/// The encoded answer, or the code of the status.
pub async fn call(served: &Served, (name, shard, request): &Call) -> Result<Vec<u8>, i32> {
    settle(&served.shards);
    let channel =
        Endpoint::from_shared(format!("http://{}", served.addresses[*shard])).unwrap().connect().await.unwrap();
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path = PathAndQuery::try_from(format!("/fastpay.v1.Shard/{name}")).unwrap();
    let answer = if name == "Submit" {
        let requests = Request::new(tokio_stream::iter([request.clone()]));
        let mut stream = grpc.streaming(requests, path, Raw).await.unwrap().into_inner();
        stream.message().await.map(|answer| answer.expect("an answer"))
    } else {
        grpc.unary(Request::new(request.clone()), path, Raw).await.map(tonic::Response::into_inner)
    };
    answer.map_err(|status| status.code() as i32)
}

/// The status and the body.
pub async fn http_call(served: &HttpServed, (method, path, body): &HttpCall) -> (u16, Value) {
    settle(&served.shards);
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    loop {
        let answer = ask(served.address, method, path, &[("content-type", "application/json")], &body).await;
        // The index finds a transfer by its digest a moment after the transfer is confirmed.
        if answer.status != 404 || !path.starts_with("/v1/transfers/") {
            return (answer.status, answer.json());
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

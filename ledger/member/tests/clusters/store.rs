//! The key-value store, over HTTP and gRPC, and what bad input gets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use fastpay_core::{AccountKey, SequenceNumber};
use fastpay_ledger_client::Client;
use fastpay_ledger_client::api::channel;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_client::api::proto::{DecisionsRequest, ReadRequest, RelayRequest, SubmitRequest};
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeNumber, Condition, Deployment, Instruction, ReadProof, Request, StateKey,
    StatementVerifier, Time, VALUE_BYTES_MAX, Wire,
};
use tonic::Code;

use super::{key, one_cluster, prices, put, value, writer};

struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<String> {
        let line = self.headers.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }

    /// The status and the kind of an error.
    fn error(&self) -> (u16, String) {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        (self.status, body["error"]["kind"].as_str().unwrap().to_owned())
    }
}

fn http(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: ledger\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (headers, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, headers: headers.to_owned(), body: body.to_owned() }
}

/// The headers with which a key signs a write.
fn signed(client: &Client, by: &AccountKey, sequence: u64, condition: Condition, text: Option<&str>) -> [String; 2] {
    let action = Action::Write { namespace: prices(), key: key("gold"), condition, value: text.map(value) };
    let instruction = Instruction {
        deployment: client.layout().deployment(),
        shard: ClusterId(1),
        signer: writer().account(),
        sequence: SequenceNumber(sequence),
        action,
    };
    let authorization = instruction.signed(by).authorization;
    [sequence.to_string(), hex::encode(borsh::to_vec(&authorization).unwrap())]
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_put_read_and_deleted_over_http_and_bad_input_gets_its_error() {
    let (_folder, net) = one_cluster().await;
    let client = net.client();
    let members = client.layout().members(ClusterId(1)).unwrap().keys().to_vec();
    let at = net.network().addresses(&members[1]).unwrap().http;
    let path = "/v1/kv/prices/gold";
    let write = |method: &str, sequence, condition, text: Option<&str>, more: &[(&str, &str)]| {
        let [sequence, authorization] = signed(&client, &writer(), sequence, condition, text);
        let mut headers = vec![("Ledger-Sequence", &*sequence), ("Ledger-Authorization", &*authorization)];
        headers.extend(more);
        http(at, method, path, &headers, text.unwrap_or(""))
    };

    let missing = http(at, "GET", path, &[], "");
    assert_eq!(missing.error(), (404, "missing".to_owned()));
    let first = write("PUT", 0, Condition::Absent, Some("1"), &[("If-None-Match", "*")]);
    assert_eq!(first.status, 204, "{}", first.body);
    let tag = first.header("etag").unwrap();
    for cache in ["max-age=0", "no-cache"] {
        let read = http(at, "GET", path, &[("Cache-Control", cache)], "");
        assert_eq!((read.status, &*read.body, read.header("etag")), (200, "1", Some(tag.clone())));
        assert!(read.header("ledger-height").unwrap().parse::<u64>().unwrap() > 0);
        assert!(read.header("ledger-time").is_some());
    }
    let (height, position) = tag.trim_matches('"').split_once('-').unwrap();
    let version = fastpay_ledger_statement::Version {
        height: fastpay_ledger_statement::Height(height.parse().unwrap()),
        position: position.parse().unwrap(),
    };
    let second = write("PUT", 1, Condition::Version(version), Some("2"), &[("If-Match", &tag)]);
    assert_eq!(second.status, 204, "{}", second.body);
    let stale = write("PUT", 2, Condition::Version(version), Some("3"), &[("If-Match", &tag)]);
    assert_eq!(stale.error(), (412, "version".to_owned()));
    assert_eq!(stale.header("etag"), second.header("etag"));
    assert_eq!(http(at, "GET", path, &[], "").body, "2", "nothing was written");
    let again = write("PUT", 1, Condition::Always, Some("other"), &[]);
    assert_eq!(again.error(), (409, "sequence".to_owned()));
    let gap = write("PUT", 9, Condition::Always, Some("4"), &[]);
    assert_eq!(gap.error(), (409, "sequence".to_owned()));

    // Bad input.
    let [sequence, authorization] = signed(&client, &AccountKey::ed25519([8; 32]), 3, Condition::Always, Some("5"));
    let headers = [("Ledger-Sequence", &*sequence), ("Ledger-Authorization", &*authorization)];
    assert_eq!(http(at, "PUT", path, &headers, "5").error(), (401, "signature".to_owned()), "another key");
    assert_eq!(http(at, "PUT", path, &headers[..1], "5").error(), (400, "header".to_owned()));
    assert_eq!(http(at, "PUT", path, &headers[1..], "5").error(), (400, "header".to_owned()));
    let odd = [headers[0], headers[1], ("If-Match", "gold")];
    assert_eq!(http(at, "PUT", path, &odd, "5").error(), (400, "header".to_owned()));
    assert_eq!(http(at, "GET", "/v1/kv/silver/gold", &[], "").error(), (404, "namespace".to_owned()));
    assert_eq!(http(at, "PUT", "/v1/kv/silver/gold", &headers, "5").error(), (404, "namespace".to_owned()));
    assert_eq!(http(at, "GET", "/v1/kv/Silver/gold", &[], "").error(), (400, "namespace".to_owned()));
    assert_eq!(
        http(at, "GET", &format!("/v1/kv/prices/{}", "k".repeat(257)), &[], "").error(),
        (400, "key".to_owned())
    );
    let oversized = "v".repeat(VALUE_BYTES_MAX + 1);
    assert_eq!(http(at, "PUT", path, &headers, &oversized).error(), (413, "value".to_owned()));

    let deleted = write("DELETE", 3, Condition::Always, None, &[]);
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    assert_eq!(http(at, "GET", path, &[], "").error(), (404, "missing".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn any_page_reads_an_entry_with_its_proof() {
    let (_folder, net) = one_cluster().await;
    let client = net.client();
    put(&client, None, "gold", "1", Condition::Always).await.unwrap();
    let (members, _) = client.cluster(ClusterId(1)).unwrap();
    let at = net.network().addresses(&members.keys()[1]).unwrap().http;
    let any = Some("*".to_owned());
    let stored = |name| StateKey::Stored(prices(), key(name));
    for (asked, is_there) in [
        (stored("gold"), true),
        (StateKey::Epoch(CommitteeNumber(0)), true),
        (stored("silver"), false),
        (StateKey::Epoch(CommitteeNumber(1)), false),
    ] {
        let digits = hex::encode(borsh::to_vec(&asked).unwrap());
        let answer = http(at, "GET", &format!("/v1/state/{digits}"), &[], "");
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, any.clone()));
        assert_eq!(answer.header("cache-control"), Some("no-store".to_owned()));
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        let proof = ReadProof::decode(&hex::decode(&body["proof"].as_str().unwrap()[2..]).unwrap()).unwrap();
        let (partition, mut verifier) = (client.partition(), StatementVerifier::default());
        let read = proof.verify(&asked, Time(0), partition, members, &mut verifier, &mut rand::rng()).unwrap();
        assert_eq!(read.value.is_some(), is_there, "{asked:?}");
    }
    for bad in ["gold", "ff", "0x0d00000000", &"00".repeat(600)] {
        let refused = http(at, "GET", &format!("/v1/state/{bad}"), &[], "");
        assert_eq!(
            (refused.error(), refused.header("access-control-allow-origin")),
            ((400, "key".into()), any.clone())
        );
    }
    let written = http(at, "PUT", "/v1/kv/prices/gold", &[], "2");
    assert_eq!(written.header("access-control-allow-origin"), None, "a page reads, and writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_over_grpc_gets_its_error() {
    let (_folder, net) = one_cluster().await;
    let client = net.client();
    let members = client.layout().members(ClusterId(1)).unwrap().keys().to_vec();
    let mut member = LedgerClient::new(channel(net.network().addresses(&members[0]).unwrap().api));
    let instruction = Instruction {
        deployment: client.layout().deployment(),
        shard: ClusterId(1),
        signer: writer().account(),
        sequence: SequenceNumber(0),
        action: Action::Open,
    };
    let request = |instruction: Instruction, by: &AccountKey| {
        let request = Request::Instruct(Box::new(instruction.signed(by)));
        SubmitRequest { request: request.encode() }
    };
    let foreign = Instruction { deployment: Deployment(fastpay_core::Digest::ZERO), ..instruction.clone() };
    for (bad, what) in [
        (SubmitRequest { request: vec![1, 2, 3] }, "not a statement of this kind"),
        (SubmitRequest { request: vec![0; Request::BYTES_MAX + 1] }, "this kind has at most"),
        (request(instruction.clone(), &AccountKey::ed25519([8; 32])), "not signed by the owner"),
        (request(foreign, &writer()), "for another deployment"),
    ] {
        let relayed = RelayRequest { requests: vec![bad.request.clone()] };
        for status in [member.submit(bad).await.unwrap_err(), member.relay(relayed).await.unwrap_err()] {
            assert_eq!(status.code(), Code::InvalidArgument);
            assert!(status.message().contains(what), "{}", status.message());
        }
    }
    let flood = RelayRequest { requests: vec![Vec::new(); 1_025] };
    assert_eq!(member.relay(flood).await.unwrap_err().code(), Code::InvalidArgument);
    let read = member.read(ReadRequest { key: vec![255] }).await.unwrap_err();
    assert_eq!(read.code(), Code::InvalidArgument);
    let asked = DecisionsRequest { receiver: vec![255], from: 1, wait_ms: 0 };
    assert_eq!(member.decisions(asked).await.unwrap_err().code(), Code::InvalidArgument);

    // None of it did harm, and another writer is told who may write.
    put(&client, None, "gold", "1", Condition::Always).await.unwrap();
    let action =
        Action::Write { namespace: prices(), key: key("gold"), condition: Condition::Always, value: Some(value("2")) };
    let wrong = client.instruct(&AccountKey::ed25519([8; 32]), ClusterId(1), None, &action).await.unwrap_err();
    assert!(wrong.to_string().contains("writes in this namespace"), "{wrong}");
    assert_eq!(super::stored(&client, "gold").await.unwrap().value, value("1"));
    let absent = client.read(ClusterId(1), &StateKey::Stored(prices(), key("no")), Default::default()).await.unwrap();
    assert_eq!(absent.value, None, "absence is proven");
}

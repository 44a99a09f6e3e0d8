//! A payment over HTTP alone: the steps of docs/API.md, against four running nodes.

use fastpay_core::{AccountId, Domain, VerifiedVote, Vote};
use fastpay_e2e::{Network, PATIENCE, http_get, http_post, wait_for};
use fastpay_rpc::json::{
    Account, AccountState, Certificate, Committee, Confirmed, ConfirmedTransfer, Decimal, Hex, Problem, ProblemCode,
    ReceivedPayment, Status, TransferOrder, VoteAnswer,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::scene::{START, key, payment, standalone};

fn addresses(network: &Network) -> Vec<String> {
    network.authorities.iter().map(|authority| authority.endpoints().unwrap().http.clone().unwrap()).collect()
}

async fn get<T: DeserializeOwned>(address: &str, path: &str) -> T {
    let (status, body) = http_get(address, path).await.unwrap();
    assert_eq!(status, 200, "{address}{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

async fn post<T: DeserializeOwned>(address: &str, path: &str, value: &impl Serialize) -> Result<T, Problem> {
    let (status, body) = http_post(address, path, &serde_json::to_string(value).unwrap()).await.unwrap();
    match status {
        200 => Ok(serde_json::from_str(&body).unwrap()),
        _ => Err(serde_json::from_str(&body).unwrap()),
    }
}

/// A stream of an account's events, from now on.
async fn follow(address: &str, account: AccountId) -> BufReader<TcpStream> {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /v1/accounts/{account}/events HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream);
    // The first event of the stream: from then on no event is missed.
    until(&mut lines, "retry: ").await;
    lines
}

/// The rest of the first line that begins with this prefix.
async fn until(lines: &mut BufReader<TcpStream>, words: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).await.unwrap() > 0, "the stream ended before {words:?}");
        if let Some(rest) = line.strip_prefix(words) {
            return rest.trim().to_owned();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_http_alone_pays_and_is_paid() {
    let (alice, bob) = (key(4), key(5).account());
    let mut network = standalone("http", &[alice.account()]);
    network.start_authorities().await.unwrap();
    let nodes = addresses(&network);

    // The signature is for this deployment and this number.
    let status: Status = get(&nodes[0], "/v1/status").await;
    let domain = Domain::new(status.chain_id.0, status.verifying_contract.0.into());
    assert_eq!((&domain, status.contract), (network.domain(), None));
    let state: AccountState = get(&nodes[0], &format!("/v1/accounts/{}", alice.account())).await;
    assert_eq!((state.next_sequence, state.holdings[0].balance.to_string()), (Decimal(0), START.to_string()));
    let order = alice.order(&domain, payment(&alice, bob, 70, state.next_sequence.0));

    let mut events = follow(&nodes[3], bob).await;
    let committee: Committee = get(&nodes[1], "/v1/committee").await;
    assert_eq!(committee, Committee::new(network.committee(), true));
    let mut votes: Vec<VerifiedVote> = Vec::new();
    let verified = order.clone().verify(&domain).unwrap();
    for node in &nodes {
        let answer: VoteAnswer = post(node, "/v1/orders", &TransferOrder::from(&order)).await.unwrap();
        assert_eq!(answer.epoch, committee.epoch);
        let vote = Vote::try_from(answer.vote).unwrap();
        votes.push(vote.verify(&domain, network.committee(), &verified).unwrap());
    }
    // Another order with this number is refused.
    let other = alice.order(&domain, payment(&alice, bob, 71, 0));
    let refused = post::<VoteAnswer>(&nodes[2], "/v1/orders", &TransferOrder::from(&other)).await.unwrap_err();
    assert_eq!((refused.code, refused.pending), (ProblemCode::OrderPending, Some(Box::new((&order).into()))));

    let certificate = fastpay_core::Certificate::from_votes(&verified, network.committee(), &votes).unwrap();
    let certificate = Certificate::from(certificate.certificate());
    for node in &nodes {
        let confirmed: Confirmed = post(node, "/v1/certificates", &certificate).await.unwrap();
        assert_eq!(confirmed.next_sequence, Decimal(1));
    }

    until(&mut events, "event: received").await;
    let received: ReceivedPayment = serde_json::from_str(&until(&mut events, "data: ").await).unwrap();
    assert_eq!(received.payment, (&order.transfer).into());
    assert_eq!(received.digest, Hex(verified.digest().0));
    // Anyone can read it from any authority.
    let sender = Account(alice.account());
    let found: Certificate = get(&nodes[1], &format!("/v1/accounts/{sender}/certificates/0")).await;
    assert_eq!(found, certificate);
    let by_digest = format!("/v1/transfers/{}", received.digest);
    for node in &nodes {
        // The index follows a moment later.
        let found = wait_for(PATIENCE, || async {
            let (status, body) = http_get(node, &by_digest).await?;
            if status == 200 { Ok(body) } else { Err(body) }
        });
        let transfer: ConfirmedTransfer = serde_json::from_str(&found.await.unwrap()).unwrap();
        assert_eq!((transfer.sender, transfer.sequence), (sender, Decimal(0)));
    }
}

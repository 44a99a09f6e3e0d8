//! The HTTP API: what each operation answers, and each of its problems.

use std::sync::Arc;

use fastpay_core::{
    AccountId, Amount, AuthorityName, Balance, Certificate, Committees, ContractVote, Domain, EcdsaSignature, Epoch,
    EpochEnd, PrimaryAddress, SequenceNumber, TransferOrder, UnlockVote, Vote,
};
use fastpay_node::authority::follower::Progress;
use fastpay_node::authority::http::HttpLimits;
use fastpay_node::authority::rollback::{RollbackProtection, VoteFloors};
use fastpay_node::authority::voter_status::VoterStatus;
use fastpay_rpc::http::Retry;
use fastpay_rpc::json::{AccountState, Decimal, Hex};
use fastpay_rpc::{REDEMPTION_BATCH_MAX, json};
use fastpay_testkit::{TestAccount, payment, redemption};
use serde_json::{Value, json};

use crate::http_scene::{HttpServed, Said, ask};
use crate::process::Operator;
use crate::scene::{FORGETFUL, deposits_after, eventually_async, folders, voter_status, voter_status_with};

async fn with_deposits(deposits: &[(AccountId, u128)]) -> HttpServed {
    let served = HttpServed::start(2).await;
    let deposits = deposits_after(fastpay_core::TransactionIndex(0), deposits);
    let up_to = deposits.last().unwrap().index;
    assert!(served.shards.deposit_sink().apply(fastpay_core::TransactionIndex(0), &deposits, up_to).await);
    served
}

async fn order(served: &HttpServed, order: &TransferOrder) -> Said {
    served.post("/v1/orders", &json::TransferOrder::from(order)).await
}

async fn confirm(served: &HttpServed, certificate: &Certificate) -> Said {
    served.post("/v1/certificates", &json::Certificate::from(certificate)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_voted_for_confirmed_and_found_by_everyone() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = with_deposits(&[(alice.id(), 10), (bob.id(), 1), (alice.id(), 5)]).await;
    let domain = served.shards.committee.domain;
    let path = |account: &TestAccount, rest: &str| format!("/v1/accounts/{}{rest}", account.id());

    let pay = alice.sign(&domain, payment(alice.id(), bob.id(), 7, 0));
    let answer: json::VoteAnswer = order(&served, &pay).await.good();
    let vote = Vote::try_from(answer.vote).unwrap();
    let committee = &served.shards.committee.committee;
    vote.verify(&domain, committee, &served.shards.committee.verified(&pay)).unwrap();
    assert_eq!(answer.epoch, Decimal(0));
    let locked: AccountState = served.get(&path(&alice, "")).await.good();
    assert_eq!(locked.pending, Some((&pay).into()));

    let certificate = served.shards.committee.certificate(&pay);
    for _ in 0..2 {
        let confirmed: json::Confirmed = confirm(&served, &certificate).await.good();
        assert_eq!(confirmed.next_sequence, Decimal(1));
    }
    let redeem = alice.sign(&domain, redemption(alice.id(), PrimaryAddress::repeat_byte(9), 3, 1));
    order(&served, &redeem).await.good::<json::VoteAnswer>();
    let redeemed = served.shards.committee.certificate(&redeem);
    confirm(&served, &redeemed).await.good::<json::Confirmed>();

    let state: Value = served.get(&path(&alice, "")).await.good();
    let zero = format!("0x{}", "00".repeat(20));
    let shard = served.shards.layout.shard_of(&alice.id()).0;
    assert_eq!(
        state,
        json!({"account": alice.id().to_string(), "shard": shard, "nextSequence": "2", "pending": null,
            "holdings": [{"asset": zero, "balance": "5"}], "received": "0", "deposits": "2", "truncated": false,
            "catchingUp": false})
    );
    let by_asset: AccountState = served.get(&path(&alice, &format!("?asset={zero}"))).await.good();
    assert_eq!(by_asset.holdings, [json::Holding { asset: Hex([0; 20]), balance: Decimal(Balance::from(Amount(5))) }]);
    let other: AccountState = served.get(&path(&alice, &format!("?asset=0x{}", "01".repeat(20)))).await.good();
    assert_eq!(other.holdings, []);

    let found: json::Certificate = served.get(&path(&alice, "/certificates/0")).await.good();
    assert_eq!(Certificate::try_from(found).unwrap(), certificate);
    served.get(&path(&alice, "/certificates/2")).await.problem("not-found");

    // By name: of any shard, without those that are not confirmed, and in the order that was asked for.
    let name = |account: &TestAccount, sequence: u64| json!({"sender": account.id().to_string(), "sequence": sequence.to_string()});
    let read = |names: Value| {
        let served = &served;
        async move { served.post("/v1/certificates/read", &json!({"names": names})).await }
    };
    let names = json!([name(&bob, 0), name(&alice, 1), name(&alice, 0), name(&alice, 1), name(&alice, 2)]);
    let answer: json::Certificates = read(names).await.good();
    let shown: Vec<_> = answer.certificates.into_iter().map(|shown| Certificate::try_from(shown).unwrap()).collect();
    assert_eq!((answer.looked_up, shown), (5, vec![redeemed.clone(), certificate, redeemed.clone()]));
    for wrong in [json!([]), json!(vec![name(&alice, 0); 101]), json!([{"sender": "0x12", "sequence": "0"}]), json!(7)]
    {
        read(wrong).await.problem("malformed");
    }

    let sent: json::SentPage = served.get(&path(&alice, "/sent")).await.good();
    assert_eq!((sent.start, sent.total, sent.transfers.len()), (Decimal(0), Decimal(2), 2));
    assert_eq!(sent.transfers[0], json::SentTransfer::new(&domain, &pay.transfer));
    assert_eq!(sent.transfers[1].digest, Hex(domain.transfer_digest(&redeem.transfer).0));
    let second: json::SentPage = served.get(&path(&alice, "/sent?start=1&limit=1")).await.good();
    assert_eq!((second.start, &second.transfers[..]), (Decimal(1), &sent.transfers[1..]));
    eventually_async("the payment arrives", || async {
        let page: json::ReceivedPage = served.get(&path(&bob, "/received")).await.good();
        page.total == Decimal(1) && page.payments[0].payment == (&pay.transfer).into()
    })
    .await;
    let deposits: Value = served.get(&path(&alice, "/deposits?start=1")).await.good();
    let second = json!({"index": "3", "recipient": alice.id().to_string(), "asset": format!("0x{}", "00".repeat(20)), "amount": "5"});
    assert_eq!(deposits, json!({"total": "2", "deposits": [second]}));

    let page: json::RedemptionPage = served.get(&format!("/v1/redemptions?shard={shard}")).await.good();
    assert_eq!((page.total, page.shard), (Decimal(1), shard));
    assert_eq!(Certificate::try_from(page.certificates[0].clone()).unwrap(), redeemed);
    let page: json::RedemptionPage = served.get(&format!("/v1/redemptions?shard={shard}&start=1&limit=7")).await.good();
    assert_eq!(page.certificates, []);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_is_a_problem_with_its_facts() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = with_deposits(&[(alice.id(), 10)]).await;
    let domain = served.shards.committee.domain;
    let sign = |amount, sequence| alice.sign(&domain, payment(alice.id(), bob.id(), amount, sequence));

    let problem = order(&served, &sign(1, 5)).await.problem("sequence-too-high");
    assert_eq!((problem.expected_sequence, problem.retry), (Some(Decimal(0)), Retry::AfterChange));
    let problem = order(&served, &sign(11, 0)).await.problem("insufficient-balance");
    assert_eq!(problem.balance, Some(Decimal(Balance::from(Amount(10)))));
    let late = served.shards.committee.certificate(&sign(1, 3));
    let problem = confirm(&served, &late).await.problem("missing-certificate");
    assert_eq!(problem.expected_sequence, Some(Decimal(0)));

    order(&served, &sign(1, 0)).await.good::<json::VoteAnswer>();
    let problem = order(&served, &sign(2, 0)).await.problem("order-pending");
    assert_eq!(problem.pending, Some(Box::new((&sign(1, 0)).into())));
    confirm(&served, &served.shards.committee.certificate(&sign(1, 0))).await.good::<json::Confirmed>();
    let problem = order(&served, &sign(2, 0)).await.problem("already-confirmed");
    assert_eq!((problem.expected_sequence, problem.retry), (Some(Decimal(1)), Retry::Never));

    // Not valid, whatever the state.
    let problem = order(&served, &sign(0, 1)).await.problem("invalid");
    assert!(problem.detail.contains("amount"), "{}", problem.detail);
    let mut forged = sign(1, 1);
    forged.authorization = sign(2, 1).authorization;
    order(&served, &forged).await.problem("invalid");
    let mut few = served.shards.committee.certificate(&sign(1, 1));
    few.votes.pop();
    confirm(&served, &few).await.problem("invalid");
    let mut later = served.shards.committee.certificate(&sign(1, 1));
    later.epoch = Epoch(9);
    let problem = confirm(&served, &later).await.problem("unknown-epoch");
    assert_eq!((problem.epoch, problem.retry), (Some(Decimal(9)), Retry::Later));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_value_is_malformed_and_its_place_is_named() {
    let alice = TestAccount::ethereum(0);
    let served = with_deposits(&[(alice.id(), 10)]).await;
    let pay = alice.sign(&served.shards.committee.domain, payment(alice.id(), TestAccount::ed25519(1).id(), 1, 0));
    let good = serde_json::to_value(json::TransferOrder::from(&pay)).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = good.clone();
        change(&mut body);
        body
    };
    let cases: Vec<(&str, Value)> = vec![
        ("unknown field", with(&|body| body["note"] = json!("hello"))),
        ("unknown field", with(&|body| body["transfer"]["gas"] = json!("1"))),
        ("unknown field", with(&|body| body["authorization"]["key"] = json!("0x00"))),
        ("missing field", with(&|body| drop(body["transfer"].as_object_mut().unwrap().remove("memo")))),
        ("unknown variant", with(&|body| body["transfer"]["type"] = json!("swap"))),
        ("not a number", with(&|body| body["transfer"]["amount"] = json!("1.5"))),
        ("not a number", with(&|body| body["transfer"]["amount"] = json!("340282366920938463463374607431768211456"))),
        ("string", with(&|body| body["transfer"]["amount"] = json!(1))),
        (
            "checksum",
            with(&|body| {
                body["transfer"]["sender"] = json!("0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045");
            }),
        ),
        ("hexadecimal", with(&|body| body["transfer"]["memo"] = json!("0x12"))),
        ("expected struct", json!([])),
    ];
    for (words, body) in cases {
        let problem = served.post("/v1/orders", &body).await.problem("malformed");
        assert!(problem.detail.contains(words), "{words}: {}", problem.detail);
    }
    let json_type = [("content-type", "application/json; charset=utf-8")];
    for body in ["", "{", "[1", "\u{0}", "nul", "{\"transfer\":1}", "\"text\""] {
        ask(served.address, "POST", "/v1/orders", &json_type, body.as_bytes()).await.problem("malformed");
    }
    let deep = "[".repeat(5_000);
    ask(served.address, "POST", "/v1/orders", &json_type, deep.as_bytes()).await.problem("malformed");

    let path = format!("/v1/accounts/{}", alice.id());
    for wrong in ["/v1/accounts/0x12", "/v1/accounts/fp1", "/v1/accounts/%ff", "/v1/accounts/%2e%2e"] {
        served.get(wrong).await.problem("malformed");
    }
    for wrong in [
        "?asset=0x12",
        "?asset=",
        "?colour=red",
        "/certificates/-1",
        "/certificates/01",
        "/sent?start=x",
        "/received?limit=-1",
        "/deposits?start=18446744073709551616",
        "/sent?start=1&start=2",
    ] {
        served.get(&format!("{path}{wrong}")).await.problem("malformed");
    }
    for wrong in ["/v1/committee?epoch=x", "/v1/redemptions?shard=one", "/v1/status?asset=eth"] {
        served.get(wrong).await.problem("malformed");
    }
    assert!(served.shards.metrics.network.malformed.get() >= 10);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_is_held_to_its_rules() {
    let served = HttpServed::start(1).await;
    let order = ("content-type", "application/json");
    served.get("/v2/status").await.problem("not-found");
    served.get("/v1/redemptions?shard=1").await.problem("not-found");
    served.get("/v1/committee?epoch=1").await.problem("not-found");
    let refused = ask(served.address, "DELETE", "/v1/status", &[], b"").await;
    refused.problem("method-not-allowed");
    assert_eq!(refused.header("allow"), Some("GET,HEAD"));
    let refused = served.get("/v1/orders").await;
    refused.problem("method-not-allowed");
    assert_eq!(refused.header("allow"), Some("POST"));
    for content_type in ["text/plain", "application/xml", "application/jsonx"] {
        let answer = ask(served.address, "POST", "/v1/orders", &[("content-type", content_type)], b"{}").await;
        answer.problem("unsupported-media-type");
    }
    ask(served.address, "POST", "/v1/certificates", &[], b"{}").await.problem("unsupported-media-type");
    let long = vec![b' '; json::json_bytes_max(3) + 1];
    ask(served.address, "POST", "/v1/certificates", &[order], &long).await.problem("too-large");
    // A page of another origin asks first.
    let asks = [
        ("origin", "http://localhost:5173"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    let allowed = ask(served.address, "OPTIONS", "/v1/orders", &asks, b"").await;
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (200, Some("*")));
    assert_eq!(allowed.header("access-control-allow-methods"), Some("*"));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_must_come_in_time() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let limits = HttpLimits { body_timeout: std::time::Duration::from_millis(50), ..HttpLimits::default() };
    let served = HttpServed::with(1, limits, FORGETFUL, true).await;
    let mut stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let head = "POST /v1/orders HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let count = stream.read(&mut answer).await.unwrap();
    Said::parse(std::str::from_utf8(&answer[..count]).unwrap()).problem("request-timeout");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_client_is_told_when_to_retry() {
    // Nobody takes anything out of the queue, which has room for one.
    let tight = fastpay_node::authority::shard::ShardLimits { queue_requests_max: 1, ..FORGETFUL };
    let served = HttpServed::with(1, HttpLimits::default(), tight, false).await;
    let alice = TestAccount::ethereum(0);
    let pay = alice.sign(&served.shards.committee.domain, payment(alice.id(), TestAccount::ed25519(1).id(), 1, 0));
    let _waiting = served.shards.ask_account(&alice.id());
    let problem = order(&served, &pay).await.problem("busy");
    assert_eq!(problem.retry, Retry::Later);
    assert_eq!(served.shards.metrics.network.busy.get(), 1);
    served.get(&format!("/v1/accounts/{}", alice.id())).await.problem("busy");
    served.get("/v1/status").await.problem("busy");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_there_is_no_room_for_an_order_is_a_problem_with_a_time_to_wait() {
    let low = fastpay_node::authority::shard::ShardLimits { disk_reserve_bytes: u64::MAX, ..FORGETFUL };
    let least = std::num::NonZeroU64::MIN;
    let spent = fastpay_node::authority::shard::ShardLimits { account_journal_bytes_per_day: least, ..FORGETFUL };
    for (limits, code, status, pays) in [(low, "disk-low", 503, 0), (spent, "account-budget", 429, 1)] {
        let served = HttpServed::with(1, HttpLimits::default(), limits, true).await;
        let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
        let owner = alice.id();
        let shards = served.shards.deposit_sink();
        let deposits = crate::scene::deposits_after(fastpay_core::TransactionIndex(0), &[(owner, 10)]);
        assert!(shards.apply(fastpay_core::TransactionIndex(0), &deposits, fastpay_core::TransactionIndex(1)).await);
        let sign = |sequence| alice.sign(&served.shards.committee.domain, payment(owner, bob.id(), 1, sequence));
        for sequence in 0..pays {
            order(&served, &sign(sequence)).await.good::<json::VoteAnswer>();
            confirm(&served, &served.shards.committee.certificate(&sign(sequence))).await.good::<json::Confirmed>();
        }
        let problem = order(&served, &sign(pays)).await.problem(code);
        assert_eq!((problem.retry, problem.status), (Retry::Later, status));
        assert!(problem.retry_after_ms.is_some_and(|wait| wait > 0));
        confirm(&served, &served.shards.committee.certificate(&sign(pays))).await.good::<json::Confirmed>();
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_has_ended_is_stopping() {
    let served = HttpServed::start(1).await;
    let alice = TestAccount::ethereum(0);
    let pay = alice.sign(&served.shards.committee.domain, payment(alice.id(), TestAccount::ed25519(1).id(), 1, 0));
    for handle in served.shards.handles.values() {
        handle.try_send(fastpay_node::authority::shard::Command::Stop).unwrap();
    }
    eventually_async("the shard ends", || async { served.get("/v1/status").await.json()["code"] == "stopping" }).await;
    order(&served, &pay).await.problem("stopping");
    let certificate = served.shards.committee.certificate(&pay);
    confirm(&served, &certificate).await.problem("stopping");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authority_reports_its_identity_and_state() {
    let alice = TestAccount::ethereum(0);
    let served = with_deposits(&[(alice.id(), 10)]).await;
    let committee = &served.shards.committee.committee;
    let said: json::Committee = served.get("/v1/committee").await.good();
    assert_eq!(said, json::Committee::new(committee, true));
    assert_eq!((said.quorum, said.members.len()), (3, 4));
    let again: json::Committee = served.get("/v1/committee?epoch=0").await.good();
    assert_eq!(again, said);

    let status: json::Status = served.get("/v1/status").await.good();
    assert_eq!(status.authority, Hex(served.shards.voter_status.borrow().public().name.0));
    assert_eq!((status.votes, status.restored, status.shards.len()), (true, false, 2));
    assert_eq!(status.contract, Some(status.verifying_contract));
    assert_eq!(status.follower.state, json::FollowerState::AtHead);
    let held: Vec<_> = status.shards.iter().flat_map(|shard| &shard.totals).map(|totals| totals.accounts).collect();
    assert_eq!(held, [Decimal(Balance::from(Amount(10)))]);
    served.progress.send_replace(Progress::Stopped("the log is missing".into()));
    let status: json::Status = served.get(&format!("/v1/status?asset=0x{}", "02".repeat(20))).await.good();
    assert_eq!(status.follower.reason.as_deref(), Some("the log is missing"));
    assert!(status.shards.iter().all(|shard| shard.totals.is_empty()));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_without_a_vote_says_so_and_still_confirms() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = with_deposits(&[(alice.id(), 10)]).await;
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    committees.note_end(Epoch(0), EpochEnd::new(u64::MAX, 0));
    committees.install(first.rotated().committee).unwrap();
    let keys = Arc::new(first.keys[0].clone());
    let names = [keys.public().name];
    served
        .shards
        .voter_status
        .send_replace(Arc::new(VoterStatus::new(committees, vec![keys], &names.as_slice().into()).unwrap()));

    let pay = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0));
    let problem = order(&served, &pay).await.problem("not-voting");
    assert_eq!((problem.epoch, problem.retry), (Some(Decimal(1)), Retry::AfterChange));
    confirm(&served, &first.certificate(&pay)).await.good::<json::Confirmed>();
    let problem = served.post("/v1/redemptions/votes", &batch(&[(alice.id(), 0)])).await.problem("not-voting");
    assert_eq!(problem.epoch, Some(Decimal(1)));
    let past: json::Committee = served.get("/v1/committee?epoch=0").await.good();
    assert_eq!(past, json::Committee::new(&first.committee, false));
    assert!(!served.get("/v1/status").await.good::<json::Status>().votes);
    served.end().await;
}

/// The epoch of the certificate ended long ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_does_not_count_by_itself_counts_with_the_votes_of_f_plus_1_members() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = with_deposits(&[(alice.id(), 10)]).await;
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let second = first.rotated();
    let pay = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0));
    let certificate = first.certificate(&pay);
    served.shards.voter_status.send_replace(Arc::new(voter_status_with(&[&first, &second], EpochEnd::default())));
    let problem = confirm(&served, &certificate).await.problem("unattested");
    assert_eq!((problem.epoch, problem.retry), (Some(Decimal(0)), Retry::AfterChange));

    let vote = |at: usize| {
        let vote = UnlockVote::Certificate(domain.transfer_digest(&pay.transfer));
        let vote = vote.sign(&second.keys[at], &domain, Epoch(1), alice.id(), SequenceNumber(0));
        json!({ "epoch": "1", "authority": vote.authority.to_string(), "signature": format!("0x{}", hex::encode(vote.signature.0)) })
    };
    let attested = async |votes: Vec<Value>| {
        let certificate = json::Certificate::from(&certificate);
        served.post("/v1/certificates/attested", &json!({ "certificate": certificate, "votes": votes })).await
    };
    attested(vec![vote(1)]).await.problem("invalid");
    attested(Vec::new()).await.problem("malformed");
    let confirmed: json::Confirmed = attested(vec![vote(1), vote(2)]).await.good();
    assert_eq!(confirmed.next_sequence, Decimal(1));
    // It is confirmed already.
    confirm(&served, &certificate).await.good::<json::Confirmed>();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_may_have_lost_votes_reports_from_which_number_it_votes() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = with_deposits(&[(alice.id(), 10)]).await;
    let folder = tempfile::tempdir().unwrap();
    let (protection, _questions) = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap());
    let protection = Arc::new(protection);
    let protected = voter_status(&[&served.shards.committee]).with_rollback_protection(Some(protection.clone()));
    served.shards.voter_status.send_replace(Arc::new(protected));

    let pay = alice.sign(&served.shards.committee.domain, payment(alice.id(), bob.id(), 1, 0));
    let problem = order(&served, &pay).await.problem("catching-up");
    assert_eq!((problem.expected_sequence, problem.retry), (None, Retry::Later));
    protection.learn(alice.id(), Some(SequenceNumber(1)));
    let problem = order(&served, &pay).await.problem("catching-up");
    assert_eq!((problem.expected_sequence, problem.retry), (Some(Decimal(1)), Retry::AfterChange));
    let state: AccountState = served.get(&format!("/v1/accounts/{}", alice.id())).await.good();
    assert!(state.catching_up);
    // It does not vote for every order, so it does not say that it votes.
    let status: json::Status = served.get("/v1/status").await.good();
    assert_eq!((status.votes, status.restored), (false, true));
    served.end().await;
}

/// The body that asks for a vote on redemptions.
fn batch(names: &[(AccountId, u64)]) -> Value {
    let names =
        names.iter().map(|(sender, sequence)| json!({"sender": sender.to_string(), "sequence": sequence.to_string()}));
    json!({ "redemptions": names.collect::<Vec<_>>() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_redemptions_are_certified_together_in_every_epoch() {
    const VOTES: &str = "/v1/redemptions/votes";
    let served = HttpServed::start(2).await;
    // Of both shards: whichever is asked, the authority answers as a whole.
    let (alice, bob) = (served.shards.account_in(0, 0), served.shards.account_in(1, 0));
    let deposits = deposits_after(fastpay_core::TransactionIndex(0), &[(alice.id(), 10), (bob.id(), 10)]);
    let up_to = deposits.last().unwrap().index;
    assert!(served.shards.deposit_sink().apply(fastpay_core::TransactionIndex(0), &deposits, up_to).await);
    let (first, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let wanted = [alice.id(), bob.id()].map(|owner| redemption(owner, PrimaryAddress::repeat_byte(9), 3, 0));
    for (owner, wanted) in [&alice, &bob].into_iter().zip(&wanted) {
        let order = owner.sign(&domain, wanted.clone());
        confirm(&served, &first.certificate(&order)).await.good::<json::Confirmed>();
    }
    let asked = batch(&[(alice.id(), 0), (bob.id(), 0)]);
    let second = first.rotated();
    for committee in [&first, &second] {
        if committee.committee.epoch() == Epoch(1) {
            served.shards.voter_status.send_replace(Arc::new(voter_status(&[&first, &second])));
        }
        let answer: json::RedemptionBatchVote = served.post(VOTES, &asked).await.good();
        let epoch = committee.committee.epoch();
        assert_eq!(answer.epoch, Decimal(epoch.0));
        let vote = ContractVote {
            authority: AuthorityName(answer.authority.0),
            signature: EcdsaSignature(answer.signature.0),
        };
        vote.verify(&committee.committee, domain.redemption_batch_vote_digest(epoch, &wanted)).unwrap();
    }

    // A payment, a number that is not used, an account that nobody knows: named, and nothing is signed.
    let pay = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 1));
    confirm(&served, &second.certificate(&pay)).await.good::<json::Confirmed>();
    let stranger = TestAccount::ed25519(99).id();
    let some = batch(&[(alice.id(), 1), (alice.id(), 0), (bob.id(), 1), (stranger, 0), (alice.id(), u64::MAX)]);
    let problem = served.post(VOTES, &some).await.problem("redemptions-missing");
    assert_eq!((problem.positions, problem.retry), (Some(vec![0, 2, 3, 4]), Retry::AfterChange));

    // As many as a batch may have, in their longest form, and no more.
    let name = (TestAccount::ed25519(99).id(), u64::MAX);
    let most = served.post(VOTES, &batch(&[name; REDEMPTION_BATCH_MAX])).await.problem("redemptions-missing");
    assert_eq!(most.positions.map(|positions| positions.len()), Some(REDEMPTION_BATCH_MAX));
    for bad in [batch(&[]), batch(&[name; REDEMPTION_BATCH_MAX + 1]), json!({"redemptions": [{"sender": "0x12"}]})] {
        served.post(VOTES, &bad).await.problem("malformed");
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_cannot_be_read_is_no_empty_list() {
    let (alice, bob) = (TestAccount::ethereum(0), TestAccount::ed25519(1));
    let served = with_deposits(&[(alice.id(), 10)]).await;
    let pay = alice.sign(&served.shards.committee.domain, payment(alice.id(), bob.id(), 1, 0));
    confirm(&served, &served.shards.committee.certificate(&pay)).await.good::<json::Confirmed>();
    let journal = folders(&served.shards.folder, served.shards.layout.shard_of(&alice.id())).journal;
    for segment in std::fs::read_dir(journal).unwrap() {
        let path = segment.unwrap().path();
        let zeros = vec![0; std::fs::metadata(&path).unwrap().len().try_into().unwrap()];
        std::fs::write(path, zeros).unwrap();
    }
    let problem = served.post("/v1/redemptions/votes", &batch(&[(alice.id(), 0)])).await.problem("history-unreadable");
    assert_eq!(problem.status, 500);
    let number = json!({"account": alice.id().to_string(), "sequence": "0", "unanimous": true});
    served.post("/v1/unlocks/votes", &number).await.problem("history-unreadable");
    for list in ["certificates/0", "sent", "deposits"] {
        let path = format!("/v1/accounts/{}/{list}", alice.id());
        assert_eq!(served.get(&path).await.problem("history-unreadable").status, 500);
    }
    // What is in memory is told all the same.
    served.get(&format!("/v1/accounts/{}", alice.id())).await.good::<AccountState>();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_primary_nothing_is_redeemed_and_the_node_says_what_it_signs_for() {
    let operator = Operator::new();
    let _process = operator.run().await;
    let get = async |path: &str| ask(operator.http, "GET", path, &[], b"").await;
    let post = async |path: &str, body: Vec<u8>| {
        ask(operator.http, "POST", path, &[("content-type", "application/json")], &body).await
    };
    let status: json::Status = get("/v1/status").await.good();
    let domain = Domain::new(status.chain_id.0, status.verifying_contract.0.into());
    assert_eq!((domain, status.contract), (operator.committee.domain, None));
    assert_eq!((status.follower.state, status.shards.len()), (json::FollowerState::None, 2));

    let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
    let body = |order: &TransferOrder| serde_json::to_vec(&json::TransferOrder::from(order)).unwrap();
    let redeem = alice.sign(&domain, redemption(alice.id(), PrimaryAddress::repeat_byte(9), 3, 0));
    assert_eq!(post("/v1/orders", body(&redeem)).await.problem("no-primary").retry, Retry::Never);
    // The process as it is run: a vote, a certificate, and where to find it.
    let pay = alice.sign(&domain, payment(alice.id(), bob.id(), 3, 0));
    post("/v1/orders", body(&pay)).await.good::<json::VoteAnswer>();
    let certificate = json::Certificate::from(&operator.committee.certificate(&pay));
    post("/v1/certificates", serde_json::to_vec(&certificate).unwrap()).await.good::<json::Confirmed>();
    let path = format!("/v1/transfers/{}", Hex(domain.transfer_digest(&pay.transfer).0));
    eventually_async("the index has it", || async { get(&path).await.status == 200 }).await;
    assert_eq!(get(&path).await.good::<json::ConfirmedTransfer>().certificate, certificate);
    eventually_async("the first deposit is indexed", || async { get("/v1/deposits/1").await.status == 200 }).await;
    assert_eq!(get("/v1/deposits/1").await.good::<json::Deposit>().recipient, alice.id().into());
    assert_eq!(get("/v1/redemptions/waiting").await.problem("not-found").retry, Retry::AfterChange);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_redemptions_are_listed_once_the_contract_was_read() {
    let served = HttpServed::start(1).await;
    let path = "/v1/redemptions/waiting";
    assert_eq!(served.get(path).await.problem("not-found").retry, Retry::Later);
    let account = TestAccount::ethereum(1).id();
    let order = redemption(account, PrimaryAddress::repeat_byte(9), 3, 0);
    let waiting = json::WaitingRedemption {
        shard: 0,
        number: Decimal(4),
        digest: Hex(served.shards.committee.domain.transfer_digest(&order.clone().into()).0),
        redemption: (&fastpay_core::Transfer::from(order)).into(),
        since: Decimal(1_700_000_000),
    };
    let known = json::WaitingRedemptions { block: Decimal(12), redemptions: vec![waiting], beyond: Decimal(1) };
    served.waiting.send_replace(Some(known.clone().into()));
    assert_eq!(served.get(path).await.good::<json::WaitingRedemptions>(), known);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_that_is_served_is_the_one_that_is_checked_in() {
    let served = HttpServed::start(1).await;
    let document = served.get("/v1/openapi.json").await;
    let value: Value = document.good();
    assert_eq!(value["openapi"], "3.1.0");
    // What may be found in a moment is answered with a time to wait, and is said to be.
    for path in ["/v1/transfers/{digest}", "/v1/deposits/{index}", "/v1/redemptions/waiting"] {
        let not_found = &value["paths"][path]["get"]["responses"]["404"];
        assert!(not_found["headers"]["Retry-After"].is_object(), "{path}: {not_found}");
    }
    served.end().await;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(path, &document.body).unwrap();
    }
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        checked_in == document.body,
        "docs/openapi.json is not what the code says: UPDATE_OPENAPI=1 cargo test -p fastpay-node --test node document"
    );
}

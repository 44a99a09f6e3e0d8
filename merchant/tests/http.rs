//! The shop's port: each answer and each refusal, over real HTTP.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use fastpay_core::{AccountKey, Asset, Domain, PrimaryAddress};
use fastpay_merchant::http::router;
use fastpay_merchant::ledger::{Ledger, LedgerError, LinkBase};
use fastpay_wallet::PaymentLink;
use reqwest::{Client, Method};
use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn base() -> LinkBase {
    let domain = Domain::new(31337, PrimaryAddress::repeat_byte(0x5f));
    let link = PaymentLink::new(AccountKey::ed25519([7; 32]).account(), &domain, Asset::ETHER);
    LinkBase { link, page: Some("https://wallet.example/pay".parse().unwrap()) }
}

struct Port {
    url: String,
    client: Client,
}

impl Port {
    async fn open(ledger: Ledger) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router(ledger, TOKEN)).await });
        Self { url, client: Client::builder().no_proxy().build().unwrap() }
    }

    async fn ask(&self, method: Method, path: &str, body: &str) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(TOKEN);
        let answer = request.body(body.to_owned()).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }

    async fn create(&self, request: Value) -> (u16, Value) {
        self.ask(Method::POST, "/v1/invoices", &request.to_string()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_is_made_once_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), base()).await.unwrap();
    let second = Ledger::open(folder.path(), base()).await;
    assert!(matches!(second, Err(LedgerError::Folder(_))), "two services do not share a folder");
    let port = Port::open(ledger.clone()).await;
    let request = json!({ "reference": "order 7", "amount": "700", "expiresIn": 600 });
    let (status, invoice) = port.create(request.clone()).await;
    assert_eq!((status, invoice["state"].as_str(), invoice["amount"].as_str()), (201, Some("open"), Some("700")));
    let link: PaymentLink = invoice["link"].as_str().unwrap().parse().unwrap();
    assert_eq!(link.memo.unwrap().as_slice(), invoice["id"].as_str().unwrap().as_bytes());
    assert_eq!(invoice["webLink"].as_str().unwrap().parse(), Ok(link));
    let (status, again) = port.create(request).await;
    assert_eq!((status, &again["id"]), (200, &invoice["id"]));
    let (status, own) =
        port.create(json!({ "reference": "order 8", "amount": "1", "expiresIn": 1, "memo": "mine" })).await;
    assert_eq!((status, own["memoText"].as_str()), (201, Some("mine")));

    let id = invoice["id"].as_str().unwrap();
    let (status, shown) = port.ask(Method::GET, &format!("/v1/invoices/{id}"), "").await;
    assert_eq!((status, &shown["link"], &shown["webhooks"]), (200, &invoice["link"], &json!([])));
    let ids = |page: &Value| -> Vec<Value> {
        page["invoices"].as_array().unwrap().iter().map(|invoice| invoice["id"].clone()).collect()
    };
    let (_, all) = port.ask(Method::GET, "/v1/invoices?state=open", "").await;
    assert_eq!(ids(&all), [invoice["id"].clone(), own["id"].clone()]);
    let (_, rest) = port.ask(Method::GET, &format!("/v1/invoices?after={id}"), "").await;
    assert_eq!(ids(&rest), [own["id"].clone()]);
    assert_eq!(ids(&port.ask(Method::GET, "/v1/invoices?state=paid", "").await.1), [Value::Null; 0]);
    let (status, state) = port.ask(Method::GET, "/v1/status", "").await;
    assert_eq!((status, state["webhooksWaiting"].as_u64()), (200, Some(0)));

    // Expired where the wallet looked after the end; known after a restart, and told once.
    let end = own["expiresAt"].as_u64().unwrap() * 1_000;
    ledger.take_in(&[], end).unwrap();
    ledger.take_in(&[], end + 1).unwrap();
    let told = ledger.undelivered();
    assert_eq!((told.len(), &told[0].event.invoice), (1, &own["id"].as_str().unwrap().to_owned()));
    let (before, _) = ledger.book();
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("journal.jsonl"), copy.path().join("journal.jsonl")).unwrap();
    let reopened = Ledger::open(copy.path(), base()).await.unwrap();
    assert_eq!(reopened.book().0, before);
    assert_eq!(reopened.undelivered(), told);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_a_problem_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let port = Port::open(Ledger::open(folder.path(), base()).await.unwrap()).await;
    let good = json!({ "reference": "order 7", "amount": "700", "expiresIn": 600, "memo": "seven" });
    assert_eq!(port.create(good.clone()).await.0, 201);
    let changed = |name: &str, value: Value| {
        let mut request = good.clone();
        request[name] = value;
        request
    };
    for (name, value) in [
        ("amount", json!("0")),
        ("amount", json!(700)),
        ("amount", json!("1.5")),
        ("amount", json!("-1")),
        ("reference", json!("")),
        ("reference", json!("x".repeat(129))),
        ("reference", json!("a\nb")),
        ("expiresIn", json!(0)),
        ("expiresIn", json!(u64::MAX)),
        ("memo", json!("x".repeat(33))),
        ("memo", json!("")),
        ("asset", json!("USDC")),
        ("colour", json!("blue")),
    ] {
        let (status, problem) = port.create(changed(name, value.clone())).await;
        assert_eq!((status, problem["code"].as_str()), (400, Some("malformed")), "{name} {value}: {problem}");
    }
    let check = async |method: Method, path: &str, body: &str, status: u16, code: &str| {
        let (found, problem) = port.ask(method, path, body).await;
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{path} {body}: {problem}");
    };
    check(Method::POST, "/v1/invoices", "not JSON", 400, "malformed").await;
    check(Method::POST, "/v1/invoices", &changed("amount", json!("8")).to_string(), 409, "reference-taken").await;
    check(Method::POST, "/v1/invoices", &changed("reference", json!("8")).to_string(), 409, "memo-taken").await;
    check(Method::GET, "/v1/invoices/inv_unknown", "", 404, "not-found").await;
    check(Method::GET, "/v2", "", 404, "not-found").await;
    check(Method::DELETE, "/v1/status", "", 405, "method-not-allowed").await;
    check(Method::GET, "/v1/invoices?state=rich", "", 400, "malformed").await;
    let too_long = "x".repeat(20_000);
    assert_eq!(port.ask(Method::POST, "/v1/invoices", &too_long).await.0, 413);

    for authorization in [None, Some("Bearer"), Some("Bearer wrong"), Some(TOKEN), Some("Basic 0123456789abcdef")] {
        let mut request = port.client.get(format!("{}/v1/export.csv", port.url));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let answer = request.send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["www-authenticate"].as_bytes()), (401, &b"Bearer"[..]));
    }
}

//! The shop's port: each answer and each refusal, over real HTTP.

use std::path::Path;
use std::time::Duration;

use fastpay_core::{AccountKey, Asset, Domain, PrimaryAddress};
use fastpay_merchant::forms::LinkBase;
use fastpay_merchant::http::{HttpLimits, serve};
use fastpay_merchant::ledger::{Ledger, now_ms};
use fastpay_merchant::ledger_error::LedgerError;
use fastpay_program::http::{ConnectionLimits, HEAD_BYTES_MAX};
use fastpay_testkit::fake::{FakeCommittee, options};
use fastpay_wallet::folder::{AssetInfo, Config, Folder};
use fastpay_wallet::{PaymentLink, Wallet};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn base() -> LinkBase {
    let domain = Domain::new(31337, PrimaryAddress::repeat_byte(0x5f));
    let link = PaymentLink::new(AccountKey::ed25519([7; 32]).account(), &domain, Asset::ETHER);
    let checkout = Some("https://pay.shop.example".into());
    LinkBase { link, page: Some("https://wallet.example/pay".parse().unwrap()), checkout }
}

/// A wallet that knows no relayer, and nobody who answers.
async fn wallet(folder: &Path) -> Wallet {
    let committee = FakeCommittee::start().await;
    let (folder, endpoints) = (Folder::new(folder.join("wallet")), folder.join("endpoints.json"));
    std::fs::write(&endpoints, serde_json::to_vec(&committee.endpoints).unwrap()).unwrap();
    folder.create().unwrap();
    let config = Config { endpoints, primary: None, genesis: Some("none".into()), traces: None };
    config.write(&folder.config_path(), true).unwrap();
    Wallet::new(folder, committee.network(), options())
}

struct Port {
    url: String,
    client: Client,
    stop: watch::Sender<bool>,
    _folder: Option<tempfile::TempDir>,
}

impl Port {
    async fn open(ledger: Ledger, limits: HttpLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut port = Self::with(ledger, wallet(folder.path()).await, limits).await;
        port._folder = Some(folder);
        port
    }

    async fn with(ledger: Ledger, wallet: Wallet, limits: HttpLimits) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(serve(listener, ledger, wallet, TOKEN, limits, stopped));
        let client = Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { url, client, stop, _folder: None }
    }

    /// With a ledger of its own.
    async fn alone(limits: HttpLimits) -> (Self, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Self::open(Ledger::open(folder.path(), base(), true).await.unwrap(), limits).await, folder)
    }

    async fn ask(&self, method: Method, path: &str, body: &str) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(TOKEN);
        let request = request.header("content-type", "application/json").body(body.to_owned());
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.url.strip_prefix("http://").unwrap()).await.unwrap()
    }

    /// The answer to these bytes, until the service closes the connection.
    async fn request(&self, words: &str) -> String {
        let mut stream = self.connect().await;
        // It may be closed before all is sent.
        let _ = stream.write_all(words.as_bytes()).await;
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        String::from_utf8_lossy(&said).into_owned()
    }

    async fn create(&self, request: Value) -> (u16, Value) {
        self.ask(Method::POST, "/v1/invoices", &request.to_string()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_is_made_once_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), base(), true).await.unwrap();
    let second = Ledger::open(folder.path(), base(), true).await;
    assert!(matches!(second, Err(LedgerError::Folder(_))), "two services do not share a folder");
    let port = Port::open(ledger.clone(), HttpLimits::default()).await;
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
    assert_eq!((ids(&rest), &rest["next"]), (vec![own["id"].clone()], &Value::Null));
    let (_, first) = port.ask(Method::GET, "/v1/invoices?limit=1", "").await;
    assert_eq!((ids(&first), &first["next"]), (vec![invoice["id"].clone()], &invoice["id"]));
    assert_eq!(ids(&port.ask(Method::GET, "/v1/invoices?state=paid", "").await.1), [Value::Null; 0]);
    let (_, newest) = port.ask(Method::GET, "/v1/invoices?newest=true&limit=1", "").await;
    assert_eq!((ids(&newest), &newest["next"]), (vec![own["id"].clone()], &own["id"]));
    let before = format!("/v1/invoices?newest=true&state=open&after={}", own["id"].as_str().unwrap());
    let (_, older) = port.ask(Method::GET, &before, "").await;
    assert_eq!((ids(&older), &older["next"]), (vec![invoice["id"].clone()], &Value::Null));
    let named = |reference: &str| format!("/v1/invoices?reference={reference}");
    let (_, found) = port.ask(Method::GET, &named(&own["reference"].as_str().unwrap().replace(' ', "+")), "").await;
    assert_eq!((ids(&found), &found["next"]), (vec![own["id"].clone()], &Value::Null));
    assert_eq!(ids(&port.ask(Method::GET, &named("unknown"), "").await.1), [Value::Null; 0]);
    let (status, state) = port.ask(Method::GET, "/v1/status", "").await;
    assert_eq!((status, state["webhooksWaiting"].as_u64()), (200, Some(0)));
    assert_eq!((state["invoicesOpen"].as_u64(), state["unmatchedPayments"].as_u64()), (Some(2), Some(0)));

    // Expired where the wallet looked after the end; known after a restart, and told once.
    let end = own["expiresAt"].as_u64().unwrap() * 1_000;
    ledger.take_in(&[], end).unwrap();
    ledger.take_in(&[], end + 1).unwrap();
    let told = ledger.due(u64::MAX, u64::MAX, 10).unwrap();
    assert!(told.len() == 1 && told[0].event.body.contains(own["id"].as_str().unwrap()), "{told:?}");
    let (_, before) = port.ask(Method::GET, "/v1/invoices", "").await;
    // As a crash leaves it.
    let copy = tempfile::tempdir().unwrap();
    for name in ["invoices.db", "invoices.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let reopened = Ledger::open(copy.path(), base(), true).await.unwrap();
    assert_eq!(reopened.due(u64::MAX, u64::MAX, 10).unwrap(), told);
    let port = Port::open(reopened, HttpLimits::default()).await;
    assert_eq!(port.ask(Method::GET, "/v1/invoices", "").await.1, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_whose_invoice_is_in_the_archive_makes_no_second_one() {
    let folder = tempfile::tempdir().unwrap();
    let journal = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals/rewritten.jsonl");
    std::fs::copy(journal, folder.path().join("journal.jsonl")).unwrap();
    let port = Port::open(Ledger::open(folder.path(), base(), true).await.unwrap(), HttpLimits::default()).await;
    let request = |reference: &str| json!({ "reference": reference, "amount": "700", "expiresIn": 600 });
    let (status, problem) = port.create(request("order 1")).await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("reference-archived")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("inv_01010101"), "{problem}");
    assert_eq!(port.create(request("order 9")).await.0, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_back_makes_no_invoice_late() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), base(), true).await.unwrap();
    // It was ahead by ten years when the wallet looked.
    let ahead = now_ms() + 10 * 366 * 24 * 60 * 60 * 1_000;
    ledger.take_in(&[], ahead).unwrap();
    let port = Port::open(ledger.clone(), HttpLimits::default()).await;
    let (status, invoice) = port.create(json!({ "reference": "order 7", "amount": "700", "expiresIn": 600 })).await;
    assert_eq!((status, invoice["state"].as_str()), (201, Some("open")));
    assert_eq!(invoice["createdAtMs"], ahead);
    ledger.take_in(&[], now_ms()).unwrap();
    assert_eq!(ledger.due(u64::MAX, u64::MAX, 10).unwrap(), [], "it does not expire at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_a_problem_with_its_code() {
    let (port, _folder) = Port::alone(HttpLimits::default()).await;
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
        ("description", json!("a\nb")),
        ("returnUrl", json!("http://shop.example/")),
        ("items", json!([{ "name": "Bread", "amount": "699" }])),
        ("items", json!([{ "name": "Bread", "amount": "700", "colour": "brown" }])),
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
    check(Method::GET, "/v1/invoices?limit=-1", "", 400, "malformed").await;
    check(Method::GET, "/v1/invoices?page=2", "", 400, "malformed").await;
    check(Method::GET, "/v1/invoices?reference=order+7&limit=9", "", 400, "malformed").await;
    check(Method::GET, "/v1/invoices?after=inv_unknown", "", 404, "not-found").await;
    check(Method::GET, "/v1/export.csv?after=inv_unknown", "", 404, "not-found").await;
    check(Method::GET, "/v1/export.csv?after=none:7:0", "", 400, "malformed").await;
    check(Method::GET, "/v1/export.csv?after=inv_unknown:x", "", 400, "malformed").await;
    check(Method::GET, "/v1/invoices/%ff", "", 400, "malformed").await;
    check(Method::POST, "/v1/invoices", &"x".repeat(20_000), 413, "too-large").await;
    let refunds = async |body: Value, status: u16, code: &str| {
        check(Method::POST, "/v1/refunds", &body.to_string(), status, code).await;
    };
    refunds(json!({ "reference": "r" }), 400, "malformed").await;
    refunds(json!({ "reference": "", "due": true }), 400, "malformed").await;
    refunds(json!({ "reference": "r", "invoices": [{ "id": "inv_1", "amount": "0" }] }), 400, "malformed").await;
    refunds(json!({ "reference": "r", "invoices": vec![json!({ "id": "i" }); 101] }), 400, "malformed").await;
    refunds(json!({ "reference": "r", "invoices": [{ "id": "inv_unknown" }] }), 404, "not-found").await;
    refunds(json!({ "reference": "r", "due": true }), 409, "not-refundable").await;
    check(Method::GET, "/v1/refunds/r", "", 404, "not-found").await;
    check(Method::GET, "/v1/refunds?after=r", "", 404, "not-found").await;
    check(Method::GET, "/v1/refunds?limit=1", "", 400, "malformed").await;
    let to = format!("0x{}", "11".repeat(20));
    let payouts = async |reference: &str, amount: &str, to: &str, fee: &str, status: u16, code: &str| {
        let body = json!({ "reference": reference, "amount": amount, "recipient": to, "fee": fee });
        check(Method::POST, "/v1/payouts", &body.to_string(), status, code).await;
    };
    payouts("", "5", &to, "0", 400, "malformed").await;
    payouts("p", "0", &to, "0", 400, "malformed").await;
    payouts("p", "5", &to, "6", 400, "malformed").await;
    payouts("p", "5", "0x12", "0", 400, "malformed").await;
    // One digit of it is another, so its capitals do not fit.
    payouts("p", "5", "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96046", "0", 400, "malformed").await;
    payouts("p", "5", &format!("0x{}", "00".repeat(20)), "0", 400, "malformed").await;
    check(Method::GET, "/v1/payouts/p", "", 404, "not-found").await;
    check(Method::GET, "/v1/payouts?after=p", "", 404, "not-found").await;
    check(Method::GET, "/v1/payouts?limit=1", "", 400, "malformed").await;
    check(Method::GET, "/checkout/00112233445566778899aabbccddeeff/state", "", 404, "not-found").await;
    check(Method::GET, "/checkout/%ff/state", "", 400, "malformed").await;
    let plain = port.client.post(format!("{}/v1/invoices", port.url)).bearer_auth(TOKEN).body(good.to_string());
    let plain = plain.send().await.unwrap();
    assert_eq!(
        (plain.status().as_u16(), plain.headers()["content-type"].to_str().unwrap()),
        (415, "application/problem+json")
    );
    let problem: Value = serde_json::from_str(&plain.text().await.unwrap()).unwrap();
    assert_eq!(problem["type"], "urn:fastpay:problem:unsupported-media-type");
    assert!(problem["action"].is_string() && problem["retry"] == "never", "{problem}");

    for authorization in [None, Some("Bearer"), Some("Bearer wrong"), Some(TOKEN), Some("Basic 0123456789abcdef")] {
        let mut request = port.client.get(format!("{}/v1/export.csv", port.url));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let answer = request.send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["www-authenticate"].as_bytes()), (401, &b"Bearer"[..]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_invoices_than_may_be_open_wait() {
    let (port, _folder) = Port::alone(HttpLimits { open_invoices_max: 2, ..HttpLimits::default() }).await;
    let request = |number: u32| json!({ "reference": format!("order {number}"), "amount": "1", "expiresIn": 600 });
    assert_eq!((port.create(request(1)).await.0, port.create(request(2)).await.0), (201, 201));
    let (status, problem) = port.create(request(3)).await;
    assert_eq!((status, problem["code"].as_str()), (429, Some("too-many-open")), "{problem}");
    assert_eq!((problem["retry"].as_str(), problem["retryAfterMs"].as_u64()), (Some("later"), Some(10_000)));
    assert_eq!(port.create(request(1)).await.0, 200, "the one that there is, is found");
}

/// Room for one connection, and little patience.
fn narrow() -> HttpLimits {
    let patience = Duration::from_millis(100);
    HttpLimits {
        connections_max: 1,
        connection: ConnectionLimits { head_timeout: patience, write_timeout: patience },
        body_timeout: patience,
        ..HttpLimits::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_beyond_the_bound_is_closed_and_room_is_given_back() {
    let patient = ConnectionLimits { head_timeout: Duration::from_secs(600), ..ConnectionLimits::default() };
    let (port, _folder) = Port::alone(HttpLimits { connection: patient, ..narrow() }).await;
    let request = "GET /v1/status HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let silent = port.connect().await;
    // The first one is admitted before the next is.
    while !port.request(request).await.is_empty() {}
    drop(silent);
    while port.request(request).await.is_empty() {}
    port.stop.send_replace(true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_too_slowly_or_too_much_is_disconnected() {
    let (port, _folder) = Port::alone(narrow()).await;
    let says = async |words: &str, expected: &str| {
        let mut said = port.request(words).await;
        // Room for this one is there once the one before has ended.
        while said.is_empty() && !expected.is_empty() {
            said = port.request(words).await;
        }
        assert!(said.contains(expected), "{words:.60}: {said}");
    };
    says("GET /v1/status HTTP/1.1\r\nx-slow: ", "").await;
    let post = format!("POST /v1/invoices HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n");
    let json = "content-type: application/json\r\nconnection: close\r\n";
    says(&format!("{post}{json}content-length: 50\r\n\r\n{{"), "\"code\":\"request-timeout\"").await;
    says(&format!("{post}x-long: {}\r\n\r\n", "x".repeat(2 * HEAD_BYTES_MAX)), "431").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_that_is_served_is_the_one_that_is_checked_in() {
    let (port, _folder) = Port::alone(HttpLimits::default()).await;
    let asked = port.client.get(format!("{}/v1/openapi.json", port.url)).bearer_auth(TOKEN);
    let document = asked.send().await.unwrap().text().await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&document).unwrap()["openapi"], "3.1.0");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi-merchant.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == document,
        "docs/openapi-merchant.json is not what the code says: UPDATE_OPENAPI=1 cargo test -p fastpay-merchant --test merchant document"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_page_is_for_everybody_and_what_it_shows_is_not() {
    let (port, _folder) = Port::alone(HttpLimits::default()).await;
    for (path, kind) in [("/", "text/html"), ("/office.css", "text/css"), ("/office.js", "text/javascript")] {
        let answer = port.client.get(format!("{}{path}", port.url)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert!(header("content-type").starts_with(kind), "{path}");
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
    for path in ["/v1/invoices", "/office", "/office.js/x"] {
        let answer = port.client.get(format!("{}{path}", port.url)).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{path}");
    }
    assert_eq!(port.client.post(format!("{}/", port.url)).send().await.unwrap().status(), 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_sees_the_invoice_of_the_page_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), base(), true).await.unwrap();
    let wallet = wallet(folder.path()).await;
    let token = Asset(PrimaryAddress::repeat_byte(0xd1));
    wallet.folder().learn_asset(token, &AssetInfo { symbol: "DEMO".into(), decimals: 6 }).unwrap();
    let port = Port::with(ledger.clone(), wallet, HttpLimits::default()).await;
    let evil = "<img src=x onerror=alert(1)>";
    let request = json!({
        "reference": "order 7", "amount": "700", "expiresIn": 600, "asset": token, "description": evil,
        "items": [{ "name": "Bread", "amount": "200" }, { "name": "Cake", "quantity": 2, "amount": "500" }],
        "returnUrl": "https://shop.example/thanks",
    });
    let (status, invoice) = port.create(request.clone()).await;
    assert_eq!((status, invoice["items"][1]["quantity"].as_u64()), (201, Some(2)), "{invoice}");
    let page = invoice["checkoutUrl"].as_str().unwrap();
    let key = page.strip_prefix("https://pay.shop.example/checkout/").unwrap();
    // The id is the memo of public payments: the key says nothing of it.
    assert!(key.len() == 32 && !page.contains(&invoice["id"].as_str().unwrap()[4..]), "{page}");
    assert_eq!(port.create(request.clone()).await.0, 200, "the same again is the same");
    for (name, value) in [("description", json!("other")), ("returnUrl", Value::Null), ("items", json!([]))] {
        let mut other = request.clone();
        other[name] = value;
        assert_eq!(port.create(other).await.1["code"], "reference-taken", "{name}");
    }
    let (_, other) = port.create(json!({ "reference": "order 8", "amount": "1", "expiresIn": 600 })).await;

    let get = async |path: &str| port.client.get(format!("{}{path}", port.url)).send().await.unwrap();
    let answer = get(&format!("/checkout/{key}/state")).await;
    assert_eq!((answer.status().as_u16(), answer.headers()["cache-control"].as_bytes()), (200, &b"no-store"[..]));
    let text = answer.text().await.unwrap();
    let seen: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (seen["symbol"].as_str(), seen["decimals"].as_u64(), &seen["description"]),
        (Some("DEMO"), Some(6), &evil.into())
    );
    assert_eq!(seen["returnUrl"], "https://shop.example/thanks");
    assert_eq!((&seen["payment"]["link"], &seen["payment"]["webLink"]), (&invoice["link"], &invoice["webLink"]));
    let size = seen["payment"]["qr"]["size"].as_u64().unwrap();
    let corner = seen["payment"]["qr"]["path"].as_str().unwrap();
    assert!(size > 20 && corner.starts_with("M0 0h7v1h-7zM"), "each code begins with a square of seven: {corner}");
    assert!(
        !text.contains(other["id"].as_str().unwrap()) && !text.contains("webhook") && !text.contains(TOKEN),
        "{text}"
    );
    for path in ["/checkout/", &format!("/checkout/{}/state", invoice["id"].as_str().unwrap()), "/checkout/x/state"] {
        assert!([401, 404].contains(&get(path).await.status().as_u16()), "{path}");
    }
    // With the key alone nothing else opens.
    let shown = port.client.get(format!("{}/v1/invoices", port.url)).bearer_auth(key).send().await.unwrap();
    assert_eq!(shown.status(), 401);
    for (path, kind) in [
        (format!("/checkout/{key}"), "text/html"),
        ("/checkout/checkout.css".into(), "text/css"),
        ("/checkout/checkout.js".into(), "text/javascript"),
    ] {
        let answer = get(&path).await;
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert!(answer.status() == 200 && header("content-type").starts_with(kind), "{path}");
        let (policy, of_office) = (header("content-security-policy"), get("/").await);
        assert_eq!(policy.as_bytes(), of_office.headers()["content-security-policy"].as_bytes(), "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "the key is in the address");
    }
    // Nothing is asked for any more once it is too late.
    ledger.take_in(&[], invoice["expiresAt"].as_u64().unwrap() * 1_000).unwrap();
    let seen: Value =
        serde_json::from_str(&get(&format!("/checkout/{key}/state")).await.text().await.unwrap()).unwrap();
    assert_eq!((seen["state"].as_str(), &seen["payment"]), (Some("expired"), &Value::Null));
    // How amounts are written, for the owner.
    let (_, assets) = port.ask(Method::GET, "/v1/assets", "").await;
    assert_eq!(assets["assets"][0], json!({ "asset": Asset::ETHER, "symbol": "ETH", "decimals": 18 }));
    assert_eq!(assets["assets"][1], json!({ "asset": token, "symbol": "DEMO", "decimals": 6 }));
    assert_eq!(get("/v1/assets").await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_is_prepared_once_with_the_fee_of_the_cheapest_relayer() {
    let folder = tempfile::tempdir().unwrap();
    let port = Port::with(
        Ledger::open(folder.path(), base(), true).await.unwrap(),
        wallet(folder.path()).await,
        HttpLimits::default(),
    )
    .await;
    let to = PrimaryAddress::repeat_byte(0x11);
    let prepare = async |reference: &str, amount: &str, fee: Option<&str>| {
        let body = json!({ "reference": reference, "amount": amount, "recipient": to, "fee": fee });
        port.ask(Method::POST, "/v1/payouts", &body.to_string()).await
    };
    let (status, payout) = prepare("monday", "500", None).await;
    assert_eq!(
        (status, payout["state"].as_str(), payout["fee"].as_str()),
        (201, Some("prepared"), Some("0")),
        "{payout}"
    );
    let memo = payout["memo"].as_str().unwrap();
    assert!(memo.starts_with("pyt_") && memo.len() == 32, "{memo}");
    let link: url::Url = payout["link"].as_str().unwrap().parse().unwrap();
    assert_eq!((link.host_str(), link.path()), (Some("wallet.example"), "/redeem"));
    let fields: Vec<_> = url::form_urlencoded::parse(link.fragment().unwrap().as_bytes()).collect();
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).unwrap().1.clone().into_owned();
    assert_eq!((field("to"), field("amount"), field("fee")), (to.to_string(), "500".into(), "0".into()));
    assert_eq!((field("memo").len(), field("chain")), (66, "31337".into()));
    assert_eq!(prepare("monday", "500", Some("7")).await, (200, payout.clone()), "what is prepared stays");
    assert_eq!(prepare("monday", "501", None).await.1["code"], "reference-taken");

    // Now two relayers say what they take.
    let committee: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("endpoints.json")).unwrap()).unwrap();
    let mut endpoints = committee.clone();
    endpoints["relayers"] = json!([relayer("60").await, relayer("50").await]);
    std::fs::write(folder.path().join("endpoints.json"), endpoints.to_string()).unwrap();
    assert_eq!(prepare("tuesday", "500", None).await.1["fee"], "50");
    let (status, problem) = prepare("wednesday", "499", None).await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("fee-too-high")), "more than a tenth: {problem}");
    assert_eq!(prepare("wednesday", "499", Some("50")).await.0, 201, "agreed");
    let (_, all) = port.ask(Method::GET, "/v1/payouts", "").await;
    let names: Vec<_> = all["payouts"].as_array().unwrap().iter().map(|of| of["reference"].as_str().unwrap()).collect();
    assert_eq!(names, ["wednesday", "tuesday", "monday"]);
    let (_, older) = port.ask(Method::GET, "/v1/payouts?after=tuesday", "").await;
    assert_eq!((&older["payouts"], &older["next"]), (&json!([payout]), &Value::Null));
    assert_eq!(port.ask(Method::GET, "/v1/payouts/monday", "").await, (200, payout));
}

/// A relayer that takes this fee of ETH: its address.
async fn relayer(fee: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let domain = FakeCommittee::start().await.committee.domain;
    let answer = json!({
        "chainId": domain.chain_id().to_string(), "contract": domain.contract(),
        "relayer": PrimaryAddress::repeat_byte(1), "gasPrice": "1", "waitSeconds": 1,
        "fees": [{ "asset": Asset::ETHER, "fee": fee }],
    });
    let answer = answer.to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4_096]).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
            let _ = stream.write_all(format!("{head}{answer}").as_bytes()).await;
        }
    });
    url
}

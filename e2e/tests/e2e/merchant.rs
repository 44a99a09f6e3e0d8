//! A shop that is paid: the real service beside real authorities, links paid by the `fastpay` command, and webhooks that
//! the shop verifies.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use fastpay_core::AccountId;
use fastpay_e2e::{Network, Person, Program, program, run, wait_for};
use fastpay_merchant::signature::Secret;
use serde_json::{Value, json};

use crate::scene::{key, standalone};

const PATIENCE: Duration = Duration::from_secs(40);

/// The shop's side: takes webhooks and checks their signatures as the standard says.
#[derive(Clone)]
struct Shop {
    secret: Secret,
    /// So many webhooks are refused first.
    refuse: Arc<Mutex<usize>>,
    /// Id and body of every message that came, refused ones too.
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

async fn take(State(shop): State<Shop>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let body = std::str::from_utf8(&body).unwrap();
    assert_eq!(header("webhook-signature"), shop.secret.sign(&id, timestamp.parse().unwrap(), body));
    shop.seen.lock().unwrap().push((id, serde_json::from_str(body).unwrap()));
    let mut refuse = shop.refuse.lock().unwrap();
    match refuse.checked_sub(1) {
        Some(rest) => {
            *refuse = rest;
            StatusCode::SERVICE_UNAVAILABLE
        }
        None => StatusCode::NO_CONTENT,
    }
}

struct Merchant {
    home: PathBuf,
    log: PathBuf,
    program: Option<Program>,
    shop: Shop,
}

impl Merchant {
    async fn start(network: &mut Network, owner: &Person, account: AccountId) -> Self {
        let home = network.place().path("merchant");
        let [service, shop_port] = [(); 2].map(|()| network.ports().next(1).unwrap());
        let mut command = Command::new(program("fastpay-merchant").unwrap());
        command.arg("--home").arg(&home).args(["init", "--account", &account.to_string(), "--label", "Bakery"]);
        command.args(["--webhook-url", &format!("http://127.0.0.1:{shop_port}/webhook")]);
        command.args(["--listen", &format!("127.0.0.1:{service}"), "--wallet"]).arg(owner.home());
        let made: Value = serde_json::from_str(&run(&mut command).unwrap().success().unwrap().out).unwrap();
        let secret = std::fs::read_to_string(made["webhookSecretFile"].as_str().unwrap()).unwrap();
        let secret = Secret::parse(&secret).unwrap();
        let shop = Shop { secret, refuse: Arc::default(), seen: Arc::default() };
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", shop_port)).await.unwrap();
        let routes = Router::new().route("/webhook", post(take)).with_state(shop.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let config = home.join("merchant.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        let text = text.replace("poll_ms = 1000", "poll_ms = 100").replace("delay_ms = 5000", "delay_ms = 200");
        std::fs::write(&config, text).unwrap();
        let mut merchant = Self { log: network.place().log("merchant"), home, program: None, shop };
        merchant.run().await;
        merchant
    }

    async fn run(&mut self) {
        let mut command = self.command(&["run"]);
        self.program = Some(Program::start("merchant", &mut command, &self.log).unwrap());
        wait_for(PATIENCE, async || self.ask(&["invoice", "list"]).map(drop)).await.unwrap();
    }

    fn kill(&mut self) {
        self.program.take().unwrap().kill();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("fastpay-merchant").unwrap());
        command.arg("--home").arg(&self.home).args(arguments);
        command
    }

    fn ask(&self, arguments: &[&str]) -> Result<Value, String> {
        let done = run(&mut self.command(arguments)).unwrap();
        if done.status.success() { Ok(serde_json::from_str(&done.out).unwrap()) } else { Err(done.err) }
    }

    fn create(&self, reference: &str, amount: &str, expires_in: &str) -> Value {
        let create = ["invoice", "create", "--reference", reference, "--amount", amount, "--expires-in", expires_in];
        self.ask(&create).unwrap()
    }

    async fn until(&self, invoice: &Value, state: &str, delivery: &str) -> Value {
        let id = invoice["id"].as_str().unwrap();
        wait_for(PATIENCE, async || {
            let found = self.ask(&["invoice", "show", id])?;
            let webhook = found["webhooks"].as_array().unwrap().last().map(|webhook| webhook["delivery"].clone());
            let is_it = found["state"] == state && webhook == Some(json!(delivery));
            if is_it { Ok(found) } else { Err(found.to_string()) }
        })
        .await
        .unwrap()
    }

    /// The types of the webhooks of an invoice, in the order in which they came.
    fn told(&self, invoice: &Value) -> Vec<String> {
        let seen = self.shop.seen.lock().unwrap();
        let ours = seen.iter().filter(|(_, body)| body["data"]["id"] == invoice["id"]);
        ours.map(|(_, body)| body["type"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_is_paid_and_told() {
    let rich = key(0);
    let mut network = standalone("merchant", &[rich.account()]);
    network.start_authorities().await.unwrap();
    let payer = Person::new(&network, "payer").await.unwrap();
    let secret = network.place().write("secret", "01".repeat(32)).unwrap();
    let import = ["keys", "import", "own", "--ed25519", "--secret-file", &secret.to_string_lossy()];
    payer.fastpay(import).await.unwrap();
    let owner = Person::new(&network, "owner").await.unwrap();
    let account = owner.new_ed25519_key("till").await.unwrap();
    let mut merchant = Merchant::start(&mut network, &owner, account).await;
    let pay = async |invoice: &Value| payer.fastpay(["pay", invoice["link"].as_str().unwrap(), "--yes"]).await.unwrap();
    let smallest = "0.000000000000000001";

    // Paid by its link: told once, whatever the shop asks again.
    let cake = merchant.create("cake", "700", "600");
    assert_eq!((cake["state"].as_str(), cake["account"].as_str()), (Some("open"), Some(account.to_string().as_str())));
    assert_eq!(merchant.create("cake", "700", "600")["id"], cake["id"]);
    assert!(merchant.ask(&["invoice", "create", "--reference", "cake", "--amount", "8"]).is_err());
    assert_eq!(pay(&cake).await["value"]["units"], "700");
    let paid = merchant.until(&cake, "paid", "delivered").await;
    assert_eq!((paid["received"].as_str(), paid["webhooks"][0]["attempts"].as_u64()), (Some("700"), Some(1)));
    assert_eq!(paid["payments"][0]["sender"], rich.account().to_string());
    assert_eq!(merchant.told(&cake), ["invoice.paid"]);

    // Too little, while the shop is down: tried again with the same id; then the rest; then once more.
    let bread = merchant.create("bread", "2", "600");
    *merchant.shop.refuse.lock().unwrap() = 2;
    let memo = bread["memo"].as_str().unwrap();
    payer.fastpay(["pay", &account.to_string(), smallest, "--memo", memo]).await.unwrap();
    let under = merchant.until(&bread, "underpaid", "delivered").await;
    assert_eq!(under["webhooks"][0]["attempts"], 3);
    let ids: std::collections::BTreeSet<_> =
        merchant.shop.seen.lock().unwrap().iter().map(|(id, _)| id.clone()).collect();
    assert_eq!((ids.len(), merchant.told(&bread).len()), (2, 3));
    payer.fastpay(["pay", &account.to_string(), smallest, "--memo", memo]).await.unwrap();
    merchant.until(&bread, "paid", "delivered").await;
    pay(&bread).await;
    merchant.until(&bread, "overpaid", "delivered").await;

    // Killed while the payment comes in: found at the next start, and in time, because nobody looked when it ended.
    let tea = merchant.create("tea", "5", "3");
    let coffee = merchant.create("coffee", "5", "3");
    *merchant.shop.refuse.lock().unwrap() = usize::MAX;
    merchant.kill();
    pay(&tea).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    merchant.run().await;
    merchant.until(&tea, "paid", "failing").await;
    let expired = merchant.until(&coffee, "expired", "failing").await;
    // What could not be told before a crash is told after it, with the same id.
    merchant.kill();
    *merchant.shop.refuse.lock().unwrap() = 0;
    merchant.run().await;
    let told = merchant.until(&coffee, "expired", "delivered").await;
    assert_eq!(told["webhooks"][0]["id"], expired["webhooks"][0]["id"]);
    let memo = coffee["memo"].as_str().unwrap();
    payer.fastpay(["pay", &account.to_string(), "0.000000000000000005", "--memo", memo]).await.unwrap();
    let late = merchant.until(&coffee, "late", "delivered").await;
    assert_eq!(late["payments"][0]["late"], true);

    // Of no invoice: nobody is told, and the books have it.
    payer.fastpay(["pay", &account.to_string(), smallest, "--memo", "tip"]).await.unwrap();
    wait_for(PATIENCE, async || {
        let table = run(&mut merchant.command(&["invoice", "export"])).unwrap().out;
        let rows = table.lines().count();
        let has = table.contains(",tip,1,") && table.contains("cake,paid") && table.contains("coffee,late");
        // The head, cake, three for bread, tea, coffee, the tip.
        if has && rows == 8 { Ok(()) } else { Err(table) }
    })
    .await
    .unwrap();
    let token = std::fs::read_to_string(merchant.home.join("secrets/token")).unwrap();
    let log = std::fs::read_to_string(&merchant.log).unwrap();
    assert!(!log.contains(token.trim()) && !log.contains("whsec_"), "{log}");
}

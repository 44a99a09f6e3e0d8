//! A shop that receives webhooks, and the real service beside it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use fastpay_core::AccountId;
use fastpay_e2e::{Network, PATIENCE, Program, User, program, run, wait_for};
use fastpay_merchant::signature::Secret;
use fastpay_wallet::format_units;
use serde_json::{Value, json};

/// The shop's answer to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Take,
    /// Answers 503 this many times, then accepts.
    Refuse(usize),
    /// Receives the message and never answers.
    Hang,
}

/// A received message, whatever the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    pub body: String,
}

/// The shop. It checks webhook signatures as the standard prescribes.
#[derive(Clone)]
pub struct Shop {
    secret: Secret,
    mood: Arc<Mutex<Mood>>,
    seen: Arc<Mutex<Vec<Message>>>,
}

async fn take(State(shop): State<Shop>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let body = std::str::from_utf8(&body).unwrap().to_owned();
    assert_eq!(header("webhook-signature"), shop.secret.sign(&id, timestamp.parse().unwrap(), &body));
    shop.seen.lock().unwrap().push(Message { id, body });
    let mood = {
        let mut mood = shop.mood.lock().unwrap();
        let now = *mood;
        if let Mood::Refuse(times) = now {
            *mood = times.checked_sub(2).map_or(Mood::Take, |rest| Mood::Refuse(rest + 1));
        }
        now
    };
    match mood {
        Mood::Take => StatusCode::NO_CONTENT,
        Mood::Refuse(_) => StatusCode::SERVICE_UNAVAILABLE,
        Mood::Hang => std::future::pending().await,
    }
}

pub struct Merchant {
    pub home: PathBuf,
    pub log: PathBuf,
    program: Option<Program>,
    shop: Shop,
}

impl Merchant {
    /// Creates the service's folder, and starts the shop and the service.
    pub async fn start(network: &mut Network, owner: &User, account: AccountId) -> Self {
        let home = network.place().path("merchant");
        let [service, shop_port] = [(); 2].map(|()| network.ports().next(1).unwrap());
        let mut command = Command::new(program("fastpay-merchant").unwrap());
        command.args(["--json", "--home"]).arg(&home).args([
            "init",
            "--account",
            &account.to_string(),
            "--label",
            "Bakery",
        ]);
        command.args(["--webhook-url", &format!("http://127.0.0.1:{shop_port}/webhook")]);
        command.args(["--listen", &format!("127.0.0.1:{service}"), "--wallet"]).arg(owner.home());
        let made: Value = serde_json::from_str(&run(&mut command).unwrap().success().unwrap().out).unwrap();
        let secret = std::fs::read_to_string(made["webhookSecretFile"].as_str().unwrap()).unwrap();
        let secret = Secret::parse(&secret).unwrap();
        let shop = Shop { secret, mood: Arc::new(Mutex::new(Mood::Take)), seen: Arc::default() };
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", shop_port)).await.unwrap();
        let routes = Router::new().route("/webhook", post(take)).with_state(shop.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let config = home.join("merchant.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        let text = text.replace("poll_ms = 1000", "poll_ms = 100").replace("delay_ms = 5000", "delay_ms = 200");
        // A shop that answers at all does so in less, however busy the machine is: attempts are counted.
        std::fs::write(&config, text.replace("timeout_ms = 10000", "timeout_ms = 5000")).unwrap();
        let mut merchant = Self { log: network.place().log("merchant"), home, program: None, shop };
        merchant.run().await;
        merchant
    }

    pub async fn run(&mut self) {
        let mut command = self.command(&["run"]);
        self.program = Some(Program::start("merchant", &mut command, &self.log).unwrap());
        wait_for(PATIENCE, async || self.ask(&["invoice", "list"]).map(drop)).await.unwrap();
    }

    /// Kills the service, as a crash of the machine would.
    pub fn kill(&mut self) {
        self.program.take().unwrap().kill();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("fastpay-merchant").unwrap());
        command.arg("--home").arg(&self.home).args(arguments);
        command
    }

    /// The command's answer as JSON, or its exit code and error kind.
    pub fn try_ask(&self, arguments: &[&str]) -> Result<Value, (Option<i32>, Value)> {
        let done = run(self.command(arguments).arg("--json")).unwrap();
        let answer: Value = serde_json::from_str(&done.out).unwrap();
        if done.status.success() { Ok(answer) } else { Err((done.status.code(), answer["error"]["kind"].clone())) }
    }

    fn ask(&self, arguments: &[&str]) -> Result<Value, String> {
        self.try_ask(arguments).map_err(|error| format!("{error:?}"))
    }

    /// Creates an invoice for this many of the smallest unit, with the shop's command.
    pub fn create(&self, reference: &str, units: &str, expires_in: &str) -> Value {
        let amount = &format_units(units, 18);
        let create = ["invoice", "create", "--reference", reference, "--amount", amount, "--expires-in", expires_in];
        self.ask(&create).unwrap()
    }

    /// Waits until the invoice and its last webhook are in this state.
    pub async fn until(&self, invoice: &Value, state: &str, delivery: &str) -> Value {
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

    pub fn shop_will(&self, mood: Mood) {
        *self.shop.mood.lock().unwrap() = mood;
    }

    /// The messages about an invoice, in order of arrival.
    pub fn messages(&self, invoice: &Value) -> Vec<Message> {
        let seen = self.shop.seen.lock().unwrap();
        let is_ours = |message: &&Message| message.body.contains(invoice["id"].as_str().unwrap());
        seen.iter().filter(is_ours).cloned().collect()
    }

    /// Waits for this many messages about an invoice, and checks that there are no more.
    pub async fn until_messages(&self, invoice: &Value, count: usize) -> Vec<Message> {
        wait_for(PATIENCE, async || {
            let messages = self.messages(invoice);
            if messages.len() >= count { Ok(messages) } else { Err(format!("{messages:?}")) }
        })
        .await
        .unwrap()
    }

    /// The types of an invoice's webhooks, in order of arrival.
    pub fn webhook_types(&self, invoice: &Value) -> Vec<String> {
        let kind = |message: Message| serde_json::from_str::<Value>(&message.body).unwrap()["type"].clone();
        self.messages(invoice).into_iter().map(|message| kind(message).as_str().unwrap().to_owned()).collect()
    }

    /// The database, and each prefix of its log that a crash may have left.
    pub fn cuts(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        const HEAD: usize = 32;
        const FRAME: usize = 24 + 4_096;
        let [database, log] =
            ["invoices.db", "invoices.db-wal"].map(|name| std::fs::read(self.home.join(name)).unwrap());
        (HEAD..=log.len()).step_by(FRAME).map(|length| (database.clone(), log[..length].to_vec())).collect()
    }

    pub fn restore(&self, database: &[u8], log: &[u8]) {
        std::fs::write(self.home.join("invoices.db"), database).unwrap();
        std::fs::write(self.home.join("invoices.db-wal"), log).unwrap();
        // Its index of the log, which SQLite makes anew.
        let _ = std::fs::remove_file(self.home.join("invoices.db-shm"));
    }
}

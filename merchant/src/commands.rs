//! What the commands do. Those about invoices ask the running service: it alone has the journal.

use std::time::Duration;

use fastpay_core::Asset;
use fastpay_merchant::config::{Config, ConfigError, Home};
use fastpay_merchant::deliver::{DeliverError, Target, deliver};
use fastpay_merchant::http::router;
use fastpay_merchant::ledger::{Ledger, LedgerError};
use fastpay_merchant::watch::{WatchError, watch};
use fastpay_wallet::folder::Folder;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Cli, Command, CreateArgs, InitArgs, InvoiceCommand};

/// The service is on the same machine, or near.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Deliver(#[from] DeliverError),
    #[error("cannot listen at {0}: {1}")]
    Listen(std::net::SocketAddr, std::io::Error),
    #[error("the service does not answer at {0}; start it with `fastpay-merchant run`")]
    Away(std::net::SocketAddr),
    #[error("{0}")]
    Refused(String),
}

pub async fn run(cli: Cli) -> Result<String, CommandError> {
    let home = Home::new(cli.home);
    match cli.command {
        Command::Init(args) => init(&home, args).await,
        Command::Run => serve(&home).await.map(|()| String::new()),
        Command::Invoice(command) => invoice(&home, command).await,
    }
}

async fn init(home: &Home, args: InitArgs) -> Result<String, CommandError> {
    let config = Config {
        label: args.label,
        web_wallet: args.web_wallet,
        webhook_url: args.webhook_url,
        ..Config::new(args.account, args.listen)
    };
    home.init(&config, &Folder::new(args.wallet)).await?;
    let secrets = std::path::absolute(home.path()).unwrap_or_else(|_| home.path().into()).join("secrets");
    Ok(json!({
        "account": config.account,
        "listen": config.listen,
        "tokenFile": secrets.join("token"),
        "webhookSecretFile": secrets.join("webhook"),
    })
    .to_string())
}

async fn serve(home: &Home) -> Result<(), CommandError> {
    let config = home.config()?;
    let (token, secret, wallet) = (home.token()?, home.webhook_secret()?, home.wallet()?);
    let ledger = Ledger::open(home.path(), Home::link_base(&config, &wallet)).await?;
    let listen = |error| CommandError::Listen(config.listen, error);
    let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
    let routes = router(ledger.clone(), &token);
    tracing::info!(account = %config.account, listen = %config.listen, "serving");
    let watching = watch(wallet, ledger.clone(), Duration::from_millis(config.poll_ms));
    let delivering = async {
        match config.webhook_url.clone() {
            Some(url) => deliver(ledger, Target { url, secret, first_delay_ms: config.webhook_first_delay_ms }).await,
            None => std::future::pending().await,
        }
    };
    // Whichever ends, ends the service. All that was answered is on disk, so nothing has to be brought to an end.
    tokio::select! {
        served = async { axum::serve(listener, routes).await } => served.map_err(listen),
        watched = watching => Ok(watched?),
        delivered = delivering => Ok(delivered?),
        () = stop_signal() => Ok(()),
    }
}

async fn stop_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

async fn invoice(home: &Home, command: InvoiceCommand) -> Result<String, CommandError> {
    match command {
        InvoiceCommand::Create(args) => {
            let CreateArgs { reference, amount, asset, memo, expires_in } = args;
            let body = json!({
                "reference": reference,
                "amount": amount.to_string(),
                "asset": asset.map_or(Asset::ETHER, Asset),
                "memo": memo,
                "expiresIn": expires_in,
            });
            ask(home, Method::POST, &["invoices"], &[], Some(&body)).await
        }
        InvoiceCommand::List { after, state } => {
            let query = [("after", after), ("state", state)];
            ask(home, Method::GET, &["invoices"], &query, None).await
        }
        InvoiceCommand::Show { id } => ask(home, Method::GET, &["invoices", &id], &[], None).await,
        InvoiceCommand::Export => ask(home, Method::GET, &["export.csv"], &[], None).await,
    }
}

async fn ask(
    home: &Home,
    method: Method,
    path: &[&str],
    query: &[(&str, Option<String>)],
    body: Option<&Value>,
) -> Result<String, CommandError> {
    let (config, token) = (home.config()?, home.token()?);
    let away = |_| CommandError::Away(config.listen);
    let mut url: url::Url = format!("http://{}/v1/", config.listen)
        .parse()
        .map_err(|error| CommandError::Refused(format!("{}: {error}", config.listen)))?;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    for (name, value) in query {
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build().map_err(away)?;
    let mut request = client.request(method, url).bearer_auth(&*token);
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    let answer = request.send().await.map_err(away)?;
    let is_good = answer.status().is_success();
    let text = answer.text().await.map_err(away)?;
    if is_good {
        return Ok(text);
    }
    let problem: Value = serde_json::from_str(&text).unwrap_or_default();
    Err(CommandError::Refused(problem.get("detail").and_then(Value::as_str).unwrap_or(&text).to_owned()))
}

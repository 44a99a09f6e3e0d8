//! The commands.

use std::time::Duration;

use clap::CommandFactory;
use fastpay_core::{AccountId, Asset};
use fastpay_merchant::config::{Config, Home};
use fastpay_merchant::deliver::{Target, deliver};
use fastpay_merchant::follow::follow;
use fastpay_merchant::http::{HttpLimits, serve as serve_http};
use fastpay_merchant::ledger::Ledger;
use fastpay_merchant::watch::watch;
use fastpay_program::console::completions;
use fastpay_program::stop_signal;
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{Wallet, WalletError, format_units};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::Service;
use crate::error::CommandError;
use crate::text::{self, Amounts};
use crate::{
    Cli, Command, CreateArgs, InitArgs, InvoiceCommand, ItemArg, PayoutArgs, PayoutsCommand, PrepareArgs,
    RefundsCommand,
};

/// The outcome of a command.
pub struct Report {
    /// The answer for programs.
    pub json: Option<Value>,
    /// The answer for people.
    pub text: String,
}

pub async fn run(cli: Cli) -> Result<Report, CommandError> {
    let home = Home::new(cli.home);
    match cli.command {
        Command::Init(args) => init(&home, *args).await,
        Command::Run => serve(&home).await.map(|()| Report { json: None, text: String::new() }),
        Command::Invoice(command) => invoice(&home, command, cli.json).await,
        Command::Refunds(command) => refunds(&home, command, cli.json).await,
        Command::Payouts(command) => payouts(&home, command, cli.json).await,
        Command::Completions { shell } => {
            let text = completions(shell, Cli::command());
            Ok(Report { json: Some(json!({ "shell": shell.to_string(), "script": text })), text })
        }
    }
}

async fn init(home: &Home, args: InitArgs) -> Result<Report, CommandError> {
    let config = Config {
        behind_proxy: args.behind_proxy,
        label: args.label,
        web_wallet: args.web_wallet,
        checkout_url: args.checkout_url,
        webhook_url: args.webhook_url,
        ..Config::new(args.account, args.listen)
    };
    home.init(&config, &Folder::new(args.wallet)).await?;
    let secrets = std::path::absolute(home.path()).unwrap_or_else(|_| home.path().into()).join("secrets");
    let (token, webhook) = (secrets.join("token"), secrets.join("webhook"));
    let text = format!(
        "{} is set up for invoices to {}.\n\
         The shop shows the token in {} with its requests to {},\n\
         and checks webhooks with the secret in {}.\n\
         Start the service: fastpay-merchant --home {} run",
        home.path().display(),
        config.account,
        token.display(),
        config.listen,
        webhook.display(),
        home.path().display()
    );
    let json = json!({
        "account": config.account,
        "listen": config.listen,
        "tokenFile": token,
        "webhookSecretFile": webhook,
    });
    Ok(Report { json: Some(json), text })
}

async fn serve(home: &Home) -> Result<(), CommandError> {
    let config = home.config()?;
    let (token, secret, wallet) = (home.token()?, home.webhook_secret()?, home.wallet()?);
    let base = Home::link_base(&config, &wallet);
    let ledger = Ledger::open(home.path(), base, config.webhook_url.is_some()).await?;
    let listening = TcpListener::bind(config.listen).await;
    let listener = listening.map_err(|error| CommandError::Listen(config.listen, error))?;
    let limits = HttpLimits { open_invoices_max: config.open_invoices_max, ..HttpLimits::default() };
    let stop = stop_signal()?;
    tracing::info!(account = %config.account, listen = %config.listen, "serving");
    let watching = watch(wallet.clone(), ledger.clone(), Duration::from_millis(config.poll_ms));
    let following = follow(wallet.clone(), ledger.clone());
    let telling = ledger.clone();
    let delivering = async {
        let patience = Duration::from_millis(config.webhook_timeout_ms);
        let first_delay_ms = config.webhook_first_delay_ms;
        match config.webhook_url.clone() {
            Some(url) => deliver(telling, Target { url, secret, patience, first_delay_ms }).await,
            None => std::future::pending().await,
        }
    };
    // If either ends, the service ends. All answers are on disk, so nothing else has to be completed.
    tokio::select! {
        () = serve_http(listener, ledger, wallet, &token, limits, stop) => Ok(()),
        watched = watching => Ok(watched?),
        followed = following => Ok(followed?),
        delivered = delivering => Ok(delivered?),
    }
}

async fn invoice(home: &Home, command: InvoiceCommand, for_programs: bool) -> Result<Report, CommandError> {
    let (service, wallet) = (Service::of(home)?, home.wallet()?);
    // Read the decimals for people only: programs use the smallest unit, and need no Ethereum node for that.
    let amounts = async |invoices: &[Value]| match for_programs {
        true => Amounts::default(),
        false => Amounts::of(&wallet, invoices).await,
    };
    let one = async |json: Value| {
        let amounts = amounts(std::slice::from_ref(&json)).await;
        Report { text: text::invoice(&json, &amounts), json: Some(json) }
    };
    match command {
        InvoiceCommand::Create(args) => {
            let CreateArgs { reference, amount, asset, memo, expires_in, description, item, return_url } = args;
            let asset = asset.map_or(Asset::ETHER, Asset);
            let mut items = Vec::new();
            for ItemArg { name, quantity, price } in item {
                let price = wallet.read_amount(asset, &price).await?;
                items.push(json!({ "name": name, "quantity": quantity, "amount": price.to_string() }));
            }
            let body = json!({
                "reference": reference,
                "amount": wallet.read_amount(asset, &amount).await?.to_string(),
                "asset": asset,
                "memo": memo,
                "expiresIn": expires_in,
                "description": description,
                "items": items,
                "returnUrl": return_url,
            });
            Ok(one(service.post(&["invoices"], &body).await?).await)
        }
        InvoiceCommand::List { after, state } => {
            let json = service.get(&["invoices"], &[("after", after), ("state", state)]).await?;
            let amounts = amounts(text::invoices(&json)).await;
            Ok(Report { text: text::page(&json, &amounts), json: Some(json) })
        }
        InvoiceCommand::Show { id } => Ok(one(service.get(&["invoices", &id], &[]).await?).await),
        InvoiceCommand::Export => {
            let table = service.table(&["export.csv"]).await?;
            Ok(Report { json: Some(json!({ "csv": table })), text: table })
        }
    }
}

async fn refunds(home: &Home, command: RefundsCommand, for_programs: bool) -> Result<Report, CommandError> {
    let (service, wallet) = (Service::of(home)?, home.wallet()?);
    let show = async |json: Value| {
        let amounts = match for_programs {
            true => Amounts::default(),
            false => Amounts::of(&wallet, text::refunds(&json)).await,
        };
        Report { text: text::refund_list(&json, &amounts), json: Some(json) }
    };
    match command {
        RefundsCommand::Prepare(args) => {
            let body = prepare_body(&service, &wallet, args).await?;
            Ok(show(service.post(&["refunds"], &body).await?).await)
        }
        RefundsCommand::List { after } => {
            let json = service.get(&["refunds"], &[("after", after)]).await?;
            Ok(Report { text: text::refund_lists(&json), json: Some(json) })
        }
        RefundsCommand::Show { reference } => Ok(show(service.get(&["refunds", &reference], &[]).await?).await),
        RefundsCommand::Csv { reference } => {
            let list = service.get(&["refunds", &reference], &[]).await?;
            let table = refund_table(&wallet, home.config()?.account, &list).await?;
            Ok(Report { json: Some(json!({ "csv": table })), text: table })
        }
    }
}

async fn prepare_body(service: &Service, wallet: &Wallet, args: PrepareArgs) -> Result<Value, CommandError> {
    let PrepareArgs { reference, invoice, amount, due, unmatched } = args;
    let amount = match (&amount, invoice.as_slice()) {
        (None, _) => None,
        (Some(text), [id]) => {
            let found = service.get(&["invoices", id], &[]).await?;
            let asset = found.get("asset").and_then(Value::as_str).and_then(|asset| asset.parse().ok());
            Some(wallet.read_amount(asset.map_or(Asset::ETHER, Asset), text).await?.to_string())
        }
        (Some(_), _) => {
            let why = "--amount is for one invoice; prepare a list for each, or omit the amount";
            return Err(WalletError::Argument(why.into()).into());
        }
    };
    let invoices: Vec<_> = invoice.iter().map(|id| json!({ "id": id, "amount": amount })).collect();
    Ok(json!({ "reference": reference, "invoices": invoices, "due": due, "unmatched": unmatched }))
}

/// The list in the form for wallets, in whole units. It contains all lines, paid or not, so the same list is always the
/// same file, and a wallet pays a file once.
async fn refund_table(wallet: &Wallet, account: AccountId, list: &Value) -> Result<String, CommandError> {
    let reference = list.get("reference").and_then(Value::as_str).unwrap_or_default();
    let mut table =
        format!("# refunds {reference} from {account}: fastpay pay --csv FILE\nrecipient,amount,asset,memo\n");
    for refund in text::refunds(list) {
        let [recipient, units, asset, memo] = ["recipient", "amount", "asset", "memo"]
            .map(|name| refund.get(name).and_then(Value::as_str).unwrap_or_default());
        let decimals = match asset.parse().map(Asset) {
            Ok(asset) => wallet.asset_info(asset).await?.decimals,
            Err(_) => return Err(WalletError::Argument(format!("the service named an asset {asset:?}")).into()),
        };
        // Each field consists of digits and letters.
        table.push_str(&format!("{recipient},{},{asset},{memo}\n", format_units(units, decimals)));
    }
    Ok(table)
}

async fn payouts(home: &Home, command: PayoutsCommand, for_programs: bool) -> Result<Report, CommandError> {
    let (service, wallet) = (Service::of(home)?, home.wallet()?);
    let amounts = async |payouts: &[Value]| match for_programs {
        true => Amounts::default(),
        false => Amounts::of(&wallet, payouts).await,
    };
    let one = async |json: Value| {
        let amounts = amounts(std::slice::from_ref(&json)).await;
        Report { text: text::payout(&json, &amounts), json: Some(json) }
    };
    match command {
        PayoutsCommand::Prepare(args) => {
            let PayoutArgs { reference, amount, to, asset, fee } = args;
            let asset = asset.map_or(Asset::ETHER, Asset);
            let fee = match fee {
                Some(text) => Some(wallet.read_amount(asset, &text).await?.to_string()),
                None => None,
            };
            let amount = wallet.read_amount(asset, &amount).await?.to_string();
            let body = json!({ "reference": reference, "amount": amount, "recipient": to, "asset": asset, "fee": fee });
            Ok(one(service.post(&["payouts"], &body).await?).await)
        }
        PayoutsCommand::List { after } => {
            let json = service.get(&["payouts"], &[("after", after)]).await?;
            let amounts = amounts(text::payouts(&json)).await;
            Ok(Report { text: text::payout_page(&json, &amounts), json: Some(json) })
        }
        PayoutsCommand::Show { reference } => Ok(one(service.get(&["payouts", &reference], &[]).await?).await),
    }
}

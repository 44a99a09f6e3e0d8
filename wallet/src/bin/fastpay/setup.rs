//! `init`, `keys`, `address`.

use std::io::Read;
use std::path::{Path, PathBuf};

use fastpay_ethereum::SenderConfig;
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_wallet::folder::{
    Config, FolderError, KeyEntry, KeyError, KeyKind, LedgerSettings, PrimarySection, PrimarySettings, parse_secret,
    read_keystore,
};
use fastpay_wallet::{WalletError, learn_chain_id, set_up};
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::{ImportKeyArgs, InitArgs, KeysCommand, KindArgs};
use crate::context::{Context, ask, first_line, read_passphrase};
use crate::output::Report;

pub async fn init(context: &Context, args: InitArgs) -> Result<Report, WalletError> {
    let endpoints = absolute(&args.endpoints)?;
    let config = match (args.genesis, args.contract, args.ledger.zip(args.committee)) {
        (Some(genesis), ..) => Config { endpoints, primary: None, genesis: Some(absolute(&genesis)?), traces: None },
        (None, None, Some((file, committee))) => {
            let ledger = LedgerSettings { file: absolute(&file)?, committee: CommitteeNumber(committee) };
            Config { endpoints, primary: Some(PrimarySection::Ledger(ledger)), genesis: None, traces: None }
        }
        (None, Some(contract), _) if !args.rpc_url.is_empty() => {
            let chain_id = match args.chain_id {
                Some(chain_id) => chain_id,
                None => learn_chain_id(&args.rpc_url).await?,
            };
            let mut sender = SenderConfig::default();
            sender.poll_interval_ms = args.poll_interval_ms.unwrap_or(sender.poll_interval_ms);
            let (rpc_urls, finality) = (args.rpc_url, args.finality);
            let primary = PrimarySettings { rpc_urls, chain_id, contract, finality, sender };
            Config { endpoints, primary: Some(primary.into()), genesis: None, traces: None }
        }
        (None, contract, _) => {
            let missing = if contract.is_none() { "--contract" } else { "--rpc-url" };
            return Err(WalletError::Argument(format!(
                "{missing} is missing: give --rpc-url and --contract of a FastPay contract on Ethereum, --ledger and \
                 --committee of a committee on a ledger, or --genesis with the genesis file of a committee without a \
                 Primary"
            )));
        }
    };
    let known = set_up(&context.folder, &config, args.force).await?;
    let home = context.folder.home().display().to_string();
    let committee = known.committees.current();
    let text = format!(
        "wallet in {home}\nchain {}, contract {}, epoch {}, {} authorities",
        known.chain_id,
        known.contract,
        committee.epoch(),
        committee.members().len()
    );
    let json = json!({
        "home": home,
        "chainId": known.chain_id,
        "contract": known.contract,
        "epoch": committee.epoch(),
        "authorities": committee.members(),
    });
    Ok(Report::new(json, text))
}

fn absolute(path: &Path) -> Result<PathBuf, WalletError> {
    Ok(std::path::absolute(path).map_err(|error| FolderError::Io { path: path.into(), error })?)
}

pub fn keys(context: &Context, command: KeysCommand) -> Result<Report, WalletError> {
    let keys = context.folder.keys();
    match command {
        KeysCommand::New(args) => {
            context.folder.create()?;
            let passphrase = context.new_passphrase()?;
            Ok(key_report(&keys.create(&args.name, kind(&args.kind), &passphrase)?))
        }
        KeysCommand::Import(args) => {
            context.folder.create()?;
            let secret = imported_secret(context, &args)?;
            let passphrase = context.new_passphrase()?;
            Ok(key_report(&keys.import(&args.name, kind(&args.kind), &secret, &passphrase)?))
        }
        KeysCommand::List => {
            let entries = keys.list()?;
            let default = keys.default_name()?;
            let mark = |entry: &KeyEntry| if default.as_ref() == Some(&entry.name) { "  (default)" } else { "" };
            let lines: Vec<_> = entries.iter().map(|entry| format!("{}{}", key_line(entry), mark(entry))).collect();
            let text = if lines.is_empty() {
                "no keys yet; create one with `fastpay keys new`".into()
            } else {
                lines.join("\n")
            };
            Ok(Report::new(json!({ "keys": entries, "default": default }), text))
        }
        KeysCommand::Use { name } => Ok(key_report(&keys.set_default(&name)?)),
        KeysCommand::Export { name } => {
            let entry = keys.entry(&name)?;
            let path = keys.path(&name)?;
            let content = std::fs::read_to_string(&path).map_err(|error| FolderError::Io { path, error })?;
            let file: serde_json::Value = serde_json::from_str(&content)
                .map_err(|error| WalletError::Argument(format!("the file of key {name} is damaged: {error}")))?;
            Ok(Report::new(json!({ "key": entry, "keystore": file }), content))
        }
    }
}

pub fn address(context: &Context, from: Option<&str>) -> Result<Report, WalletError> {
    let entry = context.choose(from, None)?;
    Ok(Report::new(json!(entry), entry.account.to_string()))
}

fn kind(args: &KindArgs) -> KeyKind {
    if args.ethereum { KeyKind::Ethereum } else { KeyKind::Ed25519 }
}

fn key_line(entry: &KeyEntry) -> String {
    let kind = match entry.kind {
        KeyKind::Ed25519 => "ed25519",
        KeyKind::Ethereum => "ethereum",
    };
    format!("{:16} {kind:8} {}", entry.name, entry.account)
}

fn key_report(entry: &KeyEntry) -> Report {
    Report::new(json!(entry), key_line(entry))
}

fn imported_secret(context: &Context, args: &ImportKeyArgs) -> Result<Zeroizing<[u8; 32]>, WalletError> {
    if let Some(path) = &args.keystore {
        let passphrase = match &args.keystore_passphrase_file {
            Some(file) => read_passphrase(file, "--keystore-passphrase-file")?,
            None => context.passphrase(&format!("Passphrase of {}: ", path.display()))?,
        };
        return Ok(read_keystore(path, &passphrase)?);
    }
    let text = match &args.secret_file {
        Some(path) if path.as_os_str() == "-" => {
            let mut text = Zeroizing::new(String::new());
            let read = std::io::stdin().take(1024).read_to_string(&mut text);
            read.map_err(|error| FolderError::Io { path: path.clone(), error })?;
            text
        }
        Some(path) => first_line(path).map_err(|error| KeyError::Io { path: path.clone(), error })?,
        None => ask("Secret key (64 hexadecimal digits): ")?,
    };
    Ok(parse_secret(&text)?)
}

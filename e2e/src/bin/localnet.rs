//! `fastpay-localnet`: the demo's network, kept running, with a wallet that has money on the chain.
//!
//! Its folder has a file `network.json` for programs, written once everything runs. At SIGUSR1 the committee changes
//! its keys, once. At SIGUSR2, after that, a new authority takes the last member's place, once.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alloy::primitives::U256;
use clap::Parser;
use fastpay_core::{AccountId, Authority as Member};
use fastpay_e2e::{CHAIN_ID, Failure, Layout, Network, Place, RICH_KEYS, Token, User, program};
use fastpay_program::stop_signal;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

/// The folder of each authority's keys for the second epoch.
const NEXT_KEYS: &str = "keys-1";
const LAYOUT: Layout = Layout { authorities: 4, shards: 2, block_time: Duration::from_secs(1), node: None };
const TOKENS: u64 = 20_000;
/// Their Ethereum keys are anvil's first ones.
const RICH: [&str; 2] = ["alice", "bob"];
/// Carol's key, public as those of the others: her account is the same on each network.
const CAROL: &str = "ca401ca401ca401ca401ca401ca401ca401ca401ca401ca401ca401ca401ca40";

#[derive(Parser)]
#[command(about = "Run a FastPay network on a local chain until Ctrl-C")]
struct Arguments {
    /// Keep files in target/localnet-NAME; networks of different names run side by side [default: target/localnet]
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
    /// Run without a relayer, so that wallets submit redemptions themselves
    #[arg(long)]
    without_relayer: bool,
}

fn parse_name(text: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = !text.is_empty() && text.chars().all(is_fit);
    if fits { Ok(text.to_owned()) } else { Err("give lower-case letters, digits and hyphens".into()) }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut stop = match stop_signal() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let folder = arguments.name.map_or_else(|| "localnet".to_owned(), |name| format!("localnet-{name}"));
    match tokio::select! {
        outcome = serve(&folder, !arguments.without_relayer) => outcome,
        _ = stop.wait_for(|stop| *stop) => Ok(()),
    } {
        Ok(()) => {
            println!("\nthe network has ended");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(folder: &str, with_relayer: bool) -> Result<(), Failure> {
    println!("starting anvil, four authorities of two shards{} …", if with_relayer { ", and a relayer" } else { "" });
    let mut rotations = signal(SignalKind::user_defined1()).map_err(Failure::wrong)?;
    let mut replacements = signal(SignalKind::user_defined2()).map_err(Failure::wrong)?;
    let mut network = Network::prepare(Place::fixed(folder)?, LAYOUT).await?;
    let token = network.chain()?.deploy_token(network.place())?;
    network.relayer()?.serve(token.address)?;
    // The relayer must not submit a redemption whose owner means to do it.
    network.relayer()?.leave_below_cost()?;
    let relayers: Vec<_> = with_relayer.then(|| network.publish_fees()).transpose()?.into_iter().collect();
    // Give each authority its keys of the second epoch before it starts, so that none needs a restart.
    let next: Vec<_> = network.authorities.iter_mut().map(|a| a.add_keys(NEXT_KEYS)).collect::<Result<_, _>>()?;
    // With these they join the second epoch.
    let endpoints = network.endpoints_file();
    network.authorities.iter().try_for_each(|authority| authority.set_endpoints(&endpoints))?;
    network.start_authorities().await?;
    if with_relayer {
        network.start_relayer()?;
    }
    let wallet = User::new(&network, "wallet").await?;
    let mut rich = Vec::new();
    for (number, name) in RICH.into_iter().enumerate() {
        let account = wallet.import_rich_key(name, number).await?;
        rich.push(account);
        let address = account.ethereum_address().unwrap_or_default();
        let units = U256::from(TOKENS) * U256::from(10).pow(U256::from(token.decimals));
        network.chain()?.give_token(&token, address, units).await?;
    }
    wallet.import_key("carol", "--ed25519", CAROL).await?;
    let description = describe(&network, &token, &rich, &relayers)?;
    explain(&network, &wallet, &token)?;
    println!("  for programs    {}", description.display());
    // A program that ends by itself is an error.
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            Some(()) = rotations.recv() => rotate(&network, &next).await?,
            Some(()) = replacements.recv() => replace(&mut network, &next).await?,
        }
        for authority in &mut network.authorities {
            authority.program()?.check()?;
        }
        if with_relayer {
            network.relayer()?.program()?.check()?;
        }
        if let Some(chain) = &mut network.chain {
            chain.program().check()?;
        }
    }
}

/// Changes the committee's keys as operators do: a quorum signs the announcement, a day later a quorum of the next
/// committee accepts it, and anyone brings the votes to the contract.
async fn rotate(network: &Network, next: &[Member]) -> Result<(), Failure> {
    let voters: Vec<usize> = (0..network.committee().quorum()).collect();
    network.rotate(NEXT_KEYS, next, &voters, 1).await?;
    println!("the committee has changed its keys");
    Ok(())
}

/// A new authority, which no list names, takes the place of the last of these members.
async fn replace(network: &mut Network, members: &[Member]) -> Result<(), Failure> {
    // Who has not joined the present epoch signs no next one.
    for authority in &mut network.authorities {
        authority.wait_ready().await?;
    }
    network.add(LAYOUT.shards)?;
    let endpoints = network.endpoints_file();
    let number = network.authorities.len().saturating_sub(1);
    let new = network.authority(number)?;
    new.set_endpoints(&endpoints)?;
    new.set_observer()?;
    new.start()?;
    new.wait_ready().await?;
    let stay = members.iter().take(members.len().saturating_sub(1)).copied();
    let next: Vec<_> = stay.chain([new.member()]).collect();
    let voters: Vec<usize> = (0..network.committee().quorum()).collect();
    network.rotate(NEXT_KEYS, &next, &voters, 2).await?;
    println!("a new authority has taken a member's place");
    Ok(())
}

/// Writes `network.json`. The keys in it are anvil's public ones.
fn describe(network: &Network, token: &Token, rich: &[AccountId], relayers: &[String]) -> Result<PathBuf, Failure> {
    let mut authorities = Vec::new();
    for authority in &network.authorities {
        let endpoints = authority.endpoints()?;
        authorities.push(json!({ "name": endpoints.name, "http": endpoints.http }));
    }
    let accounts = RICH.iter().zip(rich).zip(RICH_KEYS);
    let accounts = accounts
        .map(|((name, account), key)| json!({ "name": name, "account": account, "privateKey": format!("0x{key}") }));
    let content = json!({
        "chainId": CHAIN_ID,
        "rpc": network.chain()?.url(),
        "contract": network.contract()?,
        "token": token.address,
        "authorities": authorities,
        "relayers": relayers,
        "accounts": accounts.collect::<Vec<_>>(),
    });
    let content = serde_json::to_string_pretty(&content).map_err(Failure::wrong)?;
    // Rename it into place, so that no reader finds half of it.
    let (new, path) = (network.place().write("network.json.new", content)?, network.place().path("network.json"));
    std::fs::rename(&new, &path).map_err(|error| Failure::Io { path: path.clone(), error })?;
    Ok(path)
}

fn explain(network: &Network, wallet: &User, token: &Token) -> Result<(), Failure> {
    let programs = program("fastpay")?;
    let programs = programs.parent().unwrap_or(&programs).display();
    let place = network.place().folder().display();
    println!(
        "
The network is up; press Ctrl-C to stop it. Its files and logs are in {place}.
In another terminal:

  export PATH=\"{programs}:$PATH\"
  export FASTPAY_HOME=\"{home}\"
  export FASTPAY_PASSPHRASE=\"$(cat {passphrase})\"

  fastpay keys list                                   # alice and bob (Ethereum), carol (Ed25519)
  fastpay deposit 10 --from alice                     # ETH from the chain into FastPay
  fastpay deposit 500 --asset {token} --from bob
  fastpay pay carol 1.5 --from alice                  # certified after one round trip, settled after two
  fastpay balance --from carol
  fastpay redeem 1 --from carol --to {out} --wait 60  # the relayer submits it to the contract
  fastpay audit

  Ethereum node   {rpc} (chain 31337, one block a second; alice and bob have 10,000 ETH and {TOKENS} {symbol} each)
  contract        {contract}
  token           {token} ({symbol}, {decimals} decimals)
  endpoints       {endpoints}",
        home = wallet.home().display(),
        passphrase = wallet.passphrase_file().display(),
        token = token.address,
        out = alloy::primitives::Address::repeat_byte(0x0d),
        rpc = network.chain()?.url(),
        symbol = token.symbol,
        decimals = token.decimals,
        contract = network.contract()?,
        endpoints = network.endpoints_file().display(),
    );
    for authority in &network.authorities {
        let endpoints = authority.endpoints()?;
        let http = endpoints.http.clone().unwrap_or_default();
        println!("  {:<15} {}  ({http}/ready, {http}/metrics)", authority.name(), endpoints.shards.join(" "));
    }
    Ok(())
}

//! `fastpay-localnet`: the demo's network, left running, with a wallet that has money on the chain.

use std::process::ExitCode;
use std::time::Duration;

use alloy::primitives::U256;
use fastpay_e2e::{Failure, Layout, Network, Person, Place, Token, program};
use tokio::signal::unix::{SignalKind, signal};

const LAYOUT: Layout = Layout { authorities: 4, shards: 2, block_time: Duration::from_secs(1) };
const TOKENS: u64 = 20_000;

#[tokio::main]
async fn main() -> ExitCode {
    match tokio::select! {
        outcome = serve() => outcome,
        () = stop_signal() => Ok(()),
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

async fn stop_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

async fn serve() -> Result<(), Failure> {
    println!("starting anvil, four authorities of two shards, and a relayer …");
    let mut network = Network::prepare(Place::fixed("localnet")?, LAYOUT).await?;
    let token = network.chain()?.deploy_token(network.place())?;
    network.start_authorities().await?;
    network.start_relayer()?;
    let wallet = Person::new(&network, "wallet").await?;
    for (number, name) in ["alice", "bob"].into_iter().enumerate() {
        let account = wallet.import_rich_key(name, number).await?;
        let address = account.ethereum_address().unwrap_or_default();
        let units = U256::from(TOKENS) * U256::from(10).pow(U256::from(token.decimals));
        network.chain()?.give_token(&token, address, units).await?;
    }
    wallet.new_ed25519_key("carol").await?;
    explain(&network, &wallet, &token)?;
    // Whatever ends before it is told to is worth an error.
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        for authority in &mut network.authorities {
            authority.program()?.check()?;
        }
        network.relayer()?.program()?.check()?;
        if let Some(chain) = &mut network.chain {
            chain.program().check()?;
        }
    }
}

fn explain(network: &Network, wallet: &Person, token: &Token) -> Result<(), Failure> {
    let programs = program("fastpay")?;
    let programs = programs.parent().unwrap_or(&programs).display();
    let place = network.place().folder().display();
    println!(
        "
The network is up; Ctrl-C ends it. Its files and logs are in {place}.
In another terminal:

  export PATH=\"{programs}:$PATH\"
  export FASTPAY_HOME=\"{home}\"
  export FASTPAY_PASSPHRASE=\"$(cat {passphrase})\"

  fastpay keys list                                   # alice and bob (Ethereum), carol (Ed25519)
  fastpay deposit 10 --from alice                     # ETH from the chain into FastPay
  fastpay deposit 500 --asset {token} --from bob
  fastpay pay carol 1.5 --from alice                  # final in one round trip
  fastpay balance --from carol
  fastpay redeem 1 --from carol --to {out} --wait 60  # the relayer brings it to the chain
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

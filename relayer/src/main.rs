//! The `fastpay-relayer` command. docs/OPERATIONS.md lists the exit codes.

mod error;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use fastpay_core::PrimaryAddress;
use fastpay_program::configuration::NodeUrl;
use fastpay_program::console::{LogFormat, Shell, answer, completions, end_at_arguments, fail, start_log};
use fastpay_program::{files, stop_signal};
use fastpay_relayer::{
    BelowCost, Config, GasBalance, Overrides, Relayer, State, authorities, create_key, read_key, serve_metrics,
    serve_wallets, status_json, status_text,
};
use serde_json::json;
use url::Url;

use error::CommandError;

/// Submit FastPay redemptions to the contract on Ethereum and earn their fees.
#[derive(Debug, Parser)]
#[command(name = "fastpay-relayer", version)]
struct Arguments {
    /// The configuration file.
    #[arg(long, global = true, env = "FASTPAY_RELAYER_CONFIG", default_value = "relayer.toml")]
    config: PathBuf,
    /// The format of the log on standard error. RUST_LOG sets its level.
    #[arg(long, global = true, value_enum, env = "FASTPAY_RELAYER_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a gas key and a configuration file.
    Init(Init),
    /// Relay redemptions until interrupted.
    Run {
        /// Relay the redemptions that exist now, wait until they are final, and exit.
        #[arg(long)]
        once: bool,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Show the relayer's last saved state, and the gas key's balance.
    Status {
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
struct Init {
    /// The URL of an Ethereum node. Can be repeated.
    #[arg(long = "rpc-url", required = true, value_parser = NodeUrl)]
    rpc_urls: Vec<Url>,
    /// The chain ID (EIP-155).
    #[arg(long)]
    chain_id: u64,
    /// The address of the FastPay contract.
    #[arg(long)]
    contract: PrimaryAddress,
    /// The JSON file of the authorities' endpoints. It must exist.
    #[arg(long, default_value = "endpoints.json")]
    endpoints: PathBuf,
    /// A file whose first line is the new key's passphrase [default: FASTPAY_RELAYER_PASSPHRASE, then a prompt].
    #[arg(long)]
    passphrase_file: Option<PathBuf>,
    /// Write the key unencrypted, in a file that only its owner can read.
    #[arg(long)]
    unencrypted_key: bool,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return end_at_arguments(&error),
    };
    start_log(arguments.log_format, "RUST_LOG", "info");
    let for_programs = matches!(arguments.command, Action::Status { json: true, .. });
    match carry_out(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.kind(), &error, for_programs.then(|| error.kind().document(&error))),
    }
}

fn carry_out(arguments: Arguments) -> Result<(), CommandError> {
    match arguments.command {
        Action::Init(init) => initialise(&arguments.config, &init),
        Action::Run { once, overrides } => run(Config::read(&arguments.config, overrides)?, once),
        Action::Status { json, overrides } => show_status(&Config::read(&arguments.config, overrides)?, json),
        Action::Completions { shell } => Ok(answer(completions(shell, Arguments::command()))?),
    }
}

fn initialise(path: &Path, init: &Init) -> Result<(), CommandError> {
    let refused = |error: std::io::Error| CommandError::Unwritten { path: path.to_owned(), error };
    // Check all of this before making the key: otherwise a key without a configuration would be left behind.
    if path.symlink_metadata().is_ok() {
        return Err(refused(std::io::ErrorKind::AlreadyExists.into()));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let endpoints = std::path::absolute(&init.endpoints)?;
    runtime()?.block_on(async { authorities(&endpoints).map(drop) })?;
    let key = create_key(&folder.join("gas.key"), init.passphrase_file.as_deref(), init.unencrypted_key)?;
    let quoted = |value: &dyn std::fmt::Display| toml::Value::String(value.to_string()).to_string();
    let urls: Vec<_> = init.rpc_urls.iter().map(|url| quoted(url)).collect();
    let passphrase = match &init.passphrase_file {
        Some(file) if !init.unencrypted_key => {
            format!("passphrase_file = {}\n", quoted(&std::path::absolute(file)?.display()))
        }
        _ => String::new(),
    };
    let text = format!(
        "# Configuration of fastpay-relayer. Paths are relative to this file.\n\
         endpoints = {}\ndata_dir = \"relayer-data\"\n\
         # Serves the fees to wallets. List its public URL under \"relayers\" in the endpoints file.\n\
         # http = \"127.0.0.1:9300\"\n\
         # Serves metrics to Prometheus. Keep the address private.\n\
         # metrics = \"127.0.0.1:9200\"\n\n\
         # The assets to relay, each with the value of its smallest unit in wei of ETH.\n\
         [assets]\n\"0x0000000000000000000000000000000000000000\" = \"1\" # ETH\n\
         # \"0xA0b8…\" = \"400000000\" # a token with six decimals, worth 0.0004 ETH\n\n\
         # A redemption whose fee does not cover its gas: \"leave\" it, or \"pay\" for it.\n\
         # With \"pay\" anyone can spend this relayer's gas.\n[bundle]\nbelow_cost = \"leave\"\n\n\
         # The daily budget, in ETH, for unlock requests of owners without ETH; \"0\" disables them.\n\
         # [unlock]\n# daily_budget_ether = \"0.02\"\n\n\
         [primary]\nrpc_urls = [{}]\nchain_id = {}\ncontract = {}\nfinality = \"finalized\"\n\n\
         [key]\nfile = \"gas.key\"\n{passphrase}\n\
         # Send traces of one redemption in a hundred to a collector on this machine (docs/OPERATIONS.md, Traces):\n\
         # [traces]\n# endpoint = \"http://127.0.0.1:4317\"\n# ratio = 0.01\n",
        quoted(&endpoints.display()),
        urls.join(", "),
        init.chain_id,
        quoted(&init.contract),
    );
    if !files::create_public(path, text.as_bytes()).map_err(refused)? {
        return Err(refused(std::io::ErrorKind::AlreadyExists.into()));
    }
    Ok(answer(format_args!("wrote {}; send some ETH for gas to {}", path.display(), key.address()))?)
}

fn run(config: Config, once: bool) -> Result<(), CommandError> {
    if config.bundle.below_cost == BelowCost::Pay {
        tracing::warn!("below_cost is \"pay\": anyone can spend this relayer's gas on redemptions that pay nothing");
    }
    let key = read_key(&config.key.file, config.key.passphrase_file.as_deref())?;
    runtime()?.block_on(async {
        let (metrics, http) = (config.metrics, config.http);
        let mut stop = stop_signal()?;
        let mut relayer = Relayer::open(config, key).await?;
        if once {
            let tick = relayer.run_once().await?;
            let totals = relayer.state().totals;
            let (redeemed, executed) = (totals.redeemed, totals.executed);
            let (queued, parked, silent) = (tick.queued, tick.parked, tick.silent);
            let done = json!({ "redeemed": redeemed, "executed": executed, "queued": queued, "parked": parked, "silent": silent });
            return Ok(answer(done)?);
        }
        if let Some(address) = metrics {
            let listener = tokio::net::TcpListener::bind(address).await;
            let listener = listener.map_err(|error| CommandError::Metrics(address, error))?;
            tracing::info!(%address, "serving metrics");
            tokio::spawn(serve_metrics(listener, relayer.metrics(), stop.clone()));
        }
        if let Some(address) = http {
            let listener = tokio::net::TcpListener::bind(address).await;
            let listener = listener.map_err(|error| CommandError::Http(address, error))?;
            tracing::info!(%address, "serving fees and unlock requests to wallets");
            tokio::spawn(serve_wallets(listener, relayer.quotes(), relayer.unlock_desk(), stop.clone()));
        }
        relayer.run(async { drop(stop.wait_for(|stop| *stop).await) }).await?;
        Ok(())
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

fn show_status(config: &Config, as_json: bool) -> Result<(), CommandError> {
    let state = State::read(&config.data_dir)?;
    let gas_balance = runtime()?.block_on(GasBalance::ask(config, &state));
    let gas_balance = gas_balance.as_ref();
    Ok(answer(if as_json {
        format!("{:#}", status_json(&state, gas_balance))
    } else {
        status_text(&state, gas_balance)
    })?)
}

//! The `fastpay-relayer` command. docs/OPERATIONS.md lists the exit codes.

mod error;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use fastpay_core::AccountKey;
use fastpay_core::PrimaryAddress;
use fastpay_ledger_client::CommitteeClient;
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_program::Clock;
use fastpay_program::configuration::NodeUrl;
use fastpay_program::console::{LogFormat, Shell, answer, completions, end_at_arguments, fail, start_log};
use fastpay_program::{files, stop_signal};
use fastpay_relayer::{
    BelowCost, Config, GasBalance, Overrides, PrimarySection, PrimarySide, Relayer, State, UnlockDesk, authorities,
    create_key, read_key, serve_metrics, serve_wallets, status_json, status_text,
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

/// The key that `init` makes, beside the configuration.
const KEY_FILE: &str = "gas.key";

#[derive(Debug, Args)]
struct Init {
    /// The URL of an Ethereum node. Can be repeated.
    #[arg(long = "rpc-url", required_unless_present = "ledger", conflicts_with = "ledger", value_parser = NodeUrl)]
    rpc_urls: Vec<Url>,
    /// The chain ID (EIP-155).
    #[arg(long, required_unless_present = "ledger", conflicts_with = "ledger")]
    chain_id: Option<u64>,
    /// The address of the FastPay contract.
    #[arg(long, required_unless_present = "ledger", conflicts_with = "ledger")]
    contract: Option<PrimaryAddress>,
    /// The ledger's file, in place of Ethereum. It must exist.
    #[arg(long, requires = "committee")]
    ledger: Option<PathBuf>,
    /// The number of the FastPay committee on the ledger.
    #[arg(long, requires = "ledger")]
    committee: Option<u32>,
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
    let ledger = init.ledger.as_ref().map(std::path::absolute).transpose()?;
    if let (Some(file), Some(number)) = (&ledger, init.committee) {
        runtime()?.block_on(async { CommitteeClient::open(file, CommitteeNumber(number)).map(drop) })?;
    }
    let key = create_key(&folder.join(KEY_FILE), init.passphrase_file.as_deref(), init.unencrypted_key)?;
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
         {}\n\
         [key]\nfile = \"{KEY_FILE}\"\n{passphrase}\n\
         # Send traces of one redemption in a hundred to a collector on this machine (docs/OPERATIONS.md, Traces):\n\
         # [traces]\n# endpoint = \"http://127.0.0.1:4317\"\n# ratio = 0.01\n",
        quoted(&endpoints.display()),
        ledger.as_deref().map_or_else(|| on_ethereum(init), |file| on_ledger(file, init)),
    );
    if !files::create_public(path, text.as_bytes()).map_err(refused)? {
        return Err(refused(std::io::ErrorKind::AlreadyExists.into()));
    }
    Ok(answer(match ledger {
        None => format!("wrote {}; send some ETH for gas to {}", path.display(), key.address()),
        Some(_) => format!("wrote {}; the fees go to the reserve of {}", path.display(), key.address()),
    })?)
}

fn quoted(value: &dyn std::fmt::Display) -> String {
    toml::Value::String(value.to_string()).to_string()
}

fn on_ethereum(init: &Init) -> String {
    let urls: Vec<_> = init.rpc_urls.iter().map(|url| quoted(url)).collect();
    format!(
        "# The assets to relay, each with the value of its smallest unit in wei of ETH.\n\
         [assets]\n\"0x0000000000000000000000000000000000000000\" = \"1\" # ETH\n\
         # \"0xA0b8…\" = \"400000000\" # a token with six decimals, worth 0.0004 ETH\n\n\
         # A redemption whose fee does not cover its gas: \"leave\" it, or \"pay\" for it.\n\
         # With \"pay\" anyone can spend this relayer's gas.\n[bundle]\nbelow_cost = \"leave\"\n\n\
         # The daily budget, in ETH, for unlock requests of owners without ETH; \"0\" disables them.\n\
         # [unlock]\n# daily_budget_ether = \"0.02\"\n\n\
         [primary]\nrpc_urls = [{}]\nchain_id = {}\ncontract = {}\nfinality = \"finalized\"\n",
        urls.join(", "),
        init.chain_id.unwrap_or_default(),
        quoted(&init.contract.unwrap_or_default()),
    )
}

fn on_ledger(file: &Path, init: &Init) -> String {
    format!(
        "# The assets to relay, each with the smallest fee in its smallest unit.\n\
         [fees]\n\"0x0000000000000000000000000000000000000000\" = \"0\" # the native asset\n\n\
         [primary]\nkind = \"ledger\"\nfile = {}\ncommittee = {}\n",
        quoted(&file.display()),
        init.committee.unwrap_or_default(),
    )
}

fn run(config: Config<PrimarySection>, once: bool) -> Result<(), CommandError> {
    let key = read_key(&config.key.file, config.key.passphrase_file.as_deref())?;
    runtime()?.block_on(async {
        let ports = (config.metrics, config.http);
        match config.primary.clone() {
            PrimarySection::Ethereum(primary) => {
                if config.bundle.below_cost == BelowCost::Pay {
                    tracing::warn!(
                        "below_cost is \"pay\": anyone can spend this relayer's gas on redemptions that pay nothing"
                    );
                }
                let relayer = Relayer::open(config.with(primary), key).await?;
                let desk = relayer.unlock_desk();
                relay(relayer, desk, once, ports).await
            }
            PrimarySection::Ledger(settings) => {
                let authorities = authorities(&config.endpoints)?;
                let ledger = CommitteeClient::open(&settings.file, settings.committee)?;
                let key = AccountKey::ethereum(key.to_bytes().0).map_err(|_| CommandError::NoKey)?;
                let config = config.with(settings);
                let relayer = Relayer::on_ledger(config, ledger, key, authorities, Clock::system())?;
                relay(relayer, None, once, ports).await
            }
        }
    })
}

async fn relay<P: PrimarySide>(
    mut relayer: Relayer<P>,
    desk: Option<UnlockDesk>,
    once: bool,
    (metrics, http): (Option<SocketAddr>, Option<SocketAddr>),
) -> Result<(), CommandError> {
    let mut stop = stop_signal()?;
    if once {
        let tick = relayer.run_once().await?;
        let totals = relayer.state().totals;
        let (redeemed, executed) = (totals.redeemed, totals.executed);
        let (queued, parked, silent) = (tick.queued, tick.parked, tick.silent);
        let done =
            json!({ "redeemed": redeemed, "executed": executed, "queued": queued, "parked": parked, "silent": silent });
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
        tracing::info!(%address, "serving fees to wallets");
        tokio::spawn(serve_wallets(listener, relayer.quotes(), desk, stop.clone()));
    }
    relayer.run(async { drop(stop.wait_for(|stop| *stop).await) }).await?;
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

fn show_status(config: &Config<PrimarySection>, as_json: bool) -> Result<(), CommandError> {
    let state = State::read(&config.data_dir)?;
    let gas_balance = match &config.primary {
        PrimarySection::Ethereum(primary) => {
            runtime()?.block_on(GasBalance::ask(&config.clone().with(primary.clone()), &state))
        }
        PrimarySection::Ledger(_) => None,
    };
    let gas_balance = gas_balance.as_ref();
    Ok(answer(if as_json {
        format!("{:#}", status_json(&state, gas_balance))
    } else {
        status_text(&state, gas_balance)
    })?)
}

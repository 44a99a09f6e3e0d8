//! `fastpay-node`: makes an authority's keys, sets it up, runs it, and asks how it is. The exit code tells the kind of an
//! error: docs/OPERATIONS.md.

mod error;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use fastpay_node::config::{Config, Overrides};
use fastpay_node::keys::{self, KeyFiles, passphrase_source};
use fastpay_node::{authority, backup, check, guard, setup, status, vote_committee};
use fastpay_telemetry::configuration::NodeUrl;
use fastpay_telemetry::console::{LogFormat, Shell, answer, complain, completions, end_at_arguments, fail, start_log};
use serde::Serialize;
use tokio::sync::watch;

use error::CommandError;

/// An authority of a FastPay committee.
#[derive(Parser)]
#[command(name = "fastpay-node", version, about = "An authority of a FastPay committee")]
struct Arguments {
    /// The form of the log on standard error; FASTPAY_LOG says how much
    #[arg(long, global = true, value_enum, env = "FASTPAY_NODE_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the authority's two keys and print their public side, which the committee lists
    Keygen {
        /// The folder for the keys
        #[arg(long)]
        keys: PathBuf,
        /// Do not encrypt: anyone who can read the files can vote in this authority's name
        #[arg(long)]
        plain: bool,
        /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
    },
    /// Write a configuration, create an empty data folder, and print the authority's endpoints
    Init(InitArguments),
    /// Run the authority until SIGTERM or Ctrl-C
    Run {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Sign the next committee, and print the vote for whoever submits the rotation to the contract
    VoteCommittee {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The next committee: {"authorities": [{"votingKey", "redemptionKey"}, …]}, the same file for all voters
        #[arg(long)]
        committee: PathBuf,
        /// Who may pause from then on, zero for nobody; without it, and without one in the file, the present guardian
        #[arg(long)]
        guardian: Option<fastpay_core::PrimaryAddress>,
        /// Write the vote to this file instead; never overwritten
        #[arg(long)]
        out: Option<PathBuf>,
        /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Copy the data folder while the node is stopped. The copy is marked as one: an authority that runs on it votes
    /// only above what the other authorities know of
    Backup {
        /// The folder to make
        to: PathBuf,
        #[command(flatten)]
        folder: FolderArguments,
    },
    /// Make the data folder from a backup, marked as an older copy. Be sure that the old node is gone for good: two
    /// nodes of one key could sign two different orders
    Restore {
        /// The backup
        from: PathBuf,
        #[command(flatten)]
        folder: FolderArguments,
    },
    /// Say that the data folder is an older copy: until told otherwise, the authority votes only above what the
    /// other authorities know of
    Restored(FolderArguments),
    /// Say that the data folder forgets nothing: it was moved whole while the node was stopped, or all that was
    /// under way when it was copied is long finished
    Vouch(FolderArguments),
    /// Ask a running authority how it is
    Status {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// One JSON document instead of a table
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Write the script that makes a shell complete this command
    Completions {
        /// For which shell
        shell: Shell,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Look at everything that a start rests on: files, keys, committee, data folder, ports. Fails where it would fail
    Check {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// One JSON document instead of a table
        #[arg(long)]
        json: bool,
        /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        overrides: Overrides,
    },
}

#[derive(clap::Args)]
struct FolderArguments {
    /// The configuration
    #[arg(long, default_value = "authority.toml")]
    config: PathBuf,
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(clap::Args)]
struct InitArguments {
    /// The configuration to write; never overwritten
    #[arg(long, default_value = "authority.toml")]
    config: PathBuf,
    /// The folder of journals and checkpoints to create
    #[arg(long)]
    data: PathBuf,
    /// The folder with the authority's keys
    #[arg(long)]
    keys: PathBuf,
    /// The file that says where all authorities are reached, the same as wallets use; it need not be there yet
    #[arg(long)]
    endpoints: Option<PathBuf>,
    /// How many shards: threads that share the accounts. Cannot be changed later
    #[arg(long, default_value = "1")]
    shards: NonZeroU32,
    /// Where shard 0 listens; shard k listens k ports above
    #[arg(long)]
    listen: SocketAddr,
    /// Where the JSON API, the operator's page, health, readiness and metrics are served
    #[arg(long)]
    http: SocketAddr,
    /// An Ethereum node; several times for several, which must then agree. Not with --genesis
    #[arg(long = "rpc-url", requires = "contract", required_unless_present = "genesis", value_parser = NodeUrl)]
    rpc_urls: Vec<url::Url>,
    /// The chain of the Primary (EIP-155)
    #[arg(long, requires = "contract")]
    chain_id: Option<u64>,
    /// The FastPay contract
    #[arg(long, requires_all = ["rpc_urls", "chain_id"])]
    contract: Option<fastpay_core::PrimaryAddress>,
    /// From which block on the Primary is believed: finalized, safe, or a number of confirmations
    #[arg(long, default_value = "finalized")]
    finality: setup::FinalityArgument,
    /// Run without a Primary, from this genesis, in place of --rpc-url, --chain-id and --contract
    #[arg(long, conflicts_with = "contract")]
    genesis: Option<PathBuf>,
    /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
    #[arg(long)]
    passphrase_file: Option<PathBuf>,
}

/// No program has planted faults in it.
const _: () =
    assert!(!fastpay_core::fault::CAN_BE_PLANTED, "built with the feature `planted`, which is for the simulator");

fn main() -> ExitCode {
    let Arguments { log_format, command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return end_at_arguments(&error),
    };
    // What `config check --json` finds is a document already.
    let for_programs = matches!(command, Command::Status { json: true, .. });
    match execute(command, log_format) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.kind(), &error, for_programs.then(|| error.kind().document(&error))),
    }
}

fn execute(command: Command, log_format: LogFormat) -> Result<(), CommandError> {
    match command {
        Command::Keygen { keys: folder, plain, passphrase_file } => {
            let source = passphrase_source(passphrase_file);
            let first = KeyFiles::in_folder(&folder).voting;
            let passphrase = if plain { None } else { Some(source.get(&first, true)?) };
            let keys = keys::generate(&folder, passphrase.as_ref().map(|p| p.as_str()))?;
            Ok(answer(document(&keys.public()))?)
        }
        Command::Init(arguments) => init(arguments),
        Command::Run { config, passphrase_file, overrides } => {
            // The store's own words at "info" are about its files only.
            start_log(log_format, "FASTPAY_LOG", "info,fjall=warn,lsm_tree=warn");
            let config = Config::read(&config, overrides)?;
            let keys = keys::read_all(&config.keys, &passphrase_source(passphrase_file))?;
            runtime()?.block_on(async { Ok(authority::run(config, keys, stop_signal()?).await?) })
        }
        Command::VoteCommittee { config, committee, guardian, out, passphrase_file, overrides } => {
            let config = Config::read(&config, overrides)?;
            let keys = keys::read_all(&config.keys, &passphrase_source(passphrase_file))?;
            let ballot = runtime()?.block_on(vote_committee::vote(&config, &keys, &committee, guardian))?;
            complain(&ballot);
            let vote = document(&ballot.vote);
            match out {
                None => answer(vote)?,
                Some(path) => std::fs::File::create_new(&path)
                    .and_then(|mut file| writeln!(file, "{vote}"))
                    .map_err(|error| CommandError::Unwritten { path, error })?,
            }
            Ok(())
        }
        Command::Config(ConfigCommand::Check { config, json, passphrase_file, overrides }) => {
            let passphrase = passphrase_source(passphrase_file);
            let findings = runtime()?.block_on(check::check(&config, overrides, &passphrase));
            answer(if json { page(&findings) } else { findings.to_string() }.trim_end())?;
            match findings.errors() {
                0 => Ok(()),
                errors => Err(CommandError::Unfit(errors)),
            }
        }
        Command::Backup { to, folder: FolderArguments { config, overrides } } => {
            let copied = backup::back_up(&Config::read(&config, overrides)?.data, &to)?;
            Ok(answer(format_args!(
                "copied {} files, {} bytes; the copy is marked as one",
                copied.files, copied.bytes
            ))?)
        }
        Command::Restore { from, folder: FolderArguments { config, overrides } } => {
            let config = Config::read(&config, overrides)?;
            let copied = backup::restore(&from, &config.data)?;
            answer(format_args!(
                "restored {} files, {} bytes, marked as an older copy. Never run this authority in two places",
                copied.files, copied.bytes
            ))?;
            if config.endpoints.is_none() {
                complain("configure `endpoints` before the start: it votes only after it has asked the others");
            }
            Ok(())
        }
        Command::Restored(FolderArguments { config, overrides }) => {
            let data = Config::read(&config, overrides)?.data;
            guard::distrust(&data)?;
            Ok(answer(format_args!("{} is marked as an older copy", data.display()))?)
        }
        Command::Vouch(FolderArguments { config, overrides }) => {
            let config = Config::read(&config, overrides)?;
            guard::vouch(&config.data, config.witness())?;
            Ok(answer(format_args!("{} counts as whole: it remembers every vote", config.data.display()))?)
        }
        Command::Status { config, json, overrides } => {
            let config = Config::read(&config, overrides)?;
            let report = runtime()?.block_on(status::ask(&config))?;
            Ok(answer(if json { page(&report) } else { report.to_string() })?)
        }
        Command::Completions { shell } => Ok(answer(completions(shell, Arguments::command()))?),
    }
}

fn init(arguments: InitArguments) -> Result<(), CommandError> {
    let files = KeyFiles::in_folder(&arguments.keys);
    let keys = keys::read(&files, &passphrase_source(arguments.passphrase_file))?;
    let primary = match (arguments.contract, arguments.chain_id) {
        (Some(contract), Some(chain_id)) => Some(setup::PrimarySection {
            rpc_urls: arguments.rpc_urls,
            chain_id,
            contract,
            finality: arguments.finality.0,
        }),
        _ => None,
    };
    let request = setup::Request {
        config: arguments.config,
        data: arguments.data,
        keys: files,
        endpoints: arguments.endpoints,
        shards: arguments.shards,
        listen: arguments.listen,
        http: arguments.http,
        primary,
        genesis: arguments.genesis,
    };
    let endpoints = setup::init(request, keys.public().name)?;
    Ok(answer(document(&endpoints))?)
}

const OWN: &str = "what this program answers has a form in JSON";

/// For programs, on one line.
fn document(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect(OWN)
}

/// For programs, on several.
fn page(answer: &impl Serialize) -> String {
    serde_json::to_string_pretty(answer).expect(OWN)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Turns true at SIGTERM or Ctrl-C.
fn stop_signal() -> std::io::Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
    });
    Ok(stopped)
}

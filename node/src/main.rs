//! `fastpay-node`: makes an authority's keys, sets it up, runs it, and asks how it is. The exit code tells the kind of an
//! error: docs/OPERATIONS.md.

mod error;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use fastpay_node::authority::config::{Config, Overrides};
use fastpay_node::authority::keys::{self, KeyFiles, passphrase_source};
use fastpay_node::authority::{self, rollback};
use fastpay_node::operator::{backup, check, checkpoint, committee, setup, status};
use fastpay_program::configuration::NodeUrl;
use fastpay_program::console::{LogFormat, Shell, answer, complain, completions, end_at_arguments, fail, start_log};
use fastpay_program::{files, stop_signal};
use serde::Serialize;

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

/// The arguments of a command of an earlier version, which are not read.
#[derive(Args)]
struct Replaced {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<String>,
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
    /// Prove, announce and accept the next committee, show that this one is there, raise a deposit cap, release what the
    /// committee does not know
    #[command(subcommand)]
    Committee(CommitteeCommand),
    /// Propose, sign and certify checkpoints of the committee, which an archive keeps
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// Look at an archive of checkpoints
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Replaced by `committee sign`
    #[command(hide = true, disable_help_flag = true)]
    VoteCommittee(Replaced),
    /// Replaced by `mark-stale`
    #[command(hide = true, disable_help_flag = true)]
    Restored(Replaced),
    /// Replaced by `trust-data`
    #[command(hide = true, disable_help_flag = true)]
    Vouch(Replaced),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Back up the data folder; the node may run. The backup is marked as an older copy: an authority that runs on it
    /// votes only above the numbers that the other authorities know
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
    /// Declare the data folder an older copy. The authority then votes only for numbers above those that the other
    /// authorities know, until `trust-data`
    MarkStale(FolderArguments),
    /// Declare the data folder complete and resume voting: it was moved whole while the node was stopped, or every
    /// order that was pending when it was copied has been settled since
    TrustData(FolderArguments),
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
enum CommitteeCommand {
    /// Prove that this member has both keys of a pair, which an announcement needs of each
    Prove {
        /// The configuration: it names the chain and the contract
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The folder of the pair, as `keygen` made it
        #[arg(long)]
        keys: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Check an announcement and its members' proofs, and sign it with the pair that votes in the current epoch
    Sign {
        #[command(flatten)]
        next: NextArguments,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Accept an announcement that has matured on the contract, with the pair that votes in the epoch that it begins
    Accept {
        #[command(flatten)]
        next: NextArguments,
        /// The block that all acceptances name; without it that in which the announcement matured
        #[arg(long)]
        block: Option<u64>,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Show that this committee is there: a quorum's heartbeats end an announced recovery
    Heartbeat {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// A recent final block, the same for all
        #[arg(long)]
        block: u64,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Vote for a higher deposit cap of an asset
    RaiseCap {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The raise, the same file for all: {"epoch", "asset", "cap", "deadline"}
        #[arg(long)]
        raise: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Vote to take a redemption of a compromised epoch out of the contract's queue. Needs the running node, which must not
    /// have confirmed it
    Release {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The redemption: {"sender", "recipient", "asset", "amount", "fee", "sequence", "memo"}
        #[arg(long)]
        redemption: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
}

#[derive(Subcommand)]
enum CheckpointCommand {
    /// Choose a cut of what this authority has executed, and write its segment, state and cut into the archive. The node
    /// may run. A proposal that was not certified is replaced
    Propose {
        #[command(flatten)]
        archive: ArchiveArguments,
        #[command(flatten)]
        folder: FolderArguments,
    },
    /// Compute a proposed cut from this authority's own journals and Ethereum nodes, write it into the archive, and sign it
    /// with the pair that votes in the current epoch. The node may run
    Sign {
        #[command(flatten)]
        archive: ArchiveArguments,
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The proposer's file NUMBER.cut.json
        #[arg(long)]
        cut: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Gather a quorum's votes into the certificate of the archive's newest cut. Copy the certificate into the archives of
    /// the others
    Certify {
        #[command(flatten)]
        archive: ArchiveArguments,
        /// A member's vote, as `checkpoint sign` made it; one for each member of a quorum
        #[arg(long = "vote", required = true)]
        votes: Vec<PathBuf>,
        #[command(flatten)]
        folder: FolderArguments,
    },
}

#[derive(clap::Args)]
struct ArchiveArguments {
    /// The folder of certified checkpoints; made if there is none
    #[arg(long)]
    archive: PathBuf,
}

#[derive(Subcommand)]
enum ArchiveCommand {
    /// Recompute all checkpoints from the first committee on, and check their certificates. Names the first file that is
    /// wrong
    Verify {
        /// The archive
        archive: PathBuf,
        /// One JSON document instead of a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        folder: FolderArguments,
    },
}

/// An announcement and the proofs of its members.
#[derive(clap::Args)]
struct NextArguments {
    /// The configuration
    #[arg(long, default_value = "authority.toml")]
    config: PathBuf,
    /// The announcement, the same file for all: {"chainId", "authorities", "guardian", "recovery", "epoch",
    /// "compromisedSince", "checkpoint", "deadline"}
    #[arg(long)]
    announcement: PathBuf,
    /// A member's proof, as `committee prove` made it; one for each member
    #[arg(long = "proof", required = true)]
    proofs: Vec<PathBuf>,
}

/// The arguments of every signing command.
#[derive(clap::Args)]
struct SigningArguments {
    /// Write the answer to this file instead; never overwritten
    #[arg(long)]
    out: Option<PathBuf>,
    /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
    #[arg(long)]
    passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
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
    /// The address of shard 0; shard k listens k ports above
    #[arg(long)]
    listen: SocketAddr,
    /// The address of the JSON API, the status page, health, readiness and metrics
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

fn main() -> ExitCode {
    let Arguments { log_format, command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return end_at_arguments(&error),
    };
    // `config check --json` prints a document itself.
    let for_programs = matches!(
        command,
        Command::Status { json: true, .. } | Command::Archive(ArchiveCommand::Verify { json: true, .. })
    );
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
            // The store's own messages at "info" are about its files only.
            start_log(log_format, "FASTPAY_LOG", "info,fjall=warn,lsm_tree=warn");
            let config = Config::read(&config, overrides)?;
            let keys = keys::read_all(&config.keys, &passphrase_source(passphrase_file))?;
            runtime()?.block_on(async { Ok(authority::run(config, keys, stop_signal()?).await?) })
        }
        Command::Committee(command) => sign_for_committee(command),
        Command::Checkpoint(command) => make_checkpoint(command),
        Command::Archive(ArchiveCommand::Verify { archive, json, folder: FolderArguments { config, overrides } }) => {
            let config = Config::read(&config, overrides)?;
            let report = runtime()?.block_on(checkpoint::verify(&config, &archive, &mut tell))?;
            Ok(answer(if json { page(&report) } else { report.to_string() })?)
        }
        Command::VoteCommittee(_) => {
            Err(CommandError::Replaced { old: "vote-committee", new: "fastpay-node committee sign" })
        }
        Command::Restored(_) => Err(CommandError::Replaced { old: "restored", new: "fastpay-node mark-stale" }),
        Command::Vouch(_) => Err(CommandError::Replaced { old: "vouch", new: "fastpay-node trust-data" }),
        Command::Config(ConfigCommand::Check { config, json, passphrase_file, overrides }) => {
            let passphrase = passphrase_source(passphrase_file);
            // The check continues if nobody reads its output.
            let told = |what: String| drop(writeln!(std::io::stderr(), "{what}"));
            let findings = runtime()?.block_on(check::check(&config, overrides, &passphrase, told));
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
        Command::MarkStale(FolderArguments { config, overrides }) => {
            let data = Config::read(&config, overrides)?.data;
            rollback::mark_stale(&data)?;
            Ok(answer(format_args!("{} is marked as an older copy", data.display()))?)
        }
        Command::TrustData(FolderArguments { config, overrides }) => {
            let config = Config::read(&config, overrides)?;
            rollback::trust_data(&config.data, config.high_water_mark())?;
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

fn sign_for_committee(command: CommitteeCommand) -> Result<(), CommandError> {
    let setting = |config: &Path, signing: &SigningArguments| -> Result<_, CommandError> {
        let config = Config::read(config, signing.overrides.clone())?;
        let keys = keys::read_all(&config.keys, &passphrase_source(signing.passphrase_file.clone()))?;
        Ok((config, keys, runtime()?))
    };
    let (ballot, out) = match command {
        CommitteeCommand::Prove { config, keys: folder, signing } => {
            let SigningArguments { out, passphrase_file, overrides } = signing;
            let pair = keys::read(&KeyFiles::in_folder(&folder), &passphrase_source(passphrase_file))?;
            let proof = committee::prove(&Config::read(&config, overrides)?, &pair)?;
            return write_out(&document(&proof), out);
        }
        CommitteeCommand::Sign { next: NextArguments { config, announcement, proofs }, signing } => {
            let (config, keys, runtime) = setting(&config, &signing)?;
            (runtime.block_on(committee::sign(&config, &keys, &announcement, &proofs))?, signing.out)
        }
        CommitteeCommand::Accept { next: NextArguments { config, announcement, proofs }, block, signing } => {
            let (config, keys, runtime) = setting(&config, &signing)?;
            (runtime.block_on(committee::accept(&config, &keys, &announcement, &proofs, block))?, signing.out)
        }
        CommitteeCommand::Heartbeat { config, block, signing } => {
            let (config, keys, runtime) = setting(&config, &signing)?;
            (runtime.block_on(committee::heartbeat(&config, &keys, block))?, signing.out)
        }
        CommitteeCommand::RaiseCap { config, raise, signing } => {
            let (config, keys, runtime) = setting(&config, &signing)?;
            (runtime.block_on(committee::raise_cap(&config, &keys, &raise))?, signing.out)
        }
        CommitteeCommand::Release { config, redemption, signing } => {
            let (config, keys, runtime) = setting(&config, &signing)?;
            (runtime.block_on(committee::release(&config, &keys, &redemption))?, signing.out)
        }
    };
    complain(&ballot.text);
    write_out(&document(&ballot.vote), out)
}

fn make_checkpoint(command: CheckpointCommand) -> Result<(), CommandError> {
    let runtime = runtime()?;
    match command {
        CheckpointCommand::Propose { archive, folder: FolderArguments { config, overrides } } => {
            let config = Config::read(&config, overrides)?;
            let proposal = runtime.block_on(checkpoint::propose(&config, &archive.archive, &mut tell))?;
            Ok(answer(document(&proposal))?)
        }
        CheckpointCommand::Sign { archive, config, cut, signing } => {
            let SigningArguments { out, passphrase_file, overrides } = signing;
            let config = Config::read(&config, overrides)?;
            let keys = keys::read_all(&config.keys, &passphrase_source(passphrase_file))?;
            let ballot = runtime.block_on(checkpoint::sign(&config, &keys, &archive.archive, &cut, &mut tell))?;
            complain(&ballot.text);
            write_out(&document(&ballot.vote), out)
        }
        CheckpointCommand::Certify { archive, votes, folder: FolderArguments { config, overrides } } => {
            let config = Config::read(&config, overrides)?;
            let certified = runtime.block_on(checkpoint::certify(&config, &archive.archive, &votes, &mut tell))?;
            Ok(answer(document(&certified))?)
        }
    }
}

/// Shows how far long work is. The work continues if nobody reads it.
fn tell(what: String) {
    drop(writeln!(std::io::stderr(), "{what}"));
}

/// Prints the answer, or writes it to a new file.
fn write_out(text: &str, out: Option<PathBuf>) -> Result<(), CommandError> {
    match out {
        None => Ok(answer(text)?),
        Some(path) => match files::create_public(&path, format!("{text}\n").as_bytes()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(CommandError::Unwritten { path, error: std::io::ErrorKind::AlreadyExists.into() }),
            Err(error) => Err(CommandError::Unwritten { path, error }),
        },
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

/// JSON for programs, on one line.
fn document(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect(OWN)
}

/// JSON for programs, on several lines.
fn page(answer: &impl Serialize) -> String {
    serde_json::to_string_pretty(answer).expect(OWN)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

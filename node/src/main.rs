//! `fastpay-node`: creates an authority's keys, sets it up, runs it and shows its state. docs/OPERATIONS.md lists the
//! exit codes.

mod arguments;
mod committee;
mod error;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_node::authority::keys::{self, KeyFiles, passphrase_source};
use fastpay_node::authority::{certification, rollback};
use fastpay_node::operator::{backup, check, join, leave, rebase, recover, run, setup, status};
use fastpay_program::console::{LogFormat, answer, complain, completions, end_at_arguments, fail, start_log};
use fastpay_program::{Clock, files, stop_signal};
use serde::Serialize;

use arguments::{ArchiveCommand, Arguments, Command, ConfigCommand, InitArguments, WatchArguments};
use committee::{ChangeCommand, CommitteeCommand, SendingArguments};
use error::CommandError;

fn main() -> ExitCode {
    let Arguments { log_format, command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return end_at_arguments(&error),
    };
    // `config check --json` prints a document itself.
    let for_programs = matches!(
        command,
        Command::Status { json: true, .. }
            | Command::Recover { json: true, .. }
            | Command::Committee(CommitteeCommand::Change(
                ChangeCommand::Propose { json: true, .. }
                    | ChangeCommand::Announce { sending: SendingArguments { json: true, .. }, .. }
                    | ChangeCommand::Endorse { sending: SendingArguments { json: true, .. }, .. }
                    | ChangeCommand::Install { sending: SendingArguments { json: true, .. }, .. }
                    | ChangeCommand::Status { json: true, .. }
            ))
            | Command::Archive(ArchiveCommand::Verify { json: true, .. })
    );
    match execute(command, log_format) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let has_answered = matches!(error, CommandError::NotInstalled(_));
            let document = (for_programs && !has_answered).then(|| error.kind().document(&error));
            fail(error.kind(), &error, document)
        }
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
        Command::Run { config, passphrase_file } => {
            // The store's own messages at "info" are about its files only.
            start_log(log_format, "FASTPAY_LOG", "info,fjall=warn,lsm_tree=warn");
            let config = config.read()?;
            // Its keys may be destroyed.
            if run::has_left(&config.data) {
                return Ok(());
            }
            let keys = keys::read_all(&config.keys, &passphrase_source(passphrase_file))?;
            runtime()?.block_on(async { Ok(run::run(config, keys, stop_signal()?).await?) })
        }
        Command::Committee(CommitteeCommand::Change(command)) => committee::change(command),
        Command::Committee(CommitteeCommand::Sign(command)) => committee::sign(command),
        Command::Archive(ArchiveCommand::Verify { archive, json, deployment }) => {
            let deployed = deployment.read()?;
            let report = runtime()?.block_on(certification::verify(&deployed, &archive, &mut tell))?;
            Ok(answer(if json { page(&report) } else { report.to_string() })?)
        }
        Command::Rebase { archive, shards, config } => {
            let config = config.read()?;
            let rebased = runtime()?.block_on(rebase::rebase(&config, &archive, None, shards, &mut tell))?;
            if rebased.shards != config.shards.get() {
                complain(format!("set `shards = {}` in the configuration before the start", rebased.shards));
            }
            if let Some(why) = &rebased.restored {
                complain(format!("the authority votes only above what the others know of, as before: {why}"));
            }
            complain("start the node; once it is ready, `fastpay-node prune` removes the journals of before");
            Ok(answer(document(&rebased))?)
        }
        Command::Recover { sources, out, json, deployment } => {
            let deployed = deployment.read()?;
            let candidate =
                runtime()?.block_on(recover::recover(&deployed, &sources.into(), Clock::system(), &mut tell))?;
            if let Some(out) = out {
                candidate.write(&out)?;
            }
            Ok(answer(if json { page(&candidate.report) } else { candidate.report.to_string() })?)
        }
        Command::Prune(config) => {
            let removed = rebase::prune(&config.read()?)?;
            let removed: Vec<_> = removed.iter().map(|folder| folder.display().to_string()).collect();
            Ok(answer(if removed.is_empty() { "nothing to remove".into() } else { removed.join("\n") })?)
        }
        Command::Checkpoint(_) => {
            let new = "[archive] in the configuration of fastpay-node run";
            Err(CommandError::Replaced { old: "checkpoint", new })
        }
        Command::VoteCommittee(_) => {
            Err(CommandError::Replaced { old: "vote-committee", new: "fastpay-node committee sign" })
        }
        Command::Restored(_) => Err(CommandError::Replaced { old: "restored", new: "fastpay-node mark-stale" }),
        Command::Vouch(_) => Err(CommandError::Replaced { old: "vouch", new: "fastpay-node trust-data" }),
        Command::Config(ConfigCommand::Check { config, json, passphrase_file }) => {
            let passphrase = passphrase_source(passphrase_file);
            let findings = runtime()?.block_on(check::check(&config.config, config.overrides, &passphrase, tell));
            answer(if json { page(&findings) } else { findings.to_string() }.trim_end())?;
            match findings.errors() {
                0 => Ok(()),
                errors => Err(CommandError::Unfit(errors)),
            }
        }
        Command::Backup { to, config } => {
            let copied = backup::back_up(&config.read()?.data, &to)?;
            Ok(answer(format_args!("copied {} files, {} bytes; the copy is marked stale", copied.files, copied.bytes))?)
        }
        Command::Restore { from, config } => {
            let config = config.read()?;
            let copied = backup::restore(&from, &config.data)?;
            answer(format_args!(
                "restored {} files, {} bytes, and marked them stale. Never run this authority in two places",
                copied.files, copied.bytes
            ))?;
            if config.endpoints.is_none() {
                complain("configure `endpoints` before the start: it votes only after it has asked the others");
            }
            Ok(())
        }
        Command::MarkStale(config) => {
            let data = config.read()?.data;
            rollback::mark_stale(&data)?;
            Ok(answer(format_args!("{} is marked stale", data.display()))?)
        }
        Command::TrustData(config) => {
            let config = config.read()?;
            rollback::trust_data(&config.data, config.high_water_mark())?;
            Ok(answer(format_args!("{} is declared complete", config.data.display()))?)
        }
        Command::Status { config, json } => {
            let config = config.read()?;
            let report = runtime()?.block_on(status::ask(&config))?;
            Ok(answer(if json { page(&report) } else { report.to_string() })?)
        }
        Command::Join(WatchArguments { config, wait, json }) => {
            let config = config.read()?;
            let report = runtime()?.block_on(join::join(&config, Duration::from_secs(wait), &mut tell))?;
            answer(if json { page(&report) } else { report.to_string() })?;
            if report.votes { Ok(()) } else { Err(CommandError::NotYet("it does not vote in the epoch yet")) }
        }
        Command::Leave { watch: WatchArguments { config, wait, json }, stop } => {
            let (config, wait) = (config.read()?, Duration::from_secs(wait));
            let runtime = runtime()?;
            let report = if stop {
                runtime.block_on(leave::leave_and_stop(&config, wait, &mut tell))?
            } else {
                runtime.block_on(leave::leave(&config, wait, &mut tell))?
            };
            answer(if json { page(&report) } else { report.to_string() })?;
            match (stop, report) {
                (false, report) if report.may_stop => Ok(()),
                (true, report) if report.stopped => Ok(()),
                (true, report) if report.is_over() => Err(CommandError::NotYet("the node has not ended yet")),
                (true, report) if report.may_stop => {
                    Err(CommandError::NotYet("not every member votes in the epoch yet"))
                }
                _ => Err(CommandError::NotYet("the node must run on")),
            }
        }
        Command::Completions { shell } => Ok(answer(completions(shell, Arguments::command()))?),
    }
}

/// Shows how far long work is. The work continues if nobody reads it.
fn tell(what: String) {
    drop(writeln!(std::io::stderr(), "{what}"));
}

/// Prints the answer, or writes it to a new file. A file that has the same answer is kept.
fn write_out(text: &str, out: Option<PathBuf>) -> Result<(), CommandError> {
    match out {
        None => Ok(answer(text)?),
        Some(path) => match files::create_public(&path, format!("{text}\n").as_bytes()) {
            Ok(true) => Ok(()),
            // The command is repeated.
            Ok(false)
                if files::read(&path)
                    .is_ok_and(|there| there.is_some_and(|there| there.trim_ascii() == text.as_bytes())) =>
            {
                Ok(())
            }
            Ok(false) => Err(CommandError::Unwritten { path, error: std::io::ErrorKind::AlreadyExists.into() }),
            Err(error) => Err(CommandError::Unwritten { path, error }),
        },
    }
}

fn init(arguments: InitArguments) -> Result<(), CommandError> {
    let files = KeyFiles::in_folder(&arguments.keys);
    let keys = keys::read(&files, &passphrase_source(arguments.passphrase_file))?;
    let contract = arguments.contract.zip(arguments.chain_id).map(|(contract, chain_id)| {
        let (rpc_urls, finality) = (arguments.rpc_urls, arguments.finality);
        setup::PrimarySection::Ethereum { rpc_urls, chain_id, contract, finality }
    });
    let ledger = arguments.ledger.zip(arguments.committee).map(|(file, committee)| {
        let (kind, committee) = (setup::LedgerKind::Ledger, CommitteeNumber(committee));
        setup::PrimarySection::Ledger { kind, file, committee }
    });
    let request = setup::Request {
        config: arguments.config,
        data: arguments.data,
        keys: files,
        endpoints: arguments.endpoints,
        shards: arguments.shards,
        listen: arguments.listen,
        http: arguments.http,
        primary: contract.or(ledger),
        genesis: arguments.genesis,
    };
    // The connections of a ledger's client belong to a runtime, also if none is made.
    let runtime = runtime()?;
    let _entered = runtime.enter();
    let endpoints = setup::init(request, keys.public().name)?;
    Ok(answer(document(&endpoints))?)
}

const OWN: &str = "this program's own answers can be written as JSON";

/// An answer as JSON on one line.
fn document(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect(OWN)
}

/// An answer as indented JSON.
fn page(answer: &impl Serialize) -> String {
    serde_json::to_string_pretty(answer).expect(OWN)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

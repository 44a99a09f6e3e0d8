//! `fastpay`: the wallet on the command line.
//!
//! Results go to standard output (with `--json` one document), progress to standard error. The exit code
//! tells the kind of an error; see `WalletError::kind`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod args;
mod audit;
mod contacts;
mod context;
mod help;
mod history;
mod link;
mod many;
mod onchain;
mod output;
mod setup;
mod show;
mod transfers;
mod unlock;
mod views;

use std::process::ExitCode;

use clap::FromArgMatches;
use fastpay_program::console::{answer, end_at_arguments, fail, start_brief_log};
use fastpay_wallet::{ErrorKind, WalletError};
use tokio::runtime::Runtime;

use args::{Cli, Command};
use context::Context;
use output::{Report, Screen, error_json};

fn main() -> ExitCode {
    // Alone it shows what it can do. (The parser's own way takes the environment for an argument.)
    if std::env::args_os().len() <= 1 {
        Screen::new().show(help::command().render_help().to_string());
        return ErrorKind::Argument.into();
    }
    let cli = match help::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return end_at_arguments(&error),
    };
    start_brief_log("RUST_LOG", "warn");
    let Cli { home, json, passphrase_file, timeout, command } = cli;
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let message = format!("cannot start threads: {error}");
            return fail(ErrorKind::System, &message, json.then(|| ErrorKind::System.document(&message)));
        }
    };
    let context = match Context::new(home, json, passphrase_file, timeout) {
        Ok(context) => context,
        Err(error) => return report(&runtime, json, Err(error)),
    };
    let outcome = runtime.block_on(context.screen.stay_with(run(&context, command)));
    let code = report(&runtime, json, outcome);
    // Background work only brings other authorities up to date.
    runtime.shutdown_background();
    // Sending traces may take a moment; the answer has been printed before.
    drop(context);
    code
}

fn report(runtime: &Runtime, json: bool, outcome: Result<Report, WalletError>) -> ExitCode {
    let result = outcome.and_then(|report| {
        let text = if json { report.json.to_string() } else { report.text };
        if !text.is_empty() {
            answer(text)?;
        }
        if let Some(Err(error)) = report.told.map(|told| runtime.block_on(told)) {
            tracing::warn!(%error, "the same command reports this again, and does not repeat it");
        }
        Ok(report.exit_code.into())
    });
    result.unwrap_or_else(|error| fail(error.kind(), &error, json.then(|| error_json(&error))))
}

async fn run(context: &Context, command: Command) -> Result<Report, WalletError> {
    match command {
        Command::Init(args) => setup::init(context, args).await,
        Command::Keys(command) => setup::keys(context, command),
        Command::Contacts(command) => contacts::contacts(context, command),
        Command::Link(args) => link::link(context, args).await,
        Command::Address(args) => setup::address(context, args.from.as_deref()),
        Command::Deposit(args) => onchain::deposit(context, args).await,
        Command::Pay(args) => transfers::pay(context, args).await,
        Command::Redeem(args) => transfers::redeem(context, args).await,
        Command::Balance(args) => views::balance(context, args).await,
        Command::History(args) => history::history(context, args).await,
        Command::Show(args) => show::show(context, args).await,
        Command::Verify { certificate } => show::verify(context, &certificate).await,
        Command::Receive(args) => views::receive(context, args).await,
        Command::Resume(args) => transfers::resume(context, args).await,
        Command::Execute(args) => onchain::execute(context, args).await,
        Command::Unlock(args) => unlock::unlock(context, args).await,
        Command::Claim(args) => onchain::claim(context, args).await,
        Command::Status => views::status(context).await,
        Command::Audit(args) => audit::audit(context, args).await,
        Command::Completions { shell } => Ok(help::completions(shell)),
    }
}

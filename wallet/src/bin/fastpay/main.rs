//! `fastpay`: the wallet on the command line.
//!
//! Results go to standard output (with `--json` one document), progress to standard error. The exit code
//! tells the kind of an error; see `WalletError::exit_code`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod args;
mod audit;
mod contacts;
mod context;
mod help;
mod history;
mod link;
mod onchain;
mod output;
mod setup;
mod transfers;
mod views;

use std::process::ExitCode;

use clap::FromArgMatches;
use fastpay_telemetry::console::{complain, print, start_brief_log};
use fastpay_wallet::WalletError;

use args::{Cli, Command};
use context::Context;
use output::{Report, Screen, error_json};

/// No program has planted faults in it.
const _: () =
    assert!(!fastpay_core::fault::CAN_BE_PLANTED, "built with the feature `planted`, which is for the simulator");

fn main() -> ExitCode {
    // Alone it shows what it can do. (The parser's own way takes the environment for an argument.)
    if std::env::args_os().len() <= 1 {
        Screen::new().show(help::command().render_help().to_string());
        return ExitCode::from(2);
    }
    let cli = match help::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error),
    };
    start_brief_log("RUST_LOG", "warn");
    let Cli { home, json, passphrase_file, timeout, command } = cli;
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(format_args!("error: the system gives no threads: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let context = match Context::new(home, json, passphrase_file, timeout) {
        Ok(context) => context,
        Err(error) => return report(json, Err(error)),
    };
    let outcome = runtime.block_on(context.screen.stay_with(run(&context, command)));
    // What goes on in the background is only for the convenience of others.
    runtime.shutdown_background();
    let code = report(json, outcome);
    // Where payments are traced, that may take a moment more: the answer is there before.
    drop(context);
    code
}

fn report(json: bool, outcome: Result<Report, WalletError>) -> ExitCode {
    // What is done is done, also where nobody reads of it (`fastpay history | head`).
    match outcome {
        Ok(report) => {
            let _ = match json {
                true => print(&report.json),
                false if report.text.is_empty() => Ok(()),
                false => print(&report.text),
            };
            ExitCode::from(report.exit_code)
        }
        Err(error) => {
            if json {
                let _ = print(error_json(&error));
            }
            Screen::new().show(format!("error: {error}\n"));
            ExitCode::from(error.exit_code())
        }
    }
}

/// The parser's own errors; with `--json` in the same form as all others.
fn refuse_arguments(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let message = error.to_string();
        let _ = print(serde_json::json!({ "error": { "kind": "argument", "message": message.trim() } }));
    }
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
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
        Command::Receive(args) => views::receive(context, args).await,
        Command::Resume(args) => transfers::resume(context, args).await,
        Command::Execute(args) => onchain::execute(context, args).await,
        Command::Claim(args) => onchain::claim(context, args).await,
        Command::Status => views::status(context).await,
        Command::Audit(args) => audit::audit(context, args).await,
        Command::Completions { shell } => Ok(help::completions(shell)),
    }
}

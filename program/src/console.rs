//! Output of a program: answers on standard output, errors and the log on standard error. A reader may close either
//! early (`fastpay-node status | head -1`); the macros of the standard library panic then.

use std::fmt::Display;
use std::io::{self, IsTerminal, Stderr, Write};
use std::process::ExitCode;

use clap::ValueEnum;
pub use clap_complete::Shell;
use serde_json::Value;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::SubscriberBuilder;
use tracing_subscriber::fmt::format::{DefaultFields, Format};
use tracing_subscriber::prelude::*;

use crate::error_kind::ErrorKind;

/// Alloy's HTTP transport logs the URL of the Ethereum node, and providers put keys there.
const NEVER_LOGGED: &str = "alloy_transport_http";

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line per event, coloured on a terminal.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts the log of a program at level `default`, unless an environment variable overrides the level.
pub fn start_log(format: LogFormat, variable: &str, default: &str) {
    match format {
        LogFormat::Text => start(log(variable, default).finish()),
        LogFormat::Json => start(log(variable, default).json().finish()),
    }
}

/// Starts the log of a command that a person waits for: as [`start_log`] does, but without times.
pub fn start_brief_log(variable: &str, default: &str) {
    start(log(variable, default).without_time().finish());
}

fn start(log: impl Subscriber + Send + Sync) {
    log.with(filter_fn(may_be_logged)).init();
}

/// A filter that applies in addition to the environment variable.
fn may_be_logged(metadata: &Metadata<'_>) -> bool {
    !metadata.target().starts_with(NEVER_LOGGED)
}

fn log(variable: &str, default: &str) -> SubscriberBuilder<DefaultFields, Format, EnvFilter, fn() -> Stderr> {
    let filter = EnvFilter::try_from_env(variable).unwrap_or_else(|_| EnvFilter::new(default));
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let stderr: fn() -> Stderr = io::stderr;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal() && !is_plain)
        // If standard error is closed, the library would report that with a macro that panics.
        .log_internal_errors(false)
        .with_writer(stderr)
}

/// Prints a line on standard output.
///
/// # Errors
/// If the output is closed or cannot be written.
pub fn print(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// The answer of a command could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be written: {0}; the command itself succeeded")]
pub struct LostAnswer(#[from] io::Error);

/// Prints the answer of a command as a line on standard output. The command has taken effect even if nobody reads the
/// answer.
///
/// # Errors
/// If the answer cannot be written, for example because the disk is full. A closed pipe is no error.
pub fn answer(text: impl Display) -> Result<(), LostAnswer> {
    match print(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Ends a failed command: prints the reason on standard error, and on standard output if the caller asked for a
/// `document`.
#[must_use]
pub fn fail(kind: ErrorKind, message: impl Display, document: Option<Value>) -> ExitCode {
    if let Some(document) = document {
        // If that fails, too, the exit code still reports the first error.
        let _ = answer(document);
    }
    complain(format_args!("error: {message}"));
    kind.into()
}

/// Ends a command whose arguments the parser rejects, or that requests help or the version. With `--json` an error has
/// the same form as all other errors.
#[must_use]
pub fn end_at_arguments(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        if std::env::args_os().any(|argument| argument == "--json") {
            let _ = answer(ErrorKind::Argument.document(error.to_string().trim()));
        }
        let _ = error.print();
        return ErrorKind::Argument.into();
    }
    match error.print() {
        Err(lost) if lost.kind() != io::ErrorKind::BrokenPipe => fail(ErrorKind::Output, LostAnswer(lost), None),
        _ => ExitCode::SUCCESS,
    }
}

/// The script with which a shell completes a command.
#[must_use]
pub fn completions(shell: Shell, mut command: clap::Command) -> String {
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).trim_end().to_owned()
}

/// Prints a line on standard error. A failure to write it is ignored.
pub fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

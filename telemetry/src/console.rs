//! What a program says to whoever started it: answers on standard output, complaints and its log on standard error. Nobody
//! need read either to the end (`fastpay-node status | head -1`), and the macros of the standard library panic where nobody does.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Stderr, Write};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::SubscriberBuilder;
use tracing_subscriber::fmt::format::{DefaultFields, Format};

/// The form of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line for each event, in colours on a terminal.
    Text,
    /// One object a line.
    Json,
}

/// Starts the log of a program. The variable of the environment says how much it says, in place of `default`.
pub fn start_log(format: LogFormat, variable: &str, default: &str) {
    match format {
        LogFormat::Text => log(variable, default).init(),
        LogFormat::Json => log(variable, default).json().init(),
    }
}

/// The same for a command that a person waits for: without times.
pub fn start_brief_log(variable: &str, default: &str) {
    log(variable, default).without_time().init();
}

fn log(variable: &str, default: &str) -> SubscriberBuilder<DefaultFields, Format, EnvFilter, fn() -> Stderr> {
    let filter = EnvFilter::try_from_env(variable).unwrap_or_else(|_| EnvFilter::new(default));
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let stderr: fn() -> Stderr = io::stderr;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal() && !is_plain)
        // Where nobody reads the log, the library says so by a macro that panics then.
        .log_internal_errors(false)
        .with_writer(stderr)
}

/// A line on standard output.
///
/// # Errors
/// Where nobody reads it any more, or it cannot be written.
pub fn print(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// The answer of a command, as a line on standard output. What was done is done, also where nobody reads of it.
///
/// # Errors
/// Where it cannot be written to where it was to go, such as a full disk.
pub fn answer(text: impl Display) -> io::Result<()> {
    match print(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// A line on standard error, for people. Where it cannot be written, the work goes on.
pub fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

//! What a program says to whoever started it: answers on standard output, complaints on standard error. Nobody need read
//! either to the end (`fastpay-node status | head -1`), and the macros of the standard library panic where nobody does.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

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

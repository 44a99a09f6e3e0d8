//! The kinds of errors of all commands, as words for programs, and the exit code of each. docs/CLI.md specifies them.

use std::fmt::{self, Display};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};

/// A kind of error, named for its remedy. The meaning of a name or an exit code never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum ErrorKind {
    /// The system refuses an operation, or a part of the program ended because of a defect.
    System = 1,
    /// An argument is invalid. The number is the argument parser's own.
    Argument = 2,
    /// The program is not set up, or is set up for something else.
    Config = 3,
    /// A key that does not exist, is malformed, or exists already.
    Key = 4,
    /// The passphrase is wrong or missing.
    Passphrase = 5,
    /// Too little money in an account, or too little for gas.
    Funds = 6,
    /// The number or the name is already used for something else.
    Conflict = 7,
    /// The server does not answer.
    Unreachable = 8,
    /// The Ethereum node does not answer, or refuses a request.
    Primary = 9,
    /// Another process uses the same files.
    Busy = 10,
    /// The operation did not complete in time. It may still complete.
    Timeout = 11,
    /// The sums of an audit do not agree.
    Audit = 12,
    /// The disk refuses an operation, or a file is damaged.
    Storage = 13,
    /// The contract is paused.
    Paused = 14,
    /// An error of the address book.
    Contact = 15,
    /// The answer could not be written to its destination.
    Output = 16,
}

impl ErrorKind {
    /// All kinds, ordered by exit code.
    pub const ALL: [Self; 16] = [
        Self::System,
        Self::Argument,
        Self::Config,
        Self::Key,
        Self::Passphrase,
        Self::Funds,
        Self::Conflict,
        Self::Unreachable,
        Self::Primary,
        Self::Busy,
        Self::Timeout,
        Self::Audit,
        Self::Storage,
        Self::Paused,
        Self::Contact,
        Self::Output,
    ];

    /// The exit code with which the program ends.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        self as u8
    }

    /// An error of this kind, for programs.
    #[must_use]
    pub fn document(self, message: impl Display) -> Value {
        json!({ "error": { "kind": self, "message": message.to_string() } })
    }
}

impl Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl From<ErrorKind> for ExitCode {
    fn from(kind: ErrorKind) -> Self {
        kind.exit_code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: &str = include_str!("../../docs/OPERATIONS.md");

    #[test]
    fn operators_read_the_same_exit_codes() {
        let (_, table) = OPERATIONS.split_once("| kind | exit code | of an authority or a relayer |").unwrap();
        let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with("| `")).collect();
        assert!(rows.len() > 8, "{rows:?}");
        for row in rows {
            let is_said = |kind: &ErrorKind| row.starts_with(&format!("| `{kind}` | {} |", kind.exit_code()));
            assert!(ErrorKind::ALL.iter().any(is_said), "{row}");
        }
    }

    #[test]
    fn a_kind_is_written_as_its_name() {
        assert_eq!(ErrorKind::Unreachable.to_string(), "unreachable");
        let document = ErrorKind::Output.document("the disk is full");
        assert_eq!(document.to_string(), r#"{"error":{"kind":"output","message":"the disk is full"}}"#);
        assert!(ErrorKind::ALL.iter().zip(1..).all(|(kind, code)| kind.exit_code() == code));
    }
}

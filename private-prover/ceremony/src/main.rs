//! `fastpay-ceremony`: makes the keys of private payments together with others.
//!
//! Results go to standard output (with `--json` one document), progress to standard error.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fastpay_ceremony::{CeremonyError, Folder, Hash, POWERS_SIZE, Phase, Transcript, Verified};
use fastpay_private_prover::{CommitteeSize, Shape};
use serde_json::{Value, json};
use zeroize::Zeroizing;

/// The rest of a longer line is not read.
const TYPED_BYTES_MAX: usize = 1 << 16;

/// Make the keys of private payments together with others: nobody can prove what is false if one of them is honest.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Print the result as one JSON document.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Begin a phase: the powers, or with --members the keys of a committee.
    Begin {
        /// The ceremony's folder, which is created if it is missing.
        folder: PathBuf,
        /// Begin the keys for a committee of this size. Nobody can contribute to the powers then.
        #[arg(long)]
        members: Option<usize>,
    },
    /// Verify a phase and contribute to it.
    Contribute {
        /// The ceremony's folder, as the contributor before left it.
        folder: PathBuf,
        /// Contribute to the keys for a committee of this size instead of the powers.
        #[arg(long)]
        members: Option<usize>,
        /// Who you are: letters, digits and -_.@
        #[arg(long)]
        name: String,
        /// Read a line of your own randomness from standard input, in addition to the operating system's.
        #[arg(long)]
        typed: bool,
    },
    /// Verify everything in the folder, from the circuit and the first contribution on.
    Verify {
        /// The ceremony's folder.
        folder: PathBuf,
    },
    /// Verify both phases and write the keys.
    Finish {
        /// The ceremony's folder.
        folder: PathBuf,
        /// The size of the committee.
        #[arg(long)]
        members: usize,
    },
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Ceremony(#[from] CeremonyError),
    #[error(transparent)]
    Committee(#[from] CommitteeSize),
    #[error("standard input cannot be read: {0}")]
    Input(io::Error),
    #[error("the result cannot be written: {0}; the command itself succeeded")]
    Output(io::Error),
}

impl Error {
    /// The word for programs, and the exit code: those of docs/CLI.md.
    const fn kind(&self) -> (&'static str, u8) {
        match self {
            Self::Input(_) | Self::Ceremony(CeremonyError::Randomness(_)) => ("system", 1),
            Self::Committee(_) | Self::Ceremony(CeremonyError::Refused(_)) => ("argument", 2),
            Self::Ceremony(CeremonyError::Missing(_)) => ("config", 3),
            Self::Ceremony(CeremonyError::Exists(_) | CeremonyError::Closed(_)) => ("conflict", 7),
            Self::Ceremony(CeremonyError::Busy(_)) => ("busy", 10),
            Self::Ceremony(CeremonyError::Flaw { .. } | CeremonyError::OtherKey(_) | CeremonyError::Key(_)) => {
                ("audit", 12)
            }
            Self::Ceremony(CeremonyError::Io { .. }) => ("storage", 13),
            Self::Output(_) => ("output", 16),
        }
    }
}

/// A result for people and for programs.
struct Answer {
    text: String,
    json: Value,
}

fn main() -> ExitCode {
    let Cli { json, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return end_at_arguments(&error),
    };
    let result = run(command)
        .and_then(|answer| print(if json { answer.json.to_string() } else { answer.text }).map_err(Error::Output));
    let Err(error) = result else { return ExitCode::SUCCESS };
    let (kind, code) = error.kind();
    if json {
        // If that fails, too, the exit code still reports the first error.
        let _ = print(error_json(kind, &error.to_string()));
    }
    complain(&format!("error: {error}"));
    code.into()
}

fn end_at_arguments(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let _ = print(error_json("argument", error.to_string().trim()));
    }
    let _ = error.print();
    if error.use_stderr() { 2.into() } else { ExitCode::SUCCESS }
}

fn error_json(kind: &str, message: &str) -> String {
    json!({ "error": { "kind": kind, "message": message } }).to_string()
}

fn run(command: Command) -> Result<Answer, Error> {
    let progress = |line: &str| complain(line);
    match command {
        Command::Begin { folder, members } => {
            let phase = phase(members)?;
            Folder::new(folder, POWERS_SIZE).begin(phase, &progress)?;
            Ok(Answer { text: "begun: now each contributor contributes".to_owned(), json: json!({ "begun": true }) })
        }
        Command::Contribute { folder, members, name, typed } => {
            let phase = phase(members)?;
            let typed = if typed { read_line()? } else { Zeroizing::default() };
            let hash = Folder::new(folder, POWERS_SIZE).contribute(phase, &name, &typed, &progress)?;
            let hash = hex::encode(hash);
            let text = format!("contributed as {name}\nkeep this and compare it with what `verify` prints: {hash}");
            Ok(Answer { text, json: json!({ "name": name, "hash": hash }) })
        }
        Command::Verify { folder } => {
            let verified = Folder::new(folder, POWERS_SIZE).verify(&progress)?;
            let text: Vec<String> = verified.iter().flat_map(describe).collect();
            let json: Vec<Value> = verified.iter().map(document).collect();
            Ok(Answer { text: text.join("\n"), json: json!({ "phases": json }) })
        }
        Command::Finish { folder, members } => {
            let shape = Shape::of_committee(members)?;
            let keys = Folder::new(folder, POWERS_SIZE).finish(shape, &progress)?;
            let text = keys.iter().map(|(path, hash)| format!("{}  {}", hex::encode(hash), path.display()));
            let [verifying, proving] = keys
                .each_ref()
                .map(|(path, hash)| json!({ "path": path.to_string_lossy(), "hash": hex::encode(hash) }));
            Ok(Answer {
                text: text.collect::<Vec<_>>().join("\n"),
                json: json!({ "verifyingKey": verifying, "provingKey": proving }),
            })
        }
    }
}

fn phase(members: Option<usize>) -> Result<Phase, CommitteeSize> {
    Ok(match members {
        None => Phase::Powers,
        Some(members) => Phase::Keys(Shape::of_committee(members)?),
    })
}

/// What the contributor types. Only its bytes matter; the end of the input ends it, too.
fn read_line() -> Result<Zeroizing<Vec<u8>>, Error> {
    if io::stdin().is_terminal() {
        complain("type at random for a while, then press Enter:");
    }
    // Grown, the line would leave copies behind.
    let mut line = Zeroizing::new(Vec::with_capacity(TYPED_BYTES_MAX));
    io::stdin().lock().take(TYPED_BYTES_MAX as u64).read_until(b'\n', &mut line).map_err(Error::Input)?;
    Ok(line)
}

fn contributions(transcript: &Transcript) -> impl Iterator<Item = (&str, String)> {
    transcript.contributions().map(|(name, hash)| (name, hex::encode(hash)))
}

fn describe(Verified { transcript, keys }: &Verified) -> Vec<String> {
    let count = transcript.contributions().count();
    let title = match keys {
        None => "powers".to_owned(),
        Some((members, _)) => format!("keys for {members} members"),
    };
    let mut lines = vec![format!("{title}: verified, contributions: {count}")];
    lines.extend(contributions(transcript).map(|(name, hash)| format!("  {hash}  {name}")));
    if let Some((_, Some([verifying, proving]))) = keys {
        lines.push(format!("  {}  verifying key", hex::encode(verifying)));
        lines.push(format!("  {}  proving key", hex::encode(proving)));
    }
    lines
}

fn document(Verified { transcript, keys }: &Verified) -> Value {
    let contributions: Vec<Value> =
        contributions(transcript).map(|(name, hash)| json!({ "name": name, "hash": hash })).collect();
    let hash = |at: usize| {
        let hashes: Option<&[Hash; 2]> = keys.as_ref().and_then(|(_, hashes)| hashes.as_ref());
        hashes.and_then(|hashes| hashes.get(at)).map(hex::encode)
    };
    match keys {
        None => json!({ "phase": "powers", "contributions": contributions }),
        Some((members, _)) => json!({
            "phase": "keys",
            "members": members,
            "contributions": contributions,
            "verifyingKeyHash": hash(0),
            "provingKeyHash": hash(1),
        }),
    }
}

fn print(text: impl std::fmt::Display) -> io::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

//! Examples in the help of each command, and shell completions. A test parses each example.

use clap::{Command, CommandFactory};
use fastpay_program::console::{self, Shell};
use serde_json::json;

use crate::args::Cli;
use crate::output::Report;

/// The examples of each command.
const EXAMPLES: [(&str, &[&str]); 20] = [
    (
        "init",
        &[
            "fastpay init --rpc-url https://eth.example --contract 0x5FbDB2315678afecb367f032d93F642f64180aa3 --endpoints endpoints.json",
            "fastpay init --genesis genesis.json --endpoints endpoints.json",
        ],
    ),
    (
        "keys",
        &[
            "fastpay keys new alice --ethereum",
            "fastpay keys import shop --ed25519 --secret-file secret.txt",
            "fastpay keys list",
            "fastpay keys use alice",
            "fastpay keys export alice",
        ],
    ),
    (
        "contacts",
        &[
            "fastpay contacts add bob 0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "fastpay pay bob 1.5",
            "fastpay contacts list",
            "fastpay contacts remove bob",
        ],
    ),
    ("address", &["fastpay address", "fastpay address --from alice"]),
    (
        "link",
        &[
            "fastpay link --qr",
            "fastpay link --from alice --amount 1.5 --memo invoice-7 --label Bakery --expires-in 900",
            "fastpay link --amount 20 --web https://wallet.example/pay",
        ],
    ),
    ("deposit", &["fastpay deposit 10 --from alice", "fastpay deposit 1 --from alice --to bob --wait 0"]),
    (
        "pay",
        &[
            "fastpay pay bob 1.5 --memo invoice-7",
            "fastpay pay bob max --asset DEMO",
            "fastpay pay 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 25 --asset 0x5FbDB2315678afecb367f032d93F642f64180aa3",
            "fastpay pay fastpay:0x70997970C51812dc3A010C7d01b50e0d17dc79C8@1/0x5FbDB2315678afecb367f032d93F642f64180aa3 1.5",
        ],
    ),
    (
        "redeem",
        &[
            "fastpay redeem 1 --to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 --wait",
            "fastpay redeem 2 --from alice --self",
            "fastpay redeem --sequence 7 --self",
        ],
    ),
    ("balance", &["fastpay balance", "fastpay balance --account bob", "fastpay balance --json"]),
    (
        "history",
        &[
            "fastpay history --from alice",
            "fastpay history --only in --since 2026-01-01 --until 2026-02-01",
            "fastpay history --csv > history.csv",
        ],
    ),
    (
        "show",
        &[
            "fastpay show 0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
            "fastpay show alice/7",
            "fastpay show alice/7 --certificate > payment.certificate",
        ],
    ),
    ("verify", &["fastpay verify payment.certificate"]),
    ("receive", &["fastpay receive --wait 60", "fastpay receive --follow --json"]),
    ("resume", &["fastpay resume", "fastpay resume --from alice"]),
    ("execute", &["fastpay execute --from alice"]),
    (
        "unlock",
        &[
            "fastpay unlock --from alice",
            "fastpay unlock --from bob --gas-key alice --wait 3600",
            "fastpay unlock --from bob --relayer",
        ],
    ),
    (
        "claim",
        &[
            "fastpay claim",
            "fastpay claim --amount 0.5 --to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "fastpay claim --owner 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 --from alice",
        ],
    ),
    ("status", &["fastpay status", "fastpay status --json"]),
    ("audit", &["fastpay audit", "fastpay audit --verify-proof proof.json"]),
    (
        "completions",
        &[
            "fastpay completions bash > ~/.local/share/bash-completion/completions/fastpay",
            "fastpay completions fish > ~/.config/fish/completions/fastpay.fish",
        ],
    ),
];

/// The command-line parser, with examples in its help.
pub fn command() -> Command {
    EXAMPLES.iter().fold(Cli::command(), |command, (name, examples)| {
        let text = format!("Examples:\n  {}", examples.join("\n  "));
        command.mut_subcommand(name, |subcommand| subcommand.after_help(text))
    })
}

/// The completion script of a shell.
pub fn completions(shell: Shell) -> Report {
    let script = console::completions(shell, Cli::command());
    Report::new(json!({ "shell": shell.to_string(), "script": script }), script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn every_command_has_examples_that_the_parser_takes() {
        let commands: Vec<_> = Cli::command().get_subcommands().map(|of| of.get_name().to_owned()).collect();
        assert_eq!(commands, EXAMPLES.map(|(name, _)| name));
        for (name, examples) in EXAMPLES {
            assert!(!examples.is_empty(), "{name}");
            for example in examples {
                let words = example.split(" > ").next().unwrap().split(' ');
                Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
            }
            let mut command = command();
            let help = command.find_subcommand_mut(name).unwrap().render_help().to_string();
            assert!(help.contains(examples[0]), "{help}");
        }
    }

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = completions(shell).text;
            assert!(["contacts", "redeem", "completions"].iter().all(|name| script.contains(name)), "{shell}");
        }
    }
}

//! The command makes what it needs, and says what is wrong.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fastpay-relayer"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("FASTPAY_RELAYER_PASSPHRASE")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, words)
}

fn init(folder: &Path, more: &[&str]) -> Output {
    let contract = "0x0101010101010101010101010101010101010101";
    let given = ["init", "--rpc-url", "http://127.0.0.1:1", "--chain-id", "31337", "--contract", contract];
    run(folder, &[&given, more].concat()).0
}

#[test]
fn init_makes_a_configuration_that_run_understands() {
    let folder = tempfile::tempdir().unwrap();
    let made = init(folder.path(), &["--unencrypted-key"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(!init(folder.path(), &["--unencrypted-key"]).status.success(), "nothing is overwritten");
    let (output, words) = run(folder.path(), &["run"]);
    assert!(!output.status.success() && words.contains("endpoints.json"), "{words}");
    let (output, words) = run(folder.path(), &["status"]);
    assert!(!output.status.success() && words.contains("state.json"), "{words}");
}

#[test]
fn a_wrong_or_absent_passphrase_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("right"), "right").unwrap();
    std::fs::write(folder.path().join("wrong"), "wrong").unwrap();
    assert!(!init(folder.path(), &[]).status.success(), "a key is encrypted unless told otherwise");
    assert!(init(folder.path(), &["--passphrase-file", "right"]).status.success());
    let (output, words) = run(folder.path(), &["run", "--passphrase-file", "wrong"]);
    assert!(!output.status.success() && words.contains("wrong passphrase"), "{words}");
    let text = std::fs::read_to_string(folder.path().join("relayer.toml")).unwrap();
    let without: Vec<_> = text.lines().filter(|line| !line.starts_with("passphrase_file")).collect();
    std::fs::write(folder.path().join("relayer.toml"), without.join("\n")).unwrap();
    let (output, words) = run(folder.path(), &["run"]);
    assert!(!output.status.success() && words.contains("needs a passphrase"), "{words}");
}

#[test]
fn a_missing_file_and_an_unknown_key_are_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let (output, words) = run(folder.path(), &["run"]);
    assert!(!output.status.success() && words.contains("relayer.toml"), "{words}");
    std::fs::write(folder.path().join("relayer.toml"), "colour = 1\n").unwrap();
    let (output, words) = run(folder.path(), &["run"]);
    assert!(!output.status.success() && words.contains("colour"), "{words}");
}

//! The command: its answers for people and programs, and its exit codes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpay-ceremony"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that reads nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// With the program's own size of powers, whose contribution takes half a minute.
#[test]
fn a_contribution_from_begin_to_verify() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("ceremony");
    let folder = folder.to_str().unwrap();
    assert_eq!(answer(&run(&["begin", folder, "--json"], b"")), json!({ "begun": true }));
    assert_eq!(std::fs::metadata(Path::new(folder).join("powers")).unwrap().len(), 37_748_851);
    let refuse = |arguments: &[&str], kind: &str, code: i32, message: &str| {
        let output = run(&[arguments, &["--json"]].concat(), b"");
        assert_eq!(output.status.code(), Some(code));
        let error = &answer(&output)["error"];
        assert_eq!(error["kind"], kind);
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        let told = String::from_utf8(run(arguments, b"").stderr).unwrap();
        assert!(told.contains(message), "{told}");
    };
    refuse(&["begin", folder], "conflict", 7, "powers exists already");
    refuse(&["begin", folder, "--members", "3"], "argument", 2, "4 to 255 members");
    refuse(&["finish", folder], "argument", 2, "--members");
    refuse(&["verify", "/nowhere"], "config", 3, "/nowhere/powers does not exist");

    let contributed = run(&["contribute", folder, "--name", "alice", "--typed", "--json"], b"by hand\n");
    let told = String::from_utf8(contributed.stderr.clone()).unwrap();
    assert!(told.contains("multiplying the powers"), "{told}");
    let contribution = answer(&contributed);
    assert_eq!(contribution["name"], "alice");
    assert_eq!(contribution["hash"].as_str().unwrap().len(), 64);
    refuse(&["contribute", folder, "--name", "alice"], "argument", 2, "alice contributed before");
    let verified = run(&["verify", folder, "--json"], b"");
    assert_eq!(answer(&verified), json!({ "phases": [{ "phase": "powers", "contributions": [contribution] }] }));
    std::fs::write(Path::new(folder).join("powers"), b"fastpay-powers-1").unwrap();
    refuse(&["verify", folder], "audit", 12, "powers: the file is cut off");
}

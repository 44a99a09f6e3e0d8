//! `fastpay-ledger` as an operator and a bank use it.

use std::path::Path;
use std::process::Command;

use fastpay_ledger_member::localnet::Localnet;
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_program::keystore::{Secret, write_secret};
use serde_json::{Value, json};

use super::{ledger, until};

/// The answer of a command, and its exit code.
fn run(arguments: &[&str]) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_fastpay-ledger")).args(arguments).output().unwrap();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    if !output.status.success() {
        println!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    (output.status.code().unwrap(), answer)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn its_commands_work_and_fail_with_their_exit_codes() {
    let (folder, mut net): (_, Localnet) = ledger(&[1], &[2, 3]);
    net.start_and_wait().await.unwrap();
    let file = net.ledger();
    let file = path(&file);
    let key = folder.path().join("writer.key");
    write_secret(&key, &Secret::new([7; 32]), None).unwrap();
    let key = path(&key);

    let (code, status) = run(&["status", "--ledger", file]);
    assert_eq!((code, status["clusters"].as_array().unwrap().len()), (0, 3));
    assert!(status["clusters"][0]["members"][3]["height"].as_u64().unwrap() > 0);

    let (code, described) = run(&["describe", "--ledger", file]);
    assert_eq!((code, described), (0, json!(net.network().describe(CommitteeNumber(0)).unwrap())));
    assert_eq!(run(&["describe", "--ledger", file, "--committee", "1"]).0, 2, "there is no such committee");

    let put = |more: &[&str]| run(&[&["put", "--ledger", file, "--key", key, "prices", "gold"], more].concat());
    let (code, written) = put(&["1", "--if-absent", "--via", "1"]);
    assert_eq!(code, 0);
    let version = written["version"].as_str().unwrap().to_owned();
    for more in [&["--newest"][..], &["--newest", "--via", "1"], &[]] {
        let (code, read) = run(&[&["get", "--ledger", file, "prices", "gold"], more].concat());
        assert_eq!((code, &read["entry"]), (0, &json!({ "version": version, "value": "1" })), "{more:?}");
    }
    assert_eq!(put(&["2", "--if-absent"]).0, 7, "a conflict");
    assert_eq!(put(&["2", "--if-version", "9-9"]).0, 7);
    assert_eq!(put(&["2", "--if-version", "gold"]).0, 2, "an argument");
    assert_eq!(put(&["2", "--if-version", &version]).0, 0);
    assert_eq!(run(&["delete", "--ledger", file, "--key", key, "prices", "gold"]).0, 0);
    assert_eq!(run(&["get", "--ledger", file, "prices", "gold", "--newest"]).1["entry"], Value::Null);

    let other = folder.path().join("other.key");
    let (code, made) = run(&["keygen", path(&other)]);
    assert_eq!(code, 0);
    assert_eq!(run(&["keygen", path(&other)]).0, 4, "a key is not overwritten");
    let payee = made["account"].as_str().unwrap();
    let signed = ["--ledger", file, "--key", key];
    let reserve = |of: &[&str], more: &[&str]| run(&[&["reserve"], of, &signed, more].concat());
    assert_eq!(reserve(&["transfer"], &[payee, "5"]).0, 7, "not open");
    assert_eq!(reserve(&["open"], &[]).0, 0);
    assert_eq!(reserve(&["transfer"], &[payee, "5", "--via", "1"]).0, 0);
    assert_eq!(reserve(&["transfer"], &[payee, "996"]).0, 6, "funds");
    assert_eq!(reserve(&["fund"], &[payee, "7"]).0, 0);
    let unauthorised = ["reserve", "transfer", "--ledger", file, "--key", path(&other), payee, "1"];
    assert_eq!(run(&unauthorised).0, 7, "another key's reserve is another reserve, and not open");
    until(60, "the payee's five", async || {
        (run(&["reserve", "show", "--ledger", file, payee]).1["balance"] == "5").then_some(())
    })
    .await;
    let (code, audit) = run(&["audit", "--ledger", file]);
    assert_eq!((code, &audit["assets"][0]["difference"], &audit["overdrafts"]), (0, &json!("0"), &json!([])));

    let taken = net.member_folder(1, 0);
    let init = |folder: &Path, key: &Path| run(&["init", path(folder), "--ledger", file, "--key", path(key)]).0;
    assert_eq!(init(&folder.path().join("new"), &other), 3, "no member's key");
    assert_eq!(init(&taken, &folder.path().join("1.0.key")), 3, "a member's folder");
    // A key file that is taken for the ledger's is not printed.
    let secret = std::fs::read_to_string(&other).unwrap();
    let mut mistaken = Command::new(env!("CARGO_BIN_EXE_fastpay-ledger"));
    let output = mistaken.args(["status", "--ledger", path(&other)]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("not a ledger's") && !said.contains(secret.trim()), "{said}");
}

//! The command creates its folder completely or not at all, and ends quietly on a closed pipe.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fastpay_testkit::{Ports, TestAccount, TestCommittee};
use serde_json::{Value, json};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpay-merchant"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// A pipe without a reader.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A wallet of a committee without a Primary, its file of endpoints still missing; and how to make a service from it.
fn wallet(folder: &Path) -> (Value, Vec<String>) {
    let committee = TestCommittee::new(4).committee;
    let genesis = json!({ "committee": committee.members(), "balances": [] });
    std::fs::write(folder.join("genesis.json"), genesis.to_string()).unwrap();
    let path = |name: &str| Value::from(folder.join(name).to_str().unwrap());
    let config = format!("endpoints = {}\ngenesis = {}\n", path("endpoints.json"), path("genesis.json"));
    std::fs::create_dir(folder.join("wallet")).unwrap();
    std::fs::write(folder.join("wallet/config.toml"), config).unwrap();
    let members = committee.members().iter();
    let authorities = members.map(|member| json!({ "name": member.name, "shards": ["http://127.0.0.1:1"] }));
    let account = TestAccount::numbered(1).id().to_string();
    let init = ["--json", "init", "--wallet", "wallet", "--account", &account].map(str::to_owned);
    (json!({ "authorities": authorities.collect::<Vec<_>>() }), init.to_vec())
}

#[test]
fn init_leaves_nothing_where_the_endpoints_or_the_label_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoints, init) = wallet(folder.path());
    let init: Vec<_> = init.iter().map(String::as_str).collect();
    let refused = |words: &str| {
        let output = run(folder.path(), &init);
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), error["error"]["kind"].as_str()), (Some(3), Some("config")), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(words), "{error}");
        assert!(!folder.path().join("merchant").exists());
    };
    refused("cannot read the authorities' endpoints");
    std::fs::write(folder.path().join("endpoints.json"), "{").unwrap();
    refused("is not a list of endpoints");
    std::fs::write(folder.path().join("endpoints.json"), endpoints.to_string()).unwrap();
    let long = run(folder.path(), &[&init[..], &["--label", &"x".repeat(65)]].concat());
    let said = String::from_utf8(long.stderr).unwrap();
    assert!(long.status.code() == Some(2) && said.contains("at most 64 are shown"), "{said}");
    assert!(!folder.path().join("merchant").exists());
    let made = run(folder.path(), &init);
    assert!(made.status.success(), "{made:?}");
    assert!(folder.path().join("merchant/merchant.toml").exists());
}

#[test]
fn an_amount_is_typed_in_whole_units_and_a_wrong_one_is_refused_before_anybody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoints, init) = wallet(folder.path());
    std::fs::write(folder.path().join("endpoints.json"), endpoints.to_string()).unwrap();
    let init: Vec<_> = init.iter().map(String::as_str).collect();
    assert!(run(folder.path(), &init).status.success());
    let create = |amount: &str| {
        let output = run(folder.path(), &["--json", "invoice", "create", "--reference", "r", "--amount", amount]);
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), error["error"]["message"].as_str().unwrap().to_owned())
    };
    for (amount, words) in [
        ("1.0000000000000000001", "more decimals"),
        ("-3", "is not an amount"),
        ("1e3", "is not an amount"),
        ("1500000000000000000000000", "exceeds what any account can hold"),
    ] {
        let (code, message) = create(amount);
        assert!(code == 2 && message.contains(words), "{amount}: {message}");
    }
    // What can be read is for the service to judge, and it is away.
    assert_eq!(create("0.012").0, 8);
}

/// A running service, with its port; it ends with the test.
struct Running(Child, #[expect(dead_code, reason = "it keeps the port")] Ports);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a service on a port of its own, and waits until it listens.
fn start(folder: &Path) -> Running {
    let (endpoints, init) = wallet(folder);
    std::fs::write(folder.join("endpoints.json"), endpoints.to_string()).unwrap();
    let mut ports = Ports::take().unwrap();
    let port = format!("127.0.0.1:{}", ports.next(1).unwrap());
    let init: Vec<_> = init.iter().map(String::as_str).chain(["--listen", &port, "--web-wallet", WEB_WALLET]).collect();
    assert!(run(folder, &init).status.success());
    let running = Running(command(folder, &["run"]).stderr(Stdio::null()).spawn().unwrap(), ports);
    let until = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(&port).is_err() {
        assert!(Instant::now() < until, "the service does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    running
}

const WEB_WALLET: &str = "http://127.0.0.1:5173/pay";

fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_invoice_has_the_lines_that_were_typed_and_they_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let _running = start(folder.path());
    let create = ["invoice", "create", "--reference", "order 8", "--amount", "0.012", "--description", "For Saturday"];
    let bread = ["--item", "Bread, rye,2,0.01"];
    let rest = ["--item", "Butter croissant,1,0.002", "--return-url", "http://127.0.0.1:3000/thanks"];
    let invoice: Value =
        serde_json::from_str(&said(folder.path(), &[&["--json"], &create[..], &bread, &rest].concat())).unwrap();
    assert_eq!(invoice["description"], "For Saturday");
    assert_eq!(invoice["returnUrl"], "http://127.0.0.1:3000/thanks");
    assert_eq!(
        invoice["items"],
        json!([
            { "name": "Bread, rye", "quantity": 2, "amount": "10000000000000000" },
            { "name": "Butter croissant", "quantity": 1, "amount": "2000000000000000" },
        ])
    );
    let text = said(folder.path(), &[&create[..], &bread, &rest].concat());
    for line in ["for        For Saturday", "item       2 × Bread, rye, 0.01 native", "checkout   http"] {
        assert!(text.contains(line), "{text}");
    }
    let refused = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["--json"], &create[..], arguments].concat());
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, message) = refused(&bread);
    assert!(code == 2 && message.contains("do not add up"), "{code} {message}");
    for line in ["Bread", "Bread,0.01", "Bread,two,0.01", "Bread,2,1e3"] {
        assert_eq!(refused(&["--item", line]).0, 2, "{line}");
    }
}

#[test]
fn a_payout_is_prepared_once_and_says_how_its_owner_signs_it() {
    let folder = tempfile::tempdir().unwrap();
    let _running = start(folder.path());
    let to = "0x00000000000000000000000000000000000beef1";
    let prepare = ["payouts", "prepare", "november", "--amount", "2.5", "--to", to, "--fee", "0.001"];
    let payout: Value = serde_json::from_str(&said(folder.path(), &[&["--json"], &prepare[..]].concat())).unwrap();
    let [state, amount, fee] = ["state", "amount", "fee"].map(|name| payout[name].as_str().unwrap());
    assert_eq!((state, amount, fee), ("prepared", "2500000000000000000", "1000000000000000"));
    assert!(payout["recipient"].as_str().unwrap().eq_ignore_ascii_case(to), "{payout}");
    let memo = payout["memo"].as_str().unwrap();
    let text = said(folder.path(), &prepare);
    let signing = format!("fastpay redeem 2.5 --to {to} --asset 0x{} --fee 0.001 --memo {memo}", "0".repeat(40));
    assert!(text.contains(&signing) && text.contains("http://127.0.0.1:5173/redeem#from="), "{text}");
    assert_eq!(said(folder.path(), &["payouts", "show", "november"]), text, "it is prepared once");
    assert!(said(folder.path(), &["payouts", "list"]).contains("2.5 native"));
    let again = run(folder.path(), &["payouts", "prepare", "november", "--amount", "2", "--to", to, "--fee", "0.001"]);
    assert_eq!(again.status.code(), Some(7));
    assert_eq!(run(folder.path(), &["payouts", "show", "december"]).status.code(), Some(2));
    for (to, why) in [("0x12", "40 hexadecimal digits"), ("0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96046", "checksum")] {
        let mistyped = run(folder.path(), &["payouts", "prepare", "december", "--amount", "1", "--to", to]);
        let said = String::from_utf8(mistyped.stderr).unwrap();
        assert!(mistyped.status.code() == Some(2) && said.contains(why), "{to}: {said}");
    }
    let negative = ["payouts", "prepare", "december", "--amount", "1", "--to", to, "--fee", "-1"];
    assert_eq!(run(folder.path(), &negative).status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoints, init) = wallet(folder.path());
    std::fs::write(folder.path().join("endpoints.json"), endpoints.to_string()).unwrap();
    let init: Vec<_> = init.iter().map(String::as_str).collect();
    let code = |arguments: &[&str], out: Stdio| {
        command(folder.path(), arguments).stdout(out).stderr(closed_pipe()).status().unwrap().code()
    };
    assert_eq!(code(&init, closed_pipe()), Some(0));
    assert!(folder.path().join("merchant/merchant.toml").exists(), "the command itself succeeded");
    assert_eq!(code(&["--json", "invoice", "list"], closed_pipe()), Some(8));
    assert_eq!(code(&["--json", "bake"], closed_pipe()), Some(2));
    // A lost answer is an error; a closed pipe is not.
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap().into();
    let elsewhere: Vec<_> = [&["--home", "elsewhere"][..], &init].concat();
    assert_eq!(code(&elsewhere, full()), Some(16));
    assert_eq!(code(&["--help"], full()), Some(16));
    assert_eq!(code(&["--help"], closed_pipe()), Some(0));
}

#[test]
fn a_shell_learns_to_complete_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = run(folder.path(), &["completions", "bash"]);
    assert!(script.status.success() && String::from_utf8(script.stdout).unwrap().contains("invoice"));
    let document: Value =
        serde_json::from_slice(&run(folder.path(), &["--json", "completions", "fish"]).stdout).unwrap();
    assert_eq!(document["shell"], "fish");
    assert!(document["script"].as_str().unwrap().contains("complete -c fastpay-merchant"));
}

#[test]
fn a_log_has_colours_on_a_terminal_alone_and_is_json_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoints, init) = wallet(folder.path());
    std::fs::write(folder.path().join("endpoints.json"), endpoints.to_string()).unwrap();
    let init: Vec<_> = init.iter().map(String::as_str).chain(["--listen", "127.0.0.1:0"]).collect();
    assert!(run(folder.path(), &init).status.success());
    let first_line = |format: &str| {
        let mut service =
            command(folder.path(), &["--log-format", format, "run"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(service.stderr.take().unwrap()).read_line(&mut line).unwrap();
        service.kill().unwrap();
        service.wait().unwrap();
        line
    };
    let line = first_line("text");
    assert!(line.contains(" INFO ") && line.contains("serving") && !line.contains('\u{1b}'), "{line}");
    let line = first_line("json");
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (event["level"].as_str(), event["fields"]["message"].as_str()),
        (Some("INFO"), Some("serving")),
        "{line}"
    );
}

//! The command creates its files, and reports what is wrong.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use alloy::primitives::U256;
use fastpay_core::AuthorityName;

const OPERATIONS: &str = include_str!("../../../docs/OPERATIONS.md");

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpay-relayer"));
    command.args(arguments).current_dir(folder).env_remove("FASTPAY_RELAYER_PASSPHRASE").env("RUST_LOG", "debug");
    command.stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> (Output, String) {
    let output = command(folder, arguments).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, words)
}

/// Of an authority that nobody reaches.
fn write_endpoints(folder: &Path, shard: &str) {
    let authority = serde_json::json!({ "name": AuthorityName([5; 32]), "shards": [shard] });
    let endpoints = serde_json::json!({ "authorities": [authority] });
    std::fs::write(folder.join("endpoints.json"), endpoints.to_string()).unwrap();
}

/// With endpoints that were there for the command, and no longer: `run` ends because of that.
fn init(folder: &Path, more: &[&str]) -> Output {
    write_endpoints(folder, "http://127.0.0.1:1");
    let made = init_as_it_is(folder, more);
    std::fs::remove_file(folder.join("endpoints.json")).unwrap();
    made
}

fn init_as_it_is(folder: &Path, more: &[&str]) -> Output {
    let contract = "0x0101010101010101010101010101010101010101";
    let given = ["init", "--rpc-url", "http://127.0.0.1:1", "--chain-id", "31337", "--contract", contract];
    run(folder, &[&given, more].concat()).0
}

#[test]
fn an_ethereum_providers_key_in_the_environment_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    for (urls, arguments, expected) in [
        ("https://eth.example/v3/0123456789", &["run", "--help"][..], "[env: FASTPAY_RELAYER_RPC_URLS]"),
        ("eth.example/v3/0123456789", &["run"], "invalid value for '--rpc-url <RPC_URLS>'"),
    ] {
        let output = command(folder.path(), arguments).env("FASTPAY_RELAYER_RPC_URLS", urls).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains(expected) && !said.contains("0123456789"), "{said}");
    }
}

#[test]
fn init_makes_a_configuration_that_run_understands() {
    let folder = tempfile::tempdir().unwrap();
    let made = init(folder.path(), &["--unencrypted-key"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(init(folder.path(), &["--unencrypted-key"]).status.code(), Some(3), "nothing is overwritten");
    let (output, words) = run(folder.path(), &["run"]);
    assert!(output.status.code() == Some(3) && words.contains("endpoints.json"), "{words}");
    let (output, words) = run(folder.path(), &["status", "--json"]);
    assert!(output.status.code() == Some(3) && words.contains("this relayer has not run yet"), "{words}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["error"]["kind"], "config", "{document}");
    let (output, _) = run(folder.path(), &["status", "--json", "--colour"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &document["error"]["kind"]), (Some(2), &"argument".into()), "{document}");
}

#[test]
fn init_leaves_no_key_beside_a_configuration_of_before() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("relayer.toml"), "mine").unwrap();
    let refused = init(folder.path(), &["--unencrypted-key"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("relayer.toml"), "{refused:?}");
    assert!(!folder.path().join("gas.key").exists());
    assert_eq!(std::fs::read_to_string(folder.path().join("relayer.toml")).unwrap(), "mine");
}

#[test]
fn init_makes_no_key_where_the_endpoints_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |words: &str| {
        let output = init_as_it_is(folder.path(), &["--unencrypted-key"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(3) && said.contains(words), "{said}");
        assert!(!folder.path().join("gas.key").exists() && !folder.path().join("relayer.toml").exists());
    };
    refused("cannot read the authorities' endpoints from /");
    std::fs::write(folder.path().join("endpoints.json"), "{").unwrap();
    refused("endpoints.json is not a list of endpoints");
    std::fs::write(folder.path().join("endpoints.json"), r#"{"authorities": []}"#).unwrap();
    refused("endpoints.json lists no authority");
    write_endpoints(folder.path(), "not an address");
    refused("not an address");
    write_endpoints(folder.path(), "http://127.0.0.1:1");
    assert!(init_as_it_is(folder.path(), &["--unencrypted-key"]).status.success());
}

#[test]
fn endpoints_are_looked_for_where_the_command_runs_and_found_from_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    write_endpoints(folder.path(), "http://127.0.0.1:1");
    std::fs::create_dir(folder.path().join("conf")).unwrap();
    let made = init_as_it_is(folder.path(), &["--unencrypted-key", "--config", "conf/relayer.toml"]);
    assert!(made.status.success(), "{made:?}");
    let text = std::fs::read_to_string(folder.path().join("conf/relayer.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let found = Path::new(table["endpoints"].as_str().unwrap());
    assert!(found.is_absolute() && found.exists(), "{found:?}");
}

#[test]
fn a_relayer_that_works_for_nothing_is_warned() {
    let folder = tempfile::tempdir().unwrap();
    assert!(init(folder.path(), &["--unencrypted-key"]).status.success());
    let path = folder.path().join("relayer.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("anyone can spend this relayer's"), "{text}");
    let warning = "below_cost is \"pay\": anyone can spend";
    assert!(!run(folder.path(), &["run"]).1.contains(warning), "it does not by default");
    std::fs::write(&path, text.replace("below_cost = \"leave\"", "below_cost = \"pay\"")).unwrap();
    assert_eq!(run(folder.path(), &["run"]).1.matches(warning).count(), 1);
    let help = run(folder.path(), &["--help"]).0.stdout;
    assert!(String::from_utf8_lossy(&help).starts_with("Submit FastPay redemptions"));
}

#[test]
fn a_wrong_or_absent_passphrase_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("right"), "right").unwrap();
    std::fs::write(folder.path().join("wrong"), "wrong").unwrap();
    assert_eq!(init(folder.path(), &[]).status.code(), Some(5), "a key is encrypted unless told otherwise");
    assert!(init(folder.path(), &["--passphrase-file", "right"]).status.success());
    let (output, words) = run(folder.path(), &["run", "--passphrase-file", "wrong"]);
    assert!(output.status.code() == Some(5) && words.contains("wrong passphrase"), "{words}");
    let text = std::fs::read_to_string(folder.path().join("relayer.toml")).unwrap();
    let without: Vec<_> = text.lines().filter(|line| !line.starts_with("passphrase_file")).collect();
    std::fs::write(folder.path().join("relayer.toml"), without.join("\n")).unwrap();
    let (output, words) = run(folder.path(), &["run"]);
    assert!(output.status.code() == Some(5) && words.contains("needs a passphrase"), "{words}");
    std::fs::remove_file(folder.path().join("gas.key")).unwrap();
    assert_eq!(run(folder.path(), &["run"]).0.status.code(), Some(4));
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let folder = tempfile::tempdir().unwrap();
    let closed_pipe = || std::io::pipe().unwrap().1;
    let code_to = |out: Stdio, arguments: &[&str]| {
        command(folder.path(), arguments).stdout(out).stderr(closed_pipe()).status().unwrap().code()
    };
    let code = |arguments: &[&str]| code_to(closed_pipe().into(), arguments);
    write_endpoints(folder.path(), "http://127.0.0.1:1");
    let contract = format!("0x{}", "01".repeat(20));
    let init = ["init", "--rpc-url", "http://127.0.0.1:1", "--chain-id", "1", "--contract", &contract];
    assert_eq!(code(&[&init[..], &["--unencrypted-key"]].concat()), Some(0));
    assert!(folder.path().join("relayer.toml").exists());
    assert_eq!(code(&["status"]), Some(3));
    // It has something to log before it finds that.
    std::fs::remove_file(folder.path().join("endpoints.json")).unwrap();
    assert_eq!(code(&["run"]), Some(3));
    // A lost answer is an error; a closed pipe is not.
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(code(&["completions", "bash"]), Some(0));
    assert_eq!([["completions", "bash"], ["--help", "--version"]].map(|words| code_to(full(), &words)), [Some(16); 2]);
}

#[test]
fn a_shell_learns_to_complete_it() {
    let folder = tempfile::tempdir().unwrap();
    let (output, words) = run(folder.path(), &["completions", "zsh"]);
    assert!(output.status.success(), "{words}");
    let script = String::from_utf8(output.stdout).unwrap();
    assert!(script.starts_with("#compdef fastpay-relayer") && script.contains("--passphrase-file"), "{script}");
}

#[test]
fn a_log_has_colours_on_a_terminal_alone_and_is_json_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    assert!(init(folder.path(), &["--unencrypted-key"]).status.success());
    let path = folder.path().join("relayer.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("below_cost = \"leave\"", "below_cost = \"pay\"")).unwrap();
    let (_, words) = run(folder.path(), &["run"]);
    assert!(words.contains(" WARN ") && !words.contains('\u{1b}'), "{words}");
    let (_, words) = run(folder.path(), &["--log-format", "json", "run"]);
    let event: serde_json::Value = serde_json::from_str(words.lines().next().unwrap()).unwrap();
    assert_eq!(event["level"], "WARN", "{words}");
}

#[test]
fn a_missing_file_and_an_unknown_key_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (output, words) = run(folder.path(), &["run"]);
    assert!(output.status.code() == Some(3) && words.contains("relayer.toml"), "{words}");
    std::fs::write(folder.path().join("relayer.toml"), "colour = 1\n").unwrap();
    let (output, words) = run(folder.path(), &["run"]);
    assert!(output.status.code() == Some(3) && words.contains("colour"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_redeems_what_there_is_and_status_shows_it() {
    let scene = crate::scene::Scene::new(fastpay_testkit::anvil::Mining::EveryMs(100)).await;
    scene.publish(0..2);
    let folder = tempfile::tempdir().unwrap();
    assert!(init(folder.path(), &["--unencrypted-key"]).status.success());
    let key = scene.anvil.rich_key(0).to_bytes();
    std::fs::write(folder.path().join("gas.key"), key.to_string()).unwrap();
    let path = folder.path().join("relayer.toml");
    let contract = scene.primary.contract().to_string();
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("0x0101010101010101010101010101010101010101", &contract);
    std::fs::write(&path, text.replace("below_cost = \"leave\"", "below_cost = \"pay\"")).unwrap();
    let (url, endpoints) = (scene.anvil.url().to_string(), scene.config.endpoints.display().to_string());
    let here = folder.path().to_owned();
    let run_once = move || run(&here, &["run", "--once", "--rpc-url", &url, "--endpoints", &endpoints]);
    let (output, words) = tokio::task::spawn_blocking(run_once).await.unwrap();
    assert!(output.status.success(), "{words}");
    let digits = key.to_string().trim_start_matches("0x").to_lowercase();
    assert!(words.contains("DEBUG") && !words.to_lowercase().contains(&digits), "a log holds no secret");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["redeemed"], 2);
    assert_eq!(scene.paid_out().await, 200);
    let (output, words) = run(folder.path(), &["status", "--json"]);
    assert!(output.status.success(), "{words}");
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&status["totals"]["redeemed"], &status["items"]), (&2.into(), &0.into()));
    assert_documented(&status);
    assert!(status["decision"]["gasEach"].is_u64() && status["totals"]["redeemedByOthers"].is_u64(), "{status}");
    // The configured node is away: all else is on disk.
    let address = scene.anvil.rich_key(0).address();
    assert_eq!(status["gas"]["address"], serde_json::json!(address));
    assert!(status["gas"]["error"].as_str().unwrap().contains("does not answer"), "{status}");
    let text = |words: &[&str]| String::from_utf8(run(folder.path(), words).0.stdout).unwrap();
    assert!(text(&["status"]).contains("not known: the Ethereum node http://127.0.0.1:1 does not answer"));
    let url = scene.anvil.url().to_string();
    let (gas, shown) = tokio::task::block_in_place(|| {
        let document: serde_json::Value =
            serde_json::from_str(&text(&["status", "--json", "--rpc-url", &url])).unwrap();
        (document["gas"].clone(), text(&["status", "--rpc-url", &url]))
    });
    let balance = scene.primary.ether_balance(address).await.unwrap();
    assert_eq!(gas["balanceWei"], balance.to_string());
    // 9,999 ETH and more are a great many redemptions, each of which costs more than its 60,000 gas.
    let (count, price) = (gas["redemptions"].as_u64().unwrap(), gas["gasPriceWei"].as_u64().unwrap());
    let most = balance / U256::from(price) / U256::from(60_000);
    assert!(price > 0 && count > 0 && U256::from(count) < most, "{gas}");
    assert!(shown.contains(" ETH of 0x") && shown.contains("enough for about"), "{shown}");
}

/// What `status --json` writes has the fields that docs/OPERATIONS.md lists, no others, and in one case of names.
fn assert_documented(status: &serde_json::Value) {
    let (_, table) = OPERATIONS.split_once("| field of `status --json` | what |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let (mut fields, mut inner) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.split('`').skip(1).step_by(2));
        fields.extend(cells.next().unwrap());
        inner.extend(cells.next().unwrap());
    }
    let keys = |value: &serde_json::Value| -> BTreeSet<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(status), fields.iter().map(|field| field.to_string()).collect());
    for part in ["totals", "decision"] {
        assert!(keys(&status[part]).iter().all(|key| inner.contains(key.as_str())), "{part} of {inner:?}");
    }
    assert!(fields.iter().chain(&inner).all(|name| !name.contains('_')), "{fields:?} {inner:?}");
}

/// A configuration for a ledger is made only for one that there is.
#[tokio::test]
async fn init_makes_a_configuration_for_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    write_endpoints(folder.path(), "http://127.0.0.1:1");
    let given = |more: &[&str]| {
        let init = ["init", "--ledger", "ledger.toml", "--unencrypted-key", "--committee"];
        run(folder.path(), &[&init, more].concat())
    };
    let (missing, words) = given(&["0"]);
    assert!(missing.status.code() == Some(3) && words.contains("ledger.toml"), "{words}");
    let bank = fastpay_core::AccountKey::ed25519([1; 32]);
    let genesis = fastpay_testkit::TestCommittee::new(4).committee;
    let time = fastpay_ledger_statement::Time(fastpay_program::Clock::system().now_ms() - 60_000);
    let ledger = fastpay_ledger_client::scripted::ScriptedLedger::start(&genesis, &bank, time).await;
    let _ = ledger.write(folder.path());
    let (nobody, words) = given(&["7"]);
    assert!(nobody.status.code() == Some(3) && words.contains("no committee 7"), "{words}");
    assert!(!folder.path().join("gas.key").exists(), "nothing is left behind");
    let (both, _) = given(&["0", "--chain-id", "1"]);
    assert_eq!(both.status.code(), Some(2));
    let (made, words) = given(&["0"]);
    assert!(made.status.success() && String::from_utf8_lossy(&made.stdout).contains("the fees go to"), "{words}");
    // It runs: the state is of this ledger from now on.
    let mut running = command(folder.path(), &["run"]).stderr(Stdio::null()).spawn().unwrap();
    let state = folder.path().join("relayer-data").join("state.json");
    for _ in 0..200 {
        if state.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let (shown, words) = run(folder.path(), &["status"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("ledger ") && text.contains("reserve ") && !text.contains("gas"), "{text} {words}");
}

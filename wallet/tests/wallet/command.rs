//! The `fastpay` command: what it prints, how it ends, and that killing it at any moment costs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastpay_core::{AccountId, AccountKey, Amount, Asset, Committees, Deposit, PrimaryAddress, TransactionIndex};
use fastpay_ethereum::Finality;
use fastpay_testkit::carol;
use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_wallet::folder::{AssetInfo, Config, Folder, KnownCommittees, PrimarySettings};
use serde_json::Value;

const ETHER: u128 = 1_000_000_000_000_000_000;

fn fastpay(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpay"));
    command.args(arguments).arg("--home").arg(home);
    command.env("FASTPAY_PASSPHRASE", "the passphrase").stdin(Stdio::null());
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    fastpay(home, arguments).output().unwrap()
}

/// Runs with `--json` and returns the one document on standard output, and the exit code.
fn json(home: &Path, arguments: &[&str]) -> (Value, i32) {
    let output = fastpay(home, arguments).arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?} {errors}"));
    if output.status.success() {
        assert_documented(arguments, &value);
    }
    (value, output.status.code().unwrap())
}

const CLI_PAGE: &str = include_str!("../../../docs/CLI.md");

/// The rows of the page's table under a heading of these columns, without their marks.
fn documented(columns: &str) -> Vec<(String, String)> {
    let table = CLI_PAGE.split_once(columns).unwrap().1.split("\n\n").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', ""));
        (cells.next().unwrap(), cells.next().unwrap())
    })
    .collect()
}

/// What a command answered has the fields that docs/CLI.md says, in its table's row, and no others; so has each entry of
/// its lists.
fn assert_documented(arguments: &[&str], answer: &Value) {
    let words = |count: usize| arguments.iter().take(count).copied().collect::<Vec<_>>().join(" ");
    assert_fields(&[&words(1), &words(2)], answer);
    let entries = |list: &str| answer[list].as_array().cloned().unwrap_or_default();
    match words(1).as_str() {
        "history" => entries("events").iter().for_each(|event| {
            assert_fields(&[&format!("history: {}", event["direction"].as_str().unwrap())], event);
        }),
        "receive" => entries("payments").iter().for_each(|payment| assert_fields(&["receive: each"], payment)),
        "status" => entries("authorities").iter().for_each(|authority| assert_fields(&["status: each"], authority)),
        _ => {}
    }
}

/// The fields of one of these rows; those after its semicolon may be missing.
fn assert_fields(rows: &[&str], found: &Value) {
    let said = documented("| command | fields |");
    let row = said.iter().find(|(commands, _)| commands.split(", ").any(|command| rows.contains(&command)));
    let (_, fields) = row.unwrap_or_else(|| panic!("{rows:?} have no row in docs/CLI.md"));
    let (always, sometimes) = fields.split_once(';').unwrap_or((fields, ""));
    let names =
        |text: &str| text.split('(').next().unwrap().split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    let (always, sometimes) = (names(always), names(sometimes));
    let found: BTreeSet<_> = found.as_object().unwrap().keys().cloned().collect();
    assert!(found.is_superset(&always), "{rows:?}: {found:?} lacks some of {always:?}");
    let others: Vec<_> = found.difference(&always).filter(|name| !sometimes.contains(*name)).collect();
    assert!(others.is_empty(), "{rows:?}: {others:?} are not documented");
}

#[test]
fn the_documented_kinds_and_exit_codes_are_those_of_the_code() {
    let said = documented("| kind | exit code |");
    let of_code = fastpay_wallet::ErrorKind::ALL.map(|kind| (kind.to_string(), kind.exit_code().to_string()));
    assert_eq!(said, of_code);
}

/// A wallet set up for an in-process committee, as `init` leaves it; nobody answers as the Primary.
fn set_up(committee: &FakeCommittee, home: &Path) {
    let endpoints = home.join("endpoints.json");
    std::fs::write(&endpoints, serde_json::to_vec(&committee.endpoints).unwrap()).unwrap();
    let domain = committee.committee.domain;
    let primary = PrimarySettings {
        rpc_urls: vec!["http://127.0.0.1:9".parse().unwrap()],
        chain_id: domain.chain_id(),
        contract: domain.contract(),
        finality: Finality::default(),
        sender: fastpay_ethereum::SenderConfig::default(),
    };
    let config = Config { endpoints, primary: Some(primary.into()), genesis: None, traces: None };
    let folder = Folder::new(home);
    config.write(&folder.config_path(), false).unwrap();
    let committees = Committees::new(committee.committee.committee.clone()).unwrap();
    folder.learn_committees(&KnownCommittees::new(&domain, committees)).unwrap();
}

fn new_key(home: &Path, name: &str, kind: &str) -> AccountId {
    let (key, code) = json(home, &["keys", "new", name, kind]);
    assert_eq!(code, 0, "{key}");
    key["account"].as_str().unwrap().parse().unwrap()
}

/// A pipe without a reader.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_pay_each_other_while_the_primary_is_away() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    set_up(&committee, home);
    let (alice, bob) = (new_key(home, "alice", "--ed25519"), new_key(home, "bob", "--ethereum"));
    committee.fund(1, alice, 10 * ETHER, &[0, 1, 2, 3]);

    let (paid, code) = json(home, &["pay", &bob.to_string(), "2.5", "--from", "alice", "--memo", "lunch"]);
    assert_eq!((code, paid["state"].as_str(), paid["sequence"].as_u64()), (0, Some("settled"), Some(0)), "{paid}");
    assert_eq!(paid["value"]["units"], "2500000000000000000");
    let (received, code) = json(home, &["receive", "--from", "bob"]);
    let payment = &received["payments"][0];
    assert_eq!((code, payment["memo"].as_str(), payment["value"]["amount"].as_str()), (0, Some("lunch"), Some("2.5")));
    let (_, code) = json(home, &["pay", "alice", "0.000000000000000001", "--from", "bob"]);
    assert_eq!(code, 0);
    let (balance, code) = json(home, &["balance", "--from", "bob"]);
    assert_eq!((code, balance["balances"][0]["amount"].as_str()), (0, Some("2.499999999999999999")), "{balance}");
    assert!(balance["ethereum"]["error"].as_str().unwrap().contains("does not answer"), "{balance}");
    let (history, _) = json(home, &["history", "--from", "bob"]);
    assert_eq!(history["events"].as_array().unwrap().len(), 2, "{history}");
    // A reader that goes away (`2>&1 | true`) is no reason to panic, or to leave a payment half done.
    let mut deaf =
        fastpay(home, &["pay", "bob", "0.5", "--from", "alice"]).stdout(closed_pipe()).stderr(closed_pipe()).spawn();
    assert_eq!(deaf.as_mut().unwrap().wait().unwrap().code(), Some(0));
    let (balance, _) = json(home, &["balance", "--from", "bob"]);
    assert_eq!(balance["balances"][0]["amount"], "2.999999999999999999", "{balance}");
    let text = String::from_utf8(run(home, &["history", "--from", "alice"]).stdout).unwrap();
    assert!(text.contains("Z  #0 pays 2.5 ETH") && text.contains("(lunch) [settled]"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_is_an_error_and_one_that_nobody_wants_is_none() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let (alice, bob) = (new_key(home, "alice", "--ed25519"), new_key(home, "bob", "--ed25519"));
    committee.fund(1, alice, 10 * ETHER, &[0, 1, 2, 3]);
    let told = |arguments: &[&str], out: Stdio| {
        let output = fastpay(home, arguments).stdout(out).stderr(Stdio::piped()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let pay = ["pay", "bob", "1", "--from", "alice"];
    for arguments in [&["--help"][..], &["--version"], &["address", "--from", "bob"], &["keys", "list", "--json"], &pay]
    {
        let (code, said) = told(arguments, full());
        assert!(code == 16 && said.contains("error: the answer cannot be written"), "{arguments:?}: {said}");
        let (code, said) = told(arguments, closed_pipe());
        assert!(code == 0 && !said.contains("error"), "{arguments:?}: {said}");
    }
    // What went wrong first is what the exit code says.
    assert_eq!(told(&["pay", "bob", "-1", "--from", "alice", "--json"], full()).0, 2);
    // Both payments were made. Whoever follows is told of each as it comes, so another one comes in between.
    let (balance, _) = json(home, &["balance", "--from", "bob"]);
    assert_eq!(balance["balances"][0]["amount"], "2", "{balance}");
    let follow = ["receive", "--follow", "--from", "bob"];
    assert_eq!(told(&follow, full()).0, 16);
    assert_eq!(json(home, &pay).1, 0);
    let (code, said) = told(&follow, closed_pipe());
    assert!(code == 0 && !said.contains("error"), "{said}");
    assert_eq!(json(home, &["receive", "--from", "bob"]).0["payments"], Value::Array(Vec::new()), "all are taken in");
    assert_eq!(committee.authorities[0].balance(bob), i128::try_from(3 * ETHER).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_its_kind_its_exit_code_and_says_what_to_do() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let check = |arguments: &[&str], kind: &str, code: i32, says: &str| {
        let (answer, found) = json(home, arguments);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((answer["error"]["kind"].as_str(), found), (Some(kind), code), "{arguments:?}: {answer}");
        assert!(message.contains(says), "{arguments:?}: {message}");
    };
    check(&["balance"], "config", 3, "fastpay init");
    check(&["keys", "new", "Wrong Name", "--ed25519"], "key", 4, "letters a-z");
    check(&["keys", "new", "k"], "argument", 2, "--ed25519");
    set_up(&committee, home);
    check(&["balance"], "key", 4, "fastpay keys new");
    let alice = new_key(home, "alice", "--ed25519");
    let to = &committee_account().to_string();
    check(&["pay", to, "1"], "funds", 6, "has 0 ETH, and 1 ETH are needed");
    check(&["pay", to, "-3"], "argument", 2, "\"-3\" is not an amount");
    check(&["redeem", "-3", "--to", &format!("0x{}", "11".repeat(20))], "argument", 2, "\"-3\" is not an amount");
    check(
        &["keys", "new", "x", "--ed25519", "--passphrase-file", "/nope"],
        "argument",
        2,
        "/nope of --passphrase-file",
    );
    check(&["init", "--endpoints", "e.json"], "argument", 2, "--genesis");
    check(
        &["init", "--endpoints", "e.json", "--contract", &format!("0x{}", "11".repeat(20))],
        "argument",
        2,
        "--rpc-url",
    );
    let contract = &format!("0x{}", "11".repeat(20));
    let no_http = ["init", "--endpoints", "e.json", "--contract", contract, "--rpc-url", "localhost:8545"];
    check(&no_http, "primary", 9, "begins with http://");
    let nothing = String::from_utf8(run(home, &["history", "--account", to]).stdout).unwrap();
    assert!(nothing.contains("this wallet has no entries of"), "{nothing}");
    check(&["pay", "alice", "1"], "argument", 2, "the paying account itself");
    check(&["pay", to, "1,5"], "argument", 2, "such as 1.5");
    check(&["pay", to, "max"], "argument", 2, "has none of this asset");
    check(&["pay", to, "1", "--asset", "DEMO"], "argument", 2, "knows no token with the symbol");
    check(&["history", "--since", "yesterday"], "argument", 2, "write it as 2026-01-31");
    check(&["show", "0x12"], "argument", 2, "is no digest");
    check(&["show", &format!("0x{}", "11".repeat(32))], "argument", 2, "no transfer with this digest");
    check(&["show", "alice/x"], "argument", 2, "is not the number of an order");
    check(&["show", "alice/0"], "argument", 2, "has a certificate of #0");
    check(&["verify", "/nope"], "storage", 13, "/nope");
    check(&["verify", &home.join("config.toml").to_string_lossy()], "argument", 2, "holds no certificate");
    check(&["keys", "use", "nobody"], "key", 4, "no key named nobody");
    let help = String::from_utf8(run(home, &["--help"]).stdout).unwrap();
    assert!(help.starts_with("Deposit, pay and redeem with FastPay"), "{help}");
    let alone = Command::new(env!("CARGO_BIN_EXE_fastpay")).env("FASTPAY_HOME", home).output().unwrap();
    let said = String::from_utf8(alone.stderr).unwrap();
    assert!(alone.status.code() == Some(2) && said.starts_with("Deposit, pay and redeem"), "{said}");
    check(&["pay", to, "1.0000000000000000001"], "argument", 2, "more decimals");
    check(&["pay", to, "1e9"], "argument", 2, "decimal point");
    check(&["pay", "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045", "1"], "argument", 2, "checksum");
    check(&["pay", "nobody", "1"], "key", 4, "fastpay keys list");
    check(&["pay", to], "argument", 2, "give the amount");
    check(&["pay", "fastpay:nonsense", "1"], "argument", 2, "this payment link cannot be used");
    check(&["pay", "ethereum:0x12", "1"], "argument", 2, "not an account (fp1… or 0x…), a name or a payment link");
    check(
        &["pay", "https://wallet.example/pay", "1"],
        "argument",
        2,
        "not an account (fp1… or 0x…), a name or a payment link",
    );
    check(&["contacts", "add", "alice", to], "contact", 15, "name of a key");
    check(&["contacts", "add", "Carol", to], "key", 4, "letters a-z");
    check(&["contacts", "add", "carol", "nonsense"], "argument", 2, "not an account");
    check(&["contacts", "remove", "carol"], "contact", 15, "fastpay contacts list");
    check(&["link", "--amount", "0"], "argument", 2, "its amount is zero");
    check(&["link", "--label", &"x".repeat(65)], "argument", 2, "at most 64 are shown");
    check(&["deposit", "1"], "primary", 9, "does not answer");
    check(&["redeem", "1"], "argument", 2, "--to");
    check(&["keys", "new", "alice", "--ed25519"], "key", 4, "choose another name");
    check(&["keys", "import", "x", "--ethereum", "--secret-file", "/nope"], "key", 4, "cannot use /nope");
    check(&["keys", "import", "x", "--ethereum", "--keystore", "/nope"], "key", 4, "cannot use /nope");
    let mistyped = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96046";
    check(&["redeem", "1", "--to", mistyped], "argument", 2, "checksum");
    check(&["redeem", "1", "--to", "bob"], "argument", 2, "is not an Ethereum address");
    // Who pays for the gas is known before anything is ordered.
    check(&["redeem", "1", "--self", "--to", &format!("0x{}", "11".repeat(20))], "key", 4, "no Ethereum key");
    new_key(home, "bob", "--ethereum");
    check(&["pay", to, "1"], "key", 4, "--from");

    committee.fund(1, alice, ETHER, &[0, 1, 2, 3]);
    let mut wrong = fastpay(home, &["pay", to, "1", "--from", "alice", "--json"]);
    let output = wrong.env("FASTPAY_PASSPHRASE", "another").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    committee.authorities[0].play(Role::Down);
    committee.authorities[1].play(Role::Down);
    check(&["pay", to, "1", "--from", "alice"], "unreachable", 8, "2 of the 3");
    committee.authorities.iter().for_each(|authority| authority.play(Role::Silent));
    check(&["balance", "--from", "alice"], "unreachable", 8, "0 of the 3");
    // Said after five seconds, and again after ten: far enough from both on a busy machine.
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    let waiting = run(home, &["receive", "--from", "alice", "--wait", "7"]);
    let said = String::from_utf8(waiting.stderr).unwrap();
    assert_eq!((waiting.status.code(), said.matches("still waiting").count()), (Some(0), 1), "{said}");
    std::fs::write(home.join("config.toml"), "colour = 1").unwrap();
    check(&["balance"], "config", 3, "not a valid configuration");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_paid_as_requested_after_confirmation() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let alice = new_key(home, "alice", "--ed25519");
    committee.fund(1, alice, 10 * ETHER, &[0, 1, 2, 3]);
    let to = committee_account().to_string();
    let (contact, code) = json(home, &["contacts", "add", "carol", &to]);
    assert_eq!((code, contact["account"].as_str()), (0, Some(to.as_str())), "{contact}");
    assert_eq!(json(home, &["contacts", "add", "carol", &alice.to_string()]).1, 15);
    let (listed, _) = json(home, &["contacts", "list"]);
    assert_eq!(listed["contacts"][0]["name"], "carol");
    assert_eq!(json(home, &["keys", "new", "carol", "--ed25519"]).1, 4);

    let ask = ["link", "--account", "carol", "--amount", "2.5", "--memo", "invoice 7", "--expires-in", "600"];
    let (asked, code) = json(home, &ask);
    assert_eq!((code, asked["units"].as_str()), (0, Some("2500000000000000000")), "{asked}");
    let link = asked["link"].as_str().unwrap();
    let refused = |arguments: &[&str], says: &str| {
        let (answer, code) = json(home, arguments);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(code == 2 && message.contains(says), "{arguments:?}: {answer}");
    };
    refused(&["pay", link], "--yes");
    refused(&["pay", link, "3", "--yes"], "sets the amount");
    refused(&["pay", link, "--memo", "other", "--yes"], "sets the memo");
    refused(&["pay", link, "--asset", "ETH", "--yes"], "sets the asset");
    let other = link.replacen('@', "@1", 1);
    refused(&["pay", &other, "--yes"], "nothing was signed");
    let (open, _) = json(home, &["link", "--account", "carol", "--web", "https://wallet.example/pay"]);
    let open = open["link"].as_str().unwrap();
    refused(&["pay", open, "--yes"], "has no amount");
    refused(&["pay", &format!("{open}?expires=1"), "1", "--yes"], "expired");
    refused(&["pay", &format!("{open}?expires=4503599627370476"), "1", "--yes"], "is not a number in range");
    let (brief, _) = json(home, &["link", "--account", "carol", "--amount", "1", "--expires-in", "30"]);
    pay_too_late(home, &brief);
    // Without a terminal nobody is asked, and nothing is paid.
    assert_eq!(run(home, &["pay", link]).status.code(), Some(2));

    let (paid, code) = json(home, &["pay", link, "--yes"]);
    assert_eq!((code, paid["memo"].as_str(), paid["recipient"].as_str()), (0, Some("invoice 7"), Some(to.as_str())));
    assert_eq!(paid["value"]["units"], "2500000000000000000");
    assert_eq!(json(home, &["pay", open, "1", "--yes"]).1, 0);
    assert_eq!(json(home, &["pay", "carol", "1"]).1, 0);
    committee.until_so_many(3, |authority| authority.balance(committee_account()) == 4_500_000_000_000_000_000).await;
    assert_eq!(json(home, &["contacts", "remove", "carol"]).1, 0);

    let code = String::from_utf8(run(home, &["link", "--qr"]).stdout).unwrap();
    assert!(code.contains('█') && code.trim_end().lines().last().unwrap().starts_with("fastpay:fp1"), "{code}");
    let script = run(home, &["completions", "bash"]);
    assert!(script.status.success() && String::from_utf8(script.stdout).unwrap().contains("contacts"));
}

/// A payer who finds the passphrase only when the link has expired.
#[expect(clippy::disallowed_methods, reason = "a link says until when it is to be paid, in the time of day")]
fn pay_too_late(home: &Path, link: &Value) {
    let pipe = home.join("passphrase");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let arguments = ["pay", link["link"].as_str().unwrap(), "--yes", "--passphrase-file", pipe.to_str().unwrap()];
    let mut payer = fastpay(home, &arguments).stderr(Stdio::piped()).spawn().unwrap();
    let expires = UNIX_EPOCH + Duration::from_secs(link["expires"].as_u64().unwrap() + 1);
    while SystemTime::now() <= expires {
        std::thread::sleep(Duration::from_millis(50));
        assert!(payer.try_wait().unwrap().is_none(), "it waits for the passphrase");
    }
    std::fs::write(&pipe, "the passphrase").unwrap();
    let mut said = String::new();
    payer.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(payer.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("Nothing was signed") && said.contains("expired"), "{said}");
    std::fs::remove_file(&pipe).unwrap();
}

fn committee_account() -> AccountId {
    carol().account()
}

#[test]
fn no_secret_is_ever_printed() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    let file = folder.path().join("secret");
    std::fs::write(&file, format!("0x{secret}\n")).unwrap();
    let file = file.to_str().unwrap();
    for arguments in [
        &["keys", "import", "rich", "--ethereum", "--secret-file", file][..],
        &["keys", "list"],
        &["keys", "export", "rich"],
        &["address", "--json"],
    ] {
        let output = run(folder.path(), arguments);
        assert!(output.status.success(), "{output:?}");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).unwrap().to_lowercase();
        assert!(!printed.contains(secret) && !printed.contains("the passphrase"), "{printed}");
    }
    // What was exported can be imported elsewhere.
    let exported = folder.path().join("exported.json");
    std::fs::write(&exported, run(folder.path(), &["keys", "export", "rich"]).stdout).unwrap();
    let other = tempfile::tempdir().unwrap();
    let exported = exported.to_str().unwrap();
    let (key, code) = json(other.path(), &["keys", "import", "again", "--ethereum", "--keystore", exported]);
    assert_eq!((code, key["account"].as_str()), (0, Some("0x70997970C51812dc3A010C7d01b50e0d17dc79C8")), "{key}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_it_signs_one_order_for_each_number_and_loses_none() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let key = AccountKey::ed25519([9; 32]);
    let folder = Folder::new(home);
    folder.keys().import("alice", fastpay_wallet::folder::KeyKind::Ed25519, &[9; 32], "the passphrase").unwrap();
    committee.fund(1, key.account(), 1000 * ETHER, &[0, 1, 2, 3]);
    committee.authorities.iter().for_each(|authority| authority.play(Role::Slow(Duration::from_millis(15))));
    let to = committee_account().to_string();
    let start = std::time::Instant::now();
    assert!(run(home, &["pay", &to, "100"]).status.success());
    let whole = start.elapsed();
    // From before the wallet is open to after the payment is settled.
    for step in 0..16_u32 {
        let amount = (step + 1).to_string();
        let mut child =
            fastpay(home, &["pay", &to, &amount]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * step / 14);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (_, code) = json(home, &["resume"]);
    assert_eq!(code, 0);
    let entries = folder.orders(key.account()).entries().unwrap();
    let numbers: Vec<_> = entries.iter().map(|entry| entry.sequence.0).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert!((1..17).contains(&numbers.len()), "the first kill comes before an order: {}", numbers.len());
    let sent: u128 = entries.iter().map(|entry| entry.transfer().unwrap().amount().0).sum();
    let next = numbers.len() as u64;
    committee.until_so_many(3, |authority| authority.next_sequence(key.account()) == next).await;
    let mut orders: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for authority in &committee.authorities {
        if authority.next_sequence(key.account()) == next {
            assert_eq!(authority.balance(committee_account()), i128::try_from(sent).unwrap());
        }
        for order in authority.orders_seen() {
            orders.entry(order.transfer.sequence().0).or_default().insert(format!("{order:?}"));
        }
    }
    assert!(orders.values().all(|orders| orders.len() == 1), "{orders:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_checked_whole_and_paid_once() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let (alice, bob) = (new_key(home, "alice", "--ed25519"), new_key(home, "bob", "--ed25519"));
    let carol = new_key(home, "carol", "--ethereum");
    committee.fund(1, alice, 10 * ETHER, &[0, 1, 2, 3]);
    let list = home.join("list.csv");
    let path = list.to_str().unwrap();
    let pay = |more: &[&'static str]| json(home, &[&["pay", "--csv", path, "--from", "alice"], more].concat());

    // All errors at once, each with its line.
    std::fs::write(
        &list,
        format!(
            "recipient,amount,memo\nbob,1,\nnobody,1,\nbob,0,\n\nbob,-1\nbob\nbob,1,a memo of more than 32 bytes in all\n{},1,\n",
            AccountId::PRIVATE_POOL
        ),
    )
    .unwrap();
    let (refused, code) = pay(&["--yes"]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(code, 2, "{refused}");
    for line in
        ["line 3:", "line 4:", "line 6:", "line 7:", "line 8:", "line 9:", "6 lines are invalid", "nothing was signed"]
    {
        assert!(message.contains(line), "{line} {message}");
    }
    assert_eq!(pay(&["--max-outputs", "257"]).1, 2);

    // A dry run and a question that nobody can answer sign nothing.
    let lines = [format!("{bob},0.5,first"), format!("{carol},0.25,"), "bob,1,third".into()];
    std::fs::write(&list, format!("# November\n{}\n", lines.join("\n"))).unwrap();
    let (dry, code) = pay(&["--dry-run", "--max-outputs", "2"]);
    assert_eq!((code, dry["orders"].as_u64(), dry["payments"].as_u64()), (0, Some(2), Some(3)), "{dry}");
    assert_eq!((&dry["values"][0]["value"]["amount"], &dry["lines"][0]["status"]), (&"1.75".into(), &"open".into()));
    assert_eq!(pay(&[]).1, 2);
    assert_eq!(committee.authorities[0].next_sequence(alice), 0);

    let (paid, code) = pay(&["--yes", "--max-outputs", "2"]);
    assert_eq!(code, 0, "{paid}");
    let line = |number: usize| (paid["lines"][number]["status"].as_str(), paid["lines"][number]["sequence"].as_u64());
    assert_eq!(
        [line(0), line(1), line(2)],
        [(Some("settled"), Some(0)), (Some("settled"), Some(0)), (Some("settled"), Some(1))]
    );
    let result = std::fs::read_to_string(home.join("list.csv.result.csv")).unwrap();
    assert!(result.starts_with("line,recipient,asset,units,memo,status,sequence,output,digest\n"), "{result}");
    assert!(result.lines().skip(1).all(|line| line.contains(",settled,")) && result.lines().count() == 4, "{result}");

    // The same file again, with other options too, pays nobody again; by another key it is refused.
    assert_eq!(pay(&["--yes"]).0["lines"], paid["lines"]);
    assert_eq!(committee.authorities[0].next_sequence(alice), 2);
    let (refused, code) = json(home, &["pay", "--csv", path, "--from", "bob", "--yes"]);
    assert_eq!(code, 2, "{refused}");
    let (received, _) = json(home, &["receive", "--from", "bob"]);
    let amounts: BTreeMap<_, _> = received["payments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|paid| (paid["output"].as_u64(), paid["memo"].as_str()))
        .collect();
    assert_eq!(amounts.len(), 1, "{received}");
    let (balance, _) = json(home, &["balance", "--from", "bob"]);
    assert_eq!(balance["balances"][0]["amount"], "1.5");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_one_folder_pay_side_by_side_and_each_account_in_turn() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let names = ["alice", "bob", "carol"];
    let accounts = names.map(|name| new_key(home, name, "--ed25519"));
    for (index, account) in (1..).zip(accounts) {
        committee.fund(index, account, 100 * ETHER, &[0, 1, 2, 3]);
    }
    let to = committee_account().to_string();
    // A command of Alice's is under way: it keeps no other account waiting.
    let alice = Folder::new(home).orders(accounts[0]).lock(Duration::ZERO).await.unwrap();
    assert_eq!(json(home, &["pay", &to, "1", "--from", "bob"]).1, 0);
    drop(alice);
    // Everybody at once, and each account twice.
    let payments = names.iter().flat_map(|name| [(name, "2"), (name, "3")]);
    let payments: Vec<_> = payments
        .map(|(name, amount)| {
            fastpay(home, &["pay", &to, amount, "--from", name])
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for payment in payments {
        let ended = payment.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    for (account, sent) in accounts.into_iter().zip([2, 3, 2]) {
        let entries = Folder::new(home).orders(account).entries().unwrap();
        let amounts: BTreeSet<_> = entries.iter().map(|entry| entry.transfer().unwrap().amount().0 / ETHER).collect();
        let numbers: Vec<_> = entries.iter().map(|entry| entry.sequence.0).collect();
        assert_eq!(numbers, (0..sent).collect::<Vec<_>>());
        assert!(amounts.is_superset(&[2, 3].into()), "{amounts:?}");
    }
    committee.until_so_many(3, |authority| authority.balance(committee_account()) == 16 * ETHER as i128).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_accounts_that_begin_the_same_list_at_once_one_pays_it() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let names = ["alice", "bob"];
    for (index, name) in (1..).zip(names) {
        committee.fund(index, new_key(home, name, "--ed25519"), 100 * ETHER, &[0, 1, 2, 3]);
    }
    let list = home.join("list.csv");
    std::fs::write(&list, format!("{},7\n", committee_account())).unwrap();
    let both = names.map(|name| {
        let arguments = ["pay", "--csv", list.to_str().unwrap(), "--from", name, "--yes"];
        fastpay(home, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let ended = both.map(|child| child.wait_with_output().unwrap());
    let codes = ended.each_ref().map(|output| output.status.code().unwrap());
    let said = ended.each_ref().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(matches!(codes, [0, 2 | 10] | [2 | 10, 0]), "{codes:?} {said:?}");
    let refused = usize::from(codes[0] == 0);
    assert!(said[refused].contains("begun to pay this list") || said[refused].contains("began to pay"), "{said:?}");
    committee.until_so_many(3, |authority| authority.balance(committee_account()) == 7 * ETHER as i128).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_shown_verified_and_listed_by_date() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let alice = new_key(home, "alice", "--ed25519");
    new_key(home, "bob", "--ed25519");
    committee.fund(1, alice, 10 * ETHER, &[0, 1, 2, 3]);
    // A default key is used where none is named.
    assert_eq!(json(home, &["address"]).1, 4, "there are two keys");
    assert_eq!(json(home, &["keys", "use", "alice"]).0["name"], "alice");
    assert_eq!(json(home, &["keys", "list"]).0["default"], "alice");
    let text = |arguments: &[&str]| String::from_utf8(run(home, arguments).stdout).unwrap();
    assert!(text(&["keys", "list"]).lines().any(|line| line.starts_with("alice") && line.ends_with("(default)")));

    let paid = text(&["pay", "bob", "2.5", "--memo", "=lunch"]);
    assert!(paid.contains("\ncertified after ") && !paid.contains("final"), "{paid}");
    let digest = paid.split_once("fastpay show ").unwrap().1.trim();
    let (shown, code) = json(home, &["show", digest]);
    assert_eq!(
        (code, shown["state"].as_str(), shown["digest"].as_str()),
        (0, Some("settled"), Some(digest)),
        "{shown}"
    );
    assert_eq!((shown["transfer"]["memo"].as_str(), shown["votes"].as_array().unwrap().len()), (Some("=lunch"), 3));
    assert_eq!(json(home, &["show", "alice/0"]).0["certificate"], shown["certificate"]);
    let receipt = text(&["show", digest]);
    assert!(receipt.starts_with("#0 pays 2.5 ETH to ") && receipt.contains("proof     verified: 3 votes"), "{receipt}");

    // Whoever has the certificate verifies it alone: also while no authority answers.
    let path = home.join("payment.certificate");
    let certificate = text(&["show", digest, "--certificate"]);
    std::fs::write(&path, &certificate).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(json(home, &["verify", path]).0["digest"], digest);
    let mut altered = certificate.into_bytes();
    let last = altered.len() - 10;
    altered[last] = if altered[last] == b'0' { b'1' } else { b'0' };
    std::fs::write(path, altered).unwrap();
    assert_eq!(json(home, &["verify", path]).1, 2);

    // All of it, and no more: bob's history has it before he asked for it.
    let (history, _) = json(home, &["history", "--from", "bob"]);
    assert_eq!(
        (history["events"][0]["direction"].as_str(), history["events"].as_array().unwrap().len()),
        (Some("in"), 1)
    );
    assert_eq!(json(home, &["pay", "alice", "max", "--from", "bob"]).0["value"]["amount"], "2.5");
    let (history, _) = json(home, &["history"]);
    let events = history["events"].as_array().unwrap();
    let ways: Vec<_> = events.iter().map(|event| event["direction"].as_str().unwrap()).collect();
    assert_eq!(ways, ["out", "in", "ethereum"], "{history}");
    assert_eq!((&events[0]["digest"], &events[1]["state"]), (&digest.into(), &"settled".into()));
    assert_eq!(json(home, &["show", "bob/0"]).0["digest"], events[1]["digest"]);
    let credited = (&events[2]["kind"], &events[2]["state"], &events[2]["index"], &events[2]["value"]["amount"]);
    assert_eq!(credited, (&"deposit".into(), &"credited".into(), &1.into(), &"10".into()), "{history}");
    let count =
        |arguments: &[&str]| json(home, &[&["history"], arguments].concat()).0["events"].as_array().unwrap().len();
    assert_eq!((count(&["--only", "in"]), count(&["--asset", "ETH"])), (1, 3));
    assert_eq!((count(&["--since", "2020-01-01"]), count(&["--until", "2020-01-01"])), (3, 0));
    let table = text(&["history", "--csv"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 4 && lines[0].starts_with("date,direction,kind,state,amount,units,"), "{table}");
    assert!(
        lines[1].contains(",out,payment,settled,2.5,2500000000000000000,ETH,") && lines[1].contains(",'=lunch,0,"),
        "{table}"
    );
    assert!(lines[1].ends_with(&format!("{digest},ordered")), "{table}");
    let received = format!(",{},by", events[1]["digest"].as_str().unwrap());
    assert!(lines[2].contains(",in,payment,settled,2.5,") && lines[2].ends_with(&received), "{table}");
    assert!(lines[3].contains(",ethereum,deposit,credited,10,") && lines[3].ends_with(",1,,by"), "{table}");
    // What others did is dated by when it was seen.
    let listed = text(&["history"]);
    let lines: Vec<_> = listed.lines().collect();
    assert!(
        lines[0].starts_with("   20") && lines[1].starts_with("by 20") && lines[2].starts_with("by 20"),
        "{listed}"
    );
    assert!(
        lines[1].ends_with(" [settled]") && lines[2].ends_with("Z  Ethereum: deposit of 10 ETH [credited]"),
        "{listed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payee_finds_the_receipt_of_what_came_in() {
    let committee = FakeCommittee::start().await;
    let (payers, payees) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    [&payers, &payees].iter().for_each(|home| set_up(&committee, home.path()));
    let alice = new_key(payers.path(), "alice", "--ed25519");
    let bob = new_key(payees.path(), "bob", "--ed25519").to_string();
    committee.fund(1, alice, 10 * ETHER, &[0, 1, 2, 3]);
    let (paid, _) = json(payers.path(), &["pay", &bob, "1"]);
    assert_eq!(paid["link"], Value::Null, "no explorer is known");
    let (received, _) = json(payees.path(), &["receive"]);
    assert_eq!(received["payments"][0]["digest"], paid["digest"]);
    let digest = paid["digest"].as_str().unwrap();
    assert_eq!(json(payees.path(), &["show", digest]).0["state"], "settled");
    let shown = String::from_utf8(run(payees.path(), &["show", digest]).stdout).unwrap();
    assert!(shown.contains("  date      by 20"), "{shown}");
    json(payers.path(), &["pay", &bob, "2"]);
    let told = String::from_utf8(run(payees.path(), &["receive"]).stdout).unwrap();
    let named = told.split_once("fastpay show ").unwrap().1.trim();
    assert_eq!(json(payees.path(), &["show", named]).0["transfer"]["value"]["amount"], "2", "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_explorer_and_the_names_of_authorities_come_from_the_endpoints_file() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let mut endpoints = committee.endpoints.clone();
    endpoints.explorer = Some("https://wallet.example/".into());
    endpoints
        .authorities
        .iter_mut()
        .zip(["Aa", "Bb", "Cc", "Dd"])
        .for_each(|(at, label)| at.label = Some(label.into()));
    std::fs::write(home.join("endpoints.json"), serde_json::to_vec(&endpoints).unwrap()).unwrap();
    let alice = new_key(home, "alice", "--ed25519");
    committee.fund(1, alice, 10 * ETHER, &[0, 1, 2, 3]);
    let to = committee_account().to_string();
    let (paid, _) = json(home, &["pay", &to, "1"]);
    let page = format!("https://wallet.example/explore/transfer/{}", paid["digest"].as_str().unwrap());
    assert_eq!(paid["link"], page.as_str());
    let text = |arguments: &[&str]| String::from_utf8(run(home, arguments).stdout).unwrap();
    let said = text(&["pay", &to, "1"]);
    assert!(said.contains("\nexplorer: https://wallet.example/explore/transfer/0x"), "{said}");
    let (status, _) = json(home, &["status"]);
    let labels: BTreeSet<_> =
        status["authorities"].as_array().unwrap().iter().map(|authority| authority["label"].as_str()).collect();
    assert_eq!(labels, ["Aa", "Bb", "Cc", "Dd"].map(Some).into());
    assert!(text(&["status"]).contains(&format!("  Aa {}: ", endpoints.authorities[0].name)));
    let (shown, _) = json(home, &["show", "alice/0"]);
    assert_eq!(shown["labels"].as_object().unwrap().len(), 3, "{shown}");
    let receipt = text(&["show", "alice/0"]);
    let proof = receipt.lines().find(|line| line.contains("3 votes")).unwrap();
    assert!(["Aa (", "Bb (", "Cc (", "Dd ("].iter().filter(|label| proof.contains(*label)).count() == 3, "{receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_paid_by_its_symbol_unless_two_have_it() {
    let committee = FakeCommittee::start().await;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    set_up(&committee, home);
    let alice = new_key(home, "alice", "--ed25519");
    let tokens = [0xd1, 0xd2].map(|byte| Asset(PrimaryAddress::repeat_byte(byte)));
    let demo = AssetInfo { symbol: "DEMO".into(), decimals: 6 };
    Folder::new(home).learn_asset(tokens[0], &demo).unwrap();
    let deposit = Deposit { index: TransactionIndex(1), recipient: alice, asset: tokens[0], amount: Amount(5_000_000) };
    committee.authorities.iter().for_each(|authority| authority.deposit(&deposit));
    let to = committee_account().to_string();
    let pay = ["pay", &to, "1.5", "--asset", "DEMO"];
    let (paid, code) = json(home, &pay);
    assert_eq!((code, paid["value"]["units"].as_str()), (0, Some("1500000")), "{paid}");
    assert_eq!(paid["value"]["asset"], serde_json::json!(tokens[0]));
    // Anybody can call a token so.
    Folder::new(home).learn_asset(tokens[1], &demo).unwrap();
    let (refused, code) = json(home, &pay);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(code == 2 && message.contains("are both called \"DEMO\"; give the address"), "{refused}");
    assert!(tokens.iter().all(|token| message.contains(&token.to_string())), "{refused}");
    assert_eq!(json(home, &["pay", &to, "1", "--asset", &tokens[0].to_string()]).1, 0);
    assert_eq!(committee.authorities.iter().map(|authority| authority.next_sequence(alice)).max(), Some(2));
}

//! `fastpay-node` as an operator runs it, and killed as power cuts kill it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fastpay_client::{AuthorityClient, AuthorityEndpoints, ClientError};
use fastpay_core::{AccountId, Amount, Asset, AuthorityKeys, Balance, Epoch, SequenceNumber};
use fastpay_node::authority::keys;
use fastpay_rpc::Refusal;
use fastpay_testkit::{TestAccount, TestCommittee, payment};

use crate::authority::{free_ports, get, write_genesis};
use crate::network::client_options;
use crate::scene::eventually_async;

pub fn node(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpay-node"));
    command.args(arguments).stdin(Stdio::null()).env_remove("FASTPAY_PASSPHRASE");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// A pipe without a reader.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let folder = tempfile::tempdir().unwrap();
    let code = |command: &[&str], out: Stdio| {
        node(command).current_dir(folder.path()).stdout(out).stderr(closed_pipe()).status().unwrap().code()
    };
    assert_eq!(code(&["keygen", "--plain", "--keys", "unread"], closed_pipe()), Some(0));
    assert!(folder.path().join("unread/voting.key").exists(), "what was to be done is done");
    assert_eq!(code(&["config", "check", "--config", "nowhere.toml"], closed_pipe()), Some(3));
    assert_eq!(code(&["run", "--config", "nowhere.toml"], closed_pipe()), Some(3));
    // A lost answer is an error; a closed pipe is not.
    for command in [&["keygen", "--plain", "--keys", "lost"][..], &["--version"], &["completions", "bash"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(code(command, full.into()), Some(16), "{command:?}");
    }
}

/// An authority that is set up, with the keys of three others.
pub struct Operator {
    folder: tempfile::TempDir,
    pub committee: TestCommittee,
    pub endpoints: AuthorityEndpoints,
    pub http: SocketAddr,
}

impl Operator {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        succeeds(&node(&["keygen", "--plain", "--keys", &path("keys")]).output().unwrap());
        let files = keys::KeyFiles::in_folder(&folder.path().join("keys"));
        let own = keys::read(&files, &keys::passphrase_source(None)).unwrap();
        let others = TestCommittee::new(3 + 1).keys.into_iter().take(3);
        let mut members: Vec<AuthorityKeys> = others.chain([own]).collect();
        members.sort_by_key(|member| member.public().name);
        let genesis = write_genesis(&folder.path().join("genesis.json"), &members);
        let committee =
            TestCommittee { domain: genesis.domain(), committee: genesis.committee().unwrap(), keys: members };
        assert_eq!(committee.committee.epoch(), Epoch(0));

        let (listen, http) = free_ports(2);
        let (listen_text, http_text) = (listen.to_string(), http.to_string());
        let (config, data, keys, genesis) = (path("authority.toml"), path("data"), path("keys"), path("genesis.json"));
        let arguments = [
            ["--config", &config],
            ["--data", &data],
            ["--keys", &keys],
            ["--genesis", &genesis],
            ["--shards", "2"],
            ["--listen", &listen_text],
            ["--http", &http_text],
        ];
        let output = node(&["init"]).args(arguments.as_flattened()).output().unwrap();
        let endpoints = serde_json::from_str(&succeeds(&output)).unwrap();
        Self { folder, committee, endpoints, http }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("authority.toml")
    }

    pub async fn run(&self) -> Process {
        let config = self.config();
        let child = node(&["run", "--config", config.to_str().unwrap()]).stderr(Stdio::null()).spawn().unwrap();
        let mut process = Process(child);
        eventually_async("the process is ready", || {
            assert!(process.0.try_wait().unwrap().is_none(), "it ended");
            async { get(self.http, "/ready").await.is_some_and(|(code, _)| code == 200) }
        })
        .await;
        process
    }

    pub fn client(&self) -> AuthorityClient {
        AuthorityClient::new(&self.endpoints, client_options()).unwrap()
    }
}

/// Killed with the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_kill_9_at_any_instant() {
    let operator = Operator::new();
    let domain = operator.committee.domain;
    let owners: Vec<_> = (0..20).map(TestAccount::numbered).collect();
    let mut confirmed = vec![0_u64; owners.len()];
    for round in 0..3_u64 {
        let process = operator.run().await;
        let client = operator.client();
        let mut work = tokio::task::JoinSet::new();
        for (index, owner) in owners.iter().cloned().enumerate() {
            let (client, committee, to) =
                (client.clone(), operator.committee.clone(), owners[(index + 3) % owners.len()].id());
            let mut next = confirmed[index];
            work.spawn(async move {
                let shard = client.shard_of(&owner.id());
                loop {
                    let order = owner.sign(&domain, payment(owner.id(), to, 1, next));
                    let (voted, vote) = (next, shard.order(&order).await);
                    if vote.is_err() || shard.confirm(&committee.certificate(&order)).await.is_err() {
                        break (index, next, vote.is_ok().then_some((voted, order)));
                    }
                    next += 1;
                }
            });
        }
        // In the middle of it.
        eventually_async("payments flow", || async {
            let state = client.shard_of(&owners[7].id()).account(owners[7].id()).await.unwrap();
            state.next_sequence.0 >= confirmed[7] + 5 + round
        })
        .await;
        drop(process);

        let answered = work.join_all().await;
        let process = operator.run().await;
        let client = operator.client();
        for (index, next, voted) in answered {
            let owner = &owners[index];
            let state = client.shard_of(&owner.id()).account(owner.id()).await.unwrap();
            assert!(state.next_sequence.0 >= next, "a confirmation was forgotten");
            if let Some((sequence, order)) = voted
                && state.next_sequence == SequenceNumber(sequence)
            {
                assert_eq!(state.pending, Some(order), "a vote was forgotten");
            }
            // Free the account for the next round.
            confirmed[index] = state.next_sequence.0;
            if let Some(pending) = state.pending {
                let certificate = operator.committee.certificate(&pending);
                client.shard_of(&owner.id()).confirm(&certificate).await.unwrap();
                confirmed[index] += 1;
            }
        }
        // Nothing is lost or doubled, once the credits between the shards have arrived.
        eventually_async("all value is there", || async {
            let mut total = Balance::ZERO;
            for owner in &owners {
                let state = client.shard_of(&owner.id()).account(owner.id()).await.unwrap();
                total = total.plus(state.balance(Asset::ETHER));
            }
            let mut under_way = 0;
            for shard in client.shards() {
                under_way += shard.status().await.unwrap().credits_in_flight;
            }
            if under_way == 0 {
                assert_eq!(total, Balance::from(Amount(20_000)));
            }
            under_way == 0
        })
        .await;
        drop(process);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stops_when_asked_and_reports_its_state() {
    let operator = Operator::new();
    let mut process = operator.run().await;
    let config = operator.config();
    let config = config.to_str().unwrap();
    let status = succeeds(&node(&["status", "--config", config, "--json"]).output().unwrap());
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["shards"].as_array().unwrap().len(), 2);
    assert_eq!(status["shards"][1]["synchronized"], 20);
    assert!(succeeds(&node(&["status", "--config", config]).output().unwrap()).contains("shard 1 at "));

    // A second one on other ports, given by environment and flag, finds the folder taken.
    let (listen, http) = free_ports(2);
    let second = node(&["run", "--config", config, "--http", &http.to_string()])
        .env("FASTPAY_NODE_LISTEN", listen.to_string())
        .output()
        .unwrap();
    assert!(!second.status.success());
    assert!(text(&second.stderr).contains("in use by another process"), "{}", text(&second.stderr));

    let pid = process.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    eventually_async("it ends", || {
        let ended = process.0.try_wait().unwrap();
        async move { ended.is_some_and(|status| status.success()) }
    })
    .await;
    let away = node(&["status", "--config", config]).output().unwrap();
    assert!(
        !away.status.success() && text(&away.stderr).contains("check that the node runs"),
        "{}",
        text(&away.stderr)
    );
    let client = operator.client();
    let alice = TestAccount::numbered(0);
    let order = alice.sign(&operator.committee.domain, payment(alice.id(), alice.id(), 1, 0));
    assert!(matches!(client.shard_of(&alice.id()).order(&order).await, Err(ClientError::Unreachable(_))));

    // Elsewhere, by environment and flag.
    let child = node(&["run", "--config", config, "--listen", &listen.to_string()])
        .env("FASTPAY_NODE_HTTP", http.to_string())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _process = Process(child);
    eventually_async("it is ready elsewhere", || async {
        get(http, "/ready").await.is_some_and(|(code, _)| code == 200)
    })
    .await;
    let shards = [listen, (listen.ip(), listen.port() + 1).into()].map(|address| format!("http://{address}"));
    let moved = AuthorityEndpoints { shards: shards.into(), ..operator.endpoints.clone() };
    let client = AuthorityClient::new(&moved, client_options()).unwrap();
    let too_much = alice.sign(&operator.committee.domain, payment(alice.id(), TestAccount::numbered(1).id(), 1_001, 0));
    let refused = client.shard_of(&alice.id()).order(&too_much).await;
    assert_eq!(refused, Err(Refusal::InsufficientBalance(Balance::from(Amount(1_000))).into()));
}

#[test]
fn what_cannot_be_run_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let ended = |command: &[&str]| {
        let output = node(command).output().unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let refused = |config: &Path| {
        let (code, _, error) = ended(&["run", "--config", config.to_str().unwrap()]);
        assert_eq!(code, if error.contains("the key file") { 4 } else { 3 }, "{error}");
        error
    };
    assert!(refused(&path("none.toml")).contains("fastpay-node init"));
    std::fs::write(path("wrong.toml"), "colour = \"red\"").unwrap();
    assert!(refused(&path("wrong.toml")).contains("unknown field"));
    let config = "data = \"data\"\nshards = 1\nlisten = \"127.0.0.1:1\"\nhttp = \"127.0.0.1:2\"\n\
                  genesis = \"genesis.json\"\n[[keys]]\nvoting = \"v.json\"\nredemption = \"r.json\"\n";
    std::fs::write(path("keyless.toml"), config).unwrap();
    let error = refused(&path("keyless.toml"));
    assert!(error.contains("v.json"), "{error}");
    let config = path("keyless.toml");
    let config = config.to_str().unwrap();
    let (code, out, error) = ended(&["status", "--config", config, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &document["error"]["kind"]), (8, &"unreachable".into()), "{error}");
    let backup = path("backup");
    assert_eq!(ended(&["backup", backup.to_str().unwrap(), "--config", config]).0, 3);
    assert_eq!(ended(&["keygen", "--keys", path("keys").to_str().unwrap()]).0, 5);
    let (code, out, _) = ended(&["status", "--json", "--colour"]);
    assert!(code == 2 && out.contains("\"argument\""), "{out}");
}

#[test]
fn an_old_command_names_the_one_that_replaced_it() {
    for (old, new) in [("vote-committee", "committee sign"), ("restored", "mark-stale"), ("vouch", "trust-data")] {
        let output = node(&[old, "--config", "authority.toml"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(&format!("fastpay-node {new}")), "{said}");
    }
    for step in ["propose", "sign", "certify"] {
        let output = node(&["checkpoint", step, "--archive", "archive"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("[archive] in the configuration"), "{said}");
    }
}

#[test]
fn a_shell_learns_to_complete_it() {
    let script = succeeds(&node(&["completions", "fish"]).output().unwrap());
    assert!(script.contains("fastpay-node") && script.contains("committee"), "{script}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_is_checked_and_a_folder_backed_up_and_restored_by_command() {
    let operator = Operator::new();
    let config = operator.config();
    let config = config.to_str().unwrap();
    let path = |name: &str| operator.folder.path().join(name).to_str().unwrap().to_owned();
    let findings = |output: &Output| -> Vec<(String, String)> {
        let findings: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let word = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
        findings.iter().map(|finding| (word(finding, "check"), word(finding, "level"))).collect()
    };
    let check = || node(&["config", "check", "--config", config, "--json"]).output().unwrap();
    let level = |output: &Output, check: &str| {
        let found = findings(output);
        found.iter().find(|(name, _)| name == check).unwrap_or_else(|| panic!("{check} in {found:?}")).1.clone()
    };
    let good = check();
    succeeds(&good);
    for name in ["config", "keys", "committee", "membership", "data", "memory", "ports"] {
        assert_eq!(level(&good, name), "ok", "{name}");
    }
    assert_eq!(level(&good, "endpoints"), "warning", "none are configured");
    // What init wrote says where they belong.
    let hinted = std::fs::read_to_string(config).unwrap();
    let list = serde_json::json!({ "authorities": [operator.endpoints] });
    std::fs::write(path("endpoints.json"), list.to_string()).unwrap();
    std::fs::write(config, hinted.replace("# endpoints = ", "endpoints = ")).unwrap();
    assert_eq!(level(&check(), "endpoints"), "ok");
    std::fs::write(config, hinted).unwrap();
    // A collector is looked for where one is configured, and is nothing that a start waits for.
    let (untraced, collector) = (std::fs::read_to_string(config).unwrap(), std::net::TcpListener::bind("127.0.0.1:0"));
    let collector = collector.unwrap();
    let endpoint = collector.local_addr().unwrap();
    std::fs::write(config, format!("{untraced}\n[traces]\nendpoint = \"http://{endpoint}\"\n")).unwrap();
    assert_eq!(level(&check(), "traces"), "ok");
    // Nobody listens on port 1.
    std::fs::write(config, format!("{untraced}\n[traces]\nendpoint = \"http://127.0.0.1:1\"\n")).unwrap();
    let away = check();
    succeeds(&away);
    assert_eq!(level(&away, "traces"), "warning");
    std::fs::write(config, untraced).unwrap();

    // That a node runs is no error of the configuration. Nothing is restored from its folder.
    let (data, backup) = (path("data"), path("backup"));
    let process = operator.run().await;
    assert_eq!(level(&check(), "data"), "warning");
    let refused = node(&["restore", &data, "--config", config, "--data", &path("second")]).output().unwrap();
    assert!(refused.status.code() == Some(10) && text(&refused.stderr).contains("in use by another process"));
    // Also where something else is wrong with it: its ports are taken by that node.
    let good = std::fs::read_to_string(config).unwrap();
    std::fs::write(config, good.replace("voting.key", "none.key")).unwrap();
    let without_keys = check();
    assert_eq!(level(&without_keys, "keys"), "error");
    assert!(findings(&without_keys).iter().all(|(name, _)| name != "ports"));
    std::fs::write(config, good).unwrap();
    drop(process);

    assert!(succeeds(&node(&["backup", &backup, "--config", config]).output().unwrap()).contains("marked"));
    let refused = node(&["restore", &backup, "--config", config]).output().unwrap();
    assert!(!refused.status.success() && text(&refused.stderr).contains("already exists"));
    std::fs::remove_dir_all(&data).unwrap();
    let missing = check();
    assert_eq!((missing.status.code(), level(&missing, "data").as_str()), (Some(3), "error"));
    succeeds(&node(&["restore", &backup, "--config", config]).output().unwrap());
    assert_eq!(level(&check(), "memory"), "warning");
    let process = operator.run().await;
    let (_, ready) = get(operator.http, "/ready").await.unwrap();
    assert!(ready.contains("\"restored\":true"), "{ready}");
    drop(process);
    // The start has written the high-water mark anew; the mark stays.
    assert_eq!(level(&check(), "memory"), "warning");
}

/// Confirms payments of one owner one after the other, until stopped.
async fn pay_on(
    client: AuthorityClient,
    committee: TestCommittee,
    owner: TestAccount,
    to: AccountId,
    confirmed: Arc<AtomicU64>,
    end: Arc<AtomicBool>,
) {
    let shard = client.shard_of(&owner.id());
    for sequence in 0.. {
        if end.load(Ordering::Relaxed) {
            break;
        }
        let order = owner.sign(&committee.domain, payment(owner.id(), to, 1, sequence));
        shard.order(&order).await.unwrap();
        shard.confirm(&committee.certificate(&order)).await.unwrap();
        confirmed.store(sequence + 1, Ordering::Release);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_authority_is_backed_up_under_load_and_a_killed_backup_is_none() {
    let operator = Operator::new();
    let config = operator.config();
    let config = config.to_str().unwrap();
    let path = |name: &str| operator.folder.path().join(name).to_str().unwrap().to_owned();
    let process = operator.run().await;
    let owners: Vec<_> = (0..20).map(TestAccount::numbered).collect();
    let end = Arc::new(AtomicBool::new(false));
    let confirmed: Vec<_> = owners.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
    let mut load = tokio::task::JoinSet::new();
    for (index, (owner, confirmed)) in owners.iter().zip(&confirmed).enumerate() {
        let (client, committee) = (operator.client(), operator.committee.clone());
        let to = owners[(index + 3) % owners.len()].id();
        load.spawn(pay_on(client, committee, owner.clone(), to, confirmed.clone(), end.clone()));
    }
    eventually_async("payments flow", || async { confirmed[7].load(Ordering::Acquire) > 5 }).await;
    let before: Vec<_> = confirmed.iter().map(|confirmed| confirmed.load(Ordering::Acquire)).collect();
    let output =
        tokio::task::block_in_place(|| node(&["backup", &path("backup"), "--config", config]).output().unwrap());
    assert!(succeeds(&output).contains("marked"));
    let restore =
        |backup: &str, to: &str| node(&["restore", backup, "--config", config, "--data", to]).output().unwrap();
    // Killed as soon as there is a folder, until one was killed in the middle of it.
    for attempt in 0.. {
        assert!(attempt < 50, "no backup was killed in the middle of it");
        let killed = path(&format!("killed-{attempt}"));
        let mut backup = Process(node(&["backup", &killed, "--config", config]).stdout(Stdio::null()).spawn().unwrap());
        eventually_async("it has begun", || async { Path::new(&killed).exists() }).await;
        backup.0.kill().unwrap();
        backup.0.wait().unwrap();
        let is_whole = Path::new(&killed).join("meta.json").exists();
        let restored = restore(&killed, &path(&format!("restored-{attempt}")));
        assert_eq!(restored.status.success(), is_whole, "{}", text(&restored.stderr));
        if !is_whole {
            assert!(text(&restored.stderr).contains("is not an authority's data folder"), "{}", text(&restored.stderr));
            break;
        }
    }
    end.store(true, Ordering::Relaxed);
    load.join_all().await;
    drop(process);

    // The restored authority has everything that was answered before the backup began, and knows that it is a copy.
    succeeds(&restore(&path("backup"), &path("restored")));
    let child = node(&["run", "--config", config, "--data", &path("restored")]).stderr(Stdio::null()).spawn().unwrap();
    let _process = Process(child);
    eventually_async("it is ready", || async {
        get(operator.http, "/ready").await.is_some_and(|(code, said)| code == 200 && said.contains("\"restored\":true"))
    })
    .await;
    let client = operator.client();
    for ((owner, before), after) in owners.iter().zip(before).zip(&confirmed) {
        let state = client.shard_of(&owner.id()).account(owner.id()).await.unwrap();
        assert!((before..=after.load(Ordering::Acquire)).contains(&state.next_sequence.0), "{state:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_can_be_one_json_object_per_line() {
    let operator = Operator::new();
    let config = operator.config();
    let mut command = node(&["run", "--log-format", "json", "--config", config.to_str().unwrap()]);
    let mut process = Process(command.stderr(Stdio::piped()).spawn().unwrap());
    eventually_async("the process is ready", || async {
        get(operator.http, "/ready").await.is_some_and(|(code, _)| code == 200)
    })
    .await;
    process.0.kill().unwrap();
    let mut log = String::new();
    process.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let serving = lines.iter().find(|line| line["fields"]["message"] == "serving");
    assert!(serving.is_some_and(|line| line["level"] == "INFO" && line["fields"]["authority"].is_string()), "{log}");
}

#[test]
fn each_obstacle_to_a_start_is_found() {
    let operator = Operator::new();
    let config = operator.config();
    let good = std::fs::read_to_string(&config).unwrap();
    let check = |text: String, expected: &str| {
        std::fs::write(&config, text).unwrap();
        let output = node(&["config", "check", "--config", config.to_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, found) = said.split_once("ERROR").unwrap_or_else(|| panic!("{said}"));
        assert!(found.contains(expected) && output.status.code() == Some(3), "{expected}: {said}");
    };
    check(format!("colour = 1\n{good}"), "unknown field");
    check(good.replace("voting.key", "none.key"), "none.key");
    check(good.replace("genesis.json", "none.json"), "none.json");
    check(good.replace("shards = 2", "shards = 3"), "number of shards");
    check(format!("endpoints = \"none.json\"\n{good}"), "none.json");
    check(format!("{good}\n[traces]\nendpoint = \"http://localhost:4317\"\nratio = 7\n"), "is not a ratio");
    // What takes a while is said before it begins.
    let primary = "[primary]\nrpc_urls = [\"http://127.0.0.1:1\"]\nchain_id = 31337\ncontract = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\n";
    let on_chain: String =
        good.lines().filter(|line| !line.starts_with("genesis")).map(|line| format!("{line}\n")).collect();
    std::fs::write(&config, format!("{on_chain}{primary}")).unwrap();
    let output = node(&["config", "check", "--config", config.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("asking the Ethereum nodes for the contract's committees"), "{said}");
    check(format!("{good}\n[tls]\ncertificate = \"none.pem\"\nkey = \"none.key\"\n"), "none.pem");
    std::fs::write(operator.folder.path().join("empty.pem"), "").unwrap();
    check(format!("{good}\n[tls]\ncertificate = \"empty.pem\"\nkey = \"empty.pem\"\n"), "tls");
    let taken = std::net::TcpListener::bind(operator.http).unwrap();
    check(good.clone(), "cannot listen on");
    drop(taken);
    // Of another committee.
    let others = keys::generate(&operator.folder.path().join("others"), None).unwrap();
    check(good.replace("/keys/", "/others/"), &others.public().name.to_string());
}

#[test]
fn no_key_of_an_ethereum_provider_is_in_the_log_however_much_is_logged() {
    const KEYS: [&str; 3] = ["pass-of-the-user", "0123456789abcdef0123456789abcdef", "key-of-the-query"];
    let operator = Operator::new();
    let good = std::fs::read_to_string(operator.config()).unwrap();
    let without_genesis: String =
        good.lines().filter(|line| !line.starts_with("genesis")).map(|line| format!("{line}\n")).collect();
    let forbidding = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [forbidding.local_addr().unwrap(), ([127, 0, 0, 1], 1).into()];
    std::thread::spawn(move || {
        for mut stream in forbidding.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let [user, path, query] = KEYS;
    for address in addresses {
        let primary = format!(
            "[primary]\nrpc_urls = [\"http://user:{user}@{address}/v3/{path}?apikey={query}\"]\nchain_id = 1\n\
             contract = \"0x{}\"\n",
            "11".repeat(20)
        );
        let config = operator.folder.path().join("followed.toml");
        std::fs::write(&config, format!("{without_genesis}{primary}")).unwrap();
        for level in ["trace", "warn,[ReqwestTransport]=trace", "alloy_transport_http::reqwest_transport=trace"] {
            let mut command = node(&["run", "--config", config.to_str().unwrap()]);
            let output = command.env("FASTPAY_LOG", level).output().unwrap();
            let said = text(&output.stderr);
            assert!(said.contains("does not answer") && said.contains(&address.to_string()), "{said}");
            assert_eq!(said.contains("TRACE"), level == "trace", "{said}");
            KEYS.iter().for_each(|key| assert!(!said.contains(key), "{key} with {level} in {said}"));
        }
    }
}

#[test]
fn an_ethereum_providers_key_in_the_environment_is_not_printed() {
    for (urls, arguments, expected) in [
        ("https://eth.example/v3/0123456789", &["config", "check", "--help"][..], "[env: FASTPAY_NODE_RPC_URLS]"),
        ("eth.example/v3/0123456789", &["config", "check"], "invalid value for '--rpc-url <RPC_URLS>'"),
    ] {
        let output = node(arguments).env("FASTPAY_NODE_RPC_URLS", urls).output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(expected) && !said.contains("0123456789"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_the_log_however_much_is_logged() {
    const PASSPHRASE: &str = "correct horse battery staple";
    let operator = Operator::new();
    let config = operator.config();
    let folder = operator.folder.path();
    let mut secrets = vec![PASSPHRASE.to_owned()];
    for name in ["voting.key", "redemption.key"] {
        let text = std::fs::read_to_string(folder.join("keys").join(name)).unwrap();
        let digits = text.trim().trim_start_matches("0x").to_lowercase();
        assert_eq!(digits.len(), 64, "a plain key is its digits");
        secrets.push(digits);
    }
    let leaks = |log: &str| secrets.iter().any(|secret| log.to_lowercase().contains(secret.as_str()));
    assert!(leaks(&format!("key {}", secrets[1].to_uppercase())));

    let log = folder.join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut command = node(&["run", "--config", config.to_str().unwrap()]);
    command.env("FASTPAY_LOG", "trace").env("FASTPAY_PASSPHRASE", PASSPHRASE).stderr(file);
    let process = Process(command.spawn().unwrap());
    eventually_async("it is ready", || async {
        get(operator.http, "/ready").await.is_some_and(|(code, _)| code == 200)
    })
    .await;
    let (client, alice) = (operator.client(), TestAccount::numbered(0));
    let order = alice.sign(&operator.committee.domain, payment(alice.id(), TestAccount::numbered(1).id(), 1, 0));
    client.shard_of(&alice.id()).order(&order).await.unwrap();
    client.shard_of(&alice.id()).confirm(&operator.committee.certificate(&order)).await.unwrap();
    drop(process);
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("TRACE") && said.contains("serving"), "it logs all that there is");
    assert!(!leaks(&said));

    // Encrypted keys, with the right passphrase and a wrong one: both are refused, by what they say of themselves.
    keys::generate(&folder.join("others"), Some(PASSPHRASE)).unwrap();
    let others = folder.join("others.toml");
    std::fs::write(&others, std::fs::read_to_string(&config).unwrap().replace("/keys/", "/others/")).unwrap();
    for (passphrase, expected) in [(PASSPHRASE, "not a member"), ("correct horse battery stable", "wrong passphrase")] {
        for command in [&["run"][..], &["config", "check"]] {
            let mut refused = node(command);
            refused.arg("--config").arg(&others).env("FASTPAY_LOG", "trace").env("FASTPAY_PASSPHRASE", passphrase);
            let output = refused.output().unwrap();
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(!output.status.success() && said.contains(expected), "{said}");
            assert!(!leaks(&said) && !said.contains(passphrase));
        }
    }
}

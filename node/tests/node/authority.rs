//! A whole authority inside the test's process: its start, its ports, its end, and what it refuses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use borsh::BorshSerialize;
use fastpay_client::{AuthorityClient, AuthorityEndpoints, ClientError, EndpointsError};
use fastpay_core::{
    Amount, Asset, AuthorityKeys, Balance, Committees, Epoch, Genesis, GenesisBalance, JournalPosition, SequenceNumber,
    ShardLedger,
};
use fastpay_ethereum::{Finality, PrimaryConfig};
use fastpay_node::authority::AuthorityError;
use fastpay_node::authority::certification::ORDERS_MIN;
use fastpay_node::authority::certification::member::MemberTimes;
use fastpay_node::authority::config::{ArchiveSettings, Config, Overrides, TlsFiles};
use fastpay_node::authority::deployment::{DeploymentError, folder_identity};
use fastpay_node::authority::follower::cursor_file;
use fastpay_node::authority::keys::KeyFiles;
use fastpay_node::authority::known_committees;
use fastpay_node::authority::pruning::PruningTimes;
use fastpay_node::authority::rollback::{HighWaterMark, default_high_water_mark};
use fastpay_node::authority::shard::ShardError;
use fastpay_node::authority::storage::{CheckpointOptions, CheckpointStore, Checkpoints, DataFolder, StorageError};
use fastpay_node::authority::tls::TlsError;
use fastpay_node::authority::voter_status::VoterStatusError;
use fastpay_node::operator::run::run;
use fastpay_node::operator::setup::{self, SetupError};
use fastpay_program::Clock;
use fastpay_rpc::Refusal;
use fastpay_testkit::{Ports, TestAccount, TestCommittee, payment};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::network::client_options;
use crate::scene::eventually_async;

/// Ports that are free: shards from the first, and one for HTTP. They stay free for the authority that comes back: no
/// other test is given them while this process runs.
pub fn free_ports(shards: u16) -> (SocketAddr, SocketAddr) {
    static TAKEN: Mutex<Vec<Ports>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap();
    let first = taken.last_mut().and_then(|ports| ports.next(shards + 1).ok()).unwrap_or_else(|| {
        let mut ports = Ports::take().unwrap();
        let first = ports.next(shards + 1).unwrap();
        taken.push(ports);
        first
    });
    (([127, 0, 0, 1], first).into(), ([127, 0, 0, 1], first + shards).into())
}

/// The HTTP port's answer: status and body. `None` if nothing listens.
pub async fn get(http: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(http).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: authority\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// A committee without a Primary, and a folder for one member of it.
pub struct Scene {
    pub folder: tempfile::TempDir,
    pub committee: TestCommittee,
    pub genesis: PathBuf,
}

/// With balances of 20 accounts.
pub fn write_genesis(path: &Path, members: &[AuthorityKeys]) -> Genesis {
    write_genesis_of(path, members, 20)
}

fn write_genesis_of(path: &Path, members: &[AuthorityKeys], accounts: u64) -> Genesis {
    let balances = (0..accounts).map(|n| GenesisBalance {
        account: TestAccount::numbered(n).id(),
        asset: Asset::ETHER,
        amount: Amount(1_000),
    });
    let committee = members.iter().map(AuthorityKeys::public).collect();
    let genesis = Genesis { committee, balances: balances.collect() };
    std::fs::write(path, serde_json::to_vec(&genesis).unwrap()).unwrap();
    genesis
}

impl Scene {
    pub fn new() -> Self {
        Self::with_accounts(20)
    }

    pub fn with_accounts(accounts: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let genesis = folder.path().join("genesis.json");
        let keys = TestCommittee::new(4).keys;
        let domain = write_genesis_of(&genesis, &keys, accounts).domain();
        Self { folder, committee: TestCommittee::with(4, domain, fastpay_core::Epoch(0)), genesis }
    }

    fn config_file(&self) -> PathBuf {
        self.folder.path().join("authority.toml")
    }

    /// Writes a configuration and creates a data folder. Other members' keys sign for the rest.
    pub fn init(&self, shards: u16) -> Result<AuthorityEndpoints, SetupError> {
        let (listen, http) = free_ports(shards);
        let request = setup::Request {
            config: self.config_file(),
            data: self.folder.path().join("data"),
            endpoints: None,
            keys: KeyFiles::in_folder(self.folder.path()),
            shards: u32::from(shards).try_into().unwrap(),
            listen,
            http,
            primary: None,
            genesis: Some(self.genesis.clone()),
        };
        setup::init(request, self.keys().public().name)
    }

    pub fn keys(&self) -> AuthorityKeys {
        self.committee.keys[0].clone()
    }

    pub fn config(&self) -> Config {
        Config::read(&self.config_file(), Overrides::default()).unwrap()
    }

    /// The same on other ports.
    fn config_elsewhere(&self) -> Config {
        let (listen, http) = free_ports(2);
        Config { listen, http, ..self.config() }
    }
}

pub struct Running {
    pub client: AuthorityClient,
    pub http: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), AuthorityError>>,
}

impl Running {
    pub fn begin(config: Config, keys: Vec<AuthorityKeys>) -> Self {
        let endpoints = AuthorityEndpoints {
            name: keys[0].public().name,
            shards: config.shard_addresses().unwrap().iter().map(|address| format!("http://{address}")).collect(),
            http: None,
            tls_ca: None,
            label: None,
        };
        let client = AuthorityClient::new(&endpoints, client_options()).unwrap();
        let (stop, stopped) = watch::channel(false);
        let http = config.http;
        Self { client, http, stop, task: tokio::spawn(run(config, keys, stopped)) }
    }

    pub async fn ready(config: Config, keys: AuthorityKeys) -> Self {
        Self::ready_with(config, vec![keys]).await
    }

    /// With the keys of several epochs.
    pub async fn ready_with(config: Config, keys: Vec<AuthorityKeys>) -> Self {
        let mut running = Self::begin(config, keys);
        let http = running.http;
        let ready = eventually_async("the authority is ready", || async {
            get(http, "/ready").await.is_some_and(|(code, _)| code == 200)
        });
        tokio::select! {
            () = ready => {}
            ended = &mut running.task => panic!("it ended: {ended:?}"),
        }
        running
    }

    pub async fn stop(self) -> Result<(), AuthorityError> {
        self.stop.send_replace(true);
        self.task.await.unwrap()
    }

    /// How it ends by itself.
    pub async fn ended(self) -> Result<(), AuthorityError> {
        self.task.await.unwrap()
    }
}

/// How a start ends that must not succeed.
pub async fn refused(config: Config, keys: AuthorityKeys) -> AuthorityError {
    Running::begin(config, vec![keys]).task.await.unwrap().unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_serves_ends_and_comes_back_with_its_locks_and_one_genesis() {
    let scene = Scene::new();
    let endpoints = scene.init(2).unwrap();
    assert_eq!((endpoints.name, endpoints.shards.len()), (scene.keys().public().name, 2));
    let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
    let domain = scene.committee.domain;
    let first = alice.sign(&domain, payment(alice.id(), bob.id(), 10, 0));
    let locked = alice.sign(&domain, payment(alice.id(), bob.id(), 20, 1));
    let conflicting = alice.sign(&domain, payment(alice.id(), bob.id(), 30, 1));
    for start in 0..3 {
        let running = Running::ready(scene.config(), scene.keys()).await;
        let shard = running.client.shard_of(&alice.id());
        if start == 0 {
            shard.order(&first).await.unwrap();
            let confirmed = shard.confirm(&scene.committee.certificate(&first)).await;
            assert_eq!(confirmed, Ok((Some(Epoch(0)), SequenceNumber(1))));
            shard.order(&locked).await.unwrap();
        }
        let refusal = Refusal::OrderPending(Box::new(locked.clone()));
        assert_eq!(shard.order(&conflicting).await, Err(ClientError::Refused(refusal)), "start {start}");
        shard.order(&locked).await.unwrap();
        for (account, balance) in [(&alice, 990), (&bob, 1_010)] {
            let shard = running.client.shard_of(&account.id());
            eventually_async("credits and genesis are applied once", || async {
                let state = shard.account(account.id()).await.unwrap();
                assert_eq!(state.deposits, 1);
                state.balance(Asset::ETHER) == Balance::from(Amount(balance))
            })
            .await;
        }
        let (code, health) = get(running.http, "/health").await.unwrap();
        assert_eq!((code, health.as_str()), (200, r#"{"status":"up"}"#));
        let (_, ready) = get(running.http, "/ready").await.unwrap();
        assert!(ready.contains(&scene.keys().public().name.to_string()), "{ready}");
        let (code, metrics) = get(running.http, "/metrics").await.unwrap();
        assert_eq!(code, 200);
        for name in ["fastpay_votes_total{shard=\"0\"}", "fastpay_connections ", "fastpay_commit_seconds_count"] {
            assert!(metrics.contains(name), "{name} is not in {metrics}");
        }
        assert_eq!(get(running.http, "/secrets").await.unwrap().0, 404);
        running.stop().await.unwrap();
    }
}

#[test]
fn the_file_of_endpoints_is_configured_before_it_is_there() {
    let scene = Scene::new();
    let endpoints = scene.folder.path().join("all.json");
    let (listen, http) = free_ports(1);
    let (keys, genesis) = (KeyFiles::in_folder(scene.folder.path()), Some(scene.genesis.clone()));
    let (config, data) = (scene.config_file(), scene.folder.path().join("data"));
    let (shards, primary) = (1.try_into().unwrap(), None);
    let named = Some(endpoints.clone());
    let request = setup::Request { config, data, endpoints: named, keys, shards, listen, http, primary, genesis };
    setup::init(request, scene.keys().public().name).unwrap();
    assert_eq!(scene.config().endpoints, Some(endpoints));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_folder_serves_one_process_and_only_what_it_was_made_for() {
    let scene = Scene::new();
    scene.init(2).unwrap();
    assert!(matches!(scene.init(2), Err(SetupError::Exists(_))), "configurations are never overwritten");
    let kept = std::fs::read(scene.config_file()).unwrap();
    std::fs::remove_file(scene.config_file()).unwrap();
    let taken = scene.init(2);
    assert!(matches!(taken, Err(SetupError::Storage(StorageError::AlreadyCreated { .. }))), "{taken:?}");
    assert!(!scene.config_file().exists(), "nothing is left in the way of the next attempt");
    std::fs::write(scene.config_file(), kept).unwrap();
    let running = Running::ready(scene.config(), scene.keys()).await;
    let second = refused(scene.config_elsewhere(), scene.keys()).await;
    assert!(matches!(second, AuthorityError::Storage(StorageError::InUse { .. })), "{second}");
    running.stop().await.unwrap();

    let config = Config { shards: 1.try_into().unwrap(), ..scene.config() };
    let other_layout = refused(config, scene.keys()).await;
    assert!(matches!(other_layout, AuthorityError::Storage(StorageError::Mismatch { .. })), "{other_layout}");
    let config = Config { data: scene.folder.path().join("dta"), ..scene.config() };
    let mistyped = refused(config, scene.keys()).await;
    assert!(matches!(mistyped, AuthorityError::Storage(StorageError::NotCreated { .. })), "{mistyped}");
    assert!(!scene.folder.path().join("dta").exists());

    // With an archive, it must know with whom.
    let (times, pruning) = (MemberTimes::default(), PruningTimes::default());
    let folder = scene.folder.path().join("archive");
    let archive = Some(ArchiveSettings {
        folder,
        store: None,
        every_seconds: 60,
        orders_max: ORDERS_MIN,
        idle: false,
        times,
        pruning,
    });
    let endpoints = Some(scene.folder.path().join("none.json"));
    let alone = refused(Config { archive, endpoints, ..scene.config() }, scene.keys()).await;
    assert!(matches!(alone, AuthorityError::ArchivePeers(EndpointsError::Unreadable { .. })), "{alone}");

    // Keys of nobody, and one of each of two members.
    let stranger = AuthorityKeys::from_secrets([1; 32], [2; 32]).unwrap();
    let error = refused(scene.config(), stranger).await;
    assert!(matches!(error, AuthorityError::VoterStatus(VoterStatusError::NotAMember(_))), "{error}");
    let other_member = refused(scene.config(), scene.committee.keys[1].clone()).await;
    assert!(matches!(other_member, AuthorityError::Storage(StorageError::Mismatch { .. })), "{other_member}");

    // Another genesis is another deployment; none is none.
    write_genesis(&scene.genesis, &TestCommittee::new(7).keys);
    let other_genesis = refused(scene.config(), scene.keys()).await;
    assert!(matches!(other_genesis, AuthorityError::Storage(StorageError::Mismatch { .. })), "{other_genesis}");
    for text in ["", "{}", "{\"committee\": [], \"balances\": []}"] {
        std::fs::write(&scene.genesis, text).unwrap();
        let error = refused(scene.config(), scene.keys()).await;
        assert!(matches!(error, AuthorityError::Deployment(_)), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_named_and_the_folder_left_as_it_was() {
    let scene = Scene::new();
    scene.init(2).unwrap();
    for taken in [scene.config().shard_addresses().unwrap()[1], scene.config().http] {
        let other = std::net::TcpListener::bind(taken).unwrap();
        let error = refused(scene.config(), scene.keys()).await;
        assert!(matches!(error, AuthorityError::Listen { address, .. } if address == taken), "{error}");
        assert!(error.to_string().contains(&taken.to_string()), "{error}");
        drop(other);
    }
    Running::ready(scene.config(), scene.keys()).await.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_dies_ends_the_authority_and_says_why() {
    let scene = Scene::new();
    scene.init(1).unwrap();
    let config = Config { shards: 1.try_into().unwrap(), ..scene.config() };
    let alice = TestAccount::numbered(0).id();
    {
        let folder = config.data.join("shard-000/checkpoint");
        let store = CheckpointStore::open(&folder, CheckpointOptions::default()).unwrap();
        let mut ledger = Vec::new();
        ShardLedger::default().serialize(&mut ledger).unwrap();
        store.write(JournalPosition(0), ledger, vec![(alice.0, b"no account".to_vec())]).unwrap();
    }
    let error = refused(config, scene.keys()).await;
    let AuthorityError::Shard { error: ShardError::Account(account), .. } = error else { panic!("{error}") };
    assert_eq!(account, alice);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_starts_with_the_committee_it_knows_while_its_primary_is_away() {
    let scene = Scene::new();
    scene.init(2).unwrap();
    let nobody = format!("http://{}", free_ports(1).1).parse().unwrap();
    let domain = fastpay_testkit::test_domain();
    let mut primary = PrimaryConfig::new(vec![nobody], domain.chain_id(), domain.contract());
    (primary.finality, primary.request_timeout_ms) = (Finality::Confirmations(1), 500);
    let data = scene.folder.path().join("data-of-contract");
    let shards = 2.try_into().unwrap();
    let folder = DataFolder::create(&data, &folder_identity(&[scene.keys().public().name], shards, &domain)).unwrap();
    HighWaterMark::create(&data, default_high_water_mark(&data)).unwrap();
    // It has been at work before.
    HighWaterMark::of(&data, default_high_water_mark(&data)).unwrap().judge(&folder, &[], None).unwrap();
    drop(folder);
    let config = Config { data: data.clone(), genesis: None, primary: Some(primary.into()), ..scene.config() };

    let unknown = refused(config.clone(), scene.keys()).await;
    assert!(matches!(unknown, AuthorityError::Deployment(DeploymentError::Epochs(_))), "{unknown}");
    known_committees::write(&data, &Committees::new(TestCommittee::new(4).committee).unwrap()).unwrap();
    let running = Running::begin(config.clone(), vec![scene.keys()]);
    eventually_async("it serves", || async { get(running.http, "/health").await.is_some() }).await;
    // It votes, and says that it does not follow.
    let alice = TestAccount::numbered(0);
    let order = alice.sign(&domain, payment(alice.id(), TestAccount::numbered(1).id(), 1, 0));
    let answer = running.client.shard_of(&alice.id()).order(&order).await;
    assert_eq!(answer, Err(Refusal::PrimaryTooOld.into()), "a number may have been voided that it has never read of");
    running.stop().await.unwrap();
    let now = Clock::system().now_ms() / 1_000;
    let hash = format!("0x{}", "11".repeat(32));
    let followed = |time: u64| {
        let time = serde_json::json!({ "block_time": time, "unlock_window": 7 * 86_400 });
        let cursor = serde_json::json!({ "block_number": 9, "block_hash": hash, "last_index": 0, "time": time });
        std::fs::write(cursor_file(&data), serde_json::to_vec(&cursor).unwrap()).unwrap();
    };
    followed(now - 3 * 86_400 - 60);
    let running = Running::begin(config.clone(), vec![scene.keys()]);
    eventually_async("it serves", || async { get(running.http, "/health").await.is_some() }).await;
    let answer = running.client.shard_of(&alice.id()).order(&order).await;
    assert_eq!(answer, Err(Refusal::PrimaryTooOld.into()));
    running.stop().await.unwrap();
    // What it had followed before it was stopped is young enough.
    followed(now - 2 * 86_400);
    let running = Running::begin(config.clone(), vec![scene.keys()]);
    eventually_async("it serves", || async { get(running.http, "/health").await.is_some() }).await;
    let answer = running.client.shard_of(&alice.id()).order(&order).await;
    assert_eq!(answer, Err(Refusal::InsufficientBalance(Balance::ZERO).into()));
    let (code, ready) = get(running.http, "/ready").await.unwrap();
    assert!(code == 503 && ready.contains("catching up"), "{ready}");
    running.stop().await.unwrap();

    std::fs::write(data.join("committees.json"), b"[[{").unwrap();
    let forgotten = refused(config, scene.keys()).await;
    assert!(matches!(forgotten, AuthorityError::Deployment(DeploymentError::Epochs(_))), "{forgotten}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_clients_and_silent_ones_do_not_hold_up_the_end() {
    let scene = Scene::new();
    scene.init(2).unwrap();
    let running = Running::ready(scene.config(), scene.keys()).await;
    let status = running.client.shards()[0].status().await.unwrap();
    assert_eq!(status.totals.len(), 1);
    // An open stream with nothing on it, a peer that never says a word, and one on the HTTP port.
    let alice = TestAccount::numbered(0);
    let order = alice.sign(&scene.committee.domain, payment(alice.id(), TestAccount::numbered(1).id(), 1, 0));
    running.client.shard_of(&alice.id()).order(&order).await.unwrap();
    let silent = TcpStream::connect(scene.config().listen).await.unwrap();
    let silent_http = TcpStream::connect(scene.config().http).await.unwrap();
    let client = running.client.clone();
    running.stop().await.unwrap();
    drop((silent, silent_http));
    let gone = client.shard_of(&alice.id()).order(&order).await.unwrap_err();
    assert!(gone.is_retryable(), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_served_as_configured_and_wrong_files_are_named() {
    let scene = Scene::new();
    scene.init(2).unwrap();
    let path = |name: &str| scene.folder.path().join(name);
    let files = TlsFiles { certificate: path("node.pem"), key: path("node.key"), http: false };
    let config = || Config { tls: Some(files.clone()), ..scene.config() };
    let missing = refused(config(), scene.keys()).await;
    assert!(
        matches!(&missing, AuthorityError::Tls(TlsError::Unreadable { path, .. }) if *path == files.certificate),
        "{missing}"
    );

    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    std::fs::write(&files.certificate, certified.cert.pem()).unwrap();
    std::fs::write(&files.key, "no key").unwrap();
    let wrong = refused(config(), scene.keys()).await;
    assert!(matches!(wrong, AuthorityError::Server(_)), "{wrong}");
    println!("{wrong}");
    std::fs::write(&files.key, certified.signing_key.serialize_pem()).unwrap();
    // What is told of the chain is when its first certificate ends.
    let issuer = {
        let mut issuer = rcgen::CertificateParams::default();
        issuer.not_after = rcgen::date_time_ymd(2031, 1, 1);
        issuer.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap()
    };
    std::fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let unreadable = refused(config(), scene.keys()).await;
    assert!(matches!(unreadable, AuthorityError::Tls(TlsError::Certificate(_))), "{unreadable}");
    std::fs::write(&files.certificate, format!("{}{}", certified.cert.pem(), issuer.pem())).unwrap();
    let running = Running::ready(config(), scene.keys()).await;
    let (_, metrics) = get(config().http, "/metrics").await.unwrap();
    let ends_at = 1_924_992_000;
    assert!(metrics.contains(&format!("\nfastpay_tls_end_timestamp_seconds {ends_at}\n")), "{metrics}");
    let endpoints = AuthorityEndpoints {
        name: scene.keys().public().name,
        shards: config().shard_addresses().unwrap().iter().map(|address| format!("https://{address}")).collect(),
        http: None,
        tls_ca: Some(files.certificate.clone()),
        label: None,
    };
    let client = AuthorityClient::new(&endpoints, client_options()).unwrap();
    for shard in client.shards() {
        assert_eq!(shard.status().await.unwrap().shard_count, 2);
    }
    let plain = running.client.shards()[0].status().await.unwrap_err();
    assert!(matches!(plain, ClientError::Unreachable(_)), "{plain:?}");
    running.stop().await.unwrap();

    // The HTTP port, too, if that is wanted.
    let with_http = || Config { tls: Some(TlsFiles { http: true, ..files.clone() }), ..scene.config() };
    let running = Running::begin(with_http(), vec![scene.keys()]);
    eventually_async("it is ready", || async {
        get_encrypted(with_http().http, certified.cert.der().clone()).await.is_ok_and(|said| said.contains("ready"))
    })
    .await;
    assert_eq!(get(with_http().http, "/ready").await, None, "without encryption nothing is said");
    running.stop().await.unwrap();
}

/// What the HTTP port answers to who trusts this certificate.
async fn get_encrypted(http: SocketAddr, trusted: CertificateDer<'static>) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
    let name = ServerName::from(http.ip());
    let mut stream = connector.connect(name, TcpStream::connect(http).await?).await?;
    stream.write_all(b"GET /ready HTTP/1.1\r\nhost: authority\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    Ok(answer)
}

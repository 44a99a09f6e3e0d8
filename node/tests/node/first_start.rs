//! An authority starts with a new data folder: at a new deployment it votes; at one in use it may have forgotten votes.

use std::path::Path;
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, ClientError, Endpoints};
use fastpay_core::{Amount, AuthorityKeys, Committee, Committees, Domain, Epoch, TransactionIndex};
use fastpay_ethereum::{Call, Finality, PrimaryConfig};
use fastpay_node::authority::config::{Config, Overrides};
use fastpay_node::authority::deployment::{Deployment, folder_identity};
use fastpay_node::authority::keys::{self, KeyFiles};
use fastpay_node::authority::rollback::{HighWaterMark, StaleReason, default_high_water_mark, in_use};
use fastpay_node::authority::storage::DataFolder;
use fastpay_node::operator::setup;
use fastpay_rpc::Refusal;
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, LyingNode, Mining};
use fastpay_testkit::{TestAccount, payment};

use crate::authority::{Running, Scene, free_ports, get};
use crate::scene::eventually_async;

async fn is_restored(running: &Running) -> bool {
    let (_, said) = get(running.http, "/ready").await.unwrap();
    said.contains("\"restored\":true")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_folder_is_whole_before_the_first_deposit_and_suspect_after_it() {
    let scene = Scene::new();
    scene.init(2).unwrap();
    let anvil = Anvil::start(Mining::Each);
    let contract = anvil.deploy(&scene.committee.committee).await;
    let domain = Domain::new(CHAIN_ID, contract);
    let mut primary = PrimaryConfig::new(vec![anvil.url()], CHAIN_ID, contract);
    primary.finality = Finality::Confirmations(0);
    // Each on ports of its own, with an empty folder.
    let config = |name: &str, keys: &AuthorityKeys| {
        let data = scene.folder.path().join(name);
        let identity = folder_identity(&[keys.public().name], 2.try_into().unwrap(), &domain);
        drop(DataFolder::create(&data, &identity).unwrap());
        HighWaterMark::create(&data, default_high_water_mark(&data)).unwrap();
        let (listen, http) = free_ports(2);
        Config { data, listen, http, genesis: None, primary: Some(primary.clone().into()), ..scene.config() }
    };
    let (early, late) = (scene.committee.keys[0].clone(), scene.committee.keys[1].clone());
    let early_config = config("early", &early);
    let running = Running::ready(early_config.clone(), early.clone()).await;
    assert!(!is_restored(&running).await);

    let funder = anvil.sender(contract, anvil.rich_key(1), Finality::Confirmations(0)).await;
    let alice = TestAccount::numbered(0);
    let call = Call::deposit_ether(contract, alice.id(), Amount(10));
    funder.send_and_wait(call, &mut |_| {}).await.unwrap();
    let order = alice.sign(&domain, payment(alice.id(), TestAccount::numbered(1).id(), 4, 0));
    let voted = async |running: &Running| running.client.shard_of(&alice.id()).order(&order).await;
    eventually_async("it votes", || async { voted(&running).await.is_ok() }).await;
    // The verdict stands, whatever was deposited since.
    running.stop().await.unwrap();
    let running = Running::ready(early_config, early).await;
    assert!(!is_restored(&running).await);
    voted(&running).await.unwrap();

    // Whoever comes later with an empty folder may have voted with another one.
    let late_config = config("late", &late);
    let other = Running::ready(late_config.clone(), late.clone()).await;
    assert!(is_restored(&other).await);
    eventually_async("the deposit is credited", || async {
        let state = other.client.shard_of(&alice.id()).account(alice.id()).await.unwrap();
        state.deposits == 1
    })
    .await;
    let unknown = Err(ClientError::Refused(Refusal::CatchingUp(None)));
    assert_eq!(voted(&other).await, unknown);
    // Also after a restart.
    other.stop().await.unwrap();
    let other = Running::ready(late_config, late).await;
    assert!(is_restored(&other).await);
    assert_eq!(voted(&other).await, unknown);
    other.stop().await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_primary_peers_tell_whether_a_deployment_is_in_use() {
    let scene = Scene::new();
    let endpoints = scene.init(2).unwrap();
    let file = scene.folder.path().join("endpoints.json");
    let config = |name: &str, keys: &AuthorityKeys| {
        let data = scene.folder.path().join(name);
        let identity = folder_identity(&[keys.public().name], 2.try_into().unwrap(), &scene.committee.domain);
        drop(DataFolder::create(&data, &identity).unwrap());
        HighWaterMark::create(&data, default_high_water_mark(&data)).unwrap();
        let (listen, http) = free_ports(2);
        Config { data, listen, http, endpoints: Some(file.clone()), ..scene.config() }
    };
    // All are listed; of the others nobody answers.
    let elsewhere = |keys: &AuthorityKeys| {
        let (listen, _) = free_ports(2);
        let shards = [0, 1].map(|shard| format!("http://127.0.0.1:{}", listen.port() + shard)).to_vec();
        AuthorityEndpoints { name: keys.public().name, shards, http: None, tls_ca: None, label: None }
    };
    let others = scene.committee.keys[1..].iter().map(elsewhere);
    let listed = Endpoints { authorities: std::iter::once(endpoints).chain(others).collect(), ..Endpoints::default() };
    std::fs::write(&file, serde_json::to_vec(&listed).unwrap()).unwrap();

    let [first, second, third] = [0, 1, 2].map(|number: usize| scene.committee.keys[number].clone());
    let first_config = Config { endpoints: Some(file.clone()), ..scene.config() };
    let running = Running::ready(first_config, first).await;
    assert!(!is_restored(&running).await, "nobody answers yet");
    let joins_in_time = Running::ready(config("in-time", &second), second).await;
    assert!(!is_restored(&joins_in_time).await, "nothing was voted for yet");

    let alice = TestAccount::numbered(3);
    let order = alice.sign(&scene.committee.domain, payment(alice.id(), TestAccount::numbered(1).id(), 4, 0));
    running.client.shard_of(&alice.id()).order(&order).await.unwrap();
    let late = Running::ready(config("late", &third), third).await;
    assert!(is_restored(&late).await);
    for running in [late, joins_in_time, running] {
        tokio::time::timeout(Duration::from_secs(60), running.stop()).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_folder_of_new_keys_is_whole_and_no_second_one_or_copy_is() {
    let parent = tempfile::tempdir().unwrap();
    let path = |name: &str| parent.path().join(name);
    let own = keys::generate(&path("keys"), None).unwrap();
    std::fs::create_dir(path("backup")).unwrap();
    for name in ["voting.key", "redemption.key", "unused"] {
        std::fs::copy(path("keys").join(name), path("backup").join(name)).unwrap();
    }
    let others = Scene::new().committee.keys;
    let members = others[1..].iter().chain([&own]).map(AuthorityKeys::public).collect();
    let anvil = Anvil::start(Mining::Each);
    let contract = anvil.deploy(&Committee::new(Epoch(0), members).unwrap()).await;
    // Somebody deposits before any authority is set up.
    let alice = TestAccount::numbered(0);
    let funder = anvil.sender(contract, anvil.rich_key(1), Finality::Confirmations(0)).await;
    funder.send_and_wait(Call::deposit_ether(contract, alice.id(), Amount(10)), &mut |_| {}).await.unwrap();

    let order = alice.sign(&Domain::new(CHAIN_ID, contract), payment(alice.id(), TestAccount::numbered(1).id(), 4, 0));
    let start = async |name: &str, keys: &Path| {
        let (listen, http) = free_ports(1);
        let primary = setup::PrimarySection::Ethereum {
            rpc_urls: vec![anvil.url()],
            chain_id: CHAIN_ID,
            contract,
            finality: Finality::Confirmations(0),
        };
        let config = path(&format!("{name}.toml"));
        let request = setup::Request {
            config: config.clone(),
            data: path(name),
            endpoints: None,
            keys: KeyFiles::in_folder(keys),
            shards: std::num::NonZeroU32::MIN,
            listen,
            http,
            primary: Some(primary),
            genesis: None,
        };
        setup::init(request, own.public().name).unwrap();
        Running::ready(Config::read(&config, Overrides::default()).unwrap(), own.clone()).await
    };
    let votes = async |running: &Running| running.client.shard_of(&alice.id()).order(&order).await;
    let of_copy = start("of-copy", &path("backup")).await;
    assert!(is_restored(&of_copy).await, "a backup says nothing");
    of_copy.stop().await.unwrap();
    let first = start("first", &path("keys")).await;
    assert!(!is_restored(&first).await);
    eventually_async("it votes", || async { votes(&first).await.is_ok() }).await;
    first.stop().await.unwrap();
    let second = start("second", &path("keys")).await;
    assert!(is_restored(&second).await, "its authority has voted with the first one");
    eventually_async("it votes for nothing", || async {
        votes(&second).await == Err(ClientError::Refused(Refusal::CatchingUp(None)))
    })
    .await;
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ethereum_node_that_lags_is_waited_for() {
    let scene = Scene::new();
    let anvil = Anvil::start(Mining::Each);
    let contract = anvil.deploy(&scene.committee.committee).await;
    let funder = anvil.sender(contract, anvil.rich_key(1), Finality::Confirmations(0)).await;
    let call = Call::deposit_ether(contract, TestAccount::numbered(0).id(), Amount(10));
    funder.send_and_wait(call, &mut |_| {}).await.unwrap();
    // It is at a block of two hours ago, in which nothing was deposited.
    let node = LyingNode::start(&anvil.url());
    node.lie(|method, _, answer| match method {
        "eth_getBlockByNumber" => {
            let timestamp = answer["result"]["timestamp"].as_str().unwrap().trim_start_matches("0x");
            let timestamp = u64::from_str_radix(timestamp, 16).unwrap();
            answer["result"]["timestamp"] = format!("{:#x}", timestamp - 7_200).into();
        }
        "eth_call" => answer["result"] = format!("0x{:064x}", 0).into(),
        _ => {}
    });
    let committees = Committees::new(scene.committee.committee.clone()).unwrap();
    let config = PrimaryConfig::new(vec![node.url()], CHAIN_ID, contract);
    let deployment = Deployment::OnPrimary { config, committees, is_ahead: false };
    let mut asked = std::pin::pin!(in_use(&deployment, Epoch(0), None, &[]));
    assert!(tokio::time::timeout(Duration::from_secs(3), &mut asked).await.is_err(), "it is not believed");
    node.repent();
    let found = tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap();
    assert_eq!(found.unwrap(), Some(StaleReason::Events(TransactionIndex(1))));
}

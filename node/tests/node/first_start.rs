//! An authority starts with a new data folder: at a new deployment it votes; at one in use it may have forgotten votes.

use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, ClientError, Endpoints};
use fastpay_core::{Amount, AuthorityKeys, Domain};
use fastpay_ethereum::testing::{Anvil, CHAIN_ID, Mining};
use fastpay_ethereum::{Call, Finality, PrimaryConfig};
use fastpay_node::config::Config;
use fastpay_node::deployment::folder_identity;
use fastpay_node::guard::{Witness, default_witness};
use fastpay_node::storage::DataFolder;
use fastpay_rpc::Refusal;
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
        Witness::create(&data, default_witness(&data)).unwrap();
        let (listen, http) = free_ports(2);
        Config { data, listen, http, genesis: None, primary: Some(primary.clone()), ..scene.config() }
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
        Witness::create(&data, default_witness(&data)).unwrap();
        let (listen, http) = free_ports(2);
        Config { data, listen, http, endpoints: Some(file.clone()), ..scene.config() }
    };
    // All are listed; of the others nobody answers.
    let elsewhere = |keys: &AuthorityKeys| {
        let (listen, _) = free_ports(2);
        let shards = [0, 1].map(|shard| format!("http://127.0.0.1:{}", listen.port() + shard)).to_vec();
        AuthorityEndpoints { name: keys.public().name, shards, http: None, tls_ca: None }
    };
    let others = scene.committee.keys[1..].iter().map(elsewhere);
    let listed = Endpoints { authorities: std::iter::once(endpoints).chain(others).collect(), relayers: Vec::new() };
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

//! A whole authority that follows a real contract through an Ethereum node that begins to lie.

use fastpay_core::{AccountId, Amount, Asset, Balance, Domain, Epoch, SequenceNumber};
use fastpay_ethereum::{Call, Finality, PrimaryConfig, Sender};
use fastpay_node::authority::config::Config;
use fastpay_node::authority::deployment::folder_identity;
use fastpay_node::authority::rollback::{HighWaterMark, default_high_water_mark};
use fastpay_node::authority::storage::DataFolder;
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, LyingNode, Mining};
use fastpay_testkit::{TestAccount, TestCommittee, payment};
use serde_json::Value;

use crate::authority::{Running, Scene, get};
use crate::scene::eventually_async;

async fn deposit(funder: &Sender, recipient: AccountId, amount: u128) {
    let call = Call::deposit_ether(funder.primary().contract(), recipient, Amount(amount));
    funder.send_and_wait(call, &mut |_| {}).await.unwrap();
}

async fn holds(running: &Running, account: AccountId, amount: u128) -> bool {
    let state = running.client.shard_of(&account).account(account).await.unwrap();
    state.balance(Asset::ETHER) == Balance::from(Amount(amount))
}

/// The follower reads again on `lie`, credits nothing and says why; the authority still votes; when the node says the
/// truth again the follower goes on by itself, and credits each deposit once.
async fn check(lie: impl FnMut(&mut Vec<Value>) + Send + 'static, reason: &str) {
    let scene = Scene::new();
    scene.init(2).unwrap();
    let anvil = Anvil::start(Mining::Each);
    let contract = anvil.deploy(&scene.committee.committee).await;
    let domain = Domain::new(CHAIN_ID, contract);
    let committee = TestCommittee::with(4, domain, scene.committee.committee.epoch());
    let node = LyingNode::start(&anvil.url());
    let mut primary = PrimaryConfig::new(vec![node.url()], CHAIN_ID, contract);
    primary.finality = Finality::Confirmations(0);
    let data = scene.folder.path().join("data-of-contract");
    drop(
        DataFolder::create(&data, &folder_identity(&[scene.keys().public().name], 2.try_into().unwrap(), &domain))
            .unwrap(),
    );
    HighWaterMark::create(&data, default_high_water_mark(&data)).unwrap();
    let config = Config { data, genesis: None, primary: Some(primary.into()), ..scene.config() };
    let funder = anvil.sender(contract, anvil.rich_key(1), Finality::Confirmations(0)).await;
    let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));

    let running = Running::ready(config.clone(), scene.keys()).await;
    deposit(&funder, alice.id(), 10).await;
    eventually_async("the first deposit is credited", || holds(&running, alice.id(), 10)).await;

    node.lie_about_logs(lie);
    deposit(&funder, bob.id(), 7).await;
    deposit(&funder, bob.id(), 5).await;
    eventually_async("the follower reads again", || async {
        let ready = get(running.http, "/ready").await;
        ready.is_some_and(|(code, body)| {
            code == 503 && body.contains("reading the Primary again") && body.contains(reason)
        })
    })
    .await;
    let (_, metrics) = get(running.http, "/metrics").await.unwrap();
    let said = ["fastpay_follower_rereading 1", "fastpay_follower_rereads_total ", "fastpay_follower_alarm 0"];
    assert!(said.iter().all(|said| metrics.contains(said)), "{metrics}");
    assert!(holds(&running, bob.id(), 0).await);
    // What is credited can be spent.
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 4, 0));
    running.client.shard_of(&alice.id()).order(&order).await.unwrap();
    let certificate = committee.certificate(&order);
    assert_eq!(
        running.client.shard_of(&alice.id()).confirm(&certificate).await,
        Ok((Some(Epoch(0)), SequenceNumber(1)))
    );
    node.repent();
    eventually_async("every deposit and the payment are there once", || holds(&running, bob.id(), 16)).await;
    assert!(holds(&running, alice.id(), 6).await);
    eventually_async("it is ready", || async {
        get(running.http, "/ready").await.is_some_and(|(code, _)| code == 200)
    })
    .await;
    let (_, metrics) = get(running.http, "/metrics").await.unwrap();
    assert!(metrics.contains("fastpay_follower_rereading 0"), "{metrics}");
    // The deployment is the committee's first sign of life.
    let primary = anvil.primary(contract, Finality::Confirmations(0)).await;
    let alive =
        format!("fastpay_committee_sign_of_life_timestamp_seconds {}", primary.last_sign_of_life().await.unwrap());
    assert!(!alive.ends_with(" 0"), "{alive}");
    eventually_async("the committee's sign of life is shown", || async {
        get(running.http, "/metrics").await.is_some_and(|(_, metrics)| metrics.contains(&alive))
    })
    .await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_left_out_is_read_again_and_stops_nothing_else() {
    check(|logs| drop(logs.pop()), "the contract counts").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_log_is_reread_and_blocks_nothing_else() {
    check(|logs| logs.extend(logs.last().cloned()), "out of order").await;
}

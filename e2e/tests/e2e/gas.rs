//! A relayer whose transactions meet problems: each redemption is still paid exactly once.

use std::time::Duration;

use alloy::primitives::{Address, U256};
use fastpay_core::{AccountId, Asset};
use fastpay_e2e::{Network, PATIENCE, Relayer, User, audit, wait_for};
use serde_json::{Value, json};

use crate::scene::on_chain;

const OUT: Address = Address::repeat_byte(0xef);
const GWEI: u64 = 1_000_000_000;

struct Scene {
    network: Network,
    alice: User,
    own: AccountId,
}

fn ether(whole: u64) -> U256 {
    U256::from(whole) * U256::from(10).pow(U256::from(18))
}

impl Scene {
    /// Running authorities, a relayer that is set up, and Alice's account with 20 ETH.
    async fn new(name: &str) -> Self {
        let mut network = on_chain(name).await;
        network.start_authorities().await.unwrap();
        let alice = User::new(&network, "alice").await.unwrap();
        let own = alice.import_rich_key("own", 0).await.unwrap();
        alice.fastpay(["deposit", "20"]).await.unwrap();
        Self { network, alice, own }
    }

    async fn redeem_one(&self) {
        self.alice.fastpay(["redeem", "1", "--to", &OUT.to_string()]).await.unwrap();
    }

    async fn request(&self, method: &'static str, params: Value) -> Value {
        self.network.chain().unwrap().request(method, params).await.unwrap()
    }

    async fn paid(&self) -> U256 {
        self.network.chain().unwrap().ether_of(OUT).await.unwrap()
    }

    async fn wait_until_paid(&self, whole: u64) {
        wait_for(PATIENCE, async || {
            let paid = self.paid().await;
            if paid == ether(whole) { Ok(()) } else { Err(format!("{paid} wei are paid, not {whole} ETH")) }
        })
        .await
        .unwrap();
    }

    /// The state that it last stored, or an error if it has just begun.
    fn status(&self) -> Result<Value, String> {
        self.network.relayer.as_ref().unwrap().status().map_err(|error| error.to_string())
    }

    /// The newest transaction of the relayer that waits in the chain's pool, with its nonce.
    async fn wait_until_sent(&self) -> (Value, u64) {
        wait_for(PATIENCE, async || {
            let status = self.status()?;
            let transaction = &status["transactions"][0];
            let Some(hash) = transaction["hashes"].as_array().and_then(|hashes| hashes.last()).cloned() else {
                return Err(format!("nothing is under way: {status}"));
            };
            let known = self.request("eth_getTransactionByHash", json!([hash])).await;
            if known.is_null() {
                return Err(format!("not sent yet: {status}"));
            }
            Ok((hash, transaction["nonce"].as_u64().unwrap()))
        })
        .await
        .unwrap()
    }

    async fn wait_until_idle(&self) {
        wait_for(PATIENCE, async || {
            let status = self.status()?;
            let idle = status["transactions"] == json!([]) && status["items"] == 0;
            if idle { Ok(()) } else { Err(format!("still at work: {status}")) }
        })
        .await
        .unwrap();
    }

    async fn assert_audited(&self, left: u64) {
        let lines = audit(&self.network, &[self.own], &[Asset::ETHER]).await.unwrap();
        assert!(lines.iter().all(|line| line.ok), "{lines:?}");
        assert_eq!(lines[0].contract_total.to_string(), ether(left).to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_waits_is_dropped_or_loses_its_nonce_is_paid_once() {
    let mut scene = Scene::new("gas").await;
    let relayer = scene.network.relayer().unwrap().address();

    // It is killed while its transaction is pending, which is then mined.
    scene.network.chain().unwrap().hold().await.unwrap();
    scene.redeem_one().await;
    scene.network.start_relayer().unwrap();
    scene.wait_until_sent().await;
    scene.network.relayer().unwrap().kill();
    scene.network.chain().unwrap().go_on().await.unwrap();
    scene.wait_until_paid(1).await;
    scene.network.start_relayer().unwrap();
    scene.wait_until_idle().await;
    scene.wait_until_paid(1).await;

    // The transaction is dropped from the pool and the relayer killed: it sends the transaction again.
    scene.network.chain().unwrap().hold().await.unwrap();
    scene.redeem_one().await;
    let (hash, _) = scene.wait_until_sent().await;
    scene.network.relayer().unwrap().kill();
    scene.request("anvil_dropTransaction", json!([hash])).await;
    scene.network.chain().unwrap().go_on().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.paid().await, ether(1), "nobody sends it");
    scene.network.start_relayer().unwrap();
    scene.wait_until_paid(2).await;
    // The transaction is dropped while the relayer runs.
    scene.wait_until_idle().await;
    scene.network.chain().unwrap().hold().await.unwrap();
    scene.redeem_one().await;
    let (hash, _) = scene.wait_until_sent().await;
    scene.request("anvil_dropTransaction", json!([hash])).await;
    scene.network.chain().unwrap().go_on().await.unwrap();
    scene.wait_until_paid(3).await;
    scene.wait_until_idle().await;

    // Its key is used elsewhere, and another transaction takes its nonce.
    scene.network.chain().unwrap().hold().await.unwrap();
    scene.redeem_one().await;
    let (_, nonce) = scene.wait_until_sent().await;
    scene.request("anvil_impersonateAccount", json!([relayer])).await;
    let other = json!([{
        "from": relayer, "to": relayer, "value": "0x1", "nonce": format!("{nonce:#x}"),
        "maxFeePerGas": format!("{:#x}", 400 * GWEI), "maxPriorityFeePerGas": format!("{:#x}", 100 * GWEI),
    }]);
    scene.request("eth_sendTransaction", other).await;
    scene.network.chain().unwrap().go_on().await.unwrap();
    scene.wait_until_paid(4).await;
    scene.wait_until_idle().await;
    scene.assert_audited(16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gas_that_is_too_dear_is_waited_out_and_two_relayers_pay_each_redemption_once() {
    let mut scene = Scene::new("spike").await;
    let spike = async |scene: &Scene, gwei: u64| {
        let fee = json!([format!("{:#x}", gwei * GWEI)]);
        scene.request("anvil_setNextBlockBaseFeePerGas", fee).await;
        scene.network.chain().unwrap().mine(1).await.unwrap();
    };
    scene.network.chain().unwrap().hold().await.unwrap();
    spike(&scene, 5_000).await;
    scene.redeem_one().await;
    scene.network.start_relayer().unwrap();
    wait_for(PATIENCE, async || {
        let log = scene.network.place().log("relayer");
        let said = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
        if said.contains("above the cap") { Ok(()) } else { Err(format!("it does not say why it waits: {said}")) }
    })
    .await
    .unwrap();
    assert_eq!(scene.status().unwrap()["transactions"], json!([]), "nothing is sent at such a price");
    // The gas price falls, rises between submission and block, and falls again.
    spike(&scene, 1).await;
    scene.wait_until_sent().await;
    spike(&scene, 5_000).await;
    assert_eq!(scene.paid().await, U256::ZERO);
    spike(&scene, 1).await;
    scene.network.chain().unwrap().go_on().await.unwrap();
    scene.wait_until_paid(1).await;
    scene.wait_until_idle().await;

    // A second relayer with its own key. Both see all redemptions, and both are killed at times.
    let (place, chain) = (scene.network.place(), scene.network.chain().unwrap());
    let mut second = Relayer::init(place, "relayer-2", chain, scene.network.primary()).await.unwrap();
    second.start().unwrap();
    for round in 0..8 {
        scene.redeem_one().await;
        match round {
            2 => {
                second.kill();
                second.start().unwrap();
            }
            4 => {
                scene.network.relayer().unwrap().kill();
                scene.network.start_relayer().unwrap();
            }
            _ => {}
        }
    }
    scene.wait_until_paid(9).await;
    scene.wait_until_idle().await;
    wait_for(PATIENCE, async || {
        let status = second.status().map_err(|error| error.to_string())?;
        let idle = status["transactions"] == json!([]) && status["items"] == 0;
        if idle { Ok(()) } else { Err(format!("the second is still at work: {status}")) }
    })
    .await
    .unwrap();
    scene.wait_until_paid(9).await;
    scene.assert_audited(11).await;
}

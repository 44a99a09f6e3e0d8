//! Users' programs continue through a rotation without a new setup. The `fastpay` command pays before, during and after
//! it, finishes earlier orders, and redeems. A relayer that was started before it submits a redemption whose votes have
//! expired, and those of the new epoch. A shop's service that was started before it takes payments of the new epoch.

use alloy::primitives::{Address, Bytes, U256};
use alloy::sol_types::{SolCall, SolEvent};
use fastpay_core::{Amount, Asset, Authority as Member, Memo};
use fastpay_e2e::{Network, PATIENCE, User, VOTES_VALIDITY_S, audit, bring_all_up_to_date, wait_for};
use fastpay_ethereum::IFastPay;
use fastpay_wallet::Intent;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::merchant_scene::Merchant;
use crate::rotation::{rotate, wait_for_epoch};
use crate::scene::{on_chain, payment};

const OUT: Address = Address::repeat_byte(0xfe);
const ETHER: u128 = 1_000_000_000_000_000_000;

/// The function by which the contract paid a redemption.
#[derive(Debug, PartialEq, Eq)]
enum PayoutMethod {
    Certificate(u64),
    Batch(u64),
}

/// The redemptions that the contract paid, oldest first: by which function, and with votes of which epoch.
async fn paid(network: &Network) -> Vec<PayoutMethod> {
    let chain = network.chain().unwrap();
    let topic = IFastPay::Redeemed::SIGNATURE_HASH;
    let filter = json!([{ "address": network.contract().unwrap(), "fromBlock": "0x0", "topics": [topic] }]);
    let logs: Vec<Value> = chain.request("eth_getLogs", filter).await.unwrap();
    let mut ways = Vec::new();
    for log in logs {
        let transaction: Value =
            chain.request("eth_getTransactionByHash", json!([log["transactionHash"]])).await.unwrap();
        let input: Bytes = serde_json::from_value(transaction["input"].clone()).unwrap();
        ways.push(if let Ok(call) = IFastPay::redeemBatchCall::abi_decode(&input) {
            PayoutMethod::Batch(call.epoch)
        } else if let Ok(call) = IFastPay::redeemManyCall::abi_decode(&input) {
            PayoutMethod::Certificate(call.certified[0].epoch)
        } else {
            PayoutMethod::Certificate(IFastPay::redeemCall::abi_decode(&input).unwrap().epoch)
        });
    }
    ways
}

async fn wait_until_paid(network: &Network, count: usize) {
    let paid = wait_for(PATIENCE, async || match paid(network).await.len() {
        found if found == count => Ok(()),
        found => Err(format!("{found} of {count} redemptions are paid")),
    });
    paid.await.unwrap();
}

/// Pays one wei at a time, each with a command of its own, which must succeed.
fn keep_paying(person: User, recipient: String) -> (watch::Sender<bool>, JoinHandle<u64>) {
    let (stop, stopped) = watch::channel(false);
    let paying = tokio::spawn(async move {
        let mut count = 0;
        while !*stopped.borrow() {
            let paid = person.fastpay(["--timeout", "300", "pay", &recipient, "0.000000000000000001"]).await.unwrap();
            assert_eq!((paid["state"].as_str(), paid["sequence"].as_u64()), (Some("settled"), Some(count)), "{paid}");
            count += 1;
        }
        count
    });
    (stop, paying)
}

/// Restarts the authorities one after the other, with the new keys in addition to the old ones.
async fn restart(network: &mut Network) {
    for authority in &mut network.authorities {
        authority.stop().unwrap();
        authority.start().unwrap();
        authority.wait_ready().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_a_running_relayer_and_a_running_shop_follow_a_rotation() {
    let mut network = on_chain("followers").await;
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let (alice, bob) = (User::new(&network, "alice").await.unwrap(), User::new(&network, "bob").await.unwrap());
    let own = alice.import_rich_key("own", 0).await.unwrap();
    let his = bob.import_rich_key("his", 1).await.unwrap();
    let out = OUT.to_string();
    let shop = User::new(&network, "shop").await.unwrap();
    let till = shop.new_ed25519_key("till").await.unwrap();
    let merchant = Merchant::start(&mut network, &shop, till).await;
    for person in [&alice, &bob] {
        assert_eq!(person.fastpay(["deposit", "10", "--wait", "240"]).await.unwrap()["state"], "credited");
    }
    // The relayer works before the rotation.
    alice.fastpay(["redeem", "1", "--to", &out, "--wait", "240"]).await.unwrap();

    // A redemption that it cannot submit while the contract is paused.
    network.chain().unwrap().pause(network.contract().unwrap()).await.unwrap();
    let (wallet, key) = alice.open("own").unwrap();
    let (recipient, asset, amount, fee) = (OUT, Asset::ETHER, Amount(2 * ETHER), Amount::ZERO);
    wallet.send(&key, &Intent::Redeem { recipient, asset, amount, fee, memo: Memo::ZERO }).await.unwrap();

    // An order whose command died early: it is stored, and two authorities are locked on it.
    let order = key.order(network.domain(), payment(&key, his, 3 * ETHER, 2));
    let journal = wallet.folder().orders(own).lock(PATIENCE).await.unwrap();
    journal.create(&order.clone().verify(network.domain()).unwrap()).unwrap();
    drop((journal, wallet));
    bring_all_up_to_date(&network, &[own]).await.unwrap();
    for authority in &network.clients().unwrap()[..2] {
        authority.shard_of(&own).order(&order).await.unwrap();
    }

    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    let members: Vec<Member> = network.authorities.iter_mut().map(|a| a.add_keys("keys-1").unwrap()).collect();
    let (stop, paying) = keep_paying(bob.clone(), own.to_string());
    restart(&mut network).await;
    // The pause would end within the day that a rotation takes: the guardian pauses again in the first block after it.
    let pass = async |seconds: u64| {
        let (chain, contract) = (network.chain().unwrap(), network.contract().unwrap());
        chain.hold().await.unwrap();
        chain.request::<Value>("evm_increaseTime", json!([seconds])).await.unwrap();
        chain.submit(contract, U256::ZERO, IFastPay::pauseCall {}.abi_encode().into()).await.unwrap();
        chain.mine(1).await.unwrap();
        chain.go_on().await.unwrap();
    };
    rotate(&network, &[0, 1, 3], &members, pass).await;
    for number in 0..4 {
        wait_for_epoch(&network, number, 1).await;
    }

    let resumed = alice.fastpay(["resume"]).await.unwrap();
    let order = &resumed["orders"][0];
    let shown = (order["state"].as_str(), order["resumed"].as_bool(), order["sequence"].as_u64());
    assert_eq!(shown, (Some("settled"), Some(true), Some(2)), "{resumed}");
    assert_eq!(resumed["orders"].as_array().unwrap().len(), 1, "{resumed}");
    stop.send_replace(true);
    let count = paying.await.unwrap();
    assert!(count > 3, "only {count} payments during a rotation");
    let (paid_alice, paid_bob) = (alice.fastpay(["receive"]).await.unwrap(), bob.fastpay(["receive"]).await.unwrap());
    let received = |of: &Value| of["payments"].as_array().unwrap().len() as u64;
    assert_eq!((received(&paid_alice), received(&paid_bob)), (count, 1), "{paid_alice} {paid_bob}");

    let invoice = merchant.create("cake", "700", "600");
    bob.fastpay(["pay", invoice["link"].as_str().unwrap(), "--yes"]).await.unwrap();
    merchant.until(&invoice, "paid", "delivered").await;

    // The pause has ended, and the old votes have expired.
    network.chain().unwrap().pass(VOTES_VALIDITY_S + 1).await.unwrap();
    wait_until_paid(&network, 2).await;
    alice.fastpay(["redeem", "1", "--to", &out, "--wait", "240"]).await.unwrap();
    let alone = bob.fastpay(["redeem", "4", "--to", &out, "--self"]).await.unwrap();
    assert!(alone["redeemed"].is_object(), "{alone}");
    network.relayer().unwrap().program().unwrap().check().unwrap();
    let ways = paid(&network).await;
    assert_eq!(
        ways,
        [
            PayoutMethod::Certificate(0),
            PayoutMethod::Batch(1),
            PayoutMethod::Certificate(1),
            PayoutMethod::Certificate(1)
        ]
    );
    let held = network.chain().unwrap().ether_of(OUT).await.unwrap();
    assert_eq!(held, U256::from(8 * ETHER));

    let lines = audit(&network, &[own, his, till], &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    for person in [&alice, &bob] {
        assert_eq!(person.fastpay(["audit"]).await.unwrap()["ok"], true);
    }
}

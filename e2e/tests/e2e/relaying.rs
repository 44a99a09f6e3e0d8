//! A relayer that dies after storing a transaction and before sending it. And one that submits many redemptions with
//! one vote, executes queued redemptions, and waits until a pause has ended.

use alloy::primitives::{Address, U256};
use alloy::sol_types::{SolCall, SolEvent};
use fastpay_core::{AccountId, Asset};
use fastpay_e2e::{Network, OUTFLOW_DELAY_S, PATIENCE, User, audit, bring_all_up_to_date, http_get, wait_for};
use fastpay_ethereum::IFastPay;
use serde_json::{Value, json};

use crate::proxy::Proxy;
use crate::scene::on_chain;

const OUT: Address = Address::repeat_byte(0xcd);

async fn wait_until_paid(network: &Network, ether: u64) {
    wait_until_out_has(network, U256::from(ether) * U256::from(10).pow(U256::from(18))).await;
}

async fn wait_until_out_has(network: &Network, expected: U256) {
    wait_for(PATIENCE, async || {
        let found = network.chain().unwrap().ether_of(OUT).await.map_err(|error| error.to_string())?;
        if found == expected { Ok(()) } else { Err(format!("{found} wei of {expected} are paid")) }
    })
    .await
    .unwrap();
}

/// Waits until each authority lists this many redemptions of the account that the contract has not paid.
async fn wait_until_so_many_wait(network: &Network, owner: AccountId, count: usize) {
    bring_all_up_to_date(network, &[owner]).await.unwrap();
    for authority in &network.authorities {
        let http = authority.endpoints().unwrap().http.clone().unwrap();
        wait_for(PATIENCE, async || {
            let (_, body) = http_get(&http, "/v1/redemptions/waiting").await?;
            let waiting: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
            let listed = waiting["redemptions"].as_array().map(Vec::len);
            if listed == Some(count) { Ok(()) } else { Err(format!("{count} should wait: {waiting}")) }
        })
        .await
        .unwrap();
    }
}

fn transactions(status: &Value) -> usize {
    status["transactions"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relayer_killed_between_write_and_submit_pays_once() {
    let mut network = on_chain("relayer").await;
    let url = network.chain().unwrap().url().to_owned();
    let port = network.ports().next(1).unwrap();
    let proxy = Proxy::start(port, &url).await;
    let config = network.relayer().unwrap().config().clone();
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains(&url), "{text}");
    std::fs::write(&config, text.replace(&url, proxy.url())).unwrap();

    network.start_authorities().await.unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    let own = alice.import_rich_key("own", 0).await.unwrap();
    alice.fastpay(["deposit", "10"]).await.unwrap();
    for _ in 0..3 {
        alice.fastpay(["redeem", "1", "--to", &OUT.to_string()]).await.unwrap();
    }
    proxy.cut_at(&url, "eth_sendRawTransaction");
    network.start_relayer().unwrap();
    proxy.wait_until_cut().await;
    network.relayer().unwrap().kill();
    // It had stored the transaction, and not sent it.
    let status = network.relayer().unwrap().status().unwrap();
    assert!(transactions(&status) > 0, "{status}");
    wait_until_paid(&network, 0).await;

    proxy.pass(&url);
    network.start_relayer().unwrap();
    wait_until_paid(&network, 3).await;
    wait_for(PATIENCE, async || {
        let status = network.relayer.as_ref().unwrap().status().map_err(|error| error.to_string())?;
        if transactions(&status) == 0 && status["items"] == 0 {
            Ok(())
        } else {
            Err(format!("still at work: {status}"))
        }
    })
    .await
    .unwrap();

    // After another kill and restart, there is nothing left to do.
    network.relayer().unwrap().kill();
    alice.fastpay(["redeem", "1", "--to", &OUT.to_string()]).await.unwrap();
    network.start_relayer().unwrap();
    wait_until_paid(&network, 4).await;
    let lines = audit(&network, &[own], &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    assert_eq!(lines[0].contract_total.to_string(), "6000000000000000000");
}

/// The functions of the contract by which redemptions were paid, one for each transaction, oldest first.
async fn ways_of_paying(network: &Network) -> Vec<[u8; 4]> {
    let chain = network.chain().unwrap();
    let topic = IFastPay::Redeemed::SIGNATURE_HASH;
    let filter = json!([{ "address": network.contract().unwrap(), "fromBlock": "0x0", "topics": [topic] }]);
    let logs: Vec<Value> = chain.request("eth_getLogs", filter).await.unwrap();
    let mut hashes: Vec<_> = logs.iter().map(|log| log["transactionHash"].clone()).collect();
    hashes.dedup();
    let mut ways = Vec::new();
    for hash in hashes {
        let transaction: Value = chain.request("eth_getTransactionByHash", json!([hash])).await.unwrap();
        let input: alloy::primitives::Bytes = serde_json::from_value(transaction["input"].clone()).unwrap();
        ways.push(input[..4].try_into().unwrap());
    }
    ways
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_a_queue_and_a_pause_end_in_payouts() {
    let mut network = on_chain("batch").await;
    network.start_authorities().await.unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    let own = alice.import_rich_key("own", 0).await.unwrap();
    alice.fastpay(["deposit", "10"]).await.unwrap();
    let out = OUT.to_string();
    for _ in 0..3 {
        alice.fastpay(["redeem", "1", "--to", &out]).await.unwrap();
    }
    wait_until_so_many_wait(&network, own, 3).await;
    network.chain().unwrap().pause(network.contract().unwrap()).await.unwrap();
    let refused = alice.try_fastpay(["redeem", "0.5", "--to", &out]).await.unwrap();
    assert_eq!(refused.status.code(), Some(14), "{}{}", refused.out, refused.err);
    network.start_relayer().unwrap();
    wait_for(PATIENCE, async || {
        let status = network.relayer.as_ref().unwrap().status().map_err(|error| error.to_string())?;
        let waits = status["items"] == 3 && status["pausedUntil"].is_u64();
        if waits { Ok(()) } else { Err(format!("three should wait for the end of the pause: {status}")) }
    })
    .await
    .unwrap();
    network.chain().unwrap().pass(3_700).await.unwrap();
    wait_until_paid(&network, 3).await;
    assert_eq!(ways_of_paying(&network).await, [IFastPay::redeemBatchCall::SELECTOR]);

    // Five of the remaining seven exceed the outflow limit.
    let queued = alice.fastpay(["redeem", "5", "--to", &out, "--wait", "60"]).await.unwrap();
    assert!(queued["redeemed"] == false && queued["queued"]["executableAt"].is_u64(), "{queued}");
    wait_for(PATIENCE, async || {
        let status = network.relayer.as_ref().unwrap().status().map_err(|error| error.to_string())?;
        let same = status["queued"][0]["executableAt"] == queued["queued"]["executableAt"];
        if same { Ok(()) } else { Err(format!("not followed: {status}")) }
    })
    .await
    .unwrap();
    wait_until_paid(&network, 3).await;
    network.chain().unwrap().pass(OUTFLOW_DELAY_S + 100).await.unwrap();
    wait_until_paid(&network, 8).await;
    assert_eq!(ways_of_paying(&network).await.last(), Some(&IFastPay::executeQueuedCall::SELECTOR));

    wait_until_so_many_wait(&network, own, 0).await;
    let lines = audit(&network, &[own], &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    assert_eq!(alice.fastpay(["audit"]).await.unwrap()["ok"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_fee_a_redemption_has_the_one_that_the_relayer_takes_and_is_paid() {
    let mut network = on_chain("fees").await;
    network.start_authorities().await.unwrap();
    let relayer = network.publish_fees().unwrap();
    // Its fee covers at least the gas.
    network.relayer().unwrap().leave_below_cost().unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    alice.import_rich_key("own", 0).await.unwrap();
    alice.fastpay(["deposit", "10"]).await.unwrap();
    let out = OUT.to_string();
    let fee_of = |told: &Value| told["fee"]["units"].as_str().unwrap().parse::<u128>().unwrap();

    // No relayer answers yet.
    let told = alice.try_fastpay(["redeem", "1", "--to", &out]).await.unwrap().success().unwrap();
    assert!(told.err.contains("no relayer of the endpoints file announces a fee"), "{}", told.err);
    network.start_relayer().unwrap();
    wait_for(PATIENCE, async || match http_get(&relayer, "/v1/fees").await? {
        (200, _) => Ok(()),
        (status, body) => Err(format!("{status} {body}")),
    })
    .await
    .unwrap();
    let told = alice.fastpay(["redeem", "1", "--to", &out, "--wait", "120"]).await.unwrap();
    let fee = fee_of(&told);
    assert_eq!((told["offer"]["fee"].as_str(), fee > 0), (Some(&*fee.to_string()), true), "{told}");
    assert_eq!(told["offer"]["relayer"], json!(network.relayer().unwrap().address()), "{told}");
    assert_eq!((&told["offer"]["paidWithinSeconds"], &told["redeemed"]["by"]), (&json!(31), &json!("relayer")));
    wait_until_out_has(&network, U256::from(10).pow(U256::from(18)) - U256::from(fee)).await;

    // A default fee is never a large part of the amount.
    let refused = alice.try_fastpay(["redeem", "0.000000000000001", "--to", &out]).await.unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("more than a tenth of"), "{}", refused.err);
    // A given fee is used, even if no relayer accepts it.
    let told = alice.try_fastpay(["redeem", "1", "--to", &out, "--fee", "0"]).await.unwrap().success().unwrap();
    assert!(told.err.contains("for less, perhaps none submits the redemption"), "{}", told.err);
    let told = alice.fastpay(["redeem", "1", "--fee", "0", "--self"]).await.unwrap();
    assert_eq!((fee_of(&told), &told["offer"], &told["redeemed"]["by"]), (0, &Value::Null, &json!("self")), "{told}");
}

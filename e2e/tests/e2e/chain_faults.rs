//! A chain that reorganizes, and Ethereum nodes that lie about it.

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use fastpay_core::{AccountKey, Amount, Asset, Memo};
use fastpay_e2e::{Network, PATIENCE, Payers, audit, http_get, wait_for};
use fastpay_ethereum::IFastPay;
use fastpay_testkit::anvil::LyingNode;
use fastpay_wallet::Intent;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::scene::{key, on_chain};

/// More blocks than lie between the newest and the finalized one.
const DEEP: u64 = 12;

/// The call of a deposit of this many wei to an account.
fn deposit(account: &AccountKey) -> alloy::primitives::Bytes {
    IFastPay::depositEtherCall { recipient: account.account().0.into() }.abi_encode().into()
}

async fn wait_for_balance(network: &Network, numbers: &[usize], account: &AccountKey, wei: u128) {
    let account = account.account();
    for number in numbers {
        let client = network.authorities[*number].client().unwrap();
        wait_for(PATIENCE, async || {
            let state = client.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
            let held = state.balance(Asset::ETHER);
            if held == crate::scene::balance(wei) {
                Ok(())
            } else {
                Err(format!("authority {number} has {held}, not {wei}"))
            }
        })
        .await
        .unwrap();
    }
}

/// The state that an authority reports.
async fn ready(network: &Network, number: usize) -> Result<Value, String> {
    let http = network.authorities[number].endpoints().unwrap().http.clone().unwrap();
    Ok(serde_json::from_str(&http_get(&http, "/ready").await?.1).unwrap())
}

/// Waits until the follower retries an inconsistent answer. It would stop only after five minutes of them.
async fn wait_for_rereading(network: &Network, number: usize, words: &str) {
    let http = network.authorities[number].endpoints().unwrap().http.clone().unwrap();
    wait_for(PATIENCE, async || {
        let said = ready(network, number).await?;
        let reason = said["reason"].as_str().unwrap_or_default();
        let rereads = said["status"] == "reading the Primary again" && reason.contains(words);
        if rereads { Ok(()) } else { Err(format!("authority {number} suspects nothing: {said}")) }
    })
    .await
    .unwrap();
    let metrics = http_get(&http, "/metrics").await.unwrap().1;
    assert!(metrics.contains("fastpay_follower_rereading 1"), "{metrics}");
}

async fn audited(network: &Network, accounts: &[&AccountKey]) -> (bool, String) {
    let accounts: Vec<_> = accounts.iter().map(|key| key.account()).collect();
    let lines = audit(network, &accounts, &[Asset::ETHER]).await.unwrap();
    (lines.iter().all(|line| line.ok), format!("{lines:?}"))
}

async fn pay(payers: &Payers, to: &AccountKey, wei: u128) {
    let intent = Intent::Pay { recipient: to.account(), asset: Asset::ETHER, amount: Amount(wei), memo: Memo::ZERO };
    payers.send(0, intent).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_that_is_undone_before_it_is_final_is_not_credited_and_one_undone_after_is_noticed() {
    let mut network = on_chain("reorg").await;
    network.start_authorities().await.unwrap();
    let (payer, other) = (key(0), key(1));
    let contract = network.contract().unwrap();
    let chain = network.chain().unwrap();
    let all = [0, 1, 2, 3];

    // Above the final block: the deposit is in a block that is replaced.
    chain.hold().await.unwrap();
    chain.submit(contract, U256::from(1_000), deposit(&payer)).await.unwrap();
    chain.mine(1).await.unwrap();
    let index = |call: Value| chain.request::<U256>("eth_call", call);
    let total = IFastPay::totalBalanceCall { asset: alloy::primitives::Address::ZERO }.abi_encode();
    let held = json!([{ "to": contract, "data": alloy::primitives::Bytes::from(total) }, "latest"]);
    assert_eq!(index(held.clone()).await.unwrap(), U256::from(1_000));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    chain.reorganise(1).await.unwrap();
    chain.mine(DEEP).await.unwrap();
    assert_eq!(index(held.clone()).await.unwrap(), U256::ZERO);
    // The deposit is included again in another block, and counts once.
    chain.submit(contract, U256::from(1_000), deposit(&payer)).await.unwrap();
    chain.mine(DEEP).await.unwrap();
    wait_for_balance(&network, &all, &payer, 1_000).await;
    chain.go_on().await.unwrap();
    let payers = Payers::new(&network, 2).unwrap();
    assert_eq!(payers.accounts()[0], payer.account());
    pay(&payers, &other, 100).await;
    payers.bring_all_up_to_date(&payers.accounts()).await.unwrap();
    let (ok, lines) = audited(&network, &[&payer, &other]).await;
    assert!(ok, "{lines}");
    assert_eq!(ready(&network, 0).await.unwrap()["status"], "ready");

    // Below the final block, a reorganization is inconsistent. No deposit is credited meanwhile; payments continue.
    let chain = network.chain().unwrap();
    chain.send(contract, U256::from(50), deposit(&payer)).await.unwrap();
    wait_for_balance(&network, &all, &payer, 950).await;
    chain.hold().await.unwrap();
    chain.reorganise(DEEP).await.unwrap();
    chain.mine(DEEP).await.unwrap();
    for number in all {
        wait_for_rereading(&network, number, "was final as").await;
    }
    pay(&payers, &other, 50).await;
    payers.bring_all_up_to_date(&payers.accounts()).await.unwrap();
    wait_for_balance(&network, &all, &other, 150).await;
    // The audit shows how much is missing on the chain.
    let (ok, lines) = audited(&network, &[&payer, &other]).await;
    assert!(!ok && lines.contains("1050"), "{lines}");
    // A restart does not hide it.
    let authority = network.authority(0).unwrap();
    authority.kill();
    authority.start().unwrap();
    wait_for_rereading(&network, 0, "was final as").await;
}

/// A lying node beside the chain's own, and that one's address.
async fn network_with_a_liar(name: &str) -> (Network, LyingNode, String) {
    let network = on_chain(name).await;
    let honest = network.chain().unwrap().url().to_owned();
    let liar = LyingNode::start(&honest.parse().unwrap());
    (network, liar, honest)
}

/// Configures an authority to use these nodes from now on.
async fn ask_instead(network: &mut Network, number: usize, urls: &[&str]) {
    let authority = network.authority(number).unwrap();
    authority.stop().unwrap();
    authority.set_rpc_urls(urls).unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ethereum_node_that_lies_or_omits_credits_nothing_at_those_who_ask_it() {
    let (mut network, liar, honest) = network_with_a_liar("liar").await;
    let lying = liar.url().to_string();
    network.authorities[0].set_rpc_urls(&[&honest, &lying]).unwrap();
    network.start_authorities().await.unwrap();
    let (payer, other) = (key(0), key(1));
    let contract = network.contract().unwrap();
    network.chain().unwrap().send(contract, U256::from(1_000), deposit(&payer)).await.unwrap();
    wait_for_balance(&network, &[0, 1, 2, 3], &payer, 1_000).await;
    let payers = Payers::new(&network, 2).unwrap();

    // Two nodes that disagree: the amount of the next deposit is another one.
    liar.lie_about_logs(|logs| {
        for log in logs {
            let data = log["data"].as_str().unwrap_or_default().replace("07d0", "ffff");
            log["data"] = data.into();
        }
    });
    network.chain().unwrap().send(contract, U256::from(0x07d0), deposit(&payer)).await.unwrap();
    wait_for_balance(&network, &[1, 2, 3], &payer, 3_000).await;
    wait_for_rereading(&network, 0, "disagrees").await;
    wait_for_balance(&network, &[0], &payer, 1_000).await;
    // Payments continue, also at the authority that does not know the deposit.
    pay(&payers, &other, 10).await;
    // The operator intervenes, and continues with the honest node.
    ask_instead(&mut network, 0, &[&honest]).await;
    payers.bring_all_up_to_date(&payers.accounts()).await.unwrap();
    wait_for_balance(&network, &[0, 1, 2, 3], &payer, 2_990).await;

    // One node alone that omits a deposit does not count as the contract does.
    liar.repent();
    ask_instead(&mut network, 1, &[&lying]).await;
    liar.lie_about_logs(Vec::clear);
    network.chain().unwrap().send(contract, U256::from(7), deposit(&other)).await.unwrap();
    wait_for_balance(&network, &[0, 2, 3], &other, 17).await;
    wait_for_rereading(&network, 1, "the contract counts 3").await;
    wait_for_balance(&network, &[1], &other, 10).await;
    // When the node is honest again, no operator has to intervene.
    liar.repent();
    wait_for_balance(&network, &[1], &other, 17).await;
    let (ok, lines) = audited(&network, &[&payer, &other]).await;
    assert!(ok, "{lines}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ethereum_node_that_lags_delays_those_who_ask_it_and_no_more() {
    let (mut network, liar, honest) = network_with_a_liar("lag").await;
    let lying = liar.url().to_string();
    network.authorities[0].set_rpc_urls(&[&honest, &lying]).unwrap();
    network.authorities[1].set_rpc_urls(&[&lying]).unwrap();
    network.start_authorities().await.unwrap();
    let (payer, other) = (key(0), key(1));
    let contract = network.contract().unwrap();
    // Its head is stuck at the block of the first request.
    let still: Arc<Mutex<BTreeMap<String, (Value, u32)>>> = Arc::default();
    let kept = still.clone();
    liar.lie(move |method, params, answer| {
        let tag = params[0].as_str().unwrap_or_default();
        if method == "eth_blockNumber" || (method == "eth_getBlockByNumber" && !tag.starts_with("0x")) {
            let mut kept = kept.lock().unwrap();
            let kept = kept.entry(format!("{method}{tag}")).or_insert_with(|| (answer["result"].clone(), 0));
            kept.1 += 1;
            answer["result"] = kept.0.clone();
        }
    });
    // Wait for so many requests by two authorities that one of them has made a full round.
    wait_for(PATIENCE, async || {
        let asked: Vec<_> = still.lock().unwrap().iter().map(|(what, (_, times))| (what.clone(), *times)).collect();
        let enough = !asked.is_empty() && asked.iter().all(|(_, times)| *times > 4);
        if enough { Ok(()) } else { Err(format!("it was asked {asked:?}")) }
    })
    .await
    .unwrap();
    network.chain().unwrap().send(contract, U256::from(1_000), deposit(&payer)).await.unwrap();
    wait_for_balance(&network, &[2, 3], &payer, 1_000).await;
    for number in [0, 1] {
        wait_for_balance(&network, &[number], &payer, 0).await;
        let said = ready(&network, number).await.unwrap();
        assert_ne!(said["status"], "follower stopped", "{said}");
    }
    liar.repent();
    wait_for_balance(&network, &[0, 1, 2, 3], &payer, 1_000).await;
    let payers = Payers::new(&network, 2).unwrap();
    pay(&payers, &other, 10).await;
    payers.bring_all_up_to_date(&payers.accounts()).await.unwrap();
    let (ok, lines) = audited(&network, &[&payer, &other]).await;
    assert!(ok, "{lines}");
}

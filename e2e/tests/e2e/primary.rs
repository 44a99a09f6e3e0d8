//! An Ethereum node that becomes unreachable and comes back, or serves another chain.

use std::process::Command;
use std::time::{Duration, Instant};

use fastpay_client::AuthorityClient;
use fastpay_core::{AccountId, Asset};
use fastpay_e2e::{Chain, Failure, Network, PATIENCE, Place, Ports, User, http_get, program, run, wait_for};

use crate::proxy::{Mode, Proxy};
use crate::scene::{build, layout};

async fn network_behind_a_wire(name: &str) -> (Network, Proxy) {
    build();
    let place = Place::temporary(name).unwrap();
    let mut ports = Ports::take().unwrap();
    let chain = Chain::start(&place, &mut ports, layout().block_time).await.unwrap();
    let proxy = Proxy::start(ports.next(1).unwrap(), chain.url()).await;
    let url = proxy.url().to_owned();
    (Network::on_chain(place, ports, layout(), chain, Some(url)).await.unwrap(), proxy)
}

/// A follower that has stopped for good is restarted by its operator.
async fn restart_stopped(network: &mut Network) {
    for authority in &mut network.authorities {
        let http = authority.endpoints().unwrap().http.clone().unwrap();
        if http_get(&http, "/ready").await.is_ok_and(|(_, said)| said.contains("stopped")) {
            authority.stop().unwrap();
            authority.start().unwrap();
        }
    }
}

async fn wait_for_deposits(
    clients: &[AuthorityClient],
    account: AccountId,
    count: u64,
    patience: Duration,
) -> Result<(), Failure> {
    wait_for(patience, async || {
        for client in clients {
            let state = client.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
            if state.deposits != count {
                return Err(format!("{} knows {} deposits of {count}", client.name(), state.deposits));
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_continue_without_the_ethereum_node_and_deposits_after_it() {
    let (mut network, proxy) = network_behind_a_wire("away").await;
    network.start_authorities().await.unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    let own = alice.import_rich_key("own", 0).await.unwrap();
    let other = alice.new_ed25519_key("other").await.unwrap();
    alice.fastpay(["deposit", "3", "--from", "own"]).await.unwrap();
    let clients = network.clients().unwrap();
    // The wallet waited only for a quorum; a later authority would not receive it any more.
    wait_for_deposits(&clients, own, 1, PATIENCE).await.unwrap();

    proxy.set(Mode::Cut);
    alice.fastpay(["pay", "other", "1", "--from", "own"]).await.unwrap();
    // An authority that is killed and restarted meanwhile still votes, with the stored committee.
    for number in 0..2 {
        let authority = network.authority(number).unwrap();
        authority.kill();
        authority.start().unwrap();
    }
    let http = network.authorities[0].endpoints().unwrap().http.clone().unwrap();
    let ready = wait_for(Duration::from_secs(60), async || http_get(&http, "/ready").await).await.unwrap();
    assert_eq!(ready.0, 503, "{}", ready.1);
    assert_eq!(http_get(&http, "/health").await.unwrap().0, 200);
    alice.fastpay(["pay", "other", "1", "--from", "own"]).await.unwrap();
    // The wallet reaches the chain through another node; no authority credits its deposit now.
    alice.fastpay(["deposit", "4", "--from", "own", "--wait", "0"]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    wait_for_deposits(&clients, own, 1, PATIENCE).await.unwrap();

    let url = network.chain().unwrap().url().to_owned();
    proxy.pass(&url);
    wait_for_deposits(&clients, own, 2, PATIENCE).await.unwrap();
    for authority in &mut network.authorities {
        authority.wait_ready().await.unwrap();
    }
    let lines = fastpay_e2e::audit(&network, &[own, other], &[Asset::ETHER]).await.unwrap();
    assert!(lines[0].ok && lines[0].contract_total.to_string() == "7000000000000000000", "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_chain_is_not_followed() {
    let (mut network, proxy) = network_behind_a_wire("other-chain").await;
    let elsewhere = Place::temporary("elsewhere").unwrap();
    let port = network.ports().next(1).unwrap();
    let other = Chain::start_with_id(&elsewhere, port, layout().block_time, 999).await.unwrap();

    // At the start, another chain is an error, which names both chains.
    proxy.pass(other.url());
    let refused = network.authority(0).unwrap().run_to_end().unwrap();
    assert!(!refused.status.success());
    assert!(refused.err.contains("serves chain 999, not 31337"), "{}", refused.err);

    // At run time, the node keeps running and waits for the right chain.
    let right = network.chain().unwrap().url().to_owned();
    proxy.pass(&right);
    network.start_authorities().await.unwrap();
    proxy.pass(other.url());
    let alice = User::new(&network, "alice").await.unwrap();
    let own = alice.import_rich_key("own", 0).await.unwrap();
    alice.fastpay(["deposit", "1", "--wait", "0"]).await.unwrap();
    let clients = network.clients().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    wait_for_deposits(&clients, own, 0, PATIENCE).await.unwrap();
    proxy.pass(&right);
    // A node that is still reading the other chain stops only after its first comparison.
    let until = Instant::now() + PATIENCE;
    while wait_for_deposits(&clients, own, 1, Duration::from_secs(2)).await.is_err() && Instant::now() < until {
        restart_stopped(&mut network).await;
    }
    wait_for_deposits(&clients, own, 1, PATIENCE).await.unwrap();

    // A wallet with another chain ID is not set up.
    let endpoints = network.endpoints_file().to_string_lossy().into_owned();
    let home = network.place().path("wallets/lost").to_string_lossy().into_owned();
    let contract = network.contract().unwrap().to_string();
    let mut init = Command::new(program("fastpay").unwrap());
    init.args(["--home", &home, "init", "--rpc-url", &right, "--contract", &contract, "--endpoints", &endpoints]);
    let init = tokio::task::spawn_blocking(move || run(init.args(["--chain-id", "1"]))).await.unwrap().unwrap();
    assert!(!init.status.success() && init.err.contains("serves chain 31337, not 1"), "{}{}", init.out, init.err);
}

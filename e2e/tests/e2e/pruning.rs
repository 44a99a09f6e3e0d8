//! A month of history in a minute: nodes certify checkpoints and end their own journals in turn, under load. One of them
//! is away meanwhile, one is killed at it, and one begins from an empty folder.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastpay_core::Asset;
use fastpay_e2e::{Network, PATIENCE, Payers, Primary, audit, program, run, wait_for, within};
use tokio::task::JoinSet;

use crate::scene::on_chain;
use crate::storm::{give, keep_paying, wait_until_relayed};

const PAYERS: u8 = 6;
/// As often as nodes may be configured to make them.
const EVERY_SECONDS: u64 = 10;

fn certified(network: &Network, authority: usize) -> u64 {
    let names = std::fs::read_dir(network.authorities[authority].archive()).into_iter().flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".certificate.json")?.parse().ok()).max().unwrap_or(0)
}

fn folders(data: &Path) -> Vec<String> {
    let names = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("shard-") || name.starts_with("generation-")).collect()
}

/// Waits until an authority runs on journals that begin at a checkpoint, and no others are left.
pub async fn pruned(network: &Network, authority: usize) {
    let authority = &network.authorities[authority];
    wait_for(PATIENCE, async || {
        let (generation, left) =
            (authority.generation().map_err(|error| error.to_string())?, folders(&authority.data()));
        let is_done = generation > 0 && left == [format!("generation-{generation:04}")];
        if is_done { Ok(()) } else { Err(format!("{} is in generation {generation}: {left:?}", authority.name())) }
    })
    .await
    .unwrap();
}

/// An empty folder in place of the data, as after a lost disk.
fn begin_anew(network: &Network, number: usize) {
    let (place, authority) = (network.place(), &network.authorities[number]);
    std::fs::remove_dir_all(authority.data()).unwrap();
    std::fs::remove_dir_all(authority.archive()).unwrap();
    std::fs::remove_file(authority.data().with_file_name("data.witness")).unwrap();
    let Primary::Contract { rpc_url, chain_id, contract } = network.primary() else { panic!("there is a chain") };
    let mut init = Command::new(program("fastpay-node").unwrap());
    init.args(["init", "--listen", "127.0.0.1:1", "--http", "127.0.0.1:9", "--shards", "2", "--config"]);
    init.arg(place.path("again.toml")).arg("--keys").arg(authority.keys_folder()).arg("--data").arg(authority.data());
    init.args(["--rpc-url", rpc_url, "--chain-id", &chain_id.to_string(), "--contract", &contract.to_string()]);
    run(&mut init).unwrap().success().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_of_history_is_pruned_under_load() {
    let mut network = on_chain("pruning").await;
    for authority in &network.authorities {
        authority.set_endpoints(&network.endpoints_file()).unwrap();
        authority.set_archive(EVERY_SECONDS).unwrap();
    }
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let payers = Payers::new(&network, PAYERS).unwrap();
    let accounts = payers.accounts();
    for account in &accounts {
        give(&network, *account).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut paying = JoinSet::new();
    for member in 0..usize::from(PAYERS) {
        paying.spawn(keep_paying(payers.clone(), member, member as u64, stop.clone()));
    }

    // While one is away, the others certify, and none of them leaves.
    network.authority(3).unwrap().kill();
    let first = async || if certified(&network, 0) >= 2 { Ok(()) } else { Err("no second checkpoint".to_owned()) };
    wait_for(PATIENCE, first).await.unwrap();
    for authority in &network.authorities {
        assert_eq!(authority.generation().unwrap(), 0, "{}", authority.name());
    }
    network.authority(3).unwrap().start().unwrap();
    network.authority(3).unwrap().wait_ready().await.unwrap();

    // The first that writes new journals is killed at it.
    let victim = within(PATIENCE, "nobody ends its journals", async {
        loop {
            let begun = |number: &usize| network.authorities[*number].data().join("generation-0001/shard-000").exists();
            if let Some(victim) = (0..4).find(begun) {
                break victim;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .unwrap();
    network.authority(victim).unwrap().kill();
    network.authority(victim).unwrap().start().unwrap();
    network.authority(victim).unwrap().wait_ready().await.unwrap();
    for authority in 0..4 {
        pruned(&network, authority).await;
    }

    // The one that was away loses its disk as well, and takes from the committee what all others have pruned.
    network.authority(3).unwrap().kill();
    begin_anew(&network, 3);
    network.authority(3).unwrap().start().unwrap();
    network.authority(3).unwrap().wait_ready().await.unwrap();
    pruned(&network, 3).await;

    let settled = payers.settled();
    wait_for(PATIENCE, async || if payers.settled() > settled { Ok(()) } else { Err("nobody pays".to_owned()) })
        .await
        .unwrap();
    stop.store(true, Ordering::Relaxed);
    let redeemed: u64 = within(PATIENCE, "they are still paying", paying.join_all()).await.unwrap().iter().sum();
    wait_until_relayed(&network, redeemed).await;
    let clients = network.clients().unwrap();
    wait_for(PATIENCE, async || {
        for account in &accounts {
            let mut next = Vec::new();
            for client in &clients {
                let state = client.shard_of(account).account(*account).await.map_err(|error| error.to_string())?;
                next.push(state.next_sequence);
            }
            if next.iter().any(|number| *number != next[0]) {
                return Err(format!("{account} is at {next:?}"));
            }
        }
        Ok(())
    })
    .await
    .unwrap();
    let lines = audit(&network, &accounts, &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    assert!(certified(&network, 0) >= 3);
    for number in 0..3 {
        let log = network.authority(number).unwrap().program().unwrap().log_text();
        assert!(!log.contains("this data folder may be older"), "{log}");
    }
    println!("{settled} payments and redemptions settled, {} checkpoints", certified(&network, 0));
}

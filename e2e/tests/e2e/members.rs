//! New members of whom nobody has an endpoints file: nodes, wallets and relayers find them by what they say themselves.

use std::path::Path;
use std::time::Duration;

use alloy::primitives::Address;
use fastpay_e2e::{PATIENCE, User, http_get, wait_for};

use crate::replace::{clients_of, install_those};
use crate::rotation::{wait_for_epoch, wait_in_epoch};
use crate::scene::on_chain;

const OUT: Address = Address::repeat_byte(0xcd);

/// Lets a program go on with another endpoints file.
fn keep_file(config: &Path, from: &Path, to: &Path) {
    let text = std::fs::read_to_string(config).unwrap();
    let (from, to) = (from.display().to_string(), to.display().to_string());
    assert!(text.contains(&from), "{text}");
    std::fs::write(config, text.replace(&from, &to)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_of_four_members_are_replaced_and_a_wallet_that_knew_the_four_pays_on_without_a_new_file() {
    let mut network = on_chain("members").await;
    let (all, first) = (network.endpoints_file(), network.place().path("first.json"));
    std::fs::copy(&all, &first).unwrap();
    for _ in 0..3 {
        network.add(2).unwrap();
        network.authorities.last().unwrap().set_observer().unwrap();
    }
    for (number, authority) in network.authorities.iter().enumerate() {
        authority.set_endpoints(if number < 4 { &first } else { &all }).unwrap();
    }
    network.start_authorities().await.unwrap();
    keep_file(&network.relayer().unwrap().config().clone(), &all, &first);
    network.start_relayer().unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    keep_file(&alice.home().join("config.toml"), &all, &first);
    alice.import_rich_key("own", 0).await.unwrap();
    let bob = User::new(&network, "bob").await.unwrap();
    keep_file(&bob.home().join("config.toml"), &all, &first);
    let his = bob.new_ed25519_key("his").await.unwrap().to_string();
    alice.fastpay(["deposit", "5", "--wait", "240"]).await.unwrap();
    alice.fastpay(["pay", &his, "1"]).await.unwrap();

    let clients = clients_of(&network);
    let members = [0, 4, 5, 6];
    install_those(&network, &clients, (1, &members), (&[0, 1, 2], &[4, 5, 6])).await;
    for number in members {
        wait_for_epoch(&network, number, 1).await;
    }
    // The member that stayed knows them, although its file does not, and tells so.
    let names = [4, 5, 6].map(|number: usize| network.authorities[number].member().name.to_string());
    let http = network.authorities[0].endpoints().unwrap().http.clone().unwrap();
    let told = wait_for(PATIENCE, async || {
        let (_, body) = http_get(&http, "/v1/endpoints").await.map_err(|error| error.to_string())?;
        if names.iter().all(|name| body.contains(name)) { Ok(()) } else { Err(body) }
    });
    told.await.unwrap();
    // Those that left have nothing to wait for once the new members have what they executed, and a member does not leave.
    let joined = network.authorities[5].operate_with(["join", "--json"]).unwrap();
    assert!(joined.status.success() && joined.out.contains("\"votes\": true"), "{}{}", joined.out, joined.err);
    for number in 1..4 {
        wait_in_epoch(&network, number, 1, false).await;
        let left = network.authorities[number].operate_with(["leave", "--wait", "120", "--json"]).unwrap();
        assert!(left.status.success() && left.out.contains("\"mayStop\": true"), "{}{}", left.out, left.err);
        let status = network.authorities[number].operate("status").unwrap();
        assert!(status.out.contains("no member of this epoch"), "{}{}", status.out, status.err);
        network.authority(number).unwrap().kill();
    }
    let member = network.authorities[4].operate("leave").unwrap();
    assert!(member.err.contains("is a member of epoch 1"), "{}{}", member.out, member.err);

    // Of the four that the wallet knows, one is left, which names a newer epoch.
    let paid = alice.fastpay(["--timeout", "15", "pay", &his, "1"]).await.unwrap();
    assert_eq!(paid["state"], "settled");
    // What was found is kept: that one may be gone, too.
    network.authority(0).unwrap().kill();
    let paid = alice.fastpay(["pay", &his, "1"]).await.unwrap();
    assert_eq!(paid["state"], "settled");
    network.authority(0).unwrap().start().unwrap();
    wait_for_epoch(&network, 0, 1).await;
    let received = bob.fastpay(["receive", "--wait", "240"]).await.unwrap();
    assert_eq!(received["payments"].as_array().map_or(0, Vec::len), 3, "{received}");

    // The relayer redeems what the new members certified, and knows where they are.
    let out = OUT.to_string();
    let redeemed = alice.fastpay(["redeem", "1", "--to", &out, "--fee", "0.25", "--wait", "240"]).await.unwrap();
    assert_eq!(redeemed["redeemed"]["by"], "relayer", "{redeemed}");
    let known = wait_for(Duration::from_secs(180), async || {
        let file = network.place().path("relayer").join("relayer-data").join("members.json");
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        if names.iter().all(|name| text.contains(name)) { Ok(()) } else { Err(text) }
    });
    known.await.unwrap();
    // A new wallet begins with the old file, too.
    let carol = User::new(&network, "carol").await.unwrap();
    let init = ["init", "--force", "--endpoints", &first.display().to_string()].map(str::to_owned);
    let (rpc, contract) = (network.chain().unwrap().url().to_owned(), network.contract().unwrap().to_string());
    let on = ["--rpc-url", &rpc, "--contract", &contract, "--chain-id", "31337"].map(str::to_owned);
    carol.fastpay(init.into_iter().chain(on)).await.unwrap();
    let text = std::fs::read_to_string(carol.home().join("members.json")).unwrap();
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
}

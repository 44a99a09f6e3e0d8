//! Run-books of docs/OPERATIONS.md ("Which committee next") that no other test rehearses: a member that lies is left out,
//! one stolen key is replaced while commands are killed, and the committee goes on without its guardian.

use std::process::{Command, Stdio};
use std::time::Duration;

use alloy::primitives::{Address, U64};
use fastpay_core::{Committee, Epoch};
use fastpay_e2e::{By, Finished, Network, PATIENCE, bring_all_up_to_date, program, wait_for};
use serde_json::{Value, json};

use crate::replace::{clients_of, install_those};
use crate::rotation::{DELAY_S, Load, deposit, wait_for_epoch, wait_in_epoch};
use crate::scene::{key, on_chain, payment};

/// What `committee status` says of an announcement.
fn status(network: &Network, file: &str, votes: &[&str]) -> Value {
    let path = |name: &str| network.place().path(name).display().to_string();
    let mut arguments = vec!["committee".into(), "status".into(), "--json".into(), "--announcement".into(), path(file)];
    votes.iter().for_each(|vote| arguments.extend(["--vote".into(), path(vote)]));
    json_of(&network.authorities[0].operate_with(arguments).unwrap().success().unwrap())["announcements"][0].clone()
}

fn json_of(finished: &Finished) -> Value {
    serde_json::from_str(&finished.out).unwrap_or_else(|error| panic!("{error}: {}{}", finished.out, finished.err))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lies_is_left_out_whatever_its_operator_does() {
    const LIAR: usize = 3;
    let mut network = on_chain("liar").await;
    let endpoints = network.endpoints_file();
    network.add(2).unwrap();
    network.authorities[4].set_observer().unwrap();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    network.start_authorities().await.unwrap();
    let clients = clients_of(&network);
    deposit(&network, &key(0), 1_000_000).await;
    let load = Load::start(&clients, key(0), key(2).account());
    load.more("before").await;

    // Its operator proposes a committee with itself and guardians of its choice. Alone it announces nothing.
    let own = [0, 1, 2, LIAR].map(|number| network.authorities[number].member());
    let guardian = ["--guardian".to_owned(), Address::repeat_byte(0x66).to_string()];
    let rotation = network.propose_with("none", &own, &[LIAR], 1, &guardian).unwrap();
    network.sign(&rotation).unwrap();
    let refused = network.announce_unendorsed(&rotation).unwrap();
    assert_eq!(refused.status.code(), Some(11), "{}", refused.err);
    assert!(refused.err.contains("1 valid signatures, and 3 are needed"), "{}", refused.err);
    // Nobody takes that proposal for the others' one, which needs a file of its own.
    let four = [0, 1, 2, 4].map(|number| network.authorities[number].member());
    let refused = network.propose_with("none", &four, &[0], 1, &[]).unwrap_err().to_string();
    assert!(refused.contains("has another proposal"), "{refused}");
    let (file, liars) = (rotation.announcement, network.place().path("liars.json"));
    std::fs::rename(&file, liars).unwrap();
    std::fs::rename(network.vote_file(1, "sign", LIAR), network.place().path("liars-vote.json")).unwrap();

    // It signs nothing else, and its node goes away before it has said what it knows of the epoch.
    network.authority(LIAR).unwrap().kill();
    install_those(&network, &clients, (1, &[0, 1, 2, 4]), (&[0, 1, 2], &[0, 1, 4])).await;
    let said = status(&network, "announcement-1.json", &["sign-1-0.json", "liars-vote.json"]);
    assert_eq!((&said["state"], &said["signedBy"].as_array().unwrap().len()), (&json!("installed"), &3), "{said}");
    assert_eq!(said["ignored"], json!([network.authorities[LIAR].member().name]), "{said}");
    for number in [0, 1, 2, 4] {
        wait_for_epoch(&network, number, 1).await;
    }
    load.more("in the next epoch").await;
    let (payer, next) = load.end().await;
    // Another member is away, so a payment needs the new one.
    network.authority(2).unwrap().kill();
    let certificate = clients.do_it(&payer, payment(&payer, key(2).account(), 1, next)).await;
    let new = network.authorities[4].member().name;
    assert!(certificate.epoch == Epoch(1) && certificate.votes.iter().any(|vote| vote.authority == new));
    // It comes back, and votes for nothing.
    network.authority(LIAR).unwrap().start().unwrap();
    wait_in_epoch(&network, LIAR, 1, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stolen_key_is_replaced_although_the_commands_are_killed() {
    const VICTIM: usize = 1;
    let mut network = on_chain("stolen").await;
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    let mut members: Vec<_> = network.authorities.iter().map(|authority| authority.member()).collect();
    let stolen = members[VICTIM];
    members[VICTIM] = network.authority(VICTIM).unwrap().add_keys("keys-1").unwrap();
    network.start_authorities().await.unwrap();
    let clients = clients_of(&network);
    deposit(&network, &key(0), 1_000_000).await;
    let load = Load::start(&clients, key(0), key(2).account());
    load.more("before").await;

    let propose = || network.propose("keys-1", &members, &[0, 2, 3], (1, 1)).unwrap();
    let rotation = propose();
    let proposed = std::fs::read(&rotation.announcement).unwrap();
    propose();
    assert_eq!(std::fs::read(&rotation.announcement).unwrap(), proposed);
    network.sign(&rotation).unwrap();
    // The command is killed once its transaction is in the nodes' pool, and again while it follows it.
    let chain = network.chain().unwrap();
    chain.hold().await.unwrap();
    let stored = network.place().path("announcement-1.json.transaction");
    for _ in 0..2 {
        let arguments = [network.sending(By::Anyone, "announce", &rotation).unwrap(), network.announcing(&rotation)];
        let mut command = Command::new(program("fastpay-node").unwrap());
        command.args(arguments.concat()).arg("--config").arg(network.authorities[0].config());
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(PATIENCE, async || {
            let pool: Value = chain.request("txpool_status", json!([])).await.map_err(|error| error.to_string())?;
            if stored.exists() && pool["pending"] == "0x1" { Ok(()) } else { Err(pool.to_string()) }
        })
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        running.kill().unwrap();
        running.wait().unwrap();
    }
    chain.go_on().await.unwrap();
    let again = network.announce_unendorsed(&rotation).unwrap().success().unwrap();
    assert!(again.err.contains("following the transaction of an earlier command"), "{}", again.err);
    assert!(!stored.exists());
    let once = network.announce_unendorsed(&rotation).unwrap().success().unwrap();
    assert!(!once.err.contains("sent 0x"), "{}", once.err);
    let sender = Address::from(alloy::primitives::hex!("9965507D1a55bcC2695C58ba16FB37d819B0A4dc"));
    let sent: U64 = chain.request("eth_getTransactionCount", json!([sender, "latest"])).await.unwrap();
    assert_eq!(sent.to::<u64>(), 1);

    let unnamed = network.send(By::Guardian, "endorse", &rotation, Vec::new()).unwrap();
    assert_eq!(unnamed.status.code(), Some(2), "{}", unnamed.err);
    assert!(unnamed.err.contains("is not endorsed: if this is what you want"), "{}", unnamed.err);
    network.endorse(&rotation, &once).unwrap();
    chain.pass(DELAY_S + 1).await.unwrap();
    network.install(&rotation).await.unwrap();
    let committee = Committee::new(Epoch(1), members).unwrap();
    assert!(committee.member(&stolen.name).is_none());
    clients.committees.lock().unwrap().install(committee).unwrap();
    for number in 0..4 {
        wait_for_epoch(&network, number, 1).await;
    }
    load.more("with the new key").await;
    let (payer, next) = load.end().await;
    bring_all_up_to_date(&network, &[payer.account()]).await.unwrap();
    network.authority(3).unwrap().kill();
    let certificate = clients.do_it(&payer, payment(&payer, key(2).account(), 1, next)).await;
    let voters: Vec<_> = certificate.votes.iter().map(|vote| vote.authority).collect();
    assert!(certificate.epoch == Epoch(1) && voters.len() == 3 && !voters.contains(&stolen.name), "{voters:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_committee_goes_on_without_its_guardian_and_nothing_is_lost_when_an_announcement_lapses() {
    let mut network = on_chain("no-guardian").await;
    network.start_authorities().await.unwrap();
    let members: Vec<_> = network.authorities.iter().map(|authority| authority.member()).collect();
    let voters = [0, 1, 2];
    // The contract pays what stolen keys have queued after three days: somebody has to be able to postpone.
    let nobody = ["--guardian".to_owned(), Address::ZERO.to_string()];
    let refused = network.propose_with("none", &members, &voters, 1, &nobody).unwrap_err().to_string();
    assert!(refused.contains("name a guardian"), "{refused}");
    let new = Address::repeat_byte(0x67);
    let named = ["--guardian".to_owned(), new.to_string()];
    let rotation = network.propose_with("none", &members, &voters, 1, &named).unwrap();
    let said = network.sign(&rotation).unwrap();
    assert!(said[0].err.contains(&format!("guardian: {new} (now 0x")), "{}", said[0].err);
    network.announce_unendorsed(&rotation).unwrap().success().unwrap();
    let said = status(&network, "announcement-1.json", &[]);
    assert_eq!((&said["state"], &said["endorsedAt"]), (&json!("announced"), &Value::Null), "{said}");
    assert!(said["next"].as_str().unwrap().contains("endorses it"), "{said}");
    let chain = network.chain().unwrap();
    chain.pass(DELAY_S + 1).await.unwrap();
    let early = network.send(By::Anyone, "install", &rotation, Vec::new()).unwrap();
    assert_eq!(early.status.code(), Some(11), "{}", early.err);
    assert!(early.err.contains("The guardian has not endorsed it"), "{}", early.err);
    chain.pass(13 * DELAY_S).await.unwrap();
    network.install(&rotation).await.unwrap();
    for number in 0..4 {
        wait_for_epoch(&network, number, 1).await;
    }
    let all = network.authorities[3].operate_with(["committee", "status", "--json"]).unwrap().success().unwrap();
    let all = json_of(&all);
    assert_eq!((&all["epoch"], &all["guardian"]), (&json!(1), &json!(new)), "{all}");
    assert_eq!(all["announcements"], json!([]), "{all}");

    // The next one waits for too long.
    let rotation = network.propose("none", &members, &voters, (2, 2)).unwrap();
    network.sign(&rotation).unwrap();
    network.announce_unendorsed(&rotation).unwrap().success().unwrap();
    chain.pass(28 * DELAY_S + 1).await.unwrap();
    for late in ["install", "announce"] {
        let arguments = if late == "announce" { network.announcing(&rotation) } else { Vec::new() };
        let late = network.send(By::Anyone, late, &rotation, arguments).unwrap();
        assert_eq!(late.status.code(), Some(2), "{}", late.err);
        assert!(late.err.contains("the announcement lapsed at"), "{}", late.err);
        assert!(json_of(&late)["error"]["message"].as_str().unwrap().contains("propose it anew"), "{}", late.out);
    }
    let said = status(&network, "announcement-2.json", &["sign-2-0.json"]);
    assert_eq!((&said["state"], &said["signedBy"].as_array().unwrap().len()), (&json!("lapsed"), &3), "{said}");
    // The same members are proposed anew with the same proofs.
    std::fs::remove_file(&rotation.announcement).unwrap();
    let mut arguments =
        vec!["committee".into(), "propose".into(), "--out".into(), rotation.announcement.clone().into()];
    rotation.proofs.iter().for_each(|proof| arguments.extend(["--proof".into(), proof.clone().into_os_string()]));
    network.authorities[1].operate_with(arguments).unwrap().success().unwrap();
    for number in voters {
        std::fs::remove_file(network.vote_file(2, "sign", number)).unwrap();
    }
    network.sign(&rotation).unwrap();
    network.announce_unendorsed(&rotation).unwrap().success().unwrap();
    assert_eq!(status(&network, "announcement-2.json", &[])["state"], json!("announced"));
}

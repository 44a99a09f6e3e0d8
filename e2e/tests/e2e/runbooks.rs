//! Run-books of docs/OPERATIONS.md ("Which committee next") that no other test rehearses: a member that lies is left out,
//! one stolen key is replaced while the thief signs with it and commands are killed, and the committee goes on without
//! its guardian.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use alloy::primitives::{Address, U64};
use fastpay_core::{Committee, CouncilStatement, Epoch, sign_council_vote};
use fastpay_e2e::{By, Finished, Network, PATIENCE, program, wait_for};
use fastpay_node::operator::committee::VoteFile;
use fastpay_rpc::json::Hex;
use serde_json::{Value, json};

use crate::changing::wait_until_it_waits_for;
use crate::killed::killed_on_its_way;
use crate::liar::{Dispute, behind_proxies, plant_closing};
use crate::proxy::Proxy;
use crate::replace::clients_of;
use crate::rotation::{DELAY_S, deposit, wait_for_epoch, wait_in_epoch};
use crate::scene::{key, on_chain};
use crate::traffic::Traffic;

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
    const NEW: usize = 4;
    let mut network = on_chain("liar").await;
    network.add(2).unwrap();
    network.authorities[NEW].set_observer().unwrap();
    let proxies = behind_proxies(&mut network, LIAR).await;
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    network.start_authorities().await.unwrap();
    // Whatever it answers from now on is wrong.
    proxies.iter().for_each(|proxy| proxy.lie());
    let (clients, owner) = (clients_of(&network), key(4));
    deposit(&network, &owner, 1_000_000).await;
    let traffic = Traffic::start(&network).await;
    let liar = network.authorities[LIAR].secret_keys().unwrap();
    let dispute = Dispute::open(&clients, &owner, (&[0, 1], &[2]), Some(&liar)).await;

    // Its operator proposes a committee with itself and guardians of its choice. Alone it announces nothing.
    let own = [0, 1, 2, LIAR].map(|number| network.authorities[number].member());
    let guardian = ["--guardian".to_owned(), Address::repeat_byte(0x66).to_string()];
    let rotation = network.propose_with("none", &own, &[LIAR], 1, &guardian).unwrap();
    network.sign(&rotation).unwrap();
    let refused = network.announce_unendorsed(&rotation).unwrap();
    assert_eq!(refused.status.code(), Some(11), "{}", refused.err);
    assert!(refused.err.contains("1 valid signatures, and 3 are needed"), "{}", refused.err);
    // Nobody takes that proposal for the others' one, which needs a file of its own.
    let four = [0, 1, 2, NEW].map(|number| network.authorities[number].member());
    let refused = network.propose_with("none", &four, &[0], 1, &[]).unwrap_err().to_string();
    assert!(refused.contains("has another proposal"), "{refused}");
    let (file, liars) = (rotation.announcement, network.place().path("liars.json"));
    std::fs::rename(&file, liars).unwrap();
    std::fs::rename(network.vote_file(1, "sign", LIAR), network.place().path("liars-vote.json")).unwrap();

    // It signs nothing else, and states of the epoch what no certificate bears out. One member is away, so the new one has
    // the Closings of two others, and waits.
    plant_closing(&network.authorities[0].data(), &liar, network.domain(), Epoch(0));
    let members = [0, 1, 2, NEW];
    let next = network.propose("none", &four, &[0, 1, 2], (1, 1)).unwrap().accepted_by(&[0, 1, NEW]);
    network.sign(&next).unwrap();
    network.announce(&next).unwrap();
    traffic.more("before it is left out").await;
    network.authority(2).unwrap().kill();
    network.chain().unwrap().pass(DELAY_S + 1).await.unwrap();
    network.install(&next).await.unwrap();
    clients.committees.lock().unwrap().install(Committee::new(Epoch(1), four.to_vec()).unwrap()).unwrap();
    let said = status(&network, "announcement-1.json", &["sign-1-0.json", "liars-vote.json"]);
    assert_eq!((&said["state"], &said["signedBy"].as_array().unwrap().len()), (&json!("installed"), &3), "{said}");
    assert_eq!(said["ignored"], json!([network.authorities[LIAR].member().name]), "{said}");
    wait_until_it_waits_for(&network, NEW, "certificates").await;
    network.authority(2).unwrap().start().unwrap();
    for number in members {
        wait_for_epoch(&network, number, 1).await;
    }
    // The new one knows both orders of the number, and votes for neither.
    assert_eq!(dispute.voters_for_other(&clients, &members).await, [2]);
    clients.settle_at(4, dispute.certified.certificate()).await;
    // Another member is away, so payments need the new one.
    network.authority(1).unwrap().kill();
    traffic.more("in the next epoch").await;
    network.authority(1).unwrap().start().unwrap();
    wait_for_epoch(&network, 1, 1).await;
    wait_in_epoch(&network, LIAR, 1, false).await;
    network.authorities.remove(LIAR);
    traffic.account_for_all(&network, &[owner.account(), key(8).account()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_stolen_key_is_replaced_although_the_thief_signs_with_it_and_commands_are_killed() {
    const VICTIM: usize = 1;
    /// Changes its keys, too, so it has to join with what the others state.
    const CAREFUL: usize = 3;
    let mut network = on_chain("stolen").await;
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    let mut members: Vec<_> = network.authorities.iter().map(|authority| authority.member()).collect();
    let (stolen, thief) = (members[VICTIM], network.authorities[VICTIM].secret_keys().unwrap());
    for number in [VICTIM, CAREFUL] {
        members[number] = network.authority(number).unwrap().add_keys("keys-1").unwrap();
    }
    network.start_authorities().await.unwrap();
    // From now on the commands of one operator read the chain through a proxy.
    let url = network.chain().unwrap().url().to_owned();
    let proxy = Proxy::start(network.ports().next(1).unwrap(), &url).await;
    network.authorities[0].set_rpc_urls(&[proxy.url()]).unwrap();
    let config = network.authorities[0].config().clone();
    let (clients, owner) = (clients_of(&network), key(4));
    deposit(&network, &owner, 1_000_000).await;
    let traffic = Traffic::start(&network).await;
    // The thief votes for both orders of a number.
    let dispute = Dispute::open(&clients, &owner, (&[0, 2], &[CAREFUL]), Some(&thief)).await;

    let propose = || network.propose("keys-1", &members, &[0, 2, CAREFUL], (1, 1)).unwrap();
    let rotation = propose();
    let proposed = std::fs::read(&rotation.announcement).unwrap();
    propose();
    assert_eq!(std::fs::read(&rotation.announcement).unwrap(), proposed);
    let signing = |what: &str, out: &Path| {
        let mut arguments: Vec<OsString> = ["committee", what, "--announcement"].map(Into::into).to_vec();
        arguments.extend([rotation.announcement.clone().into(), "--out".into(), out.into()]);
        rotation.proofs.iter().for_each(|proof| arguments.extend(["--proof".into(), proof.clone().into()]));
        arguments
    };
    let out = network.vote_file(1, "sign", 0);
    let signed = killed_on_its_way(&proxy, &signing("sign", &out), &config, Some(&out)).await;
    assert!(signed.code == Some(0) && signed.kills > 2, "{} kills: {}", signed.kills, signed.err);
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
    assert_eq!(sent_by(&network, ANYONE).await, 1);

    // The guardian's command is killed, too, and endorses once.
    let unnamed = network.send(By::Guardian, "endorse", &rotation, Vec::new()).unwrap();
    assert_eq!(unnamed.status.code(), Some(2), "{}", unnamed.err);
    assert!(unnamed.err.contains("is not endorsed: if this is what you want"), "{}", unnamed.err);
    let id = json_of(&once)["id"].as_str().unwrap().to_owned();
    let before = sent_by(&network, GUARDIAN).await;
    let endorsing =
        [network.sending(By::Guardian, "endorse", &rotation).unwrap(), vec!["--id".into(), id.clone().into()]];
    let endorsed = killed_on_its_way(&proxy, &endorsing.concat(), &config, None).await;
    assert!(endorsed.code == Some(0) && endorsed.kills > 2, "{} kills: {}", endorsed.kills, endorsed.err);
    assert_eq!(sent_by(&network, GUARDIAN).await, before + 1);

    chain.pass(DELAY_S + 1).await.unwrap();
    let installing = network.sending(By::Anyone, "install", &rotation).unwrap();
    let matured = killed_on_its_way(&proxy, &installing, &config, None).await;
    assert!(matured.code == Some(11) && matured.kills > 2, "{} kills: {}", matured.kills, matured.err);
    // Two members of the next committee accept, and the thief does with the key that is none any more.
    let [ready, second, third] = [0, 2, CAREFUL].map(|number| network.place().path(format!("accepted-{number}.json")));
    for (number, out) in [(0, &ready), (2, &second), (CAREFUL, &third)] {
        wait_for(PATIENCE, async || {
            let vote = network.authorities[number].vote("accept", &rotation.announcement, &rotation.proofs, out);
            vote.and_then(Finished::success).map_err(|error| error.to_string())
        })
        .await
        .unwrap();
    }
    let accepted = [network.vote_file(1, "accept", 0), second];
    let first = killed_on_its_way(&proxy, &signing("accept", &accepted[0]), &config, Some(&accepted[0])).await;
    assert!(first.code == Some(0) && first.kills > 2, "{} kills: {}", first.kills, first.err);
    let thiefs = network.place().path("thiefs.json");
    let vote: VoteFile = serde_json::from_slice(&std::fs::read(&accepted[0]).unwrap()).unwrap();
    let block: Value =
        chain.request("eth_getBlockByNumber", json!([U64::from(vote.block.unwrap()), false])).await.unwrap();
    let (announcement, block_hash) = (id.parse().unwrap(), block["hash"].as_str().unwrap().parse().unwrap());
    let statement = CouncilStatement::Acceptance { epoch: Epoch(1), announcement, block_hash };
    let forged = sign_council_vote(&thief, network.domain(), &statement);
    let vote = VoteFile { authority: forged.authority, signature: Hex(forged.signature.0), ..vote };
    std::fs::write(&thiefs, serde_json::to_vec(&vote).unwrap()).unwrap();
    let mut with_thief = installing.clone();
    accepted.iter().chain([&thiefs]).for_each(|vote| with_thief.extend(["--vote".into(), vote.clone().into()]));
    let refused = network.authorities[0].operate_with(&with_thief).unwrap();
    assert_eq!(refused.status.code(), Some(11), "{}{}", refused.out, refused.err);
    assert_eq!(json_of(&refused)["ignored"], json!([stolen.name]), "{}", refused.out);

    // The thief states of the epoch what no certificate bears out, and is the first whose Closing a joiner gets.
    network.authority(CAREFUL).unwrap().kill();
    plant_closing(&network.authorities[CAREFUL].data(), &thief, network.domain(), Epoch(0));
    let sent = sent_by(&network, ANYONE).await;
    let mut with_quorum = installing;
    accepted.iter().chain([&third]).for_each(|vote| with_quorum.extend(["--vote".into(), vote.clone().into()]));
    let installed = killed_on_its_way(&proxy, &with_quorum, &config, None).await;
    assert!(installed.code == Some(0) && installed.kills > 2, "{} kills: {}", installed.kills, installed.err);
    assert_eq!(sent_by(&network, ANYONE).await, sent + 1);
    let committee = Committee::new(Epoch(1), members).unwrap();
    assert!(committee.member(&stolen.name).is_none());
    clients.committees.lock().unwrap().install(committee).unwrap();
    network.authority(CAREFUL).unwrap().start().unwrap();
    for number in 0..4 {
        wait_for_epoch(&network, number, 1).await;
    }
    let log = network.authority(CAREFUL).unwrap().program().unwrap().log_text();
    let tried: Vec<_> = log.lines().filter(|line| line.contains("joining with the Closings of a quorum")).collect();
    let is_thiefs = |line: &&str| line.contains(&stolen.name.to_string());
    assert!(tried.first().is_some_and(is_thiefs) && !tried.last().is_some_and(is_thiefs), "{tried:?}");
    // Who voted for the other order knows of the certified one by now: nobody votes for it.
    assert_eq!(dispute.voters_for_other(&clients, &[0, VICTIM, 2, CAREFUL]).await, Vec::<usize>::new());
    clients.settle_at(4, dispute.certified.certificate()).await;
    traffic.more("with the new keys").await;
    traffic.account_for_all(&network, &[owner.account(), key(8).account()]).await;
}

/// The addresses of [`By::Anyone`] and [`By::Guardian`].
const ANYONE: Address = Address::new(alloy::primitives::hex!("9965507D1a55bcC2695C58ba16FB37d819B0A4dc"));
const GUARDIAN: Address = Address::new(alloy::primitives::hex!("90F79bf6EB2c4f870365E785982E1f101E93b906"));

/// How many transactions an address has sent.
async fn sent_by(network: &Network, sender: Address) -> u64 {
    let sent = network.chain().unwrap().request("eth_getTransactionCount", json!([sender, "latest"])).await;
    let sent: U64 = sent.unwrap();
    sent.to()
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

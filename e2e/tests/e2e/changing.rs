//! A committee of four becomes one of seven and one of four again, with three members replaced, while wallets pay all the
//! time. Of the three new members one dies in the middle of its join, one lies, and one stalls.

use fastpay_core::{Committee, Epoch};
use fastpay_e2e::{By, Finished, Network, PATIENCE, http_get, wait_for};

use crate::killed::killed_while_it_waits;
use crate::liar::{Dispute, behind_proxies, plant_closing};
use crate::replace::{clients_of, install_those, said};
use crate::rotation::{DELAY_S, deposit, wait_for_epoch, wait_in_epoch};
use crate::scene::{key, on_chain};
use crate::traffic::Traffic;

/// Those that leave in the end, the one that stays, and the three new members.
const LEAVERS: [usize; 3] = [0, 1, 2];
const STAYS: usize = 3;
const DIES: usize = 4;
const LIES: usize = 5;
const STALLS: usize = 6;

/// How many Closings of an epoch are in an authority's folder.
fn closings(network: &Network, number: usize, epoch: u64) -> usize {
    let folder = std::fs::read_dir(network.authorities[number].data().join("closings"));
    let names = folder.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with(&format!("{epoch}-"))).count()
}

async fn wait_for_closings(network: &Network, number: usize, epoch: u64, count: usize) {
    wait_for(PATIENCE, async || match closings(network, number, epoch) {
        found if found >= count => Ok(()),
        found => Err(format!("authority {number} has {found} Closings of epoch {epoch}")),
    })
    .await
    .unwrap();
}

/// Waits until an authority waits for this before it joins.
pub async fn wait_until_it_waits_for(network: &Network, number: usize, what: &str) {
    let expected = format!("\"waitsFor\":\"{what}\"");
    wait_for(PATIENCE, async || {
        let http = network.authorities[number].endpoints().unwrap().http.clone().unwrap();
        let (_, said) = http_get(&http, "/ready").await.map_err(|error| error.to_string())?;
        if said.contains(&expected) { Ok(()) } else { Err(format!("authority {number}: {said}")) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_become_seven_and_four_again_under_load_while_a_joiner_dies_one_lies_and_one_stalls() {
    let mut network = on_chain("changing").await;
    for shards in [2, 1, 2] {
        network.add(shards).unwrap();
        network.authorities.last().unwrap().set_observer().unwrap();
    }
    let proxies = behind_proxies(&mut network, LIES).await;
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    for number in [0, 1, 2, STAYS, LIES, STALLS] {
        network.authority(number).unwrap().start().unwrap();
    }
    for number in [0, 1, 2, STAYS, LIES, STALLS] {
        network.authority(number).unwrap().wait_ready().await.unwrap();
    }
    proxies.iter().for_each(|proxy| proxy.lie());
    let (clients, owner) = (clients_of(&network), key(4));
    deposit(&network, &owner, 1_000_000).await;
    let traffic = Traffic::start(&network).await;
    let dispute = Dispute::open(&clients, &owner, (&[0, 1, 2], &[]), None).await;

    // Four become seven. Of the operators who accept, one's node has not followed the chain, and its word is refused.
    let seven: Vec<_> = network.authorities.iter().map(|authority| authority.member()).collect();
    let rotation = network.propose("none", &seven, &[0, 1, 2], (1, 1)).unwrap().accepted_by(&[0, 1, 2, STAYS, LIES]);
    network.sign(&rotation).unwrap();
    network.announce(&rotation).unwrap();
    network.chain().unwrap().pass(DELAY_S + 1).await.unwrap();
    let matured = network.send(By::Anyone, "install", &rotation, Vec::new()).unwrap();
    assert!(matured.out.contains("\"matured\""), "{}{}", matured.out, matured.err);
    let out = network.place().path("early.json");
    let early = network.authorities[DIES].vote("accept", &rotation.announcement, &rotation.proofs, &out).unwrap();
    assert!(early.err.contains("has followed the chain up to block none"), "{}", early.err);
    assert!(!out.exists());
    traffic.more("before the seven").await;
    // From here on one stalls: it accepts connections, and answers nothing. Two members of four freeze, too, once they can
    // accept, so that there are too few Closings for a while.
    for number in [1, 2] {
        let (authority, out) = (&network.authorities[number], network.vote_file(1, "accept", number));
        wait_for(PATIENCE, async || {
            let accepted = authority.vote("accept", &rotation.announcement, &rotation.proofs, &out);
            accepted.and_then(Finished::success).map_err(|error| error.to_string())
        })
        .await
        .unwrap();
    }
    for number in [1, 2, STALLS] {
        network.authority(number).unwrap().program().unwrap().signal("STOP");
    }
    network.install(&rotation).await.unwrap();
    let committee = Committee::new(Epoch(1), seven).unwrap();
    clients.committees.lock().unwrap().install(committee).unwrap();

    // One is killed in the middle of its join: while it waits, and once it has three Closings, perhaps joined.
    network.authority(DIES).unwrap().start().unwrap();
    wait_until_it_waits_for(&network, DIES, "closings").await;
    wait_for_closings(&network, DIES, 0, 1).await;
    let (place, authority) = (network.place(), &network.authorities[DIES]);
    killed_while_it_waits(place, authority, &["join", "--wait", "600"], "Closings of 3 members").await;
    network.authority(DIES).unwrap().kill();
    for number in [1, 2] {
        network.authority(number).unwrap().program().unwrap().signal("CONT");
    }
    network.authority(DIES).unwrap().start().unwrap();
    wait_for_closings(&network, DIES, 0, 3).await;
    network.authority(DIES).unwrap().kill();
    network.authority(DIES).unwrap().start().unwrap();
    for number in [0, 1, 2, STAYS, DIES] {
        wait_for_epoch(&network, number, 1).await;
    }
    let joined = network.authorities[DIES].operate_with(["join", "--json"]).unwrap();
    assert!(joined.status.success() && joined.out.contains("\"votes\": true"), "{}{}", joined.out, joined.err);
    // Without the one that stalls and the one that lies there is exactly a quorum.
    traffic.more("while one lies and one stalls").await;
    network.authority(STALLS).unwrap().program().unwrap().signal("CONT");
    wait_for_epoch(&network, STALLS, 1).await;
    wait_for_epoch(&network, LIES, 1).await;
    // New members know what the four voted for: only one that may vote for the other order does, and the liar.
    let others = dispute.voters_for_other(&clients, &[0, 1, 2, STAYS, DIES, STALLS]).await;
    assert_eq!(others, [STAYS]);
    clients.settle_at(7, dispute.certified.certificate()).await;
    traffic.more("with seven").await;

    // Seven become four. Everybody joins, with what five of seven state. Two are away, and the liar's Closing is the fifth:
    // nobody joins with it, nor pays, until one of the two is back.
    let liar = network.authorities[LIES].secret_keys().unwrap();
    let four = [STAYS, DIES, LIES, STALLS];
    for number in [0, 1] {
        network.authority(number).unwrap().kill();
    }
    for number in [LIES, 2] {
        plant_closing(&network.authorities[number].data(), &liar, network.domain(), Epoch(1));
    }
    install_those(&network, &clients, (2, &four), (&[2, STAYS, DIES, LIES, STALLS], &[STAYS, DIES, STALLS])).await;
    let honest = [STAYS, DIES, STALLS];
    for number in honest {
        wait_until_it_waits_for(&network, number, "certificates").await;
    }
    network.authority(0).unwrap().start().unwrap();
    for number in honest {
        wait_for_epoch(&network, number, 2).await;
        assert!(said(&network, number).await.contains("\"fullSince\":2"));
    }
    traffic.more("with the four").await;

    // Those that left stop once nobody needs them: a member that cannot be asked may.
    network.authority(1).unwrap().start().unwrap();
    for number in LEAVERS {
        wait_in_epoch(&network, number, 2, false).await;
    }
    network.authority(LIES).unwrap().program().unwrap().signal("STOP");
    let (place, authority) = (network.place(), &network.authorities[0]);
    killed_while_it_waits(place, authority, &["leave", "--stop", "--wait", "600"], "the node may be stopped: 3 of 4")
        .await;
    assert!(!network.authorities[0].data().join("left.json").exists());
    network.authority(0).unwrap().program().unwrap().check().unwrap();
    network.authority(LIES).unwrap().program().unwrap().signal("CONT");
    proxies.iter().for_each(|proxy| proxy.be_honest());
    wait_for_epoch(&network, LIES, 2).await;
    for number in LEAVERS {
        let leave = ["leave", "--stop", "--wait", "600", "--json"];
        for _ in 0..2 {
            let left = network.authorities[number].operate_with(leave).unwrap();
            assert!(left.status.success() && left.out.contains("\"stopped\": true"), "{}{}", left.out, left.err);
        }
        let program = network.authority(number).unwrap().program().unwrap();
        let ended = wait_for(PATIENCE, || {
            let ended = program.ended().ok_or_else(|| "its node runs".to_owned());
            async move { ended }
        });
        assert!(ended.await.unwrap().success());
        // As the run-book says.
        std::fs::remove_dir_all(network.authorities[number].config().with_file_name("keys")).unwrap();
        let again = network.authorities[number].run_to_end().unwrap();
        assert!(again.status.success(), "{}{}", again.out, again.err);
    }
    traffic.more("without those that left").await;

    // Each payment is accounted for at all members.
    network.authorities.drain(..LEAVERS.len());
    let owners = [owner.account(), key(8).account()];
    traffic.account_for_all(&network, &owners).await;
}

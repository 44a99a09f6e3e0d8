//! A member is lost for good. A new authority with an empty folder takes its place in the next committee, joins and
//! votes; then the committee grows. Payments go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_client::ClientError;
use fastpay_core::{AccountKey, Asset, Committee, Committees, Epoch, SequenceNumber};
use fastpay_e2e::{Authority, Network, PATIENCE, bring_all_up_to_date, http_get, wait_for};
use fastpay_rpc::Refusal;

use crate::pruning::pruned;
use crate::rotation::{Clients, DELAY_S, Load, deposit, wait_for_epoch, wait_in_epoch};
use crate::scene::{balance, key, on_chain, payment};

/// The place of the member that is lost, and of the one that comes for it.
const LOST: usize = 3;
const FUNDS: u128 = 1_000_000;

pub fn clients_of(network: &Network) -> Clients {
    let committees = Arc::new(Mutex::new(Committees::new(network.committee().clone()).unwrap()));
    Clients { authorities: network.clients().unwrap(), committees, domain: *network.domain() }
}

/// The operators announce and install the present authorities as the committee of an epoch.
pub async fn install(network: &Network, clients: &Clients, epoch: u64, voters: &[usize]) {
    let all: Vec<_> = (0..network.authorities.len()).collect();
    install_those(network, clients, (epoch, &all), (voters, voters)).await;
}

/// The same with some of the authorities, of whom others accept than sign.
pub async fn install_those(
    network: &Network,
    clients: &Clients,
    (epoch, members): (u64, &[usize]),
    (voters, acceptors): (&[usize], &[usize]),
) {
    let members: Vec<_> = members.iter().map(|number| network.authorities[*number].member()).collect();
    let rotation = network.propose("none", &members, voters, (epoch, epoch)).unwrap().accepted_by(acceptors);
    network.sign(&rotation).unwrap();
    network.announce(&rotation).unwrap();
    network.chain().unwrap().pass(DELAY_S + 1).await.unwrap();
    network.install(&rotation).await.unwrap();
    let committee = Committee::new(Epoch(epoch), members).unwrap();
    clients.committees.lock().unwrap().install(committee).unwrap();
}

/// What an authority says of itself.
pub async fn said(network: &Network, number: usize) -> String {
    let http = network.authorities[number].endpoints().unwrap().http.clone().unwrap();
    http_get(&http, "/ready").await.unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_member_is_replaced_by_a_new_authority_that_joins_and_then_the_committee_grows() {
    let mut network = on_chain("replace").await;
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    network.start_authorities().await.unwrap();
    let mut clients = clients_of(&network);
    let (payer, owner, saver) = (key(0), key(2), key(4));
    for account in [&payer, &owner, &saver] {
        deposit(&network, account, 1_000_000).await;
    }

    let load = Load::start(&clients, payer, owner.account());
    load.more("before").await;
    // Two members have voted for an order that has no certificate yet.
    let order = |to: &AccountKey, amount| saver.order(&clients.domain, payment(&saver, to.account(), amount, 0));
    let (locked, other) = (order(&owner, 5), order(&owner, 6));
    for authority in &clients.authorities[..2] {
        wait_for(PATIENCE, async || {
            let voted = authority.shard_of(&saver.account()).order(&locked).await;
            voted.map(drop).map_err(|error| error.to_string())
        })
        .await
        .unwrap();
    }

    network.authority(LOST).unwrap().kill();
    network.replace(LOST, 2).unwrap();
    network.authorities[LOST].set_endpoints(&endpoints).unwrap();
    install(&network, &clients, 1, &[0, 1, 2]).await;
    load.more("without the lost member").await;
    for number in 0..LOST {
        wait_for_epoch(&network, number, 1).await;
    }
    // Its machine fails while it begins, again and again.
    for pause_ms in [300, 1_000, 2_500] {
        network.authority(LOST).unwrap().start().unwrap();
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        network.authority(LOST).unwrap().kill();
    }
    network.authority(LOST).unwrap().start().unwrap();
    wait_for_epoch(&network, LOST, 1).await;
    let ready = said(&network, LOST).await;
    assert!(ready.contains("\"restored\":false") && ready.contains("\"joining\":null"), "{ready}");
    assert!(ready.contains("\"fullSince\":1"), "{ready}");
    load.more("while the new member votes").await;
    let (payer, mut sequence) = load.end().await;
    // The load does not know the new member's address.
    bring_all_up_to_date(&network, &[payer.account()]).await.unwrap();

    // It votes for nothing that contradicts what the others voted for, and without it there is no quorum now.
    clients.authorities = network.clients().unwrap();
    let shard = clients.authorities[LOST].shard_of(&saver.account());
    let refused = shard.order(&other).await.unwrap_err();
    assert!(
        matches!(&refused, ClientError::Refused(Refusal::OrderPending(pending)) if **pending == locked),
        "{refused}"
    );
    network.authority(2).unwrap().kill();
    let certificate = clients.certify(&locked).await.into_certificate();
    clients.settle(&certificate).await;
    let new = network.authorities[LOST].member().name;
    assert_eq!(certificate.epoch, Epoch(1));
    assert!(certificate.votes.iter().any(|vote| vote.authority == new));
    for _ in 0..3 {
        clients.do_it(&payer, payment(&payer, owner.account(), 1, sequence)).await;
        sequence += 1;
    }
    network.authority(2).unwrap().start().unwrap();
    wait_for_epoch(&network, 2, 1).await;

    // The committee grows. Of five, four are a quorum: both new members are in it once one is away.
    network.add(2).unwrap();
    network.authorities[4].set_endpoints(&endpoints).unwrap();
    install(&network, &clients, 2, &[0, 1, 2, LOST]).await;
    for number in 0..5 {
        if number == 4 {
            // Its node starts once its keys are those of a member.
            network.authority(4).unwrap().start().unwrap();
        }
        wait_for_epoch(&network, number, 2).await;
    }
    clients.authorities = network.clients().unwrap();
    network.authority(1).unwrap().kill();
    for _ in 0..3 {
        let certificate = clients.do_it(&payer, payment(&payer, owner.account(), 1, sequence)).await;
        assert_eq!((certificate.epoch, certificate.votes.len()), (Epoch(2), 4));
        sequence += 1;
    }
    network.authority(1).unwrap().start().unwrap();
    wait_for_epoch(&network, 1, 2).await;

    // All five agree on every balance.
    for account in [payer.account(), saver.account()] {
        let count = if account == payer.account() { sequence } else { 1 };
        for number in (0..count).map(SequenceNumber) {
            let mut found = None;
            for authority in &clients.authorities {
                found = found.or(authority.shard_of(&account).certificate(account, number).await.ok());
            }
            clients.settle_at(5, &found.expect("somebody has confirmed it")).await;
        }
    }
    let paid = u128::from(sequence);
    for (account, amount) in [(&payer, FUNDS - paid), (&owner, FUNDS + paid + 5), (&saver, FUNDS - 5)] {
        let account = account.account();
        for authority in &clients.authorities {
            let there = wait_for(PATIENCE, async || {
                let state = authority.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
                let held = state.balance(Asset::ETHER);
                if held == balance(amount) { Ok(()) } else { Err(format!("{account} holds {held}, not {amount}")) }
            });
            there.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_member_begins_at_a_checkpoint_below_which_the_others_have_nothing_and_joins() {
    let mut network = on_chain("replace-pruned").await;
    let endpoints = network.endpoints_file();
    let configure = |authority: &Authority| {
        authority.set_endpoints(&endpoints).unwrap();
        authority.set_archive(10).unwrap();
    };
    network.authorities.iter().for_each(configure);
    network.start_authorities().await.unwrap();
    let mut clients = clients_of(&network);
    let (payer, owner) = (key(0), key(2));
    deposit(&network, &payer, 1_000_000).await;
    let load = Load::start(&clients, payer, owner.account());
    for number in 0..4 {
        pruned(&network, number).await;
    }
    network.authority(LOST).unwrap().kill();
    network.replace(LOST, 2).unwrap();
    configure(&network.authorities[LOST]);
    install(&network, &clients, 1, &[0, 1, 2]).await;
    for number in 0..LOST {
        wait_for_epoch(&network, number, 1).await;
    }
    network.authority(LOST).unwrap().start().unwrap();
    pruned(&network, LOST).await;
    wait_for_epoch(&network, LOST, 1).await;
    load.more("while the new member votes").await;
    let (payer, sequence) = load.end().await;
    bring_all_up_to_date(&network, &[payer.account()]).await.unwrap();

    clients.authorities = network.clients().unwrap();
    network.authority(2).unwrap().kill();
    let certificate = clients.do_it(&payer, payment(&payer, owner.account(), 1, sequence)).await;
    let new = network.authorities[LOST].member().name;
    assert!(certificate.epoch == Epoch(1) && certificate.votes.iter().any(|vote| vote.authority == new));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_observers_become_members_at_once_and_then_four_of_seven_go_on_who_all_join() {
    let mut network = on_chain("seven").await;
    let endpoints = network.endpoints_file();
    for _ in 0..3 {
        network.add(2).unwrap();
        network.authorities.last().unwrap().set_observer().unwrap();
    }
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    network.start_authorities().await.unwrap();
    let ready = said(&network, 4).await;
    assert!(ready.contains("\"waitsFor\":\"installation\"") && ready.contains("\"restored\":false"), "{ready}");
    let clients = clients_of(&network);
    let (payer, owner) = (key(0), key(2));
    deposit(&network, &payer, 1_000_000).await;
    let load = Load::start(&clients, payer, owner.account());
    load.more("before").await;
    // What they execute, observers do not.
    let observer = clients.authorities[4].shard_of(&owner.account());
    assert_eq!(observer.account(owner.account()).await.unwrap().received, 0);

    // A quorum of seven has five members: not enough are left without the new ones.
    let seven = [0, 1, 2, 3, 4, 5, 6];
    install_those(&network, &clients, (1, &seven), (&[0, 1, 2], &[2, 3, 4, 5, 6])).await;
    for number in seven {
        wait_for_epoch(&network, number, 1).await;
    }
    let (payer, mut sequence) = load.end().await;
    bring_all_up_to_date(&network, &[payer.account()]).await.unwrap();
    for number in [0, 1] {
        network.authority(number).unwrap().kill();
    }
    let mut pay = async |epoch, votes| {
        let certificate = clients.do_it(&payer, payment(&payer, owner.account(), 1, sequence)).await;
        assert_eq!((certificate.epoch, certificate.votes.len()), (Epoch(epoch), votes));
        sequence += 1;
    };
    pay(1, 5).await;
    for number in [0, 1] {
        network.authority(number).unwrap().start().unwrap();
        wait_for_epoch(&network, number, 1).await;
    }

    // Of four who know what a quorum of seven certified, some may know nothing of it: all join.
    let four = [3, 4, 5, 6];
    install_those(&network, &clients, (2, &four), (&[2, 3, 4, 5, 6], &four)).await;
    for number in four {
        wait_for_epoch(&network, number, 2).await;
        assert!(said(&network, number).await.contains("\"fullSince\":2"));
    }
    for number in 0..LOST {
        wait_in_epoch(&network, number, 2, false).await;
    }
    network.authority(6).unwrap().kill();
    pay(2, 3).await;
}

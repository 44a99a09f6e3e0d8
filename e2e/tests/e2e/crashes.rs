//! Processes that end at any instant, and the state that survives.

use std::collections::BTreeMap;
use std::time::Duration;

use fastpay_core::{AccountId, Asset, Balance};
use fastpay_e2e::{Network, PATIENCE, Payers, wait_for};

use crate::scene::{START, balance, key, standalone, standalone_of_previous_release};

const PAYERS: u8 = 12;
const EACH: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_when_the_next_release_replaces_authorities_one_at_a_time_under_load() {
    let accounts: Vec<_> = (0..PAYERS).map(|number| key(number).account()).collect();
    let mut network = standalone_of_previous_release("upgrade", &accounts);
    network.start_authorities().await.unwrap();
    let payers = Payers::new(&network, PAYERS).unwrap();
    assert_eq!(payers.accounts(), accounts);

    let paying = tokio::spawn({
        let payers = payers.clone();
        async move { payers.pay(EACH, &[Asset::ETHER]).await }
    });
    // Upgrades one authority at a time under load. Two stop cleanly, the others by `kill -9`, the first one twice. Each
    // starts again with this release, on the folder that the previous one wrote.
    for number in 0..5 {
        while payers.settled() < usize::from(PAYERS) * EACH * (number + 1) / 7 && !paying.is_finished() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let authority = network.authority(number % 4).unwrap();
        if number % 2 == 1 {
            authority.stop().unwrap();
        } else {
            authority.kill();
        }
        authority.upgrade();
        authority.start().unwrap();
        authority.wait_ready().await.unwrap();
    }
    let paid = paying.await.unwrap().unwrap();
    assert_eq!(paid.payments, usize::from(PAYERS) * EACH);
    payers.bring_all_up_to_date(&accounts).await.unwrap();
    assert_all_paid(&network, &payers, EACH).await;
}

/// Checks that at each authority each account has made `each` payments of the payers' plan and has the exact balance.
pub async fn assert_all_paid(network: &Network, payers: &Payers, each: usize) {
    let accounts = payers.accounts();
    let mut expected: BTreeMap<AccountId, Balance> = accounts.iter().map(|a| (*a, balance(START))).collect();
    for (sender, payments) in accounts.iter().zip(payers.plan(each, &[Asset::ETHER])) {
        for (recipient, _, amount) in payments {
            expected.entry(*sender).and_modify(|balance| *balance = balance.debit(amount));
            expected.entry(recipient).and_modify(|balance| *balance = balance.credit(amount));
        }
    }
    for client in network.clients().unwrap() {
        // Credits between shards may still be on their way.
        wait_for(PATIENCE, async || {
            for (account, expected) in &expected {
                let state = client.shard_of(account).account(*account).await.map_err(|error| error.to_string())?;
                let found = (state.balance(Asset::ETHER), state.next_sequence.0, state.pending.is_some());
                if found != (*expected, each as u64, false) {
                    return Err(format!("{}: {account} is {found:?}, not {expected}", client.name()));
                }
            }
            Ok(())
        })
        .await
        .unwrap();
    }
}

/// A frozen authority is worse than a dead one: connections stay open without answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_freezes_holds_nobody_up() {
    let accounts: Vec<_> = (0..4).map(|number| key(number).account()).collect();
    let mut network = standalone("frozen", &accounts);
    network.start_authorities().await.unwrap();
    let payers = Payers::new(&network, 4).unwrap();
    network.authority(1).unwrap().program().unwrap().signal("STOP");
    // A client that awaited it would wait for the ten seconds of a request, twenty times.
    let paid = payers.pay(20, &[Asset::ETHER]).await.unwrap();
    assert!(paid.elapsed < Duration::from_secs(150), "eighty payments took {:?}", paid.elapsed);
    network.authority(1).unwrap().program().unwrap().signal("CONT");
    payers.bring_all_up_to_date(&accounts).await.unwrap();
    assert_all_paid(&network, &payers, 20).await;
    // Stopped with clients connected, each authority ends cleanly, and has its whole state after a restart.
    for authority in &mut network.authorities {
        authority.stop().unwrap();
    }
    network.start_authorities().await.unwrap();
    assert_all_paid(&network, &payers, 20).await;
}

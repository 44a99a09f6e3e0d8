//! All programs are killed at random under load; then the books must balance.
//!
//! `FAULT_SECONDS` sets the duration (default 20). `FAULT_SEED` repeats the order of kills; each run prints its seed.
//! The programs' timing varies, so the same seed does not repeat the same run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alloy::primitives::{Address, U256};
use alloy::sol_types::SolCall;
use fastpay_core::{Amount, Asset, Memo, PrimaryAddress};
use fastpay_e2e::{Network, PATIENCE, Payers, User, audit, wait_for, within};
use fastpay_ethereum::IFastPay;
use fastpay_wallet::Intent;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::task::JoinSet;

use crate::scene::on_chain;

const PAYERS: u8 = 8;
const OUT: Address = Address::repeat_byte(0xa7);
pub const FUNDS: u64 = 1_000_000_000;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Payers pay and redeem until they are stopped. Returns the amount redeemed to the chain.
pub async fn keep_paying(payers: Payers, member: usize, seed: u64, stop: Arc<AtomicBool>) -> u64 {
    let mut random = StdRng::seed_from_u64(seed);
    let (accounts, mut redeemed) = (payers.accounts(), 0);
    while !stop.load(Ordering::Relaxed) {
        let amount: u64 = random.random_range(1..1_000);
        let intent = if random.random_ratio(1, 20) {
            redeemed += amount;
            let recipient = PrimaryAddress::from(OUT);
            let (amount, fee) = (Amount(amount.into()), Amount::ZERO);
            Intent::Redeem { recipient, asset: Asset::ETHER, amount, fee, memo: Memo::ZERO }
        } else {
            let recipient = accounts[random.random_range(0..accounts.len())];
            Intent::Pay { recipient, asset: Asset::ETHER, amount: Amount(amount.into()), memo: Memo::ZERO }
        };
        // Repeating the same call never pays twice.
        while payers.send(member, intent).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    redeemed
}

/// A user whose commands are killed at random instants, each followed by the next one.
async fn keep_dying(person: User, to: String, seed: u64, stop: Arc<AtomicBool>) -> usize {
    let mut random = StdRng::seed_from_u64(seed);
    let mut killed = 0;
    while !stop.load(Ordering::Relaxed) {
        let amount = format!("0.00000000000000{:04}", random.random_range(1..10_000));
        let command =
            if random.random_ratio(1, 3) { vec!["resume"] } else { vec!["pay", &to, &amount, "--from", "own"] };
        let mut program = person.start_fastpay(command).unwrap();
        tokio::time::sleep(Duration::from_millis(random.random_range(5..250))).await;
        killed += usize::from(program.ended().is_none());
        program.kill();
    }
    killed
}

/// Kills and restarts authorities and the relayer: all at once to begin with and sometimes, mostly one at a time.
async fn rage(network: &mut Network, random: &mut StdRng, until: Instant) -> usize {
    let mut kills = 0;
    while Instant::now() < until {
        let mut victims: Vec<usize> = match random.random_range(0..10) {
            _ if kills == 0 => (0..4).collect(),
            0 => (0..4).collect(),
            1 => vec![random.random_range(0..2), random.random_range(2..4)],
            _ => vec![random.random_range(0..4)],
        };
        if random.random_ratio(1, 3) {
            network.relayer().unwrap().kill();
            tokio::time::sleep(Duration::from_millis(random.random_range(0..300))).await;
            network.relayer().unwrap().start().unwrap();
            kills += 1;
        }
        for victim in &victims {
            network.authority(*victim).unwrap().kill();
            kills += 1;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..800))).await;
        while !victims.is_empty() {
            let victim = victims.swap_remove(random.random_range(0..victims.len()));
            network.authority(victim).unwrap().start().unwrap();
            // Sometimes too short to start: some are killed during recovery.
            tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await;
        }
    }
    kills
}

pub async fn give(network: &Network, account: fastpay_core::AccountId) {
    let call = IFastPay::depositEtherCall { recipient: account.0.into() }.abi_encode();
    let (chain, contract) = (network.chain().unwrap(), network.contract().unwrap());
    chain.send(contract, U256::from(FUNDS), call.into()).await.unwrap();
}

pub async fn wait_until_relayed(network: &Network, wei: u64) {
    wait_for(PATIENCE, async || {
        let status = network.relayer.as_ref().unwrap().status().map_err(|error| error.to_string())?;
        let paid = network.chain().unwrap().ether_of(OUT).await.map_err(|error| error.to_string())?;
        let idle = status["transactions"] == json!([]) && status["items"] == 0;
        if idle && paid == U256::from(wei) { Ok(()) } else { Err(format!("{paid} of {wei} wei are paid: {status}")) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_stuck_when_everybody_is_killed_at_random() {
    let seed = from_environment("FAULT_SEED").unwrap_or_else(rand::random);
    let seconds = from_environment("FAULT_SECONDS").unwrap_or(20);
    println!("FAULT_SEED={seed} FAULT_SECONDS={seconds}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut network = on_chain("storm").await;
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let payers = Payers::new(&network, PAYERS).unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    let own = alice.new_ed25519_key("own").await.unwrap();
    let mut accounts = payers.accounts();
    accounts.push(own);
    for account in &accounts {
        give(&network, *account).await;
    }
    for client in network.clients().unwrap() {
        wait_for(PATIENCE, async || {
            for account in &accounts {
                let state = client.shard_of(account).account(*account).await.map_err(|error| error.to_string())?;
                if state.deposits != 1 {
                    return Err(format!("{} has no deposit of {account}", client.name()));
                }
            }
            Ok(())
        })
        .await
        .unwrap();
    }

    let stop = Arc::new(AtomicBool::new(false));
    let mut paying = JoinSet::new();
    for member in 0..usize::from(PAYERS) {
        paying.spawn(keep_paying(payers.clone(), member, random.random(), stop.clone()));
    }
    let dying = tokio::spawn(keep_dying(alice.clone(), accounts[0].to_string(), random.random(), stop.clone()));
    let kills = rage(&mut network, &mut random, Instant::now() + Duration::from_secs(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    for authority in &mut network.authorities {
        authority.wait_ready().await.unwrap();
    }
    let redeemed: u64 = within(PATIENCE, "they are still paying", paying.join_all()).await.unwrap().iter().sum();
    let died = dying.await.unwrap();

    // The next command finishes what a killed one left unfinished, and the account is free.
    alice.fastpay(["resume"]).await.unwrap();
    alice.fastpay(["pay", &accounts[0].to_string(), "0.000000000000000001", "--from", "own"]).await.unwrap();
    payers.bring_all_up_to_date(&accounts).await.unwrap();
    for client in network.clients().unwrap() {
        for account in &accounts {
            let state = client.shard_of(account).account(*account).await.unwrap();
            assert_eq!(state.pending, None, "{account} is locked at {}", client.name());
        }
    }
    // However they were killed, none treats its own folder as an older copy.
    for authority in &mut network.authorities {
        let log = authority.program().unwrap().log_text();
        assert!(!log.contains("this data folder may be older"), "{log}");
    }
    wait_until_relayed(&network, redeemed).await;
    let lines = audit(&network, &accounts, &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    assert_eq!(alice.fastpay(["audit"]).await.unwrap()["ok"], true);
    let settled = payers.settled();
    println!("{kills} kills of authorities and relayer, {died} of wallets; {settled} payments and redemptions settled");
    assert!(kills > 0 && died > 0 && settled > 0, "the storm did nothing");
}

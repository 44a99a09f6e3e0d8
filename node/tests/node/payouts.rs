//! Redemptions that wait for the contract: which are listed, since when, and when they no longer are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{AccountKey, Amount, Certificate, Domain, Epoch, PrimaryAddress, SequenceNumber};
use fastpay_ethereum::{Call, Finality, certified_redemption};
use fastpay_ledger_client::CommitteeClient;
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger};
use fastpay_ledger_statement::{StateKey, Time};
use fastpay_node::authority::payouts::{Payouts, WaitingSeen};
use fastpay_rpc::json::{WaitingRedemption, WaitingRedemptions};
use fastpay_testkit::anvil::{CHAIN_ID, rich_key};
use fastpay_testkit::primary::{ChainConfig, SimulatedContract, SimulatedNode, SimulatedPrimary};
use fastpay_testkit::{TestAccount, TestCommittee, redemption};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::scene::{FORGETFUL, Shards, eventually};

const RICH: u128 = 1_000_000;
const RECIPIENT: PrimaryAddress = PrimaryAddress::repeat_byte(0x0d);
/// Some times as long as the contract is left alone between two questions.
const WHILE: Duration = Duration::from_secs(60);

/// Two shards of an authority, and a contract that holds what their accounts have. Time is tokio's, and stands still
/// while nothing runs.
struct Scene {
    shards: Shards,
    primary: SimulatedPrimary,
    contract: SimulatedContract,
    node: SimulatedNode,
    runtime: Runtime,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let primary = SimulatedPrimary::new(ChainConfig::default());
        let contract = primary.deploy(&TestCommittee::new(4).committee);
        let folder = tempfile::tempdir().unwrap();
        let mut shards = Shards::prepare(folder.path(), 2, FORGETFUL);
        shards.committee = TestCommittee::with(4, Domain::new(CHAIN_ID, contract.address()), Epoch(0));
        let shards = shards.run();
        let accounts = [shards.account_in(0, 0), shards.account_in(1, 0)];
        shards.deposit(&accounts.each_ref().map(|account| (account.id(), RICH)));
        accounts.iter().for_each(|account| contract.deposit_ether(&rich_key(5), account.id(), Amount(RICH)));
        primary.mine(1);
        primary.finalize();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let node = primary.node("node", 1);
        Self { shards, primary, contract, node, runtime, folder }
    }

    /// Has the next redemption of an account confirmed.
    fn redeem(&self, account: &TestAccount, sequence: u64) -> Certificate {
        let wanted = redemption(account.id(), RECIPIENT, 7, sequence);
        let order = account.sign(&self.shards.committee.domain, wanted);
        self.shards.pay(&order);
        self.shards.committee.certificate(&order)
    }

    /// Brings certificates to the contract, in a block that is not final yet.
    fn pay(&self, certificates: &[Certificate]) {
        let committee = &self.shards.committee;
        let certified =
            certificates.iter().map(|certificate| certified_redemption(certificate, &committee.committee).unwrap());
        self.primary.send(&rich_key(6), Call::redeem_many(self.contract.address(), certified.collect()));
        self.primary.mine(1);
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("payouts.json")
    }

    /// The comparison as after a start.
    fn start(&self) -> (JoinHandle<()>, WaitingSeen) {
        let primary =
            self.primary.connect(std::slice::from_ref(&self.node), self.contract.address(), Finality::Finalized);
        let shards: Vec<_> = self.shards.handles.values().cloned().zip(self.shards.histories.iter().cloned()).collect();
        let voter_status = self.shards.voter_status.subscribe();
        let (payouts, seen) =
            Payouts::new(primary.into(), voter_status, &shards, self.file(), self.shards.metrics.clone());
        let stop = tokio::sync::watch::channel(false);
        let run = async move {
            let _running = stop.0;
            payouts.run(stop.1).await;
        };
        (self.runtime.spawn(run), seen)
    }

    /// What is listed once the newest final block is the one that was asked in, and so much is.
    fn listed(&self, seen: &WaitingSeen, count: usize) -> Arc<WaitingRedemptions> {
        let block = self.primary.block_number() - ChainConfig::default().finalized_depth;
        let mut found = None;
        eventually("the contract is asked", || {
            self.runtime.block_on(async { tokio::time::sleep(WHILE).await });
            found = seen.borrow().clone();
            found.as_ref().is_some_and(|listed| listed.block.0 == block && listed.redemptions.len() == count)
        });
        found.unwrap()
    }

    fn metric(&self, name: &str) -> u64 {
        let text = self.shards.metrics.text();
        let line = text.lines().find(|line| line.starts_with(&format!("fastpay_{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn end(self) {
        drop(self.runtime);
        self.shards.stop().into_iter().for_each(|ended| ended.unwrap());
    }
}

/// Shard and number of each, with its sender's number, in no order.
fn places(listed: &WaitingRedemptions) -> Vec<(u32, u64, String)> {
    let place = |waiting: &WaitingRedemption| {
        let redemption = serde_json::to_value(&waiting.redemption).unwrap();
        (waiting.shard, waiting.number.0, redemption["sequence"].as_str().unwrap().to_owned())
    };
    let mut places: Vec<_> = listed.redemptions.iter().map(place).collect();
    places.sort_unstable();
    places
}

#[test]
fn what_waits_is_listed_until_the_contract_has_taken_it_in_a_final_block() {
    let scene = Scene::new();
    let [alice, bob] = [scene.shards.account_in(0, 0), scene.shards.account_in(1, 0)];
    let (running, seen) = scene.start();
    assert_eq!(places(&scene.listed(&seen, 0)), []);
    assert_eq!((scene.metric("redemptions_waiting"), scene.metric("redemption_waiting_timestamp_seconds")), (0, 0));

    let first = scene.redeem(&alice, 0);
    scene.redeem(&alice, 1);
    scene.redeem(&bob, 0);
    let all = [(0, 0, "0".to_owned()), (0, 1, "1".to_owned()), (1, 0, "0".to_owned())];
    let listed = scene.listed(&seen, 3);
    assert_eq!(places(&listed), all);
    assert_eq!(listed.beyond.0, 0);
    let digest = scene.shards.committee.domain.transfer_digest(&first.order.transfer);
    assert!(listed.redemptions.iter().any(|waiting| waiting.digest.0 == digest.0));
    assert_eq!(scene.metric("redemptions_waiting"), 3);
    assert!(scene.metric("redemption_waiting_timestamp_seconds") > 1_700_000_000);

    // A block that may still be replaced pays nobody.
    scene.pay(&[first]);
    assert_eq!(places(&scene.listed(&seen, 3)), all);
    scene.primary.finalize();
    assert_eq!(places(&scene.listed(&seen, 2)), all[1..]);
    assert_eq!(scene.metric("redemptions_waiting"), 2);

    // A contract that cannot be asked changes nothing of what is known.
    scene.node.behave(|behaviour| behaviour.away = true);
    scene.redeem(&bob, 1);
    scene.runtime.block_on(async { tokio::time::sleep(WHILE).await });
    assert_eq!(places(&seen.borrow().clone().unwrap()), all[1..]);
    scene.node.recover();
    assert_eq!(places(&scene.listed(&seen, 3)).last().unwrap().1, 1);
    running.abort();
    scene.end();
}

#[test]
fn since_when_it_waits_outlives_a_restart_and_a_file_that_is_no_good_costs_only_that() {
    let scene = Scene::new();
    let [alice, bob] = [scene.shards.account_in(0, 0), scene.shards.account_in(1, 0)];
    scene.redeem(&alice, 0);
    scene.redeem(&bob, 0);
    let again = || {
        let (running, seen) = scene.start();
        let listed = scene.listed(&seen, 2);
        running.abort();
        listed
    };
    let all = [(0, 0, "0".to_owned()), (1, 0, "0".to_owned())];
    assert_eq!(places(&again()), all);

    let mut stored: Value = serde_json::from_slice(&std::fs::read(scene.file()).unwrap()).unwrap();
    stored[1]["waiting"]["0"]["since"] = json!(1_000);
    std::fs::write(scene.file(), stored.to_string()).unwrap();
    let listed = again();
    assert_eq!(places(&listed), all);
    assert_eq!((listed.redemptions[0].shard, listed.redemptions[0].since.0), (1, 1_000), "longest first");
    assert_eq!(scene.metric("redemption_waiting_timestamp_seconds"), 1_000);

    // Of another number of shards, of a redemption log that was longer, or no file of ours at all.
    let mut longer = stored.clone();
    longer[0]["next"] = json!(9);
    longer[1]["next"] = json!(9);
    let one = json!([stored[0]]);
    for bad in [longer.to_string(), one.to_string(), "[]".into(), "{".into(), "".into(), "[1, 2]".into()] {
        std::fs::write(scene.file(), &bad).unwrap();
        let listed = again();
        assert_eq!(places(&listed), all, "{bad}");
        assert!(listed.redemptions.iter().all(|waiting| waiting.since.0 > 1_700_000_000), "{bad}");
    }
    std::fs::remove_file(scene.file()).unwrap();
    std::fs::create_dir(scene.file()).unwrap();
    assert_eq!(places(&again()), all, "not being able to write it costs nothing now");
    scene.end();
}

#[test]
fn so_many_are_asked_for_at_a_time_and_the_others_are_counted() {
    let scene = Scene::new();
    let alice = scene.shards.account_in(0, 0);
    let certificates: Vec<_> = (0..261).map(|sequence| scene.redeem(&alice, sequence)).collect();
    let (running, seen) = scene.start();
    let listed = scene.listed(&seen, 256);
    assert_eq!(listed.beyond.0, 5);
    assert_eq!(scene.metric("redemptions_waiting"), 261);
    // Room at the front is for those behind.
    scene.pay(&certificates[..10]);
    scene.primary.finalize();
    let listed = scene.listed(&seen, 251);
    assert_eq!(listed.beyond.0, 0);
    assert_eq!(places(&listed).first().unwrap().1, 10);
    running.abort();
    scene.end();
}

/// Members of a ledger answer each question from a state of their own.
#[test]
fn what_a_ledger_paid_is_not_listed_for_ever_though_members_that_lag_or_lie_were_asked_about_it() {
    let runtime = Runtime::new().unwrap();
    let (bank, folder) = (AccountKey::ed25519([1; 32]), tempfile::tempdir().unwrap());
    let begin = Time(fastpay_program::Clock::system().now_ms() - 60_000);
    let genesis = TestCommittee::new(4).committee;
    let mut ledger = runtime.block_on(ScriptedLedger::start(&genesis, &bank, begin));
    let file = ledger.write(folder.path());
    let client = runtime.block_on(async { CommitteeClient::open(&file, COMMITTEE) }).unwrap();
    let mut shards = Shards::prepare(&folder.path().join("shards"), 1, FORGETFUL);
    shards.committee = TestCommittee::with(4, client.domain(), Epoch(0));
    let shards = shards.run();
    let alice = shards.account_in(0, 0);
    shards.deposit(&[(alice.id(), RICH)]);
    ledger.history().fund(&bank, &[(alice.id(), RICH)]);
    let wanted = redemption(alice.id(), RECIPIENT, 7, 0);
    shards.pay(&alice.sign(&shards.committee.domain, wanted.clone()));
    // Two members answer, which know of the payment's event, and not of the payment.
    (2..4).for_each(|member| ledger.kill(member));
    let spent = || StateKey::Spent(COMMITTEE, alice.id(), SequenceNumber(0));
    (0..2).for_each(|member| ledger.read_no_further_of(member, spent()));
    ledger.history().redeem(&bank, &shards.committee.keys, Epoch(0), &wanted).unwrap();
    let voter_status = shards.voter_status.subscribe();
    let readers: Vec<_> = shards.handles.values().cloned().zip(shards.histories.iter().cloned()).collect();
    let (payouts, seen) =
        Payouts::new(client.into(), voter_status, &readers, folder.path().join("payouts"), shards.metrics.clone());
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let running = runtime.spawn(payouts.run(stopped));
    let is_listed = |count| {
        let listed = seen.borrow().clone();
        listed.is_some_and(|listed| (listed.block.0, listed.redemptions.len()) == (2, count))
    };
    eventually("it is listed", || is_listed(1));
    (0..2).for_each(|member| ledger.recover(member));
    eventually("it is no longer listed", || is_listed(0));
    stop.send_replace(true);
    runtime.block_on(running).unwrap();
    drop(ledger);
    shards.stop().into_iter().for_each(|ended| ended.unwrap());
}

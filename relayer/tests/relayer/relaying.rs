//! Redemptions reach a real contract once, whatever authorities, other relayers, the chain and the power
//! supply do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use alloy::primitives::U256;
use fastpay_core::{Amount, Epoch, Redemption, SequenceNumber, Transfer};
use fastpay_ethereum::{Call, CertifiedRedemption, Payout};
use fastpay_relayer::{
    Assets, BelowCost, BundleConfig, Config, Rate, Reason, Relayer, RelayerError, State, StoreError, status_json,
    status_text,
};
use fastpay_testkit::anvil::{LyingNode, Mining};
use fastpay_testkit::fake::Role;

use crate::scene::{ETHER, RECIPIENT, Scene, UNFUNDED};

#[tokio::test]
async fn what_the_feeds_have_is_redeemed_once_and_the_fee_earned() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    scene.publish(0..3);
    let mut relayer = scene.relayer().await;
    let tick = relayer.run_once().await.unwrap();
    assert_eq!((tick.answered, tick.silent, tick.waiting, tick.under_way, tick.parked), (4, 0, 0, 0, 0));
    assert_eq!(relayer.state().totals.redeemed, 3);
    assert_eq!(relayer.state().items.len(), 0, "done items are not kept");
    assert_eq!(scene.paid_out().await, 300);
    assert_eq!(scene.primary.ether_balance(RECIPIENT).await.unwrap(), U256::from(297));
    assert_eq!(scene.transactions().await, 1, "one bundle");
    scene.publish([3]);
    relayer.run_once().await.unwrap();
    assert_eq!((scene.paid_out().await, scene.transactions().await), (400, 2));
    let counted = relayer.metrics().text();
    for line in [
        "redeemed_total 4",
        "submitted_total 2",
        "reverted_total 0",
        "waiting 0",
        "silent_shards 0",
        "oldest_waiting_seconds 0",
    ] {
        assert!(counted.lines().any(|counted| counted == format!("fastpay_relayer_{line}")), "{line}: {counted}");
    }
    assert!(!counted.contains("fastpay_relayer_gas_used_total 0\n"), "{counted}");
    // A restart, and even the loss of all state, repeats nothing.
    drop(relayer);
    scene.relayer().await.run_once().await.unwrap();
    std::fs::remove_dir_all(&scene.config.data_dir).unwrap();
    scene.relayer().await.run_once().await.unwrap();
    assert_eq!((scene.paid_out().await, scene.transactions().await), (400, 2));
}

#[tokio::test]
async fn many_go_in_bundles_of_bounded_size() {
    let mut scene = Scene::new(Mining::EveryMs(100)).await;
    scene.config.bundle = BundleConfig { items_max: 2, ..scene.config.bundle.clone() };
    scene.publish(0..5);
    scene.relayer().await.run_once().await.unwrap();
    assert_eq!((scene.paid_out().await, scene.transactions().await), (500, 3));
}

#[tokio::test]
async fn a_redemption_waits_for_company_but_not_too_long() {
    let mut scene = Scene::new(Mining::Manual).await;
    scene.config.bundle = BundleConfig { wait_ms_max: 2_000, items_max: 2, ..scene.config.bundle.clone() };
    let good_fee = ETHER / 1_000;
    scene.publish_worth(0, ETHER / 10, good_fee);
    let mut relayer = scene.relayer().await;
    assert_eq!(relayer.tick(false).await.unwrap().under_way, 0);
    assert_eq!(relayer.state().decision.reason, Reason::WaitsForCompany);
    tokio::time::sleep(std::time::Duration::from_millis(2_050)).await;
    assert_eq!(relayer.tick(false).await.unwrap().under_way, 1);
    assert_eq!(relayer.state().decision.reason, Reason::NothingToDo, "what waited is under way");
    scene.publish_worth(1, ETHER / 10, good_fee);
    scene.publish_worth(2, ETHER / 10, good_fee);
    assert_eq!(relayer.tick(false).await.unwrap().under_way, 2, "two are company enough");
}

#[tokio::test]
async fn silent_authorities_are_done_without_and_all_silent_is_an_error() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    scene.publish([0]);
    for authority in &scene.authorities[..3] {
        authority.play(Role::Down);
    }
    let tick = scene.relayer().await.run_once().await.unwrap();
    assert_eq!((tick.answered, tick.silent), (1, 3));
    assert_eq!(scene.paid_out().await, 100);
    scene.authorities[3].play(Role::Down);
    let error = scene.relayer().await.run_once().await.unwrap_err();
    assert!(matches!(error, RelayerError::NoAuthority), "{error}");
}

#[tokio::test]
async fn an_endless_redemption_log_does_not_block_the_relayer() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    scene.publish([0, 1]);
    scene.authorities[2].play(Role::FalseRedemptionCount);
    scene.authorities[3].publish(&scene.certify(scene.payment()));
    scene.authorities[3].play(Role::EndlessRedemptions);
    let mut relayer = scene.relayer().await;
    let once = tokio::time::timeout(std::time::Duration::from_secs(60), relayer.run_once());
    assert!(once.await.expect("it ends").unwrap().caught_up);
    assert_eq!(scene.paid_out().await, 200);
}

#[tokio::test]
async fn what_is_no_valid_redemption_is_passed_by() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    let good = scene.certify(Transfer::Redemption(scene.redemption(0, 1)));
    let mut altered = good.clone();
    if let Transfer::Redemption(redemption) = &mut altered.order.transfer {
        redemption.amount = Amount(500);
    }
    let mut too_few = good.clone();
    too_few.votes.pop();
    let mut twice = good.clone();
    twice.votes[1] = twice.votes[0].clone();
    let mut other_epoch = good.clone();
    other_epoch.epoch.0 = 7;
    // One that would make the relayer forget the real one, were it believed: no fee, same number.
    let mut poison = good.clone();
    poison.order.transfer = Transfer::Redemption(Redemption { fee: Amount(0), ..scene.redemption(0, 1) });
    let payment = scene.certify(scene.payment());
    for bad in [&altered, &too_few, &twice, &other_epoch, &poison, &payment] {
        scene.authorities[0].publish(bad);
    }
    scene.authorities[3].publish(&good);
    let mut relayer = scene.relayer().await;
    relayer.run_once().await.unwrap();
    assert_eq!(relayer.state().totals.invalid, 6);
    assert_eq!(scene.paid_out().await, 100);
}

#[tokio::test]
async fn a_redemption_that_fails_is_left_out_and_holds_nobody_up() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    scene.publish([0]);
    let hopeless = Redemption { asset: UNFUNDED, ..scene.redemption(1, 1) };
    scene.authorities[0].publish(&scene.certify(Transfer::Redemption(hopeless)));
    scene.publish([2, 3]);
    let mut relayer = scene.relayer().await;
    let tick = relayer.run_once().await.unwrap();
    assert_eq!((tick.parked, scene.paid_out().await), (1, 300));
    let parked = relayer.state().items[0].parked.clone().unwrap();
    assert!(parked.reason.contains("audit the committee"), "{}", parked.reason);
}

#[tokio::test]
async fn an_asset_that_is_not_served_is_left_to_others() {
    let mut scene = Scene::new(Mining::EveryMs(100)).await;
    scene.config.assets = Assets::default();
    let junk = Redemption { asset: UNFUNDED, ..scene.redemption(0, 100) };
    scene.show(&scene.certify(Transfer::Redemption(junk)));
    scene.publish([1]);
    let mut relayer = scene.relayer().await;
    relayer.run_once().await.unwrap();
    assert_eq!((relayer.state().totals.not_served, scene.paid_out().await), (1, 100));
    assert!(status_text(relayer.state(), None).contains("1 for their asset"));
    assert_eq!(status_json(relayer.state(), None)["totals"]["notServed"], 1);
    let sender = scene.redemption(0, 0).sender;
    assert!(!scene.primary.is_redeemed(sender, SequenceNumber(0)).await.unwrap());
}

#[tokio::test]
async fn what_waits_when_its_asset_is_taken_off_the_list_is_left() {
    let mut scene = Scene::new(Mining::Manual).await;
    let hopeless = Redemption { asset: UNFUNDED, ..scene.redemption(0, 1) };
    scene.show(&scene.certify(Transfer::Redemption(hopeless)));
    let mut relayer = scene.relayer().await;
    assert_eq!(relayer.tick(true).await.unwrap().parked, 1);
    drop(relayer);
    scene.config.assets = Assets::default();
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!((relayer.state().items.len(), relayer.state().totals.not_served), (0, 1));
}

#[tokio::test]
async fn a_fee_in_a_token_counts_by_what_the_operator_says_it_is_worth() {
    for (rate, below_cost) in [("1000000000000000000", 0), ("0.000001", 1)] {
        let mut scene = Scene::new(Mining::Manual).await;
        scene.config.bundle.below_cost = BelowCost::Leave;
        let rate = Rate::try_from(rate.to_owned()).unwrap();
        scene.config.assets = [(UNFUNDED, rate)].into_iter().collect();
        scene.show(&scene.certify(Transfer::Redemption(Redemption { asset: UNFUNDED, ..scene.redemption(0, 5) })));
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        // What is worth its gas is tried, and found to be hopeless.
        let parked = relayer.state().items.iter().filter(|item| item.parked.is_some()).count();
        assert_eq!((relayer.state().totals.below_cost, parked), (below_cost, 1 - below_cost as usize));
    }
}

/// Redeems like another relayer would.
async fn redeem_as_another(scene: &Scene, redemption: Redemption) {
    let certificate = scene.certify(Transfer::Redemption(redemption));
    let committee = scene.primary.committee(certificate.epoch).await.unwrap();
    let certified: CertifiedRedemption = fastpay_ethereum::certified_redemption(&certificate, &committee).unwrap();
    let call = Call::redeem(scene.primary.contract(), certified);
    let key = scene.anvil.rich_key(6);
    let nonce: alloy::primitives::U64 =
        scene.anvil.request("eth_getTransactionCount", serde_json::json!([key.address(), "pending"])).await;
    // It tips better than the relayer does, so it comes first in the block.
    scene.anvil.send_raw(&key, nonce.to(), call.to.into(), U256::ZERO, call.data).await;
}

/// A thief with a quorum's redemption keys spends a number on an order that its owner did not sign. Of 1 ETH the second
/// great one waits in the queue.
async fn steal(scene: &Scene, sequence: u64, amount: u128) -> u64 {
    let theft = Redemption { amount: Amount(amount), recipient: UNFUNDED.0, ..scene.redemption(sequence, 0) };
    redeem_as_another(scene, theft).await;
    amount.try_into().unwrap()
}

#[tokio::test]
async fn what_another_relayer_redeems_first_is_just_done() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0]);
    let mut relayer = scene.relayer().await;
    redeem_as_another(&scene, scene.redemption(0, 1)).await;
    scene.anvil.mine(1).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().items.len(), 1, "kept until that is final");
    assert_eq!(relayer.state().bundles.len(), 0);
    scene.anvil.mine(2).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().items.len(), 0);
    assert_eq!(relayer.state().totals.redeemed_by_others, 1);
    assert_eq!((scene.paid_out().await, scene.transactions().await), (100, 0));
}

#[tokio::test]
async fn a_bundle_survives_that_another_relayer_is_faster() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0, 1, 2]);
    let mut relayer = scene.relayer().await;
    redeem_as_another(&scene, scene.redemption(1, 1)).await;
    assert_eq!(relayer.tick(true).await.unwrap().under_way, 1);
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((scene.paid_out().await, relayer.state().items.len()), (300, 0));
    // What was skipped in its bundle is not its own.
    assert_eq!((relayer.state().totals.redeemed, relayer.state().totals.redeemed_by_others), (2, 1));
}

#[tokio::test]
async fn a_number_that_a_thief_spent_counts_as_never_paid() {
    for is_queued in [false, true] {
        let scene = Scene::new(Mining::Manual).await;
        scene.publish([0, 1]);
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        let before = if is_queued { steal(&scene, 7, ETHER * 6 / 10).await } else { 0 };
        let stolen = steal(&scene, 1, if is_queued { ETHER * 3 / 10 } else { 90 }).await;
        scene.anvil.mine(3).await;
        relayer.tick(true).await.unwrap();
        let state = relayer.state();
        assert_eq!((state.items.len(), state.bundles.len()), (0, 0));
        assert_eq!((state.totals.redeemed, state.totals.redeemed_by_others, state.totals.displaced), (1, 0, 1));
        assert_eq!(scene.paid_out().await, before + 100 + if is_queued { 0 } else { stolen });
        assert_eq!(state.left[0].item.sequence, SequenceNumber(1));
        assert!(state.left[0].reason.contains("redemption keys are stolen"), "{}", state.left[0].reason);
        assert_eq!(status_json(state, None)["totals"]["displaced"], 1);
        assert!(status_text(state, None).contains("1 never paid"), "{}", status_text(state, None));
        assert!(relayer.metrics().text().contains("fastpay_relayer_displaced_total 1\n"));
    }
}

#[tokio::test]
async fn what_a_thief_queued_is_not_executed_for_its_owner() {
    let mut scene = Scene::new(Mining::Manual).await;
    scene.config.bundle.execute_others = true;
    steal(&scene, 7, ETHER * 6 / 10).await;
    steal(&scene, 0, ETHER * 3 / 10).await;
    scene.anvil.mine(3).await;
    scene.publish([0]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let (sender, sequence) = (scene.redemption(0, 0).sender, SequenceNumber(0));
    assert!(matches!(scene.primary.payout(sender, sequence).await.unwrap(), Payout::Queued(_)));
    assert_eq!((relayer.state().items.len(), relayer.state().totals.queued), (0, 0));
}

#[tokio::test]
async fn one_node_s_log_takes_nothing_from_its_owner() {
    let mut scene = Scene::new(Mining::Manual).await;
    let liar = LyingNode::start(&scene.anvil.url());
    scene.config.primary.rpc_urls = vec![liar.url(), scene.anvil.url(), scene.anvil.url()];
    // In the events of this account it puts another order.
    liar.lie(|method, params, answer| {
        if method == "eth_getLogs" && params[0]["topics"][1].is_string() {
            for log in answer["result"].as_array_mut().unwrap() {
                let mut data = log["data"].as_str().unwrap().to_owned();
                data.replace_range(2 + 5 * 64..2 + 6 * 64, &"11".repeat(32));
                log["data"] = data.into();
            }
        }
    });
    scene.publish_worth(0, ETHER * 6 / 10, 1);
    let mut relayer = scene.relayer().await;
    for _ in 0..2 {
        relayer.tick(true).await.unwrap();
        scene.anvil.mine(3).await;
        scene.publish_worth(1, ETHER * 3 / 10, 1);
    }
    relayer.tick(true).await.unwrap();
    let state = relayer.state();
    assert_eq!((state.totals.redeemed, state.totals.queued, state.totals.displaced), (1, 1, 0));
    assert!(matches!(&state.items[..], [item] if item.queued.is_some()));
}

#[tokio::test]
async fn what_the_log_does_not_say_counts_as_nobodys() {
    let mut scene = Scene::new(Mining::Manual).await;
    let node = LyingNode::start(&scene.anvil.url());
    scene.config.primary.rpc_urls = vec![node.url()];
    scene.publish([0]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    redeem_as_another(&scene, scene.redemption(0, 1)).await;
    scene.anvil.mine(3).await;
    node.refuse("eth_getLogs", -32000, "not for you");
    relayer.tick(true).await.unwrap();
    let totals = relayer.state().totals;
    assert_eq!((relayer.state().items.len(), totals.redeemed_by_others, totals.displaced), (0, 0, 0));
}

#[tokio::test]
async fn a_lone_redemption_that_another_relayer_snatches_is_done_too() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0]);
    let mut relayer = scene.relayer().await;
    redeem_as_another(&scene, scene.redemption(0, 1)).await;
    relayer.tick(true).await.unwrap();
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((scene.paid_out().await, relayer.state().items.len(), relayer.state().bundles.len()), (100, 0, 0));
    assert_eq!((relayer.state().totals.redeemed, relayer.state().totals.redeemed_by_others), (0, 1));
}

#[tokio::test]
async fn a_redemption_whose_nonce_another_transaction_of_the_key_took_is_brought_again() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let nonces = |relayer: &Relayer| relayer.state().bundles.iter().map(|one| one.submission.nonce).collect::<Vec<_>>();
    let taken = nonces(&relayer)[0];
    let key = scene.anvil.rich_key(0);
    scene.anvil.send_raw(&key, taken, key.address().into(), U256::ZERO, Default::default()).await;
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((scene.paid_out().await, nonces(&relayer)), (0, vec![taken + 1]));
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((scene.paid_out().await, relayer.state().items.len()), (100, 0));
}

#[tokio::test]
async fn a_restart_at_any_point_sends_nothing_twice() {
    let mut scene = Scene::new(Mining::Manual).await;
    let node = LyingNode::start(&scene.anvil.url());
    scene.config.primary.rpc_urls = vec![node.url()];
    scene.publish([0, 1]);
    // The process dies after writing its intention and before anything leaves.
    node.refuse("eth_sendRawTransaction", -32000, "the power fails");
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let intended = relayer.state().bundles.clone();
    assert_eq!(intended.len(), 1);
    drop(relayer);
    node.repent();
    // It starts again and dies in each later state.
    for blocks in [0, 1, 2] {
        let mut relayer = scene.relayer().await;
        assert_eq!(relayer.state().bundles, intended, "the same transaction");
        relayer.tick(true).await.unwrap();
        drop(relayer);
        scene.anvil.mine(blocks).await;
    }
    let mut relayer = scene.relayer().await;
    assert!(relayer.run_once().await.unwrap().caught_up);
    assert_eq!(relayer.state().cursors.values().next().unwrap(), &[2]);
    assert_eq!((scene.paid_out().await, scene.transactions().await), (200, 1));
}

#[tokio::test]
async fn nothing_is_sent_that_is_not_on_disk() {
    let mut scene = Scene::new(Mining::Manual).await;
    let node = LyingNode::start(&scene.anvil.url());
    scene.config.primary.rpc_urls = vec![node.url()];
    scene.config.sender.stuck_after_ms = 50;
    scene.publish([0]);
    let data_dir = scene.config.data_dir.clone();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = sent.clone();
    node.lie(move |method, _, answer| {
        if method == "eth_sendRawTransaction" {
            let state = State::read(&data_dir).unwrap();
            let attempts = &state.bundles[0].submission.attempts;
            let on_disk = answer["result"] == serde_json::json!(attempts.last().unwrap().hash);
            seen.lock().unwrap().push(on_disk);
        }
    });
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(*sent.lock().unwrap(), [true, true], "the first offer and the better one");
}

#[tokio::test]
async fn a_reorganisation_is_survived() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0, 1]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    scene.anvil.mine(1).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(scene.paid_out().await, 200);
    scene.anvil.reorganise(1).await;
    assert_eq!(scene.paid_out().await, 0);
    assert_eq!(relayer.state().items.len(), 2, "nothing is forgotten before it is final");
    relayer.tick(true).await.unwrap();
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((scene.paid_out().await, relayer.state().items.len()), (200, 0));
}

#[tokio::test]
async fn a_stuck_transaction_is_replaced() {
    let mut scene = Scene::new(Mining::Manual).await;
    scene.config.sender.stuck_after_ms = 50;
    scene.publish([0]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    for _ in 0..2 {
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        relayer.tick(true).await.unwrap();
    }
    assert_eq!(relayer.state().bundles[0].submission.attempts.len(), 3);
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((scene.paid_out().await, scene.transactions().await), (100, 1));
}

#[tokio::test]
async fn a_feed_that_became_shorter_is_read_again() {
    let scene = Scene::new(Mining::EveryMs(100)).await;
    scene.publish([0, 1]);
    let mut relayer = scene.relayer().await;
    relayer.run_once().await.unwrap();
    scene.authorities.iter().for_each(|authority| authority.clear());
    scene.publish([2]);
    relayer.run_once().await.unwrap();
    assert_eq!(scene.paid_out().await, 300);
}

#[tokio::test]
async fn an_empty_gas_account_and_an_absent_node_are_waited_for() {
    let mut scene = Scene::new(Mining::EveryMs(100)).await;
    let node = LyingNode::start(&scene.anvil.url());
    scene.config.primary.rpc_urls = vec![node.url()];
    scene.publish([0]);
    node.go_away(true);
    let mut relayer = scene.relayer().await;
    let tick = relayer.tick(true).await.unwrap();
    assert!(!tick.caught_up);
    node.go_away(false);
    node.refuse("eth_call", -32003, "insufficient funds for gas * price + value");
    relayer.tick(true).await.unwrap();
    node.repent();
    relayer.run_once().await.unwrap();
    assert_eq!(scene.paid_out().await, 100);
}

#[tokio::test]
async fn what_only_a_person_can_mend_stops_it_at_the_start() {
    let scene = Scene::new(Mining::Manual).await;
    let open = |config: Config| Relayer::open(config, scene.anvil.rich_key(0));
    let mut wrong_chain = scene.config.clone();
    wrong_chain.primary.chain_id = 1;
    let error = open(wrong_chain).await.unwrap_err();
    assert!(error.to_string().contains("serves chain 31337, not 1"), "{error}");
    let mut nowhere = scene.config.clone();
    nowhere.endpoints = "/nowhere.json".into();
    assert!(matches!(open(nowhere).await.unwrap_err(), RelayerError::Endpoints(_)));
    let first = open(scene.config.clone()).await.unwrap();
    let second = open(scene.config.clone()).await.unwrap_err();
    assert!(matches!(second, RelayerError::Store(StoreError::InUse(_))), "{second}");
    drop(first);
}

#[tokio::test]
async fn the_state_of_a_restarted_chain_is_not_continued() {
    let before = Scene::new(Mining::EveryMs(100)).await;
    before.publish(0..2);
    before.relayer().await.run_once().await.unwrap();
    let mut scene = Scene::of(Mining::EveryMs(100), 21..=24).await;
    assert_eq!(scene.primary.contract(), before.primary.contract());
    scene.config.data_dir = before.config.data_dir.clone();
    scene.publish(0..3);
    let stored = State::read(&scene.config.data_dir).unwrap();
    let error = scene.relayer().await.run_once().await.unwrap_err();
    assert!(matches!(error, RelayerError::Store(StoreError::OtherDeployment(_))), "{error}");
    assert!(error.to_string().contains("its own data_dir; where a chain for tests began anew"), "{error}");
    assert_eq!(State::read(&scene.config.data_dir).unwrap(), stored);

    // As a release left it that kept no committee: nobody knows of which redemption logs the cursors are.
    let mut old = serde_json::to_value(&stored).unwrap();
    old.as_object_mut().unwrap().remove("first_committee").unwrap();
    let names = scene.primary.committee(Epoch(0)).await.unwrap();
    let cursors: BTreeMap<_, _> = names.members().iter().map(|member| (member.name, vec![2])).collect();
    old["cursors"] = serde_json::to_value(cursors).unwrap();
    std::fs::write(scene.config.data_dir.join("state.json"), old.to_string()).unwrap();
    let mut relayer = scene.relayer().await;
    relayer.run_once().await.unwrap();
    assert_eq!((scene.paid_out().await, relayer.state().totals.redeemed), (300, 5));
    drop(relayer);
    let error = before.relayer().await.run_once().await.unwrap_err();
    assert!(matches!(error, RelayerError::Store(StoreError::OtherDeployment(_))), "{error}");
}

//! Many redemptions go under one vote of the committee, whatever some of its members do; none is stranded in an
//! epoch that has ended, in the contract's queue, or by a pause.

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use fastpay_core::{Amount, Asset, Transfer};
use fastpay_ethereum::IFastPay;
use fastpay_relayer::{BelowCost, BundleConfig, Reason, Relayer, status_json, status_text};
use fastpay_testkit::anvil::{Mining, SAFETY_PARAMETERS};
use fastpay_testkit::fake::Role;

use crate::scene::{ETHER, RECIPIENT, Scene};

/// The functions that the transactions under way call, with how many redemptions each.
fn calls(relayer: &Relayer) -> Vec<(&'static str, usize)> {
    let name = |data: &[u8]| match data[..4].try_into().unwrap() {
        IFastPay::redeemCall::SELECTOR => "redeem",
        IFastPay::redeemManyCall::SELECTOR => "redeemMany",
        IFastPay::redeemBatchCall::SELECTOR => "redeemBatch",
        IFastPay::executeQueuedCall::SELECTOR => "executeQueued",
        _ => "?",
    };
    let bundles = relayer.state().bundles.iter();
    bundles.map(|bundle| (name(&bundle.submission.call.data), bundle.items.len())).collect()
}

/// Mines until what is under way is final.
async fn settle(scene: &Scene, relayer: &mut Relayer) {
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().bundles.len(), 0);
}

#[tokio::test]
async fn company_goes_under_one_vote_and_a_single_one_by_its_certificate() {
    let scene = Scene::new(Mining::Manual).await;
    let mut relayer = scene.relayer().await;
    scene.publish([0]);
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeem", 1)]);
    scene.publish([3, 1, 2]);
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeem", 1), ("redeemBatch", 3)]);
    settle(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().totals.redeemed), (400, 4));
    let asked: Vec<_> = scene.authorities.iter().map(|authority| authority.batches_asked()).collect();
    assert!(asked.iter().all(|ballots| *ballots <= 1), "{asked:?}");
}

#[tokio::test]
async fn an_authority_that_lacks_a_redemption_is_brought_its_certificate() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish(0..3);
    scene.authorities[3].play(Role::Down);
    scene.authorities[2].forget(1);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert!(scene.authorities[2].has_redemption(1));
    assert_eq!(calls(&relayer), [("redeemBatch", 3)]);
    settle(&scene, &mut relayer).await;
    assert_eq!(scene.paid_out().await, 300);
}

#[tokio::test]
async fn what_authorities_refuse_goes_by_its_certificate_and_the_rest_together() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish(0..4);
    for authority in &scene.authorities[..2] {
        authority.play(Role::RefusesCertificates);
        authority.forget(2);
    }
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeemBatch", 3), ("redeem", 1)]);
    assert!(!scene.authorities[0].has_redemption(2));
    settle(&scene, &mut relayer).await;
    assert_eq!(scene.paid_out().await, 400);
}

#[tokio::test]
async fn one_liar_is_done_without_and_two_cost_a_bounded_number_of_tries() {
    for lie in [Role::BadVote, Role::StolenVote, Role::FalseBatchPosition, Role::AlwaysMissing] {
        let scene = Scene::new(Mining::Manual).await;
        scene.authorities[1].play(lie);
        scene.publish([0, 1]);
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        assert_eq!(calls(&relayer), [("redeemBatch", 2)], "{lie:?}");
        scene.authorities[2].play(lie);
        for sequences in [2..4, 4..6] {
            scene.publish(sequences);
            relayer.tick(true).await.unwrap();
        }
        assert_eq!(calls(&relayer)[1..], [("redeemMany", 2), ("redeemMany", 2)], "{lie:?}");
        let asked: Vec<_> = scene.authorities.iter().map(|authority| authority.batches_asked()).collect();
        assert!(asked[1] <= 3 && asked[2] <= 3, "{lie:?}: {asked:?}");
        settle(&scene, &mut relayer).await;
        assert_eq!(scene.paid_out().await, 600, "{lie:?}");
    }
}

#[tokio::test]
async fn a_restart_sends_the_same_batch_and_no_second_one() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0, 1]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let intended = relayer.state().bundles.clone();
    drop(relayer);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().bundles, intended);
    settle(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, scene.transactions().await), (200, 1));
}

#[tokio::test]
async fn members_that_the_file_lists_under_their_former_names_vote_together() {
    let scene = Scene::new(Mining::Manual).await;
    scene.rotate_keys().await;
    scene.publish([0, 1]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeemBatch", 2)]);
    settle(&scene, &mut relayer).await;
    scene.rotate_keys().await;
    scene.publish([2, 3]);
    relayer.tick(true).await.unwrap();
    assert_eq!((calls(&relayer).last(), relayer.state().cursors.len()), (Some(&("redeemBatch", 2)), 4));
    settle(&scene, &mut relayer).await;
    assert_eq!(scene.paid_out().await, 400);
}

#[tokio::test]
async fn a_certificate_of_an_ended_epoch_is_voted_for_again_and_never_given_up() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0]);
    scene.rotate().await;
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeem", 1)], "votes of the previous epoch still count");
    settle(&scene, &mut relayer).await;

    let old = scene.certify(Transfer::Redemption(scene.redemption(5, 1)));
    let later = scene.certify(Transfer::Redemption(scene.redemption(7, 1)));
    scene.rotate().await;
    scene.pass(u64::from(SAFETY_PARAMETERS.votesValidity) + 3_600).await;
    scene.authorities.iter().for_each(|authority| authority.publish(&old));
    for authority in &scene.authorities[..2] {
        authority.play(Role::Down);
    }
    relayer.tick(true).await.unwrap();
    let item = relayer.state().items[0].clone();
    let parked = item.parked.unwrap();
    assert_eq!((relayer.state().bundles.len(), parked.attempts), (0, 0), "{}", parked.reason);
    // Its redemption log goes on with the new epoch's certificates meanwhile.
    for authority in &scene.authorities[..2] {
        authority.play(Role::Honest);
    }
    drop(relayer);
    std::fs::remove_dir_all(&scene.config.data_dir).unwrap();
    let mut relayer = scene.relayer().await;
    scene.publish([6]);
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeemBatch", 2)]);
    settle(&scene, &mut relayer).await;
    assert_eq!(scene.paid_out().await, 300);
    // Also without company.
    scene.authorities.iter().for_each(|authority| authority.publish(&later));
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeemBatch", 1)]);
    settle(&scene, &mut relayer).await;
    assert_eq!(scene.paid_out().await, 400);
}

#[tokio::test]
async fn what_the_contract_queues_is_executed_when_it_is_due() {
    let scene = Scene::new(Mining::Manual).await;
    let fee = ETHER / 100;
    scene.publish_worth(0, ETHER * 6 / 10, fee);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    settle(&scene, &mut relayer).await;
    scene.publish_worth(1, ETHER * 3 / 10, fee);
    relayer.tick(true).await.unwrap();
    settle(&scene, &mut relayer).await;
    let totals = relayer.state().totals;
    assert_eq!((totals.redeemed, totals.queued, totals.executed), (1, 1, 0));
    let paid = scene.primary.ether_balance(RECIPIENT).await.unwrap();
    assert_eq!(paid, U256::from(ETHER * 6 / 10 - fee));
    let status = status_json(relayer.state(), None);
    let due = status["queued"][0]["executableAt"].as_u64().unwrap();
    assert_eq!((status["items"].as_u64(), status["queued"][0]["fee"].as_str()), (Some(0), Some("10000000000000000")));
    assert!(
        status_text(relayer.state(), None).contains("queued         1 now"),
        "{}",
        status_text(relayer.state(), None)
    );
    // Not before its time; a restart does not forget it, nor does the loss of all state.
    let now = scene.primary.latest_head().await.unwrap().timestamp();
    scene.pass(due - now - 60).await;
    let tick = relayer.tick(true).await.unwrap();
    assert_eq!((tick.queued, tick.under_way), (1, 0));
    drop(relayer);
    std::fs::remove_dir_all(&scene.config.data_dir).unwrap();
    let mut relayer = scene.relayer().await;
    assert_eq!(relayer.tick(true).await.unwrap().queued, 1);
    drop(relayer);
    let mut relayer = scene.relayer().await;
    scene.pass(60).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("executeQueued", 1)]);
    settle(&scene, &mut relayer).await;
    assert_eq!((relayer.state().totals.executed, relayer.state().items.len()), (1, 0));
    let paid = scene.primary.ether_balance(RECIPIENT).await.unwrap();
    assert_eq!(paid, U256::from(ETHER * 9 / 10 - 2 * fee));
    assert_eq!(scene.primary.total_queued(Asset::ETHER).await.unwrap(), U256::ZERO);
}

#[tokio::test]
async fn what_the_guardian_postpones_is_executed_later_and_never_given_up() {
    let scene = Scene::new(Mining::Manual).await;
    for (sequence, worth) in [(0, ETHER * 6 / 10), (1, ETHER * 3 / 10)] {
        scene.publish_worth(sequence, worth, 1);
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        settle(&scene, &mut relayer).await;
    }
    let relayer = scene.relayer().await;
    let due = relayer.state().items[0].queued.unwrap().executable_at;
    let now = scene.primary.latest_head().await.unwrap().timestamp();
    scene.postpone(86_400).await;
    scene.pass(due - now).await;
    drop(relayer);
    // More hours, and rounds, than something that fails is tried in.
    for hour in 0..15 {
        let mut relayer = scene.relayer_at((due + hour * 3_600) * 1_000);
        relayer.tick(true).await.unwrap();
        assert_eq!((relayer.state().totals.given_up, relayer.state().items.len()), (0, 1));
        assert!(relayer.state().items[0].parked.is_none(), "it does nothing wrong");
    }
    let mut relayer = scene.relayer_at((due + 86_400) * 1_000);
    assert_eq!(relayer.state().items[0].queued.unwrap().executable_at, due + 86_400);
    scene.pass(86_400).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("executeQueued", 1)]);
    settle(&scene, &mut relayer).await;
    assert_eq!((relayer.state().totals.executed, relayer.state().items.len()), (1, 0));
}

#[tokio::test]
async fn redemptions_queued_by_another_relayer_are_left_to_it_by_default() {
    let mut scene = Scene::new(Mining::Manual).await;
    scene.publish_worth(0, ETHER * 6 / 10, 1);
    scene.publish_worth(1, ETHER * 3 / 10, 1);
    let mut other = scene.config.clone();
    other.data_dir = scene.config.data_dir.with_file_name("other");
    other.bundle.items_max = 1;
    let mut other = Relayer::open(other, scene.anvil.rich_key(1)).await.unwrap();
    other.tick(true).await.unwrap();
    scene.anvil.mine(3).await;
    other.tick(true).await.unwrap();
    assert_eq!(other.state().totals.queued, 1);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().items.len(), 0);
    drop(relayer);
    std::fs::remove_dir_all(&scene.config.data_dir).unwrap();
    scene.config.bundle.execute_others = true;
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    scene.pass(u64::from(SAFETY_PARAMETERS.outflowDelay) + 100).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("executeQueued", 1)]);
    settle(&scene, &mut relayer).await;
    assert_eq!((relayer.state().totals.executed, scene.paid_out().await), (1, u64::try_from(ETHER * 9 / 10).unwrap()));
    // The one that was to execute it finds it done.
    other.tick(true).await.unwrap();
    assert_eq!((other.state().items.len(), other.state().totals.redeemed_by_others), (0, 1));
}

#[tokio::test]
async fn a_pause_is_reported_and_waited_out() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0, 1]);
    scene.pause().await;
    let mut relayer = scene.relayer().await;
    let tick = relayer.tick(true).await.unwrap();
    assert_eq!((tick.under_way, tick.parked, tick.waiting), (0, 0, 2));
    assert_eq!(relayer.state().decision.reason, Reason::Paused);
    let until = relayer.state().paused_until.unwrap();
    assert_eq!(status_json(relayer.state(), None)["pausedUntil"], until);
    assert!(
        status_text(relayer.state(), None).contains("paused         until 20"),
        "{}",
        status_text(relayer.state(), None)
    );
    scene.pass(3_700).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeemBatch", 2)]);
    settle(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().paused_until), (200, None));
}

#[tokio::test]
async fn a_fee_below_its_share_of_the_gas_waits_and_is_then_paid_or_left() {
    let worth = ETHER / 10;
    for (below_cost, paid, left) in [(BelowCost::Pay, worth, 0), (BelowCost::Leave, 0, 1)] {
        let mut scene = Scene::new(Mining::Manual).await;
        scene.config.bundle = BundleConfig { wait_ms_max: 1_500, below_cost, ..scene.config.bundle.clone() };
        let price: U256 = scene.anvil.request("eth_gasPrice", serde_json::json!([])).await;
        // A fee for a quarter of the gas that it would cost in a bundle.
        scene.publish_worth(0, worth, 7_500 * price.to::<u128>());
        let mut relayer = scene.relayer().await;
        relayer.tick(false).await.unwrap();
        assert_eq!(relayer.state().decision.reason, Reason::WaitsForFees);
        assert_eq!(relayer.state().items.len(), 1);
        tokio::time::sleep(std::time::Duration::from_millis(1_550)).await;
        relayer.tick(false).await.unwrap();
        scene.anvil.mine(3).await;
        relayer.tick(false).await.unwrap();
        assert_eq!(
            (u128::from(scene.paid_out().await), relayer.state().totals.below_cost),
            (paid, left),
            "{below_cost:?}"
        );
        assert_eq!(relayer.state().items.len(), 0);
    }
}

#[tokio::test]
async fn a_hopeless_item_of_a_batch_is_taken_out_and_the_others_voted_for_again() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0]);
    let hopeless =
        fastpay_core::Redemption { asset: crate::scene::UNFUNDED, amount: Amount(7), ..scene.redemption(1, 1) };
    let hopeless = scene.certify(Transfer::Redemption(hopeless));
    scene.authorities.iter().for_each(|authority| authority.publish(&hopeless));
    scene.publish([2]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(calls(&relayer), [("redeemBatch", 2)]);
    settle(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().items.len()), (200, 1));
}

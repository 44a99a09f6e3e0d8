//! Keys of an epoch that ended long ago are stolen, and one authority lists what they certify: honest redemptions are paid
//! beside it, and no honest authority is mistaken for a liar.

use alloy::primitives::U256;
use fastpay_core::{Amount, Redemption, Transfer};
use fastpay_relayer::{BelowCost, Relayer};
use fastpay_testkit::anvil::Mining;
use serde_json::json;

use crate::scene::{ETHER, Scene};

fn waiting(relayer: &Relayer) -> Vec<u128> {
    relayer.state().items.iter().map(|item| item.redemption.amount.0).collect()
}

/// Mines until what is under way is final.
async fn settle(scene: &Scene, relayer: &mut Relayer) {
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().bundles.len(), 0);
}

#[tokio::test]
async fn forged_redemptions_make_way_for_others_whatever_their_fees() {
    let scene = Scene::new(Mining::Manual).await;
    let forged = |sequence| {
        let redemption = Redemption { amount: Amount(ETHER / 10), ..scene.redemption(sequence, ETHER / 100) };
        scene.certify(Transfer::Redemption(redemption))
    };
    let forged = [forged(50), forged(51)];
    scene.retire_keys().await;
    scene.authorities[0].publish(&forged[0]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!((waiting(&relayer), relayer.state().bundles.len()), (vec![ETHER / 10], 0));
    assert_eq!(relayer.state().items[0].parked.as_ref().unwrap().attempts, 1, "it counts as a failure");
    drop(relayer);
    // So many that they take all places.
    scene.fill_places();
    scene.authorities[0].publish(&forged[1]);
    scene.publish([1]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!((relayer.state().items.len(), waiting(&relayer).contains(&100)), (2_000, false), "there is no room yet");
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().items.len(), 2_000);
    let under_way: Vec<_> = relayer.state().bundles.iter().flat_map(|bundle| bundle.items.clone()).collect();
    assert_eq!(under_way.iter().map(|id| id.sequence.0).collect::<Vec<_>>(), [1]);
    settle(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().totals.redeemed), (100, 1));
}

#[tokio::test]
async fn of_two_orders_of_a_number_the_executed_one_is_paid_and_nobody_is_distrusted() {
    for is_current in [true, false] {
        let scene = Scene::new(Mining::Manual).await;
        // The owner has signed both.
        let forged = Redemption { amount: Amount(70), ..scene.redemption(0, 1) };
        let forged = scene.certify(Transfer::Redemption(forged));
        let mut genuine = scene.certify(Transfer::Redemption(scene.redemption(0, 1)));
        let honest = &scene.authorities[1..];
        if !is_current {
            honest.iter().for_each(|authority| authority.confirm(&genuine));
        }
        scene.publish([3]);
        scene.retire_keys().await;
        if is_current {
            genuine = scene.certify(Transfer::Redemption(scene.redemption(0, 1)));
        }
        // The honest have executed the genuine one, and the forged one is listed first.
        for authority in honest {
            authority.publish(&genuine);
            authority.clear();
        }
        scene.authorities[0].publish(&forged);
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        let refused = relayer.state().items.iter().find(|item| item.redemption.amount == Amount(70)).unwrap();
        assert_eq!(refused.parked.as_ref().unwrap().attempts, 1, "{is_current}");
        // What was asked for together with it is paid at once.
        let under_way: Vec<_> = relayer.state().bundles.iter().flat_map(|bundle| bundle.items.clone()).collect();
        assert_eq!(under_way.iter().map(|id| id.sequence.0).collect::<Vec<_>>(), [3], "{is_current}");
        honest.iter().for_each(|authority| authority.publish(&genuine));
        relayer.tick(true).await.unwrap();
        assert_eq!(relayer.state().bundles.len(), 2, "{is_current}: {:?}", relayer.state().items);
        // Votes for others together are still asked for.
        let before = honest.iter().map(|authority| authority.batches_asked()).sum::<usize>();
        scene.publish([1, 2]);
        relayer.tick(true).await.unwrap();
        assert!(honest.iter().map(|authority| authority.batches_asked()).sum::<usize>() >= before + 2, "{is_current}");
        assert_eq!(relayer.state().bundles.last().unwrap().items.len(), 2, "{is_current}");
        settle(&scene, &mut relayer).await;
        assert_eq!((scene.paid_out().await, relayer.state().items.len()), (400, 0), "{is_current}");
        assert_eq!((relayer.state().totals.redeemed, relayer.state().totals.displaced), (4, 0), "{is_current}");
    }
}

#[tokio::test]
async fn a_forged_redemption_is_given_up_and_hides_no_other_one_of_its_number() {
    let scene = Scene::new(Mining::Manual).await;
    let forged = scene.certify(Transfer::Redemption(Redemption { amount: Amount(70), ..scene.redemption(0, 1) }));
    scene.retire_keys().await;
    scene.authorities[0].publish(&forged);
    let now_ms = 20_000 * 86_400_000;
    for hour in 0..12 {
        scene.relayer_at(now_ms + hour * 3_600_000).tick(true).await.unwrap();
    }
    let mut relayer = scene.relayer_at(now_ms + 12 * 3_600_000);
    let totals = &relayer.state().totals;
    assert_eq!((totals.given_up, relayer.state().items.len(), relayer.state().left.len()), (1, 0, 0));
    let genuine = scene.certify(Transfer::Redemption(scene.redemption(0, 1)));
    scene.authorities[1..].iter().for_each(|authority| authority.publish(&genuine));
    relayer.tick(true).await.unwrap();
    settle(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().totals.redeemed), (100, 1));
}

#[tokio::test]
async fn a_forged_redemption_that_is_left_for_its_fee_hides_no_other_one_of_its_number() {
    let mut scene = Scene::new(Mining::Manual).await;
    scene.config.bundle.below_cost = BelowCost::Leave;
    let price: U256 = scene.anvil.request("eth_gasPrice", json!([])).await;
    // It may cover its share where gas becomes four times cheaper.
    let fee = 30_000 * price.to::<u128>() / 4;
    let forged = Redemption { amount: Amount(ETHER / 20), ..scene.redemption(0, fee) };
    let forged = scene.certify(Transfer::Redemption(forged));
    scene.retire_keys().await;
    scene.authorities[0].publish(&forged);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!((relayer.state().totals.below_cost, relayer.state().items.len()), (1, 0));
    let genuine = Redemption { amount: Amount(ETHER / 10), ..scene.redemption(0, ETHER / 100) };
    let genuine = scene.certify(Transfer::Redemption(genuine));
    scene.authorities[1..].iter().for_each(|authority| authority.publish(&genuine));
    relayer.tick(true).await.unwrap();
    settle(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().totals.redeemed), (u64::try_from(ETHER / 10).unwrap(), 1));
}

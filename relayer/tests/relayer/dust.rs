//! Worthless entries of redemption logs: they delay no others, and are not trusted.

use alloy::primitives::U256;
use fastpay_core::{Amount, Asset, Redemption, Transfer};
use fastpay_relayer::{BelowCost, Relayer};
use fastpay_testkit::anvil::Mining;
use fastpay_testkit::fake::Role;
use serde_json::json;

use crate::scene::{ETHER, Scene, UNFUNDED};

/// Several pages, which a busy machine reads within the two seconds that a round reads for.
const DUST: u64 = 300;

fn waiting(relayer: &Relayer) -> Vec<u64> {
    relayer.state().items.iter().map(|item| item.redemption.sequence.0).collect()
}

async fn thrifty() -> Scene {
    let mut scene = Scene::new(Mining::Manual).await;
    (scene.config.bundle.below_cost, scene.config.bundle.wait_ms_max) = (BelowCost::Leave, 3_600_000);
    scene
}

#[tokio::test]
async fn an_honest_entry_behind_much_dust_is_ingested_in_the_same_round() {
    let mut scene = thrifty().await;
    // Another asset of which nothing is served.
    scene.config.assets = fastpay_relayer::Assets::default();
    for sequence in 0..DUST {
        let asset = if sequence % 2 == 0 { Asset::ETHER } else { UNFUNDED };
        let mut dust = scene.certify(Transfer::Redemption(Redemption { asset, ..scene.redemption(sequence, 0) }));
        if sequence % 50 == 7 {
            // It costs less to pass this by than to find out.
            dust.votes.pop();
        }
        scene.show(&dust);
    }
    scene.publish_worth(DUST, ETHER / 10, ETHER / 1_000);
    let mut relayer = scene.relayer().await;
    assert!(relayer.tick(false).await.unwrap().caught_up);
    assert_eq!(waiting(&relayer), [DUST]);
    let state = relayer.state();
    // Each is counted once, though all authorities show it.
    assert_eq!((state.totals.below_cost, state.totals.not_served, state.totals.invalid), (DUST / 2, DUST / 2, 0));
    assert_eq!(state.left.len(), 0);
    let size = std::fs::metadata(scene.config.data_dir.join("state.json")).unwrap().len();
    assert!(size < 10_000, "{size} bytes on disk");
}

#[tokio::test]
async fn what_covers_no_share_of_the_gas_makes_way_where_all_places_are_taken() {
    let scene = thrifty().await;
    let price: U256 = scene.anvil.request("eth_gasPrice", json!([])).await;
    let mut relayer = scene.relayer().await;
    // It may cover its share where gas becomes four times cheaper, so it waits.
    scene.publish_worth(0, ETHER / 10, 30_000 * price.to::<u128>() / 4);
    relayer.tick(false).await.unwrap();
    assert_eq!(waiting(&relayer), [0]);
    drop(relayer);
    scene.fill_places();
    let mut relayer = scene.relayer().await;
    scene.publish_worth(1, ETHER / 10, ETHER / 1_000);
    relayer.tick(false).await.unwrap();
    let waiting = waiting(&relayer);
    assert_eq!((waiting.len(), waiting.contains(&1), relayer.state().totals.below_cost), (2_000, true, 1));
}

#[tokio::test]
async fn what_is_made_up_takes_nothing_from_its_owner_and_ends_no_log() {
    let mut scene = thrifty().await;
    scene.config.bundle.wait_ms_max = 0;
    let good = scene.redemption(0, ETHER / 1_000);
    let good = Redemption { amount: Amount(ETHER / 10), ..good };
    let certificate = scene.certify(Transfer::Redemption(good));
    // The same number without a fee, over and over: nobody signed that.
    let mut made_up = certificate.clone();
    made_up.order.transfer = Transfer::Redemption(scene.redemption(0, 0));
    scene.authorities[0].publish(&made_up);
    scene.authorities[0].play(Role::EndlessRedemptions);
    let mut relayer = scene.relayer().await;
    assert!(relayer.tick(false).await.unwrap().caught_up, "it has nothing, however long it claims to be");
    scene.authorities[3].publish(&certificate);
    relayer.tick(false).await.unwrap();
    assert_eq!((waiting(&relayer), relayer.state().bundles.len()), (vec![0], 1));
}
